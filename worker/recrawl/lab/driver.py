"""Simulated crawlers and a worker's jobs in a real database, all of it by a virtual clock."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from recrawl import store
from recrawl.jobs.registry import JOBS

DAY = timedelta(days=1)
STEP = timedelta(minutes=10)  # crawlers look that far ahead
STEPS = DAY // STEP  # a day
MOST = 1000  # pages at once


class Answer(NamedTuple):
    status: int
    changed: bool | None = None  # since the last fetch; None = nobody knows
    links: Sequence[str] | None = None  # None = as they were
    sketch: Sequence[int] | None = None  # of its content


class Told(NamedTuple):
    url: str
    value: float | None = None  # None = nobody says


class CrawledWeb(Protocol):
    """Days are counted from the beginning of the crawl."""

    def told(self, begin: float, end: float) -> Sequence[Told]:
        """Of pages that become known in that time without a link to them."""

    def answer(self, url: str, page_id: int, day: float) -> Answer: ...


class Driver:
    def __init__(self, url: str, connection: store.Connection, web: CrawledWeb, begin: datetime) -> None:
        self.url, self.connection, self.web = url, connection, web
        self.now = self.begin = begin
        self._told_until = float("-inf")
        connection.execute("set synchronous_commit = off")
        self.set("max_ahead", f"{STEP.total_seconds():g} s")

    def day(self, t: datetime) -> float:
        return (t - self.begin) / DAY

    @property
    def today(self) -> float:
        return self.day(self.now)

    def set(self, name: str, value: object) -> None:
        store.set_setting_at(self.connection, self.now, name, str(value))

    def step(self, length: timedelta = STEP) -> None:
        """Crawlers fetch what is ready until the next step, and report it then."""
        if told := self.web.told(self._told_until, self.today):
            store.add_pages_at(self.connection, self.now, *zip(*told, strict=True))
        self._told_until = self.today
        asked = self.now
        self.now += length
        while pages := store.next_pages_at(self.connection, asked, MOST, length, 2 * max(length, STEP)):
            answers = [self.web.answer(page.url, page.page_id, self.day(page.fetch_at)) for page in pages]
            store.report_at(self.connection, self.now, pages, *zip(*answers, strict=True))
            if len(pages) < MOST:
                break
        store.tick_at(self.connection, self.now)
        store.fold_vitals_at(self.connection, self.now)

    def work(self, *jobs: str) -> None:
        for name in jobs:
            job = JOBS[name].load()(self.url)
            job.as_of = self.now
            job.run()
