"""The operator's controls, and what the views say of them."""

from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, codes, misplaced, result_of, urls


def refused(crawl: Crawl, query: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(query)
    assert error.value.diag.message_primary == message


# ------------------------------------------------------------------------------------------------- hosts


def test_a_gap_may_be_set_before_the_first_page_comes(crawl: Crawl) -> None:
    crawl.value("select set_host('A.test', gap => '5 s')")
    crawl.add(*(f"http://a.test/{i}" for i in range(4)))
    assert [p["fetch_at"] - crawl.now for p in crawl.next(ahead=12 * SECOND)] == [0 * SECOND, 5 * SECOND, 10 * SECOND]


def test_a_longer_gap_holds_from_now(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2")
    crawl.next()
    crawl.value("select set_host_at(%s, 'a.test', '1 min', null, null, '{}')", crawl.now)
    crawl.wait(59 * SECOND)
    assert crawl.next() == []
    crawl.wait(SECOND + timedelta(microseconds=1))
    assert len(crawl.next()) == 1


def test_a_shorter_gap_counts_from_the_last_slot_at_once(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    crawl.next()
    crawl.value("select set_host_at(%s, 'a.test', '10 ms', null, null, '{}')", crawl.now)
    crawl.wait(timedelta(milliseconds=9))
    assert crawl.next() == []
    crawl.wait(timedelta(milliseconds=1))
    assert len(crawl.next(ahead=timedelta(milliseconds=20))) == 3


def test_reset_goes_back_to_the_settings(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', gap => '5 s', max_pages => 7, one_at_a_time => true)")
    host = crawl.host("a.test")
    assert (host["gap"], host["max_pages"], host["one_at_a_time"]) == (5 * SECOND, 7, True)
    crawl.value("select set_host('a.test', reset => '{gap,max_pages,one_at_a_time}')")
    host = crawl.host("a.test")
    assert (host["gap"], host["max_pages"], host["one_at_a_time"]) == (SECOND, None, False)


def test_what_is_not_named_stays(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', gap => '5 s')")
    crawl.value("select set_host('a.test', max_pages => 7)")
    assert crawl.host("a.test")["gap"] == 5 * SECOND


def test_a_blocked_host_gives_nothing_until_then(crawl: Crawl) -> None:
    crawl.value("select block_host_at(%s, 'a.test', %s, 'moving house')", crawl.now, crawl.now + HOUR)
    crawl.add("http://a.test/")
    crawl.tick()
    assert crawl.next() == []
    crawl.wait(HOUR)
    assert len(crawl.next()) == 1


def test_a_host_that_need_not_be_asked_one_at_a_time_any_more_is_free_at_once(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add("http://a.test/1", "http://a.test/2")
    assert len(crawl.next(ahead=10 * SECOND)) == 1
    crawl.wait(MINUTE)
    assert crawl.next() == []
    crawl.value("select set_host_at(%s, 'a.test', null, null, false, null)", crawl.now)
    assert len(crawl.next()) == 1


def test_blocked_for_good_until_somebody_unblocks(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.value("select block_host('a.test')")
    crawl.wait(10000 * DAY)
    assert crawl.next() == []
    assert crawl.value("select next_ready_time(%s)", crawl.now) is None
    crawl.value("select unblock_host_at(%s, 'a.test')", crawl.now)
    assert len(crawl.next()) == 1


def test_unblocking_forgives_earlier_strikes(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.report(result_of(page, status=429))
    crawl.value("select unblock_host_at(%s, 'a.test')", crawl.now)
    crawl.add("http://a.test/other")
    crawl.wait(SECOND)
    (page,) = crawl.next()
    crawl.report(result_of(page, status=429))
    assert crawl.value("select blocked_until from host") - crawl.now <= 66 * SECOND


def test_host_status_shows_a_block_and_why(crawl: Crawl) -> None:
    crawl.value("select block_host('a.test', reason => 'moving house')")
    assert crawl.row("select blocked_until::text, blocked_reason from host_status") == {
        "blocked_until": "9999-12-01 00:00:00+00",
        "blocked_reason": "moving house",
    }


def test_a_block_must_end_after_now(crawl: Crawl) -> None:
    block = "select block_host_at(%s, 'a.test', %s, null)"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="until must be in the future"):
        crawl.value(block, crawl.now, crawl.now)
    crawl.value(block, crawl.now, crawl.now + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select set_host('a b')", "set_host: host must be a host name or address without port, got 'a b'"),
        ("select set_host(null)", "set_host: host must be a host name or address without port, got null"),
        ("select set_host('a.test:80')", "set_host: host must be a host name or address without port, got 'a.test:80'"),
        (
            "select set_host('http://a.test/')",
            "set_host: host must be a host name or address without port, got 'http://a.test/'",
        ),
        ("select set_host('a', gap => '0')", "set_host: gap must lie between 1 millisecond and 30 days, got 00:00:00"),
        (
            "select set_host('a', gap => '31 d')",
            "set_host: gap must lie between 1 millisecond and 30 days, got 31 days",
        ),
        ("select set_host('a', max_pages => -1)", "set_host: max_pages must not be negative, got -1"),
        ("select set_host('a', reset => '{x}')", "set_host: reset may hold gap, max_pages and one_at_a_time, got x"),
        ("select block_host('a', until => null)", "block_host: until must be in the future, got null"),
        ("select block_host('')", "block_host: host must be a host name or address without port, got ''"),
        ("select unblock_host('exmaple.test')", "unblock_host: host must be one that is known, got 'exmaple.test'"),
    ],
)
def test_misuse_is_refused(crawl: Crawl, query: str, message: str) -> None:
    refused(crawl, query, message)
    assert crawl.rows("select host from host_status") == []


def test_an_error_does_not_repeat_what_is_endless(crawl: Crawl) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        crawl.value("select set_host(%s)", "a b" * 10_000)
    assert len(str(refusal.value.diag.message_primary)) < 1000
    endless = "x" * 100_000
    (wrong, unknown, key) = crawl.report(
        {"page_id": endless, "status": 200}, {"url": endless, "status": 200}, {endless: 1}
    )
    assert [row["code"] for row in (wrong, unknown, key)] == ["invalid", "unknown_page", "invalid"]
    assert max(len(row["detail"]) for row in (wrong, unknown, key)) < 1000


# ------------------------------------------------------------------------------------------------- pages


def test_fetch_now_makes_pages_due_at_once_and_politely(crawl: Crawl) -> None:
    rows = crawl.add(*(f"http://a.test/{i}" for i in range(3)), due=[crawl.now + DAY])
    crawl.tick()
    assert crawl.value("select fetch_now_at(%s, %s)", crawl.now, [rows[0]["page_id"], rows[2]["page_id"], 999]) == 2
    pages = crawl.next(ahead=9 * SECOND)
    assert sorted(urls(pages)) == ["http://a.test/0", "http://a.test/2"]
    assert [p["fetch_at"] - crawl.now for p in pages] == [0 * SECOND, SECOND]


def test_fetch_now_overtakes_other_new_pages(crawl: Crawl) -> None:
    rows = crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    for drained_first in (False, True):
        if drained_first:
            crawl.tick()
        page_id = rows[2 - drained_first]["page_id"]
        crawl.value("select fetch_now_at(%s, %s)", crawl.now, [page_id])
        crawl.tick()
        crawl.value("select set_setting('discovery', '0')")
        (page,) = crawl.next(1)
        assert page["page_id"] == page_id
        crawl.wait(SECOND)
    crawl.tick()
    assert crawl.value("select (select count(*) from queue) + (select count(*) from new_page)") == 3


def test_fetch_now_leaves_a_page_alone_that_is_out(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.value("select fetch_now_at(%s, %s)", crawl.now, [page["page_id"]])
    crawl.wait(SECOND)
    assert crawl.next() == []
    assert codes(crawl.report_ok([page])) == ["ok"]
    crawl.tick()
    assert crawl.value("select count(*) from queue") == 1


# ---------------------------------------------------------------------------------------------- settings


def test_settings_are_listed_with_unit_and_meaning(crawl: Crawl) -> None:
    rows = crawl.rows("select * from settings")
    assert all(row["unit"] and row["meaning"] for row in rows)
    assert {row["name"]: row["value"] for row in rows}["default_gap"] == "00:00:01"
    assert not [row["name"] for row in rows if ".:" in row["meaning"]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("default_gap", "00:00:15"), ("max_ahead", "00:02:00"), ("window_share", "0.25"), ("discovery", "0.3"),
        ("frequency", "2"), ("max_attempts", "3"), ("max_depth", "7"), ("max_pages_per_host", "100"),
    ],
)  # fmt: skip
def test_a_setting_is_what_it_was_set_to(crawl: Crawl, name: str, value: str) -> None:
    crawl.value("select set_setting(%s, %s)", name, value)
    assert crawl.value("select value from settings where name = %s", name) == value


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("speed", "1", "set_setting: there is no setting 'speed'; the view settings lists them"),
        ("only_row", "false", "set_setting: there is no setting 'only_row'; the view settings lists them"),
        ("default_gap", "0", "set_setting: default_gap must lie between 1 millisecond and 30 days, got 0"),
        ("default_gap", "soon", "set_setting: default_gap must be of type interval, got soon"),
        ("default_gap", "none", "set_setting: default_gap must have a value"),
        ("max_ahead", "11 min", "set_setting: max_ahead must lie between 0 and 10 minutes, got 11 min"),
        ("discovery", "NaN", "set_setting: discovery must lie between 0 and 1, got NaN"),
        ("discovery", "1.5", "set_setting: discovery must lie between 0 and 1, got 1.5"),
        ("discovery", "-0.1", "set_setting: discovery must lie between 0 and 1, got -0.1"),
        ("discovery", "none", "set_setting: discovery must have a value"),
        ("budget", "0", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got 0"),
        ("budget", "-5", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got -5"),
        ("budget", "NaN", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got NaN"),
        ("budget", "inf", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got inf"),
        ("frequency", "0", "set_setting: frequency must lie between 0.003 and 86400, got 0"),
        ("max_attempts", "0", "set_setting: max_attempts must be positive, got 0"),
        ("max_depth", "-1", "set_setting: max_depth must be 0 or more links, or none, got -1"),
    ],
)
def test_settings_are_checked(crawl: Crawl, name: str, value: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.value("select set_setting(%s, %s)", name, value)
    assert error.value.diag.message_primary == message


def test_each_setting_is_obeyed(crawl: Crawl) -> None:
    for name, value in {"default_gap": "15 s", "window_share": "0.1", "max_ahead": "2 min", "frequency": "2"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    crawl.add(*(f"http://a.test/{i}" for i in range(20)))
    pages = crawl.next(ahead=2 * MINUTE)
    assert [p["fetch_at"] - crawl.now for p in pages] == [16.5 * i * SECOND for i in range(8)]
    assert pages[0]["start_by"] - pages[0]["fetch_at"] == 1.5 * SECOND, "a tenth of the gap"
    assert crawl.report_ok(pages[:1])[0]["next_fetch_at"] == crawl.now + DAY / 2
    crawl.value("select set_setting('max_attempts', '1')")
    crawl.report(result_of(pages[1], status=500))
    assert crawl.page(pages[1]["url"])["state"] == "failing"


@pytest.mark.parametrize(
    "call",
    [
        "set_setting('max_depth', '3')",
        "set_host('a.test', gap => '5 s')",
        "block_host('a.test')",
        "unblock_host('a.test')",
        "set_interval('{1}', '1 day')",
        "boost('a.test', 3)",
        "follow_boosts(100)",
    ],
)
def test_it_asks_for_an_allocation(crawl: Crawl, call: str) -> None:
    crawl.add("http://a.test/")
    crawl.value("select boost('b.test', 2)")  # a worker has not followed it yet
    crawl.value("select setval('steered', 1)")
    crawl.rows(f"select {call}")
    assert crawl.value("select last_value from steered") > 1


# ----------------------------------------------------------------------------------------------- queue_status


def test_the_queue_at_a_glance(crawl: Crawl) -> None:
    crawl.rows("select * from add_pages(%s)", [f"http://{c}.test/" for c in "abc"])
    crawl.rows("select * from add_pages('{http://d.test/}', due => array[now() - interval '1 hour'])")
    status = crawl.row("select *, now() - oldest_due as age from queue_status")
    figures = (status["due"], status["new_waiting"], status["leased"], status["paused"])
    assert figures == (0, 4, 0, False), "all four wait in the inbox"
    assert status["next_ready_at"] <= status["as_of"] + timedelta(milliseconds=20)
    crawl.rows("select recrawl_internal.tick(100, 100)")
    status = crawl.row("select *, now() - oldest_due as age from queue_status")
    assert (status["due"], status["new_waiting"]) == (1, 3)
    assert status["age"] > 59 * MINUTE
    crawl.rows("select set_value(page_id, 2) from page where due_at is null")
    status = crawl.row("select * from queue_status")
    assert status["new_waiting"] == 3, "a new page that gets another value counts once"
    crawl.rows("select * from next_pages(2)")
    status = crawl.row("select * from queue_status")
    assert (status["due"] + status["new_waiting"], status["leased"]) == (2, 2)


def test_an_empty_crawl_has_a_status(crawl: Crawl) -> None:
    status = crawl.row("select * from queue_status")
    assert (status["due"], status["leased"], status["oldest_due"], status["next_ready_at"]) == (0, 0, None, None)


# ------------------------------------------------------------------------------------- before the first allocation


def test_another_frequency_moves_pages_that_are_scheduled_already(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    crawl.add("http://pinned.test/", rate=[1.0])
    crawl.report_ok(crawl.next(3))
    fetched = crawl.now
    crawl.wait(6 * HOUR)
    crawl.report_ok(crawl.next())
    crawl.rows("select follow_frequency(%s, 1, 4)", crawl.now - 3 * HOUR)
    assert [row["due_at"] for row in crawl.rows("select due_at from page order by page_id limit 2")] == [
        fetched + 6 * HOUR
    ] * 2
    assert crawl.page("http://pinned.test/")["due_at"] == crawl.now + DAY, "it does not follow the setting"
    crawl.rows("select follow_frequency(%s, 4, 24)", crawl.now - 3 * HOUR)
    due = [row["due_at"] for row in crawl.rows("select due_at from page order by page_id limit 3")]
    assert [d > crawl.now - 3 * HOUR and d < crawl.now - 3 * HOUR + SECOND for d in due] == [True] * 3
    assert len(set(due)) == 3
    assert misplaced(crawl) == []


@pytest.mark.parametrize("frequency", [0.02, 10])
def test_it_moves_no_denied_page_and_no_hinted_page_to_a_later_time(crawl: Crawl, frequency: float) -> None:
    """Pages that robots.txt denies were due at once, and hinted pages lost their hints. A hinted page may become due
    earlier, but not later."""
    crawl.value("select set_setting_at(%s, 'frequency', '0.1')", crawl.now)
    crawl.add("http://denied.test/", "http://hinted.test/")
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.tick()
    crawl.wait(DAY)
    denied, hinted = (crawl.page(f"http://{name}.test/")["page_id"] for name in ("denied", "hinted"))
    crawl.value("select fetch_now_at(%s, array[%s::bigint])", crawl.now, denied)
    crawl.tick()
    (page,) = crawl.next()
    crawl.report({"page_id": denied, "lease_id": page["lease_id"], "robots_denied": True})
    crawl.value("select hint_change_at(%s, array[%s::bigint], 0.3, 1)", crawl.now, hinted)
    before = {row["page_id"]: row["due_at"] for row in crawl.rows("select page_id, due_at from page")}
    crawl.value("select set_setting_at(%s, 'frequency', %s)", crawl.now, str(frequency))
    after = {row["page_id"]: row["due_at"] for row in crawl.rows("select page_id, due_at from page")}
    assert after[denied] == before[denied]
    assert after[hinted] == (before[hinted] if frequency < 0.1 else pytest.approx(crawl.now, abs=SECOND))
    crawl.tick()
    assert misplaced(crawl) == []


def test_set_setting_says_so_to_the_pages_there_are(crawl: Crawl) -> None:
    crawl.rows("select * from add_pages('{http://a.test/}')")
    assert len(crawl.rows("select * from next_pages(10)")) == 1
    crawl.rows("select * from report_pages('{1}', '{1}', '{200}')")
    before = crawl.page("http://a.test/")["due_at"]
    crawl.value("select set_setting('frequency', '2')")
    assert crawl.page("http://a.test/")["due_at"] == before - 12 * HOUR
    crawl.connection.execute("update host_terms set objective = 'freshness', price = 1 where host_id = 0")
    crawl.value("select set_setting('frequency', '4')")
    assert crawl.page("http://a.test/")["due_at"] == before - 12 * HOUR, "an allocation says when it is fetched"
