"""How many fetches new pages have on every host, beside revisits.

Either kind is sure of its share of a host's slots and of the budget, and has besides what the other leaves: that is
how the queue hands pages out. So the two are worked out in turn, until what new pages have is what revisits leave.
Among new pages the best class of value goes first, over all hosts; in a class the hosts take turns.

A host that is reckoned to give more new pages than it does keeps its promise all the same: its price lets no more
revisits be due than were planned.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import level
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Allocation

ROUNDS = 10  # two or three do as a rule
SETTLED = 1e-4  # by what share of them new pages may be off


@dataclass(frozen=True, eq=False)
class NewPages:
    """How many of a host's new pages in a class of value there are to be had within a day; the best class first."""

    host: NDArray[np.intp]  # its place among all hosts
    value_class: NDArray[np.integer[Any]]
    pages: Floats  # those that come, and those that wait
    waiting: Floats

    def within(self, days: float) -> "NewPages":
        """The same for a time of less than a day, per day: what waits need not last for longer."""
        return replace(self, pages=self.pages + self.waiting * (1 / days - 1))

    def shared_out(self, room: Floats, fetches: float) -> Floats:
        """Among the hosts, none of which gets more than it has room for."""
        given = np.zeros(len(room))
        of_class = np.flatnonzero(np.diff(self.value_class, prepend=-1))
        for start, stop in pairwise([*of_class, len(self.host)]):
            host = self.host[start:stop]
            most = np.minimum(self.pages[start:stop], room[host] - given[host])
            given[host] += np.minimum(most, level(np.ones(len(most)), most, max(0.0, fetches - float(given.sum()))))
        return given


@dataclass(frozen=True, eq=False)
class Slots:
    """The slots of every host, and who is to have them."""

    per_day: Floats
    is_planned: NDArray[np.bool_]  # has pages that take part in allocation
    new_pages: NewPages
    discovery: float  # the share that new pages are sure of

    @property
    def sure_of_revisits(self) -> Floats:
        return (1 - self.discovery) * self.per_day

    def for_new_pages(self, revisits: Floats) -> Floats:
        return self.per_day - np.minimum(revisits, self.sure_of_revisits)

    def for_revisits(self, new_pages: Floats) -> Floats:
        """On the hosts that are planned."""
        return (self.per_day - np.minimum(new_pages, self.per_day - self.sure_of_revisits))[self.is_planned]


@dataclass(frozen=True, eq=False)
class Divided:
    """A budget, and what new pages and revisits have of it. Fetches per day."""

    budget: float
    new_on_host: Floats  # of all hosts
    for_revisits: float
    retries: float  # of pages that failed
    cap: Floats  # of the hosts that are planned: what revisits may have
    allocation: Allocation

    @property
    def new_pages(self) -> float:
        return float(self.new_on_host.sum())


def new_pages_within(days: float, slots: Slots, now: Divided, revisits: Floats) -> float:
    """New pages per day for as long as that: the few that wait go as fast as the budget lets them, and are gone then.

    `revisits` are those of the hosts that are planned.
    """
    taken = np.zeros(len(slots.per_day))
    taken[slots.is_planned] = revisits
    allowed = max(slots.discovery * now.budget, now.budget - now.allocation.spent - now.retries)
    return float(slots.new_pages.within(days).shared_out(slots.for_new_pages(taken), allowed).sum())


# What revisits bring and what each host's take, of its cap, of so many fetches and of a price to begin with.
Allocate = Callable[[Floats, float, float | None], tuple[Allocation, Floats]]


def divided(
    slots: Slots, budget: float, retries: float, allocate: Allocate, price: float | None, revisits: float
) -> Divided:
    """Of the budget, `revisits` at most are sure to be left to them: finite where no budget paces new pages.

    Retries come off their part, half of it at most: the rest is for what can be had.
    With an infinite budget new pages have all slots that revisits leave, and the budget is what both take.
    """
    sure = min((1 - slots.discovery) * budget, revisits)
    taken = np.where(slots.is_planned, slots.sure_of_revisits, 0.0)
    new = np.zeros(len(taken))
    allowed, tried = budget - sure, list[tuple[float, float]]()
    for _ in range(ROUNDS):
        before, new = new, slots.new_pages.shared_out(slots.for_new_pages(taken), allowed)
        if tried and np.abs(new - before).sum() <= SETTLED * before.sum():
            new = before
            break
        cap = slots.for_revisits(new)
        for_known = sure if budget == math.inf else budget - min(float(new.sum()), budget - sure)
        for_failing = min(retries, for_known / 2)
        allocation, taken[slots.is_planned] = allocate(cap, for_known - for_failing, price)
        price = allocation.price_to_try
        tried.append((allowed, max(budget - sure, budget - allocation.spent - for_failing)))
        allowed = min(budget, max(budget - sure, _where_it_is_left(tried)))
    both = allocation.spent + float(new.sum())
    whole = budget if budget < math.inf else both
    return Divided(whole, new, for_known - for_failing, for_failing, cap, allocation)


def _where_it_is_left(tried: list[tuple[float, float]]) -> float:
    """What to allow new pages next: what was left of the last try or, by the last two, what would be left of it."""
    allowed, left = tried[-1]
    if len(tried) == 1 or allowed == tried[-2][0]:
        return left
    slope = (left - tried[-2][1]) / (allowed - tried[-2][0])
    if slope <= 0:
        return left
    return allowed + (left - allowed) / (1 - slope) if slope < 1 else math.copysign(math.inf, left - allowed)
