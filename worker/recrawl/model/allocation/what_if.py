"""Answers to what-if questions about a budget and about politeness, from a few allocations each."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import NO_LIMITS, Limits
from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.passes import next_try
from recrawl.model.allocation.solve import Allocation, Web, allocate, at_price, unconstrained


@dataclass(frozen=True)
class Bounds:
    polite: float  # no allocation within the hosts' caps has more utility
    unpolite: float  # no allocation without caps has more utility


def bounds(web: Web, budget: float, objective: str = "freshness") -> Bounds:
    """Upper bounds of the utility. They ignore floors and ceilings, which can only lower it."""
    polite = allocate(web, budget, objective)
    unpolite = unconstrained(web.value, web.rate, budget, objective, polite.price_to_try)
    return Bounds(polite.bound, unpolite.bound)


def budget_that_reaches(
    allocated: Callable[[float, float | None], Allocation],
    share: float,
    web: Web,
    objective: str,
    accuracy: float,
    largest: float = math.inf,
) -> float:
    """The smallest budget that reaches this share of the utility that the web would have if every page were always
    fresh.

    For the objectives in which that utility is not 0: freshness, poisson_freshness and new_content. `allocated` divides
    a budget; its second argument is a price to begin with. No budget above `largest` brings more. The search begins
    with a small budget and doubles it until it is enough. It does not begin with the largest budget, because a larger
    budget brings less if new pages take slots from revisits.
    """
    most = _utility_of_always_fresh(web, objective)
    if not 0 <= share < 1:
        raise ValueError(f"share must be 0 or more, and less than 1, got {share}")
    allocation = allocated(0.0, None)
    if allocation.utility >= share * most:
        return 0.0
    budget, wanted, low, best = float(web.rate.sum(dtype=np.float64)) / 64, (1 - share) * most, 0.0, -math.inf
    while (allocation := allocated(budget, allocation.price_to_try)).utility < share * most:
        best = max(best, allocation.utility)
        if allocation.price == 0 or budget >= largest:
            raise ValueError(f"share must be at most {best / most:.6g} on this web, got {share}")
        low, budget = budget, 2 * budget
    high, last_step, tries = budget, math.inf, 1
    missing = most - allocation.utility
    while high > low * (1 + accuracy) and not 0 <= wanted - missing <= accuracy * wanted:
        slope = budget * allocation.price if allocation.price < math.inf else math.nan
        budget, last_step = next_try(budget, missing, slope, wanted, low, high, last_step, tries)
        allocation = allocated(budget, allocation.price_to_try)
        missing = most - allocation.utility
        if missing > wanted:
            low = budget
        else:
            high = budget
        tries += 1
    return high


def _utility_of_always_fresh(web: Web, objective: str) -> float:
    if objective_named(objective).is_share:
        return float(web.value.sum(dtype=np.float64))
    if objective == "new_content":
        return float(np.dot(web.value.astype(np.float64), web.rate))
    raise ValueError(f"objective must be freshness, poisson_freshness or new_content, got {objective!r}")


def gain_of_wider_caps(
    web: Web, allocation: Allocation, wider: Floats, objective: str = "freshness", limits: Limits = NO_LIMITS
) -> Floats:
    """The utility that a wider cap would bring, host by host, if the host paid the present price for its new fetches.

    For one host this is an upper bound: the other hosts lose these fetches, which earn them more than the price. The
    bound is close if the fetches are a small part of all fetches.
    """
    capped, gain = np.flatnonzero(allocation.capped), np.zeros(len(web.cap))
    part, at_gap = of_hosts(web, allocation, capped)
    before, now = (at_price(replace(part, cap=cap[capped]), at_gap, objective, limits) for cap in (web.cap, wider))
    with np.errstate(invalid="ignore"):  # ∞ − ∞ is NaN: an objective may lose without limit if nothing can be spent
        gain[capped] = (now.utility - before.utility) - allocation.price * (now.spent - before.spent)
    return gain


def wanted(web: Web, allocation: Allocation, objective: str, limits: Limits = NO_LIMITS) -> Floats:
    """Fetches per day that the pages of each host would take without a cap, at the present price."""
    return at_price(replace(web, cap=np.full(len(web.cap), math.inf)), allocation, objective, limits).spent


def of_hosts(web: Web, allocation: Allocation, hosts: NDArray[np.integer]) -> tuple[Web, Allocation]:
    """A web with only these hosts, and their part of the allocation. The sums of the allocation are still
    sums over all hosts."""
    starts = np.append(0, np.cumsum(np.diff(web.starts)[hosts]))
    pages = np.arange(starts[-1]) + np.repeat(web.starts[hosts] - starts[:-1], np.diff(starts))
    return Web(web.value[pages], web.rate[pages], starts, web.cap[hosts]), replace(
        allocation,
        host_price=allocation.host_price[hosts],
        host_floor=allocation.host_floor[hosts],
        capped=allocation.capped[hosts],
        frequency=allocation.frequency[pages],
    )
