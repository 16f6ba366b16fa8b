"""Which due times to move: those that lie far beyond the new interval, and so many that as many visits come as there
should be.

A page's due time was promised at the price of that day. Prices follow the crawl at once, but due times only from the
next visit on: for as long as the pages' intervals, a crawl that grew is fetched too much, and one that shrank too
little. So those due times come to what the frequencies in force say that were promised others, no more of them than
it takes, and those first that are off most. While prices stay there are none.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats

OFF = 0.05  # a page was promised another frequency if it is off by more than this


TOO_LATE = 1.5  # intervals from now


def too_late(due_in: NDArray[np.float32], promised: NDArray[np.float32], frequency: Floats) -> NDArray[np.intp]:
    """The pages that would be visited much too late; of those whose due time may be moved. Times as below."""
    return np.flatnonzero((due_in * frequency > TOO_LATE) & ~np.isnan(promised))


def to_move(
    due_in: NDArray[np.floating[Any]],
    promised: NDArray[np.floating[Any]],
    frequency: Floats,
    capped: NDArray[np.bool_],
    ahead: float,
    wanted: float,
) -> NDArray[np.intp]:
    """The pages to move to 1 / frequency after their last fetch. Times in days.

    `due_in` from now; `promised` after the last fetch, NaN where no due time may be moved; `wanted` visits within
    `ahead`. What is overdue waits for its host's slots or for crawlers, and of capped hosts the gaps decide.
    """
    is_coming = (due_in >= 0) & (due_in < ahead)
    often = np.flatnonzero(frequency * ahead > 1)
    again = np.maximum(0, np.floor((ahead - np.maximum(due_in[often], 0)) * frequency[often]))
    over = float(is_coming.sum()) + float(again.sum(where=~np.isnan(again))) - wanted

    interval = np.divide(1, frequency, out=np.full(len(frequency), np.inf), where=frequency > 0)
    own = due_in - promised + interval  # when it is due by its frequency
    too_often = interval / promised
    may = (interval > 2 * ahead) & ~capped
    if over > 0:
        found = np.flatnonzero(may & is_coming & (own >= ahead) & (too_often > 1 + OFF))
        first = np.argsort(-too_often[found], kind="stable")
    else:
        found = np.flatnonzero(may & (due_in >= ahead) & (own < ahead) & (too_often < 1 - OFF))
        first = np.argsort(too_often[found], kind="stable")
    return found[first[: round(abs(over))]]
