"""Which pages a call gives, over all hosts: revisits and new pages share the crawl as `discovery` says, of the new
pages the better come first, of the revisits the longest due, and no host's revisits stop for its new pages."""

import math
import random
from collections import Counter
from datetime import timedelta
from statistics import fmean

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, misplaced, urls
from sql.model import single

LONG_AGO = 20 * DAY


def is_new(page: Row) -> bool:
    return "new" in page["url"]


def add_due(crawl: Crawl, hosts: range, pages: int) -> None:
    """Revisits, late by days, the pages of the first host longest."""
    found = [f"http://h{host}.test/old{page}" for host in hosts for page in range(pages)]
    due = [crawl.now - LONG_AGO + i * SECOND for i in range(len(found))]
    crawl.add(*found, due=due, rate=[0.001] * len(found))


def add_new(crawl: Crawl, hosts: range, pages: int, value: list[float] | None = None) -> None:
    crawl.add(*(f"http://h{host}.test/new{page}" for host in hosts for page in range(pages)), value=value or [1.0])


def popped(crawl: Crawl, calls: int, n: int, every: timedelta = SECOND, ahead: timedelta = 0 * SECOND) -> list[Row]:
    pages = []
    for _ in range(calls):
        pages += crawl.next(n, ahead=ahead)
        crawl.wait(every)
    return pages


def share_of_new(pages: list[Row]) -> float:
    return fmean(map(is_new, pages))


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(("n", "calls"), [(1, 300), (10, 60), (50, 20)])
def test_the_whole_crawl_is_shared_whatever_number_of_hosts_a_kind_waits_on(
    crawl: Crawl, n: int, calls: int, share: float
) -> None:
    crawl.value("select set_setting('discovery', %s)", str(share))
    add_due(crawl, range(60), 20)
    add_new(crawl, range(100, 1100), 2)
    crawl.tick()
    pages = popped(crawl, calls, n)
    assert len(pages) == calls * n
    assert abs(share_of_new(pages) - share) <= 0.02


def test_a_scan_passes_over_hosts_that_wait_for_a_slot(crawl: Crawl) -> None:
    """Each of them would take a round of its own."""
    crawl.value("select set_setting('discovery', '1')")
    add_due(crawl, range(20), 1)
    add_new(crawl, range(20), 1)
    crawl.tick()
    assert share_of_new(crawl.next(20)) == 1
    add_due(crawl, range(20, 21), 1)
    crawl.tick()
    assert crawl.value("select count(*) from host where ready_at <= %s", crawl.now) == 21
    (page,) = crawl.next(1)
    assert page["host"] == "h20.test"
    assert crawl.value("select round from lease where lease_id = %s", page["lease_id"]) == 1


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_hosts_with_both_share_too(crawl: Crawl, share: float) -> None:
    crawl.value("select set_setting('discovery', %s)", str(share))
    add_due(crawl, range(300), 8)
    add_new(crawl, range(300), 8)
    crawl.tick()
    pages = popped(crawl, 20, 50)
    assert len(pages) == 1000
    assert abs(share_of_new(pages) - share) <= 0.02


@pytest.mark.parametrize("ahead", [0 * SECOND, 10 * SECOND, MINUTE])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_so_do_the_slots_of_one_overloaded_host(crawl: Crawl, share: float, ahead: timedelta) -> None:
    crawl.value("select set_setting('discovery', %s)", str(share))
    add_due(crawl, range(1), 900)
    add_new(crawl, range(1), 900)
    crawl.tick()
    for n in (1, 10, 100):
        calls = 250 if n == 1 or not ahead else 12
        pages = popped(crawl, calls, n, every=ahead + SECOND, ahead=ahead)
        assert abs(share_of_new(pages) - share) <= max(0.02, 1 / calls), n  # a call gives only one kind of a host
        if ahead:
            assert len(pages) >= 12 * min(n, 10)


def test_what_one_kind_leaves_the_other_gets(crawl: Crawl) -> None:
    add_due(crawl, range(3), 5)
    add_new(crawl, range(10, 100), 1)
    crawl.tick()
    assert Counter(map(is_new, crawl.next(40))) == {True: 37, False: 3}
    add_due(crawl, range(200, 300), 1)
    crawl.wait(2 * SECOND)
    crawl.tick()
    counts = [Counter(map(is_new, crawl.next(100))) for _ in range(2)]
    assert counts[0].total() == 100
    assert counts[0] + counts[1] == {True: 53, False: 103}


def test_a_host_visited_for_revisits_gives_one_though_new_pages_go_first(crawl: Crawl) -> None:
    add_due(crawl, range(3), 9)
    add_new(crawl, range(3), 9, [0.1])
    add_new(crawl, range(10, 100), 5)
    crawl.tick()
    for _ in range(8):
        assert Counter(map(is_new, crawl.next(20))) == {True: 17, False: 3}
        assert crawl.value("select count(*) from lease where lease_id = (select last_value from lease_id)") == 1
        crawl.wait(SECOND)


def test_few_hosts_ready_for_both_fill_a_call_that_looks_ahead(crawl: Crawl) -> None:
    """If one kind of page runs out, the other kind fills the slots."""
    for share in ("0", "0.3", "0.5", "1"):
        crawl.value("select set_setting('discovery', %s)", share)
        add_due(crawl, range(5), 12)
        add_new(crawl, range(5), 3)
        crawl.tick()
        assert len(crawl.next(50, ahead=9 * SECOND)) == 50
        crawl.value("select keep_out(array(select page_id from page))")
        crawl.wait(DAY)
        crawl.tick()
        crawl.connection.execute("delete from page; update host set pages = 0")


def test_hosts_that_can_give_more_than_expected_fill_a_call_and_no_more(crawl: Crawl) -> None:
    """Ten pages are expected of each of the four hosts, and each has slots for 91."""
    add_due(crawl, range(2), 90)
    add_new(crawl, range(100, 102), 90)
    for host in (0, 1, 100, 101):
        crawl.value("select set_host(%s, gap => '0.1 s')", f"h{host}.test")
    crawl.tick()
    assert Counter(map(is_new, crawl.next(100, ahead=9 * SECOND))) == {True: 50, False: 50}


@pytest.mark.parametrize("short", ["due", "new"])
def test_a_kind_whose_hosts_have_one_page_each_has_its_share_too(crawl: Crawl, short: str) -> None:
    """Each host is expected to give ten pages, so further rounds make up for the missing pages."""
    many, few = (range(1), 20), (range(100, 120), 1)
    add_due(crawl, *(few if short == "due" else many))
    add_new(crawl, *(few if short == "new" else many))
    crawl.tick()
    for _ in range(2):  # the one kind is asked first, then the other
        assert Counter(map(is_new, crawl.next(10, ahead=10 * SECOND))) == {True: 5, False: 5}
        crawl.wait(MINUTE)


# ------------------------------------------------------------------------------------------------------- value


@pytest.mark.parametrize("sigma", [1, 2])
def test_the_better_new_pages_come_first_over_all_hosts(crawl: Crawl, sigma: float) -> None:
    chance = random.Random(sigma)
    values = [math.exp(sigma * chance.gauss(0, 1)) for _ in range(2000)]
    crawl.value("select set_setting('breadth', '0')")
    add_new(crawl, range(400), 5, values)
    crawl.tick()
    waiting = sorted(values, reverse=True)
    worth_half = best = got = 0.0
    for _ in range(10):
        pages = crawl.next(50)
        assert len(pages) == 50
        worth_half += sum(page["value"] >= waiting[49] / 2 for page in pages)
        got += sum(page["value"] for page in pages)
        best += sum(waiting[:50])
        for page in pages:
            waiting.remove(min(waiting, key=lambda value, of=page: abs(value - of["value"])))  # type: ignore[misc]
        crawl.wait(2 * SECOND)
    assert worth_half / 500 >= 0.9
    assert got / best >= 0.78


def test_the_better_new_pages_come_first_without_a_worker_too(crawl: Crawl) -> None:
    """As long as 10,000 wait at most, and were added half a second ago."""
    chance = random.Random(3)
    values = [math.exp(2 * chance.gauss(0, 1)) for _ in range(10_000)]
    crawl.value("select set_setting('breadth', '0')")
    add_new(crawl, range(2500), 4, values)
    crawl.wait(SECOND)
    worth_half = sorted(values)[-1000] / 2
    pages = crawl.next(1000)
    assert len(pages) == 1000
    assert sum(page["value"] >= worth_half for page in pages) >= 900


def test_in_a_class_the_first_ready_goes_first(crawl: Crawl) -> None:
    values = [1.0, 1.9, 1.1, 2.1, 1.5]
    for host, value in enumerate(values):
        add_new(crawl, range(host, host + 1), 1, [value])
        crawl.tick()
        crawl.wait(SECOND)
    found = [urls(crawl.next(1))[0] for _ in values]
    assert found == [f"http://h{host}.test/new0" for host in (3, 0, 1, 2, 4)]


def test_a_value_that_changes_counts_at_once(crawl: Crawl) -> None:
    add_new(crawl, range(20), 3, [4.0])
    crawl.tick()
    for value, host in ((100.0, 7), (1000.0, 12)):
        page_id = crawl.page(f"http://h{host}.test/new2")["page_id"]
        crawl.value("select set_value(%s, %s)", page_id, value)
        crawl.tick()
        assert urls(crawl.next(1)) == [f"http://h{host}.test/new2"]
    worse = [crawl.page(f"http://h{host}.test/new{page}")["page_id"] for host in range(10) for page in range(3)]
    for page_id in worse:
        crawl.value("select set_value(%s, 0.01)", page_id)
    crawl.wait(MINUTE)
    crawl.tick()
    first = crawl.next(20) + crawl.next(20)
    assert {int(page["host"][1:-5]) for page in first[:18]} >= set(range(10, 20)) - {12}


def test_low_classes_do_not_wait_for_ever(crawl: Crawl) -> None:
    crawl.value("select set_setting('breadth', '0.1')")
    add_new(crawl, range(1), 3, [0.001])
    add_new(crawl, range(1, 40), 30, [10.0])
    crawl.tick()
    found = [page["value"] for page in popped(crawl, 100, 1)]
    assert 1 <= sum(value < 1 for value in found) <= 20


@pytest.mark.parametrize("values", [[10.0**i for i in range(-6, 7)], [0.0], [1e-30], [1e30]])
def test_any_value_has_a_class(crawl: Crawl, values: list[float]) -> None:
    crawl.value("select set_setting('breadth', '0')")
    for host, value in enumerate(values):
        add_new(crawl, range(host, host + 1), 2, [value])
    crawl.tick()
    found = [page["value"] for page in popped(crawl, 3 * len(values), 1, every=0 * SECOND)]
    assert found[:9] == sorted(values, reverse=True)[:9]
    assert len(found) == len(values)


def test_of_a_visited_host_no_much_worse_pages_are_taken_while_others_have_better(crawl: Crawl) -> None:
    add_new(crawl, range(20), 4, [16.0, 4.0, 2.0, 1.0] * 20)
    crawl.tick()
    assert {page["value"] for page in crawl.next(20, ahead=9 * SECOND)} == {16.0, 4.0}, "down to a quarter of the best"
    # Nothing better waits any more.
    crawl.wait(MINUTE)
    assert Counter(page["value"] for page in crawl.next(100, ahead=9 * SECOND)) == {16.0: 10, 4.0: 10, 2.0: 20, 1.0: 20}


@pytest.mark.parametrize(
    ("place", "was_chosen", "is_back_soon", "after"),
    [
        (-5, False, True, -5),  # it is in its gap, and the other kind gave a page
        (0, False, True, 0),
        (1, False, True, 30),  # its place was not due yet
        (-5, True, True, 30),
        (-5, False, False, 30),
    ],
)
def test_a_host_keeps_its_place_only_in_the_queue_that_gave_nothing(
    crawl: Crawl, place: int, was_chosen: bool, is_back_soon: bool, after: int
) -> None:
    """Seconds from now. The next slot of the host begins in 30 s."""
    query = "select place_after_visit(%s, %s, %s, %s, %s)"
    places = (crawl.now + place * SECOND, was_chosen, is_back_soon, crawl.now + 30 * SECOND, crawl.now)
    assert crawl.value(query, *places) == crawl.now + after * SECOND


@pytest.mark.parametrize(
    ("is_new", "slot", "busy_until", "places"),
    [
        (True, 2, None, (-5, 3)),  # the gap is 1 s
        (False, 2, None, (3, -5)),
        (True, 9, None, (-5, 10)),
        (True, 10, None, (11, 11)),  # more than 10 s from now: scans need not pass over it
        (False, 2, 60, (60, 60)),  # it gives one page at a time
    ],
)
def test_a_host_after_a_visit(
    crawl: Crawl, is_new: bool, slot: int, busy_until: int | None, places: tuple[int, int]
) -> None:
    """Its places in the queues of revisits and of new pages, in seconds from now."""

    def at(seconds: int | None) -> str | None:
        return None if seconds is None else (crawl.now + seconds * SECOND).isoformat()

    host = {
        "ready_at": at(-5), "new_ready_at": at(-5), "head_due": at(-60), "new_credit": 3,
        "new_class": crawl.value("select value_class(-1)"), "head_new_rank": -1, "head_new_id": 7,
    }  # fmt: skip
    visited = {
        "is_new": is_new, "given": 1, "last_start_by": at(slot), "busy_until": at(busy_until), "head_due": at(-50),
        "head_new_rank": -1 if is_new else None, "head_new_id": 8 if is_new else None,
    }  # fmt: skip
    after = crawl.row(
        """
        select a.* from setting s cross join host_after(
            jsonb_populate_record(null::host, %s), jsonb_populate_record(null::host_visited, %s),
            jsonb_populate_record(null::ask, %s || jsonb_build_object('s', to_jsonb(s)))) a
        """,
        Jsonb(host), Jsonb(visited), Jsonb({"t": at(0), "slots_until": at(0)}),
    )  # fmt: skip
    assert (after["ready_at"], after["new_ready_at"]) == tuple(crawl.now + place * SECOND for place in places)
    assert after["head_due"] == crawl.now - (60 if is_new else 50) * SECOND
    assert after["head_new_id"] == (8 if is_new else 7)


# ------------------------------------------------------------------------------------------------------- skew


def test_a_host_with_half_of_all_pages_gets_no_more_than_its_turn(crawl: Crawl) -> None:
    add_new(crawl, range(1), 600)
    add_due(crawl, range(1), 300)
    add_new(crawl, range(1, 151), 4)
    add_due(crawl, range(151, 301), 2)
    crawl.tick()
    pages = popped(crawl, 30, 10, every=1.1 * SECOND)
    assert len(pages) == 300
    assert abs(share_of_new(pages) - 0.5) <= 0.02
    assert max(Counter(page["host"] for page in pages).values()) <= 3


def test_values_over_twelve_orders_go_down_class_by_class(crawl: Crawl) -> None:
    chance = random.Random(3)
    values = [10 ** chance.uniform(-6, 6) for _ in range(600)]
    crawl.value("select set_setting('breadth', '0')")
    add_new(crawl, range(200), 3, values)
    crawl.tick()
    found = [single(page["value"]) for page in popped(crawl, 60, 10, every=1.1 * SECOND)]
    waiting = Counter(map(single, values))
    assert len(found) == 600
    for i in range(0, 600, 10):
        best = sorted(waiting.elements(), reverse=True)[:20]  # a host that has two of the best gives one
        assert min(found[i : i + 10]) >= best[-1] / 2 or best[-1] < 2**-11, "all below are one class"
        waiting -= Counter(found[i : i + 10])


def test_of_equal_values_every_host_has_its_turn(crawl: Crawl) -> None:
    for first in range(0, 100, 20):
        add_new(crawl, range(first, first + 20), 5)
        crawl.tick()
        crawl.wait(SECOND)
    pages = popped(crawl, 50, 10, every=SECOND)
    for turn in range(5):
        assert len({page["host"] for page in pages[100 * turn : 100 * turn + 100]}) == 100


def test_a_class_that_empties_and_fills_is_found_at_once(crawl: Crawl) -> None:
    crawl.value("select set_setting('breadth', '0')")
    crawl.value("select set_setting('frequency', '0.003')")
    add_new(crawl, range(1), 200, [0.01])
    crawl.tick()
    chance = random.Random(4)
    for turn in range(60):
        value = chance.choice([1.0, 100.0, 1e5])
        host = 10 + chance.randrange(3 * turn + 1)
        crawl.add(f"http://h{host}.test/turn{turn}", value=[value])
        if chance.random() < 0.5:
            crawl.tick()
        pages = crawl.next(2)
        assert {page["value"] for page in pages} == {value, 0.01}
        crawl.report_ok(pages)
        crawl.wait(chance.choice([SECOND, 3 * SECOND, MINUTE, HOUR, 2 * DAY]))


@pytest.mark.soak
def test_the_values_of_very_many_waiting_pages_change_at_once(crawl: Crawl, url: str) -> None:
    """While that transaction is open others get pages as ever; afterwards all new values count."""
    hosts, pages = 1000, 100_000
    crawl.connection.execute("set synchronous_commit = off")
    crawl.value("select set_setting('breadth', '0')")
    crawl.value(
        "select count(*) from add_pages_at(%s, array(select format('http://h%%s.test/%%s', i %% %s, i) "
        "from generate_series(1, %s) i), null, null, null, null, null)", crawl.now, hosts, pages,
    )  # fmt: skip
    crawl.tick()
    with psycopg.connect(url, options="-c search_path=recrawl") as other:
        other.execute("select set_value(page_id, case when page_id % 97 = 0 then 5000 else 0.1 + page_id % 7 end) "
                      "from recrawl_internal.page where page_id % 2 = 0")  # fmt: skip
        assert len(crawl.next(100)) == 100
        other.commit()
    crawl.wait(2 * SECOND)
    crawl.tick()
    best = crawl.value("select count(*) from new_page where rank = -5000")
    assert best > 400
    found = [page["value"] for page in popped(crawl, 12, 100, every=2 * SECOND)]
    assert len(found) == 1200
    assert found[: best - 50] == [5000.0] * (best - 50)
    assert found.count(5000.0) == best
    assert misplaced(crawl) == []


# ------------------------------------------------------------------------------------------- a host with both kinds


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("value", [1.0, 100.0])
def test_neither_kind_of_a_host_takes_the_others_slots_while_both_lines_are_full(
    crawl: Crawl, share: float, value: float
) -> None:
    crawl.value("select set_setting('discovery', %s)", str(share))
    crawl.value("select set_setting('breadth', '0')")
    others = 30
    add_due(crawl, range(others), 60)
    add_new(crawl, range(100, 100 + others), 60)
    add_due(crawl, range(50, 51), 60)
    add_new(crawl, range(50, 51), 60, [value])
    crawl.tick()
    kinds: list[bool] = []
    while len(kinds) < 40:
        pages = crawl.next(6)
        assert len(pages) == 6
        kinds += [is_new(page) for page in pages if page["host"] == "h50.test"]
        crawl.wait(1.1 * SECOND)
    new = fmean(kinds[:40])
    assert share / 2 <= new <= 2 * share
    assert (1 - share) / 2 <= 1 - new <= 2 * (1 - share)


@pytest.mark.parametrize(("n", "calls"), [(1, 300), (10, 40), (50, 12)])
def test_new_pages_on_few_hosts_whose_revisits_stand_far_back_have_their_share(
    crawl: Crawl, n: int, calls: int
) -> None:
    """Nobody else has new pages: that it is their revisits' turn must not keep theirs."""
    add_due(crawl, range(600), 3)
    add_due(crawl, range(2000, 2060), 20)
    add_new(crawl, range(2000, 2060), 40)
    crawl.tick()
    pages = popped(crawl, calls, n, every=2 * SECOND)
    assert len(pages) == n * calls
    assert abs(share_of_new(pages) - 0.5) <= 0.02


def test_with_discovery_1_no_revisit_keeps_better_new_pages_back(crawl: Crawl) -> None:
    crawl.value("select set_setting('discovery', '1')")
    crawl.value("select set_setting('breadth', '0')")
    add_due(crawl, range(1), 3)
    add_new(crawl, range(1), 60, [1000.0])
    add_new(crawl, range(100, 150), 5, [0.01])
    crawl.tick()
    assert {page["value"] for page in popped(crawl, 50, 1)} == {1000.0}


def test_pages_whose_values_fell_are_not_taken_for_what_they_were(crawl: Crawl) -> None:
    crawl.value("select set_setting('breadth', '0')")
    add_new(crawl, range(100), 2, [1000.0])
    add_new(crawl, range(200, 300), 3, [10.0])
    crawl.tick()
    for row in crawl.rows("select page_id from page where value = 1000"):
        crawl.value("select set_value(%s, 0.001)", row["page_id"])
    crawl.tick()
    assert {page["value"] for page in popped(crawl, 20, 5, every=2 * SECOND)} == {10.0}


def test_a_host_that_keeps_its_place_keeps_its_class(crawl: Crawl) -> None:
    """Otherwise it would be in another class, below the horizon where scans of that class begin."""
    crawl.add("http://h0.test/old", due=[crawl.now], rate=[24.0])
    add_new(crawl, range(1), 2)
    crawl.tick()
    for discovery, kind in (("0.9", True), ("0.1", False)):
        crawl.value("select set_setting('discovery', %s)", discovery)
        pages = crawl.next(1)
        assert [is_new(page) for page in pages] == [kind]
        crawl.report_ok(pages)
        crawl.wait(SECOND)
    crawl.tick()
    before = crawl.row("select new_class, new_ready_at, new_credit from host")
    assert (before["new_class"], before["new_credit"] < 1) == (19, True)
    crawl.wait(3 * HOUR)
    crawl.add("http://h0.test/new9")
    crawl.tick()
    after = crawl.row("select new_class, new_ready_at from host")
    assert after["new_class"] == 19 or after["new_ready_at"] >= crawl.now


def test_a_host_in_a_long_gap_keeps_no_place_that_all_scans_would_begin_at(crawl: Crawl) -> None:
    crawl.value("select set_host('h0.test', gap => '1 day')")
    add_due(crawl, range(1), 5)
    add_new(crawl, range(1), 5, [100.0])
    crawl.tick()
    crawl.next(1)
    crawl.wait(MINUTE)
    row = crawl.row("select ready_at, new_ready_at from host")
    assert min(row.values()) > crawl.now


def test_next_ready_at_is_not_now_while_a_host_with_both_is_in_its_gap(crawl: Crawl) -> None:
    crawl.value("select set_host('h0.test', gap => '8 seconds')")
    add_due(crawl, range(1), 5)
    add_new(crawl, range(1), 5)
    crawl.tick()
    start = crawl.now
    for turn in range(8):
        assert len(crawl.next(1)) == 1
        assert crawl.next(1) == []
        assert crawl.host("h0.test")["ready_at"] == start + (turn + 1) * 8 * SECOND
        crawl.now = crawl.value("select next_ready_time(%s)", crawl.now)
        assert crawl.now == start + (turn + 1) * 8 * SECOND


@pytest.mark.parametrize("waiting", ["due", "new"])
def test_next_ready_at_is_the_first_slot_of_the_hosts_that_wait(crawl: Crawl, waiting: str) -> None:
    crawl.value("select set_setting('discovery', %s)", "1" if waiting == "due" else "0")
    crawl.value("select set_host('h0.test', gap => '8 seconds')")
    crawl.value("select set_host('h1.test', gap => '1 hour')")
    add_due(crawl, range(2), 2 if waiting == "due" else 1)
    add_new(crawl, range(2), 2 if waiting == "new" else 1)
    crawl.tick()
    assert {is_new(page) for page in crawl.next()} == {waiting == "due"}, "only the other kind is left"
    assert crawl.value("select next_ready_time(%s)", crawl.now) == crawl.now + 8 * SECOND


def test_a_host_keeps_its_place_among_revisits_while_its_new_pages_are_fetched(crawl: Crawl) -> None:
    """Ten hosts wait with revisits, one with better new pages too: its turn comes as it would without them."""
    for host in range(10):
        add_due(crawl, range(host, host + 1), 9)
        crawl.tick()
        crawl.wait(SECOND)
    add_new(crawl, range(4, 5), 9, [100.0])
    add_new(crawl, range(100, 150), 9)
    crawl.tick()
    order = [page["host"] for page in popped(crawl, 20, 2, every=1.1 * SECOND) if not is_new(page)]
    turns = [i for i, host in enumerate(order) if host == "h4.test"]
    assert turns == [4, 14]


def test_revisits_stay_first_due_first_served(crawl: Crawl) -> None:
    for host in reversed(range(30)):
        crawl.add(f"http://h{host}.test/old", due=[crawl.now + host * SECOND])
    crawl.tick()
    crawl.wait(MINUTE)
    add_new(crawl, range(100, 200), 2)
    crawl.tick()
    order = [page["host"] for page in popped(crawl, 70, 1) if not is_new(page)]
    assert order == [f"h{host}.test" for host in range(30)]


def test_one_at_a_time_holds_for_both_lines(crawl: Crawl) -> None:
    crawl.value("select set_host('h0.test', one_at_a_time => true)")
    add_due(crawl, range(1), 5)
    add_new(crawl, range(1), 5)
    crawl.tick()
    for _ in range(10):
        (page,) = crawl.next(10, ahead=MINUTE)
        crawl.wait(MINUTE)
        assert crawl.next(10, ahead=MINUTE) == []
        crawl.report_ok([page])


def test_per_host_counts_both_kinds(crawl: Crawl) -> None:
    add_due(crawl, range(4), 9)
    add_new(crawl, range(4), 9)
    crawl.tick()
    for most in (1, 2, 3, 7):
        counts = Counter(page["host"] for page in crawl.next(100, ahead=MINUTE, per_host=most))
        assert set(counts.values()) == {most}
        crawl.wait(2 * MINUTE)


def test_a_block_holds_both_lines_and_ends_for_both(crawl: Crawl) -> None:
    add_due(crawl, range(1), 3)
    add_new(crawl, range(1), 3)
    crawl.tick()
    crawl.value("select block_host_at(%s, 'h0.test', %s, 'test')", crawl.now, crawl.now + HOUR)
    assert crawl.next(10, ahead=MINUTE) == []
    assert crawl.value("select next_ready_time(%s)", crawl.now) == crawl.now + HOUR
    crawl.wait(HOUR)
    assert {is_new(page) for page in crawl.next(10, ahead=MINUTE)} == {True, False}


@pytest.mark.parametrize("value", ["-0.1", "1.1", "NaN", "lots"])
def test_breadth_is_a_share(crawl: Crawl, value: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"^set_setting: breadth must"):
        crawl.value("select set_setting('breadth', %s)", value)
