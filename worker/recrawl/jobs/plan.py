"""Answers what-if questions from the user's own crawl. Changes nothing. recrawl.cli.jobs prints the answers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from recrawl import store
from recrawl.jobs.allocation_input import finite, read
from recrawl.model.allocation import what_if
from recrawl.model.allocation.solve import Allocation
from recrawl.store import reads


@dataclass(frozen=True)
class Point:
    """The results of a budget. Fetches are per day. Utility is per unit of value: for freshness, the fresh share.

    None in a utility = a loss without limit, because no fetch is left for pages that change.
    """

    budget: float
    for_revisits: float
    for_new: float
    pinned: float  # the part of `for_revisits` for pages whose interval is pinned
    utility: float | None
    limit_with_gaps: float | None
    limit_without_gaps: float | None
    capped_hosts: int
    not_kept: str | None  # why pages may wait for longer than the setting longest_interval says


@dataclass(frozen=True)
class HostAtGap:
    """A host whose gap costs utility, and the gain if its gap were half as long."""

    host: str
    slot_every: float  # seconds: its gap plus the window in which a request may start
    pages: int
    half_gap_gain: float  # per unit of value


class Plan:
    """The crawl as it is now, read once."""

    def __init__(self, url: str) -> None:
        self.url = url
        with store.connect(url, "recrawl plan") as connection:
            self.crawl = read(url, connection)
        self.present = self.crawl.split(self.crawl.budget)

    def curve(self, budgets: Sequence[float]) -> list[Point]:
        points, price = [], None
        for budget in budgets:
            split = self.crawl.split(budget, price)
            price = split.allocation.price_to_try
            points.append(
                Point(**self.crawl.result(split), not_kept=self.crawl.longest_interval_problem(split.allocation))
            )
        return points

    def budget_for(self, freshness: float) -> float:
        """The smallest budget, in fetches per day, that reaches this share of the utility of always fresh pages."""
        crawl = self.crawl

        def revisits(budget: float, price: float | None) -> Allocation:
            return crawl.split(budget, price).allocation

        web = crawl.web(self.present.cap)
        largest = float(crawl.slots.per_day.sum()) + crawl.retries  # more than hosts have slots for
        return what_if.budget_that_reaches(revisits, freshness, web, crawl.objective, 1e-4, largest)

    def capped_hosts(self, most: int = 10) -> list[HostAtGap]:
        """The hosts for which half the gap would bring most at the present budget.

        Hosts are tried in the order of an upper bound of their gain, at most 4 * `most` of them. A new allocation gives
        the gain of each. The search ends when no bound of the other hosts is above the smallest of the `most` best
        gains.
        """
        crawl, present = self.crawl, self.present
        if finite(present.allocation.utility) is None or not crawl.is_priced_by_the_objective(present.allocation):
            return []
        planned = np.flatnonzero(crawl.slots.is_planned)
        bound = crawl.most_gain_of_half_the_gap(present, crawl.unpinned(present))
        gains: dict[int, float] = {}
        for host in np.argsort(-bound, kind="stable")[: 4 * most]:
            if bound[host] <= 0 or (len(gains) >= most and bound[host] <= sorted(gains.values())[-most]):
                break
            gains[int(host)] = self._gain_of_half_the_gap(int(planned[host]))
        best = sorted((host for host in gains if gains[host] > 0), key=lambda host: -gains[host])[:most]
        with store.connect(self.url, "recrawl plan") as connection:
            names = reads.host_names(connection, crawl.hosts[best].tolist())
        return [
            HostAtGap(
                host=name,
                slot_every=float(86400 / crawl.slots.per_day[planned[host]]),
                pages=int(crawl.starts[host + 1] - crawl.starts[host]),
                half_gap_gain=gains[host] / crawl.total_value,
            )
            for name, host in zip(names, best, strict=True)
        ]

    def _gain_of_half_the_gap(self, place: int) -> float:
        """How much more utility the best allocation has if the gap of this host is halved."""
        crawl, now = self.crawl, self.present.allocation
        per_day = crawl.slots.per_day.copy()
        per_day[place] = crawl.slots_with_half_the_gap[place]
        wider = replace(crawl, slots=replace(crawl.slots, per_day=per_day))
        return wider.split(crawl.budget, now.price_to_try).allocation.utility - now.utility
