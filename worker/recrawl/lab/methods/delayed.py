"""DELAYED, as in thesis chapter 4: which instants the frequencies of an allocation become, and how fresh that keeps
the pages.

Every page has a grid of its own: first due at a random instant of its first interval, then every 1/frequency. A
request goes out when it is due or, if that is later, a gap after the last request to its host. The next due instant
is on the grid, not an interval after the request: advancing from the request would lose the delay every time.

The thesis keeps all pages in one heap. Here each host is served for itself, in order of due instants d₀ ≤ d₁ ≤ …:

    start_k = k·gap + max_{j≤k} (d_j − j·gap)

which is the same, because start_k = max(d_k, start_{k−1} + gap). Pages that change are stale at the start; with the
requests' instants known, the expected freshness is an exact sum, so only the phases are random. Times are in days.

Cost: a sort of all requests. Where it fails: a host with more due than its gap allows falls behind for ever; its
pages are then visited in turn, in proportion to their frequencies, and one heap for all hosts that waits at its head
would stop them all.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.lab.methods.page import Array, grouped, not_negative


def starts(due: Array, gap: float) -> Array:
    """When requests to one host go out; `due` is sorted."""
    turn = gap * np.arange(due.size, dtype=np.float64)
    return turn + np.maximum.accumulate(due - turn)


def due_instants(frequency: Array, phase: Array, until: float) -> tuple[Array, NDArray[np.int64]]:
    """Every instant before `until` on the pages' grids, and whose it is: page after page, each in order."""
    count = np.maximum(np.ceil(frequency * until - phase), 0).astype(np.int64)
    page = np.repeat(np.arange(frequency.size), count)
    visit = np.arange(page.size) - np.repeat(np.cumsum(count) - count, count)
    return (phase[page] + visit) / frequency[page], page


def requests(frequency: Array, phase: Array, gap: float, until: float) -> tuple[Array, NDArray[np.int64]]:
    """Every request to one host before `until`, and for which page: page after page, each in order."""
    total = frequency.sum()
    # In t days at least t·total − pages instants are due, and at most until/gap + 1 requests go out: more need no list.
    enough = (until / gap + 1 + frequency.size) / total if gap > 0 and total > 0 else until
    due, page = due_instants(frequency, phase, min(until, enough))
    order = np.argsort(due, kind="stable")
    start = np.empty_like(due)
    start[order] = starts(due[order], gap)
    in_time = start < until
    return start[in_time], page[in_time]


def good_between(rate: Array, start: Array, page: NDArray[np.int64], begin: float, end: float) -> Array:
    """The expected share of [begin, end] during which the copy of each page of a host is good, by all requests before
    the end, as `requests` has them."""
    next_start = np.append(start[1:], end)
    last_of_page = np.append(page[1:] != page[:-1], True)[: page.size]
    next_start = np.where(last_of_page, end, next_start[: page.size])
    # From a request to the page's next one the copy is good with probability e^(−rate·age).
    youngest, oldest = np.maximum(begin - start, 0), next_start - start
    seen = oldest > youngest
    start, page, youngest, oldest = start[seen], page[seen], youngest[seen], oldest[seen]
    speed = rate[page]
    with np.errstate(divide="ignore", invalid="ignore"):
        good = np.exp(-speed * youngest) * -np.expm1(-speed * (oldest - youngest)) / speed
    share = np.bincount(page, good, minlength=rate.size) / (end - begin)
    return np.where(rate > 0, share, 1.0)


def good_at(rate: Array, start: Array, page: NDArray[np.int64], instant: Array) -> Array:
    """How many copies of a host's pages are good at each instant, expected, by the same requests."""
    span = max(instant.max(), start.max(initial=0.0)) + 1.0  # so that the pages' requests follow each other
    pages = np.arange(rate.size)
    last = np.searchsorted(page * span + start, pages * span + instant[:, None], side="right") - 1
    last = np.where(last >= np.searchsorted(page, pages), last, -1)  # not one of the page before
    age = instant[:, None] - np.append(start, -np.inf)[last]
    with np.errstate(invalid="ignore"):  # static and never requested
        good: Array = np.where(rate > 0, np.exp(-rate * age), 1.0).sum(axis=1)
    return good


def freshness(
    rate: ArrayLike,
    frequency: ArrayLike,
    host: NDArray[np.integer],
    gap: ArrayLike,
    phase: ArrayLike,
    begin: float,
    end: float,
) -> Array:
    """The same for all hosts.

    `host` is the position in `gap` of each page's host; `phase`, in [0, 1), is where in its interval a page is
    first due.
    """
    rates, frequencies = not_negative("rate", rate), not_negative("frequency", frequency)
    gaps, phases = not_negative("gap", gap), not_negative("phase", phase)
    late = np.flatnonzero(phases >= 1)
    if late.size:
        raise ValueError(f"phase[{late[0]}] must be less than 1, got {phases[late[0]]}")
    if not 0 <= begin < end < np.inf:
        raise ValueError(f"begin and end must be instants in this order, got {begin} and {end}")
    if not rates.shape == frequencies.shape == phases.shape:
        raise ValueError(
            f"rate, frequency and phase must be equally long, got {rates.size}, {frequencies.size} and {phases.size}"
        )
    result = np.ones_like(rates)
    for pages, host_gap in zip(grouped(host, rates.size, gaps.size), gaps, strict=True):
        start, page = requests(frequencies[pages], phases[pages], host_gap, end)
        result[pages] = good_between(rates[pages], start, page, begin, end)
    return result
