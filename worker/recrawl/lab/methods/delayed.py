"""DELAYED, as in thesis chapter 4: turns the frequencies of an allocation into times of requests, and computes the
freshness.

Each page has its own grid: it is first due at a random time of its first interval, then every 1/frequency. A request is
sent when it is due, but not earlier than a gap after the last request to its host. The next due time is on the grid,
not one interval after the request. Otherwise each delay would lower the frequency.

The thesis keeps all pages in one heap. Here each host is served separately, in order of due times d₀ ≤ d₁ ≤ …:

    start_k = k·gap + max_{j≤k} (d_j − j·gap)

This is the same, because start_k = max(d_k, start_{k−1} + gap). The copies of pages that change are outdated at the
start. If the times of the requests are known, the expected freshness is an exact sum. So only the phases are random.
Times are in days.

Cost: a sort of all requests. Limit: if a host has more due pages than its gap allows, it falls behind without end, and
its pages are fetched in turn, in proportion to their frequencies. One heap for all hosts that waits for its first
element would stop all hosts.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.lab.methods.page import grouped
from recrawl.model.checks import Array, not_negative


def starts(due: Array, gap: float) -> Array:
    """When the requests to one host are sent; `due` is sorted."""
    turn = gap * np.arange(due.size, dtype=np.float64)
    return turn + np.maximum.accumulate(due - turn)


def due_instants(frequency: Array, phase: Array, until: float) -> tuple[Array, NDArray[np.int64]]:
    """All times before `until` on the grids of the pages, and the page of each time: page after page, each in order."""
    count = np.maximum(np.ceil(frequency * until - phase), 0).astype(np.int64)
    page = np.repeat(np.arange(frequency.size), count)
    visit = np.arange(page.size) - np.repeat(np.cumsum(count) - count, count)
    return (phase[page] + visit) / frequency[page], page


def requests(frequency: Array, phase: Array, gap: float, until: float) -> tuple[Array, NDArray[np.int64]]:
    """All requests to one host before `until`, and the page of each: page after page, each in order."""
    total = frequency.sum()
    # In t days at least t·total − pages times are due, and at most until/gap + 1 requests are sent: no more are listed.
    enough = (until / gap + 1 + frequency.size) / total if gap > 0 and total > 0 else until
    due, page = due_instants(frequency, phase, min(until, enough))
    order = np.argsort(due, kind="stable")
    start = np.empty_like(due)
    start[order] = starts(due[order], gap)
    in_time = start < until
    return start[in_time], page[in_time]


def good_between(rate: Array, start: Array, page: NDArray[np.int64], begin: float, end: float) -> Array:
    """The expected share of [begin, end] during which the copy of each page of a host is fresh, given all requests
    before the end from `requests`."""
    next_start = np.append(start[1:], end)
    last_of_page = np.append(page[1:] != page[:-1], True)[: page.size]
    next_start = np.where(last_of_page, end, next_start[: page.size])
    # Between two requests for a page its copy is fresh with probability e^(−rate·age).
    youngest, oldest = np.maximum(begin - start, 0), next_start - start
    seen = oldest > youngest
    start, page, youngest, oldest = start[seen], page[seen], youngest[seen], oldest[seen]
    speed = rate[page]
    with np.errstate(divide="ignore", invalid="ignore"):
        good = np.exp(-speed * youngest) * -np.expm1(-speed * (oldest - youngest)) / speed
    share = np.bincount(page, good, minlength=rate.size) / (end - begin)
    return np.where(rate > 0, share, 1.0)


def good_at(rate: Array, start: Array, page: NDArray[np.int64], instant: Array) -> Array:
    """The expected number of fresh copies of the pages of a host at each time, given the same requests."""
    span = max(instant.max(), start.max(initial=0.0)) + 1.0  # longer than all times: pages do not overlap on one axis
    pages = np.arange(rate.size)
    last = np.searchsorted(page * span + start, pages * span + instant[:, None], side="right") - 1
    last = np.where(last >= np.searchsorted(page, pages), last, -1)  # -1 = the last request before is for another page
    age = instant[:, None] - np.append(start, -np.inf)[last]
    with np.errstate(invalid="ignore"):  # pages that never change and are never requested
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
    """good_between() for all hosts. `host` is the position in `gap` of the host of each page. `phase`, in [0, 1), is
    the part of its first interval after which a page is first due."""
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
