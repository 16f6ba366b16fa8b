"""What new pages leave of the budget and of every host's slots.

While revisits want the rest, new pages have the share `discovery` of both: of the budget, because the queue paces them
to it, and of a host's slots. Where less waits than that, they have what waits, and what is found, within a day.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats


@dataclass(frozen=True, eq=False)
class NewPages:
    waiting: Floats  # on each host, those included that will be found within the day
    discovery: float  # their share
    revisits: float = (
        math.inf
    )  # fetches per day that are left to revisits whatever waits; infinite where a budget paces


@dataclass(frozen=True, eq=False)
class Left:
    """What revisits may have, in fetches per day; and what new pages will."""

    budget: float
    cap: Floats
    new_pages: float
    wanted_new: float  # what new pages would have if the budget were no limit

    def new_pages_beside(self, spent: float) -> float:
        """They have what revisits cannot spend, too."""
        return min(self.wanted_new, self.new_pages + max(0.0, self.budget - spent))


def left(cap: Floats, has_revisits: NDArray[np.bool_], budget: float, new: NewPages) -> Left:
    share = np.where(has_revisits, new.discovery, 1.0)
    on_host = np.minimum(new.waiting, np.where(share > 0, cap, 0.0) * share)
    wanted = float(on_host.sum())
    fetched = min(wanted, max(new.discovery * budget, budget - new.revisits))
    return Left(budget - fetched, cap - on_host * (fetched / wanted if wanted else 0.0), fetched, wanted)


def with_new_pages(revisits: float, wanted_new: float, discovery: float) -> float:
    """The budget of which new pages that want so much leave so many fetches to revisits."""
    if discovery < 1 and discovery * revisits <= (1 - discovery) * wanted_new:
        return revisits / (1 - discovery)
    return revisits + wanted_new
