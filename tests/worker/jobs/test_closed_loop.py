"""The whole thing against the truth: pages that change at rates nobody is told, pops at odd times, reports of one bit.

Late in the crawl it must be nearly as fresh as if the rates had been known from the start.
"""

from datetime import datetime, timedelta

import numpy as np
import psycopg
import pytest

from helpers import DAY, MINUTE, Crawl, run_job
from recrawl.jobs.allocation_input import read
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Web as AllocationWeb
from recrawl.model.allocation.solve import allocate

HOSTS, PAGES_A_HOST = 12, 40
DAYS, LATE = 160, 80  # freshness counts from the eightieth day on
BUDGET = 240.0


class Web:
    """Pages that change as a Poisson process does, and what was seen of them."""

    def __init__(self, rng: np.random.Generator, started: datetime) -> None:
        self.rng, self.started = rng, started
        size = HOSTS * PAGES_A_HOST
        self.urls = [f"http://h{i % HOSTS}.test/{i}" for i in range(size)]
        self.index = {url: i for i, url in enumerate(self.urls)}
        self.rate = np.where(rng.random(size) < 0.2, 0.0, 0.3 * np.exp(1.2 * rng.normal(size=size)))
        self.fetched: list[list[float]] = [[] for _ in range(size)]

    def day(self, t: datetime) -> float:
        return (t - self.started) / DAY

    def fetch(self, url: str, t: datetime) -> bool | None:
        """Whether it changed since the last fetch; None at the first."""
        page, day = self.index[url], self.day(t)
        before = self.fetched[page][-1] if self.fetched[page] else None
        self.fetched[page].append(day)
        return None if before is None else bool(self.rng.random() < -np.expm1(-self.rate[page] * (day - before)))

    def late_freshness(self) -> float:
        """Expected, given when pages were fetched: x days later a page is still fresh with probability e^−λx."""
        fresh = np.empty(len(self.urls))
        for page, days in enumerate(self.fetched):
            edges = np.array([*days, float(DAYS)])
            start, stop = np.maximum(edges[:-1], LATE), np.maximum(edges[1:], LATE)
            rate = self.rate[page]
            if rate == 0:
                fresh[page] = (stop - start).sum()
            else:
                fresh[page] = (np.exp(-rate * (start - edges[:-1])) - np.exp(-rate * (stop - edges[:-1]))).sum() / rate
        return float(fresh.mean()) / (DAYS - LATE)

    def spent(self) -> float:
        """Fetches a day, late."""
        return sum(day >= LATE for days in self.fetched for day in days) / (DAYS - LATE)


@pytest.mark.soak
def test_a_crawl_that_learns_is_nearly_as_fresh_as_one_that_knows(connection: psycopg.Connection, url: str) -> None:
    crawl = Crawl(connection)
    # In the past: jobs ask the wall clock, and nothing must seem late or to come.
    crawl.now = crawl.value("select clock_timestamp()") - DAYS * DAY
    web = Web(np.random.default_rng(11), crawl.now)
    end = crawl.now + DAYS * DAY
    for name, value in {"budget": str(BUDGET), "frequency": "0.5", "max_ahead": "10 minutes"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    crawl.add(*web.urls)
    next_jobs = crawl.now + 3 * DAY
    while crawl.now < end:
        pages = crawl.next(200, ahead=10 * MINUTE)
        results = []
        for page in pages:
            changed = web.fetch(page["url"], page["fetch_at"])
            results.append(
                {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200, "changed": changed}
            )
        crawl.report(*results)
        crawl.wait(timedelta(hours=float(web.rng.exponential(1.5))))
        if crawl.now >= next_jobs:
            run_job("rates", url)
            run_job("allocate", url)
            next_jobs += 5 * DAY

    assert_nearly_as_fresh_as_it_could_be(web, slots_of(url, connection), BUDGET)


@pytest.mark.soak
@pytest.mark.parametrize(("share", "lost"), [(0.3, 0.015), (0.5, 0.03)])  # 0.026 measured: fewer fetches teach less
def test_so_is_one_that_discovers_with_the_fetches_that_are_left(
    connection: psycopg.Connection, url: str, share: float, lost: float
) -> None:
    """New pages always wait. They are forgotten once they were fetched: what they cost is their first fetch."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()") - DAYS * DAY
    web = Web(np.random.default_rng(12), crawl.now)
    end = crawl.now + DAYS * DAY
    settings = {"budget": BUDGET, "discovery": share, "frequency": 0.5, "max_ahead": "10 minutes"}
    for name, value in settings.items():
        crawl.value("select set_setting(%s, %s)", name, str(value))
    crawl.add(*web.urls, value=[10.0])
    crawl.tick()
    found = fetched = late_fetches = 0
    next_jobs = crawl.now + 3 * DAY
    while crawl.now < end:
        if found - fetched < 300:
            crawl.add(*(f"http://h{i % HOSTS}.test/new{i}" for i in range(found, found + 1000)))
            found += 1000
        pages = crawl.next(200, ahead=10 * MINUTE)
        results = []
        for page in pages:
            changed = web.fetch(page["url"], page["fetch_at"]) if page["url"] in web.index else None
            results.append(
                {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200, "changed": changed}
            )
        crawl.report(*results)
        new = [page["page_id"] for page in pages if page["url"] not in web.index]
        fetched += len(new)
        late_fetches += len(new) * (web.day(crawl.now) >= LATE)
        if new:
            crawl.value("select keep_out(%s::bigint[])", new)
        crawl.wait(timedelta(minutes=float(web.rng.uniform(5, 15))))
        if crawl.now >= next_jobs:
            run_job("rates", url)
            run_job("allocate", url)
            next_jobs += 5 * DAY

    assert late_fetches / (DAYS - LATE) == pytest.approx(share * BUDGET, rel=0.05)
    assert_nearly_as_fresh_as_it_could_be(web, slots_of(url, connection), (1 - share) * BUDGET, lost)


def slots_of(url: str, connection: psycopg.Connection) -> Floats:
    return read(url, connection).slots.per_day


def assert_nearly_as_fresh_as_it_could_be(web: Web, cap: Floats, budget: float, lost: float = 0.015) -> None:
    first = np.arange(0, len(web.urls) + 1, PAGES_A_HOST)
    by_host = np.argsort(np.arange(len(web.urls)) % HOSTS, kind="stable")
    oracle = allocate(AllocationWeb(np.ones(len(web.urls)), web.rate[by_host], first, cap), budget)
    known = oracle.utility / len(web.urls)
    assert web.spent() == pytest.approx(budget, rel=0.05)
    assert web.late_freshness() >= known - lost * known, f"{web.late_freshness():.4f} against {known:.4f}"
