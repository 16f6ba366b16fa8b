"""Pages with a pinned interval. A pin fixes the frequency of a page, independent of its value.

Pinned pages come first: their fetches are subtracted from the budget and from the caps of their hosts. The best
allocation of the rest to the other pages is then the best of all. If there are other pages, pinned pages do not get
exploration's share of the budget and of each cap, so that no other page disappears. If pinned pages ask for more than
there is, all get the same share of their pinned frequencies. On a host without enough slots for that share, they get
the share for which its slots suffice.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import Limits, water_level
from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web


@dataclass(frozen=True, eq=False)
class PinShares:
    """The share of their pinned frequencies that pinned pages get."""

    common: float
    on_host: Floats  # less than the common share if the host has too few slots for it
    taken: Floats  # fetches per day of the pinned pages of each host


@dataclass(frozen=True, eq=False)
class Pins:
    """The pinned pages of a web, and its other pages. Both are positions in the web, in its order."""

    page: NDArray[np.intp]
    host: NDArray[np.intp]  # of each pinned page
    asked: Floats  # fetches per day of each pinned page, as pinned, but at most the ceiling
    asked_on_host: Floats  # their sum on each host
    unpinned: NDArray[np.intp]
    unpinned_starts: NDArray[np.int64]  # host h has unpinned[unpinned_starts[h]:unpinned_starts[h + 1]]

    @property
    def wanted(self) -> float:
        return float(self.asked.sum())

    def shares(self, cap: Floats, budget: float, limits: Limits) -> PinShares:
        """The common share of the pins is the highest that fits into the budget. A host with too few slots gets the
        share that fits into its slots."""
        shared = 1 - limits.exploration
        room = np.where(np.diff(self.unpinned_starts) > 0, shared, 1.0) * cap
        has_pins = self.asked_on_host > 0
        asked = self.asked_on_host[has_pins]
        most = np.minimum(1, room[has_pins] / asked)
        within = budget * (shared if len(self.unpinned) else 1.0)
        common = min(1.0, water_level(asked, most, within)) if len(asked) else 1.0
        on_host = np.full(len(cap), common)
        on_host[has_pins] = np.minimum(common, most)
        return PinShares(common, on_host, self.asked_on_host * on_host)

    def unpinned_web(self, web: Web, shares: PinShares) -> Web:
        """The web of the pages without a pin. Its caps are what pinned pages leave of each cap."""
        cap = np.maximum(0, web.cap - shares.taken)
        return Web(web.value[self.unpinned], web.rate[self.unpinned], self.unpinned_starts, cap)


def pins_of(pinned: NDArray[np.floating[Any]], starts: NDArray[np.int64], limits: Limits) -> Pins:
    """`pinned` is in fetches per day, for every page. NaN: the page has no pin. Pins are cut to the ceiling."""
    is_pinned = ~np.isnan(pinned)
    page, unpinned = np.flatnonzero(is_pinned), np.flatnonzero(~is_pinned)
    asked = np.minimum(limits.ceiling, pinned[page].astype(np.float64))
    host = np.searchsorted(starts, page, side="right") - 1
    before = np.concatenate(([0], np.cumsum(~is_pinned)))
    return Pins(
        page, host, asked, np.bincount(host, asked, len(starts) - 1).astype(np.float64), unpinned, before[starts]
    )


Divide = Callable[[Web, float], Allocation]


def allocate_beside(pins: Pins, web: Web, budget: float, objective: str, limits: Limits, divide: Divide) -> Allocation:
    """Gives pinned pages their shares, and divides the rest between the other pages. `utility` and `bound` include
    the pinned pages. `duality_gap`, `residual` and `spread` concern only the pages without a pin."""
    if not len(pins.page):
        return divide(web, budget)
    shares = pins.shares(web.cap, budget, limits)
    left = max(0.0, budget - float(shares.taken.sum()))
    others = divide(pins.unpinned_web(web, shares), left)
    frequency = np.empty(len(web.value))
    frequency[pins.unpinned] = others.frequency
    frequency[pins.page] = pins.asked * shares.on_host[pins.host]
    of_page = objective_named(objective).utility(frequency[pins.page], web.value[pins.page], web.rate[pins.page])
    utility = math.fsum(of_page)
    return replace(
        others,
        capped=others.capped | (shares.on_host < shares.common),
        frequency=frequency,
        spent=others.spent + float(shares.taken.sum()),
        utility=others.utility + utility,
        bound=others.bound + utility,
    )
