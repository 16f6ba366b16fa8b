"""Three weeks of a crawl in which hosts come, go, block and drift: what is promised holds on every day."""

from datetime import datetime, timedelta
from statistics import fmean

import numpy as np
import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, misplaced, run_job

DAYS, STEP = 21, 10 * MINUTE
BUDGET, DISCOVERY = 2000, 0.3
GAPS = [SECOND, SECOND, 5 * SECOND, MINUTE, 30 * MINUTE]
LEASE = 30 * MINUTE


class Host:
    """A site: how often its pages change, and until when it answers 429."""

    def __init__(self, name: str, gap: timedelta, rate: float) -> None:
        self.name, self.gap, self.rate = name, gap, rate
        self.pages = 0
        self.annoyed_until = self.blocked_until = datetime.min
        self.is_gone = False
        self.due_then: list[tuple[datetime, datetime]] = []  # what was due by then, and by when there are slots for it
        self.last_start: datetime | None = None


class Weeks:
    """The crawl's own calendar goes on; the database is made older by a day each night, as jobs ask the wall clock."""

    def __init__(self, crawl: Crawl, url: str) -> None:
        self.crawl, self.url = crawl, url
        self.rng = np.random.default_rng(5)
        self.start = crawl.now = crawl.value("select clock_timestamp()")
        self.today = 0
        self.hosts: dict[str, Host] = {}
        self.seen: dict[int, datetime] = {}  # when each page was last fetched
        self.out: dict[int, datetime] = {}  # until when it is leased
        self.promised: dict[int, datetime] = {}  # when it is next wanted, as its report said
        self.waiting: list[Row] = []  # handed out at the step before
        self.fetched = self.new = 0  # today
        self.least_new = 0  # that could be fetched at any moment of the day
        self.grown_from = 0
        self.excess: list[float] = []  # of fetches over the budget, beyond growth, day by day

    @property
    def now(self) -> datetime:
        today: timedelta = self.crawl.now - self.start
        return datetime(2030, 1, 1) + self.today * DAY + today

    def open_hosts(self) -> list[Host]:
        return [host for host in self.hosts.values() if not host.is_gone]

    def some_host(self) -> Host:
        hosts = self.open_hosts()
        return hosts[self.rng.integers(len(hosts))]

    # ---------------------------------------------------------------------------------------- what happens to hosts

    def a_host_comes(self) -> None:
        number = len(self.hosts)
        host = Host(f"h{number}.test", GAPS[number % len(GAPS)], float(np.exp(self.rng.normal())))
        self.hosts[host.name] = host
        self.crawl.value("select set_host(%s, gap => %s)", host.name, host.gap)
        self.find(host, 60)

    def find(self, host: Host, pages: int) -> None:
        urls = [f"http://{host.name}/{i}" for i in range(host.pages, host.pages + pages)]
        host.pages += pages
        self.crawl.add(*urls, value=np.exp(self.rng.normal(size=pages)).tolist())

    def a_host_goes(self) -> None:
        host = self.some_host()
        host.is_gone = True
        if self.rng.random() < 0.5:
            self.crawl.value("select exclude(%s)", rf"^http://{host.name}/")
        else:
            self.crawl.value(
                "select keep_out(array(select p.page_id from page p join host h using (host_id) where h.name = %s))",
                host.name,
            )

    def a_host_is_blocked(self) -> None:
        host, days = self.some_host(), float(self.rng.uniform(0.5, 3))
        host.blocked_until = self.now + days * DAY
        self.crawl.value(
            "select block_host_at(%s, %s, %s, 'test')", self.crawl.now, host.name, self.crawl.now + days * DAY
        )

    def a_host_drifts(self) -> None:
        host = self.some_host()
        host.rate *= float(np.exp(self.rng.normal()))
        if self.rng.random() < 0.3:
            for row in self.crawl.rows(
                "select p.page_id from page p join host h using (host_id) where h.name = %s limit 5", host.name
            ):
                self.crawl.value("select set_rate(%s, %s)", row["page_id"], host.rate)

    # --------------------------------------------------------------------------------------------------- a step

    def step(self) -> None:
        self.report()
        self.least_new = min(self.least_new, self.crawl.value(
            "select count(*) from new_page join host using (host_id) "
            "where gap <= '1 minute' and (blocked_until > %s) is not true", self.crawl.now))  # fmt: skip
        pages = self.crawl.next(200, ahead=STEP, lease=LEASE)
        assert len({page["page_id"] for page in pages}) == len(pages)
        for page in sorted(pages, key=lambda page: page["fetch_at"]):
            self.check(page)
        self.fetched += len(pages)
        self.new += sum(page["page_id"] not in self.seen and page["attempt"] == 1 for page in pages)
        self.waiting = pages
        self.crawl.wait(STEP)

    def check(self, page: Row) -> None:
        host, page_id, slot = self.hosts[page["host"]], page["page_id"], page["fetch_at"]
        at = self.now + (slot - self.crawl.now)
        assert not host.is_gone, "a host that was taken out"
        assert host.blocked_until <= at
        assert host.last_start is None or at - host.last_start >= host.gap, "closer than the gap"
        host.last_start = at
        assert self.out.get(page_id, at) <= at, "it is out"
        assert self.promised.get(page_id, slot) <= slot, "it is not due yet"
        self.out[page_id] = self.now + STEP + LEASE

    def report(self) -> None:
        """Some crawlers crash, but not late in the day: leases are over when the night makes everything older."""
        results = []
        crashed = self.rng.random() < 0.03 and 0 < self.now.hour < 20
        for page in self.waiting if not crashed else []:
            host, page_id, result = self.hosts[page["host"]], page["page_id"], {}
            at = self.now - STEP + (page["fetch_at"] - self.crawl.now + STEP)
            del self.out[page_id]
            if host.annoyed_until > at:
                result = {"status": 429, "retry_after": str(int(self.rng.integers(60, 7200)))}
            else:
                before = self.seen.get(page_id)
                result = {"status": 200}
                if before:
                    result["changed"] = bool(self.rng.random() < -np.expm1(-host.rate * ((at - before) / DAY)))
                self.seen[page_id] = at
            results.append({"page_id": page_id, "lease_id": page["lease_id"]} | result)
        for result, answer in zip(results, self.crawl.report(*results), strict=True):
            assert answer["code"] == "ok", answer
            if result["status"] == 200 and answer["next_fetch_at"]:
                self.promised[answer["page_id"]] = answer["next_fetch_at"]
        self.waiting = []

    # ---------------------------------------------------------------------------------------------------- a day

    def day(self) -> None:
        self.fetched = self.new = 0
        self.least_new = 10**9
        self.promised = {}
        run_job("rates", self.url)
        run_job("allocate", self.url)
        for _ in range(2 if self.today < 20 else 1):
            self.a_host_comes()
        self.a_host_drifts()
        if self.today % 2:
            self.a_host_is_blocked()
            self.some_host().annoyed_until = self.now + float(self.rng.uniform(1, 8)) * HOUR
        if self.today % 3 == 2:
            self.a_host_goes()
        end = self.crawl.now + DAY
        while self.crawl.now < end:
            if self.rng.random() < 0.5:
                self.find(self.some_host(), 8)
            self.step()
        self.report()
        self.crawl.tick()

    def judge_the_day(self) -> None:
        crawl = self.crawl
        count = crawl.row(
            "select (select count(*) from queue) as queue, (select count(*) from new_page) as new, "
            "(select count(*) from inbox) as inbox, (select count(*) from lease) as lease, "
            "(select count(*) from page where state = 'live') as live, "
            "(select count(*) from page where state = 'live' and fetched_at is not null) as fetched"
        )
        assert (count["queue"] + count["new"], count["inbox"], count["lease"]) == (count["live"], 0, 0)
        assert misplaced(crawl) == []

        # Revisits come at the frequency that was in force when they were promised: while the crawl grows, that is more
        # than the budget would now give them.
        grown = count["fetched"] / max(self.grown_from, 1) - 1
        self.grown_from = count["fetched"]
        if self.today >= 8:  # the first days' pages come back together
            assert BUDGET * 0.95 <= self.fetched <= BUDGET * (1.1 + grown), "hosts that were blocked come back together"
            self.excess.append(self.fetched / BUDGET - 1 - grown)
            assert fmean(self.excess) <= 0.05
        if self.least_new > 100:
            assert self.new >= DISCOVERY * BUDGET - 100  # what came too much the day before is made up for, so far

        self.judge_lateness()
        self.judge_horizons()

    def judge_lateness(self) -> None:
        """What was due when a day ended is fetched once its host had slots for all of it: less what its new pages may
        have, at most twice their share."""
        now = self.now
        oldest = {
            row["name"]: row
            for row in self.crawl.rows(
                "select name, min(due_at) as due_at, count(*) as pages from queue join host using (host_id) "
                "where due_at <= %s group by name",
                self.crawl.now,
            )
        }
        for host in self.open_hosts():
            row = oldest.get(host.name)
            if max(host.blocked_until, host.annoyed_until) > now - DAY:
                host.due_then = []
                continue
            late = self.crawl.now - row["due_at"] if row else timedelta(0)
            for due_by, served_by in host.due_then:
                assert served_by > now or now - late >= due_by, f"{host.name} is {late} late"
            host.due_then = [then for then in host.due_then if then[1] > now]
            if row:
                slots = row["pages"] / (1 - 2 * DISCOVERY)
                host.due_then.append((now, now + 1.1 * slots * host.gap + HOUR))

    def judge_horizons(self) -> None:
        """After a tick they stand right below what they are for."""
        crawl = self.crawl
        crawl.wait(3 * SECOND)
        crawl.value("select tick_at(%s, 100, 100)", crawl.now)
        stands = crawl.row(
            "select from_micros((select last_value from host_horizon)) as horizon, "
            "(select min(ready_at) from host) as first, (select last_value from new_classes) as classes, "
            "(select bit_or(1::bigint << new_class) from host) as occupied"
        )
        assert stands["horizon"] == min(stands["first"], crawl.now) - SECOND / 2
        assert stands["first"] > crawl.now - HOUR, "a host that is not served holds scans up"
        assert stands["classes"] == (stands["occupied"] or 0)
        for row in crawl.rows(
            "select new_since(new_class) as horizon, min(new_ready_at) as first from host "
            "where new_class is not null group by new_class"
        ):
            assert row["horizon"] == min(row["first"], crawl.now) - SECOND / 2
        crawl.wait(-3 * SECOND)


@pytest.mark.soak
def test_what_is_promised_holds_for_weeks(connection: psycopg.Connection, url: str) -> None:
    connection.execute("set synchronous_commit = off")
    connection.execute("select set_setting('window_share', '0')")
    crawl = Crawl(connection)
    settings = {"budget": BUDGET, "discovery": DISCOVERY, "max_ahead": "10 minutes", "frequency": 0.25}
    for name, value in settings.items():
        crawl.value("select set_setting(%s, %s)", name, str(value))
    weeks = Weeks(crawl, url)
    for _ in range(30):
        weeks.a_host_comes()
    for weeks.today in range(DAYS):
        weeks.day()
        weeks.judge_the_day()
        crawl.age(DAY)
