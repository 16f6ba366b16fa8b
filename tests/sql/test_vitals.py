"""The counts by minute and hour agree with a plain count of the reports. The state of the crawl is shown correctly."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, planted_allocation, result_of

COUNTS = ["changed", "unchanged", "first", "missing", "failed", "throttled", "denied", "stale", "duplicate", "refused"]
LATE = ["late_1m", "late_10m", "late_1h", "late_6h", "late_1d", "late_more"]


def take(crawl: Crawl) -> bool:
    return bool(crawl.value("select take_vitals_at(%s)", crawl.now))


def sums(crawl: Crawl, view: str = "vitals") -> dict[str, int]:
    wanted = ", ".join(f"coalesce(sum({name}), 0)::int as {name}" for name in ["fetches", *COUNTS, *LATE])
    return crawl.row(f"select {wanted} from {view}")


def events(crawl: Crawl, kind: str) -> list[tuple[str, str, str | None]]:
    return [(e["subject"], e["says"], e["by"]) for e in crawl.rows("select * from events where kind = %s", kind)]


def login(crawl: Crawl) -> str:
    return str(crawl.value("select session_user"))


@pytest.fixture
def another(url: str) -> Any:
    with psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as connection:
        connection.execute("set lock_timeout = '2s'")
        connection.commit()
        yield Crawl(connection)


# ------------------------------------------------------------------------------------------------------------- counts


class Model:
    """Counts what each report is answered."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        self.counts: Counter[str] = Counter()

    def count(self, results: list[Row], answers: list[Row]) -> None:
        for result, answer in zip(results, answers, strict=True):
            what = self.what(result, answer)
            self.counts[what] += 1
            self.counts["fetches"] += what not in ("stale", "duplicate", "refused")

    def what(self, result: Row, answer: Row) -> str:
        if answer["code"] != "ok":
            refused = {"stale_lease": "stale", "duplicate": "duplicate"}
            if answer["detail"] == "the lease does not hold the page; it counts as an observation":
                self.seen.add(answer["page_id"])
            return refused.get(answer["code"], "refused")
        if result.get("robots_denied"):
            return "denied"
        status = result["status"]
        if status in (429, 503):
            return "throttled"
        if status <= 0 or status >= 500:
            return "failed"
        if status >= 400 or status == 301:
            return "missing"
        if answer["page_id"] not in self.seen:
            self.seen.add(answer["page_id"])
            return "first"
        return "changed" if result.get("changed") and status != 304 else "unchanged"


def random_result(chance: random.Random, page: Row) -> Row:
    what = chance.random()
    if what < 0.6:
        return result_of(page, status=chance.choice([200, 200, 204, 304]), changed=chance.random() < 0.4)
    if what < 0.9:
        status = chance.choice([404, 500, 0, -5, 301, 429, 503, 200])
        more: Row = {"redirect_to": "http://elsewhere.test/"} if status == 301 else {}
        return result_of(page, status=status, retry_after="30", **more)
    return chance.choice(
        [
            result_of(page, robots_denied=True),
            result_of(page, status=42),
            result_of(page) | {"page_id": 10**9},
            result_of(page) | {"lease_id": 10**9},
            {"status": 200},
        ]
    )


@pytest.mark.parametrize("seed", range(3))
def test_what_is_reported_adds_up(crawl: Crawl, seed: int) -> None:
    chance, model, calls = random.Random(seed), Model(), 0
    crawl.add(*(f"http://host{n % 15}.test/{n}" for n in range(60)))
    crawl.value("select set_setting('frequency', '200')")
    for _ in range(120):
        crawl.tick()
        pages = crawl.next(chance.choice([1, 5, 20]), lease=chance.choice([MINUTE, HOUR]))
        crawl.wait(chance.choice([SECOND, 20 * SECOND, 2 * MINUTE]))
        results = [random_result(chance, page) for page in pages]
        results += chance.choices(results, k=min(2, len(results)))
        if results:
            model.count(results, crawl.report(*results))
            calls += 1
        if chance.random() < 0.5:
            take(crawl)
    assert crawl.value("select count(*) from pulse where expired is null") == calls > 20
    crawl.wait(MINUTE)
    assert take(crawl)
    found = sums(crawl)
    for name in ["fetches", *COUNTS]:
        assert found[name] == model.counts[name], name
    assert sums(crawl, "vitals_by_hour") == found
    assert found["fetches"] == sum(found[name] for name in COUNTS[:7])
    assert all(found[name] for name in COUNTS)


def test_a_report_that_is_committed_three_minutes_late_is_counted_in_its_minute(crawl: Crawl, another: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    another.now = crawl.now
    another.report(result_of(page))
    for _ in range(3):
        crawl.wait(MINUTE)
        assert take(crawl)
    assert sums(crawl)["fetches"] == 0
    another.connection.commit()
    crawl.wait(MINUTE)
    assert take(crawl) and sums(crawl)["fetches"] == 1


def test_lateness_is_counted_by_how_late_the_slot_was(crawl: Crawl) -> None:
    late = {"late_1m": 30 * SECOND, "late_10m": 9 * MINUTE, "late_1h": HOUR, "late_6h": 2 * HOUR, "late_1d": DAY,
            "late_more": 3 * DAY}  # fmt: skip
    start = crawl.now
    crawl.add(*(f"http://{n}.test/" for n in range(6)))
    crawl.tick()
    first = crawl.next()
    crawl.report_ok(first)
    crawl.tick()
    assert crawl.value("select late from pulse") is None, "a first fetch is not late"
    seconds = 0.0
    for nth, wait in enumerate(late.values()):
        crawl.now = start + DAY + wait  # a day is their period
        crawl.tick()
        (page,) = crawl.next(1)
        crawl.report_ok([page])
        seconds += wait.total_seconds()
        crawl.wait(MINUTE)
        take(crawl)
        row = sums(crawl)
        assert [row[name] for name in LATE] == [1] * (nth + 1) + [0] * (5 - nth)
    assert crawl.value("select sum(late_seconds) from vitals") == pytest.approx(seconds, abs=30)
    assert crawl.value("select sum(skipped) from vitals") == 2, "of three days, two whole intervals passed"


def test_each_report_counts_in_one_class_of_lateness(crawl: Crawl) -> None:
    """Two reports at each limit: one at the limit, one a second later."""
    late = [limit + more for limit in (60, 600, 3600, 21600, 86400) for more in (0, 1)]
    crawl.connection.execute(
        "insert into pulse (part, at, letters, late) values (log_part(%(at)s), %(at)s, 'u', %(late)s)",
        {"at": crawl.now, "late": late},
    )
    crawl.wait(MINUTE)
    take(crawl)
    row = sums(crawl)
    assert [row[name] for name in LATE] == [1, 2, 2, 2, 2, 1]


def test_a_report_without_a_lease_is_neither_late_nor_in_time(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.wait(HOUR)
    crawl.tick()
    assert codes(crawl.report({"page_id": 1, "status": 200})) == ["ok"]
    assert crawl.rows("select late from pulse") == [{"late": None}] * 2


def test_what_tells_nothing_is_counted_as_untold(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.tick()
    for more in ({}, {}, {"changed": False}, {"changed": True}):
        crawl.tick()
        crawl.report_ok(crawl.next(), **more)
        crawl.wait(25 * HOUR)
    assert [row["letters"] for row in crawl.rows("select letters from pulse order by at")] == list("fnuc")
    crawl.now -= 25 * HOUR - MINUTE
    take(crawl)
    assert crawl.row("select changed, unchanged, change_unknown from vitals where fetches > 0") == {
        "changed": 1, "unchanged": 0, "change_unknown": 0,
    }  # fmt: skip


def test_asks_pages_handed_out_and_leases_that_ran_out_are_counted(crawl: Crawl) -> None:
    take(crawl)
    crawl.wait(MINUTE)
    crawl.add("http://a.test/", "http://b.test/", "http://b.test/2")
    crawl.tick()
    (page, _) = crawl.next(lease=10 * SECOND)
    assert crawl.next() == []
    crawl.report_ok([page])
    crawl.wait(MINUTE)
    crawl.tick()
    take(crawl)
    row = crawl.row("select * from vitals order by at desc limit 1")
    assert (row["calls"], row["empty_calls"], row["handed_out"], row["expired"], row["pages_added"]) == (2, 1, 2, 0, 3)
    crawl.value("select pause()")
    crawl.next()
    crawl.wait(MINUTE)
    take(crawl)
    row = crawl.row("select * from vitals order by at desc limit 1")
    assert (row["calls"], row["handed_out"], row["pages_added"]) == (0, 0, 0)
    assert row["expired"] == 1, "the lease ended in the minute that is over now"
    assert crawl.value("select last_report_at from last_pulses(%s)", crawl.now) < crawl.now - MINUTE, "it is no report"


def test_pages_that_are_given_back_after_their_slot_are_counted(crawl: Crawl) -> None:
    take(crawl)
    crawl.add(*(f"http://a.test/{n}" for n in range(6)))
    crawl.value("select set_setting('window_share', '0.1')")
    crawl.tick()
    pages = [page["page_id"] for page in crawl.next(ahead=5 * SECOND)]
    crawl.wait(2.5 * SECOND)
    release = "select release_at(%s, 1, %s, %s)"
    crawl.value(release, crawl.now, [pages[0]], True)  # a request was made in its slot
    crawl.value(release, crawl.now, pages[1:2], False)  # its slot has passed
    crawl.value(release, crawl.now, pages[2:4], False)  # the slot of one of them has passed
    crawl.wait(MINUTE)
    crawl.tick()
    take(crawl)
    assert crawl.value("select sum(missed) from vitals") == 2
    assert crawl.value("select last_report_at from last_pulses(%s)", crawl.now) is None, "no report"


def test_a_report_that_commits_late_is_counted_in_its_minute(crawl: Crawl, another: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    crawl.tick()
    (first,), (second,) = crawl.next(1, lease=HOUR), crawl.next(1, lease=HOUR)
    minute = crawl.now
    another.now = crawl.now
    another.report_ok([first])
    crawl.report_ok([second])
    crawl.wait(MINUTE)
    take(crawl)
    assert sums(crawl)["fetches"] == 1
    another.connection.commit()
    crawl.wait(3 * MINUTE)
    take(crawl)
    assert crawl.row("select at, fetches from vitals where fetches > 0") == {"at": minute, "fetches": 2}
    assert sums(crawl, "vitals_by_hour")["fetches"] == 2


def test_who_reports_waits_for_nobody_who_reports_nor_for_the_vitals(crawl: Crawl, another: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    crawl.tick()
    (first,), (second,) = crawl.next(1), crawl.next(1)
    another.now = crawl.now
    another.report(result_of(first))  # stays open
    another.connection.execute("select take_vitals_at(%s)", [another.now])
    with crawl.connection.transaction():
        crawl.connection.execute("set local lock_timeout = '1s'")
        crawl.report(result_of(second))
        assert not take(crawl), "somebody else is at it"
    another.connection.rollback()


@pytest.mark.parametrize("was_added_up", [True, False])
def test_what_came_while_nobody_added_up_is_not_lost(crawl: Crawl, was_added_up: bool) -> None:
    crawl.add("http://a.test/")
    crawl.tick()
    if was_added_up:
        take(crawl)
    crawl.report_ok(crawl.next())
    crawl.wait(20 * MINUTE)
    take(crawl)
    assert sums(crawl)["fetches"] == 1


def test_a_clock_that_steps_back_leaves_nothing_in_the_future(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    crawl.tick()
    right = crawl.now
    crawl.now += 5 * DAY
    crawl.tick()
    crawl.report_ok(crawl.next(1))
    crawl.wait(MINUTE)
    take(crawl)
    assert sums(crawl)["fetches"] == 1
    crawl.now = right
    crawl.tick()
    take(crawl)
    assert crawl.rows("select at from vitals where at > %s", crawl.now) == []
    crawl.wait(2 * HOUR)
    crawl.tick()
    pages = crawl.next()
    crawl.report_ok(pages)
    crawl.wait(MINUTE)
    take(crawl)
    assert sums(crawl)["fetches"] == sums(crawl, "vitals_by_hour")["fetches"] == len(pages) > 0


def test_a_worker_that_asks_twice_writes_once(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.tick()
    crawl.next()
    assert take(crawl)
    before = crawl.rows("select * from vitals")
    assert not take(crawl)
    assert crawl.rows("select * from vitals") == before


def test_without_a_worker_nothing_piles_up(crawl: Crawl) -> None:
    crawl.value("select setval('worker_ticked', micros(clock_timestamp() - interval '25 hours'))")
    crawl.add("http://a.test/")
    crawl.tick()
    crawl.report_ok(crawl.next())
    assert crawl.value("select count(*) from pulse") == 0
    assert crawl.value("select tick(1, 1)") is not None
    crawl.report({"status": 200})
    assert crawl.value("select count(*) from pulse") == 1


# --------------------------------------------------------------------------------------------------- how things stand


def newest(crawl: Crawl) -> Row:
    crawl.wait(MINUTE)
    take(crawl)
    return crawl.row("select * from vitals order by at desc limit 1")


def test_what_is_due_waits_for_crawlers_for_a_gap_or_for_the_end_of_a_block(crawl: Crawl) -> None:
    """Every host has three pages; all are due at once."""
    crawl.add(*(f"http://{host}.test/{n}" for host in ("free", "slow", "shut") for n in range(3)),
              due=[crawl.now - n * SECOND for n in range(9)])  # fmt: skip
    for host in ("free", "slow", "shut"):
        crawl.value("select set_host_at(%s, %s, '1 hour', null, null, '{}')", crawl.now - DAY, f"{host}.test")
    crawl.tick()
    assert (newest(crawl)["due_crawler"], newest(crawl)["due_gap"]) == (9, 0)
    crawl.value("select block_host_at(%s, 'shut.test', 'infinity', 'asked by mail')", crawl.now)
    assert crawl.rows("select from next_pages_at(%s, 1, '0', '10 minutes', null, '0', 'slow.test')", crawl.now)
    crawl.tick()
    row = newest(crawl)
    assert (row["due"], row["due_crawler"], row["due_gap"], row["due_blocked"]) == (8, 3, 2, 3)
    assert (row["leased"], row["new_waiting"], row["hosts"], row["pages"]) == (1, 0, 3, 9)
    assert (row["hosts_ready"], row["budget"]) == (1, None)
    assert row["ready_wait"] >= MINUTE
    assert crawl.row("select pages, hosts, leased from vitals_by_hour")["hosts"] == 3


def test_late_hosts_say_what_they_wait_for(crawl: Crawl) -> None:
    now = crawl.now = datetime.now(UTC)  # the view asks the clock
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/", "http://c.test/2",
              due=[now - 3 * HOUR, now - 2 * HOUR, now - HOUR, now])  # fmt: skip
    crawl.value("select block_host_at(%s, 'b.test', 'infinity', 'asked by mail')", now)
    crawl.tick()
    take(crawl)
    rows = crawl.rows("select host, due, late, waits_for, blocked_until is not null as is_blocked from late_hosts")
    assert [tuple(row.values()) for row in rows] == [
        ("a.test", 1, 3 * HOUR, "crawler", False),
        ("b.test", 1, 2 * HOUR, "block", True),
        ("c.test", 2, HOUR, "crawler", False),
    ]
    crawl.value("select set_host_at(%s, 'a.test', '1 day', null, null, '{}')", now)
    crawl.value("select set_host_at(%s, 'c.test', '1 ms', null, true, '{}')", now)
    crawl.report_ok([page for page in crawl.next() if page["host"] == "a.test"])
    waits_for = crawl.rows("select host, waits_for from late_hosts where host <> 'b.test'")
    assert [tuple(row.values()) for row in waits_for] == [("a.test", "gap"), ("c.test", "gap")], "a page of c is leased"


def test_the_two_hundred_hosts_that_have_waited_longest_are_listed(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(210)), due=[crawl.now - n * SECOND for n in range(210)])
    crawl.tick()
    take(crawl)
    assert [row["host"] for row in crawl.rows("select host from late_hosts")] == [
        f"{n}.test" for n in range(209, 9, -1)
    ]


def test_freshness_is_what_the_pages_say(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(20)), value=[1 + n % 3 for n in range(20)],
              rate=[0.1 + n for n in range(20)])  # fmt: skip
    crawl.tick()
    crawl.report_ok(crawl.next(10))
    crawl.connection.execute("update page set pinned_rate = null where mod(page_id, 2) = 0 and fetched_at is null")
    crawl.wait(HOUR)
    row = newest(crawl)
    assert row["fresh"] == pytest.approx(
        crawl.value(
            """
            select sum(p.value * case when p.fetched_at is null then 0
                                      else exp(-s.rate * extract(epoch from %s - p.fetched_at) / 86400) end)
                   / sum(p.value)
            from page p join page_status s using (page_id)
            where p.fetched_at is not null or p.pinned_rate is not null
            """,
            crawl.now,
        ),
        rel=1e-4,
    )
    assert row["covered"] == pytest.approx(
        crawl.value("select sum(value) filter (where fetched_at is not null) / sum(value) from page"), rel=1e-4
    )
    assert row["fresh_error"] in (0, None), "all of a small table is read"


def test_freshness_leaves_out_what_the_allocation_leaves_out(crawl: Crawl) -> None:
    """Pages of a host that is blocked for more than a day, not for less."""
    crawl.add("http://a.test/", "http://b.test/", rate=[1.0] * 2)
    crawl.tick()
    crawl.report_ok(crawl.next())
    fresh = "select fresh from sample_pages(%s, 100)"
    crawl.wait(2 * DAY)
    both = crawl.value(fresh, crawl.now)
    crawl.value("select fetch_now_at(%s, '{1}')", crawl.now)
    crawl.tick()
    crawl.report_ok(crawl.next(1))
    crawl.value("select block_host_at(%s, 'b.test', %s, 'away')", crawl.now, crawl.now + 3 * HOUR)
    assert both < crawl.value(fresh, crawl.now) < 0.9
    crawl.value("select block_host_at(%s, 'b.test', %s, 'away')", crawl.now, crawl.now + 3 * DAY)
    assert crawl.value(fresh, crawl.now) == pytest.approx(1)


@pytest.mark.parametrize("value", [1.0, 1e-30, 1e30])
def test_pages_that_are_long_outdated_have_no_freshness_and_stop_no_job(crawl: Crawl, value: float) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(3)), rate=[24] * 3, value=[value, 1e-30, 1e-30])
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.add("http://new.test/", rate=[1], value=[1e30])
    crawl.wait(5 * DAY)
    row = newest(crawl)
    assert row["fresh"] == 0 and row["covered"] == pytest.approx(0.5 if value == 1e30 else 0)


def test_an_empty_crawl_has_no_freshness(crawl: Crawl) -> None:
    row = newest(crawl)
    assert (row["fresh"], row["fresh_error"], row["covered"], row["due"], row["pages"]) == (None, None, None, 0, 0)


def test_the_oldest_due_time_is_exact_also_of_blocked_hosts(crawl: Crawl) -> None:
    now = datetime.now(UTC)
    assert crawl.value("select oldest_due from queue_status") is None
    crawl.add(*(f"http://{n % 30}.test/{n}" for n in range(90)), due=[now - n * HOUR for n in range(90)])
    crawl.tick()

    def oldest() -> Any:
        return crawl.value("select oldest_due from queue_status")

    def truth() -> Any:
        return crawl.value("select min(due_at) from queue where due_at <= clock_timestamp()")

    assert oldest() == truth() == now - 89 * HOUR
    crawl.value("select block_host_at(%s, '29.test', 'infinity', null)", now)
    assert oldest() == now - 89 * HOUR
    # Heads that lie below all of their pages.
    crawl.connection.execute("update host set head_due = head_due - interval '9 days' where host_id % 2 = 0")
    assert oldest() == truth()
    crawl.now = now
    for _ in range(40):
        crawl.report_ok(crawl.next(5))
        crawl.wait(SECOND)
        crawl.tick()
        assert oldest() == truth()


def test_the_oldest_due_time_is_not_exact_if_the_hosts_that_were_looked_at_have_none(crawl: Crawl) -> None:
    urls = [f"http://{n:02}.test/" for n in range(25)]
    crawl.add(*urls, due=[datetime.now(UTC) - HOUR] * 25)
    crawl.tick()
    for n in range(20):
        crawl.value("select block_host(%s)", f"{n:02}.test")
    crawl.value("select exclude('^http://[01]')")
    crawl.tick()
    row = crawl.row("select * from queue_status")
    assert row["due"] == 5
    assert row["oldest_due"] is not None or not row["oldest_is_exact"]


def test_due_and_new_pages_are_told_apart(crawl: Crawl) -> None:
    now = datetime.now(UTC)
    crawl.add("http://a.test/1", "http://a.test/2", due=[now, now])
    crawl.add("http://a.test/3")
    crawl.tick()
    row = crawl.row("select * from queue_status")
    assert (row["due"], row["new_waiting"], row["is_estimate"]) == (2, 1, False)
    assert row["oldest_is_exact"]


def test_an_estimate_differs_little_from_look_to_look(crawl: Crawl) -> None:
    """As many blocks of a table each time: with TABLESAMPLE SYSTEM the ninth look at these was 30 % off."""
    crawl.value(
        "select count(*) from add_pages_at(%s, array("
        "select format('http://h%%s.test/%%s', i %% 500, i) from generate_series(1, 40000) i), null, null, array("
        "select case when i %% 2 = 0 then %s::timestamptz end from generate_series(1, 40000) i), null, null)",
        crawl.now,
        crawl.now,
    )
    crawl.wait(SECOND)
    while crawl.value("select tick_at(%s, 1000, 30000)", crawl.now):
        pass
    for _ in range(20):
        row = crawl.row("select * from sample_queue(%s, 40)", crawl.now)
        assert row["is_estimate"]
        assert row["waiting_new"] == pytest.approx(20_000, rel=0.1)
        assert row["due"] == pytest.approx(20_000, rel=0.1)
        parts = crawl.row("select * from sample_due(%s, 40)", crawl.now)
        assert parts["due"] == pytest.approx(20_000, rel=0.1)


def test_a_page_waits_for_a_crawler_from_its_slot_on(crawl: Crawl) -> None:
    """The second page of the host waits for the gap, until the host has been ready for 5 seconds."""
    crawl.add(*(f"http://a.test/{i}" for i in range(3)), due=[crawl.now - SECOND] * 3, rate=[1] * 3)
    crawl.tick()
    crawl.next(1)
    waiting = "select due_crawler, due_gap from sample_due(%s, 40)"
    for after, crawler, gap in ((0.999, 0, 2), (0.001, 1, 1), (4.999, 1, 1), (0.001, 2, 0)):
        crawl.wait(after * SECOND)
        assert crawl.row(waiting, crawl.now) == {"due_crawler": crawler, "due_gap": gap}


def test_crawl_status_says_how_the_crawl_stands_now(crawl: Crawl) -> None:
    crawl.now = datetime.now(UTC) - 100 * SECOND
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    crawl.tick()
    pages = crawl.next(2)
    crawl.report_ok(pages[:1])
    row = crawl.row("select * from crawl_status")
    assert row["last_report_at"] == crawl.now
    assert row["fetches_per_second"] == pytest.approx(SECOND / (row["as_of"] - crawl.now), rel=0.1)
    assert (row["leased"], row["leases"], row["oldest_lease_at"]) == (1, 1, crawl.now)
    assert (row["hosts_ready"], row["new_waiting"], row["due"], row["is_estimate"]) == (1, 1, 0, False)
    assert 99 * SECOND < row["ready_wait"] < 5 * MINUTE
    assert row["upkeep_at"] == crawl.now
    assert (row["paused"], row["vitals_at"]) == (False, None)
    crawl.value("select setval('worker_ticked', micros(clock_timestamp() - interval '6 seconds'))")
    assert not crawl.row("select * from crawl_status")["worker_is_running"]
    crawl.value("select take_vitals()")
    crawl.value("select tick(1, 1)")
    row = crawl.row("select * from crawl_status")
    assert row["worker_is_running"]
    assert row["vitals_at"] is not None


def test_the_largest_hosts_are_named_and_five_of_the_blocked_ones(crawl: Crawl) -> None:
    crawl.add(*(f"http://h{host}.test/{page}" for host in range(1, 9) for page in range(host)))
    crawl.tick()
    for host in range(1, 8):
        crawl.value("select block_host(%s)", f"h{host}.test")
    crawl.value("select block_host_at('2020-01-01', 'h8.test', '2020-01-02', null)")  # over
    row = crawl.row("select pages, most_pages, largest_host, blocked_hosts, largest_blocked from checkup")
    assert row == {
        "pages": 36, "most_pages": 8, "largest_host": "h8.test", "blocked_hosts": 7,
        "largest_blocked": ["h7.test", "h6.test", "h5.test", "h4.test", "h3.test"],
    }  # fmt: skip


def test_an_open_transaction_is_seen(crawl: Crawl, another: Crawl) -> None:
    assert crawl.value("select longest_transaction from crawl_status") is None
    another.connection.execute("set transaction isolation level repeatable read")
    another.connection.execute("select 1 from page")
    assert crawl.value("select longest_transaction from crawl_status") > timedelta(0)


def test_the_last_reports_are_read_however_many_there_are(crawl: Crawl) -> None:
    crawl.connection.execute(
        """
        insert into pulse
        select log_part(at), at, 'c'
        from (select %s::timestamptz - interval '10 ms' * (60000 - n) as at from generate_series(1, 60000) n) t
        """,
        [crawl.now],
    )
    row = crawl.row("select * from last_pulses(%s)", crawl.now)
    assert row["last_report_at"] == crawl.now
    assert row["fetches_per_second"] == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize(
    ("minutes", "rate"), [([10, 4], 60 / 300), ([4, 1], 120 / 240), ([1], 60 / 60), ([0], 60 / 10)]
)
def test_a_crawl_that_has_just_begun_is_as_fast_as_it_is(crawl: Crawl, minutes: list[int], rate: float) -> None:
    for ago in minutes:
        crawl.connection.execute(
            "insert into pulse values (log_part(%(at)s), %(at)s, repeat('c', 60))",
            {"at": crawl.now - ago * MINUTE},
        )
    row = crawl.row("select * from last_pulses(%s)", crawl.now)
    assert row["fetches_per_second"] == pytest.approx(rate, rel=0.01)


# ------------------------------------------------------------------------------------------------------------- events


def test_who_changed_a_setting_is_written_down(crawl: Crawl) -> None:
    before = len(events(crawl, "setting"))
    crawl.value("select set_setting('budget', '1000')")
    crawl.value("select set_setting('budget', '1000')")
    crawl.value("select set_setting('budget', 'measured')")
    crawl.value("select set_setting('budget', 'none')")
    crawl.value("select set_setting('longest_interval', '3 days')")
    with pytest.raises(psycopg.Error):
        crawl.value("select set_setting('budget', '-1')")
    assert events(crawl, "setting")[before:] == [
        ("budget", "none → 1000", login(crawl)),
        ("budget", "1000 → measured", login(crawl)),
        ("budget", "measured → none", login(crawl)),
        ("longest_interval", "60 days → 3 days", login(crawl)),
    ]


def test_what_operators_do_is_written_down(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://a.test/2", "http://b.test/")
    for call in (
        "set_host('A.test', gap => '2 seconds', max_pages => 7)",
        "set_host('a.test', gap => '2 seconds')",
        "block_host('a.test', '2100-01-01', 'asked by mail')",
        "block_host('b.test')",
        "unblock_host('a.test')",
        "exclude('/2$')",
        "unexclude('/2$')",
        "boost('a.test', 3)",
        "boost('a.test', 1)",
        "keep_out('{1, 2}')",
        "keep_out('{1, 2}')",
        "delete_pages('{2, 3}')",
        "delete_pages('{2, 3}')",
        "pause()",
        "pause()",
        "resume()",
    ):
        crawl.value(f"select {call}")
    assert events(crawl, "host") == [
        ("a.test", "gap: none → 00:00:02, max_pages: none → 7", login(crawl)),
        ("a.test", "blocked until 2100-01-01 00:00:00 UTC: asked by mail", login(crawl)),
        ("b.test", "blocked until further notice", login(crawl)),
        ("a.test", "unblocked", login(crawl)),
    ]
    assert events(crawl, "pages") == [
        ("/2$", "excluded: 1 pages were taken out", login(crawl)),
        ("/2$", "no longer excluded: 1 pages came back", login(crawl)),
        ("a.test", "boosted: worth 3 times as much, 2 pages", login(crawl)),
        ("a.test", "no longer boosted, 2 pages", login(crawl)),
        ("2 pages", "kept_out", login(crawl)),
        ("2 pages", "deleted", login(crawl)),
    ]
    assert [says for _, says, _ in events(crawl, "crawl")] == ["the crawl was paused", "the crawl was resumed"]


def test_blocks_that_hosts_earn_are_written_down_but_not_every_one(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(20)))
    crawl.tick()
    strikes = 0
    for _ in range(17):
        for page in crawl.next():
            crawl.report(result_of(page, status=429, retry_after="1"))
            strikes += 1
        crawl.now = crawl.value("select blocked_until from host") + SECOND
        crawl.tick()
    assert strikes == 17
    assert [(host, says.partition(": ")[2], by) for host, says, by in events(crawl, "host")] == [
        ("a.test", "it answered 429", None),
        ("a.test", "it answered 429, the 4th time in a row", None),
        ("a.test", "it answered 429, the 16th time in a row", None),
    ]


def test_a_night_in_which_every_host_fails_does_not_fill_the_events(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(400)))
    crawl.tick()
    strike = "select strike_host(host_id, null, 'it answered 503', %s) from host where host_id %% 4 = %s"
    for hour in range(4):
        crawl.rows(strike, crawl.now, hour)
        crawl.rows(strike, crawl.now + MINUTE, (hour + 1) % 4)
        crawl.wait(HOUR)
    assert 300 <= len(events(crawl, "host")) <= 401
    before = len(events(crawl, "host"))
    crawl.wait(-10 * DAY)
    crawl.value("select note_strike(%s, 'a.test', %s, 'it answered 503', 1)", crawl.now, crawl.now)
    assert len(events(crawl, "host")) == before + 1, "the clock was set back"


def test_runs_of_jobs_are_written_down(crawl: Crawl) -> None:
    for ok, message in ((True, "all went well"), (False, "it broke")):
        crawl.value("select end_job(start_job('rates', '1 minute'), %s, %s)", ok, message)
    crawl.value("select start_job('opic', '-1 minute')")
    crawl.value("select start_job('opic', '1 minute')")
    assert [(job, says) for job, says, _ in events(crawl, "job")] == [
        ("rates", "all went well"),
        ("rates", "failed: it broke"),
        ("opic", "failed: its process died, or lost its connection"),
    ]


@pytest.mark.parametrize(("free", "says"), [(1, "1 host is ready"), (3, "3 hosts are ready")])
def test_a_crawl_that_stands_still_is_noticed_and_that_it_goes_on(crawl: Crawl, free: int, says: str) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(free + 2)))
    crawl.tick()
    crawl.report_ok(crawl.next(2))
    for _ in range(20):
        crawl.wait(MINUTE)
        take(crawl)
    crawl.report_ok(crawl.next(1))
    for _ in range(3):
        crawl.wait(MINUTE)
        take(crawl)
    assert events(crawl, "crawl") == [
        ("crawlers", f"no crawler has reported for 5 min, although {says}", None),
        ("crawlers", "crawlers report again, after 20 min without a report", None),
    ]


def test_a_worker_that_comes_back_sees_that_the_crawl_stands_still(crawl: Crawl) -> None:
    """The reports before are no longer in the log."""
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    crawl.tick()
    crawl.report_ok(crawl.next(1))
    crawl.wait(MINUTE)
    take(crawl)
    crawl.wait(2.5 * HOUR)
    take(crawl)
    crawl.wait(MINUTE)
    crawl.report_ok(crawl.next(1))
    crawl.wait(MINUTE)
    take(crawl)
    assert events(crawl, "crawl") == [
        ("crawlers", "no crawler has reported for 5 min, although 2 hosts are ready", None),
        ("crawlers", "crawlers report again, after 6 min without a report", None),
    ]


def test_a_crawl_does_not_stand_still_because_it_was_paused(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(9)))
    crawl.tick()
    crawl.report_ok(crawl.next(2))
    crawl.value("select pause()")
    for _ in range(20):
        crawl.wait(MINUTE)
        take(crawl)
    crawl.value("select resume()")
    crawl.value("select note_event(%s, 'crawl', 'paused', 'the crawl was resumed', null)", crawl.now)
    crawl.wait(MINUTE)
    take(crawl)
    assert "crawlers" not in {subject for subject, *_ in events(crawl, "crawl")}
    for _ in range(6):
        crawl.wait(MINUTE)
        take(crawl)
    assert "crawlers" in {subject for subject, *_ in events(crawl, "crawl")}


def test_a_crawler_that_only_declines_has_reported(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(50)))
    crawl.tick()
    crawl.report_ok(crawl.next(2))
    for _ in range(20):
        crawl.wait(MINUTE)
        crawl.report(*({"page_id": p["page_id"], "lease_id": p["lease_id"], "declined": True} for p in crawl.next(2)))
        take(crawl)
    assert events(crawl, "crawl") == []
    assert crawl.value("select sum(fetches) from vital") == 2, "they are no fetches"


@pytest.mark.parametrize("why", ["nothing is due", "paused"])
def test_a_crawl_that_has_nothing_to_do_does_not_stand_still(crawl: Crawl, why: str) -> None:
    crawl.add("http://a.test/", *(["http://b.test/"] if why == "paused" else []))
    crawl.tick()
    crawl.report_ok(crawl.next(1))
    if why == "paused":
        crawl.value("select pause()")
    for _ in range(20):
        crawl.wait(MINUTE)
        take(crawl)
    assert [subject for subject, _, _ in events(crawl, "crawl")] == (["paused"] if why == "paused" else [])


# ---------------------------------------------------------------------------------------------------------- retention


def test_what_is_too_old_goes_and_the_newest_runs_stay(crawl: Crawl) -> None:
    old, new = crawl.now - 500 * DAY, crawl.now - DAY
    for at in (old, old + DAY, new):
        crawl.value("insert into vital (at) values (%s) returning 1", at)
        crawl.value("insert into vital_hour (at) values (%s) returning 1", at)
        crawl.value("select note_event(%s, 'job', 'x', 'y', null)", at)
    for job, ok in (("rates", True), ("rates", False), ("rates", False), *[("opic", True)] * 3):
        crawl.value(
            "insert into job select nextval('job_token'), %s, %s, %s, %s, %s, 'x' returning 1", job, old, old, old, ok
        )
    crawl.value("insert into opic values (1, %s, 1, 1, 1, 1, true, 1, 1, 1) returning 1", old)
    crawl.value("insert into opic values (2, %s, 1, 1, 1, 1, true, 1, 1, 1) returning 1", old)
    for token in (1, 2):
        planted_allocation(crawl, token, old, policy="uniform")  # another policy than the setting
    assert crawl.value("select forget_history_at(%s)", crawl.now) > 0
    assert [row["at"] for row in crawl.rows("select at from vitals")] == [new]
    assert [row["at"] for row in crawl.rows("select at from vitals_by_hour")] == [new]
    assert len(crawl.rows("select from events where at < %s", crawl.now - 400 * DAY)) == 0
    assert [(row["job"], row["ok"]) for row in crawl.rows("select job, ok from job order by token")] == [
        ("rates", True), ("rates", False), ("opic", True),
    ]  # fmt: skip
    assert [row["token"] for row in crawl.rows("select token from opic")] == [2]
    assert [row["token"] for row in crawl.rows("select token from allocation")] == [2]
    assert crawl.value("select forget_history_at(%s)", crawl.now) == 0


def test_a_clock_that_is_ahead_for_a_moment_deletes_no_history(crawl: Crawl) -> None:
    for n in range(20):
        crawl.value("insert into vital (at) values (%s) returning 1", crawl.now - n * MINUTE)
    crawl.value("insert into vital_hour (at) values (%s) returning 1", crawl.now - DAY)
    crawl.value("select note_event(%s, 'job', 'x', 'y', null)", crawl.now - DAY)
    assert crawl.value("select forget_history_at(%s)", crawl.now + 3650 * DAY) == 0


def test_pulse_is_emptied_a_part_at_a_time_and_later_if_somebody_reads_or_empties_it(crawl: Crawl, url: str) -> None:
    crawl.connection.execute(
        "insert into pulse (part, at, letters) values (log_part(%(t)s), %(t)s, 'u')", {"t": crawl.now}
    )

    def kept() -> int:
        crawl.connection.execute("select rotate_log_at(%s)", [crawl.now])
        return int(crawl.value("select count(*) from pulse"))

    for _ in range(3):  # half of the 30 minutes that rows are kept at least, and the turn of each part
        assert kept() == 1
        crawl.wait(15 * MINUTE)
    with psycopg.connect(url) as reader:
        reader.execute("select count(*) from recrawl_internal.pulse")
        assert kept() == 1
    with psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as other:
        other.execute("select rotate_log_at(%s)", [crawl.now])
        crawl.connection.execute("select rotate_log_at(%s)", [crawl.now])
    assert crawl.value("select count(*) from pulse") == 0


@pytest.mark.parametrize("days", [8, pytest.param(30, marks=pytest.mark.soak)])
def test_nothing_grows_with_the_days(crawl: Crawl, days: int) -> None:
    crawl.add(*(f"http://{n % 7}.test/{n}" for n in range(30)))
    crawl.value("select set_setting('frequency', '20')")
    sizes: list[Row] = []
    for half_hour in range(days * 48):
        crawl.tick()
        pages = crawl.next()
        if pages:
            crawl.report_ok(pages, changed=half_hour % 3 == 0)
        for _ in range(2):
            crawl.connection.execute("select rotate_log_at(%s)", [crawl.now])
            crawl.wait(15 * MINUTE)
        if half_hour % 4 == 0:
            take(crawl)
        if half_hour % 48 == 0:
            crawl.value("select forget_history_at(%s)", crawl.now)
            tables = ["pulse", "vital", "late_host", "event"]
            sizes.append({table: crawl.value(f"select count(*) from {table}") for table in tables})
    assert sizes[5] == pytest.approx(sizes[-1], abs=8)
    assert sizes[-1]["pulse"] <= 3
    assert len(crawl.rows("select from vitals_by_hour")) > 20


# --------------------------------------------------------------------------------------------------------------- cost


def test_a_report_writes_one_row(crawl: Crawl) -> None:
    crawl.add(*(f"http://{n}.test/" for n in range(50)))
    crawl.tick()
    crawl.connection.execute(
        "select count(*) from report_at(%s, %s)", [crawl.now, Jsonb([result_of(page) for page in crawl.next()])]
    )
    assert crawl.row("select letters, late from pulse") == {"letters": 50 * "f", "late": None}


def test_retries_are_counted_whatever_comes_of_them(crawl: Crawl) -> None:
    crawl.add(*(f"http://h{i}.test/" for i in range(20)))
    hour_of = crawl.value("select hour_of(%s)", crawl.now)
    crawl.now = hour_of + HOUR
    fails = {f"http://h{i}.test/" for i in range(12, 20)}
    crawl.report(*(result_of(page, status=500 if page["url"] in fails else 200) for page in crawl.next()))
    for page in crawl.rows("select page_id from page"):
        crawl.value("select fetch_now(%s)", [page["page_id"]])
    crawl.now += 2 * MINUTE
    take(crawl)
    crawl.now += 8 * MINUTE
    crawl.tick()
    pages = crawl.next()
    assert len(pages) == 20
    status = {f"http://h{i}.test/": status for i, status in enumerate([500, 410, 503, *[200] * 12, 500, 404, 503, 304])}
    crawl.report(*(result_of(page, status=status.get(page["url"], 200)) for page in pages))
    crawl.now += 2 * MINUTE
    take(crawl)
    found = crawl.row("select fetches, first, unchanged, missing, failed, throttled, retries from vitals_by_hour")
    assert found == {
        "fetches": 40, "first": 17, "unchanged": 9, "missing": 2, "failed": 10, "throttled": 2, "retries": 8
    }  # fmt: skip
    crawl.now = hour_of + 13 * HOUR
    assert crawl.value("select retries_per_day(%s)", crawl.now) == pytest.approx(8 / (12 / 24))
    assert crawl.value("select retries_per_day(%s)", hour_of + 1.2 * HOUR) == pytest.approx(8 * 24), "an hour at least"
    assert crawl.value("select retries_per_day(%s)", crawl.now + DAY) == 0
