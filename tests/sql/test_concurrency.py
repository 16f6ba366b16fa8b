"""Several connections at the same time: there is no deadlock, and no page is lost or handed out twice."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, eventually, misplaced, result_of, urls

Beside = Callable[..., Crawl]
SETTINGS = "-c search_path=recrawl,recrawl_internal"


@pytest.fixture
def beside(url: str, crawl: Crawl) -> Iterator[Beside]:
    """More connections, with the time of the first. Each is in a transaction until it commits, or it autocommits."""
    connections: list[psycopg.Connection] = []

    def connect(autocommit: bool = False) -> Crawl:
        connections.append(psycopg.connect(url, options=SETTINGS, autocommit=autocommit))
        another = Crawl(connections[-1])
        another.now = crawl.now
        return another

    yield connect
    for connection in connections:
        connection.close()


def waits(other: Crawl) -> bool:
    """Whether the call of that connection waits for a lock."""
    with psycopg.connect(other.connection.info.dsn, autocommit=True) as looking:
        blockers = looking.execute("select pg_blocking_pids(%s)", [other.connection.info.backend_pid]).fetchone()
    return blockers != ([],)


@contextmanager
def blocked(waiting: Crawl, call: Callable[[], object]) -> Iterator[Future[object]]:
    """Runs `call` of `waiting` while it may wait for a lock. It must end after the block."""
    with ThreadPoolExecutor() as pool:
        future = pool.submit(call)
        eventually(lambda: future.done() or waits(waiting), what="it neither waits nor ends")
        yield future
        future.result(60)
        waiting.connection.commit()


def test_slots_that_were_given_before_a_longer_gap_was_committed_do_not_come_back(crawl: Crawl, beside: Beside) -> None:
    crawl.add(*(f"http://a.test/{n}" for n in range(9)))
    operator = beside()
    operator.value("select set_setting_at(%s, 'default_gap', '10 s')", crawl.now)
    crawl.wait(SECOND)
    *_, before, last = crawl.next(ahead=4 * SECOND)
    operator.connection.commit()
    crawl.release(last["lease_id"], [last["page_id"]])
    following, *_ = crawl.next(ahead=30 * SECOND)
    assert following["fetch_at"] >= before["fetch_at"] + 10 * SECOND


def exclude(crawl: Crawl) -> Any:
    return crawl.value("select exclude('a.test')")


def unexclude(crawl: Crawl) -> Any:
    return crawl.value("select unexclude_at(%s, 'a.test')", crawl.now)


def test_an_uncommitted_pop_keeps_its_hosts_to_itself(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/1", "http://a.test/2", "http://b.test/")
    crawl.tick()
    popper = beside()
    (page,) = popper.next(1)
    assert [other["host"] for other in crawl.next() if other["host"] == page["host"]] == []
    popper.connection.rollback()
    crawl.wait(MINUTE)
    assert page["page_id"] in {other["page_id"] for other in crawl.next(ahead=MINUTE)}


@pytest.mark.parametrize("discovery", [0, 1], ids=["gave a revisit", "gave a new page"])
def test_a_call_does_not_lock_a_host_that_is_in_its_gap(crawl: Crawl, beside: Beside, discovery: int) -> None:
    """The host keeps its place in the queue of hosts that did not give the page."""
    crawl.value("select set_setting('discovery', %s)", str(discovery))
    crawl.add("http://a.test/old", "http://b.test/old", due=[crawl.now] * 2, rate=[1] * 2)
    crawl.add("http://a.test/new", "http://b.test/new")
    crawl.tick()
    (first,) = crawl.next(1)
    assert first["url"].endswith("new") == bool(discovery)
    (second,) = beside().next()
    assert first["host"] != second["host"]
    free = crawl.rows("select name from host where host_id > 0 for update skip locked")
    assert free == [{"name": first["host"]}]


def test_a_backlog_on_a_host_that_somebody_holds_keeps_no_other_waiting(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://held.test/")
    crawl.tick()
    beside().next(1)
    crawl.add(*(f"http://held.test/{i}" for i in range(10)), *(f"http://h{i}.test/" for i in range(400)))
    crawl.tick()
    assert crawl.value("select count(*) from inbox") == 10


def test_a_huge_backlog_on_a_held_host_keeps_no_other_waiting(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://held.test/")
    crawl.tick()
    beside().next(1)
    crawl.add(*(f"http://held.test/{i}" for i in range(5000)))
    crawl.add("http://free.test/")
    assert urls(crawl.next()) == ["http://free.test/"]


@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_a_report_that_hangs_keeps_no_page_waiting_for_longer_than_a_lease(
    crawl: Crawl, beside: Beside, end: str
) -> None:
    """Its pages are handed out again ten minutes after their lease ended. Then the old lease decides nothing."""
    crawl.add(*(f"http://{c}.test/" for c in "abcdef"), due=[crawl.now], rate=[1440])  # due again every minute
    stuck = crawl.next(3)
    crawl.report_ok(stuck[2:])
    hung = beside()
    hung.report(result_of(stuck[0]))
    for held in (True, False):
        crawl.wait(15 * MINUTE)
        pages = crawl.next()
        again = [page for page in pages if page["url"] in urls(stuck[:2])]
        assert len(again) == (0 if held else 2)
        assert len(pages) - len(again) == 4
        crawl.report_ok([page for page in pages if page not in again])
    crawl.add("http://new.test/")
    assert urls(crawl.next()) == ["http://new.test/"]
    assert crawl.value("select next_ready_time(%s)", crawl.now) > crawl.now
    getattr(hung.connection, end)()
    crawl.tick()
    assert not set(urls(stuck[:2])) & set(urls(crawl.next()))
    assert set(codes(crawl.report_ok(again))) == {"ok"}
    assert crawl.value("select count(*) from lease where lease_id = %s", stuck[0]["lease_id"]) == 0
    assert misplaced(crawl) == []


def test_a_page_unexcluded_during_its_pop_is_not_handed_out_again(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    crawl.tick()
    popper = beside()
    assert len(popper.next(lease=HOUR)) == 1
    assert (exclude(crawl), unexclude(crawl)) == (1, 1)
    popper.connection.commit()
    crawl.tick()
    crawl.wait(MINUTE)
    assert crawl.next() == []


def test_a_page_unexcluded_while_its_lease_is_reaped_comes_back(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    assert len(crawl.next(lease=MINUTE)) == 1
    exclude(crawl)
    crawl.tick()
    crawl.wait(2 * MINUTE)
    operator, reaper = beside(), beside()
    unexclude(operator)
    with blocked(reaper, lambda: reaper.value("select tick_at(%s, 10, 10)", crawl.now)):
        operator.connection.commit()
    crawl.wait(5 * MINUTE)  # by then a recheck has found late entries
    assert misplaced(crawl) == []


def test_a_page_unexcluded_while_it_is_released_comes_back(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    (page,) = crawl.next(lease=HOUR)
    exclude(crawl)
    crawl.tick()
    crawler, operator = beside(), beside()
    crawler.release(page["lease_id"])
    with blocked(operator, lambda: unexclude(operator)):
        crawler.connection.commit()
    assert misplaced(crawl) == []


@pytest.mark.parametrize("end", [{"status": 301, "redirect_to": "http://b.test/"}, {"status": 410}])
def test_a_new_page_that_ended_while_it_was_excluded_comes_back_to_one_place(crawl: Crawl, end: Row) -> None:
    """Before its report, its place in the queue was a day after the end of its first lease."""
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    exclude(crawl)
    assert codes(crawl.report(result_of(page, **end))) == ["ok"]
    assert unexclude(crawl) == 1
    assert misplaced(crawl) == []
    crawl.wait(MINUTE)
    assert "http://a.test/" in urls(crawl.next())


def test_an_extension_that_waits_until_another_has_the_pages_extends_nothing(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/", due=[crawl.now], rate=[1440.0])  # due again every minute
    (lease,) = {page["lease_id"] for page in crawl.next(lease=MINUTE)}
    holder, extending = beside(), beside()
    holder.connection.execute("select from host where name = 'a.test' for update")
    with blocked(extending, lambda: extending.extend(lease, HOUR)) as extended:
        crawl.wait(12 * MINUTE)
        pages = crawl.next()
        holder.connection.commit()
    assert (urls(pages), extended.result()) == (["http://b.test/"], None)


def test_a_release_holds_no_host_while_it_waits_for_one(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/")
    crawl.add("http://b.test/")
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.tick()
    (lease,) = {page["lease_id"] for page in crawl.next()}
    other, releasing = beside(), beside(autocommit=True)
    hold = "select host_id from host where name = %s for update"
    first = other.value(hold, "a.test")
    release = lambda: releasing.value("select release_at(%s, %s, null)", crawl.now, lease)  # noqa: E731
    with blocked(releasing, release) as released:
        assert other.value(hold, "b.test") > first
        other.connection.commit()
    assert released.result() == 2
    assert crawl.value("select busy_until from host where name = 'a.test'") is None


def test_a_release_that_waits_for_its_lease_holds_no_page(crawl: Crawl, beside: Beside) -> None:
    """A report locks the lease first, then pages: in another order the two could wait for each other for ever."""
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    other, releasing = beside(), beside(autocommit=True)
    other.connection.execute("select from lease for update")
    release = lambda: releasing.value("select release_at(%s, %s, null)", crawl.now, page["lease_id"])  # noqa: E731
    with blocked(releasing, release) as released:
        other.connection.execute("select from page for update nowait")
        other.connection.commit()
    assert released.result() == 1


def test_fetch_now_while_a_lease_is_reaped_leaves_one_truth(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/", due=[crawl.now])
    first, second = sorted(crawl.next(lease=MINUTE), key=lambda page: int(page["page_id"]))
    crawl.wait(2 * MINUTE)
    holder, reaper = beside(), beside(autocommit=True)
    holder.connection.execute("select from page where page_id = %s for update", (first["page_id"],))
    with blocked(reaper, lambda: reaper.value("select tick_at(%s, 10, 10)", crawl.now)):
        crawl.connection.execute("set statement_timeout = '1 min'")
        crawl.value("select fetch_now_at(%s, %s)", crawl.now, [second["page_id"]])
        holder.connection.commit()
    crawl.tick()
    assert misplaced(crawl) == []


def test_a_pop_that_reaps_never_waits_for_a_page_while_it_holds_hosts(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/1", "http://a.test/2", due=[crawl.now])
    (page,) = crawl.next(1, lease=2 * SECOND)
    crawl.wait(1.8 * SECOND)
    crawl.tick()
    crawl.wait(0.3 * SECOND)
    reporter, popper = beside(), beside()
    reporter.report({"page_id": page["page_id"], "status": 200})
    popper.connection.autocommit = True
    with ThreadPoolExecutor() as pool:
        pop = pool.submit(popper.next, 10)
        time.sleep(0.5)
        reporter.report({"page_id": page["page_id"], "status": 429})
        reporter.connection.commit()
        assert len(pop.result(60)) <= 2


def test_pages_that_somebody_holds_keep_nobody_waiting_when_their_lease_ends(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/", due=[crawl.now])
    a, b = crawl.next(1, lease=MINUTE) + crawl.next(1, lease=MINUTE)
    crawl.wait(2 * MINUTE)
    hanging = beside()
    hanging.report({"page_id": a["page_id"], "status": 200})
    crawl.connection.execute("set statement_timeout = '1 min'")
    crawl.tick()
    assert {page["url"] for page in crawl.next()} == {b["url"], "http://c.test/"}
    hanging.connection.rollback()
    crawl.tick()
    assert [(page["url"], page["attempt"]) for page in crawl.next()] == [(a["url"], 2)]
    assert misplaced(crawl) == []


# ---------------------------------------------------------------------------------------------- one order of locks


def test_results_on_several_leases_lock_pages_in_one_order(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    old = crawl.next()
    crawl.wait(HOUR)
    crawl.tick()
    first, second = sorted(crawl.next(), key=lambda page: int(page["page_id"]))
    crawl.report(*(result_of(page, status=0) for page in old))  # each lease counts as an observation once
    ended = [result_of(page, status=0) for page in old if page["page_id"] == first["page_id"]]
    holder, reporter, hurried = beside(), beside(autocommit=True), beside(autocommit=True)
    holder.connection.execute("select from page where page_id = %s for update", [second["page_id"]])
    with ThreadPoolExecutor() as pool:
        report = pool.submit(reporter.report, *ended, result_of(first), result_of(second))
        eventually(lambda: waits(reporter))
        both = [first["page_id"], second["page_id"]]
        fetch = pool.submit(hurried.value, "select fetch_now_at(%s, %s)", crawl.now, both)
        eventually(lambda: waits(hurried))
        holder.connection.commit()
        assert codes(report.result(60)) == ["stale_lease", "ok", "ok"]
        assert fetch.result(60) == 2


def test_a_report_judges_what_others_have_just_written(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/", due=[crawl.now])
    pages = crawl.next()
    steering, reporter = beside(), beside(autocommit=True)
    steering.value("select fetch_now_at(%s, '{1,2}')", crawl.now)
    steering.connection.execute("update page set successes = 10, meta = '{\"new\": true}'")
    with ThreadPoolExecutor() as pool:
        report = pool.submit(reporter.report, *(result_of(page) for page in pages))
        eventually(lambda: waits(reporter))
        steering.connection.commit()
        assert codes(report.result(60)) == ["ok", "ok"]
    assert crawl.rows("select distinct successes, meta from page") == [{"successes": 11, "meta": {"new": True}}]
    crawl.tick()
    assert misplaced(crawl) == []


PATIENT = "alter function exclude set lock_timeout = '1 min'"  # on a busy machine 2 s are short


def test_fetch_now_and_exclude_lock_pages_in_one_order(crawl: Crawl, beside: Beside) -> None:
    crawl.connection.execute(PATIENT)
    crawl.add(*(f"http://a.test/{i}" for i in range(8)), due=[crawl.now])
    crawl.tick()
    holder, hurried, strict = beside(), beside(autocommit=True), beside(autocommit=True)
    holder.connection.execute("select from page where page_id = 7 for update")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(hurried.value, "select fetch_now_at(%s, %s)", crawl.now, list(range(1, 9)))
        eventually(lambda: waits(hurried))
        second = pool.submit(strict.value, "select exclude('a.test')")
        eventually(lambda: waits(strict))
        holder.connection.commit()
        assert (first.result(60), second.result(60)) == (8, 8)


def test_forget_and_report_lock_a_page_before_its_links(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    crawl.report({"page_id": 1, "status": 200, "links": ["http://b.test/"]})
    reporter, forgetful = beside(), beside(autocommit=True)
    reporter.report({"page_id": 1, "status": 200})
    with ThreadPoolExecutor() as pool:
        kept_out = pool.submit(forgetful.value, "select keep_out('{1}')")
        eventually(lambda: waits(forgetful))
        reporter.report({"page_id": 1, "status": 200, "links": ["http://c.test/"]})
        reporter.connection.commit()
        assert kept_out.result(60) == 1


@pytest.mark.parametrize(("status", "state"), [(200, "live"), (410, "gone")])
def test_what_is_excluded_during_its_report_and_taken_back_is_what_it_was(
    crawl: Crawl, beside: Beside, status: int, state: str
) -> None:
    crawl.connection.execute(PATIENT)
    crawl.add("http://a.test/", due=[crawl.now], rate=[86400.0])
    (page,) = crawl.next(lease=MINUTE)
    reporter = beside()
    reporter.report(result_of(page, status=status))
    with ThreadPoolExecutor() as pool:
        excluded = pool.submit(crawl.value, "select exclude('a.test')")
        eventually(lambda: waits(crawl))
        reporter.connection.commit()
        excluded.result(60)
    crawl.tick()
    assert crawl.rows("select * from queue") == []
    crawl.value("select unexclude_at(%s, 'a.test')", crawl.now)
    crawl.tick()
    assert crawl.value("select state::text from page") == state
    assert crawl.value("select min(due_at) from queue") == (crawl.now if state == "live" else None)


def test_a_page_taken_in_while_its_pattern_is_being_excluded_is_kept_out_too(crawl: Crawl, beside: Beside) -> None:
    crawl.connection.execute(PATIENT)
    crawl.add("http://b.test/")
    adder, operator = beside(), beside()
    adder.add("http://a.test/")
    with blocked(operator, lambda: exclude(operator)) as excluded:
        adder.connection.commit()
    assert excluded.result() == 1
    assert crawl.page("http://a.test/")["state"] == "excluded"


def test_a_page_that_comes_back_while_its_pattern_is_being_excluded_is_kept_out_too(
    crawl: Crawl, beside: Beside
) -> None:
    """It was dead when exclude read the pages. Upkeep brings it back before exclude has locked anything."""
    crawl.connection.execute(PATIENT)
    crawl.add("http://a.test/")
    crawl.tick()
    crawl.report({"url": "http://a.test/", "status": 301, "redirect_to": "http://b.test/"})
    crawl.tick()
    crawl.report({"url": "http://b.test/", "status": 301, "redirect_to": "http://a.test/"})
    holder, upkeep, operator = beside(), beside(), beside(autocommit=True)
    holder.connection.execute("lock table page")
    with ThreadPoolExecutor() as pool:
        excluded = pool.submit(exclude, operator)
        eventually(lambda: waits(operator))
        upkeep.connection.execute("lock table exclusion in row share mode")
        holder.connection.commit()
        blockers = "select %s = any (pg_blocking_pids(%s))"
        pids = upkeep.connection.info.backend_pid, operator.connection.info.backend_pid
        eventually(lambda: crawl.value(blockers, *pids))
        assert upkeep.value("select bring_back(%s, 100)", crawl.now) == 1
        upkeep.connection.commit()
        assert excluded.result(60) == 1
    assert crawl.page("http://a.test/")["state"] == "excluded"


def test_two_crawlers_that_close_a_circle_of_redirects_at_once_lose_no_page(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    a, b = sorted(crawl.next(), key=lambda page: str(page["host"]))
    one, other = beside(), beside()
    one.report(result_of(a, status=301, redirect_to=b["url"]))
    with blocked(other, lambda: other.report(result_of(b, status=301, redirect_to=a["url"]))):
        one.connection.commit()
    assert (crawl.page(a["url"])["state"], crawl.page(b["url"])["state"]) == ("moved", "new")
    assert crawl.page(b["url"])["due_at"] is not None


def test_an_exclusion_gives_up_on_a_transaction_that_stays_open(crawl: Crawl, beside: Beside) -> None:
    adder = beside()
    adder.add("http://a.test/")
    with pytest.raises(psycopg.errors.LockNotAvailable, match="exclude: a transaction in this crawl has been open"):
        exclude(crawl)
    assert crawl.value("select count(*) from exclusion") == 0


# ------------------------------------------------------------------------------------------------ who asks again, when


def test_while_all_that_is_ready_is_in_an_open_transaction_nobody_is_asked_back_at_once(
    crawl: Crawl, beside: Beside
) -> None:
    crawl.add("http://new.test/")
    crawl.add("http://due.test/", due=[crawl.now])
    crawl.tick()
    beside().next()
    assert crawl.next() == []
    assert crawl.now < crawl.value("select next_ready_time(%s)", crawl.now) < crawl.now + SECOND
    crawl.add("http://held.test/")
    assert crawl.value("select next_ready_time(%s)", crawl.now) > crawl.now, "what is new comes in by the next pop"


# -- a transaction that found it first hangs --


def hang(beside: Beside, how: str) -> Crawl:
    """A transaction that has just taken in the first URL of a host, and stays open."""
    hung = beside()
    if how == "add_pages":
        hung.add("http://popular.test/")
    elif how == "set_host":
        hung.value("select set_host('popular.test', gap => '1 s')")
    else:
        hung.report({"page_id": 1, "status": 200, "links": ["http://popular.test/"]})
    return hung


@pytest.mark.parametrize("ends", ["commit", "rollback"])
@pytest.mark.parametrize("how", ["add_pages", "set_host", "report"])
def test_a_transaction_that_found_a_url_and_hangs_keeps_no_report_from_coming_in(
    crawl: Crawl, beside: Beside, how: str, ends: str
) -> None:
    crawl.add(*(f"http://{name}.test/" for name in "abcd"))
    pages = {page["page_id"]: page for page in crawl.next()}
    hung = hang(beside, how)
    links = ["http://popular.test/", "http://c.test/", "http://free.test/", "http://popular.test/", "http://b.test/"]
    reporter = beside(autocommit=True)
    reporter.connection.execute("set statement_timeout = '1 min'")
    assert codes(reporter.report(result_of(pages[2], links=links))) == ["ok"], (
        "it waits for .3 s, and not for the other"
    )
    crawl.tick()
    assert crawl.page("http://free.test/")["state"] == "new", "what nobody holds comes in at once"
    # The URL is known to be held by now. A report that waited for it once more would run into the statement_timeout.
    crawl.connection.execute("alter function intern_links set lock_timeout = '1h'")
    set_aside = crawl.rows("select key from link_later")
    for page, found in ((pages[3], links), (pages[4], ["http://b.test/"])):
        assert codes(reporter.report(result_of(page, links=found))) == ["ok"]
    assert crawl.rows("select key from link_later") == set_aside, "a held URL is set aside once"
    crawl.tick()

    getattr(hung.connection, ends)()
    crawl.wait(4 * MINUTE + SECOND)  # a recheck finds what was committed late at most this much later
    crawl.tick()
    crawl.tick()
    assert crawl.rows("select * from link_later") == []
    ids = {str(row["url"]): row["page_id"] for row in crawl.rows("select url, page_id from page")}
    stored = "select array_agg(u) from link, unpacked(targets) u where page_id = %s"
    assert crawl.value(stored, 2) == [ids["http://c.test/"]], "links to new URLs come with the next report"
    assert crawl.value(stored, 3) == sorted({ids["http://b.test/"], ids["http://free.test/"]}), "a held URL is no link"
    crawl.report({"page_id": 2, "status": 200, "links": links})
    assert crawl.value(stored, 2) == sorted({ids[url] for url in links} - {2})
    assert {"http://popular.test/", "http://free.test/"} <= set(urls(crawl.next()))
    assert misplaced(crawl) == []


def test_a_redirect_to_what_a_hanging_transaction_found_is_followed_another_time(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    pages = {page["page_id"]: page for page in crawl.next()}
    hung = hang(beside, "report")
    moved = {"status": 301, "redirect_to": "http://popular.test/"}
    assert codes(crawl.report(result_of(pages[2], **moved))) == ["ok"]
    hung.connection.rollback()
    crawl.tick()
    assert crawl.page("http://popular.test/")["state"] == "new"
    crawl.wait(2 * 24 * HOUR)
    (again,) = (page for page in crawl.next() if page["page_id"] == 2)
    crawl.report(result_of(again, **moved))
    assert crawl.page("http://b.test/")["state"] == "moved"


def test_many_urls_that_a_hanging_transaction_found_keep_no_others_waiting_long(crawl: Crawl, beside: Beside) -> None:
    crawl.add(*(f"http://h{i}.test/" for i in range(5)))
    pages = crawl.next()
    hung = beside()
    hung.add(*(f"http://popular.test/{i}" for i in range(60)))
    for i, page in enumerate(pages):
        links = [f"http://popular.test/{k}" for k in range(60)] + [f"http://free.test/{i}/{k}" for k in range(30)]
        crawl.report(result_of(page, links=links))
    for _ in range(10):
        crawl.tick()
        crawl.wait(SECOND)
    assert crawl.value("select count(*) from page where url like '%%free.test%%'") == 150
    hung.connection.rollback()
    for _ in range(5):
        crawl.tick()
    assert crawl.rows("select * from link_later") == []
    assert crawl.value("select count(*) from page where url like '%%popular.test%%'") == 60


def test_a_page_that_is_unexcluded_during_an_exclude_of_another_pattern_is_kept_out(
    crawl: Crawl, beside: Beside
) -> None:
    crawl.connection.execute(PATIENT)
    crawl.add("http://a.test/")
    exclude(crawl)
    crawl.tick()
    adder, excluding, unexcluding = beside(), beside(autocommit=True), beside()
    adder.add("http://other.test/")
    with (
        blocked(excluding, lambda: excluding.value("select exclude('a[.]test')")),
        blocked(unexcluding, lambda: unexclude(unexcluding)),
    ):
        adder.connection.commit()
    assert crawl.rows("select pattern from exclusion") == [{"pattern": "a[.]test"}]
    assert crawl.page("http://a.test/")["state"] == "excluded"


def test_a_page_of_two_patterns_that_are_unexcluded_at_once_comes_back(crawl: Crawl, beside: Beside) -> None:
    """Each call still saw the pattern of the other one."""
    crawl.add("http://a.test/")
    exclude(crawl)
    crawl.value("select exclude('test/$')")
    first, second = beside(), beside()
    unexclude(first)
    with blocked(second, lambda: second.value("select unexclude('test/$')")):
        first.connection.commit()
    assert crawl.page("http://a.test/")["state"] == "new"


@pytest.mark.parametrize(
    ("verb", "days", "least"),
    [
        ("put_dues_at(%s, %s, %s::real[], 1)", 2.5, 2.5 * DAY - SECOND),
        ("bring_forward_at(%s, %s, %s::real[])", 98 - 1 / 1440, 5 * MINUTE),
    ],
)
def test_a_job_counts_from_the_last_fetch_although_it_comes_during_the_call(
    crawl: Crawl, beside: Beside, verb: str, days: float, least: timedelta
) -> None:
    crawl.add("http://a.test/", rate=[0.01])
    (page,) = crawl.next()
    crawl.report(result_of(page))
    crawl.tick()
    crawl.wait(2 * DAY)
    reporter, job = beside(), beside(autocommit=True)
    reporter.report({"page_id": page["page_id"], "status": 200})
    with blocked(job, lambda: job.value(f"select {verb}", crawl.now, [page["page_id"]], [1 / days])):
        reporter.connection.commit()
    assert crawl.value("select due_at from page") >= crawl.now + least


def test_of_the_delays_of_two_sites_the_longest_counts_if_both_come_at_once(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/", "https://a.test/")
    crawl.tick()
    one, other = beside(), beside()
    robots = "select set_robots_at(%s, %s, 200, '', %s)"
    one.value(robots, one.now, "http://a.test/", 30.0)
    with blocked(other, lambda: other.value(robots, other.now, "https://a.test/", 2.0)):
        one.connection.commit()
    assert crawl.value("select crawl_delay from host") == 30 * SECOND


def test_a_crawl_delay_that_a_report_stores_during_a_call_of_set_robots_stays(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    reporter, other = beside(), beside(autocommit=True)
    reporter.report(result_of(page, crawl_delay=20))
    robots = "select set_robots_at(%s, 'http://a.test/', 200, '', 2.0)"
    with blocked(other, lambda: other.value(robots, other.now)):
        reporter.connection.commit()
    assert crawl.value("select crawl_delay from host") == 20 * SECOND


def test_a_value_that_is_given_back_while_scores_are_stored_follows_the_new_score(crawl: Crawl, beside: Beside) -> None:
    crawl.connection.execute("alter function put_scores set lock_timeout = '1 min'")  # on a busy machine 2 s are short
    crawl.add("http://a.test/")
    crawl.tick()
    token = crawl.value("select start_job('opic', '1 hour')")
    crawl.value("select put_graph_state(%s, '1 hour', 0.5, 0.5)", token)
    scores = "select put_scores(%s, '1 hour', '{1}', %s::real[], %s::real[], %s::real[], %s::real[])"
    crawl.value(scores, token, [1.0], [1.0], [1.0], [1.0])
    crawl.value("select set_value(1, 100)")
    operator, job = beside(), beside(autocommit=True)
    operator.value("select set_value(1, null)")
    with blocked(job, lambda: job.value(scores, token, [9.0], [9.0], [9.0], [9.0])):
        operator.connection.commit()
    value = crawl.value("select value from page")
    crawl.value("select set_value(1, 100), set_value(1, null)")
    assert value == crawl.value("select value from page")


def test_urls_that_are_added_and_a_report_that_links_to_them_do_not_wait_in_a_circle(
    crawl: Crawl, beside: Beside
) -> None:
    """add_pages locked a done page, and then the key of a new one. A report takes these locks in the other order."""
    crawl.add("http://a.test/done", due=["infinity"])
    crawl.tick()
    holder, adding, reporting = beside(), beside(autocommit=True), beside(autocommit=True)
    holder.value("select page_id from page for update")

    def add() -> list[Row]:
        return adding.add("http://a.test/done", "http://a.test/new", due=[crawl.now + DAY] * 2)

    done = {"page_id": 1, "status": 200, "links": ["http://a.test/new"]}
    with blocked(adding, add) as added, blocked(reporting, lambda: reporting.report(done)) as reported:
        holder.connection.commit()
    assert codes(added.result()) == ["known", "new"] and codes(reported.result()) == ["ok"]  # type: ignore[arg-type]


def test_an_open_exclusion_holds_up_nothing_but_its_own_pages(crawl: Crawl, beside: Beside) -> None:
    """It had locked entries of the inbox, and next_pages and upkeep waited for them while they held their hosts."""
    crawl.add("http://a.test/", "http://b.test/")
    operator, crawler = beside(), beside(autocommit=True)
    assert exclude(operator) == 1
    crawler.connection.execute("set statement_timeout = '1 min'")
    assert urls(crawler.next()) == ["http://b.test/"]
    crawler.tick()
    operator.connection.commit()
    crawler.wait(4 * MINUTE + SECOND)  # see above
    crawler.tick()
    assert crawler.next() == [] and misplaced(crawl) == []


def test_an_exclusion_waits_two_seconds_for_a_crawler_that_does_not_commit(crawl: Crawl, beside: Beside) -> None:
    """It waited for ever, and nobody could add pages while it waited."""
    crawl.add("http://a.test/")
    crawler, operator = beside(), beside(autocommit=True)
    assert len(crawler.next()) == 1
    with pytest.raises(psycopg.errors.LockNotAvailable, match="a transaction in this crawl has been open for 2 s"):
        exclude(operator)
    crawler.connection.rollback()
    assert exclude(operator) == 1


def test_an_exclusion_and_upkeep_do_not_wait_in_a_circle(crawl: Crawl, beside: Beside) -> None:
    """Both deleted entries of the inbox, each in an order of its own."""
    crawl.connection.execute(PATIENT)
    for nth in range(4):
        crawl.add(*(f"http://h{i % 50}.test/{nth}/{i}" for i in range(2500)))
    operator, worker = beside(autocommit=True), beside(autocommit=True)
    with ThreadPoolExecutor() as pool:
        excluding = pool.submit(operator.value, "select exclude('test/[0-3]/')")
        while not excluding.done():
            worker.value("select tick_at(%s, 1000, 1000)", worker.now)
        assert excluding.result() == 10_000
    crawl.wait(HOUR)  # an entry that was committed late is found a few minutes later
    for _ in range(100):
        crawl.tick()
    assert crawl.value("select count(*) from inbox") == 0
    assert misplaced(crawl) == [] and crawl.next() == []


@pytest.mark.parametrize("first", ["add_pages", "set_host"])
def test_the_most_pages_of_a_host_count_for_a_name_that_is_added_at_the_same_moment(
    crawl: Crawl, beside: Beside, first: str
) -> None:
    crawl.value("select set_host('x.test')")
    adding, setting = beside(), beside()

    def add() -> object:
        return adding.add("http://y.test/0", host=["x.test"])

    def set_host() -> object:
        return setting.value("select set_host('x.test', max_pages => 1)")

    if first == "add_pages":
        add()
        with blocked(setting, set_host):
            adding.connection.commit()
    else:
        set_host()
        with blocked(adding, add):
            setting.connection.commit()
    assert crawl.rows("select name, max_pages from host_name order by name") == [
        {"name": "x.test", "max_pages": 1}, {"name": "y.test", "max_pages": 1},
    ]  # fmt: skip


def test_redirects_that_close_a_circle_at_once_leave_a_live_page(crawl: Crawl, beside: Beside) -> None:
    crawl.add(*(f"http://{name}.test/" for name in "abcd"))
    page = {page["host"][0]: page for page in (crawl.next(1)[0] for _ in "abcd")}

    def moved(source: str, target: str) -> Row:
        return result_of(page[source], status=301, redirect_to=page[target]["url"])

    first, one, other = beside(), beside(autocommit=True), beside(autocommit=True)
    first.report(moved("b", "c"), moved("d", "a"))
    with blocked(one, lambda: one.report(moved("a", "b"))), blocked(other, lambda: other.report(moved("c", "d"))):
        first.connection.commit()
    assert crawl.value("select count(*) from page where state = 'live'") > 0


def test_a_slot_that_waited_for_its_host_is_not_past(crawl: Crawl, beside: Beside) -> None:
    crawl.value("select set_host('a.test', gap => '1 s')")
    holder, taker = beside(), beside(autocommit=True)
    holder.connection.execute("select from host for update")
    with blocked(taker, lambda: taker.row("select start_by from take_slot('a.test')")) as taken:
        time.sleep(2)
        released = holder.value("select clock_timestamp()")
        holder.connection.commit()
    slot: Any = taken.result()
    assert slot["start_by"] >= released


def test_boosts_at_once_multiply(crawl: Crawl, beside: Beside) -> None:
    crawl.add("http://a.test/x")
    one, other = beside(), beside()
    one.value("select boost_at(%s, 'a.test', 2)", crawl.now)
    with blocked(other, lambda: other.value("select boost_at(%s, '/x', 3)", crawl.now)):
        one.connection.commit()
    assert crawl.value("select boost from page") == 6


def test_a_worker_that_looks_for_dead_runs_does_not_wait_for_a_run_that_writes(crawl: Crawl, beside: Beside) -> None:
    token = crawl.value("select start_job('rates', '1 second')")
    run, worker = beside(), beside(autocommit=True)
    run.value("select keep_job(%s, '1 hour')", token)
    time.sleep(1.1)
    worker.connection.execute("set statement_timeout = '1 min'")
    worker.value("select end_dead_runs()")
    run.connection.commit()
    assert crawl.value("select ended_at is null from job")
