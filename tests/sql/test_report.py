"""The effect of a report on the page, its host and its schedule."""

import json
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, result_of, urls


def popped(crawl: Crawl, url: str = "http://a.test/") -> Row:
    crawl.add(url)
    (page,) = crawl.next()
    return page


def fetch_again(crawl: Crawl, **more: object) -> Row:
    """The page's next visit, reported at once; one row of page_status afterwards."""
    crawl.now = crawl.value("select min(due_at) from queue") or crawl.now
    (page,) = crawl.next()
    (answer,) = crawl.report(result_of(page, **more))
    assert answer["code"] == "ok"
    return crawl.page(page["url"])


@pytest.mark.parametrize("status", [0, 200, 301, 404, 410, 429, 503])
def test_a_page_that_nobody_knows_spoils_no_other(crawl: Crawl, status: int) -> None:
    crawl.add("http://a.test/")
    answers = crawl.report(
        {"url": "http://a.test/", "status": status},
        {"url": "http://unknown.test/", "status": status},
        {"page_id": 999, "status": status},
    )
    assert codes(answers) == ["ok", "unknown_page", "unknown_page"]


# -------------------------------------------------------------------------------------------- what is fetched


def test_a_fetch_is_counted_and_its_validators_come_back_with_the_next_one(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.wait(SECOND)
    (answer,) = crawl.report(
        result_of(page, etag='"x"', last_modified="Mon, 31 Dec 2029 10:00:00 GMT", content_hash="h1", meta={"k": 1})
    )
    assert answer | {"detail": None} == {
        "ord": 1, "page_id": page["page_id"], "code": "ok", "detail": None, "next_fetch_at": page["fetch_at"] + DAY,
        "blocked_until": None,
    }  # fmt: skip
    status = crawl.page("http://a.test/")
    assert (status["successes"], status["changes"], status["state"], status["last_status"]) == (1, 0, "live", 200)
    assert status["fetched_at"] == page["fetch_at"], "where nothing is said, it was fetched in its slot"
    crawl.wait(DAY)
    (again,) = crawl.next()
    assert (again["etag"], again["content_hash"], again["meta"]) == ('"x"', "h1", {"k": 1})
    assert again["last_modified"] == crawl.value("select timestamptz '2029-12-31 10:00:00+00'")


@pytest.mark.parametrize(
    ("second", "changes"),
    [
        ({"changed": True}, 1),
        ({"changed": False}, 0),
        ({"content_hash": "h2"}, 1),
        ({"content_hash": "h1"}, 0),
        ({"status": 304}, 0),
        ({"status": 304, "changed": True}, 0),
        ({"changes": 3}, 3),
        ({"changed": False, "content_hash": "h2"}, 0),
        ({}, 0),
    ],
)
def test_what_counts_as_a_change(crawl: Crawl, second: Row, changes: int) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, content_hash="h1", changed=True))
    assert crawl.page("http://a.test/")["changes"] == 0, "the first fetch sets the base"
    assert fetch_again(crawl, **second)["changes"] == changes


def test_304_keeps_the_validators_and_200_replaces_them(crawl: Crawl) -> None:
    crawl.report(result_of(popped(crawl), etag='"x"', last_modified="2029-12-31T10:00:00Z"))
    assert fetch_again(crawl, status=304)["etag"] == '"x"'
    assert fetch_again(crawl, changes=0)["etag"] == '"x"', "the crawler says that it is the same version"
    status = fetch_again(crawl)
    assert (status["etag"], status["last_modified"]) == (None, None)


def test_hints_from_the_future_are_clamped(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, fetched_at="2099-01-01T00:00:00Z", last_modified="2099-01-01T00:00:00Z"))
    status = crawl.page("http://a.test/")
    assert (status["fetched_at"], status["last_modified"]) == (crawl.now, crawl.now)


# ------------------------------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize("status", [500, 502, 504, 599, 408, 425, 0, -1, -7])
def test_failures_back_off_doubling_and_are_no_observations(crawl: Crawl, status: int) -> None:
    page = popped(crawl)
    for attempt in range(13):
        minutes = min(360 * 2 ** (attempt - 1), 30 * 24 * 60) if attempt else 1
        assert page["attempt"] == attempt + 1
        assert crawl.page("http://a.test/")["state"] == ("failing" if attempt >= 5 else "new"), "by max_attempts"
        (answer,) = crawl.report(result_of(page, status=status, changed=True, content_hash="x"))
        assert 0.9 * minutes * MINUTE <= answer["next_fetch_at"] - crawl.now <= 1.1 * minutes * MINUTE
        crawl.tick()  # its host is blocked by the tenth, for a minute
        crawl.now = answer["next_fetch_at"]
        (page,) = crawl.next()
    assert crawl.page("http://a.test/")["successes"] == 0
    crawl.report(result_of(page))
    assert crawl.page("http://a.test/")["state"] == "live"


def test_missing_pages_are_rechecked_ever_more_rarely(crawl: Crawl) -> None:
    page = popped(crawl)
    for days in (1, 2, 4, 8, 16, 32, 64, 90, 90):
        (answer,) = crawl.report(result_of(page, status=404))
        assert 0.9 * days * DAY <= answer["next_fetch_at"] - crawl.now <= 1.1 * days * DAY
        crawl.now = answer["next_fetch_at"]
        (page,) = crawl.next()


def test_a_page_that_is_gone_leaves_for_good(crawl: Crawl) -> None:
    page = popped(crawl)
    (answer,) = crawl.report(result_of(page, status=410))
    assert (answer["code"], answer["next_fetch_at"]) == ("ok", None)
    crawl.tick()
    assert crawl.page("http://a.test/")["state"] == "gone"
    assert crawl.value("select count(*) from queue") == 0
    assert codes(crawl.add("http://a.test/")) == ["known"]


def test_robots_denied_is_rechecked_late(crawl: Crawl) -> None:
    page = popped(crawl)
    (answer,) = crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"], "robots_denied": True})
    assert answer["next_fetch_at"] == crawl.now + 7 * DAY


@pytest.mark.parametrize("said", [{}, {"status": 0}, {"status": 200}])
def test_a_page_that_robots_txt_forbids_can_be_told_from_others(crawl: Crawl, said: Row) -> None:
    page = popped(crawl)
    denied = {"page_id": page["page_id"], "lease_id": page["lease_id"], "robots_denied": True} | said
    crawl.report(denied)
    crawl.tick()
    assert crawl.page("http://a.test/")["state"] == "denied"
    assert fetch_again(crawl)["state"] == "live"
    crawl.report({"url": "http://a.test/", "status": 200, "robots_denied": True})
    assert crawl.page("http://a.test/")["state"] == "denied", "even one that was fetched before"
    assert fetch_again(crawl, status=500)["state"] == "live", "it was allowed to ask"


@pytest.mark.parametrize("status", [301, 308])
def test_a_permanent_redirect_hands_over_to_its_target(crawl: Crawl, status: int) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, status=status, redirect_to="https://b.test/new"))
    (target,) = crawl.next()
    assert target["url"] == "https://b.test/new"
    moved = crawl.page("http://a.test/")
    assert (moved["state"], moved["moved_to"]) == ("moved", target["page_id"])
    crawl.tick()
    assert crawl.value("select count(*) from queue") == 1


def test_the_target_of_a_permanent_redirect_keeps_the_meta_of_the_page(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2", meta=[{"kind": "list"}, {"kind": "item"}])
    crawl.add("http://a.test/known", meta=[{"kind": "known"}])
    crawl.add("http://a.test/3", meta=[{"kind": "old"}])
    pages = {page["url"]: page for page in crawl.next(4, ahead=MINUTE)}
    for source, target in (("http://a.test/1", "https://a.test/1"), ("http://a.test/2", "http://a.test/known")):
        crawl.report(result_of(pages[source], status=301, redirect_to=target, links=["http://a.test/linked"]))
    crawl.report(result_of(pages["http://a.test/3"], status=301, redirect_to="https://a.test/3", meta={"kind": "new"}))
    found = {row["url"]: row["meta"] for row in crawl.rows("select url, meta from page where state = 'live'")}
    assert found["https://a.test/1"] == {"kind": "list"}
    assert found["https://a.test/3"] == {"kind": "new"}
    assert found["http://a.test/known"] == {"kind": "known"}
    assert found["http://a.test/linked"] is None


def test_the_pages_of_a_full_host_may_move_on_it(crawl: Crawl) -> None:
    """As when a site moves to https: all its pages were lost."""
    crawl.value("select set_host('a.test', max_pages => 2), set_host('b.test', max_pages => 0)")
    crawl.add("http://a.test/1", "http://a.test/2")
    one, two = sorted(crawl.next(ahead=MINUTE), key=lambda page: page["url"])
    crawl.report(
        result_of(two, status=301, redirect_to="http://b.test/", links=["https://a.test/1", "https://a.test/3"]),
        result_of(one, status=301, redirect_to="https://a.test/1"),
    )
    crawl.tick()
    found = {row["url"]: row["state"] for row in crawl.rows("select url, state from page_status")}
    assert found == {"http://a.test/1": "moved", "http://a.test/2": "new", "https://a.test/1": "new"}
    assert crawl.value("select pages from host where name = 'a.test'") == 2


def test_a_redirect_has_room_on_a_full_host_although_its_report_brings_links(crawl: Crawl) -> None:
    """Before, links that found no room took the room of the redirect, and the page counted as missing."""
    crawl.value("select set_host('a.test', max_pages => 2)")
    crawl.add("http://a.test/1", "http://a.test/2")
    page, _ = crawl.next(ahead=MINUTE)
    links = [f"http://a.test/link/{n}" for n in range(3)]
    crawl.report(result_of(page, status=301, redirect_to="http://a.test/new", links=links))
    assert crawl.page(page["url"])["state"] == "moved"


def test_a_redirect_on_a_host_leaves_the_last_room_to_a_link(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', max_pages => 2)")
    page = popped(crawl)
    crawl.report(result_of(page, status=301, redirect_to="http://a.test/new", links=["http://a.test/link"]))
    states = {row["url"]: row["state"] for row in crawl.rows("select url, state from page_status")}
    assert states == {page["url"]: "moved", "http://a.test/new": "new", "http://a.test/link": "new"}


def test_a_page_that_moves_again_and_again_fills_its_host_with_twice_its_pages_at_most(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', max_pages => 2)")
    (row,) = crawl.add("http://a.test/")
    for n in range(9):
        crawl.report({"page_id": row["page_id"], "status": 301, "redirect_to": f"http://a.test/{n}"})
        crawl.tick()
    assert crawl.value("select count(*) from page") <= 5


@pytest.mark.parametrize("target", [None, "http://a.test/#x", "mailto:x"])
def test_a_redirect_to_nowhere_is_a_missing_page(crawl: Crawl, target: str | None) -> None:
    page = popped(crawl)
    more: dict[str, Any] = {} if target is None else {"redirect_to": target}
    (answer,) = crawl.report(result_of(page, status=301, **more))
    assert answer["next_fetch_at"] - crawl.now >= 0.9 * DAY
    assert crawl.page("http://a.test/")["state"] == "new"


def test_a_temporary_redirect_is_a_fetch(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, status=302, redirect_to="http://b.test/"))
    assert crawl.page("http://a.test/")["successes"] == 1


# ------------------------------------------------------------------------------------------------- the host


@pytest.mark.parametrize("status", [429, 503])
def test_throttling_blocks_the_host_longer_each_time_and_is_forgiven(crawl: Crawl, status: int) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(20)))
    for seconds in (60, 120, 240):
        (page,) = crawl.next()
        crawl.report(result_of(page, status=status))
        host = crawl.row("select blocked_until, blocked_reason from host")
        assert 0.9 * seconds * SECOND <= host["blocked_until"] - crawl.now <= 1.1 * seconds * SECOND
        assert host["blocked_reason"] == f"it answered {status}"
        assert crawl.next() == []
        crawl.now = host["blocked_until"]
    crawl.wait(31 * MINUTE)
    (page,) = crawl.next()
    crawl.report(result_of(page, status=status))
    assert crawl.value("select blocked_until from host") - crawl.now <= 66 * SECOND


@pytest.mark.parametrize(
    ("retry_after", "wait"),
    [
        (90, 90 * SECOND),
        ("90", 90 * SECOND),
        ("Tue, 01 Jan 2030 00:05:00 GMT", 5 * MINUTE),
        (1e9, DAY),
        (0, SECOND),
        ("Mon, 01 Jan 2029 00:05:00 GMT", SECOND),
    ],
)
def test_retry_after_is_obeyed_within_reason(crawl: Crawl, retry_after: object, wait: timedelta) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, status=429, retry_after=retry_after))
    assert crawl.value("select blocked_until from host") == crawl.now + wait


def test_many_answers_to_requests_under_way_are_one_strike(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(10)))
    pages = crawl.next(ahead=9 * SECOND)
    for page in pages:
        crawl.report(result_of(page, status=429))
    crawl.report_ok([], status=429)
    assert crawl.value("select strikes from host") == 1


def test_a_page_that_is_always_throttled_does_not_keep_its_host_from_the_others(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(20)))
    asked: dict[str, int] = {}
    end = crawl.now + 10 * DAY
    while crawl.now < end:
        crawl.tick()
        for page in crawl.next():
            asked[page["url"]] = asked.get(page["url"], 0) + 1
            crawl.report(result_of(page, status=503 if page["url"].endswith("/7") else 200))
        crawl.now = max(crawl.now + SECOND, crawl.value("select next_ready_time(%s)", crawl.now) or end)
    throttled = asked.pop("http://a.test/7")
    assert min(asked.values()) >= 9, "once a day, as if there were no other page"
    assert 5 <= throttled <= 12, "ever more rarely"


def test_a_host_that_gave_a_page_since_is_held_for_no_longer_than_the_last_time(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(12)))

    def answers(status: int) -> float:
        (page,) = crawl.next()
        crawl.report(result_of(page, status=status))
        held = max(crawl.value("select blocked_until from host") - crawl.now, 0 * SECOND)
        crawl.wait(held + SECOND)
        crawl.tick()
        return float(held / MINUTE)

    for _ in range(3):
        assert answers(429) == pytest.approx(1, rel=0.11)
        answers(200)
    for minutes in (1, 2, 4):
        assert answers(429) == pytest.approx(minutes, rel=0.11)


@pytest.mark.parametrize("retry_after", ["0", "1", "Mon, 01 Jan 2029 00:05:00 GMT"])
def test_a_host_that_asks_for_a_moment_and_refuses_again_is_left_alone_for_longer(
    crawl: Crawl, retry_after: str
) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    held = []
    for _ in range(4):
        (page,) = crawl.next()
        crawl.report(result_of(page, status=429, retry_after=retry_after))
        held.append((crawl.value("select blocked_until from host") - crawl.now) / MINUTE)
        crawl.wait(held[-1] * MINUTE + SECOND)
        crawl.tick()
    assert held == pytest.approx([1 / 60, 2, 4, 8], rel=0.11)


def test_a_page_that_fails_is_tried_in_a_minute_then_by_how_often_it_is_visited(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.value("select set_interval(%s::bigint[], '16 days')", [page["page_id"]])
    waits = []
    for _ in range(8):
        (answer,) = crawl.report(result_of(page, status=0))
        waits.append((answer["next_fetch_at"] - crawl.now) / DAY)
        crawl.now = answer["next_fetch_at"] + SECOND
        crawl.tick()
        (page,) = crawl.next()
    assert waits == pytest.approx([1 / 1440, 1, 2, 4, 8, 16, 30, 30], rel=0.11)


def test_a_page_that_is_missing_after_it_failed_is_missing_for_the_first_time(crawl: Crawl) -> None:
    page = popped(crawl)
    for status, days in (0, 1 / 1440), (0, 1 / 4), (404, 1), (404, 8):
        (answer,) = crawl.report(result_of(page, status=status))
        assert (answer["next_fetch_at"] - crawl.now) / DAY == pytest.approx(days, rel=0.11)
        crawl.now = answer["next_fetch_at"] + SECOND
        crawl.tick()
        (page,) = crawl.next()


@pytest.mark.parametrize(
    ("statuses", "reason"),
    [
        ([-1] * 10, "10 of its last 10 fetches failed"),
        ([200, -1] * 10, "10 of its last 20 fetches failed"),
        ([200] * 5 + [-1] * 10, "10 of its last 10 fetches failed"),
    ],
)
def test_a_host_that_mostly_fails_is_blocked(crawl: Crawl, statuses: list[int], reason: str) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(30)))
    for status in statuses:
        assert crawl.value("select blocked_until from host") is None
        (page,) = crawl.next()
        crawl.report(result_of(page, status=status))
        crawl.tick()
        crawl.wait(SECOND)
    assert crawl.value("select blocked_until from host") > crawl.now + 50 * SECOND
    assert crawl.value("select blocked_reason from host") == reason


def test_a_host_that_fails_now_and_then_is_not(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(100)))
    for i in range(80):
        (page,) = crawl.next()
        crawl.report(result_of(page, status=500 if i % 3 == 0 else 200))
        crawl.tick()
        crawl.wait(SECOND)
    assert crawl.value("select blocked_until from host") is None


def test_a_late_request_moves_the_next_slot(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    (page,) = crawl.next()
    crawl.wait(30 * SECOND)
    crawl.report(result_of(page, fetched_at=(crawl.now - SECOND / 2).isoformat()))
    assert crawl.next() == []
    crawl.wait(SECOND / 2)
    assert len(crawl.next()) == 1


def test_a_request_within_start_by_moves_nothing(crawl: Crawl) -> None:
    crawl.value("select set_setting('window_share', '0.5')")
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    (page,) = crawl.next()
    assert page["start_by"] == crawl.now + SECOND / 2
    crawl.wait(1.5 * SECOND)
    crawl.report(result_of(page, fetched_at=page["start_by"].isoformat()))
    assert len(crawl.next()) == 1


def test_a_request_past_start_by_moves_the_next_slot_a_gap_beyond_it(crawl: Crawl) -> None:
    crawl.value("select set_setting('window_share', '0.1')")
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    (page,) = crawl.next()
    began = crawl.now + 0.9 * SECOND
    crawl.wait(SECOND)
    crawl.report(result_of(page, fetched_at=began.isoformat()))
    assert crawl.host("a.test")["next_slot_at"] == began + SECOND


@pytest.mark.parametrize("first", ["report", "release"])
def test_a_request_past_start_by_counts_although_later_pages_are_given_back(crawl: Crawl, first: str) -> None:
    """Before, these slots came back, and the next slot was less than a gap after the late request."""
    crawl.value("select set_setting('window_share', '0.1')")
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    page, *others = crawl.next(ahead=3 * SECOND)
    assert len(others) == 2
    began = crawl.now + 0.9 * SECOND
    crawl.wait(SECOND)
    if first == "release":
        crawl.release(page["lease_id"], [other["page_id"] for other in others])
    crawl.report(result_of(page, fetched_at=began.isoformat()))
    crawl.release(page["lease_id"])
    following, *_ = crawl.next(ahead=4 * SECOND)
    assert following["fetch_at"] >= began + SECOND


def test_a_late_request_counts_when_its_report_makes_the_gap_longer(crawl: Crawl) -> None:
    page = popped(crawl)
    began = crawl.now + 3 * SECOND
    crawl.wait(5 * SECOND)
    crawl.report(result_of(page, fetched_at=began.isoformat(), crawl_delay=10))
    assert SECOND > crawl.host("a.test")["next_slot_at"] - (began + 10 * SECOND) >= timedelta(0)


def test_crawl_delay_lengthens_the_gap_unless_the_operator_said_otherwise(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    crawl.report(result_of(crawl.next()[0], crawl_delay=10))
    assert crawl.host("a.test")["gap"] == 10 * SECOND
    crawl.wait(11 * SECOND)
    crawl.report(result_of(crawl.next()[0], crawl_delay=86400))
    assert crawl.host("a.test")["gap"] == MINUTE, "clamped"
    crawl.value("select set_host_at(%s, 'a.test', '2 s', null, null, '{}')", crawl.now)
    assert crawl.host("a.test")["gap"] == 2 * SECOND


@pytest.mark.parametrize("by", ["report", "set_robots"])
def test_a_crawl_delay_below_a_second_counts_too(crawl: Crawl, by: str) -> None:
    crawl.value("select set_setting('default_gap', '0.1 s')")
    page = popped(crawl)
    if by == "report":
        crawl.report(result_of(page, crawl_delay=0.5))
    else:
        crawl.value("select set_robots_at(%s, 'http://a.test/', 200, '', 0.5)", crawl.now)
    assert crawl.host("a.test")["gap"] == SECOND / 2


def test_a_reported_crawl_delay_does_not_shorten_the_one_of_robots_txt(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://a.test/1")
    crawl.value("select set_robots_at(%s, 'http://a.test/', 200, '', 10)", crawl.now)
    crawl.report(result_of(crawl.next()[0], crawl_delay=1))
    assert crawl.host("a.test")["gap"] == 10 * SECOND
    crawl.wait(11 * SECOND)
    crawl.report(result_of(crawl.next()[0], crawl_delay=15))
    assert crawl.host("a.test")["gap"] == 15 * SECOND


def test_a_reported_crawl_delay_stays_when_another_site_of_the_host_has_none(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.report(result_of(crawl.next()[0], crawl_delay=30))
    crawl.value("select set_robots_at(%s, 'https://a.test/', 200, '', null)", crawl.now)
    assert crawl.host("a.test")["gap"] == 30 * SECOND
    for delay, gap in ((50, 50), (None, 1)):
        crawl.value("select set_robots_at(%s, 'https://a.test/', 200, '', %s)", crawl.now, delay)
        assert crawl.host("a.test")["gap"] == gap * SECOND, "nothing that a report gave is left"


# ------------------------------------------------------------------------- twice, late, unknown, out of order


def test_a_second_report_is_a_duplicate(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page))
    (answer,) = crawl.report(result_of(page, status=500))
    assert (answer["code"], answer["detail"]) == ("duplicate", "it was reported before")
    status = crawl.page("http://a.test/")
    assert (status["successes"], status["last_status"]) == (1, 200)


def test_twice_in_one_call_is_once(crawl: Crawl) -> None:
    page = popped(crawl)
    assert codes(crawl.report(result_of(page), result_of(page))) == ["ok", "duplicate"]
    assert crawl.page("http://a.test/")["successes"] == 1


def test_a_stale_report_is_an_observation_once_and_moves_nothing(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.wait(11 * MINUTE)
    (second,) = crawl.next()
    assert second["page_id"] == page["page_id"]
    (answer,) = crawl.report(result_of(page))
    assert (answer["code"], answer["detail"]) == (
        "stale_lease",
        "the lease does not hold the page; it counts as an observation",
    )
    assert crawl.page("http://a.test/")["successes"] == 1
    assert codes(crawl.report(result_of(page))) == ["duplicate"]
    assert crawl.page("http://a.test/")["successes"] == 1
    assert crawl.next() == [], "the second crawler's lease still holds it"
    crawl.wait(MINUTE)
    assert codes(crawl.report(result_of(second))) == ["ok"]
    assert crawl.page("http://a.test/")["successes"] == 2


def test_a_stale_failure_changes_nothing(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.wait(11 * MINUTE)
    (second,) = crawl.next()
    (answer,) = crawl.report(result_of(page, status=500))
    assert (answer["code"], answer["detail"]) == ("stale_lease", f"lease {page['lease_id']} does not hold the page")
    assert codes(crawl.report(result_of(second))) == ["ok"]


def test_an_older_lease_after_a_newer_report_counts_only_with_a_later_fetch(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.wait(11 * MINUTE)
    (second,) = crawl.next()
    crawl.report(result_of(second))
    assert codes(crawl.report(result_of(page))) == ["stale_lease"]
    assert crawl.page("http://a.test/")["successes"] == 1


def test_a_lease_that_was_never_given_is_stale_and_no_observation(crawl: Crawl) -> None:
    page = popped(crawl)
    assert codes(crawl.report(result_of(page, lease_id=999))) == ["stale_lease"]
    assert crawl.page("http://a.test/")["successes"] == 0
    assert codes(crawl.report(result_of(page))) == ["ok"]


def test_another_crawlers_lease_does_not_hold_my_page(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    (mine,) = crawl.next(1)
    (theirs,) = crawl.next(1)
    assert codes(crawl.report(result_of(mine, lease_id=theirs["lease_id"], status=500))) == ["stale_lease"]
    assert codes(crawl.report_ok([mine, theirs])) == ["ok", "ok"]


def test_without_a_lease_a_report_is_an_observation_and_the_page_is_not_handed_out_twice(crawl: Crawl) -> None:
    page = popped(crawl)
    assert codes(crawl.report({"url": "http://A.test:80/#x", "status": 200})) == ["ok"]
    assert crawl.page("http://a.test/")["successes"] == 1
    crawl.wait(11 * MINUTE)
    crawl.tick()
    assert crawl.next() == [], "the reaper sees that it was reported"
    assert crawl.value("select due_at from queue") == page["fetch_at"] + DAY


@pytest.mark.parametrize("due", [None, timedelta(days=3)])
@pytest.mark.parametrize("ends", [{"status": 410}, {"status": 301, "redirect_to": "http://b.test/"}])
def test_a_page_that_ends_without_a_lease_leaves_the_queue_and_its_host(
    crawl: Crawl, due: timedelta | None, ends: Row
) -> None:
    """It kept its place, in the room of another page if its host has max_pages."""
    crawl.add("http://a.test/", due=[due and crawl.now + due])
    crawl.tick()
    assert codes(crawl.report({"url": "http://a.test/"} | ends)) == ["ok"]
    crawl.tick()
    assert crawl.host("a.test")["pages"] == 0
    assert crawl.rows("select from queue where host_id = 1 union all select from new_page where host_id = 1") == []


def test_older_than_the_last_fetch_is_a_duplicate_where_there_is_no_lease(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page))
    earlier = (crawl.now - HOUR).isoformat()
    assert codes(crawl.report({"page_id": page["page_id"], "status": 200, "fetched_at": earlier})) == ["duplicate"]


def test_unknown_pages_are_told(crawl: Crawl) -> None:
    answers = crawl.report({"page_id": 999, "status": 200}, {"url": "http://no.test/", "status": 200})
    assert codes(answers) == ["unknown_page"] * 2
    assert [a["detail"] for a in answers] == ["there is no page 999", "there is no page http://no.test/"]


@pytest.mark.parametrize(
    ("element", "detail"),
    [
        ({"status": 200}, "page_id or url is missing"),
        ({"page_id": 1}, "status is missing"),
        ({"page_id": 1, "status": 200, "stauts": 1}, 'unknown key "stauts"'),
        ({"page_id": 1, "status": 200, "ord": "x"}, 'unknown key "ord"'),
        ({"page_id": 1, "status": 99}, "status must be an HTTP status, or 0 or less when there was no answer, got 99"),
        (
            {"page_id": 1, "status": 1000},
            "status must be an HTTP status, or 0 or less when there was no answer, got 1000",
        ),
        (
            {"page_id": 1, "status": -32769},
            "status must be an HTTP status, or 0 or less when there was no answer, got -32769",
        ),
        ({"page_id": 1, "status": 200, "content_hash": "x" * 1001}, "content_hash is longer than 1000 characters"),
        ({"page_id": 1, "status": "ok"}, 'status: invalid input syntax for type integer: "ok"'),
        ({"page_id": 1, "status": "NaN"}, 'invalid input syntax for type integer: "NaN"'),
        ({"page_id": 1, "status": 1e40}, "out of range"),
        ({"page_id": "x", "status": 200}, 'invalid input syntax for type bigint: "x"'),
        ({"page_id": 1, "status": 200, "changes": -1}, "changes must not be negative, got -1"),
        (
            {"page_id": 1, "status": 200, "fetched_at": "soon"},
            'invalid input syntax for type timestamp with time zone: "soon"',
        ),
        ({"page_id": 1, "status": 200, "fetched_at": "infinity"}, "fetched_at must be a finite time after 1970"),
        ({"page_id": 1, "status": 200, "links": "x"}, 'links: malformed array literal: "x"'),
        ({"page_id": 1, "status": 200, "links": {"a": 1}}, "expected JSON array"),
        ({"page_id": 1, "status": 200, "links": [[[[[[["x"]]]]]]]}, "links: number of array dimensions (7)"),
        ({"page_id": 1, "status": 200, "sketch": json.loads("[" * 500 + "]" * 500)}, "sketch: number of array dim"),
        (7, "an element must be an object, got number"),
        ([1], "an element must be an object, got array"),
        (None, "an element must be an object, got null"),
    ],
)
def test_a_bad_element_is_told_why_and_harms_no_other(crawl: Crawl, element: object, detail: str) -> None:
    page = popped(crawl)
    before, bad, after = crawl.report({"page_id": 999, "status": 200}, element, result_of(page))
    assert (before["code"], bad["code"], after["code"]) == ("unknown_page", "invalid", "ok")
    assert (before["ord"], bad["ord"], after["ord"]) == (1, 2, 3)
    assert detail in bad["detail"]


@pytest.mark.parametrize(
    "nonsense",
    [
        {"retry_after": "soon"},
        {"last_modified": "Wed, 32 Foo 2026"},
        {"last_modified": "infinity"},
        {"last_modified": "Mon, 01 Jan 0001 00:00:00 GMT"},
        {"last_modified": "2300-01-01"},
        {"crawl_delay": "NaN"},
        {"crawl_delay": -1},
        {"crawl_delay": "1s"},
        {"crawl_delay": 1e40},
        {"etag": "x" * 1001},
        {"redirect_to": "javascript:void(0)"},
    ],
)
def test_what_a_server_said_is_ignored_where_it_makes_no_sense(crawl: Crawl, nonsense: dict[str, object]) -> None:
    page = popped(crawl)
    (row,) = crawl.report(result_of(page) | nonsense)
    assert row["code"] == "ok"
    status = crawl.page(page["url"])
    assert (status["successes"], status["etag"], status["last_modified"]) == (1, None, None)


def test_one_bad_hint_spoils_no_other(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, retry_after="oops", crawl_delay=30, last_modified="2020-01-01"))
    assert crawl.page(page["url"])["last_modified"].year == 2020
    assert crawl.host(page["host"])["gap"] == 30 * SECOND


def test_retry_after_of_a_page_that_came_says_nothing_of_the_host(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2")
    first, second = crawl.next(ahead=SECOND)
    crawl.report(result_of(first, status=429), result_of(second, retry_after="86400", crawl_delay=1))
    assert crawl.host("a.test")["blocked_until"] <= crawl.now + 66 * SECOND


def test_a_page_at_the_end_of_an_endless_chain_of_links_is_reported(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.connection.execute("update page set depth = 32767")
    assert codes(crawl.report_ok([page], links=["http://deep.test/"])) == ["ok"]
    assert crawl.page("http://deep.test/")["depth"] == 32767


def test_changes_without_number_are_counted_as_far_as_numbers_go(crawl: Crawl) -> None:
    for _ in range(3):
        page = popped(crawl)
        assert codes(crawl.report_ok([page], changes=2_147_483_647)) == ["ok"]
        crawl.wait(2 * DAY)
    assert crawl.page(page["url"])["changes"] == 2_147_483_647


@pytest.mark.parametrize("order", [1, -1])
def test_results_of_a_page_on_two_leases_are_judged_one_after_the_other(crawl: Crawl, order: int) -> None:
    stale = popped(crawl)
    crawl.wait(HOUR)
    crawl.tick()
    (held,) = crawl.next()
    results = [result_of(stale, links=["http://old.test/"]), result_of(held, links=["http://new.test/"])]
    answers = crawl.report(*results[::order])
    assert codes(answers)[::order] == ["stale_lease", "ok"]
    assert crawl.rows("select * from lease_status") == []
    assert urls(crawl.rows("select * from successors(%s)", held["page_id"])) == ["http://new.test/"]


def test_invented_leases_keep_nobody_from_reporting_the_page(crawl: Crawl) -> None:
    page = popped(crawl)
    invented = [result_of(page) | {"lease_id": 1000 + i} for i in range(500)]
    answers = crawl.report(*invented, result_of(page))
    assert codes(answers) == ["stale_lease"] * 500 + ["ok"]
    assert crawl.page(page["url"])["successes"] == 1


@pytest.mark.parametrize("order", [1, -1])
def test_of_several_results_of_a_page_in_a_call_the_one_that_is_held_counts(crawl: Crawl, order: int) -> None:
    stale = popped(crawl)
    crawl.wait(HOUR)
    crawl.tick()
    (held,) = crawl.next()
    without = {"page_id": held["page_id"], "status": 200, "content_hash": "without"}
    results = [result_of(stale, content_hash="stale"), result_of(held, content_hash="held"), without, result_of(held)]
    answers = crawl.report(*results[::order])
    assert sorted(codes(answers)) == ["duplicate", "duplicate", "ok", "stale_lease"]
    assert crawl.page(held["url"])["successes"] == 1
    assert crawl.page(held["url"])["content_hash"] == ("held" if order == 1 else None)


def test_what_comes_late_does_not_turn_time_back(crawl: Crawl) -> None:
    stale = popped(crawl)
    crawl.wait(HOUR)
    crawl.tick()
    (held,) = crawl.next()
    crawl.wait(MINUTE)
    crawl.report_ok([stale])
    crawl.report_ok([held])
    assert crawl.page(held["url"])["fetched_at"] == crawl.now


def test_a_leased_page_was_not_fetched_before_it_was_handed_out(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.wait(MINUTE)
    crawl.report_ok([page], fetched_at="2001-01-01")
    assert crawl.page(page["url"])["fetched_at"] == crawl.now - MINUTE


def test_a_status_that_no_standard_knows_is_a_failure(crawl: Crawl) -> None:
    page = popped(crawl)
    (row,) = crawl.report(result_of(page) | {"status": 999})
    assert row["code"] == "ok"
    assert crawl.page(page["url"])["attempts"] == 1


@pytest.mark.parametrize("results", ["{}", '"x"', "7", "null", None])
def test_results_must_be_an_array(crawl: Crawl, results: str | None) -> None:
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="report: results must be a JSON array of objects, got"
    ):
        crawl.rows("select * from report(%s::jsonb)", results)


@pytest.mark.parametrize("text", ["[", '[{"page_id": NaN}]', '[{"etag": "\\u0000"}]'])
def test_malformed_json_rejects_the_batch(crawl: Crawl, text: str) -> None:
    with pytest.raises(psycopg.DataError):
        crawl.rows("select * from report(%s::jsonb)", text)


def test_an_empty_report_answers_nothing(crawl: Crawl) -> None:
    assert crawl.report() == []


# -------------------------------------------------------------------------------------------------- the twin


def test_the_array_twin_says_the_same(crawl: Crawl) -> None:
    crawl.add(*(f"http://{c}.test/" for c in "abcd"))
    pages = crawl.next()
    rows = crawl.rows(
        "select * from report_pages_at(%s, %s, %s, %s, %s, null, %s, %s, null)",
        crawl.now,
        [p["page_id"] for p in pages] + [999, None],
        [p["lease_id"] for p in pages] + [None, None],
        [200, 404, 500, 99, 200, 200],
        [True, None, None, None, None, None],
        ["h", None, None, None, None, None],
        ['"x"', None, None, None, None, None],
    )
    assert codes(rows) == ["ok", "ok", "ok", "invalid", "unknown_page", "invalid"]
    status = crawl.page(pages[0]["url"])
    assert (status["successes"], status["content_hash"], status["etag"]) == (1, "h", '"x"')


TWINS: list[tuple[str, str, object]] = [
    ("changes", "int[]", 3), ("relevance", "float8[]", 0.25), ("sketch", "int[]", [1, 2, 3, 4, 5, 6, 7, 8]),
    ("links", "jsonb[]", ["http://c.test/", "http://d.test/"]), ("retry_after", "text[]", "77"),
    ("crawl_delay", "float8[]", 9.0), ("redirect_to", "text[]", "http://d.test/"), ("robots_denied", "boolean[]", True),
    ("meta", "jsonb[]", {"k": 1}), ("changed", "boolean[]", True), ("content_hash", "text[]", "h"),
    ("etag", "text[]", "e"), ("due", "timestamptz[]", "2030-02-03 04:05Z"), ("declined", "boolean[]", True),
    ("last_modified", "timestamptz[]", "2029-12-01 00:00Z"), ("fetched_at", "timestamptz[]", "2030-01-02 00:00:01Z"),
]  # fmt: skip
KNOWN = """
    select p.url, p.state, p.due_at, p.fetched_at, p.changes, p.rate, p.relevance, p.sketch, p.etag, p.last_modified,
           p.content_hash, p.meta, p.attempts, h.blocked_until, h.crawl_delay,
           array(select url from successors(p.page_id) order by url) as links
    from page_status p join host_status h using (host) order by p.url
"""


@pytest.mark.parametrize(("name", "type_", "value"), TWINS, ids=[name for name, _, _ in TWINS])
def test_the_array_twin_takes_what_report_takes(crawl: Crawl, name: str, type_: str, value: object) -> None:
    """The same crawl twice for each status, in transactions that are rolled back: once in JSON, once in arrays."""
    crawl.add("http://a.test/", "http://b.test/", rate=[4.0])
    crawl.report_ok(crawl.next(), content_hash="h0")
    crawl.wait(DAY)
    a, b = crawl.next()
    nothing = [None] * 8 if name == "sketch" else [None]
    given = value if name == "sketch" else [Jsonb(value) if type_ == "jsonb[]" else value]
    given = [*given, *nothing]  # type: ignore[misc]
    columns = "".join(f", {f'%s::{type_}' if name == column else 'null'}" for column in COLUMNS)
    pages = [a["page_id"], b["page_id"]], [a["lease_id"]] * 2
    for status in (200, 301, 302, 304, 404, 429):
        after = []
        for twin in ("json", "arrays"):
            with crawl.connection.transaction(force_rollback=True):
                crawl.value("select setseed(0.5)")
                if twin == "json":
                    answers = crawl.report(result_of(a, status=status, **{name: value}), result_of(b))
                else:
                    answers = crawl.rows(
                        f"select * from report_pages_at(%s, %s, %s, %s{columns})",
                        crawl.now, *pages, [status, 200], given,
                    )  # fmt: skip
                after.append((answers, crawl.rows(KNOWN)))
        assert after[0] == after[1], status


COLUMNS = [
    "changed", "fetched_at", "content_hash", "etag", "last_modified", "changes", "sketch", "links", "relevance",
    "retry_after", "crawl_delay", "redirect_to", "robots_denied", "meta", "due", "declined",
]  # fmt: skip


def test_the_twin_is_compared_in_all_that_a_result_may_hold(crawl: Crawl) -> None:
    elements = crawl.rows("select unnest(result_keys()) as name")
    arguments = crawl.value("select proargnames from pg_proc where oid = 'report_pages'::regproc")
    assert arguments[:3] == ["page_ids", "lease_ids", "statuses"]
    assert arguments[3 : 3 + len(COLUMNS)] == COLUMNS
    assert {row["name"] for row in elements} - {"page_id", "url", "lease_id", "status"} == set(COLUMNS)
    assert {name for name, _, _ in TWINS} == set(COLUMNS)


def test_links_of_the_array_twin_must_be_arrays(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    a, b = crawl.next()
    answers = crawl.rows(
        "select * from report_pages(%s, %s, '{200,200}', links => %s)",
        [a["page_id"], b["page_id"]], [a["lease_id"]] * 2, [Jsonb({"x": 1}), Jsonb(["http://c.test/", 7, None])],
    )  # fmt: skip
    assert [(row["code"], row["detail"]) for row in answers] == [
        ("invalid", "links must be a JSON array of URLs"), ("ok", None),
    ]  # fmt: skip
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="sketch must have 8 elements for each of the 1 page"
    ):
        crawl.rows("select * from report_pages('{1}', '{1}', '{200}', sketch => '{1,2}')")


def test_the_array_twin_wants_arrays_of_one_length(crawl: Crawl) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows("select * from report_pages('{1,2}', '{1}', '{200,200}')")
    assert error.value.diag.message_primary == (
        "report_pages: lease_ids must have one element for each of the 2 page_ids, got 1"
    )


# -------------------------------------------------------------------------------------------------- the links


def links_of(crawl: Crawl, url: str) -> list[str] | None:
    rows = crawl.rows(
        "select array(select t.url from page t where t.page_id in (select unpacked(l.targets)) order by t.url) as urls"
        " from link l join page p using (page_id) where p.url = %s",
        url,
    )
    return rows[0]["urls"] if rows else None


def test_links_are_stored_and_what_they_lead_to_becomes_pages(crawl: Crawl) -> None:
    page = popped(crawl)
    (answer,) = crawl.report(
        result_of(page, links=["http://b.test/", "http://b.test/#x", "http://a.test/", "mailto:x", "http://c.test/"])
    )
    assert answer["code"] == "ok"
    assert links_of(crawl, "http://a.test/") == ["http://b.test/", "http://c.test/"]
    assert sorted(p["url"] for p in crawl.next()) == ["http://b.test/", "http://c.test/"]
    assert crawl.page("http://b.test/")["depth"] == 1


def test_no_links_are_not_unknown_links(crawl: Crawl) -> None:
    crawl.report(result_of(popped(crawl), links=["http://b.test/"]))
    fetch_again_a = crawl.now + DAY
    crawl.report_ok(crawl.next())
    crawl.now = fetch_again_a
    pages = crawl.next()
    crawl.report_ok(pages)
    assert links_of(crawl, "http://a.test/") == ["http://b.test/"], "absent: unknown, kept"
    crawl.now += DAY
    crawl.report_ok(crawl.next(), links=[])
    assert links_of(crawl, "http://a.test/") == [], "empty: none"


def test_a_failure_brings_no_links(crawl: Crawl) -> None:
    crawl.report(result_of(popped(crawl), status=500, links=["http://b.test/"]))
    assert links_of(crawl, "http://a.test/") is None


def test_a_ten_megabyte_body_of_links_is_cut(crawl: Crawl) -> None:
    page = popped(crawl)
    links = [f"http://b.test/{i:090}" for i in range(100_000)]
    assert len(json.dumps(links)) > 10_000_000
    (answer,) = crawl.report(result_of(page, links=links))
    assert (answer["code"], answer["detail"]) == ("ok", "the first 10000 of its 100000 links were taken")
    assert crawl.value("select count(*) from page") == 10_001


def test_links_deeper_than_max_depth_are_not_taken_in(crawl: Crawl) -> None:
    crawl.value("select set_setting('max_depth', '1')")
    crawl.report(result_of(popped(crawl), links=["http://b.test/"]))
    crawl.report_ok(crawl.next(), links=["http://c.test/", "http://a.test/"])
    assert crawl.next() == []
    assert links_of(crawl, "http://b.test/") == ["http://a.test/"]


def test_forgetting_a_page_forgets_its_links(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report(result_of(page, links=["http://b.test/"]))
    crawl.value("select keep_out(array[%s::bigint])", page["page_id"])
    assert links_of(crawl, "http://a.test/") is None


def moved(crawl: Crawl) -> dict[str, str | None]:
    to = {row["page_id"]: row["url"] for row in crawl.rows("select page_id, url from page_status")}
    pages = crawl.rows("select url, state, moved_to from page_status order by url")
    return {row["url"][7:8]: to[row["moved_to"]][7:8] if row["state"] == "moved" else None for row in pages}


def test_redirects_in_a_circle_within_one_report_lose_no_page(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    a, b, c = sorted(crawl.next(), key=lambda page: page["host"])
    crawl.report(*(result_of(p, status=301, redirect_to=t["url"]) for p, t in ((a, b), (b, c), (c, a))))
    assert moved(crawl) == {"a": "b", "b": "c", "c": None}
    assert crawl.page(c["url"])["due_at"] is not None


def test_a_redirect_to_a_page_that_moved_leads_to_where_that_went(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    a, b = sorted(crawl.next(), key=lambda page: page["host"])
    crawl.report(result_of(b, status=308, redirect_to="http://c.test/"))
    crawl.report(result_of(a, status=301, redirect_to=b["url"]))
    assert moved(crawl) == {"a": "c", "b": "c", "c": None}


def test_redirects_in_a_circle_lose_no_page(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "https://b.test/")
    there, back = sorted(crawl.next(), key=lambda page: page["url"])
    crawl.report(result_of(there, status=301, redirect_to=back["url"]))
    (answer,) = crawl.report(result_of(back, status=301, redirect_to=there["url"]))
    assert answer["next_fetch_at"] > crawl.now, "it is a missing page, to be rechecked"
    assert [crawl.page(page["url"])["state"] for page in (there, back)] == ["moved", "new"]


def test_a_block_names_the_status_that_caused_it(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2")
    crawl.tick()
    crawl.connection.execute("update setting set default_gap = '1 s'")
    pages = crawl.next(ahead=3 * SECOND)
    late = {"status": 500, "fetched_at": (crawl.now + HOUR).isoformat()}
    crawl.wait(2 * HOUR)
    crawl.report(result_of(pages[0], status=429), result_of(pages[1], **late))
    assert "429" in crawl.value("select blocked_reason from host")
