"""The cost of the verbs in buffers: it must not grow with the tables, with what is not due, or with a snapshot held
elsewhere, and must not depend on statistics: the tables here are never analysed, unless a test says so."""

import json
from collections.abc import Sequence
from datetime import timedelta
from statistics import median
from typing import LiteralString

import psycopg
import pytest

from bench.data import load_past
from helpers import SECOND, Crawl, Row, result_of
from sql.loads import FIVE_PERCENT, HOT_TABLES, LATER, Connection, Loaded, load, load_new

# Measured on 50,000 pages, and 30 % more.
POP_BUFFERS = {"9 s": 13.9, "0": 31.3}  # a page: ten of a host, one of a host
NEW_PAGE_BUFFERS = 44.0  # a page, one of a host: it leaves its line and enters the queue
REPORT_BUFFERS = {"9 s": 9.8, "0": 14.4}  # 18 looks up many keys in one descent: 7.3 and 8.2, on 15 7.5 and 11.1
IDLE_BUFFERS = 19  # a call that finds nothing

TEN_A_HOST, ONE_A_HOST = POP_BUFFERS
RANKS: list[LiteralString] = ["-1", "-(page_id % 1000)::real / 1000"]
SHAPES = pytest.mark.parametrize("ahead", [TEN_A_HOST, ONE_A_HOST])


def cost(connection: Connection, query: LiteralString, *arguments: object) -> tuple[int, int]:
    """Buffers that a call touches, including the functions that it calls, and the number of its rows."""
    cursor = connection.execute(f"explain (analyze, buffers, timing off, format json) {query}", arguments)
    plan = cursor.fetchall()[0][0][0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], int(plan["Actual Rows"])


def least_per_page(calls: Sequence[tuple[int, int]], pages: int = 100) -> float:
    """Buffers a page. The least: tables made elsewhere on the server can make a session read its catalogue again."""
    assert {rows for _, rows in calls} == {pages}
    return min(buffers for buffers, _ in calls) / pages


def least_cost(connection: Connection, query: LiteralString) -> int:
    """Buffers of a call that can be repeated. The first call makes plans. For the rest, see least_per_page."""
    return min(cost(connection, query)[0] for _ in range(4))


def pop_cost(connection: Connection, ahead: str, calls: int = 5) -> float:
    """Buffers per page handed out, when the session has made its plans."""
    query: LiteralString = "select * from recrawl.next_pages(100, ahead => %s)"
    return least_per_page([cost(connection, query, ahead) for _ in range(calls + 2)][2:])


def report_cost(connection: Connection, ahead: str, pages: int = 100, calls: int = 5) -> float:
    """Buffers per page reported."""
    query: LiteralString = "select * from recrawl.report(%s)"
    leased = [json.dumps(fetched(pop(connection, ahead, pages))) for _ in range(calls)]
    return least_per_page([cost(connection, query, results) for results in leased], pages)


def pop(connection: Connection, ahead: str = TEN_A_HOST, n: int = 100) -> list[Row]:
    query = "select page_id, lease_id from recrawl.next_pages(%s, ahead => %s)"
    return [{"page_id": page, "lease_id": lease} for page, lease in connection.execute(query, [n, ahead])]


def fetched(pages: Sequence[Row]) -> list[Row]:
    return [page | {"status": 200, "content_hash": "new", "etag": "new"} for page in pages]


def report(connection: Connection, pages: Sequence[Row], **more: object) -> None:
    results = [page | more for page in fetched(pages)]
    codes = connection.execute("select code from recrawl.report(%s)", [json.dumps(results)]).fetchall()
    assert {code for (code,) in codes} == {"ok"}


def counts(connection: Connection, column: LiteralString) -> dict[str, int]:
    connection.execute("select pg_stat_force_next_flush()")
    connection.execute("select pg_stat_clear_snapshot()")
    query = f"select relname, {column} from pg_stat_user_tables where schemaname = 'recrawl_internal'"
    return {name: count for name, count in connection.execute(query) if name in HOT_TABLES}


# ------------------------------------------------------------------------------------------------------------ buffers


@pytest.mark.parametrize("analysed", [False, True])
@SHAPES
def test_a_page_costs_a_pop_few_buffers(loaded: Loaded, ahead: str, analysed: bool) -> None:
    connection = loaded()
    if analysed:
        connection.execute("analyze")
    assert pop_cost(connection, ahead) <= POP_BUFFERS[ahead]


@pytest.mark.parametrize("rank", RANKS)
@pytest.mark.parametrize("analysed", [False, True])
def test_so_does_a_new_page(loaded: Loaded, analysed: bool, rank: LiteralString) -> None:
    connection = loaded(load_new, rank=rank)
    if analysed:
        connection.execute("analyze")
    assert pop_cost(connection, ONE_A_HOST) <= NEW_PAGE_BUFFERS


@pytest.mark.parametrize("analysed", [False, True])
@SHAPES
def test_a_page_costs_a_report_few_buffers(loaded: Loaded, ahead: str, analysed: bool) -> None:
    connection = loaded()
    if analysed:
        connection.execute("analyze")
    report(connection, pop(connection, ahead))
    assert report_cost(connection, ahead) <= REPORT_BUFFERS[ahead]


def test_a_page_of_a_large_lease_costs_a_report_no_more(loaded: Loaded) -> None:
    """Its row is compressed and stored elsewhere; nobody unpacks that once a page."""
    connection = loaded()
    report(connection, pop(connection))
    assert report_cost(connection, TEN_A_HOST, 2000, calls=3) <= REPORT_BUFFERS[TEN_A_HOST]


def test_a_page_of_a_large_lease_is_given_back_at_the_cost_of_one(loaded: Loaded) -> None:
    """138 buffers, for a lease of any size. While other sessions of the server write, PostgreSQL keeps old rows
    for longer: then each call takes 6 buffers more than the last one."""
    connection = loaded()
    pages = pop(connection, TEN_A_HOST, 2000)
    give_back: LiteralString = "select recrawl.release(%s, %s::bigint[])"
    calls = [cost(connection, give_back, page["lease_id"], [page["page_id"]]) for page in pages[:5]]
    assert least_per_page(calls[2:], 1) <= 200


def test_pages_that_are_due_at_once_are_found_one_by_one(connection: Connection) -> None:
    """Looking a page up among all of its host that share its due time would read them all."""
    urls = [f"http://a.test/{i}" for i in range(5000)]
    for due in (None, ["now"]):
        connection.execute("select recrawl.add_pages(%s, due => %s::timestamptz[])", [urls, due])
        if due is None:
            connection.execute("select recrawl.fetch_now(array(select page_id from page))")
        connection.execute("select tick(200, 100000)")
        connection.execute("select tick(200, 100000)")
        assert connection.execute("select count(distinct due_at) from queue").fetchone() == (len(urls),)
        urls = [url + "?more" for url in urls]
        connection.execute("select recrawl.keep_out(array(select page_id from page))")
        connection.execute("select tick(200, 100000)")


@SHAPES
def test_a_pop_does_not_feel_ten_times_the_pages(connection: Connection, ahead: str, url: str) -> None:
    load(connection, 20_000, 500)
    few = pop_cost(connection, ahead, 3)
    connection.execute(
        "truncate recrawl_internal.page, recrawl_internal.queue, recrawl_internal.host, recrawl_internal.host_name"
    )
    load(connection, 200_000, 5_000)
    assert pop_cost(connection, ahead, 3) <= 1.3 * few


def test_a_pop_does_not_feel_what_is_not_due(connection: Connection) -> None:
    """Five pages in a hundred are due, on 1,400 hosts. That is enough for seven calls. The last five are measured."""
    load(connection, hosts=2_000, due=FIVE_PERCENT)
    few_due = pop_cost(connection, ONE_A_HOST)
    connection.execute("update queue set due_at = due_at - interval '1 day'")
    connection.execute("update host set head_due = '-infinity', ready_at = now() - interval '1 second'")
    connection.execute("vacuum full queue, host")
    all_due = pop_cost(connection, ONE_A_HOST)
    assert few_due <= 1.5 * all_due


@pytest.mark.parametrize("pages", [0, 50_000])
def test_nothing_ready_costs_next_to_nothing(loaded: Loaded, pages: int) -> None:
    connection = loaded(pages=pages, due=LATER)
    calls = [cost(connection, "select * from recrawl.next_pages()") for _ in range(7)]
    assert {rows for _, rows in calls} == {0}
    assert median(buffers for buffers, _ in calls[2:]) <= IDLE_BUFFERS


@pytest.mark.parametrize("kind", ["revisits", "new pages"])
@SHAPES
def test_a_pop_does_not_feel_a_snapshot_held_elsewhere(loaded: Loaded, ahead: str, kind: str) -> None:
    """At times of its own: the horizons keep two seconds behind."""
    connection = loaded(load_new, rank=RANKS[1]) if kind == "new pages" else loaded()
    now = connection.execute("select clock_timestamp()").fetchall()[0][0]
    query: LiteralString = "select * from next_pages_at(%s, 100, %s, '10 minutes', null)"

    def popped_per_second(seconds: int) -> float:
        nonlocal now
        buffers = pages = 0
        for _ in range(seconds):
            now += timedelta(seconds=1)
            connection.execute("select tick_at(%s, 200, 2000)", [now])
            more_buffers, more_pages = cost(connection, query, now, ahead)
            buffers, pages = buffers + more_buffers, pages + more_pages
        assert pages == 100 * seconds
        return buffers / pages

    popped_per_second(3)
    before = popped_per_second(5)
    with psycopg.connect(connection.info.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from recrawl_internal.host")
        popped_per_second(200)
        assert popped_per_second(5) <= 1.5 * before


@pytest.mark.parametrize("analysed", [False, True])
def test_a_report_does_not_feel_a_snapshot_held_elsewhere(loaded: Loaded, analysed: bool) -> None:
    connection = loaded()
    connection.execute("select recrawl.set_setting('default_gap', '1 millisecond')")

    report_cost(connection, "0.009 s", calls=1)
    before = report_cost(connection, "0.009 s")
    with psycopg.connect(connection.info.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from recrawl_internal.host")
        for _ in range(100):
            report(connection, pop(connection, "0.009 s"))
        if analysed:
            connection.execute("analyze")
        # Not 1: the snapshot keeps old versions of rows, and some new versions no longer fit into the same block.
        assert report_cost(connection, "0.009 s") <= 1.75 * before


def test_a_report_and_upkeep_do_not_feel_the_visits_of_a_host_under_a_snapshot_held_elsewhere(crawl: Crawl) -> None:
    crawl.value("select set_setting('default_gap', '1 s')")
    crawl.add(*(f"http://h{n % 20}.test/{n}" for n in range(800)))
    crawl.tick()

    def visited() -> tuple[int, int]:
        """Buffers of upkeep and of a report, when each host has given one more page."""
        crawl.wait(2 * SECOND)
        upkeep, _ = cost(crawl.connection, "select tick_at(%s, 200, 2000)", crawl.now)
        due = str(crawl.now + SECOND)
        results = [result_of(page, status=200, due=due) for page in crawl.next(20)]
        report, reported = cost(crawl.connection, "select * from report_at(%s, %s)", crawl.now, json.dumps(results))
        assert reported == 20
        return upkeep, report

    before = [visited() for _ in range(10)][-1]
    with psycopg.connect(crawl.connection.info.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from recrawl_internal.host")
        after = [visited() for _ in range(200)][-1]
    # Not 1: versions of pages and of entries of the inbox stay, too.
    assert after[0] <= 4 * before[0] and after[1] <= 4 * before[1]


def test_a_limit_of_pages_does_not_feel_drained_entries_that_a_snapshot_keeps(loaded: Loaded) -> None:
    connection = loaded()
    connection.execute("select recrawl.set_setting('max_pages_per_host', '1000000')")

    def cost_of_a_new_url(name: str) -> int:
        buffers, _ = cost(connection, "select * from recrawl.add_pages(%s)", [f"https://host1.test/new/{name}"])
        return buffers

    cost_of_a_new_url("0")
    before = cost_of_a_new_url("1")
    with psycopg.connect(connection.info.dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select count(*) from recrawl_internal.inbox")
        connection.execute(
            "insert into inbox (host_id, page_id, old_due) select 1, n, now() from generate_series(1, 30000) n"
        )
        connection.execute("delete from inbox")
        connection.execute("select setval('inbox_horizon', micros(clock_timestamp()))")
        assert cost_of_a_new_url("2") <= 1.5 * before


# -------------------------------------------------------------------------------------------------------------- plans


@pytest.mark.parametrize("analysed", [False, True])
def test_no_verb_reads_a_whole_table(loaded: Loaded, analysed: bool) -> None:
    connection = loaded()
    new = [f"https://host{n % 1200}.test/new/{n}" for n in range(500)]
    connection.execute("select count(*) from recrawl.add_pages(%s)", [new])  # so that no table is empty
    connection.execute("select tick(200, 100)")
    if analysed:
        connection.execute("analyze")
    before = counts(connection, "seq_scan")

    def assert_indexes_were_used(verb: str) -> None:
        after = counts(connection, "seq_scan")
        assert {table: after[table] - before[table] for table in HOT_TABLES} == dict.fromkeys(HOT_TABLES, 0), verb

    pages = [page for ahead in POP_BUFFERS for _ in range(3) for page in pop(connection, ahead)]
    assert len(pages) == 600
    assert_indexes_were_used("next_pages")
    report(connection, pages[:100])
    assert_indexes_were_used("report")
    report(connection, pages[100:200], links=[*new[:10], "https://host1.test/unknown", "https://unknown.test/"])
    assert_indexes_were_used("report with links")
    report(connection, pages[200:210], status=500)
    report(connection, pages[210:220], status=429)
    report(connection, pages[220:230], status=410)
    report(connection, pages[230:240], status=301, redirect_to="https://host1.test/")
    assert_indexes_were_used("report of failures")
    columns = [[page[name] for page in pages[240:300]] for name in ("page_id", "lease_id")]
    connection.execute("select count(*) from recrawl.report_pages(%s, %s, %s)", [*columns, [200] * 60])
    assert_indexes_were_used("report_pages")
    connection.execute("select count(*) from recrawl.add_pages(%s)", [[url + "?more" for url in new] + new])
    assert_indexes_were_used("add_pages")
    connection.execute("select tick(200, 2000)")
    assert_indexes_were_used("tick")
    connection.execute("select recrawl.next_ready_at()")
    assert_indexes_were_used("next_ready_at")
    connection.execute("select recrawl.extend_lease(%s, '1 minute')", [pages[300]["lease_id"]])
    assert_indexes_were_used("extend_lease")
    connection.execute("select recrawl.release(%s)", [pages[300]["lease_id"]])
    assert_indexes_were_used("release")
    connection.execute("select tick_at(now() + interval '1 hour', 200, 2000)")
    assert_indexes_were_used("tick, where leases have run out")


def test_a_drain_planned_while_the_queue_was_empty_reads_none_of_it_later(connection: Connection) -> None:
    connection.execute("vacuum (analyze)")  # the planner now knows for sure that there is nothing

    def drain(batch: int, pages: int) -> None:
        connection.execute("select recrawl.add_pages(%s)", [[f"https://host{n}.test/{batch}" for n in range(pages)]])
        while connection.execute("select tick(200, 1000)").fetchall() != [(0,)]:
            pass

    drain(0, 3)
    drain(1, 1000)
    before = counts(connection, "idx_tup_fetch")
    drain(2, 1000)
    after = counts(connection, "idx_tup_fetch")
    assert {table: after[table] - before[table] for table in ("new_page", "queue")} == {"new_page": 0, "queue": 0}


@pytest.mark.parametrize("verb", ["unexclude", "delete"])
def test_a_pop_drains_so_much_however_much_there_is(connection: Connection, verb: str) -> None:
    """Where it finds less than it wants. All is of one host, which is in its gap."""
    connection.execute("select recrawl.add_pages(%s, due => '{now}')", [[f"http://a.test/{n}" for n in range(20_000)]])
    while connection.execute("select tick(200, 10000)").fetchall() != [(0,)]:
        pass
    connection.execute("select recrawl.set_host('a.test', gap => '1 hour')")
    assert len(pop(connection, "0", 1)) == 1
    if verb == "unexclude":
        connection.execute("select recrawl.exclude('a.test')")
        connection.execute("select recrawl.unexclude('a.test')")
    else:
        connection.execute("select recrawl.delete_pages(array(select page_id from page))")

    def waiting() -> int:
        return int(connection.execute("select count(*) from inbox").fetchall()[0][0])

    before = waiting()
    assert before >= 20_000
    connection.execute("select setval('next_tick', micros(clock_timestamp() + interval '30 seconds'))")
    assert pop(connection, "0", 10) == []
    assert 0 < before - waiting() <= 10_200
    while (left := waiting()) > 0:  # pops alone see to all of it
        pop(connection, "0", 100)
        assert waiting() < left


@SHAPES
def test_a_report_updates_its_page_in_place(loaded: Loaded, ahead: str) -> None:
    connection = loaded()
    before, before_hot = counts(connection, "n_tup_upd")["page"], counts(connection, "n_tup_hot_upd")["page"]
    for _ in range(5):
        report(connection, pop(connection, ahead))
    updated = counts(connection, "n_tup_upd")["page"] - before
    assert updated == 500
    assert counts(connection, "n_tup_hot_upd")["page"] - before_hot == updated


@SHAPES
def test_a_report_reads_no_row_of_hosts_that_were_never_blocked(loaded: Loaded, ahead: str) -> None:
    connection = loaded()
    pages = pop(connection, ahead)
    before = counts(connection, "idx_tup_fetch")["host"]
    report(connection, pages)
    assert counts(connection, "idx_tup_fetch")["host"] == before


# ---------------------------------------------------------------------------------------------- what people look at


def test_no_view_about_the_crawl_or_a_host_reads_all_of_many_hosts(loaded: Loaded) -> None:
    connection = loaded(pages=70_000, hosts=70_000)
    connection.execute("analyze host, host_name")
    connection.execute("select look_at_hosts(now()), take_counts(now())")
    hosts = connection.execute("select pg_relation_size('host') / 8192").fetchone()
    assert hosts and hosts[0] > 2000
    views: dict[LiteralString, int] = {
        "select * from recrawl.checkup": 1000,
        "select * from recrawl.queue_status": 2000,
        "select * from recrawl.crawl_status": 1500,
        "select * from recrawl.late_hosts": 1000,
        "select * from recrawl.host_status where host = 'host77.test'": 50,
    }
    for query, most in views.items():
        assert least_cost(connection, query) <= most, query


def test_what_is_known_of_many_hosts_is_what_a_worker_saw_and_a_sample(loaded: Loaded) -> None:
    connection = loaded(pages=70_000, hosts=70_000, due=LATER)
    connection.execute("update page set host_id = 3 where page_id % 5 < 3")
    connection.execute("update host set pages = 42000 where host_id = 3")
    connection.execute("update host set blocked_until = 'infinity', pages = host_id where host_id between 10 and 19")
    query = "select pages, most_pages, largest_host, blocked_hosts, largest_blocked[1] from recrawl.checkup"
    assert connection.execute(query).fetchone() == (None, 42000, "host3.test", 0, None)
    connection.execute("update host set head_due = now() - interval '1 day' where host_id between 10 and 14")
    connection.execute("update queue set due_at = now() - interval '1 day' where host_id between 10 and 14")
    connection.execute("select look_at_hosts(now())")
    pages = 42000 - 1 + 70000 + sum(range(10, 20)) - 10
    assert connection.execute(query).fetchone() == (pages, 42000, "host3.test", 10, "host14.test")


ONE: dict[LiteralString, int] = {
    "select next_ready_at()": 50,
    "select * from coming(now(), 10)": 200,
    "select put_capped_hosts(1, '1 minute', '{5}', '{1}', '{1}', '{1}', '{1}')": 50,
    "select hint_change(array(select generate_series(1000, 1099)))": 4000,
    "select * from explain_page(1000)": 300,
    "select set_rate(1000, 2)": 100,
    "select set_value(1000, 2)": 100,
    "select set_host('host77.test', gap => '2 seconds')": 100,
    "select fetch_now('{1000}')": 100,
    "select extend_lease(1, '1 hour')": 100,
    "select block_host('host78.test')": 100,
    "select * from recrawl.page_status where page_id = 1000": 50,
}


@pytest.mark.parametrize("analysed", [False, True])
def test_what_is_asked_of_a_few_pages_or_a_host_does_not_read_all(loaded: Loaded, analysed: bool) -> None:
    connection = loaded(pages=50_000, due=LATER)
    connection.execute("update host set ready_at = now() where host_id = 9")
    connection.execute("select start_job('allocate', '1 minute')")
    if analysed:
        connection.execute("analyze")
    for query, most in ONE.items():
        assert least_cost(connection, query) <= most, query


def test_what_a_job_asks_of_years_of_runs_reads_them_once_or_twice(connection: Connection) -> None:
    load_past(connection)
    (blocks,) = connection.execute("select pg_relation_size('allocation') / 8192").fetchone() or (0,)
    assert blocks > 100
    queries: tuple[LiteralString, ...] = (
        "select policy_days(now())", "select * from fetches_of_last_day(now())",
        "select * from new_pages_to_allocate(now())", "select * from due_jobs()",
    )  # fmt: skip
    for query in queries:
        assert least_cost(connection, query) <= 3 * blocks + 500, query


def test_the_prices_of_many_hosts_are_written_without_comparing_each_host_with_all(connection: Connection) -> None:
    """As with 600,000 hosts and the default work_mem: a list of the hosts does not fit into it."""
    hosts = 60_000
    run = dict.fromkeys(
        ["seconds", "budget", "for_revisits", "price", "pages", "hosts", "capped_hosts", "utility", "limit_with_gaps",
         "limit_without_gaps", "residual", "spread", "duality_gap", "for_new", "newest_page"], 0,
    ) | {"token": 1, "policy": "opt_polite", "objective": "freshness", "priced_by": "freshness"}  # fmt: skip
    connection.execute("select recrawl_internal.start_job('allocate', '1 hour')")
    put: LiteralString = (
        "select recrawl_internal.put_prices(1, '1 hour', %s, array(select generate_series(1::bigint, %s)), "
        "%s::float8[], %s::float8[], %s::float8[], %s::boolean[], %s::float8[], %s::float8[])"
    )
    some, none = [0.1] * hosts, ["NaN"] * hosts
    arguments = [json.dumps(run), hosts, some, none, none, [False] * hosts, some, none]
    connection.execute("set work_mem = '64kB'")
    connection.execute("set statement_timeout = '1min'")
    connection.execute(put, arguments)
    priced = "select count(*) from recrawl_internal.host_terms where is_capped is not null"
    assert connection.execute(priced).fetchone() == (hosts,)


def test_a_crawler_calls_no_function_that_is_planned_at_each_call(crawl: Crawl) -> None:
    """Before PostgreSQL 18 this is so for functions in SQL that are not inlined. One of them made a pop 4 % dearer."""
    crawl.add("http://a.test/", "http://b.test/", "http://c.test/")
    crawl.connection.execute("set track_functions = 'all'")
    first, second, _ = crawl.next(ahead=SECOND)
    crawl.wait(SECOND)
    crawl.report_ok([first], fetched_at=str(crawl.now))  # a late request, so the next slot of its host moves
    crawl.rows(
        "select * from report_pages_at(%s, %s, %s, '{200}', null, null, null, null, null)",
        crawl.now, [second["page_id"]], [second["lease_id"]],
    )  # fmt: skip
    assert crawl.release(first["lease_id"]) == 1
    crawl.rows("select pg_stat_force_next_flush()")
    called = crawl.rows("""
        select p.proname as name, l.lanname = 'sql' and p.prosqlbody is null as is_planned_each_time
        from pg_stat_user_functions f join pg_proc p on p.oid = f.funcid join pg_language l on l.oid = p.prolang
    """)
    assert {"hand_out", "record_pages", "renew_ready_at"} <= {f["name"] for f in called}
    assert [f["name"] for f in called if f["is_planned_each_time"]] == []
