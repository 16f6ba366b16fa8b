"""Priors learnt from simulated hosts: what is known is found, what is unknown stays near all hosts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import digamma, gammaln, polygamma

from recrawl.lab.methods import beliefs
from recrawl.model.change import prior
from recrawl.model.checks import Array
from recrawl.model.limits import FIRST_CHANGES, FIRST_DAYS

Evidence = tuple[Array, Array]


def observed(random: np.random.Generator, a: float, b: float, pages: int, days: float) -> Evidence:
    """Pages whose changes were counted over about this number of days."""
    rate, days_ = random.gamma(a, 1 / b, pages), days * random.lognormal(0, 0.5, pages)
    return random.poisson(rate * days_).astype(np.float64), days_


def web(*hosts: Evidence) -> tuple[NDArray[np.int64], Array, Array]:
    first = np.cumsum([0, *(len(changes) for changes, _ in hosts)])
    return first, np.concatenate([changes for changes, _ in hosts]), np.concatenate([days for _, days in hosts])


def common(random: np.random.Generator, hosts: int = 60) -> list[Evidence]:
    """Hosts like any other: their pages' rates are Gamma(1, 5)."""
    return [observed(random, 1.0, 5.0, 100, 50) for _ in range(hosts)]


@pytest.mark.parametrize(("a", "b"), [(0.7, 3.5), (2.0, 1.0), (5.0, 50.0), (0.3, 0.1)])
def test_the_prior_that_made_a_host_s_pages_is_found(a: float, b: float) -> None:
    found = prior.fit(*web(observed(np.random.default_rng(1), a, b, 1000, 30 * b / a)))
    assert found.a[0] == pytest.approx(a, rel=0.2)
    assert found.a[0] / found.b[0] == pytest.approx(a / b, rel=0.15)


@pytest.mark.parametrize(("a", "b"), [(0.7, 3.5), (2.0, 40.0)])
def test_it_is_found_through_the_filter_s_eyes_though_that_started_from_another(a: float, b: float) -> None:
    """Visits that tell bits only, a filter that forgets, and pages thought four times too fast at first."""
    random = np.random.default_rng(2)
    pages, start_a, start_b = 1000, 0.8, 0.2 * b / a
    rate = random.gamma(a, 1 / b, pages)
    page_a, page_b = np.full(pages, start_a), np.full(pages, start_b)
    for _ in range(40):
        w = random.exponential(b / a, pages)
        page_a, page_b = beliefs.remembered(page_a, page_b, start_a, start_b, w)
        seen = random.random(pages) < -np.expm1(-rate * w)
        bit_a, bit_b = beliefs.changed(page_a, page_b, w)
        page_a, page_b = np.where(seen, bit_a, page_a), np.where(seen, bit_b, page_b + w)
    found = prior.fit([0, pages], page_a - start_a, page_b - start_b)
    assert found.a[0] == pytest.approx(a, rel=0.4)
    assert found.a[0] / found.b[0] == pytest.approx(a / b, rel=0.25)


def test_hosts_with_different_pages_get_different_priors() -> None:
    random = np.random.default_rng(3)
    slow, fast = observed(random, 2.0, 200.0, 300, 500), observed(random, 2.0, 0.5, 300, 20)
    found = prior.fit(*web(*common(random), slow, fast))
    assert found.a[-2] / found.b[-2] == pytest.approx(0.01, rel=0.15)
    assert found.a[-1] / found.b[-1] == pytest.approx(4.0, rel=0.15)
    assert found.all_a / found.all_b == pytest.approx(0.2, rel=0.5)


def test_three_pages_leave_a_host_near_all_hosts() -> None:
    random = np.random.default_rng(4)
    few = np.array([60.0, 100.0, 80.0]), np.full(3, 40.0)  # ten times as fast as elsewhere
    found = prior.fit(*web(*common(random), few))
    ratio = (found.a[-1] / found.b[-1]) / (found.all_a / found.all_b)
    assert 1.2 < ratio < 4


def test_a_host_of_which_nothing_is_known_has_the_prior_of_all() -> None:
    found = prior.fit(*web(*common(np.random.default_rng(5)), (np.zeros(50), np.zeros(50)), (np.zeros(0), np.zeros(0))))
    assert found.a[-2:].tolist() == pytest.approx([found.all_a] * 2, rel=1e-2)
    assert found.b[-2:].tolist() == pytest.approx([found.all_b] * 2, rel=1e-2)


def test_a_host_of_static_pages_gets_a_slow_prior() -> None:
    found = prior.fit(*web(*common(np.random.default_rng(6)), (np.zeros(200), np.full(200, 300.0))))
    assert found.a[-1] / found.b[-1] < 0.1 * found.all_a / found.all_b
    after_a_month = found.a[-1] / (found.b[-1] + 30)
    assert after_a_month < 0.01


def test_one_wild_page_does_not_wreck_a_host() -> None:
    random = np.random.default_rng(7)
    hosts = common(random)
    calm = prior.fit(*web(*hosts, observed(random, 2.0, 20.0, 40, 100)))
    changes, days = observed(np.random.default_rng(7), 2.0, 20.0, 40, 100)
    changes[5] = 1e6 * days[5]
    wild = prior.fit(*web(*hosts, (changes, days)))
    assert wild.a[-1] / wild.b[-1] == pytest.approx(calm.a[-1] / calm.b[-1], rel=0.5)
    assert wild.a[-1] == pytest.approx(calm.a[-1], rel=0.5)


def test_pages_that_are_all_alike_get_a_prior_that_is_worth_ten_changes() -> None:
    """A prior that is worth more would outweigh what each page shows."""
    found = prior.fit([0, 1000], np.full(1000, 100.0), np.full(1000, 50.0))
    assert found.a[0] == 10.0 and found.b[0] == pytest.approx(5.0, rel=0.01)


def test_the_largest_host_does_not_decide_for_all() -> None:
    random = np.random.default_rng(8)
    giant = observed(random, 2.0, 0.1, 50_000, 5)
    found = prior.fit(*web(*common(random), giant))
    assert found.all_a / found.all_b < 1.0
    assert found.a[-1] / found.b[-1] == pytest.approx(20, rel=0.15)


def test_pages_without_evidence_change_nothing() -> None:
    random = np.random.default_rng(9)
    changes, days = observed(random, 1.0, 5.0, 100, 50)
    found = prior.fit([0, 100], changes, days)
    padded = prior.fit([0, 200], np.r_[changes, np.zeros(100)], np.r_[days, np.zeros(100)])
    assert (padded.a[0], padded.b[0]) == pytest.approx((found.a[0], found.b[0]), rel=1e-6)


def test_nothing_known_at_all_is_the_first_prior() -> None:
    for first, changes in ([0], []), ([0, 0], []), ([0, 3], [0.0, 0.0, 0.0]):
        found = prior.fit(first, changes, changes)
        assert (found.all_a, found.all_b) == pytest.approx((FIRST_CHANGES, FIRST_DAYS), rel=1e-2)
        assert len(found.a) == len(first) - 1


@given(st.lists(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=6), max_size=4))
def test_a_prior_is_never_degenerate(hosts: list[list[tuple[float, float]]]) -> None:
    found = prior.fit(
        *web(*[(np.array([c for c, _ in host]), np.array([d for _, d in host])) for host in hosts or [[]]])
    )
    a, rate = np.r_[found.a, found.all_a], np.r_[found.a / found.b, found.all_a / found.all_b]
    assert ((a >= prior.LEAST_A) & (a <= prior.MOST_A)).all()
    assert ((rate >= prior.LEAST_RATE * (1 - 1e-9)) & (rate <= prior.MOST_RATE * (1 + 1e-9))).all()


def test_the_fit_is_where_the_penalised_likelihood_is_greatest() -> None:
    """By its definition, with scipy's functions: no step anywhere is better (the fastest pages tamed by hand)."""
    changes, days = observed(np.random.default_rng(10), 1.5, 6.0, 200, 20)
    found = prior.fit([0, 200], changes, days)
    base_a, base_b = found.all_a, found.all_b
    rate = (base_a + changes) / (base_b + days)
    days = np.maximum(days, (base_a + changes) / np.sort(rate)[-5] - base_b)

    def score(log_a: float, log_b: float) -> float:
        a, b = np.exp(log_a), np.exp(log_b)
        seen = gammaln(a + changes) - gammaln(a) + a * np.log(b) - (a + changes) * np.log(b + days)
        shape = a * np.log(a) - a - gammaln(a) - a * (np.log(base_a) - digamma(base_a))
        far = np.log(a / b) - np.log(base_a / base_b)
        return float(seen.sum() + prior.SHAPE_PAGES * shape - far**2 / (2 * prior.HOSTS_SPREAD**2))

    x, y = np.log(found.a[0]), np.log(found.b[0])
    for angle in np.linspace(0, 2 * np.pi, 16):
        assert score(x, y) > score(x + 0.05 * np.cos(angle), y + 0.05 * np.sin(angle))


def test_the_digamma_functions_are_scipy_s() -> None:
    for x in np.geomspace(0.01, 1e6, 200):
        assert prior._digamma(x) == pytest.approx(digamma(x), abs=2e-7)
        assert prior._trigamma(x) == pytest.approx(polygamma(1, x), rel=2e-6)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^days\[1\] must be finite and not negative, got -1.0$"):
        prior.fit([0, 2], [0.0, 0.0], [1.0, -1.0])
