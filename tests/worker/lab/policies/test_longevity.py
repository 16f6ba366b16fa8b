"""Policies that go by how much of a page changes: bounds and curves against closed forms, and what they settle to."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from recrawl.lab.policies import bound_based
from recrawl.lab.policies.bound_based import BoundBased
from recrawl.lab.policies.curve_fitting import RATES, STEP, Curve, CurveFitting, fit
from recrawl.lab.policies.longevity import Profile, Terms, Visitor
from recrawl.model.allocation.objectives import OBJECTIVES

POLICIES = [BoundBased, CurveFitting]


def let_loose(visitor: Visitor, divergence: Callable[[float], float], days: float) -> np.ndarray:
    """The times at which a page is fetched whose divergence depends only on the age of the copy."""
    visits, today = list[float](), 0.0
    while today < days:
        visits.append(today)
        now = today
        today += visitor.visited(now, lambda then: divergence(now - then))  # noqa: B023
    return np.array(visits)


def worth(found: list[tuple[float, float]], days: float | None = None) -> tuple[float, float]:
    """Of a profile of days and divergences, for a visit when its last one was."""
    profile = Profile(0, [day for day, _ in found], [diverged for _, diverged in found])
    return bound_based.worth(profile, found[-1][0] if days is None else days)


def mean_divergence(visits: np.ndarray, curve: Curve) -> float:
    """The integral of D is t·D − U."""
    waits = np.diff(visits)
    areas = [wait * curve.divergence(wait) - curve.worth(wait) for wait in waits]
    return float(sum(areas) / waits.sum())


# ------------------------------------------------------------------------------------------------ what a visit is worth


def test_the_bounds_are_those_of_areas_under_steps() -> None:
    """Found .2 after 2 and after 5 days, .3 after 13: the area is .2·3 + .2·8 at least, .2·2 + .2·3 + .3·8 at most."""
    assert worth([(2, 0.2), (5, 0.2), (13, 0.3)]) == pytest.approx((13 * 0.3 - 3.4, 13 * 0.3 - 2.2))


def test_in_a_profile_that_reaches_further_the_rise_came_before_or_after() -> None:
    """Found 0 after 2 days, .4 after 6: a visit after 5 was worth nothing, or 5 · .4 had it come just then."""
    assert worth([(2, 0.0), (6, 0.4)], 5) == pytest.approx((0, 2))
    assert worth([(2, 0.1), (6, 0.4)], 5) == pytest.approx((2 * 0.1 - 0.2, 5 * 0.4 - 0.1 * 3))


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold_whatever_happened_between_visits_and_close_with_more_of_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    days = np.linspace(0, 10, 1001)
    diverged = np.maximum.accumulate(rng.uniform(0, 1, 1001) ** 3) * rng.uniform(0.1, 1)
    diverged[0] = 0
    true = 10 * diverged[-1] - float(np.trapezoid(diverged, days))
    widths = []
    for between in (250, 50, 1):
        least, most = worth([*zip(days[between::between], diverged[between::between], strict=True)])
        assert least <= true + 0.01 and true - 0.01 <= most
        widths.append(most - least)
    assert widths == sorted(widths, reverse=True) and widths[-1] == pytest.approx(diverged[-1] * 0.01)


@pytest.mark.parametrize("curve", [Curve(0.6, 1, 0.3), Curve(1.0, 5, 2.0), Curve(0.2, 20, 0.7)])
def test_a_visit_of_a_curve_is_worth_what_the_definition_says(curve: Curve) -> None:
    days = np.linspace(0, 15, 20_001)
    area = float(np.trapezoid([curve.divergence(day) for day in days], days))
    assert curve.worth(15) == pytest.approx(15 * curve.divergence(15) - area, rel=1e-5)


def test_divergence_is_what_the_model_of_updates_says() -> None:
    assert Curve(1, 1, 0.25).divergence(4) == pytest.approx(1 - math.exp(-1)), "churn: gone with the first update"
    chances = [math.exp(-2) * 2**count / math.factorial(count) for count in range(3)]
    gone = chances[1] / 3 + chances[2] * 2 / 3 + (1 - sum(chances))
    assert Curve(0.5, 3, 2).divergence(1) == pytest.approx(0.5 * gone), "of three items, each update takes one"


@pytest.mark.parametrize("value", [0.3, 1, 4])
@pytest.mark.parametrize("rate", [0.02, 0.5, 3])
def test_the_threshold_is_the_price(rate: float, value: float) -> None:
    """Where a change makes a page worthless at once: the visits that the objective freshness asks for."""
    for price in (0.01, 0.1, 0.5):
        wanted = float(OBJECTIVES["freshness"].frequency(price, value, rate))
        days = Curve(1, 1, rate).days_until_worth(price / value)
        assert 1 / days == pytest.approx(wanted, rel=0.005), "no visits at all included"


# ---------------------------------------------------------------------------------------------------------- curves


@pytest.mark.parametrize("items", [1, 2, 5, 10, 20])
@pytest.mark.parametrize("most", [0.1, 0.7])
def test_a_curve_is_found_again_from_its_own_points(items: int, most: float) -> None:
    true = Curve(most, items, float(RATES[20]))
    days = np.array([0.2, 0.5, 1, 2, 4, 8]) * items / true.rate
    found = fit(days, np.array([true.divergence(day) for day in days]))
    assert (found.items, found.rate) == (items, true.rate) and found.most == pytest.approx(most, rel=1e-3)
    assert found.days_until_worth(0.2 * most / true.rate) == pytest.approx(
        true.days_until_worth(0.2 * most / true.rate), rel=1e-3
    )


def test_between_the_rates_of_the_grid_the_nearest_is_found() -> None:
    true = Curve(0.5, 1, float(RATES[20]) * math.exp(STEP / 3))
    days = np.linspace(0.2, 4, 12) / true.rate
    assert fit(days, np.array([true.divergence(day) for day in days])).rate == RATES[20]


def test_of_curves_that_say_the_same_the_slowest_is_believed() -> None:
    """Found as far gone at once as ever after: nobody knows how soon it was, and sooner visits tell."""
    found = fit(np.array([10.0, 20, 30]), np.full(3, 0.5))
    assert found.items == 1 and found.divergence(10) == pytest.approx(0.5, abs=0.02)
    assert found.rate < 1


# --------------------------------------------------------------------------------------------- what they settle to


@pytest.mark.parametrize("start", [0.1, 1.0, 5.0, 10.0, 50.0])
@pytest.mark.parametrize(("policy", "times", "most"), [(BoundBased, 3, 1.5), (CurveFitting, 1.1, 1.01)])
def test_waits_settle_near_the_best_wherever_they_began(
    policy: type[Visitor], times: float, most: float, start: float
) -> None:
    """The best is a visit when U(t) is the threshold; halves and doubles around it cost more, in divergence and fetches
    at that price together."""
    for curve in (Curve(0.6, 1, 0.4), Curve(0.8, 10, 2.0)):
        threshold = curve.worth(2.0)
        visits = let_loose(policy(Terms(threshold, first=start)), curve.divergence, 400)  # type: ignore[call-arg]
        visits = visits[visits > 200]
        wait = float(np.diff(visits).mean())
        assert 2 / times < wait < 2 * times, curve
        cost = mean_divergence(visits, curve) + threshold / wait
        best = mean_divergence(np.array([0.0, 2.0]), curve) + threshold / 2
        assert best * (1 - 1e-9) <= cost < most * best, curve


@pytest.mark.parametrize("policy", POLICIES)
def test_a_page_that_never_changes_is_soon_left_for_the_longest_wait(policy: type[Visitor]) -> None:
    visits = let_loose(policy(Terms(0.3)), lambda days: 0.0, 1000)  # type: ignore[call-arg]
    assert len(visits[visits < 60]) <= 8
    assert np.diff(visits[visits > 120]) == pytest.approx(60)


@pytest.mark.parametrize("policy", POLICIES)
def test_waits_keep_within_their_limits(policy: type[Visitor]) -> None:
    terms = Terms(1e-6, first=2, shortest=0.5, longest=8)
    for divergence in (lambda days: 0.0, lambda days: 1.0, lambda days: min(1.0, days)):
        waits = np.diff(let_loose(policy(terms), divergence, 100))  # type: ignore[call-arg]
        assert waits.min() >= 0.5 and waits.max() <= 8


def test_what_had_changed_entirely_by_the_first_visit_does_not_keep_its_interval_for_ever() -> None:
    """With the steps alone it would: the least gain of a fetch would stay 0."""
    profile = [(10.0 * n, 0.5) for n in range(1, 12)]
    assert worth(profile)[0] == 0
    visits = let_loose(BoundBased(Terms(0.3, first=10)), lambda days: 0.5 * (days > 0.5), 100)
    assert np.diff(visits).min() < 2


@pytest.mark.parametrize("threshold", [0, -1, math.inf, math.nan])
def test_a_threshold_that_would_visit_all_without_end_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be positive and finite"):
        Terms(threshold)


def test_limits_out_of_order_are_refused() -> None:
    with pytest.raises(ValueError, match=r"in this order, got 0.04\d*, 90 and 60"):
        Terms(1, first=90)
