"""Pinning how often a page is fetched, before any allocation: tests/worker/jobs/test_pins.py has what follows."""

from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, misplaced, result_of, urls


def pin(crawl: Crawl, every: str | None, *page_ids: int | None) -> list[Row]:
    return crawl.rows("select * from set_interval_at(%s, %s::bigint[], %s::interval)", crawl.now, [*page_ids], every)


def code_of(crawl: Crawl, page_id: int, topic: str = "often") -> str:
    code: str = crawl.value("select code from explain_page_at(%s, %s) where topic = %s", crawl.now, page_id, topic)
    return code


def fetched(crawl: Crawl, count: int = 1) -> list[Row]:
    """Pages of a host each, fetched now."""
    crawl.add(*(f"http://h{i}.test/" for i in range(count)))
    pages = crawl.next(count)
    assert len(pages) == count
    crawl.report_ok(pages)
    crawl.tick()
    return sorted(pages, key=lambda page: page["page_id"])


@pytest.mark.parametrize(("every", "due_in"), [("1 hour", HOUR), ("3 days", 3 * DAY)])
def test_it_counts_at_once_sooner_or_later(crawl: Crawl, every: str, due_in: timedelta) -> None:
    (page,) = fetched(crawl)
    assert codes(pin(crawl, every, page["page_id"])) == ["ok"]
    status = crawl.page(page["url"])
    assert status["pinned_interval"] == due_in
    assert abs(status["due_at"] - crawl.now - due_in) < SECOND, "a frequency has seven digits"
    assert status["frequency"] == pytest.approx(DAY / due_in)
    assert misplaced(crawl) == []
    crawl.wait(due_in - SECOND)
    assert crawl.next() == []
    crawl.wait(2 * SECOND)
    (again,) = crawl.next()
    assert abs(crawl.report_ok([again])[0]["next_fetch_at"] - crawl.now - due_in) < 2 * SECOND, "and it stays so"


def test_what_would_be_due_by_now_comes_within_a_second(crawl: Crawl) -> None:
    pages = fetched(crawl, 20)
    crawl.wait(10 * HOUR)
    pin(crawl, "1 hour", *(page["page_id"] for page in pages))
    crawl.tick()
    crawl.wait(SECOND)
    assert len(crawl.next(100)) == 20


def test_a_hint_makes_no_page_wait_for_longer(crawl: Crawl) -> None:
    """A page that a hint had made due in a few hours was not due at once."""
    (page,) = fetched(crawl)
    crawl.wait(10 * HOUR)
    assert crawl.value("select hint_change_at(%s, %s, 0.3, 1)", crawl.now, [page["page_id"]]) == 1
    crawl.tick()
    hinted = crawl.page(page["url"])["due_at"]
    assert hinted > crawl.now + HOUR
    pin(crawl, "3 days", page["page_id"])
    assert crawl.page(page["url"])["due_at"] == hinted
    pin(crawl, "6 hours", page["page_id"])
    crawl.tick()
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1
    assert misplaced(crawl) == []


def test_a_page_that_was_never_fetched_comes_at_once(crawl: Crawl) -> None:
    rows = crawl.add(*(f"http://a.test/{i}" for i in range(5)), value=[1, 9, 5, 3, 2])
    crawl.tick()
    pin(crawl, "1 hour", rows[4]["page_id"])
    assert code_of(crawl, rows[4]["page_id"]) == "pinned"
    crawl.tick()
    crawl.value("select set_setting('discovery', '0')")
    (page,) = crawl.next(1)
    assert page["page_id"] == rows[4]["page_id"], "before those that are worth more"
    assert crawl.report_ok([page])[0]["next_fetch_at"] == crawl.now + HOUR
    assert misplaced(crawl) == []


def test_a_page_that_is_out_follows_it_once_it_is_reported(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    assert codes(pin(crawl, "2 hours", page["page_id"])) == ["ok"]
    crawl.tick()
    crawl.wait(MINUTE)
    assert crawl.next() == [], "nobody else gets it"
    assert crawl.report_ok([page])[0]["next_fetch_at"] == page["fetch_at"] + 2 * HOUR
    assert misplaced(crawl) == []


def test_unpinned_it_follows_the_setting_again(crawl: Crawl) -> None:
    (page,) = fetched(crawl)
    pin(crawl, "1 hour", page["page_id"])
    assert codes(pin(crawl, None, page["page_id"])) == ["ok"]
    status = crawl.page(page["url"])
    assert (status["pinned_interval"], status["frequency"]) == (None, 1)
    assert status["due_at"] == crawl.now + DAY
    crawl.tick()
    crawl.rows("select follow_frequency(%s, 1, 2)", crawl.now)
    assert crawl.page(page["url"])["due_at"] == crawl.now + DAY / 2, "also when that changes"


def test_a_pinned_page_does_not_follow_the_setting(crawl: Crawl) -> None:
    (page,) = fetched(crawl)
    pin(crawl, "2 days", page["page_id"])
    crawl.tick()
    crawl.rows("select follow_frequency(%s, 1, 24)", crawl.now)
    assert crawl.page(page["url"])["due_at"] == crawl.now + 2 * DAY


def test_failures_and_who_asked_for_it_sooner_say_when_it_comes_next(crawl: Crawl) -> None:
    asked, failed, denied = fetched(crawl, 3)
    crawl.wait(DAY)
    by_url = {page["url"]: page for page in crawl.next()}
    failed, denied = by_url[failed["url"]], by_url[denied["url"]]
    crawl.report(
        result_of(failed, status=500),
        result_of(denied, status=200, robots_denied=True),
        result_of(by_url[asked["url"]]),
    )
    crawl.tick()
    crawl.value("select fetch_now_at(%s, %s)", crawl.now, [asked["page_id"]])
    crawl.tick()
    before = crawl.rows("select page_id, due_at from page order by page_id")
    pin(crawl, "10 minutes", *(row["page_id"] for row in before))
    assert crawl.rows("select page_id, due_at from page order by page_id") == before


def test_one_row_for_each_with_what_became_of_it(crawl: Crawl) -> None:
    crawl.value("select set_host('slow.test', gap => '1 hour')")
    rows = crawl.add("http://a.test/", "http://slow.test/", "http://gone.test/")
    a, slow, gone = (row["page_id"] for row in rows)
    crawl.value("select exclude('gone')")
    answers = pin(crawl, "30 minutes", slow, a, None, 999, gone, a)
    assert [(row["ord"], row["page_id"], row["code"]) for row in answers] == [
        (1, slow, "invalid"), (2, a, "ok"), (3, None, "unknown_page"), (4, 999, "unknown_page"), (5, gone, "not_live"),
        (6, a, "ok"),
    ]  # fmt: skip
    assert [row["detail"] for row in answers] == [
        "every must be at least 01:00:00, the time between two slots of slow.test, got 00:30:00", None,
        "there is no page null", "there is no page 999", "it is excluded: nothing fetches it", None,
    ]  # fmt: skip
    assert crawl.page("http://slow.test/")["pinned_interval"] is None
    assert pin(crawl, "1 hour") == []
    crawl.value("select unexclude_at(%s, 'gone')", crawl.now)
    crawl.tick()
    assert crawl.page("http://gone.test/")["pinned_interval"] == 30 * MINUTE, "it counts again"


def test_a_forgotten_page_takes_no_pin_as_nothing_brings_it_back(crawl: Crawl) -> None:
    (page,) = crawl.add("http://a.test/")
    crawl.value("select keep_out(%s)", [page["page_id"]])
    (answer,) = pin(crawl, "1 hour", page["page_id"])
    assert (answer["code"], answer["detail"]) == ("not_live", "it is kept_out: nothing fetches it")
    assert crawl.page("http://a.test/")["pinned_interval"] is None


def test_nothing_is_fetched_more_often_than_shortest_interval(crawl: Crawl) -> None:
    (page,) = fetched(crawl)
    (answer,) = pin(crawl, "1 minute", page["page_id"])
    assert (answer["code"], answer["detail"]) == (
        "invalid", "every must be at least 00:05:00, as the setting shortest_interval says, got 00:01:00"
    )  # fmt: skip
    assert codes(pin(crawl, "10 minutes", page["page_id"])) == ["ok"]
    crawl.value("select set_setting('shortest_interval', '20 minutes')")
    assert code_of(crawl, page["page_id"]) == "shortest_interval"
    assert crawl.page(page["url"])["frequency"] == 72


@pytest.mark.parametrize("every", ["0", "-1 hour", "999 milliseconds", "11 years", "200000 years"])
def test_an_absurd_interval_is_refused(crawl: Crawl, every: str) -> None:
    (page,) = fetched(crawl)
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refusal:
        pin(crawl, every, page["page_id"])
    said = refusal.value.diag.message_primary or ""
    assert said.startswith("set_interval: every must lie between 1 second and 10 years, got ")
    assert crawl.page(page["url"])["pinned_interval"] is None


def test_a_day_is_24_hours_and_a_month_30_days(crawl: Crawl) -> None:
    (page,) = fetched(crawl)
    crawl.connection.execute("set timezone = 'Europe/Berlin'")
    pin(crawl, "1 month", page["page_id"])
    assert crawl.page(page["url"])["pinned_interval"] == 30 * DAY
    assert abs(crawl.page(page["url"])["due_at"] - crawl.now - 30 * DAY) < MINUTE


def test_explain_says_so_and_how_to_take_it_back(crawl: Crawl) -> None:
    (page,) = fetched(crawl)
    pin(crawl, "6 hours", page["page_id"])
    row = crawl.row("select * from explain_page_at(%s, %s) where topic = 'often'", crawl.now, page["page_id"])
    assert (row["code"], row["says"]) == (
        "pinned", "It is fetched every 6 h: this interval was set with set_interval."
    )  # fmt: skip
    crawl.rows(row["fix"])
    assert code_of(crawl, page["page_id"]) == "unallocated"


def test_the_public_verb_writes_down_who_said_so(crawl: Crawl) -> None:
    (row,) = crawl.add("http://a.test/")
    assert codes(crawl.rows("select * from set_interval(array[%s::bigint], '1 day')", row["page_id"])) == ["ok"]
    event = crawl.row("select kind, subject, says, by from events where kind = 'pages'")
    assert event == {
        "kind": "pages", "subject": "1 pages", "says": "pinned to be fetched every 1 day",
        "by": crawl.value("select session_user"),
    }  # fmt: skip
    assert urls(crawl.rows("select * from next_pages(10)")) == ["http://a.test/"]


def test_a_page_that_was_not_wanted_any_more_is_wanted_again(crawl: Crawl) -> None:
    (page,) = crawl.add("http://a.test/")
    (out,) = crawl.next()
    crawl.report({"page_id": out["page_id"], "lease_id": out["lease_id"], "declined": True})
    assert crawl.page("http://a.test/")["state"] == "declined"
    crawl.wait(DAY)
    crawl.rows("select * from set_interval_at(%s, %s, '1 hour')", crawl.now, [page["page_id"]])
    crawl.tick()
    assert crawl.page("http://a.test/")["state"] != "declined"
    assert [row["page_id"] for row in crawl.next()] == [page["page_id"]]
