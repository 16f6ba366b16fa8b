"""What-if questions, answered from the user's own crawl; nothing is changed. Computes; recrawl.cli.show shows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from recrawl import store
from recrawl.jobs.crawl import read
from recrawl.model.allocation import what_if
from recrawl.model.allocation.new_pages import with_new_pages


@dataclass(frozen=True)
class Point:
    """What a budget would bring. Fetches per day; utility per unit of value: for freshness, the share that is fresh."""

    budget: float
    spent: float  # on revisits
    new_pages: float
    utility: float
    polite_bound: float
    unpolite_bound: float
    capped_hosts: int


@dataclass(frozen=True)
class HeldBack:
    """A host whose gap costs utility, and how much of it half the gap would bring back at most."""

    host: str
    slot_every: float  # seconds: its gap, and the window in which a request may start
    pages: int
    gain: float


class Plan:
    """The crawl as it is now, read once."""

    def __init__(self, url: str) -> None:
        self.url = url
        with store.connect(url, "recrawl plan") as connection:
            self.crawl = read(url, connection)

    def curve(self, budgets: Sequence[float]) -> list[Point]:
        crawl = self.crawl
        left = [crawl.left_by_new_pages(budget) for budget in budgets]
        found = what_if.curve([(web, of.budget) for web, of in left], crawl.objective, crawl.limits)
        points = []
        for budget, (web, of), allocation in zip(budgets, left, found, strict=True):
            bounds = what_if.bounds(web, of.budget, crawl.objective)
            points.append(
                Point(
                    budget=budget,
                    spent=allocation.spent,
                    new_pages=of.new_pages_beside(allocation.spent),
                    utility=allocation.utility / crawl.worth,
                    polite_bound=bounds.polite / crawl.worth,
                    unpolite_bound=bounds.unpolite / crawl.worth,
                    capped_hosts=int(allocation.capped.sum()),
                )
            )
        return points

    def budget_for(self, freshness: float) -> float:
        """The smallest budget, in fetches per day, that reaches this share of the most that can be reached."""
        crawl = self.crawl
        web, left = crawl.left_by_new_pages(crawl.budget)
        revisits, _ = what_if.budget_for(web, freshness, crawl.objective, crawl.limits, accuracy=1e-4)
        return with_new_pages(revisits, left.wanted_new, crawl.new_pages.discovery)

    def held_back(self, most: int = 10) -> list[HeldBack]:
        """The hosts whose gaps cost most at the present budget."""
        crawl = self.crawl
        web, left = crawl.left_by_new_pages(crawl.budget)
        (allocation,) = what_if.curve([(web, left.budget)], crawl.objective, crawl.limits)
        found = what_if.held_back_by_politeness(web, allocation)
        with store.connect(self.url, "recrawl plan") as connection:
            names = store.host_names(connection, crawl.hosts[found.host[:most]].tolist())
        return [
            HeldBack(
                host=name,
                slot_every=86400 / crawl.web.cap[host] if crawl.web.cap[host] else math.inf,
                pages=int(crawl.web.pages[host]),
                gain=float(gain) / crawl.worth,
            )
            for name, host, gain in zip(names, found.host, found.gain, strict=False)
        ]
