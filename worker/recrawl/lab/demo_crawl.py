"""The crawl of `recrawl demo`: a web drawn at random, and the freshness that could be reached in it.

Freshness is the expected one, without chance: x days after a fetch a page is fresh with probability e^(−rate·x).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.lab import verbs_at
from recrawl.lab.drawn import DrawnWeb
from recrawl.lab.driver import DAY, STEP, STEPS, Driver, FetchResult, KnownPage
from recrawl.model.allocation import what_if
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.solve import Web
from recrawl.model.policies.policy import Question
from recrawl.model.policies.registry import POLICIES
from recrawl.store import reads

LOOKS = 4  # samples of the freshness per day
SAMPLED = STEPS // 24  # steps: every hour, and on the last day at every step
START_WITHIN = 0.1  # times the gap, at most 2 s: the window of a slot, with the default settings


@dataclass
class DemoFigures:
    """Freshness of the pages that were found so far, weighted by value."""

    day: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    fetches: int = 0
    too_close: int = 0  # requests closer than the gap of their host


@dataclass(frozen=True)
class Reachable:
    """The freshness by value that the found pages could reach if their rates were known, with visits at equal
    intervals."""

    polite: float
    unpolite: float
    uniform: float
    proportional: float


class DemoCrawl:
    def __init__(self, url: str, web: DrawnWeb, budget: float, days: int, seed: int) -> None:
        """The budget is in fetches per day."""
        self.url, self.web, self.budget, self.days = url, web, budget, days
        self.rng = np.random.default_rng(seed)
        self.begin = datetime.now(UTC) - days * DAY
        self.added_at, self.fetched_at = (np.full(web.pages, np.nan) for _ in range(2))  # days since the beginning
        self.value = np.ones(web.pages)
        self.page_of_id: dict[int, int] = {}
        self.last_start = np.full(len(web.gap), -math.inf)  # seconds since the beginning
        self.figures = DemoFigures()

    def run(self, watch: Callable[[float], None] = lambda days: None) -> DemoFigures:
        """Crawls until now, so that a report of the present shows the whole crawl."""
        with store.connect(self.url, "recrawl demo") as connection:
            driver = Driver(self.url, connection, self, self.begin)
            driver.set("budget", self.budget)
            driver.set("default_gap", f"{self.web.gap.min():g} s")
            for host in np.flatnonzero(self.web.gap > self.web.gap.min()):
                gap = timedelta(seconds=float(self.web.gap[host]))
                verbs_at.set_gap_at(connection, driver.now, self.web.host_name(int(host)), gap)
            for step in range(self.days * STEPS):
                driver.step()
                if (step + 1) % SAMPLED == 0 or step >= (self.days - 1) * STEPS:
                    verbs_at.take_vitals_at(connection, driver.now)
                if (step + 1) % (STEPS // LOOKS) == 0:
                    self._look(driver.today)
                if step % STEPS == STEPS // 2:
                    driver.work("rates", "opic", "allocate")
                    self._learn_values()
                watch((step + 1) * (STEP / DAY))
            while datetime.now(UTC) - driver.now > STEP:  # the steps above took longer than the longest step may be
                driver.step()
                verbs_at.take_vitals_at(connection, driver.now)
            for _ in range(2):  # the first step takes about 1 s, and the second step catches up with it
                driver.step(datetime.now(UTC) - driver.now)
            store.calls.tick(connection)
            verbs_at.take_vitals_at(connection, driver.now)
        return self.figures

    def new_pages(self, begin: float, end: float) -> Sequence[KnownPage]:
        return [KnownPage(url) for url in self.web.seeds()] if begin < 0 <= end else []

    def answer(self, url: str, page_id: int, day: float) -> FetchResult:
        page, start = self.web.page_at(url), day * 86400
        self.page_of_id[page_id] = page
        host = self.web.host[page]
        self.figures.fetches += 1
        # Times in days are exact to 1e-6 s.
        self.figures.too_close += start - self.last_start[host] < self.web.gap[host] - 1e-6
        self.last_start[host] = start
        before, self.fetched_at[page] = self.fetched_at[page], day
        if np.isnan(before):
            self.added_at[page] = day
            return FetchResult(200, None, self.web.links(page))
        return FetchResult(200, bool(self.rng.random() < -math.expm1(-self.web.rate[page] * (day - before))))

    def _learn_values(self) -> None:
        known = reads.pages_to_allocate(self.url)
        pages = [self.page_of_id[page_id] for page_id in known.page_id.tolist()]
        self.value[pages] = known.value

    def _look(self, today: float) -> None:
        figures = self.figures
        found = ~np.isnan(self.fetched_at)
        age = np.maximum(today - self.fetched_at[found], 0)
        figures.day.append(today)
        figures.fresh.append(float(np.average(np.exp(-self.web.rate[found] * age), weights=self.value[found])))
        figures.pages.append(int(found.sum()))

    # ------------------------------------------------------------------------------------------- in comparison

    def late(self) -> float:
        """The mean of the second half."""
        return float(np.mean(self.figures.fresh[len(self.figures.fresh) // 2 :]))

    def compared(self) -> Reachable:
        """The mean of the second half, too: pages are still being found, and the fewer they are the more often each
        can be fetched."""
        days = self.figures.day[len(self.figures.day) // 2 :]
        return Reachable(*np.mean([self._reachable(self.added_at <= day) for day in days], axis=0).tolist())

    def _reachable(self, found: NDArray[np.bool_]) -> tuple[float, ...]:
        """Computed from the true rates, and from the values that opic found."""
        slot = self.web.gap + np.minimum(START_WITHIN * self.web.gap, 2.0)
        first = np.append(0, np.cumsum(np.bincount(self.web.host[found], minlength=len(slot))))
        web = Web(self.value[found], self.web.rate[found], first, 86400 / slot)
        bounds = what_if.bounds(web, self.budget)
        worth = float(web.value.sum())
        asked = Question(web, self.budget, "freshness", Limits())
        uniform, proportional = (POLICIES[name].answer(asked) for name in ("uniform", "proportional"))
        return tuple(of / worth for of in (bounds.polite, bounds.unpolite, uniform.utility, proportional.utility))
