"""Rules for any order of calls: a page has one place, at most one lease, and comes back; a host keeps its gap.

Each of these rules was once broken by an order of calls that nobody had expected.
"""

from datetime import timedelta

import pytest

from helpers import HOUR, MINUTE, SECOND, Crawl, Row, codes, misplaced, result_of

FREQUENT = 86400.0


def of_host(pages: list[Row], host: str) -> Row:
    (page,) = [page for page in pages if page["host"] == host]
    return page


def reported_again(crawl: Crawl, **outcome: object) -> tuple[Row, Row]:
    """Two pages under one lease that still runs; the first was reported on it, handed out again and reported again."""
    crawl.add("http://a.test/", "http://b.test/", rate=[FREQUENT, 1.0], due=[crawl.now])
    pages = crawl.next(lease=HOUR)
    a, b = of_host(pages, "a.test"), of_host(pages, "b.test")
    crawl.report(result_of(a, **outcome))
    crawl.wait(5 * MINUTE)
    (again,) = crawl.next()
    assert again["page_id"] == a["page_id"]
    crawl.report_ok([again])
    return a, b


# ------------------------------------------------------------------------------------------------------- leases


def test_a_report_repeated_after_a_later_lease_is_a_duplicate(crawl: Crawl) -> None:
    a, b = reported_again(crawl)
    assert codes(crawl.report_ok([a])) == ["duplicate"]
    assert codes(crawl.report_ok([b])) == ["ok"], "its lease still runs"


def test_a_page_reported_since_is_not_released_again(crawl: Crawl) -> None:
    a, _ = reported_again(crawl)
    assert crawl.release(a["lease_id"]) == 1
    assert misplaced(crawl) == []


def test_releasing_a_page_reported_since_does_not_make_it_due(crawl: Crawl) -> None:
    a, _ = reported_again(crawl, status=429, retry_after="5")
    due = crawl.page(a["url"])["due_at"]
    assert crawl.release(a["lease_id"], [a["page_id"]]) == 0
    crawl.tick()
    assert crawl.page(a["url"])["due_at"] == due


@pytest.mark.parametrize("status", [500, 429])
def test_a_lease_that_ends_gives_back_a_page_whose_failure_was_reported_without_it(crawl: Crawl, status: int) -> None:
    crawl.add("http://a.test/", rate=[0.01], due=[crawl.now])
    (page,) = crawl.next(lease=MINUTE)
    crawl.report({"page_id": page["page_id"], "status": status})
    crawl.wait(HOUR)
    assert crawl.tick() > 0
    assert misplaced(crawl) == []
    crawl.wait(HOUR)
    assert len(crawl.next()) == 1


def test_a_lease_that_ends_gives_back_a_page_reported_on_an_earlier_one(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[0.01], due=[crawl.now])
    (early,) = crawl.next(lease=MINUTE)
    crawl.wait(2 * MINUTE)
    assert len(crawl.next(lease=MINUTE)) == 1
    assert codes(crawl.report_ok([early])) == ["stale_lease"]
    crawl.wait(HOUR)
    crawl.tick()
    assert misplaced(crawl) == []


def outage(crawl: Crawl) -> list[Row]:
    """Thirty pages; twenty were out under a lease each when everything stopped for an hour."""
    crawl.add(*(f"http://h{i}.test/" for i in range(30)), due=[crawl.now], rate=[144.0])
    out = [page for _ in range(20) for page in crawl.next(1, lease=MINUTE)]
    crawl.wait(HOUR)
    return out


def test_after_an_outage_no_page_is_in_two_running_leases(crawl: Crawl) -> None:
    out = outage(crawl)
    again = {page["page_id"] for page in crawl.next(28, lease=HOUR)}
    for page in out:
        ends = crawl.extend(page["lease_id"], 2 * HOUR)
        assert page["page_id"] not in again or ends is None, "extended although somebody else has the page"


def test_a_lease_that_has_ended_is_not_extended(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next(lease=MINUTE)
    crawl.wait(MINUTE)
    assert crawl.extend(page["lease_id"], HOUR) is None


def test_what_is_unexcluded_after_an_outage_comes_back(crawl: Crawl) -> None:
    outage(crawl)
    crawl.value("select exclude('h1')")
    crawl.next(12)
    crawl.value("select unexclude_at(%s, 'h1')", crawl.now)
    crawl.wait(HOUR)
    assert misplaced(crawl) == []


# -------------------------------------------------------------------------------------------------------- hosts


def test_extending_an_older_lease_does_not_free_a_one_at_a_time_host(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add(*(f"http://a.test/{i}" for i in range(3)), "http://b.test/")
    first = of_host(crawl.next(lease=10 * SECOND), "a.test")
    crawl.report_ok([first])
    crawl.wait(SECOND)
    assert len(crawl.next(lease=10 * MINUTE)) == 1
    crawl.extend(first["lease_id"], SECOND)
    crawl.wait(MINUTE)
    assert [page for page in crawl.next() if page["host"] == "a.test"] == []


def test_releasing_an_older_lease_does_not_free_a_one_at_a_time_host(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(6)))
    pages = crawl.next(2, ahead=5 * SECOND)
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.wait(5 * SECOND)
    assert len(crawl.next()) == 1
    crawl.release(pages[0]["lease_id"])
    crawl.wait(SECOND)
    assert crawl.next() == []


def test_a_late_report_does_not_free_a_one_at_a_time_host_that_another_page_is_out_of(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    (late,) = crawl.next(lease=10 * SECOND)
    crawl.wait(timedelta(seconds=9.9))
    crawl.tick()
    crawl.wait(timedelta(seconds=0.2))
    assert len(crawl.next(1, lease=MINUTE)) == 1
    crawl.report_ok([late])
    crawl.wait(SECOND)
    assert crawl.next() == []


@pytest.mark.parametrize(
    "lengthen",
    [
        "select set_host_at(%s, 'a.test', '10 s', null, null, '{}')",
        "select set_host_at(%s, 'a.test', null, null, null, '{gap}')",
        "select %s, set_setting('default_gap', '10 s'), set_host('a.test', reset => '{gap}')",
    ],
    ids=["set_host", "reset", "default_gap"],
)
def test_a_longer_gap_counts_from_the_last_slot(crawl: Crawl, lengthen: str) -> None:
    crawl.value("select set_host('a.test', gap => '100 ms')")
    crawl.add(*(f"http://a.test/{i}" for i in range(99)))
    last = crawl.next(20, ahead=30 * SECOND)[-1]["fetch_at"]
    crawl.value(lengthen, crawl.now)
    gap = crawl.value("select gap from host_status")
    crawl.now = last + gap - timedelta(milliseconds=1)
    assert crawl.next(1) == []
    crawl.wait(timedelta(milliseconds=1, microseconds=1))
    assert len(crawl.next(1)) == 1


def test_a_crawl_delay_counts_from_the_last_slot(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    (page,) = crawl.next()
    crawl.report_ok([page], crawl_delay=30)
    crawl.wait(29 * SECOND)
    assert crawl.next() == []
    crawl.wait(SECOND + timedelta(microseconds=1))
    assert len(crawl.next()) == 1


@pytest.mark.parametrize("end", ["kept_out", "gone"])
def test_a_page_dropped_at_its_turn_no_longer_counts(crawl: Crawl, end: str) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    crawl.tick()
    page_id = crawl.value("select page_id from page")
    if end == "kept_out":
        crawl.value("select keep_out(%s)", [page_id])
    else:
        crawl.report({"page_id": page_id, "status": 410})
    assert crawl.next() == []
    crawl.tick()
    assert crawl.host("a.test")["pages"] == 0


@pytest.mark.parametrize("gap", ["1 s", "20 ms"])
def test_a_call_that_looks_ahead_gets_what_it_asks_for_from_hosts_with_one_page(crawl: Crawl, gap: str) -> None:
    crawl.value("select set_setting('default_gap', %s)", gap)
    crawl.add(*(f"http://h{i}.test/" for i in range(1000)))
    crawl.tick()
    assert len(crawl.next(100, ahead=MINUTE)) == 100
