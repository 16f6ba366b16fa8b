"""Simulated crawlers on a web drawn at random: real verbs and real jobs in a real database, on a virtual clock.

The crawl begins some days ago and ends now, as jobs ask the wall clock. A page x days after a fetch is still fresh with
probability e^(−rate·x), so freshness is told as expected, which leaves nothing of it to chance.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.lab.drawn import DrawnWeb
from recrawl.model.allocation import what_if
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.solve import Web
from recrawl.model.policies.policy import Question
from recrawl.model.policies.registry import POLICIES

STEP = timedelta(minutes=10)  # crawlers look that far ahead
DAY = timedelta(days=1)
LOOKS = 4  # at freshness, a day
START_WITHIN = 0.1  # of the gap, at most 2 s: the window of a slot, as settings are at first


@dataclass
class Figures:
    """Freshness by value, of the pages that were found."""

    day: list[float] = field(default_factory=list)
    fresh: list[float] = field(default_factory=list)
    pages: list[int] = field(default_factory=list)
    fetches: int = 0
    too_close: int = 0  # requests closer than the gap of their host


@dataclass(frozen=True)
class Compared:
    """What the web could be: freshness by value when all is known and has settled, in equally long visits."""

    polite: float
    unpolite: float
    uniform: float
    proportional: float


class Crawl:
    def __init__(self, url: str, web: DrawnWeb, budget: float, days: int, seed: int) -> None:
        """The budget is in fetches per day."""
        self.url, self.web, self.budget, self.days = url, web, budget, days
        self.rng = np.random.default_rng(seed)
        self.begin = datetime.now(UTC) - days * DAY
        self.now = self.begin
        self.fetched_at = np.full(web.pages, np.nan)  # days since the beginning
        self.value = np.ones(web.pages)
        self.page_of_id: dict[int, int] = {}
        self.last_start = np.full(len(web.gap), -math.inf)  # seconds since the beginning
        self.figures = Figures()

    def run(self, watch: Callable[[float], None] = lambda days: None) -> Figures:
        with store.connect(self.url, "recrawl simulate") as connection:
            connection.execute("set synchronous_commit = off")
            self._prepare(connection)
            steps = self.days * (DAY // STEP)
            for step in range(steps):
                self._step(connection)
                if step % (DAY // STEP // LOOKS) == DAY // STEP // LOOKS - 1:
                    self._look()
                if step % (DAY // STEP) == DAY // STEP // 2:
                    self._jobs()
                watch((step + 1) * (STEP / DAY))
        return self.figures

    def _prepare(self, connection: store.Connection) -> None:
        store.set_setting(connection, "budget", str(self.budget))
        store.set_setting(connection, "max_ahead", f"{STEP.total_seconds():g} s")
        store.set_setting(connection, "default_gap", f"{self.web.gap.min():g} s")
        for host in np.flatnonzero(self.web.gap > self.web.gap.min()):
            store.set_host(connection, self.web.host_name(int(host)), timedelta(seconds=float(self.web.gap[host])))
        store.add_pages_at(connection, self.now, self.web.seeds())

    def _step(self, connection: store.Connection) -> None:
        pages = store.next_pages_at(connection, self.now, 1000, STEP, 2 * STEP)
        self.now += STEP
        if pages:
            visited = [self._visit(page) for page in pages]
            changed, links = zip(*visited, strict=True)
            store.report_at(connection, self.now, pages, changed, links)
        store.tick_at(connection, self.now)

    def _visit(self, row: Any) -> tuple[bool | None, list[str] | None]:
        """Whether a page had changed since the last visit, and its links at the first one."""
        page = self.web.page_at(row.url)
        self.page_of_id[row.page_id] = page
        start = (row.fetch_at - self.begin).total_seconds()
        host = self.web.host[page]
        self.figures.fetches += 1
        self.figures.too_close += start - self.last_start[host] < self.web.gap[host]
        self.last_start[host] = start
        before, self.fetched_at[page] = self.fetched_at[page], start / 86400
        if np.isnan(before):
            return None, self.web.links(page)
        return bool(self.rng.random() < -math.expm1(-self.web.rate[page] * (start / 86400 - before))), None

    def _jobs(self) -> None:
        for name in ("rates", "opic", "allocate"):
            JOBS[name].load()(self.url).run()
        known = store.pages_to_allocate(self.url)
        pages = [self.page_of_id[page_id] for page_id in known.page_id.tolist()]
        self.value[pages] = known.value

    def _look(self) -> None:
        figures = self.figures
        today = (self.now - self.begin) / DAY
        found = ~np.isnan(self.fetched_at)
        age = np.maximum(today - self.fetched_at[found], 0)
        figures.day.append(today)
        figures.fresh.append(float(np.average(np.exp(-self.web.rate[found] * age), weights=self.value[found])))
        figures.pages.append(int(found.sum()))

    # ------------------------------------------------------------------------------------------- in comparison

    def late(self) -> float:
        """The mean of the second half."""
        return float(np.mean(self.figures.fresh[len(self.figures.fresh) // 2 :]))

    def compared(self) -> Compared:
        """By the true rates, and the values that opic found."""
        slot = self.web.gap + np.minimum(START_WITHIN * self.web.gap, 2.0)
        web = Web(self.value, self.web.rate, self.web.first, 86400 / slot)
        bounds = what_if.bounds(web, self.budget)
        worth = float(self.value.sum())
        asked = Question(web, self.budget, "freshness", Limits())
        uniform, proportional = (POLICIES[name].answer(asked).allocation for name in ("uniform", "proportional"))
        return Compared(*(of / worth for of in (bounds.polite, bounds.unpolite, uniform.utility, proportional.utility)))
