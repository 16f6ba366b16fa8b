"""Simulated crawlers and a worker's jobs on a real database, with a virtual clock."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.lab import verbs_at

DAY = timedelta(days=1)
STEP = timedelta(minutes=10)  # how far ahead crawlers ask for pages
STEPS = DAY // STEP  # per day
MOST = 1000  # pages per call


class FetchResult(NamedTuple):
    status: int
    changed: bool | None = None  # since the last fetch; None = unknown
    links: Sequence[str] | None = None  # None = the same as before
    sketch: Sequence[int] | None = None  # of the content


class KnownPage(NamedTuple):
    url: str
    value: float | None = None  # None = not given


class CrawledWeb(Protocol):
    """Days are counted from the beginning of the crawl."""

    def new_pages(self, begin: float, end: float) -> Sequence[KnownPage]:
        """The pages that become known between these days although no page links to them."""

    def answer(self, url: str, page_id: int, day: float) -> FetchResult: ...


class Driver:
    def __init__(self, url: str, connection: store.Connection, web: CrawledWeb, begin: datetime) -> None:
        self.url, self.connection, self.web = url, connection, web
        self.now = self.begin = begin
        self._known_until = float("-inf")
        connection.execute("set synchronous_commit = off")
        self.set("max_ahead", f"{STEP.total_seconds():g} s")

    def day(self, t: datetime) -> float:
        return (t - self.begin) / DAY

    @property
    def today(self) -> float:
        return self.day(self.now)

    def set(self, name: str, value: object) -> None:
        verbs_at.set_setting_at(self.connection, self.now, name, str(value))

    def step(self, length: timedelta = STEP) -> None:
        """Fetches the pages that are ready until the next step, and reports them at the next step."""
        if pages := self.web.new_pages(self._known_until, self.today):
            verbs_at.add_pages_at(self.connection, self.now, *zip(*pages, strict=True))
        self._known_until = self.today
        asked = self.now
        self.now += length
        while pages := verbs_at.next_pages_at(self.connection, asked, MOST, length, 2 * max(length, STEP)):
            answers = [self.web.answer(page.url, page.page_id, self.day(page.fetch_at)) for page in pages]
            verbs_at.report_at(self.connection, self.now, pages, *zip(*answers, strict=True))
            if len(pages) < MOST:
                break
        verbs_at.tick_at(self.connection, self.now)
        verbs_at.fold_vitals_at(self.connection, self.now)

    def work(self, *jobs: str) -> None:
        for name in jobs:
            job = JOBS[name].load()(self.url)
            job.as_of = self.now
            job.run()
