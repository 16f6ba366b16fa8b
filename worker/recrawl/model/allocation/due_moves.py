"""Chooses the due times to move: those far later than the new interval says, and as many others as the budget needs.

The due time of a page follows from the price at its last fetch. Prices follow the crawl at once, but a due time follows
only at the next fetch. So after a crawl has grown, it fetches too much for as long as the old intervals last. After it
has shrunk, it fetches too little. Therefore some due times are moved to the interval of the present frequency.
`too_late` finds pages that always move. `to_move` finds others: only as many as needed, those with the largest
difference first. While prices do not change, it finds no page.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats

OFF = 0.05  # a page may move only if its old and its new interval differ by more than this share
TOO_LATE = 1.5  # intervals from now


def intervals(frequency: Floats) -> Floats:
    """Days between two fetches."""
    days: Floats = np.divide(1, frequency, out=np.full(len(frequency), np.inf), where=frequency > 0)
    return days


def too_late(due_in: NDArray[np.floating[Any]], frequency: Floats) -> NDArray[np.bool_]:
    """Whether each page would be fetched much too late. `due_in` is in days from now."""
    late: NDArray[np.bool_] = due_in * frequency > TOO_LATE
    return late


def to_move(
    due_in: NDArray[np.floating[Any]],
    planned_interval: NDArray[np.floating[Any]],
    frequency: Floats,
    capped: NDArray[np.bool_],
    ahead: float,
    wanted: float,
) -> NDArray[np.intp]:
    """The pages whose due time should move to 1 / frequency after their last fetch. Times are in days.

    `due_in` is counted from now (NaN if there is no due time, or if the host is blocked for all of `ahead`),
    `planned_interval` from the last fetch (NaN if the due time may not be moved). `wanted` is the number of fetches
    wanted within `ahead`. Pages with NaN do not move. Three other kinds of pages do not move either: late pages, which
    wait for a slot of their host or for a crawler; pages of capped hosts, because there the time between two requests
    decides; and pages whose new interval is at most 2 · ahead.
    """
    # The fetches within `ahead` if no due time moves: one for each page that becomes due, and the repeated fetches of
    # pages whose interval is shorter than `ahead`. `over` is their number minus `wanted`.
    is_coming = (due_in >= 0) & (due_in < ahead)
    often = np.flatnonzero(frequency * ahead > 1)
    again = np.maximum(0, np.floor((ahead - np.maximum(due_in[often], 0)) * frequency[often]))
    over = float(is_coming.sum()) + float(again.sum(where=~np.isnan(again))) - wanted

    interval = intervals(frequency)
    due_by_frequency = due_in - planned_interval + interval  # days from now until the page is due by its frequency
    interval_ratio = interval / planned_interval  # above 1: the page comes more often than its frequency says
    may = (interval > 2 * ahead) & ~capped
    if over > 0:
        found = np.flatnonzero(may & is_coming & (due_by_frequency >= ahead) & (interval_ratio > 1 + OFF))
        first = np.argsort(-interval_ratio[found], kind="stable")
    else:
        found = np.flatnonzero(may & (due_in >= ahead) & (due_by_frequency < ahead) & (interval_ratio < 1 - OFF))
        first = np.argsort(interval_ratio[found], kind="stable")
    return found[first[: round(abs(over))]]
