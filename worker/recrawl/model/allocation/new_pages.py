"""Divides the fetches of every host between new pages and revisits.

Each of the two kinds has a guaranteed share of a host's slots and of the budget. It also gets what the other kind does
not use: the queue hands pages out in this way. So both are computed in turn, until new pages get what revisits leave.
Among new pages the best class of value goes first, over all hosts. Within a class the hosts take turns.

Example: two hosts have 100 slots per day each, and more new pages than slots. Revisits want 500 fetches per day on host
A and 10 on host B. The setting discovery is .3, and the budget is large:

                              A     B
    guaranteed, revisits     70    70
    guaranteed, new pages    30    30
    revisits get             70    10
    new pages get            30    90    what the revisits leave

If a host has fewer new pages than computed, the rest of its slots stays free: its price makes no more revisits due.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import water_level
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Allocation

ROUNDS = 10  # at most; two or three usually suffice
TOLERANCE = 1e-4  # the rounds end when the number of new pages changes by at most this share


@dataclass(frozen=True, eq=False)
class NewPages:
    """The new pages that each host can give within a day, in each class of value. The best class comes first."""

    host: NDArray[np.intp]  # its place among all hosts
    value_class: NDArray[np.integer[Any]]
    pages: Floats  # the pages that wait now, and those that will be found within a day
    waiting: Floats  # the pages that wait now

    def shared_out(self, room: Floats, fetches: float) -> Floats:
        """Shares `fetches` out among the hosts. No host gets more than its room."""
        given = np.zeros(len(room))
        of_class = np.flatnonzero(np.diff(self.value_class, prepend=-1))
        for start, stop in pairwise([*of_class, len(self.host)]):
            host = self.host[start:stop]
            most = np.minimum(self.pages[start:stop], room[host] - given[host])
            given[host] += np.minimum(
                most, water_level(np.ones(len(most)), most, max(0.0, fetches - float(given.sum())))
            )
        return given


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of every host, and how new pages and revisits share them."""

    per_day: Floats
    is_planned: NDArray[np.bool_]  # whether the host has pages that take part in the allocation
    new_pages: NewPages
    discovery: float  # the guaranteed share of new pages

    @property
    def sure_of_revisits(self) -> Floats:
        return (1 - self.discovery) * self.per_day

    def for_new_pages(self, revisits: Floats) -> Floats:
        return self.per_day - np.minimum(revisits, self.sure_of_revisits)

    def for_revisits(self, new_pages: Floats) -> Floats:
        """The slots for revisits on the hosts that are planned."""
        return (self.per_day - np.minimum(new_pages, self.per_day - self.sure_of_revisits))[self.is_planned]


@dataclass(frozen=True, eq=False)
class BudgetSplit:
    """A budget, and the parts of it for new pages and for revisits. In fetches per day."""

    budget: float
    new_on_host: Floats  # new pages, for all hosts
    for_revisits: float
    retries: float  # fetches of pages whose last fetch failed
    cap: Floats  # the slots for revisits, for the hosts that are planned
    allocation: Allocation

    @property
    def new_pages(self) -> float:
        return float(self.new_on_host.sum())


def new_pages_within(days: float, slots: Slots, split: BudgetSplit, revisits: Floats) -> float:
    """New pages per day in a time of less than a day. Waiting pages are fetched as fast as the budget allows.

    `revisits` are the revisits per day on the hosts that are planned.
    """
    taken = np.zeros(len(slots.per_day))
    taken[slots.is_planned] = revisits
    allowed = max(slots.discovery * split.budget, split.budget - split.allocation.spent - split.retries)
    new = slots.new_pages
    per_day = replace(new, pages=new.pages + new.waiting * (1 / days - 1))  # all that wait, within this time
    return float(per_day.shared_out(slots.for_new_pages(taken), allowed).sum())


# Allocates revisits. Arguments: the slots for revisits on each host, the fetches for revisits, and a first price.
# Returns the allocation, and the fetches per day of the revisits on each host.
Allocate = Callable[[Floats, float, float | None], tuple[Allocation, Floats]]


def split_budget(
    slots: Slots, budget: float, retries: float, allocate: Allocate, price: float | None, revisits_without_budget: float
) -> BudgetSplit:
    """Divides a budget between new pages and revisits.

    Revisits are guaranteed the share 1 − discovery of the budget. Retries are subtracted from the part of revisits, at
    most half of that part. An infinite budget means that there is no budget. Revisits then get
    `revisits_without_budget`, new pages get all slots that revisits leave, and retries are ignored. The budget of this
    answer is the sum of revisits and new pages. A finite budget stays as it is.

    Example: a budget of 100, discovery .3, no retries, many new pages, and revisits that want 60 fetches:

        round   allowed for new pages   new pages   for revisits   revisits get   left for new pages
        1       30 (guaranteed)         30          70             60             40
        2       40                      40          70             60             40
        3       40: the new pages do not change, so this is the answer
    """
    if budget == math.inf:
        guaranteed, retries = revisits_without_budget, 0.0
    else:
        guaranteed = (1 - slots.discovery) * budget
    guaranteed_new = budget - guaranteed  # infinite without a budget
    revisits_on_host = np.where(slots.is_planned, slots.sure_of_revisits, 0.0)
    new = np.zeros(len(revisits_on_host))
    allowed, allowed_and_left = guaranteed_new, list[tuple[float, float]]()  # one pair for each round
    for _ in range(ROUNDS):
        before, new = new, slots.new_pages.shared_out(slots.for_new_pages(revisits_on_host), allowed)
        if allowed_and_left and np.abs(new - before).sum() <= TOLERANCE * before.sum():
            new = before  # the cap and the allocation of the last round were computed with `before`
            break
        cap = slots.for_revisits(new)
        for_old_pages = guaranteed if budget == math.inf else budget - min(float(new.sum()), guaranteed_new)
        for_retries = min(retries, for_old_pages / 2)
        allocation, revisits_on_host[slots.is_planned] = allocate(cap, for_old_pages - for_retries, price)
        price = allocation.price_to_try
        allowed_and_left.append((allowed, max(guaranteed_new, budget - allocation.spent - for_retries)))
        allowed = min(budget, max(guaranteed_new, _next_allowed(allowed_and_left)))
    both = allocation.spent + float(new.sum())
    whole = budget if budget < math.inf else both
    return BudgetSplit(whole, new, for_old_pages - for_retries, for_retries, cap, allocation)


def _next_allowed(allowed_and_left: list[tuple[float, float]]) -> float:
    """How many fetches to allow new pages in the next round.

    The goal is to allow exactly what is left. After one round the answer is what was left. After two rounds or more, a
    straight line through the last two pairs (allowed, left) is followed to the point where both numbers are equal.
    """
    allowed, left = allowed_and_left[-1]
    if len(allowed_and_left) == 1 or allowed == allowed_and_left[-2][0]:
        return left
    slope = (left - allowed_and_left[-2][1]) / (allowed - allowed_and_left[-2][0])
    if slope <= 0:
        return left
    return allowed + (left - allowed) / (1 - slope) if slope < 1 else math.copysign(math.inf, left - allowed)
