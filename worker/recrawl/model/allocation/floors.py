"""The floor of each host: no page of it is fetched less often. It follows from the settings for exploration and for the
longest interval.

Floors make sure that a page is still fetched if it seems static, or changes too often to be kept fresh. They take no
more than a share of each host's cap, and no more than the same share of the budget. So every floor can be kept.
"""

import math
from dataclasses import dataclass

import numpy as np

from recrawl.model.allocation.objectives import Floats


@dataclass(frozen=True)
class Limits:
    """The settings that limit frequencies, as the database has checked them. Limits() limits nothing: the allocation is
    then the pure optimum."""

    exploration: float = 0.0  # the share of the budget that is spread evenly over all pages
    longest_interval: float = math.inf  # days
    shortest_interval: float = 0.0  # days
    floor_share: float = 0.5  # floors may take at most this share of a host's cap and of the budget

    @property
    def ceiling(self) -> float:
        """The most fetches per day of any page."""
        return 1 / self.shortest_interval if self.shortest_interval else math.inf


NO_LIMITS = Limits()


def floors(pages: Floats, cap: Floats, budget: float, limits: Limits) -> Floats:
    """The floor of each host, in fetches per day of each of its pages. It is 0 for a host without pages."""
    floor = np.zeros(len(pages))
    if not limits.exploration and limits.longest_interval == math.inf:
        return floor
    has_pages = pages > 0
    pages, cap = pages[has_pages], cap[has_pages]
    room = limits.floor_share * cap / pages  # the highest floor on each host
    spendable = min(budget, float(cap.sum()))
    for_exploration = limits.exploration * spendable if limits.exploration else 0.0
    for_longest_interval = float((pages * np.minimum(1 / limits.longest_interval, room)).sum())
    total = min(limits.floor_share * spendable, max(for_exploration, for_longest_interval))
    floor[has_pages] = np.minimum(limits.ceiling, np.minimum(water_level(pages, room, total), room))
    return floor


def water_level(weight: Floats, most: Floats, total: float) -> float:
    """The level at which Σ weight · min(level, most) = total. Infinite if Σ weight · most is less than `total`.

    Like water in a vessel with steps: the level rises, and a step that is under water takes no more.
    """
    order = np.argsort(most)
    weight, most = weight[order], most[order]
    lower = np.concatenate(([0.0], np.cumsum(weight * most)[:-1]))  # what the steps before this one take
    higher = np.cumsum(weight[::-1])[::-1]  # the weight of this step and of those after it
    levels = (total - lower) / higher
    reached = np.flatnonzero(levels <= most)
    return float(levels[reached[0]]) if len(reached) else math.inf
