"""Pages whose interval somebody pinned: floor and ceiling in one, whatever they are worth.

They come first: with what they take off the budget and off their hosts' caps, the best for the others is the best of
all. Where there are others, exploration's share of the budget and of each cap is not theirs: no page disappears. Where
they ask for more than that, all get the same share of it; on a host without the slots for that share, what it has.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import Limits, level
from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web


@dataclass(frozen=True, eq=False)
class Kept:
    """The share of what they ask for that pinned pages get."""

    common: float
    on_host: Floats  # less than the common share where the host has no slots for it
    taken: Floats  # fetches per day of the pinned pages of each host


@dataclass(frozen=True, eq=False)
class Pins:
    """Which pages of a web are pinned, and which are the others; both host by host, as they were."""

    page: NDArray[np.intp]
    asked: Floats  # fetches per day of each of them
    asked_on_host: Floats
    others: NDArray[np.intp]
    first: NDArray[np.int64]  # of the others, on each host

    @property
    def wanted(self) -> float:
        return float(self.asked.sum())

    def kept(self, cap: Floats, budget: float, limits: Limits) -> Kept:
        shared = 1 - limits.exploration
        room = np.where(np.diff(self.first) > 0, shared, 1.0) * cap
        here = self.asked_on_host > 0
        asked = self.asked_on_host[here]
        width = np.minimum(1, room[here] / asked)
        within = budget * (shared if len(self.others) else 1.0)
        common = min(1.0, level(asked, width, within)) if len(asked) else 1.0
        on_host = np.full(len(cap), common)
        on_host[here] = np.minimum(common, width)
        return Kept(common, on_host, self.asked_on_host * on_host)

    def web_of_others(self, web: Web, kept: Kept) -> Web:
        """With what pins leave of every cap."""
        cap = np.maximum(0, web.cap - kept.taken)
        return Web(web.value[self.others], web.rate[self.others], self.first, cap)

    def part_of_others(self, whole: Allocation) -> Allocation:
        """What is told of all pages in sum stays as it was."""
        return replace(whole, frequency=whole.frequency[self.others])


def pins_of(pinned: NDArray[np.floating[Any]], first: NDArray[np.int64], limits: Limits) -> Pins:
    """`pinned` fetches per day of every page, NaN where the price decides; none above the ceiling."""
    is_pinned = ~np.isnan(pinned)
    page, others = np.flatnonzero(is_pinned), np.flatnonzero(~is_pinned)
    asked = np.minimum(limits.ceiling, pinned[page].astype(np.float64))
    host = np.searchsorted(first, page, side="right") - 1
    before = np.concatenate(([0], np.cumsum(~is_pinned)))
    return Pins(page, asked, np.bincount(host, asked, len(first) - 1).astype(np.float64), others, before[first])


Divide = Callable[[Web, float], Allocation]


def allocate_beside(pins: Pins, web: Web, budget: float, objective: str, limits: Limits, divide: Divide) -> Allocation:
    """Leaves pinned pages what they keep, and divides the rest between the others. The proof is that of their part."""
    if not len(pins.page):
        return divide(web, budget)
    kept = pins.kept(web.cap, budget, limits)
    left = max(0.0, budget - float(kept.taken.sum()))
    others = divide(pins.web_of_others(web, kept), left)
    host = np.searchsorted(web.first, pins.page, side="right") - 1
    frequency = np.empty(len(web.value))
    frequency[pins.others] = others.frequency
    frequency[pins.page] = pins.asked * kept.on_host[host]
    worth = objective_named(objective).utility(frequency[pins.page], web.value[pins.page], web.rate[pins.page])
    utility = math.fsum(worth)
    spent = others.spent + float(kept.taken.sum())
    return replace(
        others,
        capped=others.capped | (kept.on_host < kept.common),
        frequency=frequency,
        spent=spent,
        unspent=max(0.0, budget - spent),
        utility=others.utility + utility,
        bound=others.bound + utility,
    )
