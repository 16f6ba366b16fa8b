"""Pinned pages come first; what is left is divided as if they were not there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, minimize

from recrawl.model.allocation.floors import NO_LIMITS, Limits
from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.model.allocation.pins import Pins, allocate_beside, pins_of
from recrawl.model.allocation.solve import Allocation, Web, allocate

Floats = NDArray[np.float64]
NAN = np.nan


def best_beside(pins: Pins, web: Web, budget: float, objective: str, limits: Limits) -> Allocation:
    def best(others: Web, left: float) -> Allocation:
        return allocate(others, left, objective, limits)

    return allocate_beside(pins, web, budget, objective, limits, best)


def random_web(seed: int, hosts: int = 4, of_host: int = 5) -> tuple[Web, Floats]:
    """A third of the pages pinned, some of them static or worth nothing; some hosts with few slots."""
    rng = np.random.default_rng(seed)
    n = hosts * of_host
    value, rate = 10 ** rng.uniform(-0.5, 0.5, n), 10 ** rng.uniform(-1, 1, n)
    pinned = np.where(rng.random(n) < 1 / 3, 10 ** rng.uniform(-1, 0.5, n), NAN)
    value[np.flatnonzero(~np.isnan(pinned))[::3]] = 0
    rate[np.flatnonzero(~np.isnan(pinned))[1::3]] = 0
    return Web(value, rate, np.arange(hosts + 1) * of_host, of_host * rng.uniform(0.3, 3, hosts)), pinned


def on_host(web: Web, of_pages: Floats) -> Floats:
    return np.bincount(np.repeat(np.arange(len(web.cap)), np.diff(web.starts)), of_pages, len(web.cap)).astype(float)


@pytest.mark.parametrize("objective", ["freshness", "poisson_freshness"])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_solver_finds_better(objective: str, seed: int) -> None:
    """scipy's, on the problem as it is said: frequencies within limits that are one for a pinned page."""
    web, pinned = random_web(seed)
    budget = 0.7 * len(pinned)
    pins = pins_of(pinned, web.starts, NO_LIMITS)
    found = best_beside(pins, web, budget, objective, NO_LIMITS)
    shares = pins.shares(web.cap, budget, NO_LIMITS)
    asked = np.where(np.isnan(pinned), NAN, np.nan_to_num(pinned) * np.repeat(shares.on_host, np.diff(web.starts)))
    free = np.isnan(asked)
    utility_of = OBJECTIVES[objective].utility

    def lost(frequency: Floats) -> float:
        return -float(utility_of(np.maximum(frequency, 1e-9), web.value, web.rate).sum())

    def slope(frequency: Floats) -> Floats:
        falls: Floats = -OBJECTIVES[objective].marginal(np.maximum(frequency, 1e-9), web.value, web.rate)
        return falls

    hosts = np.repeat(np.arange(len(web.cap)), np.diff(web.starts)) == np.arange(len(web.cap))[:, None]
    best = minimize(
        lost,
        np.where(free, 0.05, asked),
        jac=slope,
        bounds=Bounds(np.where(free, 1e-6, asked), np.where(free, np.inf, asked)),
        constraints=[LinearConstraint(np.vstack((np.ones(len(asked)), hosts)), -np.inf, np.append(budget, web.cap))],
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert best.success, best.message
    assert found.utility == pytest.approx(-best.fun, rel=1e-5)
    assert found.utility >= -best.fun - 1e-7 * abs(best.fun)
    np.testing.assert_allclose(found.frequency[~free], asked[~free], rtol=1e-12)


@given(
    seed=st.integers(0, 1000),
    share=st.sampled_from([0.01, 0.3, 1.0, 10.0]),
    exploration=st.sampled_from([0.0, 0.05, 0.5]),
)
@settings(max_examples=150)
def test_what_must_hold_of_any(seed: int, share: float, exploration: float) -> None:
    web, pinned = random_web(seed)
    limits = Limits(exploration=exploration, longest_interval=60, shortest_interval=0.5)
    budget = share * float(np.nansum(pinned)) if not np.isnan(pinned).all() else share
    pins = pins_of(pinned, web.starts, limits)
    found = best_beside(pins, web, budget, "freshness", limits)
    shares = pins.shares(web.cap, budget, limits)
    exact = 1 + 1e-9
    assert found.spent <= budget * exact and found.spent == pytest.approx(found.frequency.sum())
    assert (on_host(web, found.frequency) <= web.cap * exact).all()
    assert max(found.residual, found.spread, found.duality_gap) < 1e-9
    asked = np.minimum(pinned[pins.page], limits.ceiling)
    assert (found.frequency[pins.page] <= asked * exact).all(), "no pinned page gets more than was asked for"
    room = np.where(np.diff(pins.unpinned_starts) > 0, 1 - exploration, 1.0) * web.cap
    cut = shares.on_host < 1
    full = (shares.taken >= room * (1 - 1e-9)) | (shares.taken.sum() >= budget * (1 - exploration) * (1 - 1e-9))
    assert (full | (pins.asked_on_host == 0))[cut].all(), "nor less, unless its host or the budget has no more"
    if exploration:
        assert (found.frequency > 0).all(), "no page disappears"


def test_the_others_get_the_best_of_what_is_left() -> None:
    web, _ = random_web(1)
    web = Web(web.value + 0.1, web.rate + 0.1, web.starts, np.full(4, 1e9))
    pinned = np.full(20, NAN)
    pinned[[3, 11]] = 2.0, 0.25
    found = best_beside(pins_of(pinned, web.starts, NO_LIMITS), web, 10.0, "freshness", NO_LIMITS)
    others = np.setdiff1d(np.arange(20), [3, 11])
    rest = Web(web.value[others], web.rate[others], np.array([0, 18]), np.array([1e9]))
    alone = allocate(rest, 7.75)
    np.testing.assert_allclose(found.frequency[others], alone.frequency, rtol=1e-9)
    assert found.price == pytest.approx(alone.price) and found.spent == pytest.approx(10)


def test_without_pins_it_is_the_allocation() -> None:
    web, _ = random_web(2)
    pins = pins_of(np.full(20, NAN), web.starts, NO_LIMITS)
    beside, alone = best_beside(pins, web, 5.0, "age", NO_LIMITS), allocate(web, 5.0, "age", NO_LIMITS)
    np.testing.assert_array_equal(beside.frequency, alone.frequency)
    assert pins.shares(web.cap, 5.0, NO_LIMITS).on_host.tolist() == [1] * 4


def test_beyond_the_budget_all_get_the_same_share_of_it() -> None:
    web = Web(np.ones(6), np.ones(6), np.array([0, 3, 6]), np.full(2, 1e9))
    pins = pins_of(np.array([8.0, NAN, NAN, 4.0, 8.0, NAN]), web.starts, NO_LIMITS)
    found = best_beside(pins, web, 10.0, "freshness", Limits(exploration=0.1))
    np.testing.assert_allclose(found.frequency[pins.page], np.array([8, 4, 8]) * 0.45)
    assert found.spent == pytest.approx(10) and (found.frequency > 0).all(), "the others have what exploration keeps"


def test_beyond_a_hosts_slots_its_pins_get_less_and_no_others() -> None:
    web = Web(np.ones(6), np.ones(6), np.array([0, 3, 6]), np.array([10.0, 1e9]))
    pins = pins_of(np.array([12.0, 8.0, NAN, 4.0, 8.0, NAN]), web.starts, NO_LIMITS)
    found = best_beside(pins, web, 100.0, "freshness", Limits(exploration=0.1))
    np.testing.assert_allclose(found.frequency[pins.page], [5.4, 3.6, 4, 8])
    assert found.capped.tolist() == [True, False]
    assert found.frequency[:3].sum() == pytest.approx(10)


def test_a_web_of_nothing_but_pins() -> None:
    web = Web(np.ones(4), np.array([0, 1.0, 2, 3]), np.array([0, 2, 4]), np.array([1e9, 3.0]))
    pins = pins_of(np.array([1.0, 2, 2, 4]), web.starts, NO_LIMITS)
    found = best_beside(pins, web, 50.0, "freshness", Limits(exploration=0.05))
    np.testing.assert_allclose(found.frequency, [1, 2, 1, 2])
    assert found.capped.tolist() == [False, True] and found.spent == pytest.approx(6)
