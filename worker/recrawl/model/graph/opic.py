"""OPIC-HITS in batch: how good a hub and how good an authority each page is, by the flow of cash along the links.

Every page holds cash as a hub and cash as an authority. So does the virtual page. It links to every page, and every
page links to it. A hub gives its cash in equal parts to the authorities that it links to and to the virtual page. An
authority of relevance r (0 … 1) divides its cash by weights: each of the P hubs that link to it has the weight r, and
the virtual page 1 − r. So each hub gets the part r / (P·r + 1 − r). (The better known polynomial,
2r/P·(2P/(P+1)·(1 − r) + r − ½), exceeds 1/P for P ≥ 4 and leaves the virtual page with negative cash.) The virtual page
gives its hub cash evenly to all authorities, and its authority cash evenly to all hubs. No cash is made or lost.

The score of a page is the flow of cash through it, which does not depend on the order of spending. Abiteboul et al. let
one page spend at a time and add up its history. That converges as 1 / cash spent. Here all hubs spend, then all
authorities. The cash itself then converges geometrically, and the flow of one sweep is as good as any history. The
virtual page spends its cash at once, again and again until it has nothing left. One division computes this. If most
pages were never crawled, they have no links, and nearly all cash moves between them and the virtual page. With the
division, 8 sweeps instead of 130 reach an error of 10⁻⁶ (10⁵ pages, one in ten crawled).

Without relevance the limit is known: authority (in-links + 1) / (links + pages), hub (out-links + 1) / (links + pages).
Runs start from there.

A small step does not mean a small error. Example: between communities that hardly link to each other, each of hundreds
of sweeps moves a little cash. So the sweeps end by an estimate of the error. If the steps are slow but even, their
expected end is extrapolated: ten communities that differ in relevance take 40 sweeps to an error of 10⁻³, not 160.
"""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.model import limits
from recrawl.model.compiled import compiled
from recrawl.model.graph.graph import Graph, Offsets, Positions

Amounts = NDArray[np.float64]
Relevance = NDArray[np.float32]
Parts = NDArray[np.float32]
Map = Callable[..., Iterable[Any]]
Watch = Callable[[float], None]  # sees the error after each sweep


# Pages and links that are summed by one thread in one go. Sums are made per chunk and then added in order, so that
# they are the same for any number of threads.
CHUNK = 1 << 19

# A rate is the length of a step divided by the length of the step before. If the rate stays the same, the rest of the
# way is less than the last step / (1 - rate). This is the estimate of the error.
# Fast errors may hide a slow one: after two steps that each fell to a twentieth, the steps may stay the same. So the
# estimate uses a rate of at least LEAST_RATE. This costs three or four sweeps on a plain graph.
LEAST_RATE = 0.99
MOST_RATE = 0.999  # no higher rate is used in the estimate: it may be rounding
SLOW_RATE = 0.7  # steps with a higher rate are worth an extrapolation


@dataclass(frozen=True)
class Cash:
    """The cash between two sweeps: the cash that hubs have received and not given yet, and the cash of the virtual
    page. After a sweep the virtual page has no cash, unless no page passes anything on."""

    hub: Amounts
    virtual: float

    @classmethod
    def uniform(cls, pages: int) -> Self:
        """One for every page and one for the virtual page."""
        return cls(np.ones(pages), 1.0)

    @property
    def total(self) -> float:
        return float(self.hub.sum()) + self.virtual


@dataclass(frozen=True)
class Sweeps:
    count: int
    residual: float  # a bound on how far the last sweep moved the scores, in L1; infinite after one sweep of run()
    error: float  # an estimate of how far off the scores are, in L1
    converged: bool  # whether the error is as small as wanted


NO_SWEEPS = Sweeps(0, 0.0, 0.0, True)


@dataclass(frozen=True)
class HubsAndAuthorities:
    hub: Amounts  # adds up to 1, like authority
    authority: Amounts
    cash: Cash  # the next start
    sweeps: Sweeps  # of hub and authority together


@dataclass(frozen=True)
class Importance:
    scores: Amounts  # adding up to 1
    sweeps: Sweeps


def resumed(graph: Graph, hub: Amounts) -> Cash:
    """The cash of an earlier run, computed from its hub scores (nan for new pages). The sum is one for every page and
    one for the virtual page, even if pages were added or removed.

    A score is the cash that a page got from others, plus an even part of the virtual page's cash. Each page had given
    1 / (its links + 1) of its score to the virtual page. New pages start with as much cash per link as the others have.
    Without relevance, this is the state in which a run ends.
    """
    known, links = ~np.isnan(hub), np.diff(graph.out_starts)
    given = hub[known] / (links[known] + 1)
    received = np.maximum(hub - (given.sum() / max(1, len(given))), 0.0)
    known_links = int(links[known].sum())
    received[~known] = links[~known] * (received[known].sum() / known_links if known_links else 1.0)
    total = float(received.sum())
    if not total > 0:
        return Cash.uniform(graph.pages)
    return Cash(received * ((graph.pages + 1) / total), 0.0)


def run(
    graph: Graph,
    relevance: Relevance | None = None,
    start: Cash | None = None,
    error: float = 1e-3,
    most_sweeps: int = 100,
    threads: int = 1,
    watch: Watch = lambda _: None,
) -> HubsAndAuthorities:
    """Sweeps until the scores are off by no more than `error`, by estimate, or until `most_sweeps`: see `converged`.

    Relevance is nan if it is unknown, which counts as ½. Start from the cash of an earlier run if there is one (see
    resumed). The shares that pages give are rounded to a float32, so an error much below 1e-5 may never be reached.
    """
    if relevance is not None:
        relevance = np.nan_to_num(relevance, nan=limits.UNKNOWN_RELEVANCE)
    cash = resumed(graph, np.full(graph.pages, math.nan)) if start is None else start
    if graph.pages == 0:
        return HubsAndAuthorities(np.empty(0), np.empty(0), cash, NO_SWEEPS)

    with ThreadPoolExecutor(threads) as pool:
        each: Map = pool.map if threads > 1 else map  # a pool of one takes a tenth longer than none
        received = np.array(cash.hub)
        hubs = _Side(graph.out_starts, graph.out, None, received, each)
        authorities = _Side(graph.into_starts, graph.into, relevance, received, each)
        hubs.take(cash)

        def sweep() -> float:
            return authorities.receive_from(hubs) + hubs.receive_from(authorities)

        sweeps = _iterate(hubs, sweep, error, most_sweeps, watch)
        left = Cash(received, hubs.virtual_before + authorities.virtual)
        return HubsAndAuthorities(hubs.scores(), authorities.scores(), left, sweeps)


def importance(
    graph: Graph,
    start: Amounts | None = None,
    error: float = 1e-3,
    most_sweeps: int = 100,
    threads: int = 1,
    watch: Watch = lambda _: None,
) -> Importance:
    """Plain OPIC in batch: a page gives its cash to the pages it links to and to the virtual page, in equal parts, and
    there is but one kind of cash. `start` is an earlier importance, as for resumed."""
    cash = Cash.uniform(graph.pages) if start is None else resumed(graph, start)
    if graph.pages == 0:
        return Importance(np.empty(0), NO_SWEEPS)
    with ThreadPoolExecutor(threads) as pool:
        each: Map = pool.map if threads > 1 else map
        side = _Side(graph.into_starts, graph.into, None, cash.hub, each, gives_by=graph.out_starts)
        side.take(cash)
        sweeps = _iterate(side, lambda: side.receive_from(side), error, most_sweeps, watch)
        return Importance(side.scores(), sweeps)


def _iterate(side: "_Side", sweep: Callable[[], float], wanted: float, most_sweeps: int, watch: Watch) -> Sweeps:
    """Sweeps until the scores are off by no more than wanted."""
    sweeps, residual, error, least_rate = 0, math.inf, math.inf, LEAST_RATE
    steps: list[float] = []  # how far sweeps moved the scores of the side, since the last extrapolation
    rates: list[float] = []  # the last two
    last_cash: list[Amounts] = []  # the cash that the last slow sweeps ended with, three at most
    while error > wanted and sweeps < most_sweeps:
        if len(last_cash) == 3 and _are_even(rates):
            side.extrapolate(*last_cash)
            least_rate = max(least_rate, *rates)  # the slow error is smaller now, but as slow
            steps, last_cash = [], []
        residual = sweep()
        sweeps += 1
        steps = [*steps[-2:], side.step]
        rates = [after / before if before > 0 else 0.0 for before, after in pairwise(steps)]
        error = residual / (1 - min(max(least_rate, *rates, 0.0), MOST_RATE))
        watch(error)
        last_cash = [*last_cash[-2:], side.received.copy()] if max(rates, default=0.0) > SLOW_RATE else []
    return Sweeps(sweeps, residual, error, error <= wanted)


def _are_even(rates: list[float]) -> bool:
    """Whether all rates are high, and give nearly the same estimate of the error that is left."""
    return min(rates) > SLOW_RATE and max(rates) < 1 and 1 - min(rates) < 1.25 * (1 - max(rates))


class _Side:
    """All pages as hubs, or all as authorities. A page receives from the pages it is linked with, and gives to the same
    pages. If there is only one kind of cash, it gives to the pages that `gives_by` counts."""

    def __init__(
        self,
        starts: Offsets,
        links: Positions,
        relevance: Relevance | None,
        received: Amounts,
        each: Map,
        gives_by: Offsets | None = None,
    ) -> None:
        pages = len(starts) - 1
        self._starts, self._links, self._each = starts, links, each
        self._gives_by = starts if gives_by is None else gives_by
        by_pages, by_links = np.arange(0, pages, CHUNK), np.searchsorted(starts, np.arange(0, len(links), CHUNK))
        self._chunks = list(pairwise(np.unique(np.concatenate([by_pages, by_links, [pages]])).tolist()))
        # The parts of its cash that a page gives to each page it is linked with, and to the virtual page.
        self._to_each, self._to_virtual = np.empty(pages, np.float32), np.empty(pages, np.float32)
        # A hub gives the virtual page as much as each other page: weights of one half each.
        half = np.full(1, limits.UNKNOWN_RELEVANCE, np.float32)
        weights = self._gives_by, half if relevance is None else relevance, self._to_each, self._to_virtual
        # The cash that pages get if each page has one unit of cash.
        (self._reaches_pages,) = self._sums(_weigh, *weights)

        self.received = received  # both sides of run() share this array: a side fills it when it receives
        # The cash that a page gives to each page it is linked with. A float32 needs half of the cache: a sweep of 10⁷
        # links is a tenth faster than with float64. A common factor corrects the sum of the rounding errors. Without it
        # cash would be lost, or leak to the virtual page, whose spending may multiply the leak by a million.
        self._given, self._factor = np.empty(pages, np.float32), 1.0
        self._flow, self._flows = np.zeros(pages), math.nan  # cash that went through each page, and its sum
        self.step = math.inf  # a bound on how far the scores moved at last, in L1
        self.virtual = 0.0  # what the virtual page has for this side

    def take(self, cash: Cash) -> None:
        self.virtual = cash.virtual
        self._spend_received(*_received(self.received, self._to_virtual))

    def receive_from(self, other: Self) -> float:
        """Takes what the other side gave and gives it on. Returns a bound on how far the scores here moved, in L1."""
        received = self._sums(
            _receive, self._starts, self._links, other._given, other._factor, self._to_virtual, self.received
        )
        self._spend_received(*received)
        return self.step

    def extrapolate(self, first: Amounts, second: Amounts, third: Amounts) -> None:
        """Goes on from `third` in the direction of the last step. The distance is the one that makes the next step
        smallest. If steps shrink evenly, this is where they would end. No page gets negative cash, and no cash is made
        or lost."""
        step, next_step = second - first, third - second
        change = next_step - step
        ahead = np.maximum(third - (next_step @ change) / (change @ change) * next_step, 0.0)
        np.multiply(ahead, third.sum() / ahead.sum(), out=self.received)
        self._spend_received(*_received(self.received, self._to_virtual))

    def _spend_received(self, received: float, returned: float) -> None:
        """Gives the received cash on. `returned` is the part of it that goes to the virtual page first."""
        pages, flows_before = len(self._flow), self._flows
        self.virtual_before = self.virtual
        if self._reaches_pages > 0:
            # The virtual page gives an even part e to each page, and gets back the part that the pages do not pass on:
            # pages · e = virtual + returned + pages · e − _reaches_pages · e.
            even_part = (self.virtual + returned) / self._reaches_pages
        else:
            even_part = 0.0
            self.received.fill(received / pages)  # no page passes cash on: all pages are alike
        self._flows, given, moved = self._sums(
            _spend, self._gives_by, self.received, even_part, self._to_each, self._flow, self._given
        )
        owed = self.virtual + received
        self._factor, self.virtual = (owed / given, 0.0) if given > 0 else (0.0, owed)
        if flows_before > 0 and self._flows > 0:
            # |new/Σnew − old/Σold| ≤ (|new − old| + old/Σold·|Σold − Σnew|) / Σnew
            self.step = (moved + abs(flows_before - self._flows)) / self._flows
        else:
            self.step = 0.0 if flows_before == self._flows else math.inf

    def scores(self) -> Amounts:
        if self._flows > 0:
            return self._flow / self._flows
        return np.full(len(self._flow), 1 / len(self._flow))  # the virtual page has it all: pages are alike

    def _sums(self, compiled: Callable[..., tuple[float, ...]], *arguments: object) -> list[float]:
        """Runs a kernel over all chunks and adds up what it returns."""
        parts = self._each(lambda chunk: compiled(*chunk, *arguments), self._chunks)
        return [sum(column) for column in zip(*parts, strict=True)]


@compiled(nogil=True)
def _weigh(
    begin: int, end: int, starts: Offsets, relevance: Relevance, to_each: Parts, to_virtual: Parts
) -> tuple[float]:
    passed_on = 0.0
    for page in range(begin, end):
        linked = starts[page + 1] - starts[page]
        r = np.float64(relevance[min(page, relevance.size - 1)])
        part = r / (linked * r + 1 - r) if linked else 0.0
        to_each[page] = part
        to_virtual[page] = (1 - r) / (linked * r + 1 - r) if linked else 1.0
        passed_on += linked * part
    return (passed_on,)


# _receive is limited by memory and _spend by arithmetic, so two loops are faster than one. "reassoc" lets the compiler
# sum in vector lanes, which makes a sweep a tenth faster. The result is the same in all runs on one kind of processor.


@compiled(nogil=True)
def _receive(
    begin: int,
    end: int,
    starts: Offsets,
    links: Positions,
    given: Parts,
    factor: float,
    to_virtual: Parts,
    received: Amounts,
) -> tuple[float, float]:
    one = np.uint64(1)  # a signed index would be tested for being negative at every use
    link = np.uint64(starts[begin])
    for page in range(np.uint64(begin), np.uint64(end)):
        amount = 0.0
        row_end = np.uint64(starts[page + one])
        while link < row_end:
            amount += given[links[link]]
            link += one
        received[page] = amount * factor
    sums: tuple[float, float] = _received(received[begin:end], to_virtual[begin:end])
    return sums


@compiled(nogil=True, fastmath={"reassoc", "nsz"})
def _received(received: Amounts, to_virtual: Parts) -> tuple[float, float]:
    total, returned = 0.0, 0.0
    for page in range(np.uint64(received.size)):
        total += received[page]
        returned += received[page] * to_virtual[page]
    return total, returned


@compiled(nogil=True, fastmath={"reassoc", "nsz"})
def _spend(
    begin: int,
    end: int,
    starts: Offsets,
    received: Amounts,
    even_part: float,
    to_each: Parts,
    flow: Amounts,
    given: Parts,
) -> tuple[float, float, float]:
    total, total_given, moved = 0.0, 0.0, 0.0
    for page in range(np.uint64(begin), np.uint64(end)):
        amount = received[page] + even_part
        moved += abs(amount - flow[page])
        flow[page] = amount
        given[page] = amount * to_each[page]
        total += amount
        total_given += np.float64(starts[page + np.uint64(1)] - starts[page]) * np.float64(given[page])
    return total, total_given, moved
