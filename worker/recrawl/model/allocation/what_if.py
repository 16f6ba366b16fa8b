"""Answers to what-if questions about a budget and about politeness, from a few allocations each."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import NO_LIMITS, Limits
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.passes import next_try
from recrawl.model.allocation.solve import Allocation, Web, allocate, unconstrained


@dataclass(frozen=True)
class Bounds:
    polite: float  # no allocation within the hosts' caps has more utility
    unpolite: float  # …and this is what it could be without caps


def bounds(web: Web, budget: float, objective: str = "freshness") -> Bounds:
    """What utility can be at most, whatever floors and ceilings a run also keeps."""
    polite = allocate(web, budget, objective).bound
    return Bounds(polite, unconstrained(web.value, web.rate, budget, objective).bound)


def curve(
    problems: Iterable[tuple[Web, float]],
    objective: str = "freshness",
    limits: Limits = NO_LIMITS,
) -> Iterator[Allocation]:
    """The allocation of each web at its budget, one at a time; each search starts from the price before."""
    price = None
    for web, budget in problems:
        allocation = allocate(web, budget, objective, limits, price)
        price = allocation.price if 0 < allocation.price < math.inf else None
        yield allocation


def budget_for(
    web: Web,
    share: float,
    objective: str = "freshness",
    limits: Limits = NO_LIMITS,
    accuracy: float = 1e-9,
) -> tuple[float, Allocation]:
    """The smallest budget whose utility is this share of what it would be if every page were always fresh.

    For objectives in which that is not 0: freshness, poisson_freshness and new_content.
    """
    most = _utility_of_always_fresh(web, objective)
    if not 0 <= share < 1:
        raise ValueError(f"share must lie between 0 and 1, got {share}")
    allocation = allocate(web, 0.0, objective, limits)
    if allocation.utility >= share * most:
        return 0.0, allocation
    low, high, last_step, tries = 0.0, math.inf, math.inf, 1
    budget, wanted, best = float(web.rate.sum(dtype=np.float64)), (1 - share) * most, allocation
    while high > low * (1 + accuracy):
        price = allocation.price if 0 < allocation.price < math.inf else None
        allocation = allocate(web, budget, objective, limits, price)
        missing = most - allocation.utility
        if missing > wanted:
            if allocation.price == 0:
                raise ValueError(f"share must be at most {allocation.utility / most:.6g} on this web, got {share}")
            low = budget
        else:
            high, best = budget, allocation
            if wanted - missing <= accuracy * wanted:
                break
        budget, last_step = next_try(budget, missing, budget * allocation.price, wanted, low, high, last_step, tries)
        tries += 1
    return high, best


def _utility_of_always_fresh(web: Web, objective: str) -> float:
    if objective in ("freshness", "poisson_freshness"):
        return float(web.value.sum(dtype=np.float64))
    if objective == "new_content":
        return float(np.dot(web.value.astype(np.float64), web.rate))
    raise ValueError(f"objective must be freshness, poisson_freshness or new_content, got {objective!r}")


@dataclass(frozen=True, eq=False)
class Politeness:
    """Hosts at their caps, those first that hold back most."""

    host: NDArray[np.int64]
    gain: Floats  # utility that halving the gap would bring at most: (host price − price) · cap


def held_back_by_politeness(web: Web, allocation: Allocation) -> Politeness:
    gain = np.zeros(len(web.cap))
    capped = allocation.capped & (web.cap > 0)
    gain[capped] = (allocation.host_price[capped] - allocation.price) * web.cap[capped]
    host = np.flatnonzero(capped)
    host = host[np.argsort(-gain[host], kind="stable")]
    return Politeness(host, gain[host])


def gain_of_halving_the_gap(
    web: Web,
    host: int,
    budget: float,
    objective: str = "freshness",
    limits: Limits = NO_LIMITS,
) -> float:
    """The utility it really brings, for the price of two allocations."""
    before = allocate(web, budget, objective, limits)
    cap = web.cap.copy()
    cap[host] *= 2
    price = before.price if 0 < before.price < math.inf else None
    return allocate(replace(web, cap=cap), budget, objective, limits, price).utility - before.utility
