"""A lease is a crawler's claim on the pages of one call: what ends it, what keeps it, what gives them back."""

from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, codes, declined, result_of, urls


def test_a_lease_that_runs_out_gives_its_pages_back(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    pages = crawl.next()
    crawl.wait(10 * MINUTE - timedelta(microseconds=1))
    assert crawl.next() == []
    crawl.wait(timedelta(microseconds=1))
    again = crawl.next()
    assert sorted(urls(again)) == sorted(urls(pages))
    assert {page["attempt"] for page in again} == {2}
    assert again[0]["lease_id"] != pages[0]["lease_id"]


def test_a_lease_has_ended_at_its_end_for_everybody(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    lease, ends = page["lease_id"], page["lease_until"]
    crawl.value("select block_host_at(%s, 'a.test', 'infinity', null)", crawl.now)
    crawl.now = ends - timedelta(microseconds=1)
    held = [
        "select lease_id from leases_of_at(%s, null)",
        "select lease_id from blocked_pages_at(%s, '{1}')",
    ]
    assert [crawl.rows(query, crawl.now) for query in held] == [[{"lease_id": lease}]] * 2
    crawl.now = ends
    assert [crawl.rows(query, crawl.now) for query in held] == [[], []]
    assert crawl.extend(lease, MINUTE) is None
    assert crawl.release(lease) == 0
    assert codes(crawl.report_ok([page])) == ["stale_lease"]


def test_only_what_was_not_reported_comes_back(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    first, second = crawl.next()
    crawl.report(result_of(first))
    crawl.wait(10 * MINUTE)
    assert urls(crawl.next()) == [second["url"]]


def test_a_page_whose_crawlers_die_comes_back_ever_later(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    for attempt, minutes in [(1, 0), (2, 1), (3, 2), (4, 4)]:
        (page,) = crawl.next()
        assert page["attempt"] == attempt
        crawl.wait(10 * MINUTE)
        if minutes:
            assert crawl.next() == []
            crawl.wait(1.1 * minutes * MINUTE)


def test_what_is_fully_reported_leaves_no_lease(crawl: Crawl) -> None:
    crawl.add(*(f"http://{c}.test/" for c in "abc"))
    a, b, c = crawl.next()
    crawl.report_ok([a])
    status = crawl.row("select * from lease_status")
    assert (status["pages"], status["unreported"], status["lease_id"]) == (3, 2, a["lease_id"])
    crawl.report_ok([b, c])
    assert crawl.rows("select * from lease_status") == []


def test_a_call_of_several_rounds_is_one_lease(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)), *(f"http://{c}.test/" for c in "bcdefgh"))
    crawl.tick()
    pages = crawl.next(10, ahead=4 * SECOND)
    assert len({page["lease_id"] for page in pages}) == 1
    assert crawl.row("select unreported from lease_status")["unreported"] == len(pages)
    assert set(codes(crawl.report_ok(pages))) == {"ok"}
    assert crawl.rows("select * from lease_status") == []


# ---------------------------------------------------------------------------------------------- release


def test_released_pages_are_due_as_before(crawl: Crawl) -> None:
    due = crawl.now - HOUR
    crawl.add("http://a.test/", "http://b.test/", due=[due])
    pages = crawl.next()
    assert crawl.release(pages[0]["lease_id"]) == 2
    crawl.wait(SECOND)
    again = crawl.next()
    assert sorted(urls(again)) == sorted(urls(pages))
    assert {page["attempt"] for page in again} == {1}, "nobody tried"
    for answer in crawl.report_ok(again):
        assert abs(answer["next_fetch_at"] - (due + DAY)) < SECOND / 1000, "on its own grid"


@pytest.mark.parametrize("how", ["released", "not reported"])
def test_a_page_that_was_brought_forward_during_its_lease_is_due_as_planned(crawl: Crawl, how: str) -> None:
    crawl.add("http://a.test/")
    crawl.report_ok(crawl.next())
    crawl.wait(2 * DAY)
    (page,) = crawl.next()
    crawl.value("select fetch_now_at(%s, %s)", crawl.now, [page["page_id"]])
    if how == "released":
        assert crawl.release(page["lease_id"]) == 1
    else:
        crawl.wait(11 * MINUTE)
        crawl.tick()
    assert crawl.value("select planned_due from page") is None, "nothing brings it forward any more"


def test_some_pages_of_a_lease_can_be_released(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    a, b, c = crawl.next()
    crawl.report_ok([c])
    assert crawl.release(a["lease_id"], [a["page_id"], c["page_id"], 999]) == 1, "what is reported or not its own stays"
    crawl.wait(SECOND)
    assert urls(crawl.next()) == [a["url"]]
    assert codes(crawl.report_ok([b])) == ["ok"]
    assert codes(crawl.report_ok([a])) == ["stale_lease"]


def test_releasing_twice_or_nothing_is_harmless(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    assert [crawl.release(page["lease_id"]), crawl.release(page["lease_id"]), crawl.release(999)] == [1, 0, 0]
    crawl.tick()
    assert crawl.value("select count(*) from queue") == 1


def test_a_slot_that_another_lease_came_after_is_spent(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    (first,) = crawl.next(1)
    crawl.wait(SECOND)
    (second,) = crawl.next(1)
    crawl.release(first["lease_id"])
    assert crawl.next() == []
    crawl.wait(SECOND)
    assert [page["fetch_at"] for page in crawl.next()] == [second["fetch_at"] + SECOND]


@pytest.mark.parametrize(
    "change",
    [
        "select set_host_at(%s, 'a.test', '15 s', null, null, '{}')",
        "select set_setting_at(%s, 'default_gap', '15 s')",
        'select report_at(%s, \'[{"page_id": 1, "lease_id": 1, "status": 200, "crawl_delay": 15}]\')',
    ],
)
@pytest.mark.parametrize("way", ["release", "decline"])
def test_a_slot_of_another_gap_is_spent(crawl: Crawl, change: str, way: str) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(4)))
    first, *others = crawl.next(3, ahead=MINUTE)
    crawl.rows(change, crawl.now)
    if way == "release":
        crawl.release(first["lease_id"], [page["page_id"] for page in others])
    else:
        assert codes(crawl.report(*(declined(page) for page in others))) == ["ok", "ok"]
    handed_out = []
    for _ in range(40):
        handed_out += [page["fetch_at"] for page in crawl.next()]
        crawl.wait(SECOND)
    assert handed_out and handed_out[0] >= first["fetch_at"] + 15 * SECOND


def test_a_slot_is_spent_when_the_request_began(crawl: Crawl) -> None:
    """A late request of another page moved the host's next slot: a release does not move it forward."""
    crawl.add("http://a.test/1", "http://a.test/2", "http://a.test/3")
    first, second, _ = crawl.next(ahead=MINUTE)
    crawl.wait(3 * SECOND)
    crawl.report_ok([first], fetched_at=str(crawl.now))
    crawl.release(second["lease_id"])
    assert crawl.next() == []
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1


def test_a_one_at_a_time_host_is_free_again_after_a_release(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add("http://a.test/1", "http://a.test/2")
    (page,) = crawl.next()
    crawl.release(page["lease_id"])
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1


# --------------------------------------------------------------------------------------------- extending


def test_an_extended_lease_keeps_its_pages(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[1440.0])
    (page,) = crawl.next()
    ends = page["lease_until"]
    for _ in range(5):
        crawl.wait(9 * MINUTE)
        ends += 10 * MINUTE
        assert crawl.extend(page["lease_id"], 10 * MINUTE) == ends
        assert crawl.next(ahead=MINUTE) == []
    crawl.now = ends - timedelta(microseconds=1)
    assert crawl.next(ahead=MINUTE) == []
    assert codes(crawl.report_ok([page])) == ["ok"]


def test_an_extended_lease_runs_out_too(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[1440.0])
    (page,) = crawl.next()
    ends = crawl.extend(page["lease_id"], 30 * MINUTE)
    assert ends == page["lease_until"] + 30 * MINUTE
    crawl.now = ends
    assert len(crawl.next()) == 1


def test_extending_leaves_reported_pages_alone(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/", rate=[1440.0])
    a, b = crawl.next()
    crawl.report_ok([a])
    crawl.extend(a["lease_id"], 23 * HOUR)
    crawl.wait(5 * MINUTE)
    assert urls(crawl.next()) == [a["url"]]
    assert codes(crawl.report_ok([b])) == ["ok"]


def test_a_lease_that_ended_cannot_be_extended(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.report_ok([page])
    assert crawl.extend(page["lease_id"], MINUTE) is None
    assert crawl.extend(999, MINUTE) is None


@pytest.mark.parametrize("by", ["'0'", "'-1 s'", "'8 days'", "null"])
def test_misuse_of_extend_lease_is_refused(crawl: Crawl, by: str) -> None:
    message = r"extend_lease: by must lie between 1 second and the setting longest_lease \(1 day\), got"
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=message):
        crawl.rows(f"select extend_lease(1, {by})")
