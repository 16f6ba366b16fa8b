"""The two-number filter against the posterior it stands for, and in the scenarios for which it forgets."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gammaincinv

from recrawl.lab.methods.beliefs import changed, counted, modified, remembered, unchanged
from recrawl.lab.methods.plain_interval import plain_interval
from recrawl.model.checks import Array

PRIOR = (0.7, 3.5)
SHAPES = st.floats(-12, 12).map(lambda exponent: 10.0**exponent)
INTERVALS = st.floats(-9, 9).map(lambda exponent: 10.0**exponent)


def numbers(belief: tuple[Array, Array]) -> tuple[float, float]:
    return float(belief[0]), float(belief[1])


def textbook(a: float, b: float, w: float) -> tuple[float, float]:
    """Mean and variance from the differences as they are usually written, with 120 digits."""
    with localcontext() as context:
        context.prec = 120
        a_, b_, w_ = Decimal(a), Decimal(b), Decimal(w)
        log_ratio = (b_ / (b_ + w_)).ln()
        z, z1, z2 = (1 - ((a_ + k) * log_ratio).exp() for k in range(3))
        mean = a_ / b_ * z1 / z
        variance = a_ * (a_ + 1) / (b_ * b_) * z2 / z - mean * mean
        return float(mean * mean / variance), float(mean / variance)


@given(SHAPES, SHAPES, INTERVALS)
def test_a_change_is_the_textbook_s_posterior(a: float, b: float, w: float) -> None:
    assert np.allclose(changed(a, b, w), textbook(a, b, w), rtol=1e-10, atol=0)


@pytest.mark.parametrize(("a", "b", "w"), [(0.7, 3.5, 1.0), (0.05, 1.0, 30.0), (5.0, 2.0, 0.1), (2.0, 0.5, 7.0)])
def test_a_change_has_mean_and_variance_of_bayes_rule(a: float, b: float, w: float) -> None:
    def moment(k: int) -> float:  # in ln λ, where a small shape is no singularity
        return quad(lambda t: np.exp((a + k) * t - b * np.exp(t)) * -np.expm1(-w * np.exp(t)), -60, 12, limit=500)[0]

    mean = moment(1) / moment(0)
    variance = moment(2) / moment(0) - mean**2
    new_a, new_b = changed(a, b, w)
    assert new_a / new_b == pytest.approx(mean, rel=1e-6)
    assert new_a / new_b**2 == pytest.approx(variance, rel=1e-6)


@given(SHAPES, SHAPES, INTERVALS)
def test_a_change_never_says_less_than_nothing_nor_more_than_a_counted_one(a: float, b: float, w: float) -> None:
    new_a, new_b = changed(a, b, w)
    rounding = 1 + 1e-12
    assert a <= new_a * rounding and new_a <= (a + 1) * rounding
    assert b <= new_b * rounding
    assert np.isfinite(new_a) and np.isfinite(new_b)


@given(SHAPES, SHAPES, INTERVALS)
def test_nothing_under_or_overflows_on_the_way(a: float, b: float, w: float) -> None:
    with np.errstate(all="raise"):
        changed(np.array([a]), np.array([b]), np.array([w]))
        remembered(a, b, *PRIOR, w)
        plain_interval(a, b)


def test_a_change_within_a_moment_is_one_change() -> None:
    assert np.allclose(changed(2.0, 10.0, 1e-9), (3.0, 10.0))


def test_a_change_of_a_page_that_surely_changed_says_nothing() -> None:
    assert np.allclose(changed(50.0, 1.0, 1000.0), (50.0, 1.0))


def test_what_is_counted_or_unchanged_is_added_up() -> None:
    assert numbers(unchanged(*PRIOR, 2.0)) == (0.7, 5.5)
    assert numbers(counted(*PRIOR, 2.0, 3)) == (3.7, 5.5)
    assert counted(*PRIOR, 2.0, 0) == unchanged(*PRIOR, 2.0)


def test_a_last_modified_dates_the_change() -> None:
    assert numbers(modified(*PRIOR, 10.0, 2.0)) == (1.7, 5.5)


def test_a_last_modified_before_the_last_visit_means_unchanged() -> None:
    assert modified(*PRIOR, 10.0, 10.0) == unchanged(*PRIOR, 10.0)


def test_a_page_that_always_says_it_was_modified_just_now_is_not_taken_at_its_word() -> None:
    believed, honest = PRIOR, PRIOR
    for _ in range(200):
        believed = numbers(modified(*believed, 1.0, 0.0))
        honest = numbers(changed(*honest, 1.0))
    assert believed == honest
    assert believed[0] / believed[1] < 20, "daily visits cannot tell 20 changes a day from 200"


def test_pages_are_independent() -> None:
    a, b, w = np.array([0.7, 3.0]), np.array([3.5, 1.0]), np.array([1.0, 40.0])
    together = np.array(changed(a, b, w))
    assert np.array_equal(together[:, 1], np.array(changed(3.0, 1.0, 40.0)))
    assert [x.shape for x in changed([], [], [])] == [(0,), (0,)]


# ------------------------------------------------------------------------------------------- forgetting


def rate_after(belief: tuple[float, float], observations: list[bool], interval: float = 1.0) -> list[float]:
    rates = []
    for is_changed in observations:
        belief = numbers(remembered(*belief, *PRIOR, interval))
        belief = numbers(changed(*belief, interval) if is_changed else unchanged(*belief, interval))
        rates.append(belief[0] / belief[1])
    return rates


def test_a_page_that_wakes_up_after_years_is_noticed_within_two_months() -> None:
    rates = rate_after(PRIOR, [False] * 1000 + [True] * 100)
    assert next(visit for visit, rate in enumerate(rates[1000:], 1) if rate >= 0.5) <= 60


def test_a_static_page_is_held_below_one_change_in_a_hundred_visits() -> None:
    assert rate_after(PRIOR, [False] * 5000)[-1] < 0.01
    assert rate_after(PRIOR, [False] * 5000, interval=30)[-1] * 30 < 1 / 50


def test_visiting_a_page_far_too_often_does_not_make_it_forget_its_rate() -> None:
    """Once in ten days, visited every hour: fifty visits hold a fifth of a change."""
    random = np.random.default_rng(5)
    pages, rate, hour = 300, 0.1, 1 / 24
    a, b = np.full(pages, PRIOR[0]), np.full(pages, PRIOR[1])
    for _ in range(300 * 24):
        a, b = remembered(a, b, *PRIOR, hour)
        seen = random.random(pages) < rate * hour
        bit_a, bit_b = changed(a, b, hour)
        a, b = np.where(seen, bit_a, a), np.where(seen, bit_b, b + hour)
    error = np.log(a / b / rate)
    assert abs(error.mean()) < 0.1 and np.sqrt(np.mean(error**2)) < 0.4


def test_a_page_at_its_prior_forgets_nothing_and_one_below_it_recovers() -> None:
    assert np.allclose(remembered(*PRIOR, *PRIOR, 3.0), PRIOR)
    a, b = remembered(0.1, 0.2, *PRIOR, 100.0)
    assert 0.1 < a < PRIOR[0] and 0.2 < b < PRIOR[1]


def test_the_past_counts_for_fifty_visits_or_a_hundred_days() -> None:
    def kept(interval: float) -> float:
        return float(remembered(PRIOR[0] + 1, PRIOR[1], *PRIOR, interval)[0] - PRIOR[0])

    assert kept(30.0) == kept(2.0) == pytest.approx(np.exp(-1 / 50))
    assert kept(0.5) == pytest.approx(np.exp(-0.5 / 100))


# --------------------------------------------------------------------------------------------- interval


def test_plain_arithmetic_finds_the_same_interval() -> None:
    a = np.geomspace(0.05, 1e12, 20_000)
    low, high = plain_interval(a, 3.0)
    assert np.abs(low * 3 / gammaincinv(a, 0.05) - 1).max() < 5e-3
    assert np.abs(high * 3 / gammaincinv(a, 0.95) - 1).max() < 6e-4


@given(SHAPES, SHAPES)
def test_the_estimate_lies_in_the_interval_if_the_belief_is_worth_a_twentieth_of_a_change(a: float, b: float) -> None:
    low, high = plain_interval(a, b)
    assert 0 < low < a / b < high < np.inf


# -------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 0.0])
@pytest.mark.parametrize(("position", "name"), [(0, "a"), (1, "b"), (2, "interval")])
def test_nonsense_is_refused_by_name_value_and_index(position: int, name: str, bad: float) -> None:
    given_: list[list[float]] = [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]
    given_[position][1] = bad
    with pytest.raises(ValueError, match=rf"^{name}\[1\] must be .*, got {bad}$"):
        changed(*given_)
