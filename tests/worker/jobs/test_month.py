"""A month of a crawl with every job on its schedule: the budget, the freshness, and that nothing grows.

The clock of the servers is moved on, step by step, through libfaketime. Verbs and jobs are called as crawlers and the
worker call them. Once a week the standby is promoted, and the primary becomes the next standby: in turn without a loss,
and with the loss of a step.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

import numpy as np
import psutil
import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import Crawl, misplaced
from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.jobs.retention import Retention
from recrawl.jobs.upkeep import Upkeep
from recrawl.jobs.vitals import Vitals
from recrawl.setup import migrate
from recrawl.setup.programs import program
from worker.clock import LIBRARY, Clock
from worker.setup.test_failover import Server

pytestmark = [pytest.mark.soak, pytest.mark.skipif(LIBRARY is None, reason="apt install faketime")]

DAYS, WARM_UP, GROWS = 30, 4, 10
PROMOTIONS = [7, 14, 21, 28]  # days
FETCHING, RESTING = 10, 14  # minutes: a step
STEPS = 24 * 60 // (FETCHING + RESTING)  # a day
AHEAD = f"{FETCHING} minutes"
BUDGET, HOSTS, PAGES, FOUND_A_DAY = 1200, 40, 600, 40
SETTINGS = {
    "budget": BUDGET,
    "discovery": 0.2,
    "default_gap": "10 s",
    "max_ahead": AHEAD,
    "allocate_every": "3 hours",
    "rates_every": "12 hours",
    "opic_every": "12 hours",
    "shortest_interval": "1 hour",
    "keep_vitals": "2 days",
    "keep_history": "8 days",
}


@pytest.fixture
def clock(open_folder: Path) -> Iterator[Clock]:
    with Clock(open_folder / "month") as clock:
        yield clock


class Pair:
    """A primary and its standby."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.clock = clock
        programs = program("postgres").parent
        self.primary, self.standby = (Server(programs, folder / f"month-{name}") for name in ("a", "b"))
        hosts = ",".join(quote(str(server.folder), safe="") for server in (self.primary, self.standby))
        self.url = f"postgresql://postgres@/postgres?host={hosts}&target_session_attrs=read-write"

    def make(self) -> None:
        with self.clock.applied():
            self.primary.make()
            for side in ("sender", "receiver"):  # each step takes longer than these timeouts
                self.primary.query(f"alter system set wal_{side}_timeout = 0")
            self.primary.query("select pg_reload_conf()")
            migrate.upgrade(self.primary.url)
            self.standby.follow(self.primary, rewind=False)

    def promote(self, end: Callable[[], None]) -> None:
        """Promotes the standby after the end of the primary, which then follows it."""
        end()
        with self.clock.applied():
            self.standby.promote()
            self.primary.follow(self.standby, rewind=True)
        self.primary, self.standby = self.standby, self.primary

    def kill(self) -> None:
        self.primary.kill()
        self.standby.kill()


@pytest.fixture
def pair(open_folder: Path, clock: Clock) -> Iterator[Pair]:
    pair = Pair(open_folder, clock)
    try:
        pair.make()
        yield pair
    finally:
        pair.kill()


class Web:
    """Pages that change at rates of their own, and link to others; what a crawler that fetches one reports."""

    def __init__(self) -> None:
        self.rng = np.random.default_rng(11)
        self.pages = 0
        self.rate = np.empty(0)
        self.version = np.empty(0, np.int64)
        self.seen = np.empty(0, np.int64)  # the version that was fetched last; -1 = none

    def grow(self, pages: int) -> list[str]:
        first, self.pages = self.pages, self.pages + pages
        self.rate = np.append(self.rate, np.exp(self.rng.normal(-0.7, 1, pages)))
        self.version = np.append(self.version, np.zeros(pages, np.int64))
        self.seen = np.append(self.seen, np.full(pages, -1))
        return [self.address(page) for page in range(first, self.pages)]

    @staticmethod
    def address(page: int) -> str:
        return f"http://h{page % HOSTS}.test/{page}"

    def pass_time(self, days: float) -> None:
        self.version += self.rng.poisson(self.rate * days)

    def fetch(self, url: str) -> dict[str, object]:
        page = int(url.rpartition("/")[2])
        self.seen[page] = self.version[page]
        links = [self.address(int(other)) for other in (self.version[page] + np.arange(3) * (page + 7)) % self.pages]
        return {"status": 200, "content_hash": f"{self.version[page]}", "links": links}

    def fresh(self, value: np.ndarray) -> float:
        """Of the pages that were fetched before, by value."""
        return float((value * (self.seen == self.version)).sum() / value[self.seen >= 0].sum())


def connect(url: str) -> psycopg.Connection:
    options = "-c search_path=recrawl,recrawl_internal -c synchronous_commit=off"
    return psycopg.connect(url, autocommit=True, options=options)


class Month:
    def __init__(self, crawl: Crawl, pair: Pair) -> None:
        self.crawl, self.pair, self.clock, self.web = crawl, pair, pair.clock, Web()
        self.handed_out = 0
        url = pair.url
        self.always, self.retention = [Upkeep(url), Vitals(url)], Retention(url)
        self.batches = {name: entry.load()(url) for name, entry in JOBS.items() if entry.is_batch}
        self.fresh: list[float] = []

    def step(self) -> None:
        crawl, web = self.crawl, self.web
        for job in self.always:
            job.run()
        for name in store.schedule.due_jobs(crawl.connection):
            self.batches[name].run()
        pages = crawl.rows("select * from next_pages(1000, ahead => %s)", AHEAD)
        self.handed_out += len(pages)
        web.pass_time(1 / STEPS)
        self.clock.step(60 * FETCHING)
        told = [{"page_id": page["page_id"], "lease_id": page["lease_id"]} | web.fetch(page["url"]) for page in pages]
        crawl.rows("select * from report(%s)", Jsonb(told))
        self.clock.step(60 * RESTING)

    def day(self, grows: bool) -> int:
        """Pages that were handed out."""
        before = self.handed_out
        for step in range(STEPS):
            if grows and step % (STEPS // 4) == 0:
                self.crawl.rows("select * from add_pages(%s)", self.web.grow(FOUND_A_DAY // 4))
            if step % (STEPS // 20) == 0:
                self.retention.run()
                # Autovacuum follows the real clock. In the simulated month it would run only a few times.
                self.crawl.connection.execute("vacuum")
            self.step()
        value = self.crawl.rows("select url, value from page_status")
        of_page = {int(row["url"].rpartition("/")[2]): row["value"] for row in value}
        self.fresh.append(self.web.fresh(np.array([of_page.get(page, 0.0) for page in range(self.web.pages)])))
        return self.handed_out - before

    def fail_over(self, loses_a_step: bool) -> None:
        """The crawler and the worker go on with the standby."""
        if loses_a_step:
            self.pair.primary.cut_off_standby()
            self.step()
            self.pair.promote(self.pair.primary.kill)
        else:
            self.pair.promote(self.pair.primary.stop)
        self.crawl.connection.close()
        self.crawl.connection = connect(self.pair.url)
        for job in (*self.always, self.retention):
            with suppress(psycopg.OperationalError):  # its connection was to the old primary
                job.run()

    def sizes(self) -> "Counter[tuple[str, str]]":
        """Rows and bytes of every table; of logs, whose parts take turns, of all parts."""
        self.crawl.connection.execute("vacuum")
        names = self.crawl.rows(
            "select relname as name, pg_total_relation_size(oid) as bytes from pg_class"
            " where relnamespace = 'recrawl_internal'::regnamespace and relkind = 'r'"
        )
        sizes: Counter[tuple[str, str]] = Counter()
        for table in names:
            name = re.sub(r"_\d$", "", table["name"])
            sizes[name, "rows"] += self.crawl.value(f"select count(*) from {table['name']}")
            sizes[name, "bytes"] += table["bytes"]
        return sizes


def test_a_month_goes_by(pair: Pair) -> None:
    crawl = Crawl(connect(pair.url))
    for name, value in SETTINGS.items():
        crawl.value("select set_setting(%s, %s)", name, str(value))
    month = Month(crawl, pair)
    crawl.rows("select * from add_pages(%s)", month.web.grow(PAGES))
    off, sizes, memory = [], [], []
    for day in range(DAYS):
        if day in PROMOTIONS:
            month.fail_over(loses_a_step=PROMOTIONS.index(day) % 2 == 1)
        off.append(month.day(grows=day < GROWS) / BUDGET - 1)
        if day in (GROWS + 8, DAYS - 1):
            sizes.append(month.sizes())
            memory.append(psutil.Process().memory_info().rss / 1e6)  # MB
        crawl.now = crawl.value("select clock_timestamp()")
        assert misplaced(crawl) == []
        vital = crawl.row(
            "select fresh, expected, limit_with_gaps from vitals where fresh is not null order by at desc limit 1"
        )
        print(day, f"{off[-1]:+.3f} fresh {month.fresh[-1]:.3f}", {k: round(v or 0, 3) for k, v in vital.items()})
    print(memory)

    assert max(map(abs, off[WARM_UP:])) <= 0.05

    late = crawl.row(
        "select avg(fresh) as fresh, avg(expected) as expected, avg(limit_with_gaps) as limit_with_gaps"
        " from vitals_by_hour where at > clock_timestamp() - interval '7 days'"
    )
    assert late["fresh"] == pytest.approx(fmean(month.fresh[-7:]), abs=0.03), "what is estimated is so"
    assert 0.95 * late["expected"] <= fmean(month.fresh[-7:]) <= 1.03 * late["limit_with_gaps"]

    failed = crawl.rows("select job, message from job_run where not ok")
    assert failed == []
    week_ago = crawl.value("select clock_timestamp() - interval '7 days'")
    counted = crawl.rows("select job, count(*) as runs from job_run where started_at > %s group by job", week_ago)
    runs = {row["job"]: row["runs"] for row in counted}
    assert 13 <= runs["rates"] <= 15 and runs["opic"] >= 13 and runs["allocate"] >= 50, runs

    then, now = sizes
    for (table, what), size in now.items():
        assert size <= 1.25 * then[table, what] + {"rows": 30, "bytes": 100_000}[what], (table, what)
    assert memory[1] <= memory[0] + 20
