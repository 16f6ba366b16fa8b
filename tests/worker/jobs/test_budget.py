"""The budget holds while a crawl grows tenfold, drifts, loses hosts and finds pages; and one that is measured settles.

Virtual time, hour by hour: between two hours everything is made older, as jobs ask the wall clock.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import numpy as np
import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, Crawl, result_of, run_job
from recrawl import store
from recrawl.lab.driver import STEPS, Driver, FetchResult, KnownPage

STEP = 10 * MINUTE
HOSTS = 40


class World:
    """Pages that change at their own rates, on hosts whose gaps are no limit unless a test says so."""

    def __init__(self, crawl: Crawl, url: str, **settings: object) -> None:
        self.crawl, self.url = crawl, url
        self.rng = np.random.default_rng(7)
        crawl.now = crawl.value("select clock_timestamp()")
        crawl.connection.execute("set synchronous_commit = off")
        wanted: dict[str, object] = {"window_share": 0, "max_ahead": "10 minutes", "shortest_interval": "10 minutes"}
        for name, value in (wanted | settings).items():
            crawl.value("select set_setting(%s, %s)", name, str(value))
        self.found = 0
        self.hours = 0  # that passed
        self.rate: dict[int, float] = {}
        self.seen: dict[int, datetime] = {}
        self.fetched: list[int] = []  # hour by hour
        self.most_a_step: Callable[[float], int] = lambda _day: 500
        self.step = STEP

    def find(self, pages: int) -> None:
        urls = [f"http://h{i % HOSTS}.test/{i}" for i in range(self.found, self.found + pages)]
        self.found += pages
        if urls:
            self.crawl.add(*urls, value=np.exp(self.rng.normal(size=pages)).tolist())

    def lose_a_host(self, number: int) -> None:
        self.crawl.value("select exclude(%s)", rf"^http://h{number}\.test/")

    def drift(self) -> None:
        for page in self.rate:
            self.rate[page] *= float(np.exp(0.2 * self.rng.normal()))

    @property
    def now(self) -> datetime:
        return datetime(2030, 1, 1) + self.hours * HOUR + (self.crawl.now - self.hour_began)

    def hour(self) -> None:
        """The crawlers have a number of pages that they can fetch in each step."""
        crawl = self.crawl
        self.hour_began = crawl.now
        self.fetched.append(0)
        while crawl.now < self.hour_began + HOUR:
            most = self.most_a_step((self.now - datetime(2030, 1, 1)) / DAY)
            pages = crawl.next(most, ahead=self.step, lease=self.step) if most else []
            self.fetched[-1] += len(pages)
            results = []
            for page in pages:
                page_id, at = page["page_id"], self.now + (page["fetch_at"] - crawl.now)
                rate = self.rate.setdefault(page_id, float(np.exp(self.rng.normal() - 1.5)))
                before = self.seen.get(page_id)
                self.seen[page_id] = at
                new_pages = {} if before is None else {
                    "changed": bool(self.rng.random() < -np.expm1(-rate * ((at - before) / DAY)))
                }  # fmt: skip
                results.append(result_of(page, status=200) | new_pages)
            crawl.wait(self.step - timedelta(microseconds=1))
            crawl.report(*results)
            crawl.wait(timedelta(microseconds=1))
            crawl.value("select tick_at(%s, 1000, 10000)", crawl.now)
        self.hours += 1
        crawl.tick()
        crawl.age(crawl.now - crawl.value("select clock_timestamp()"))

    def allocate(self) -> None:
        run_job("allocate", self.url)
        self.crawl.tick()

    def day(self, finds: Callable[[float], float] = lambda _day: 0, allocates: bool = True) -> None:
        if allocates:
            run_job("rates", self.url)
        for _ in range(24):
            day = self.hours / 24
            self.find(round(finds(day + 1 / 24) - finds(day)))
            if allocates:
                self.allocate()
            self.hour()

    def fetched_on(self, day: int) -> int:
        return sum(self.fetched[24 * day : 24 * (day + 1)])

    @property
    def budget(self) -> float:
        return float(self.crawl.value("select budget from setting"))


BUDGET = 3000


@pytest.mark.parametrize(
    ("hours_ago", "handed_out", "retries", "wanted"),
    [
        ([1], 10, 0, 10),
        ([1], 4, 0, 13),
        ([1], 16, 0, 7),
        ([1], 30, 0, 5),  # one run corrects at most half of the budget until the next
        ([12, 1], 156, 0, 4),  # 36 too many are corrected over six hours
        ([1], 10, 96, 10),  # retries are fetches too
    ],
)
def test_a_run_makes_up_for_half_of_what_the_last_hour_missed(
    connection: psycopg.Connection,
    url: str,
    hours_ago: list[int],
    handed_out: int,
    retries: int,  # a day
    wanted: int,
) -> None:
    """240 pages, 240 fetches a day: 10 an hour. The due times follow from a time when there were twice as many."""
    crawl = Crawl(connection)
    crawl.add(*(f"http://{n}.test/" for n in range(240)), rate=[0.1] * 240)
    crawl.tick()
    crawl.value("select set_setting('budget', '240')")
    vitals = "insert into vital_hour (at, retries) values (now() - interval '12 hours', %s)"
    connection.execute(vitals, [retries / 2])
    # A block that has ended does not count.
    connection.execute("update host set blocked_until = now() - interval '1 day'")
    fetched_before = "now() - n * interval '12 hours'"
    connection.execute(
        f"""
        delete from new_page;
        update page p set
            state = 'live', fetched_at = {fetched_before}, due_at = {fetched_before} + interval '12 hours'
        from (select page_id, (page_id - 0.5) / 240.0 as n from page) f
        where f.page_id = p.page_id
        """.encode()
    )
    before = {row["page_id"]: row["due_at"] for row in crawl.rows("select page_id, due_at from page")}
    for hours in hours_ago:
        run_job("allocate", url)
        connection.execute(
            "update allocation set started_at = started_at - %s, handed_out = 0"
            " where token = (select max(token) from allocation)",
            [hours * HOUR],
        )
    connection.execute("select setval('handed_out_count', %s)", [handed_out])
    for page_id, due_at in before.items():
        connection.execute("update page set due_at = %s, planned_due = null where page_id = %s", [due_at, page_id])
    run_job("allocate", url)
    due = crawl.value("select count(*) from page where due_at between now() and now() + interval '1 hour'")
    assert due == pytest.approx(wanted, abs=1)


@pytest.mark.soak
def test_the_budget_holds_while_a_crawl_grows_tenfold(connection: psycopg.Connection, url: str) -> None:
    """In a week; then it stands still, loses half of its hosts, and finds as much again in a day."""
    world = World(Crawl(connection), url, budget=BUDGET, discovery=0.3)
    world.find(600)

    def grown(day: float) -> float:
        return float(600 * 10 ** (min(day, 7) / 7)) + 3000 * min(max(day - 11, 0), 1)

    missed = []
    for day in range(14):
        if day == 9:
            for number in range(HOSTS // 2):
                world.lose_a_host(number)
        world.day(grown)
        world.drift()
        missed.append(world.fetched_on(day) / BUDGET - 1)
        print(day, f"{missed[-1]:+.3f}", world.crawl.value("select count(*) from new_page"), flush=True)
    assert max(map(abs, missed)) <= 0.05


# -- measured --

WORK = 6000  # fetches a day that crawlers can do


def measured(world: World, days: int, finds: Callable[[float], float], allocates: bool) -> list[float]:
    """The budget at the end of each hour."""
    budgets = []
    for day in range(days):
        if allocates:
            run_job("rates", world.url)
        for _ in range(24):
            at = world.hours / 24
            world.find(round(finds(at + 1 / 24) - finds(at)))
            if allocates:
                world.allocate()
            world.hour()
            budgets.append(world.budget)
        print(day, [round(b) for b in budgets[-24::3]], world.fetched_on(day), flush=True)
    return budgets


def a_day(fetches: float, world: World) -> int:
    return round(fetches * (world.step / DAY))


@pytest.mark.soak
@pytest.mark.parametrize("allocates", [False, True], ids=["discovery", "revisits"])
def test_a_measured_budget_is_what_crawlers_can_do(connection: psycopg.Connection, url: str, allocates: bool) -> None:
    """From a tenth of it; then half of them stop."""
    world = World(Crawl(connection), url, budget=WORK / 10, discovery=0.5 if allocates else 1, frequency=0.003)
    world.step = 5 * MINUTE
    world.find(1000)
    world.crawl.value("select set_setting_at(%s, 'budget', 'measured')", world.crawl.now)
    world.most_a_step = lambda day: a_day(WORK if day < 3 else WORK / 2, world)
    budgets = measured(world, 5, lambda day: (500 if allocates else 10000) * day, allocates)
    for until, capacity in ((3, WORK), (5, WORK / 2)):
        settled = budgets[24 * (until - 2 if until == 3 else until - 1) : 24 * until]
        assert 0.9 * capacity <= min(settled) <= max(settled) <= 1.1 * capacity
        assert abs(sum(world.fetched[24 * (until - 1) : 24 * until]) / capacity - 1) <= 0.1


@pytest.mark.soak
@pytest.mark.parametrize("allocates", [False, True], ids=["discovery", "revisits"])
def test_crawlers_that_come_back_in_the_morning_find_the_budget_as_it_was(
    connection: psycopg.Connection, url: str, allocates: bool
) -> None:
    """They stop for the last eight hours of each day. New pages are paced while they work; revisits wait for them."""
    world = World(Crawl(connection), url, budget=WORK, discovery=0.5 if allocates else 1, frequency=0.003)
    world.step = 5 * MINUTE
    world.find(1000)
    world.crawl.value("select set_setting_at(%s, 'budget', 'measured')", world.crawl.now)
    world.most_a_step = lambda day: a_day(WORK, world) if day % 1 < 2 / 3 else 0
    budgets = measured(world, 4, lambda day: (500 if allocates else 10000) * day, allocates)
    in_a_day = WORK * 2 / 3
    for day in range(1, 4):
        morning = budgets[24 * day : 24 * day + 8]
        can = in_a_day if allocates else WORK
        assert 0.9 * can <= min(morning) <= max(morning) <= 1.1 * can, "they find what they can do"
        assert world.fetched_on(day) >= 0.9 * in_a_day, "what they left at night, they make good"
    assert max(budgets) <= 1.1 * WORK


# -- where pages fail --


class Failing:
    """4,000 pages of 400 hosts. From some day on a tenth of the hosts answers with 500."""

    def __init__(self, day: float) -> None:
        self.rng = np.random.default_rng(1)
        self.day = day
        self.asked: list[float] = []
        self.failed: list[float] = []

    def new_pages(self, begin: float, end: float) -> list[KnownPage]:
        return [KnownPage(f"http://h{i % 400}.test/{i}") for i in range(4000)] if begin < 0 else []

    def answer(self, url: str, page_id: int, day: float) -> FetchResult:
        self.asked.append(day)
        if day >= self.day and page_id % 10 == 3:
            self.failed.append(day)
            return FetchResult(500)
        return FetchResult(200, bool(self.rng.random() < 0.1))


@pytest.mark.soak
def test_pages_that_fail_do_not_take_the_budget(connection: store.Connection, url: str) -> None:
    """An earlier version made 1,683 fetches a day instead of 1,000.

    The mean of the week is stable: 961 to 980 fetches a day in nine crawls with different host names and answers. It
    was 1,070 to 1,076 in three crawls in which allocate set no fetches aside for retries. Single days are not stable:
    they had 623 to 1,379 fetches. Fetches that are set aside for retries make the intervals of all pages longer. So
    too few pages are due on the next two days, and often again about one interval later. The sizes of these waves
    differ between crawls, and between two runs of one crawl, because the random numbers of the database have no seed.
    """
    web = Failing(9)
    driver = Driver(url, connection, web, datetime(2031, 1, 1, tzinfo=UTC))
    driver.set("budget", 1000)
    driver.set("default_gap", "1 second")
    for step in range(16 * STEPS):
        if step % 12 == 0:
            driver.work("allocate")
        driver.step()
    fetched, failed = (np.bincount(np.array(days, int), minlength=16) for days in (web.asked, web.failed))
    print(fetched, failed)
    assert failed[10:13].min() > 150, "as many as would be too many"
    assert np.abs(fetched[:9] / 1000 - 1).max() <= 0.05
    assert abs(fetched[9:].mean() / 1000 - 1) <= 0.06
    assert 250 <= fetched.min() <= fetched.max() <= 1750, "twice as far from the budget as the days above"
    ((retries, unused),) = connection.execute(
        "select for_retries, unused from recrawl.allocation_run order by started_at desc limit 1"
    ).fetchall()
    assert 50 < retries < 200 and unused < 1
