"""The graph that the job opic reads, and the results that it brings into force."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import Crawl, Row, codes, run_job
from recrawl import store
from recrawl.jobs.opic import read
from recrawl.model.graph import opic

TOY = {1: [2], 2: [4], 3: [1, 2, 4], 4: []}


def url_of(page: int) -> str:
    return f"http://h{page}.test/"


def report_links(crawl: Crawl, links: dict[int, list[int]], **more: object) -> None:
    results = [
        {"url": url_of(page), "status": 200, "links": [url_of(t) for t in targets]} | more
        for page, targets in links.items()
    ]
    assert codes(crawl.report(*results)) == ["ok"] * len(results)


def crawled(crawl: Crawl, links: dict[int, list[int]]) -> None:
    crawl.add(*(url_of(page) for page in links))
    report_links(crawl, links)


def scores(crawl: Crawl, column: str) -> dict[str, float]:
    rows = crawl.rows(f"select url, {column} as score from page_status where state in ('live', 'new') order by page_id")
    return {row["url"]: row["score"] for row in rows}


def last_run(crawl: Crawl) -> Row:
    return crawl.row("select * from opic_run order by started_at desc limit 1")


def test_the_toy_graph_gets_its_known_scores(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    said = run_job("opic", url)
    for column, ninths in (("hub", (2, 2, 4, 1)), ("authority", (2, 3, 1, 3)), ("value", (2, 3, 1, 3))):
        found = scores(crawl, column)
        for page, ninth in zip(TOY, ninths, strict=True):
            assert found[url_of(page)] == pytest.approx(4 * ninth / 9, rel=2e-3)
    run = last_run(crawl)
    assert 0 < run["seconds"] <= crawl.value("select seconds from job_run") + 1, "the computation is a part of the run"
    assert {k: run[k] for k in ("pages", "links", "converged", "cash", "moved")} == {
        "pages": 4, "links": 5, "converged": True, "cash": 5, "moved": 4,
    }  # fmt: skip
    assert run["residual"] <= run["error"] <= 1e-3 and run["sweeps"] > 0 and "4 pages, 5 links" in said
    degrees = crawl.rows("select out_links, in_links from graph_node order by page_id")
    assert [(row["out_links"], row["in_links"]) for row in degrees] == [(1, 1), (1, 2), (3, 0), (0, 2)]
    assert [row["url"] for row in crawl.rows("select * from top_hubs(2)")] == [url_of(3), url_of(1)]
    assert {row["url"] for row in crawl.rows("select * from top_authorities(2)")} == {url_of(2), url_of(4)}


def test_relevance_directs_cash(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    for page, relevance in zip(TOY, (1, 0.8, None, 0.25), strict=True):
        crawl.value("select set_relevance((select page_id from page where url = %s), %s)", url_of(page), relevance)
    run_job("opic", url)
    assert list(scores(crawl, "hub").values()) == pytest.approx(
        [4 * s for s in (0.24543, 0.16159, 0.48476, 0.10823)], rel=2e-3
    )
    assert list(scores(crawl, "authority").values()) == pytest.approx(
        [4 * s for s in (0.22509, 0.37362, 0.07841, 0.32288)], rel=2e-3
    )


def test_a_crawl_without_pages_and_one_without_links_have_scores_too(crawl: Crawl, url: str) -> None:
    assert "0 pages, 0 links" in run_job("opic", url)
    crawl.add(*(url_of(page) for page in range(3)))
    run_job("opic", url)
    assert list(scores(crawl, "authority").values()) == pytest.approx([1, 1, 1])


def test_values_are_what_the_weights_say_and_one_on_average(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    report_links(crawl, {2: [4]}, relevance=1)
    for name, weight in (("authority", 1), ("hub", 2), ("importance", 3), ("relevance", 4)):
        crawl.value("select set_setting(%s, %s)", f"{name}_weight", str(weight))
    run_job("opic", url)
    rows = crawl.rows("select * from page_status order by page_id")
    mean = (0.5 + 1 + 0.5 + 0.5) / 4
    for row in rows:
        relevance = 0.5 if row["relevance"] is None else row["relevance"]
        wanted = (row["authority"] + 2 * row["hub"] + 3 * row["importance"] + 4 * relevance / mean) / 10
        assert row["value"] == pytest.approx(wanted, rel=1e-5)
    assert np.mean([row["value"] for row in rows]) == pytest.approx(1, rel=1e-3)
    assert [row["importance"] / 4 for row in rows] == pytest.approx([0.19802, 0.29703, 0.15842, 0.34653], rel=2e-3)

    for name in ("authority", "hub", "importance", "relevance"):
        crawl.value("select set_setting(%s, '0')", f"{name}_weight")
    before = scores(crawl, "value")
    report_links(crawl, {4: [1, 2, 3]})
    run_job("opic", url)
    assert scores(crawl, "value") == before, "no weights, no new values"
    assert set(scores(crawl, "importance").values()) == {None}


def test_a_pinned_value_stays_until_it_is_unpinned(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    crawl.value("select set_value(3, 20)")
    run_job("opic", url)
    assert crawl.page(url_of(3))["value"] == 20 and crawl.page(url_of(3))["authority"] == pytest.approx(4 / 9, rel=2e-3)
    crawl.value("select set_value(3, null)")
    assert crawl.page(url_of(3))["value"] == crawl.page(url_of(3))["authority"]


def test_the_queue_of_new_pages_follows_their_values(crawl: Crawl, url: str) -> None:
    same_host = [f"http://new.test/{n}" for n in range(5)]
    crawl.add(*same_host, *(url_of(n) for n in range(10)))
    results = [
        {"url": url_of(n), "status": 200, "links": [same_host[3]] + ([same_host[1]] if n < 4 else [])}
        for n in range(10)
    ]
    crawl.report(*results)
    crawl.tick()
    run_job("opic", url)
    crawl.tick()
    waiting = crawl.rows("select page_id, -rank as value from new_page where page_id <= 5 order by rank, page_id")
    assert [row["page_id"] for row in waiting] == [4, 2, 1, 3, 5]
    for row in waiting:
        assert row["value"] == crawl.value("select value from page where page_id = %s", row["page_id"])
    order = []
    for _ in same_host:
        order += [page["url"] for page in crawl.next() if page["host"] == "new.test"]
        crawl.wait(crawl.value("select interval '1 second'"))
    assert order[:2] == [same_host[3], same_host[1]]


@pytest.mark.parametrize("relevance_weight", [0, 3])
def test_pages_found_later_start_like_those_that_wait_already(crawl: Crawl, url: str, relevance_weight: int) -> None:
    """With a weight, the first value came from a mean relevance of .5, and all other values from the real one."""
    linked = {1: [*range(100, 120)], 2: [1, *range(120, 140)], 3: [1, 2, *range(140, 160)]}
    crawled(crawl, linked)
    crawl.value("select set_relevance(page_id, case when state = 'new' then 0.2 else 0.6 end) from page_status")
    crawl.value("select set_setting('relevance_weight', %s)", str(relevance_weight))
    run_job("opic", url)
    waiting = crawl.value("select avg(value) from page_status where state = 'new'")
    of_sources = crawl.value("select avg(value) from page_status where state <> 'new'")
    source = crawl.page(url_of(3))["value"]
    report_links(crawl, {3: [1, 2, *range(140, 161)]})
    assert crawl.page(url_of(160))["value"] == pytest.approx(source * min(1, waiting / of_sources), rel=1e-3)


# ------------------------------------------------------------------------------------------------ run after run


PAGE = st.integers(0, 11)
EDITS = st.one_of(
    st.tuples(st.just("report"), PAGE, st.lists(PAGE, max_size=5)),
    st.tuples(st.just("add"), PAGE, st.none()),
    st.tuples(st.just("keep_out"), PAGE, st.none()),
    st.tuples(st.just("exclude"), PAGE, st.none()),
    st.tuples(st.just("unexclude"), PAGE, st.none()),
    st.tuples(st.just("relevance"), PAGE, st.sampled_from([0.0, 0.3, 1.0, None])),
    st.tuples(st.just("move"), PAGE, PAGE),
    st.tuples(st.just("run"), st.none(), st.none()),
)


def edit(crawl: Crawl, kind: str, page: int, more: object) -> None:
    (ids,) = crawl.rows("select array_agg(page_id) as ids from page where url = %s", url_of(page))
    match kind:
        case "report":
            assert isinstance(more, list)
            crawl.report({"url": url_of(page), "status": 200, "links": [url_of(t) for t in more]})
        case "move":
            crawl.report({"url": url_of(page), "status": 301, "redirect_to": url_of(int(str(more)))})
        case "add":
            crawl.add(url_of(page))
        case "keep_out":
            crawl.value("select keep_out(%s::bigint[])", ids["ids"] or [])
        case "exclude":
            crawl.value("select exclude(%s)", f"h{page}.test/")
        case "unexclude":
            if crawl.value("select true from exclusion where pattern = %s", f"h{page}.test/"):
                crawl.value("select unexclude(%s)", f"h{page}.test/")
        case "relevance":
            if ids["ids"]:
                crawl.value("select set_relevance(%s, %s)", ids["ids"][0], more)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(EDITS, min_size=5, max_size=30))
def test_after_any_edits_a_run_reads_the_graph_of_the_views_and_its_scores_are_right(
    crawl: Crawl, url: str, edits: list[tuple[str, int, object]]
) -> None:
    crawl.connection.execute("truncate page, link, page_score, exclusion, inbox, queue, new_page, job, opic")
    for kind, page, more in [*edits, ("run", 0, None)]:
        if kind == "run":
            run_job("opic", url)
        else:
            edit(crawl, kind, page, more)
    known = read(url)
    of, pages = known.graph, known.graph.pages
    assert of.page_ids.tolist() == [row["page_id"] for row in crawl.rows("select page_id from graph_node order by 1")]
    sources = of.page_ids[np.repeat(np.arange(pages), np.diff(of.out_starts))].tolist()
    links = crawl.rows("select source_id, target_id from graph_link order by 1, 2")
    assert list(zip(sources, of.page_ids[of.out].tolist(), strict=True)) == [tuple(link.values()) for link in links]
    assert last_run(crawl)["cash"] == pytest.approx(pages + 1, rel=1e-6)
    exact = opic.run(of, known.relevance, error=1e-5)
    for name, score in (("hub", exact.hub), ("authority", exact.authority)):
        off = np.abs(known.scores[name] - score * pages).mean() if pages else 0.0
        assert off < 0.02, "scores are written when they moved by a hundredth"
    assert known.value == pytest.approx(known.scores["authority"], rel=0.01)


def test_after_a_small_change_little_is_written_and_without_one_nothing(crawl: Crawl, url: str) -> None:
    rng = np.random.default_rng(1)
    crawled(crawl, {page: rng.choice(400, 5, replace=False).tolist() for page in range(400)})
    crawl.value("select set_setting('relevance_weight', '1')")
    crawl.value("select boost('h5.test', 3)")
    crawl.value("select set_value(7, 20)")
    run_job("opic", url)
    written = "select count(*) from page_score where xmin::text::bigint > %s"
    last = crawl.value("select max(xmin::text::bigint) from page_score")
    report_links(crawl, {7: [1, 2], 8: [9, 3000]})
    run_job("opic", url)
    run = last_run(crawl)
    assert run["pages"] == 401
    assert 0 < crawl.value(written, last) == run["moved"] < 60
    run_job("opic", url)
    assert last_run(crawl)["moved"] == 0


def test_a_run_after_one_that_failed_halfway_puts_everything_right(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    crawled(crawl, TOY)
    run_job("opic", url)
    report_links(crawl, {4: [1, 2]})
    with monkeypatch.context() as broken:
        broken.setattr(store.runs.Run, "put_in_chunks", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_job("opic", url)
    run_job("opic", url)
    exact = opic.run(read(url).graph, None, error=1e-5)
    assert list(scores(crawl, "authority").values()) == pytest.approx((4 * exact.authority).tolist(), rel=0.02)
    assert [row["ok"] for row in crawl.rows("select ok from job_run order by started_at")] == [True, False, True]


def test_scores_that_a_failover_lost_are_written_by_the_next_run(crawl: Crawl, url: str) -> None:
    """A standby has what its primary wrote first: here all but the last writes of a run."""
    crawled(crawl, TOY)
    run_job("opic", url)
    crawl.connection.execute("create table before as table page_score")
    report_links(crawl, {4: [1, 2]})
    run_job("opic", url)
    expected = scores(crawl, "authority")
    crawl.connection.execute("delete from opic where token = (select max(token) from opic)")
    crawl.connection.execute("truncate page_score; insert into page_score table before")
    assert scores(crawl, "authority") != expected
    run_job("opic", url)
    assert scores(crawl, "authority") == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("parents", [20_000, pytest.param(200_000, marks=pytest.mark.soak)])
def test_a_page_with_very_many_parents_is_read(crawl: Crawl, url: str, parents: int) -> None:
    crawled(crawl, TOY)
    crawl.connection.execute(
        """
        with parent as (
            insert into page (page_id, key, host_id, url)
            select 1000 + n, gen_random_uuid(), 1, 'http://h1.test/' || 1000 + n from generate_series(1, %s) n
            returning page_id
        )
        insert into link (page_id, targets) select page_id, int8send(4) from parent
        """,
        [parents],
    )
    run_job("opic", url)
    (best,) = crawl.rows("select * from top_authorities(1)")
    assert best["url"] == url_of(4) and best["authority"] > parents / 20
    assert crawl.value("select in_links from graph_node where page_id = 4") == parents + 2
    assert crawl.value("select count(*) from predecessors(4)") == parents + 2


def test_values_follow_the_mean_relevance(crawl: Crawl, url: str) -> None:
    crawl.add(*(url_of(page) for page in range(20)))
    crawl.value("select set_setting('relevance_weight', '1')")
    crawl.value("select set_setting('authority_weight', '0')")
    run_job("opic", url)
    crawl.value("select count(set_relevance(page_id, 0.05)) from page where page_id > 1")
    run_job("opic", url)
    assert crawl.page(url_of(0))["value"] == pytest.approx(0.5 / ((0.5 + 19 * 0.05) / 20), rel=1e-4)
    assert crawl.value("select avg(value) from page_status") == pytest.approx(1, rel=1e-3)
    crawl.value("select count(set_relevance(page_id, 0)) from page")
    run_job("opic", url)
    assert set(scores(crawl, "value").values()) == {1}, "all are alike"


@pytest.mark.parametrize("new_weight", ["0", "3"])
def test_a_reported_relevance_changes_the_value_of_its_page_alone(crawl: Crawl, url: str, new_weight: str) -> None:
    """Without links it changes no score. With a weight of 0 it changes nothing."""
    crawl.add(*(url_of(page) for page in range(200)))
    crawl.value("select set_setting('relevance_weight', %s)", new_weight)
    run_job("opic", url)
    crawl.report({"url": url_of(5), "status": 200, "relevance": 0.6})
    run_job("opic", url)
    assert last_run(crawl)["moved"] == (1 if new_weight == "3" else 0)
    assert crawl.page(url_of(5))["value"] == pytest.approx(1.15 if new_weight == "3" else 1, rel=1e-2)


def test_values_follow_new_weights_though_no_score_moves(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    run_job("opic", url)
    crawl.value("select set_setting('hub_weight', '1')")
    run_job("opic", url)
    rows = crawl.rows("select * from page_status")
    assert [row["value"] for row in rows] == pytest.approx([(row["hub"] + row["authority"]) / 2 for row in rows])


def test_links_in_are_counted_even_where_no_score_moves(crawl: Crawl, url: str) -> None:
    crawled(crawl, {n: [(n + 1) % 20] for n in range(20)})
    run_job("opic", url)
    report_links(crawl, {n: [(n + 1) % 20, (n + 2) % 20] for n in range(20)})
    run_job("opic", url)
    assert {row["in_links"] for row in crawl.rows("select in_links from graph_node")} == {2}


def test_importance_that_does_not_converge_says_so(crawl: Crawl, url: str) -> None:
    """Eleven groups that pass their cash on in a circle: no leap goes that way."""
    groups = [[*range(first, first + 60)] for first in range(0, 1100, 100)]
    ring = {page: after for group, after in zip(groups, groups[1:] + groups[:1], strict=True) for page in group}
    crawled(crawl, ring | {1100 + n: [n % 60] for n in range(400)})
    crawl.value("select set_setting('importance_weight', '1')")
    said = run_job("opic", url)
    run = last_run(crawl)
    assert run["converged"] is False and run["sweeps"] > 200 and run["residual"] <= run["error"] > 1e-3
    assert f"the error is {run['error']:.2g} after" in said and "(the goal is 0.001: the next run continues)" in said


def test_a_value_unpinned_while_nothing_has_weight_follows_when_something_has(crawl: Crawl, url: str) -> None:
    crawled(crawl, TOY)
    run_job("opic", url)
    crawl.value("select set_value(3, 20)")
    crawl.value("select set_setting('authority_weight', '0')")
    crawl.value("select set_value(3, null)")
    crawl.value("select set_setting('authority_weight', '1')")
    run_job("opic", url)
    assert crawl.page(url_of(3))["value"] == crawl.page(url_of(3))["authority"]


@pytest.fixture
def blocked_page(crawl: Crawl, url: str) -> Iterator[psycopg.Connection]:
    """Somebody holds the row of one page, and with it the writer of values."""
    crawled(crawl, TOY)
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.page where page_id = 3 for update")
        yield holder


def waiting(crawl: Crawl, pid: int) -> bool:
    return bool(crawl.value("select wait_event_type = 'Lock' from pg_stat_activity where pid = %s", pid))


@pytest.mark.parametrize(
    "beside",
    [
        "select recrawl.keep_out('{4,2}')",
        """select recrawl.report('[{"page_id": 1, "status": 200}, {"page_id": 4, "status": 301,
                                   "redirect_to": "http://h2.test/"}]')""",
    ],
)
def test_scores_are_written_beside_what_changes_pages_without_a_deadlock(crawl: Crawl, url: str, beside: str) -> None:
    """Page 3 is held, so that the writer stops after page 2; then the other one begins, and page 3 is let go."""
    crawled(crawl, TOY)
    crawl.connection.execute("alter function put_scores set lock_timeout = '1 min'")  # this machine may be busy
    token = crawl.value("select start_job('opic', '1 hour')")
    put = "select recrawl_internal.put_scores(%s, '1 hour', '{1,2,3,4}'" + 4 * ", '{2,2,2,2}'" + ")"
    with (
        psycopg.connect(url) as holder,
        psycopg.connect(url, autocommit=True) as writer,
        psycopg.connect(url, autocommit=True) as other,
        ThreadPoolExecutor() as pool,
    ):
        holder.execute("select from recrawl_internal.page where page_id = 3 for update")
        written = pool.submit(writer.execute, put, [token])
        while not waiting(crawl, writer.info.backend_pid):
            time.sleep(0.01)
        changed = pool.submit(other.execute, beside)
        while not waiting(crawl, other.info.backend_pid) and not changed.done():
            time.sleep(0.01)
        holder.rollback()
        written.result(60)
        changed.result(60)


def test_a_second_run_is_refused_even_while_the_first_writes(
    crawl: Crawl, url: str, blocked_page: psycopg.Connection
) -> None:
    with ThreadPoolExecutor() as pool:
        first = pool.submit(run_job, "opic", url)
        while not crawl.value(
            "select true from pg_stat_activity where datname = current_database()"
            " and application_name = 'recrawl opic' and wait_event_type = 'Lock'"
        ):
            time.sleep(0.01)
        with pytest.raises(psycopg.errors.ObjectInUse):
            run_job("opic", url)
        blocked_page.rollback()
        first.result(60)


def test_a_worker_killed_between_two_chunks_loses_nothing(
    crawl: Crawl, url: str, blocked_page: psycopg.Connection
) -> None:
    command = (
        "from recrawl.jobs.opic import Opic; from recrawl.store import runs; import sys;"
        "runs.CHUNK = 1; Opic(sys.argv[1]).run()"
    )
    worker = subprocess.Popen([sys.executable, "-c", command, url], stderr=subprocess.PIPE)
    waits = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name = 'recrawl opic' and wait_event_type = 'Lock'"
    )
    until = time.monotonic() + 120
    while not crawl.value(waits):
        assert worker.poll() is None and time.monotonic() < until, worker.stderr and worker.stderr.read()
        time.sleep(0.05)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    crawl.value(
        "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity"
        " where datname = current_database() and application_name ~ '^recrawl '"
    )
    blocked_page.rollback()
    assert crawl.value("select count(*) from page_score") == 2, "two chunks came through"
    assert crawl.rows("select * from opic_run") == []
    crawl.connection.execute("update job set alive_until = clock_timestamp()")  # a minute later
    run_job("opic", url)
    assert list(scores(crawl, "authority").values()) == pytest.approx([4 * n / 9 for n in (2, 3, 1, 3)], rel=2e-2)
    assert last_run(crawl)["pages"] == 4
