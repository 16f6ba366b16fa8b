"""The pages that next_pages hands out, and their times."""

import re
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, urls


def test_what_was_added_is_handed_out_at_once(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    pages = crawl.next()
    assert sorted(urls(pages)) == ["http://a.test/", "http://b.test/"]
    assert {p["fetch_at"] for p in pages} == {crawl.now}
    assert {p["start_by"] for p in pages} == {crawl.now}
    assert {p["wait"] for p in pages} == {timedelta(0)}
    assert {p["lease_until"] for p in pages} == {crawl.now + 10 * MINUTE}
    assert len({p["lease_id"] for p in pages}) == 1
    assert {p["attempt"] for p in pages} == {1}


def test_a_host_gives_one_page_a_gap(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    assert urls(crawl.next()) == ["http://a.test/0"]
    crawl.wait(timedelta(seconds=0.999))
    assert crawl.next() == []
    crawl.wait(timedelta(seconds=0.001))
    assert urls(crawl.next()) == ["http://a.test/1"]


def test_looking_ahead_spreads_a_host_exactly_over_its_gap(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(30)))
    pages = crawl.next(ahead=9 * SECOND)
    assert [p["fetch_at"] - crawl.now for p in pages] == [i * SECOND for i in range(10)]
    assert [p["wait"] for p in pages] == [i * SECOND for i in range(10)]
    crawl.wait(9 * SECOND)
    assert crawl.next() == []
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1


def test_per_host_limits_what_one_host_gives(crawl: Crawl) -> None:
    crawl.add(*(f"http://{h}.test/{i}" for h in "ab" for i in range(10)))
    pages = crawl.next(ahead=9 * SECOND, per_host=3)
    assert sorted(p["host"] for p in pages) == ["a.test"] * 3 + ["b.test"] * 3


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 40])
def test_never_more_than_asked_for(crawl: Crawl, n: int) -> None:
    crawl.add(*(f"http://{h}.test/{i}" for h in "abc" for i in range(10)))
    assert len(crawl.next(n, ahead=MINUTE)) == min(n, 30)


def test_a_call_goes_on_while_one_page_is_missing(crawl: Crawl) -> None:
    """The first round locks one host, because a host has slots for both pages."""
    crawl.value("select set_setting('discovery', '1')")
    crawl.add("http://a.test/", "http://b.test/")
    assert len(crawl.next(2, ahead=SECOND)) == 2


def test_http_https_and_ports_of_a_name_share_one_gap(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "https://a.test/2", "http://a.test:8080/3")
    assert len(crawl.next()) == 1


def test_among_new_pages_value_decides_then_the_order_given(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(5)), value=[1.0, 1.01, 3.0, 1.0, 2.0])
    assert urls(crawl.next(ahead=MINUTE)) == [f"http://a.test/{i}" for i in (2, 4, 1, 0, 3)]


def test_a_page_comes_back_a_period_after_it_was_due_however_late_it_was(crawl: Crawl) -> None:
    due = crawl.now + DAY
    crawl.add("http://a.test/", rate=[2.0], due=[due])
    assert crawl.next() == []
    crawl.now = due + 3 * MINUTE
    (page,) = crawl.next()
    (answer,) = crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200})
    assert answer["next_fetch_at"] == due + DAY / 2
    crawl.now = due + DAY / 2 - timedelta(microseconds=1)
    assert crawl.next() == []
    crawl.now = due + DAY / 2
    assert len(crawl.next()) == 1


@pytest.mark.parametrize(("late", "periods"), [(0.5, 1), (0.99, 1), (1.5, 2), (10.2, 11)])
def test_periods_missed_entirely_are_skipped(crawl: Crawl, late: float, periods: int) -> None:
    due = crawl.now
    crawl.add("http://a.test/", due=[due])
    crawl.wait(late * DAY)
    (page,) = crawl.next()
    (answer,) = crawl.report_ok([page])
    assert answer["next_fetch_at"] == due + periods * DAY


@pytest.mark.parametrize("share", [0.5, 0.25, 0.75, 0.1])
def test_new_pages_and_revisits_share_a_host_as_discovery_says(crawl: Crawl, share: float) -> None:
    crawl.value("select set_setting('discovery', %s)", str(share))
    crawl.add(*(f"http://a.test/old{i}" for i in range(200)), due=[crawl.now - DAY / 2])
    crawl.add(*(f"http://a.test/new{i}" for i in range(200)))
    crawl.tick()
    new = 0
    for _ in range(10):
        pages = crawl.next(10, ahead=10 * SECOND)
        assert len(pages) == 10
        new += sum("new" in url for url in urls(pages))
        crawl.wait(10 * SECOND)
    assert abs(new - share * 100) <= 10, "a call gives only one kind of the host"
    one_by_one = []
    for _ in range(40):
        one_by_one += urls(crawl.next(1))
        crawl.wait(SECOND)
    assert abs(sum("new" in url for url in one_by_one) - share * 40) <= 1


@pytest.mark.parametrize(("share", "first"), [("0", "old"), ("1", "new")])
def test_discovery_0_and_1_put_one_kind_first(crawl: Crawl, share: str, first: str) -> None:
    crawl.value("select set_setting('discovery', %s)", share)
    crawl.add(*(f"http://a.test/old{i}" for i in range(3)), due=[crawl.now - DAY / 2])
    crawl.add(*(f"http://a.test/new{i}" for i in range(3)))
    pages = urls(crawl.next(6, ahead=MINUTE))
    assert [first in url for url in pages] == [True] * 3 + [False] * 3


def test_where_only_one_kind_waits_it_gets_every_slot(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/new{i}" for i in range(10)))
    assert len(crawl.next(ahead=9 * SECOND)) == 10


def test_looking_ahead_finds_hosts_whose_next_slot_is_still_to_come(crawl: Crawl) -> None:
    crawl.add("http://b.test/0", *(f"http://a.test/{i}" for i in range(4)), *(f"http://c.test/{i}" for i in range(3)))
    crawl.add(*(f"http://d.test/{i}" for i in range(3)))
    crawl.value("select set_host('c.test', one_at_a_time => true)")
    assert len(crawl.next()) == 4
    crawl.value("select block_host_at(%s, 'd.test', %s, null)", crawl.now, crawl.now + 3 * SECOND)
    pages = crawl.next(ahead=2.5 * SECOND)
    assert [(page["url"], page["fetch_at"] - crawl.now) for page in pages] == [
        ("http://a.test/1", SECOND),
        ("http://a.test/2", 2 * SECOND),
    ], "c.test waits for its page, d.test is blocked"
    assert [page["fetch_at"] - crawl.now for page in crawl.next(ahead=5 * SECOND) if "a.test" in page["url"]] == [
        3 * SECOND
    ]


def test_looking_ahead_does_not_keep_a_slot_for_a_page_that_is_not_due_yet(crawl: Crawl) -> None:
    crawl.value("select set_setting('discovery', '0')")
    crawl.add("http://a.test/new")
    crawl.rows(
        "select add_pages_at(%s, '{http://a.test/later}', null, null, %s, null, null)", crawl.now, [crawl.now + MINUTE]
    )
    crawl.tick()
    for per_host in (1, None):
        (page,) = crawl.next(1, ahead=MINUTE, per_host=per_host)
        assert (page["url"], page["fetch_at"]) == ("http://a.test/new", crawl.now)
        crawl.release(page["lease_id"])
        crawl.wait(SECOND)


def test_looking_ahead_finds_pages_that_become_due_within_it_after_those_that_are_due(crawl: Crawl) -> None:
    crawl.add("http://a.test/due", "http://b.test/soon", "http://b.test/later", "http://c.test/new",
              due=[crawl.now, crawl.now + 5 * SECOND, crawl.now + 11 * SECOND, None])  # fmt: skip
    crawl.tick()
    assert crawl.value("select count(*) from next_pages_at(%s, 2, '0', '10 s', null)", crawl.now) == 2
    found = [(page["url"], page["fetch_at"] - crawl.now) for page in crawl.next(ahead=10 * SECOND)]
    assert found == [("http://b.test/soon", 5 * SECOND)]


def test_a_page_is_never_in_two_leases_whatever_the_callers_look_ahead(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[86400.0])
    assert len(crawl.next(lease=MINUTE)) == 1
    for seconds in range(60):
        assert crawl.next(ahead=timedelta(seconds=60)) == [], f"handed out twice after {seconds} s"
        crawl.wait(SECOND)


@pytest.mark.parametrize("late", [5 * SECOND, DAY - SECOND, DAY])
def test_a_page_comes_back_no_sooner_than_the_shortest_interval(crawl: Crawl, late: timedelta) -> None:
    crawl.value("select set_setting('shortest_interval', '10 seconds')")
    crawl.add("http://a.test/", rate=[8640.0], due=[crawl.now])
    crawl.wait(late)
    fetched = []
    for _ in range(20):
        fetched += [page["fetch_at"] for page in crawl.next(ahead=SECOND)]
        (answer,) = crawl.report({"page_id": 1, "lease_id": len(fetched), "status": 200})
        crawl.now = answer["next_fetch_at"] + 3 * SECOND
    assert len(fetched) == 20
    assert min(b - a for a, b in pairwise(fetched)) >= 10 * SECOND


# All that moves a due time: what recrawl works out, and what a person or a crawler says, which it obeys.
WORKED_OUT: dict[str, Callable[[Crawl], object]] = {
    "hint_change": lambda crawl: crawl.rows("select hint_change_at(%s, '{1}', 1, 0)", crawl.now),
    "allocate, a page due too late": lambda crawl: crawl.rows("select bring_forward_at(%s, '{1}', '{24}')", crawl.now),
    "allocate, the budget": lambda crawl: crawl.rows("select put_dues_at(%s, '{1}', '{80000}', 0.001)", crawl.now),
    "frequency": lambda crawl: crawl.rows("select set_setting_at(%s, 'frequency', '5000')", crawl.now),
    "set_interval": lambda crawl: crawl.rows("select set_interval_at(%s, '{1}', '1 hour')", crawl.now),
}
SAID: dict[str, Callable[[Crawl], object]] = {
    "fetch_now": lambda crawl: crawl.rows("select fetch_now_at(%s, '{1}')", crawl.now),
    "due in a report": lambda crawl: crawl.report({"page_id": 1, "status": 200, "due": crawl.now.isoformat()}),
    "add_pages, of a page that was done": lambda crawl: [
        crawl.report({"page_id": 1, "status": 200, "due": "infinity"}),
        crawl.add("http://a.test/", due=[crawl.now]),
    ],
    "unexclude": lambda crawl: [
        crawl.value("select exclude('a.test')"),
        crawl.value("select unexclude_at(%s, 'a.test')", crawl.now),
    ],
}


@pytest.mark.parametrize("how", [*WORKED_OUT, *SAID])
def test_only_who_says_so_moves_a_page_closer_to_its_last_fetch_than_the_shortest_interval(
    crawl: Crawl, how: str
) -> None:
    crawl.value("select set_setting('shortest_interval', '1 hour')")
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.report_ok([page])
    crawl.wait(MINUTE)
    before = crawl.page("http://a.test/")["due_at"]
    (WORKED_OUT | SAID)[how](crawl)
    due = crawl.page("http://a.test/")["due_at"]
    if how in WORKED_OUT:
        assert page["fetch_at"] + HOUR <= due < before
    else:
        assert abs(due - crawl.now) < SECOND
        crawl.tick()
        crawl.wait(SECOND)
        assert urls(crawl.next()) == ["http://a.test/"]


def test_a_short_interval_is_kept_once_the_page_is_reported(crawl: Crawl) -> None:
    crawl.value("select set_setting('shortest_interval', '1 minute')")
    crawl.add("http://a.test/", rate=[24 * 60.0])
    for _ in range(5):
        (page,) = crawl.next()
        assert crawl.report_ok([page])[0]["next_fetch_at"] == crawl.now + MINUTE
        crawl.wait(MINUTE)


def test_one_at_a_time_waits_for_the_report(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add(*(f"http://a.test/{i}" for i in range(3)))
    (page,) = crawl.next(ahead=MINUTE)
    crawl.wait(5 * MINUTE)
    assert crawl.next() == []
    crawl.report_ok([page])
    (page,) = crawl.next()
    crawl.wait(10 * MINUTE)
    assert len(crawl.next()) == 1, "a lease that ran out frees the host too"


def test_paused_hands_out_nothing_and_takes_reports(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    (page,) = crawl.next(1)
    crawl.value("select pause()")
    assert crawl.next() == []
    assert crawl.value("select next_ready_time(%s)", crawl.now) is None
    assert crawl.report_ok([page])[0]["code"] == "ok"
    crawl.value("select resume()")
    assert len(crawl.next()) == 1


def test_next_ready_at_says_when_to_ask_again(crawl: Crawl) -> None:
    def ready() -> object:
        return crawl.value("select next_ready_time(%s)", crawl.now)

    assert ready() is None
    crawl.add("http://a.test/1", "http://a.test/2")
    assert ready() == crawl.now + 0.02 * SECOND, "the caller got nothing, because another transaction has the host"
    (first,) = crawl.next(lease=30 * SECOND)
    assert ready() == crawl.now + SECOND
    crawl.wait(SECOND)
    (second,) = crawl.next()
    assert ready() == first["lease_until"], "then the first lease may have run out"
    crawl.report_ok([first, second])
    assert ready() == first["fetch_at"] + DAY


def test_a_lease_that_should_have_ended_long_ago_is_asked_for_once_a_second(crawl: Crawl) -> None:
    """As if another transaction had locked it: no upkeep has ended it."""
    crawl.add("http://a.test/")
    crawl.next()
    crawl.wait(12 * MINUTE)
    assert crawl.value("select next_ready_time(%s)", crawl.now) == crawl.now + SECOND


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("n => 0", "next_pages: n must be positive, got 0"),
        ("n => null", "next_pages: n must be positive, got null"),
        (
            "ahead => '-1 s'",
            "next_pages: ahead must lie between 0 and the setting max_ahead (00:01:00), got -00:00:01",
        ),
        (
            "ahead => '61 s'",
            "next_pages: ahead must lie between 0 and the setting max_ahead (00:01:00), got 00:01:01",
        ),
        (
            "lease => '0'",
            "next_pages: lease must lie between 1 second and the setting longest_lease (1 day), got 00:00:00",
        ),
        ("n => 10001", "next_pages: n must be at most the setting max_per_call (10000), got 10001"),
        ("per_host => 0", "next_pages: per_host must be positive, got 0"),
    ],
)
def test_misuse_is_refused_by_function_argument_and_value(crawl: Crawl, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(f"select * from next_pages({arguments})")
    assert error.value.diag.message_primary == message


WRITERS = (
    "next_pages()", "report('[]')", "report_pages('{}', '{}', '{}')", "add_pages('{}')", "release(1)",
    "extend_lease(1, '1 s')", "take_slot('a.test')", "set_robots('http://a.test/', 200)", "claim('me')",
    "hint_change('{1}')", "fetch_now('{}')", "keep_out('{}')", "delete_pages('{}')", "exclude('x')", "unexclude('x')",
    "set_host('a.test')", "block_host('a.test')", "unblock_host('a.test')", "set_rate(1, 1)", "set_value(1, 1)",
    "set_relevance(1, 1)", "set_interval('{1}', '1 day')", "boost('x', 2)",
)  # fmt: skip


def test_all_that_lock_pages_or_hosts_refuse_other_isolation_levels(crawl: Crawl) -> None:
    bodies = crawl.rows("select prosrc from pg_proc where pronamespace::regnamespace::text like 'recrawl%%'")
    refusing = {verb for row in bodies for verb in re.findall(r"check_isolation\('(\w+)'\)", row["prosrc"])}
    assert refusing == {verb.partition("(")[0] for verb in WRITERS}


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize("verb", WRITERS)
def test_other_isolation_levels_are_refused(crawl: Crawl, level: str, verb: str) -> None:
    with crawl.connection.transaction():
        crawl.connection.execute(f"set transaction isolation level {level}")
        with (
            pytest.raises(
                psycopg.errors.InvalidTransactionState,
                match=f"^{verb.split('(')[0]}: the transaction must be READ COMMITTED, got {level.upper()}",
            ) as refused,
            crawl.connection.transaction(),
        ):
            crawl.rows(f"select * from {verb}")
    assert "SET default_transaction_isolation = 'read committed'" in (refused.value.diag.message_hint or "")


@pytest.mark.parametrize("share", ["0", "1"])
def test_with_one_kind_first_value_and_due_time_still_decide(crawl: Crawl, share: str) -> None:
    crawl.value("select set_setting('discovery', %s)", share)
    crawl.add(*(f"http://a.test/new{i}" for i in range(12)))
    crawl.add(*(f"http://b.test/old{i}" for i in range(12)), due=[crawl.now - (i + 1) * MINUTE for i in range(12)])
    crawl.tick()
    seen: list[str] = []
    for _ in range(3):
        seen += urls(crawl.next(10, ahead=10 * SECOND))
        crawl.wait(MINUTE)
    assert [url for url in seen if "new" in url] == [f"http://a.test/new{i}" for i in range(12)]
    assert [url for url in seen if "old" in url] == [f"http://b.test/old{i}" for i in reversed(range(12))]


# -- the gap is a promise about requests --


@pytest.mark.parametrize("share", ["0", "0.1", "0.5", "1"])
@pytest.mark.parametrize("gap", ["10 milliseconds", "1 second", "15 seconds", "1 minute"])
def test_two_requests_that_start_in_their_windows_are_never_closer_than_the_gap(
    crawl: Crawl, share: str, gap: str
) -> None:
    """The first as late as it may, the next at once; within a call and from one call to the next."""
    for name, value in {"window_share": share, "default_gap": gap, "max_ahead": "10 minutes"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    crawl.add(*(f"http://a.test/{i}" for i in range(60)))
    least = crawl.value("select %s::interval", gap)
    pages = []
    for _ in range(24):
        pages += crawl.next(5, ahead=2 * least)
        crawl.wait(0.7 * least)
    assert len(pages) > 6
    for one, other in pairwise(pages):
        assert other["fetch_at"] - one["start_by"] >= least
    windows = {page["start_by"] - page["fetch_at"] for page in pages}
    assert windows == {min(least * float(share), 2 * SECOND)}
    every = crawl.host("a.test")["slot_every"]
    assert every == least + max(windows) <= min(other["fetch_at"] - one["fetch_at"] for one, other in pairwise(pages))


def test_allocation_counts_the_slots_that_there_are(crawl: Crawl) -> None:
    crawl.value("select set_setting('window_share', '0.25')")
    crawl.value("select set_host('a.test', gap => '4 s')")
    crawl.value("select set_host('b.test', gap => '1 hour')")
    caps = dict(crawl.connection.execute("select name, cap from host_to_allocate").fetchall())
    assert caps == {"a.test": pytest.approx(86400 / 5), "b.test": pytest.approx(86400 / 3602)}
