"""Questions about a budget that was not tried, and about hosts that could be asked for more."""

import math

import numpy as np
import pytest

from recrawl.model.allocation.floors import NO_LIMITS, Limits
from recrawl.model.allocation.solve import Allocation, Web, allocate
from recrawl.model.allocation.what_if import bounds, budget_that_reaches, gain_of_wider_caps

LIMITS = Limits(exploration=0.05, longest_interval=30, shortest_interval=1 / 24)


def random_web(static: float = 0.2) -> Web:
    random = np.random.default_rng(1)
    pages = random.integers(1, 60, 40)
    n = int(pages.sum())
    rate = random.lognormal(-1, 1.5, n) * (random.random(n) > static)
    return Web(random.random(n), rate, np.concatenate(([0], np.cumsum(pages))), pages * random.uniform(0.1, 2, 40))


def budget_for(
    web: Web, share: float, objective: str = "freshness", limits: Limits = NO_LIMITS
) -> tuple[float, Allocation]:
    def allocated(budget: float, price: float | None) -> Allocation:
        return allocate(web, budget, objective, limits, price)

    budget = budget_that_reaches(allocated, share, web, objective, accuracy=1e-9)
    return budget, allocated(budget, None)


@pytest.mark.parametrize("limits", [Limits(), LIMITS], ids=["optimum", "with floors"])
@pytest.mark.parametrize("share", [0.4, 0.6, 0.75])
def test_the_budget_that_was_asked_for_reaches_its_freshness_and_less_does_not(share: float, limits: Limits) -> None:
    web = random_web()
    budget, allocation = budget_for(web, share, limits=limits)
    always = web.value.sum()
    assert share <= allocation.utility / always < share + 1e-7
    assert allocate(web, budget * (1 - 1e-6), limits=limits).utility < share * always


@pytest.mark.parametrize("objective", ["poisson_freshness", "new_content"])
def test_other_objectives_that_have_a_most_have_a_share_of_it_too(objective: str) -> None:
    web = random_web()
    most = web.value.sum() if objective == "poisson_freshness" else web.value @ web.rate
    _, allocation = budget_for(web, 0.4, objective)
    assert allocation.utility / most == pytest.approx(0.4, abs=1e-6)


def test_pages_that_never_change_need_no_budget() -> None:
    budget, allocation = budget_for(random_web(static=1.0), 0.99)
    assert budget == allocation.spent == 0


def test_freshness_beyond_politeness_is_refused_with_what_can_be_had() -> None:
    web = random_web()
    most = allocate(web, web.cap.sum()).utility / web.value.sum()
    with pytest.raises(ValueError, match=f"share must be at most {most:.6g} on this web, got 0.999"):
        budget_for(web, 0.999)


def test_without_politeness_any_freshness_but_the_last_can_be_bought() -> None:
    web = random_web()
    open_web = Web(web.value, web.rate, web.starts, np.full(len(web.cap), math.inf))
    _, allocation = budget_for(open_web, 0.999)
    assert allocation.utility / web.value.sum() == pytest.approx(0.999, abs=1e-9)
    with pytest.raises(ValueError, match="share must be 0 or more, and less than 1, got 1"):
        budget_for(open_web, 1)


def test_an_objective_that_is_a_loss_has_no_share() -> None:
    with pytest.raises(ValueError, match="objective must be freshness, poisson_freshness or new_content, got 'age'"):
        budget_for(random_web(), 0.5, "age")


def test_limits_and_politeness_only_cost() -> None:
    web = random_web()
    budget = 0.6 * web.cap.sum()
    most = bounds(web, budget)
    pure = allocate(web, budget)
    limited = allocate(web, budget, limits=LIMITS)
    assert limited.utility < pure.utility <= most.polite * (1 + 1e-12) < most.unpolite
    assert pure.utility == pytest.approx(most.polite, rel=1e-9)


@pytest.mark.parametrize("limits", [Limits(), LIMITS], ids=["optimum", "with floors"])
def test_a_wider_cap_gains_at_most_what_it_does_at_the_present_price_and_nearly_that(limits: Limits) -> None:
    web = random_web()
    budget = 0.6 * web.cap.sum()
    allocation = allocate(web, budget, limits=limits)
    bound = gain_of_wider_caps(web, allocation, 2 * web.cap, limits=limits)
    capped = np.flatnonzero(allocation.capped)
    assert set(np.flatnonzero(bound)) == set(capped) and len(capped) > 3
    for host in capped:
        cap = web.cap.copy()
        cap[host] *= 2
        gain = allocate(Web(web.value, web.rate, web.starts, cap), budget, limits=limits).utility - allocation.utility
        assert 0 < gain <= bound[host] * (1 + 1e-9), "that other hosts lose is not in the bound"
        assert bound[host] <= 1.5 * gain, "while price times cap was up to 11 times too high"


def test_where_no_host_is_capped_politeness_holds_nobody_back() -> None:
    web = random_web()
    allocation = allocate(web, 0.001 * web.cap.sum())
    assert not gain_of_wider_caps(web, allocation, 2 * web.cap).any()
