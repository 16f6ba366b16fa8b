"""Blocked hosts: a crawler that looked ahead learns that its pages are blocked, and releases them."""

from collections.abc import Callable

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, urls

Block = Callable[[Crawl], object]
BLOCKS: dict[str, Block] = {
    "429": lambda crawl: crawl.report({"url": "http://a.test/0", "lease_id": 1, "status": 429, "retry_after": "120"}),
    "503": lambda crawl: crawl.report({"url": "http://a.test/0", "lease_id": 1, "status": 503}),
    "block": lambda crawl: crawl.rows("select block_host_at(%s, 'a.test', 'infinity', null)", crawl.now),
    "failures": lambda crawl: crawl.rows(
        "select count_failures(host_id, 10, %s) from host_name where name = 'a.test'", crawl.now
    ),
}


def looking_ahead(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)), "http://b.test/0")
    assert len(crawl.next(ahead=MINUTE)) == 6


def blocked(crawl: Crawl, *lease_ids: int) -> list[str]:
    rows = crawl.rows("select * from blocked_pages_at(%s, %s)", crawl.now, list(lease_ids))
    assert {row["host"] for row in rows} <= {"a.test"}
    assert all(row["blocked_until"] > crawl.now for row in rows)
    known = {row["page_id"]: row["url"] for row in crawl.rows("select page_id, url from page_status")}
    return sorted(known[row["page_id"]] for row in rows)


@pytest.mark.parametrize("block", BLOCKS)
def test_the_other_pages_of_a_blocked_host_are_told_of(crawl: Crawl, block: str) -> None:
    looking_ahead(crawl)
    assert blocked(crawl, 1) == []
    BLOCKS[block](crawl)
    assert blocked(crawl, 1)[-4:] == [f"http://a.test/{i}" for i in range(1, 5)]
    assert blocked(crawl, 2) == [], "other leases have no blocked page"
    (answer,) = crawl.report({"url": "http://b.test/0", "lease_id": 1, "status": 200})
    assert answer["blocked_until"] is None, "its host is not blocked"


def test_blocked_hosts_are_listed_by_the_names_that_were_given(crawl: Crawl) -> None:
    looking_ahead(crawl)
    crawl.value("select count(*) from add_pages('{http://www.a.test/}', host => '{a.test}')")
    BLOCKS["block"](crawl)
    given = ["b.test", "www.a.test", "unknown.test", "www.a.test"]
    assert crawl.rows("select blocked_hosts_at(%s, %s) as host", crawl.now, given) == [{"host": "www.a.test"}]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="blocked_hosts: host must be a host name"):
        crawl.rows("select blocked_hosts_at(%s, '{a/b}')", crawl.now)


@pytest.mark.parametrize("block", BLOCKS)
def test_a_report_says_until_when_its_host_is_blocked(crawl: Crawl, block: str) -> None:
    looking_ahead(crawl)
    BLOCKS[block](crawl)
    until = crawl.value("select least(blocked_until, '9999-12-01 00:00Z') from host_status where host = 'a.test'")
    (answer,) = crawl.report({"url": "http://a.test/1", "lease_id": 1, "status": 200})
    assert answer["blocked_until"] == until
    assert answer["next_fetch_at"] >= until


def test_who_is_throttled_is_told_when_the_page_can_really_be_fetched(crawl: Crawl) -> None:
    looking_ahead(crawl)
    crawl.wait(2 * SECOND)
    (answer,) = crawl.report({"url": "http://a.test/0", "lease_id": 1, "status": 429, "retry_after": "90"})
    assert answer["next_fetch_at"] == answer["blocked_until"] == crawl.now + 90 * SECOND


def test_what_was_recalled_comes_back_after_the_hold_and_the_slots_it_had(crawl: Crawl) -> None:
    looking_ahead(crawl)
    crawl.report({"url": "http://a.test/0", "lease_id": 1, "status": 429, "retry_after": "2"})
    waiting = [row["page_id"] for row in crawl.rows("select * from blocked_pages_at(%s, '{1}')", crawl.now)]
    assert crawl.release(1, waiting) == 4
    assert blocked(crawl, 1) == []
    crawl.wait(5 * SECOND)
    assert crawl.next(ahead=MINUTE)[0]["fetch_at"] == crawl.now


def test_ended_leases_and_reported_pages_are_not_told_of(crawl: Crawl) -> None:
    looking_ahead(crawl)
    crawl.report({"url": "http://a.test/1", "lease_id": 1, "status": 200})
    BLOCKS["block"](crawl)
    assert "http://a.test/1" not in blocked(crawl, 1)
    crawl.wait(HOUR)
    assert blocked(crawl, 1) == []


def test_pages_of_a_host_whose_block_ends_now_are_not_told_of(crawl: Crawl) -> None:
    looking_ahead(crawl)
    crawl.value("select block_host_at(%s, 'a.test', %s, null)", crawl.now, crawl.now + MINUTE)
    assert len(blocked(crawl, 1)) == 5
    crawl.wait(MINUTE)
    assert blocked(crawl, 1) == []


def test_a_further_429_of_a_blocked_host_moves_nothing_unless_it_asks_for_longer(crawl: Crawl) -> None:
    looking_ahead(crawl)
    BLOCKS["429"](crawl)
    until = crawl.host("a.test")["blocked_until"]
    for page, retry_after, longer in [(1, "60", False), (2, None, False), (3, "600", True)]:
        (answer,) = crawl.report(
            {"url": f"http://a.test/{page}", "lease_id": 1, "status": 429, "retry_after": retry_after}
        )
        assert (answer["blocked_until"] > until) == longer


# ------------------------------------------------------------------------------------------------- absolute time


@pytest.mark.parametrize("zone", ["America/New_York", "Pacific/Auckland", "UTC"])
@pytest.mark.parametrize("style", ["ISO, DMY", "SQL, MDY", "German, YMD"])
def test_dates_of_servers_mean_the_same_in_every_session(crawl: Crawl, zone: str, style: str) -> None:
    crawl.connection.execute(f"set timezone = '{zone}'")
    forms = ["Tue, 01 Jan 2030 00:02:00 GMT", "Tuesday, 01-Jan-30 00:02:00 GMT", "Tue Jan  1 00:02:00 2030", " 120 "]
    crawl.add(*(f"http://{i}.test/" for i in range(len(forms))))
    for page, form in zip(crawl.next(), forms, strict=True):
        crawl.connection.execute(f"set datestyle = '{style}'")  # psycopg reads no times in these
        crawl.connection.execute(
            "select count(*) from report_at('2030-01-01 00:00Z', %s)",
            [Jsonb([{"page_id": page["page_id"], "lease_id": 1, "status": 429, "retry_after": form}])],
        )
        crawl.connection.execute("set datestyle = 'ISO, MDY'")
        assert crawl.host(page["host"])["blocked_until"] == crawl.now + 2 * MINUTE, form


@pytest.mark.parametrize("form", ["Mon, 31 Dec 2029 10:00:00 GMT", "Mon Dec 31 10:00:00 2029", "2029-12-31 10:00:00"])
def test_a_date_without_a_zone_is_utc(crawl: Crawl, form: str) -> None:
    crawl.connection.execute("set timezone = 'America/New_York'")
    crawl.add("http://a.test/")
    crawl.report_ok(crawl.next(), last_modified=form)
    assert crawl.page("http://a.test/")["last_modified"] == crawl.now - 14 * HOUR


def test_a_day_is_24_hours_when_the_sessions_clocks_change(crawl: Crawl) -> None:
    """The night to 10 March 2030 has 23 hours in New York."""
    crawl.connection.execute("set timezone = 'America/New_York'")
    crawl.value("select set_setting('window_share', '0.1')")
    crawl.now = crawl.now.replace(month=3, day=9, hour=20)
    crawl.rows("select set_host_at(%s, 'a.test', '1 day', null, null, '{}')", crawl.now)
    crawl.value("select set_setting('default_gap', '1 day')")
    crawl.add(*(f"http://{c}.test/{i}" for c in "ab" for i in range(2)))
    first = crawl.next()
    results: list[Row] = [{"robots_denied": True}, {"status": 404}]
    for page, result in zip(first, results, strict=True):
        crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"]} | result)
    due = {row["page_id"]: row["due_at"] for row in crawl.rows("select page_id, due_at from page_status")}
    assert due[first[0]["page_id"]] == crawl.now + 7 * DAY
    assert crawl.now + 0.9 * DAY <= due[first[1]["page_id"]] <= crawl.now + 1.1 * DAY
    crawl.wait(DAY)
    assert crawl.next() == [], "a gap is a day, and its window"
    crawl.wait(2 * SECOND)
    assert len(crawl.next()) == 2


@pytest.mark.parametrize(
    ("query", "argument"),
    [
        ("select next_pages_at(%s, 1, '3 mons -90 days +11 min', '10 min', null)", "next_pages: ahead"),
        ("select next_pages_at(%s, 1, '1 year -360 days', '10 min', null)", "next_pages: ahead"),
        ("select next_pages_at(%s, 1, '0', '1 mon -29 days', null)", None),
        ("select next_pages_at(%s, 1, '0', '144 years', null)", "next_pages: lease"),
        ("select next_pages_at(%s, 1, '0', '1 mon -31 days', null)", "next_pages: lease"),
        ("select set_host_at(%s, 'a.test', '1 mon -31 days', null, null, '{}')", "set_host: gap"),
        ("select extend_lease_at(%s, 1, '1 mon -31 days')", "extend_lease: by"),
        ("select extend_lease_at(%s, 1, '178000000 years')", "extend_lease: by"),
    ],
)
def test_intervals_are_seconds_before_they_are_checked(crawl: Crawl, query: str, argument: str | None) -> None:
    if argument:
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"^{argument} must lie between"):
            crawl.rows(query, crawl.now)
    else:
        crawl.rows(query, crawl.now)


def test_a_look_ahead_of_months_and_days_that_cancel_is_what_is_left(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(100)))
    pages = crawl.rows(
        "select * from next_pages_at(%s, 10000, '3 mons -90 days +1 min', '1 mon -30 days +10 min', null)", crawl.now
    )
    assert len(pages) == 61
    assert max(page["fetch_at"] for page in pages) <= crawl.now + MINUTE
    assert {page["lease_until"] for page in pages} == {crawl.now + 11 * MINUTE}


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("longest_interval", "2 mons", "60 days"),
        ("default_gap", "90 min", "01:30:00"),
        ("keep_vitals", "1 day", "1 day"),
    ],
)
def test_settings_keep_what_intervals_come_to(crawl: Crawl, name: str, value: str, shown: str) -> None:
    crawl.value("select set_setting(%s, %s)", name, value)
    assert crawl.value("select value from settings where name = %s", name) == shown
    assert crawl.value(f"select extract(day from {name}) + extract(month from {name}) from setting") == 0


def test_settings_refuse_what_comes_to_too_little(crawl: Crawl) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="default_gap must lie between"):
        crawl.value("select set_setting('default_gap', '1 mon -31 days')")


# ---------------------------------------------------------------------------------------------------- redirects


@pytest.mark.parametrize("status", [302, 303, 307])
def test_where_a_page_redirects_for_now_is_a_page_that_it_links_to(crawl: Crawl, status: int) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    result = {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": status}
    assert codes(crawl.report(result | {"redirect_to": "http://b.test/x"})) == ["ok"]
    assert urls(crawl.rows("select url from successors(%s)", page["page_id"])) == ["http://b.test/x"]
    assert crawl.page("http://a.test/")["state"] == "live"
    assert urls(crawl.next()) == ["http://b.test/x"]


def test_a_redirect_joins_the_links_that_were_found(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.report(
        {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 302, "links": ["http://c.test/"]}
        | {"redirect_to": "http://b.test/"}
    )
    assert sorted(urls(crawl.rows("select url from successors(%s)", page["page_id"]))) == [
        "http://b.test/",
        "http://c.test/",
    ]
