"""The methods of the papers: what they promise, how they agree with each other, and what they are known to do wrong."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recrawl.lab.methods import azar, dual_ascent, lambdacrawl, newton, thesis, wcluster
from recrawl.lab.methods.page import changes_found, gain, visits_per_change

Array = NDArray[np.float64]
Method = Callable[[Array, Array, float], Array]


def opt_polite_alone(value: Array, rate: Array, budget: float) -> Array:
    """All pages on a host that has no limit."""
    return thesis.solve(value, rate, np.zeros(np.size(value), np.int64), [np.inf], budget)


def lambdacrawl_unannounced(value: Array, rate: Array, budget: float) -> Array:
    return lambdacrawl.solve(value, rate, budget, np.zeros(np.size(value), bool))


METHODS: dict[str, Method] = {
    "dual ascent": dual_ascent.solve,
    "Newton–Raphson": newton.solve,
    "WCluster": wcluster.solve,
    "Azar et al.": azar.solve,
    "CHO": thesis.cho,
    "OPT_POLITE": opt_polite_alone,
    "LambdaCrawl": lambdacrawl_unannounced,
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


def web(seed: int, pages: int = 1000, spread: float = 1.0) -> tuple[Array, Array]:
    """Values and rates, each over some decades."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(0, spread, pages), rng.lognormal(0, spread, pages)


def new_content(frequency: Array, value: Array, rate: Array) -> float:
    return float(np.sum(value * changes_found(frequency, rate)))


def freshness(frequency: Array, value: Array, rate: Array) -> float:
    return float(np.sum(value * changes_found(frequency, rate) / rate))


def poisson_freshness(frequency: Array, value: Array, rate: Array) -> float:
    return float(np.sum(value * frequency / (frequency + rate)))


def harmonic(frequency: Array, value: Array, rate: Array) -> float:
    with np.errstate(divide="ignore"):
        return float(np.sum(value * np.log(frequency / (frequency + rate))))


# ----------------------------------------------------------------------------------------- every method


@every_method
def test_a_richer_page_of_equal_rate_is_visited_more_often(method: Method) -> None:
    frequency = method(np.array([1.0, 2.0, 3.0]), np.ones(3), 6.0)
    assert np.all(np.diff(frequency) > 0)


@every_method
def test_the_budget_is_spent(method: Method) -> None:
    value, rate = web(1, spread=0.3)
    budget = 2 * rate.sum()
    assert method(value, rate, budget).sum() == pytest.approx(budget, rel=1e-6)


@every_method
def test_pages_that_do_not_change_or_are_worth_nothing_get_nothing(method: Method) -> None:
    frequency = method(np.array([1.0, 1.0, 0.0, 1.0]), np.array([1.0, 0.0, 1.0, 1.0]), 3.0)
    assert frequency == pytest.approx([1.5, 0, 0, 1.5], rel=1e-6)


@every_method
@pytest.mark.parametrize(("value", "rate", "budget"), [([], [], 1.0), ([], [], 0.0), ([1.0, 2.0], [3.0, 1.0], 0.0)])
def test_without_pages_or_budget_nothing_is_fetched(
    method: Method, value: list[float], rate: list[float], budget: float
) -> None:
    assert method(np.array(value), np.array(rate), budget).tolist() == [0.0] * len(value)


@every_method
def test_one_page_gets_the_whole_budget(method: Method) -> None:
    assert method(np.array([3.0]), np.array([2.0]), 5.0) == pytest.approx([5.0], rel=1e-6)


@every_method
@pytest.mark.parametrize(
    ("value", "rate", "budget", "message"),
    [
        ([1, np.nan], [1, 1], 1, r"value\[1\] must be finite and not negative, got nan"),
        ([1, 1], [-1, 1], 1, r"rate\[0\] must be finite and not negative, got -1.0"),
        ([1, 1], [1, np.inf], 1, r"rate\[1\] must be finite and not negative, got inf"),
        ([1, 1], [1, 1], np.nan, "budget must be finite and not negative, got nan"),
        ([1, 1], [1, 1], -2.0, "budget must be finite and not negative, got -2.0"),
        ([1, 1], [1, 1], np.inf, "budget must be finite and not negative, got inf"),
    ],
)
def test_nonsense_is_refused(
    method: Method, value: list[float], rate: list[float], budget: float, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        method(np.array(value), np.array(rate), budget)


@every_method
def test_a_rate_for_every_value(method: Method) -> None:
    with pytest.raises(ValueError, match=r"value and rate must be equally long, got (2|0) and 3"):
        method(np.ones(2), np.ones(3), 1.0)


# -------------------------------------------------------------------------- a page, at equally spaced visits


@pytest.mark.parametrize(("share", "visits"), [(0.9, 0.257088), (0.5, 0.595824), (0.1, 1.88037)])
def test_visits_per_change_as_tabulated(share: float, visits: float) -> None:
    assert visits_per_change(share, np.ones(1)) == pytest.approx([visits], rel=3e-6)


@given(st.floats(0.01, 30))
def test_the_price_of_a_frequency_buys_that_frequency(u: float) -> None:
    rest = (1 + u) * np.exp(-u)  # the price is 1 − rest: given as such a weight that no digit is lost
    assert visits_per_change(1.0, np.array([1 / -np.expm1(np.log1p(u) - u)])) == pytest.approx(
        [1 / u], rel=1e-12 / rest
    )


def test_the_gain_is_the_derivative_of_the_changes_found() -> None:
    frequency, rate, step = np.array([0.3, 1.0, 7.0]), np.array([2.0, 1.0, 0.5]), 1e-5
    slope = (changes_found(frequency + step, rate) - changes_found(frequency - step, rate)) / (2 * step)
    assert gain(frequency, rate) == pytest.approx(slope, rel=1e-8)


# ---------------------------------------------------------------- new content: dual ascent, Newton, CHO's search


@pytest.mark.parametrize(
    "method", [dual_ascent.solve, newton.solve, wcluster.solve], ids=["dual", "Newton", "WCluster"]
)
@pytest.mark.parametrize(
    ("budget", "expected"), [(1, (0, 1)), (2, (0.77717, 1.22283)), (4, (2.35945, 1.64055)), (10, (6.58413, 3.41587))]
)
def test_the_two_pages_of_the_optimal_revisiting_algorithm(
    method: Method, budget: float, expected: tuple[float, float]
) -> None:
    tolerance = 5e-2 if method is wcluster.solve else 1e-5  # its clusters hit the two values only about
    assert method(np.array([1.0, 5.0]), np.array([5.0, 1.0]), budget) == pytest.approx(expected, abs=tolerance)


def test_the_five_pages_of_cho_and_garcia_molina() -> None:
    rate = np.arange(1.0, 6.0)
    expected = pytest.approx([1.15, 1.358, 1.354, 1.138, 0], abs=6e-4)
    assert thesis.cho(np.ones(5), rate, 5) == expected
    assert dual_ascent.solve(1 / rate, rate, 5) == expected, "freshness is new content with value/rate for value"


@pytest.mark.parametrize("load", [0.01, 0.1, 1, 10])
def test_golden_section_finds_the_optimum_but_stalls_halfway_to_the_budget(load: float) -> None:
    value, rate = web(2)
    budget = load * rate.sum()
    exact, golden = thesis.cho(value * rate, rate, budget), dual_ascent.solve(value, rate, budget)
    assert new_content(golden, value, rate) == pytest.approx(new_content(exact, value, rate), rel=1e-4)
    assert abs(exact.sum() / budget - 1) < 1e-14
    assert 1e-10 < abs(golden.sum() / budget - 1) < 1e-3


def test_golden_section_stalls_because_the_dual_cannot_tell_prices_apart() -> None:
    value, rate = web(3)
    budget = rate.sum()
    price = dual_ascent.price(value, rate, budget)
    here, nearby = (dual_ascent.dual(p, value, rate, budget) for p in (price, price * (1 + 1e-9)))
    assert nearby == pytest.approx(here, rel=1e-14)
    spent, less = (dual_ascent.frequency(p, value, rate).sum() for p in (price, price * (1 + 1e-9)))
    assert spent - less > 1e-10 * budget


def test_the_dual_bounds_every_allocation() -> None:
    value, rate = web(4, pages=20)
    rng = np.random.default_rng(4)
    for price in value.max() * rng.random(20):
        frequency = rng.dirichlet(np.ones(20)) * 30
        assert dual_ascent.dual(price, value, rate, 30) > new_content(frequency, value, rate)


@pytest.mark.parametrize("load", [1, 3, 10])
def test_newton_reaches_the_optimum_where_every_page_is_worth_a_visit(load: float) -> None:
    value, rate = web(5, spread=0.3)
    budget = load * rate.sum()
    exact = thesis.cho(value * rate, rate, budget)
    assert exact.min() > 0
    assert newton.solve(value, rate, budget) == pytest.approx(exact, rel=1e-4)


def test_after_one_full_newton_step_the_budget_is_spent() -> None:
    value, rate = web(6, spread=0.3)
    budget = 3 * rate.sum()
    good = newton.optimum(value, rate, budget)
    wrong = good._replace(frequency=good.frequency * 1.1)
    assert newton.step(wrong, value, rate, budget).frequency.sum() == pytest.approx(budget, rel=1e-12)


def test_newton_never_again_visits_a_page_it_once_dropped() -> None:
    value, rate, budget = np.array([1.0, 5.0]), np.array([5.0, 1.0]), 4.0
    both = newton.optimum(value, rate, budget)
    assert both.frequency.min() > 1
    dropped = newton.State(np.array([0.0, budget]), np.array([1.0, 0.0]), both.price)
    assert newton.step(dropped, value, rate, budget).frequency[0] == 0
    with pytest.raises(ArithmeticError, match="stuck"):
        newton.solve(value, rate, budget, start=dropped)


def test_newton_cannot_drop_a_page_without_slack() -> None:
    value, rate = np.array([1.0, 1000.0]), np.array([5.0, 1.0])
    assert thesis.cho(value * rate, rate, 0.5)[0] == 0
    with pytest.raises(ArithmeticError, match="stuck"):
        newton.solve(value, rate, 0.5, start=newton.uniform(value, rate, 0.5)._replace(slack=np.zeros(2)))


def test_newton_drops_pages_but_gets_stuck_when_values_span_many_decades() -> None:
    value, rate = web(7, spread=1)
    budget = 0.1 * rate.sum()
    exact, dropping = thesis.cho(value * rate, rate, budget), newton.solve(value, rate, budget)
    assert np.count_nonzero(exact) < 500
    assert new_content(dropping, value, rate) == pytest.approx(new_content(exact, value, rate), rel=1e-9)
    value, rate = web(7, spread=2.5)
    with pytest.raises(ArithmeticError, match="stuck"):
        newton.solve(value, rate, rate.sum())


# ---------------------------------------------------------------------------------------------- clusters

HEAVY_TAILS = {
    "Pareto 1": lambda rng: 1 / rng.random(10_000),
    "Pareto 1.5": lambda rng: rng.random(10_000) ** (-1 / 1.5),
    "log-normal": lambda rng: rng.lognormal(0, 2, 10_000),
}


@pytest.mark.parametrize("tail", HEAVY_TAILS.values(), ids=HEAVY_TAILS.keys())
def test_clusters_of_equal_width_lose_the_value_and_log_width_keeps_it(
    tail: Callable[[np.random.Generator], Array],
) -> None:
    rng = np.random.default_rng(8)
    value, rate = tail(rng), rng.lognormal(0, 1, 10_000)
    value /= value.sum()  # at the scale of scores that add up to 1
    budget = 0.1 * rate.sum()
    best = new_content(thesis.cho(value * rate, rate, budget), value, rate)

    def lost(count: int, cluster: Callable[[Array, int], wcluster.Clusters]) -> float:
        return 1 - new_content(wcluster.solve(value, rate, budget, count, cluster), value, rate) / best

    assert lost(100, wcluster.equal_width) > 0.3
    assert lost(100, wcluster.log_width) < 5e-4
    assert lost(1000, wcluster.log_width) < 5e-6


def test_in_clusters_of_equal_width_small_values_are_all_the_same() -> None:
    value, rate = web(9)
    scores = value / value.sum() / 10
    assert scores.max() < 0.01 < 100 * scores.max()
    blind = wcluster.solve(scores, rate, 100.0, 100, wcluster.equal_width)
    assert blind == pytest.approx(thesis.cho(rate, rate, 100.0), rel=1e-4)


def test_a_cluster_for_every_value_is_dual_ascent() -> None:
    rng = np.random.default_rng(10)
    value, rate = rng.integers(1, 11, 1000) / 10 - 0.05, rng.lognormal(0, 1, 1000)
    clustered = wcluster.solve(value, rate, rate.sum(), 10, wcluster.equal_width)
    assert clustered == pytest.approx(dual_ascent.solve(value, rate, rate.sum()), rel=1e-6)


def test_a_cluster_holds_what_lies_between_its_edges() -> None:
    linear = wcluster.equal_width(np.array([0.01, 0.25, 0.26, 1.0]), 4)
    assert (linear.label.tolist(), linear.value.tolist()) == ([0, 0, 1, 3], [0.125, 0.375, 0.625, 0.875])
    log = wcluster.log_width(np.array([1.0, 9.0, 11.0, 100.0]), 2)
    assert log.label.tolist() == [0, 0, 1, 1]
    assert log.value == pytest.approx([10**0.5, 10**1.5])


def test_clusters_of_equal_width_take_no_value_above_one() -> None:
    with pytest.raises(ValueError, match=r"at most 1, got 2\.0"):
        wcluster.solve(np.array([0.5, 2.0]), np.ones(2), 1.0, 10, wcluster.equal_width)
    with pytest.raises(ValueError, match="count must be positive, got 0"):
        wcluster.solve(np.ones(2), np.ones(2), 1.0, 0)


# ---------------------------------------------------------------------------------- visits at random: Azar et al.


def test_two_pages_of_azar_et_al_by_hand() -> None:
    # value·rate/(frequency + rate)² is 4/4² = 1/2² = ¼ at frequencies 3 and 1.
    assert azar.solve(np.array([4.0, 1.0]), np.ones(2), 4.0) == pytest.approx([3, 1], rel=1e-14)


def test_a_page_that_changes_too_fast_for_its_value_is_dropped_at_a_threshold() -> None:
    # Alone, the slow page has the marginal 1/(budget + 1)², the first fetch of the fast one 1/16: equal at budget 3.
    value, rate = np.array([1.0, 1.0]), np.array([1.0, 16.0])
    assert azar.solve(value, rate, 2.999)[1] == 0
    assert azar.solve(value, rate, 3.001)[1] > 0


def test_the_closed_form_loses_digits_at_tiny_budgets() -> None:
    value, rate = np.ones(1000), np.ones(1000)
    assert abs(azar.solve(value, rate, 1.0).sum() - 1) < 1e-9
    assert abs(azar.solve(value, rate, 1e-12).sum() / 1e-12 - 1) > 1e-6


@pytest.mark.parametrize("load", [0.01, 0.1, 1, 10])
def test_every_objective_is_best_served_by_its_own_method(load: float) -> None:
    value, rate = web(11)
    budget = load * rate.sum()
    methods: list[Method] = [azar.solve, lambdacrawl_unannounced, thesis.cho, dual_ascent.solve]
    objectives = [poisson_freshness, harmonic, freshness, new_content]
    for i, objective in enumerate(objectives):
        reached = [objective(method(value, rate, budget), value, rate) for method in methods]
        assert np.argmax(reached) == i


def test_equally_spaced_visits_beat_random_ones_at_the_same_rates() -> None:
    value, rate = web(12, pages=10_000)
    budget = 0.3 * rate.sum()
    rates_for_random_visits = azar.solve(value, rate, budget)
    at_random = poisson_freshness(rates_for_random_visits, value, rate)
    spaced = freshness(rates_for_random_visits, value, rate)
    best = freshness(thesis.cho(value, rate, budget), value, rate)
    assert at_random < 0.95 * spaced < 0.95 * best < 0.96 * spaced, "most is in the spacing, little in the rates"


# ---------------------------------------------------------------------------------------------- LambdaCrawl


def test_no_page_is_dropped_however_fast_it_changes() -> None:
    frequency = lambdacrawl_unannounced(np.array([1.0, 1e-6]), np.array([1.0, 1e6]), 1e-3)
    assert np.all(frequency > 0)


def test_two_pages_of_lambdacrawl_by_hand() -> None:
    # value·rate/(f·(f + rate)) = 1: f = 1 for 2·1/(1·2), and 2 for 6·1/(2·3).
    assert lambdacrawl_unannounced(np.array([2.0, 6.0]), np.ones(2), 3.0) == pytest.approx([1, 2], rel=1e-13)


def test_announced_changes_are_fetched_with_one_probability_price() -> None:
    value, rate = np.array([1.0, 2.0, 6.0]), np.array([2.0, 1.0, 1.0])
    # At price 1: p = 1/2 of 2 changes a day, and the two pages above.
    frequency = lambdacrawl.solve(value, rate, 4.0, np.array([True, False, False]))
    assert frequency == pytest.approx([1, 1, 2], rel=1e-13)
    assert lambdacrawl.price(value, rate, 4.0, np.array([True, False, False])) == pytest.approx(1, rel=1e-13)


def test_every_announced_change_is_fetched_when_there_is_budget_and_the_rest_is_left() -> None:
    value, rate, announced = np.array([1.0, 2.0, 0.0]), np.array([2.0, 1.0, 5.0]), np.ones(3, bool)
    assert lambdacrawl.solve(value, rate, 2.9, announced) == pytest.approx([1.9, 1, 0]), "never more than all"
    assert lambdacrawl.solve(value, rate, 3.0, announced).tolist() == [2, 1, 0]
    assert lambdacrawl.solve(value, rate, 9.0, announced).tolist() == [2, 1, 0]
    assert lambdacrawl.price(value, rate, 9.0, announced) == 0


@pytest.mark.parametrize("load", [0.01, 0.3, 3])
def test_notices_never_hurt(load: float) -> None:
    value, rate = web(13, pages=100)
    announced = np.random.default_rng(13).random(100) < 0.3
    budget = load * rate.sum()
    mixed = lambdacrawl.solve(value, rate, budget, announced)
    assert mixed.sum() == pytest.approx(budget, rel=1e-13)
    staleness = harmonic(mixed[~announced], value[~announced], rate[~announced]) + float(
        np.sum(value[announced] * np.log(mixed[announced] / rate[announced]))
    )
    assert staleness > harmonic(lambdacrawl_unannounced(value, rate, budget), value, rate)


def test_announced_says_so_of_every_page() -> None:
    with pytest.raises(ValueError, match="announced must be as long as value, 2, got 1"):
        lambdacrawl.solve(np.ones(2), np.ones(2), 1.0, np.ones(1, bool))


# ------------------------------------------------------------------------------------------ CHO and OPT_POLITE


@pytest.mark.parametrize("budget", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_cho_spends_any_budget_to_the_last_digits(budget: float) -> None:
    rng = np.random.default_rng(14)
    value, rate = 10 ** rng.uniform(-9, 6, 300), 10 ** rng.uniform(-9, 6, 300)
    assert thesis.cho(value, rate, budget).sum() == pytest.approx(budget, rel=1e-12)
    assert thesis.cho(np.ones(7), np.ones(7), budget) == pytest.approx(np.full(7, budget / 7), rel=1e-12), "ties"


def polite_web(seed: int, hosts: int = 12) -> tuple[Array, Array, NDArray[np.int64], Array]:
    rng = np.random.default_rng(seed)
    pages = np.minimum(np.floor(3 * rng.random(hosts) ** (-1 / 0.8)), 200).astype(np.int64)
    host = rng.permutation(np.repeat(np.arange(hosts), pages))
    value, rate = rng.lognormal(0, 1, host.size), rng.lognormal(0, 1, host.size)
    return value, rate, host, rng.lognormal(1, 1, hosts)


@given(seed=st.integers(0, 10_000), load=st.floats(0.01, 0.99), method=st.sampled_from([thesis.cho, azar.solve]))
def test_opt_polite_is_the_optimum_under_all_caps(seed: int, load: float, method: Method) -> None:
    value, rate, host, cap = polite_web(seed)
    budget = load * cap.sum()
    frequency = thesis.solve(value, rate, host, cap, budget, method)
    busy = np.bincount(host, frequency, minlength=cap.size)
    assert np.all(busy <= cap * (1 + 1e-12))
    assert frequency.sum() == pytest.approx(budget, rel=1e-9)

    # One price for all and a higher one for each host at its cap: all that an optimum of a concave objective needs.
    marginal = value / rate * gain(frequency, rate) if method is thesis.cho else value * rate / (frequency + rate) ** 2
    visited = frequency > 1e-9 * cap[host]
    free = busy < cap * (1 - 1e-9)
    price = np.max(marginal[free[host]], initial=0)
    for s in range(cap.size):
        here = host == s
        host_price = marginal[here].max()
        assert marginal[here & visited] == pytest.approx(host_price, rel=1e-6)
        assert host_price >= price * (1 - 1e-6) or not (here & visited).any()


def test_opt_polite_agrees_with_an_interior_point_solver() -> None:
    clarabel = pytest.importorskip("clarabel")
    from scipy import sparse

    for seed, load in [(1, 0.1), (2, 0.5), (3, 0.9)]:
        value, rate, host, cap = polite_web(seed)
        n, m = value.size, cap.size
        budget = load * cap.sum()
        # Maximise Σ value/rate·(f − t) with f·e^(−rate/f) ≤ t: the exponential cone has (−rate, f, t).
        sums = sparse.coo_array((np.ones(n), (host, np.arange(n))), shape=(m, n))
        linear = sparse.vstack([sparse.coo_array(np.ones((1, n))), sums])
        linear = sparse.hstack([linear, sparse.coo_array((m + 1, n))])
        row, page = np.arange(n) * 3, np.arange(n)
        cone = sparse.coo_array(
            (-np.ones(2 * n), (np.concatenate([row + 1, row + 2]), np.concatenate([page, n + page]))), (3 * n, 2 * n)
        )
        fixed = np.zeros(3 * n)
        fixed[row] = -rate
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-11
        answer = clarabel.DefaultSolver(
            sparse.csc_array((2 * n, 2 * n)),
            np.concatenate([-value / rate, value / rate]),
            sparse.csc_array(sparse.vstack([linear, cone])),
            np.concatenate([[budget], cap, fixed]),
            [clarabel.NonnegativeConeT(m + 1)] + [clarabel.ExponentialConeT()] * n,
            settings,
        ).solve()
        best = freshness(thesis.solve(value, rate, host, cap, budget), value, rate)
        assert best == pytest.approx(-answer.obj_val, rel=1e-8)


def test_without_caps_opt_polite_is_cho() -> None:
    value, rate, host, cap = polite_web(4)
    unlimited = thesis.solve(value, rate, host, np.full(cap.size, np.inf), 20.0)
    assert unlimited.tolist() == thesis.cho(value, rate, 20.0).tolist()


def test_a_full_host_shares_its_cap_as_if_it_were_alone() -> None:
    value, rate = np.array([9.0, 3.0, 1.0]), np.array([1.0, 2.0, 3.0])
    frequency = thesis.solve(value, rate, np.array([0, 0, 1]), [2.0, np.inf], 10.0)
    assert frequency == pytest.approx([*thesis.cho(value[:2], rate[:2], 2.0), 8.0], rel=1e-12)


def test_caps_can_make_other_hosts_full() -> None:
    """The fetches that a first round takes from one host push another host over its cap: one round is not enough."""
    value, rate, host = np.array([8.0, 2.0, 1.0]), np.ones(3), np.array([0, 1, 2])
    first = thesis.cho(value, rate, 6.0)
    cap = np.array([1.0, first[1] + 0.1, 9.0])
    assert (first > cap).tolist() == [True, False, False]
    assert thesis.solve(value, rate, host, cap, 6.0) == pytest.approx([1.0, cap[1], 5 - cap[1]], rel=1e-12)


def test_budget_that_hosts_cannot_take_is_left() -> None:
    value, rate, host = np.ones(4), np.array([1.0, 2.0, 0.0, 1.0]), np.array([0, 0, 1, 2])
    frequency = thesis.solve(value, rate, host, [3.0, 5.0, 0.0], 100.0)
    assert np.bincount(host, frequency) == pytest.approx([3, 0, 0], rel=1e-12), "at its cap; static; blocked"


@pytest.mark.parametrize(
    ("host", "cap", "message"),
    [
        ([0, 2], [1.0, 1.0], r"host\[1\] must be one of the 2 hosts, got 2"),
        ([0, -1], [1.0, 1.0], r"host\[1\] must be one of the 2 hosts, got -1"),
        ([0], [1.0, 1.0], "host must be as long as the 2 pages, got 1"),
        ([0, 1], [1.0, -1.0], r"cap\[1\] must be not negative, got -1.0"),
        ([0, 1], [np.nan, 1.0], r"cap\[0\] must be not negative, got nan"),
    ],
)
def test_nonsense_about_hosts_is_refused(host: list[int], cap: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        thesis.solve(np.ones(2), np.ones(2), np.array(host), cap, 1.0)
