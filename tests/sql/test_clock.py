"""The clock of the database is wrong for a while, or a dump is restored on a server whose clock is behind."""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, misplaced, result_of, urls
from recrawl import store
from sql.model import BROKEN

AHEAD = 400 * DAY


def add_both_kinds(crawl: Crawl, hosts: int = 6) -> None:
    crawl.add(*(f"http://h{i}.test/new/{k}" for i in range(hosts) for k in range(2)))
    crawl.add(*(f"http://h{i}.test/{k}" for i in range(hosts) for k in range(2)), due=[crawl.now - HOUR])
    crawl.tick()


def all_pages_out(crawl: Crawl, within: timedelta) -> set[str]:
    """By pops alone: there is no worker."""
    seen: set[str] = set()
    until = crawl.now + within
    while crawl.now < until:
        seen |= set(urls(crawl.next(ahead=10 * SECOND)))
        crawl.wait(SECOND)
    return seen


def test_one_pop_under_a_clock_that_is_ahead_keeps_nothing_from_the_others(crawl: Crawl) -> None:
    add_both_kinds(crawl)
    right = crawl.now
    crawl.now += AHEAD
    assert crawl.next(ahead=10 * SECOND)
    crawl.now = right + SECOND
    assert len(all_pages_out(crawl, MINUTE)) == 24
    assert misplaced(crawl) == []


def test_so_it_is_when_the_pop_was_in_a_transaction_that_wrote_before(crawl: Crawl) -> None:
    add_both_kinds(crawl)
    right = crawl.now
    crawl.now += AHEAD
    with crawl.connection.transaction():
        crawl.add("http://a.test/")
        assert crawl.next(ahead=10 * SECOND)
    crawl.now = right + SECOND
    assert len(all_pages_out(crawl, MINUTE)) == 25


def test_what_was_pulled_in_is_said_once(crawl: Crawl) -> None:
    said: list[tuple[str, str]] = []
    crawl.connection.add_notice_handler(
        lambda notice: said.append((notice.message_primary or "", notice.message_hint or ""))
    )
    add_both_kinds(crawl, 3)
    right = crawl.now
    crawl.now += AHEAD
    crawl.next()
    crawl.now = right
    for _ in range(5):
        crawl.wait(SECOND)
        crawl.tick()
    ((warning, hint),) = said
    assert "the clock stood at 2031-02-05" in warning and "pulled in 3 hosts, 1 leases" in warning
    assert "the server's clock is kept right" in hint, "and what to do"


@pytest.mark.parametrize("ahead", [3 * HOUR, 9 * DAY, AHEAD])
@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(4, 12))])
def test_whatever_happens_under_a_clock_that_is_ahead_is_healed(crawl: Crawl, ahead: timedelta, seed: int) -> None:
    chance = random.Random(seed)
    crawl.value("select set_setting('default_gap', '10 s')")
    crawl.value("select set_host('h0.test', one_at_a_time => true)")
    crawl.value("select set_host('h1.test', gap => '2 minutes')")
    crawl.value("select set_setting('budget', '100000')")
    add_both_kinds(crawl)
    everything(crawl, chance, 10)
    right = crawl.now
    crawl.now += ahead
    everything(crawl, chance, 30)
    crawl.now = right + MINUTE
    for _ in range(60):
        crawl.tick()
        crawl.wait(SECOND)
    assert crawl.connection.execute(BROKEN, {"t": crawl.now}).fetchall() == []
    assert misplaced(crawl) == []
    soon = crawl.now + 12 * MINUTE
    assert crawl.rows("select * from host where last_start_by > %s or busy_until > %s", soon, soon) == []
    assert (
        crawl.rows("select * from lease where handed_out_at > %s or lease_until > %s", crawl.now, soon + 8 * DAY) == []
    )
    assert crawl.rows("select * from page where greatest(fetched_at, reported_at) > %s", crawl.now) == []
    late = "select name from host where ready_at > greatest(head_due, blocked_until, %s) + '2 minutes 1 s'"
    assert crawl.rows(late, crawl.now) == []
    plausible = crawl.now + (8 * DAY if ahead > 9 * DAY else 18 * DAY)
    # One that was never fetched and came back from a lease is due in the slot it had, as if somebody had said so.
    far = "select url from page where state = 'live' and successes > 0 and attempts = 0 and due_at > %s"
    assert crawl.rows(far, plausible) == []
    add_both_kinds(crawl, 9)
    assert sum("h8.test" in url for url in all_pages_out(crawl, MINUTE)) == 4, "others go on meanwhile"


def everything(crawl: Crawl, chance: random.Random, rounds: int) -> None:
    out: list[Row] = []
    for _ in range(rounds):
        crawl.wait(chance.choice([SECOND, 10 * SECOND, 3 * MINUTE]))
        ahead, lease = chance.choice([0 * SECOND, MINUTE]), chance.choice([2, 30]) * MINUTE
        out += crawl.next(chance.choice([1, 5, 50]), ahead, lease)
        chance.shuffle(out)
        done, out = out[: len(out) // 2], out[len(out) // 2 :]
        results = [result_of(page, status=chance.choice([200, 200, 304, 0, 404, 429, 503])) for page in done]
        crawl.report(*results)
        if out and chance.random() < 0.2:
            crawl.extend(out[0]["lease_id"], MINUTE)
        if chance.random() < 0.2:
            crawl.value("select fetch_now_at(%s, %s)", crawl.now, [chance.randrange(1, 24)])
        if chance.random() < 0.2:
            crawl.value("select set_host_at(%s, 'h2.test', '5 s', null, null, null)", crawl.now)
        crawl.add(f"http://h3.test/{chance.random()}")
        if chance.random() < 0.5:
            crawl.tick()


# ------------------------------------------------------------------------------------- what is far ahead by right


def test_what_lies_far_ahead_by_right_stays(crawl: Crawl) -> None:
    crawl.value("select set_setting('frequency', '0.003')")
    crawl.value("select set_host('slow.test', gap => '30 days')")
    crawl.value("select set_host('single.test', one_at_a_time => true)")
    crawl.add("http://a.test/", "http://failing.test/", "http://denied.test/", "http://late.test/", "http://slow.test/")
    crawl.add("http://long.test/", "http://single.test/", "http://throttled.test/")
    crawl.add("http://then.test/", due=[crawl.now + 3650 * DAY])
    crawl.value("select set_setting('longest_lease', '7 days')")
    pages = {page["host"]: page for page in crawl.next(lease=7 * DAY)}
    assert len(pages) == 8
    crawl.report(result_of(pages["a.test"]), result_of(pages["failing.test"], status=404))
    crawl.report(result_of(pages["denied.test"], robots_denied=True), result_of(pages["slow.test"]))
    crawl.report(result_of(pages["throttled.test"], status=429, retry_after="86400"))
    crawl.extend(pages["long.test"]["lease_id"], MINUTE)
    crawl.value("select block_host_at(%s, 'late.test', %s, 'holidays')", crawl.now, crawl.now + 900 * DAY)
    crawl.tick()
    tables = [f"select {t}::text from {t} order by 1" for t in ("host", "page", "queue", "lease", "new_page", "pulse")]
    before = [crawl.rows(table) for table in tables]
    crawl.value("select setval('latest_tick', micros(%s))", crawl.now + AHEAD)
    crawl.tick()
    assert crawl.value("select from_micros(last_value) from latest_tick") == crawl.now, "it has looked at everything"
    assert [crawl.rows(table) for table in tables] == before


def test_a_repair_in_small_steps_leaves_out_no_page_and_no_host(crawl: Crawl) -> None:
    crawl.add(*(f"http://h{i}.test/{k}" for k in range(5) for i in range(7)))
    crawl.tick()
    right = crawl.now
    crawl.now += AHEAD
    for _ in range(5):
        crawl.report_ok(crawl.next())
        crawl.wait(SECOND)
    crawl.now = right
    while crawl.value("select pull_in(%s, 1)", crawl.now):  # ten pages and two hosts in each step
        pass
    assert crawl.value("select count(*) from page where fetched_at = %s", crawl.now) == 35
    assert crawl.rows("select name from host where last_start_by > %s", crawl.now + HOUR) == []


def test_what_somebody_holds_is_pulled_in_when_it_is_free(crawl: Crawl, url: str) -> None:
    add_both_kinds(crawl)
    right = crawl.now
    crawl.now += AHEAD
    crawl.next(1)
    (held,) = crawl.rows("select host_id, name from host where last_start_by > %s", right + DAY)
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.host where host_id = %s for update", [held["host_id"]])
        crawl.now = right
        assert len({url.split("/")[2] for url in all_pages_out(crawl, 20 * SECOND)} - {held["name"]}) == 5
    assert held["name"] in {url.split("/")[2] for url in all_pages_out(crawl, 20 * SECOND)}


def test_a_lease_that_somebody_holds_is_pulled_in_when_it_is_free(crawl: Crawl, url: str) -> None:
    add_both_kinds(crawl)
    right = crawl.now
    crawl.now += AHEAD
    (page,) = urls(crawl.next(1))
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.lease for update")
        crawl.now = right
        assert page not in all_pages_out(crawl, 20 * SECOND)
    assert page in all_pages_out(crawl, 20 * SECOND)


def test_a_repair_that_the_time_overtook_is_over(crawl: Crawl, url: str) -> None:
    """Somebody held a row until the wrong time had come. explain_page said for ever that the clock was ahead, and the
    next repair continued this one."""
    said: list[str] = []
    crawl.connection.add_notice_handler(lambda notice: said.append(notice.message_primary or ""))
    add_both_kinds(crawl, 3)
    right = crawl.now
    crawl.now += 3 * MINUTE
    (page, *_) = crawl.next()
    crawl.now = right
    with psycopg.connect(url) as other:
        other.execute("select from recrawl_internal.host for update")
        crawl.tick()
    crawl.wait(4 * MINUTE)
    crawl.tick()
    codes = "select code from explain_page_at(%s, (select url from page where page_id = %s))"
    assert "clock" not in [row["code"] for row in crawl.rows(codes, crawl.now, page["page_id"])]
    assert said == []
    right, wrong = crawl.now, crawl.now + AHEAD
    crawl.now = wrong
    crawl.next()
    crawl.now = right
    for _ in range(5):
        crawl.wait(SECOND)
        crawl.tick()
    (warning,) = said
    assert f"the clock stood at {wrong:%Y-%m-%d}" in warning
    assert misplaced(crawl) == []


def test_a_run_of_a_job_that_died_under_that_clock_does_not_keep_the_job(crawl: Crawl) -> None:
    crawl.value("select start_job('opic', '1 minute')")
    crawl.connection.execute("update job set alive_until = alive_until + interval '400 days'")
    assert crawl.value("select start_job('opic', '1 minute')") == 2


# ------------------------------------------------------------------------------------------------ small steps back


@pytest.mark.parametrize("back", [50 * SECOND, 2 * HOUR, 23 * HOUR])
def test_after_a_step_back_what_is_committed_late_is_still_found(crawl: Crawl, url: str, back: timedelta) -> None:
    crawl.tick()
    crawl.now -= back
    crawl.tick()
    crawl.add("http://a.test/1", "http://b.test/")
    crawl.add("http://a.test/2", "http://c.test/", due=[crawl.now])
    with psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as connection:
        connection.execute("select drain_at(%s, 100)", [crawl.now])
        for _ in range(4):
            crawl.wait(SECOND)
            crawl.tick()
    for _ in range(3):
        crawl.wait(15 * SECOND)  # on a busy machine the next recheck comes later
        crawl.tick()
    assert len(crawl.next()) == 3


@contextmanager
def committed_late(crawl: Crawl, url: str) -> Iterator[Crawl]:
    """A transaction that others do not wait for: they have moved the horizon of the inbox past its entries."""
    with psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as connection:
        late = Crawl(connection)
        late.now = crawl.now
        yield late
        time.sleep(0.6)  # longer than slack()
        crawl.tick()
        crawl.value("select setval('horizon_recheck', micros(%s))", crawl.now + MINUTE)


def recheck(crawl: Crawl) -> None:
    crawl.value("select setval('horizon_recheck', 1)")
    crawl.tick()


@pytest.mark.parametrize("back", [0 * SECOND, HOUR])
def test_a_page_is_where_its_row_says_however_late_the_queue_hears_of_it(
    crawl: Crawl, url: str, back: timedelta
) -> None:
    """Never, a crawler says, and commits after others looked, or by a clock that is set back then. At once, says
    somebody after that.
    """
    crawl.add("http://a.test/1")
    (page,) = crawl.next()
    with committed_late(crawl, url) as late:
        late.report(result_of(page, due="infinity"))
        late.connection.execute("update inbox set at = at + %s", [back])
    crawl.value("select fetch_now_at(%s, %s)", crawl.now, [page["page_id"]])
    crawl.tick()
    recheck(crawl)
    assert misplaced(crawl) == []
    crawl.wait(MINUTE)
    assert urls(crawl.next()) == ["http://a.test/1"]


@pytest.mark.parametrize("status", [200, 404])
def test_an_entry_that_is_committed_late_moves_no_page_that_was_taken_out_since(
    crawl: Crawl, url: str, status: int
) -> None:
    crawl.add("http://a.test/1")
    (page,) = crawl.next()
    with committed_late(crawl, url) as late:
        late.report(result_of(page, status=status))
    crawl.value("select exclude('a.test')")
    crawl.tick()
    recheck(crawl)
    crawl.value("select unexclude_at(%s, 'a.test')", crawl.now)
    assert misplaced(crawl) == []


def test_a_page_that_comes_late_and_was_taken_out_since_gets_one_place(crawl: Crawl, url: str) -> None:
    with committed_late(crawl, url) as late:
        late.add("http://a.test/1")
    crawl.value("select exclude('a.test')")
    crawl.tick()
    crawl.value("select unexclude_at(%s, 'a.test')", crawl.now)
    crawl.tick()
    recheck(crawl)
    assert misplaced(crawl) == []


def test_a_page_that_comes_under_a_clock_ahead_and_was_taken_out_since_gets_one_place(
    crawl: Crawl, connection: psycopg.Connection, url: str
) -> None:
    crawl.add("http://a.test/0")
    crawl.tick()
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.host for update")
        crawl.add("http://a.test/1")
        crawl.tick()  # the host is locked, so the entry stays
    connection.execute("update inbox set at = at + interval '30 seconds'")
    crawl.value("select exclude('a.test/1')")
    crawl.value("select unexclude_at(%s, 'a.test/1')", crawl.now)
    assert misplaced(crawl) == []


def test_rechecks_are_neither_constant_nor_far_apart(crawl: Crawl) -> None:
    crawl.value("select setval('horizon_recheck', micros(%s))", crawl.now + 6 * MINUTE)
    crawl.tick()
    next_recheck: datetime = crawl.value("select from_micros(last_value) from horizon_recheck")
    assert crawl.now + 2 * SECOND <= next_recheck <= crawl.now + 4 * MINUTE


def test_the_worker_heals_in_real_time(url: str, connection: psycopg.Connection) -> None:
    connection.execute("select add_pages('{http://a.test/1,http://a.test/2}')")
    connection.execute("select from next_pages_at(clock_timestamp() + '400 days', 1, '0', '10 minutes', null)")
    with store.connect(url, "recrawl worker") as worker:
        while store.calls.tick(worker):
            pass
    assert connection.execute("select next_ready_at() < clock_timestamp() + '2 s'").fetchone() == (True,)
