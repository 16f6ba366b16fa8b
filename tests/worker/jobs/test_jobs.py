"""The results that the batch jobs bring into force, and the state that they leave when they die."""

import math
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import numpy as np
import psycopg
import pytest

import command
from helpers import DAY, HOUR, MINUTE, Crawl, Row, eventually, misplaced, result_of, run_job
from recrawl import store
from recrawl.jobs import allocate
from recrawl.jobs.plan import Plan
from recrawl.model.allocation import what_if
from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.model.allocation.solve import unconstrained
from recrawl.store import runs


def recrawl(url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command, in a process of its own."""
    return command.run("recrawl", *arguments, environment=os.environ | {"DATABASE_URL": url})


def fill(crawl: Crawl, pages_of_host: dict[str, int], rates: list[float] | None = None) -> None:
    """Pages with pinned rates, so that they take part at once, and values from 1 to 3."""
    for host, pages in pages_of_host.items():
        crawl.add(
            *(f"http://{host}/{i}" for i in range(pages)),
            rate=[float(rates[i % len(rates)]) if rates else 0.1 * 1.5 ** (i % 10) for i in range(pages)],
            value=[1.0 + i % 3 for i in range(pages)],
        )
    crawl.tick()


def visit(crawl: Crawl, frequency: float, *urls: str) -> None:
    """New pages are fetched, within the last hour, and due again as the setting frequency says."""
    crawl.now = crawl.value("select clock_timestamp()") - HOUR
    crawl.value("select set_setting('frequency', %s)", str(frequency))
    crawl.add(*urls)
    crawl.tick()
    while pages := crawl.next(len(urls), ahead=MINUTE):
        crawl.wait(MINUTE)
        crawl.report_ok(pages)
    crawl.tick()
    crawl.now = crawl.value("select clock_timestamp()")


def last_run(crawl: Crawl) -> Row:
    return crawl.row("select * from allocation_run order by started_at desc limit 1")


def frequencies(crawl: Crawl) -> np.ndarray:
    return np.array([row["frequency"] for row in crawl.rows("select frequency from page_status order by page_id")])


@pytest.fixture
def crawl(connection: psycopg.Connection) -> Crawl:
    """At the wall clock's time: jobs ask no other."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    return crawl


# ----------------------------------------------------------------------------------------------------------- allocate


def test_right_after_a_run_the_budget_is_spent_and_no_host_is_over_its_cap(crawl: Crawl, url: str) -> None:
    fill(crawl, {"large.test": 300, "small.test": 20, "slow.test": 50})
    crawl.value("select set_host('slow.test', gap => '2 hours')")
    crawl.value("select set_setting('budget', '200')")
    run_job("allocate", url)
    assert frequencies(crawl).sum() == pytest.approx(200, rel=1e-6)
    assert crawl.host("slow.test")["frequency"] == pytest.approx(86400 / 7202), "as often as it has slots"
    by_host = crawl.rows("select host, sum(frequency) as frequency from page_status group by host")
    for row in by_host:
        assert row["frequency"] == pytest.approx(crawl.host(row["host"])["frequency"], rel=1e-6)
    assert [crawl.host(host)["capped"] for host in ("large.test", "slow.test")] == [False, True]
    assert crawl.host("slow.test")["price"] > crawl.host("large.test")["price"] == last_run(crawl)["price"]


def test_every_run_carries_its_proof(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 200, "b.test": 100})
    crawl.value("select set_host('b.test', gap => '3 hours')")
    crawl.value("select set_setting('budget', '100')")
    run_job("allocate", url)
    run = last_run(crawl)
    assert (run["policy"], run["objective"], run["budget"], run["pages"], run["hosts"]) == (
        "opt_polite", "freshness", 100, 300, 2,
    )  # fmt: skip
    assert run["capped_hosts"] == 1
    assert run["for_revisits"] == pytest.approx(100) and abs(run["unused"]) < 1e-6
    assert max(run["residual"], run["spread"], abs(run["duality_gap"])) < 1e-9
    assert 0 < run["utility"] < run["limit_with_gaps"] < run["limit_without_gaps"] < 1
    assert run["settings_cost"] == pytest.approx(run["limit_with_gaps"] - run["utility"])
    assert run["longest_days"] == pytest.approx(300 / (0.05 * 100), rel=1e-6), "5 % of the budget goes round all pages"
    (job,) = crawl.rows("select * from job_run")
    assert (job["job"], job["ok"]) == ("allocate", True)
    assert 0 < run["seconds"] <= job["seconds"] + 1, "the computation is a part of the run"


def test_a_frequency_is_null_where_none_is_in_force(crawl: Crawl, url: str) -> None:
    """As its comment says."""
    kinds = ["visited", "new", "pinned", "failing", "declined", "gone"]
    crawl.add(*(f"http://{kind}.test/" for kind in kinds), rate=[1.0 if kind == "pinned" else None for kind in kinds])

    def unknown() -> set[str]:
        rows = crawl.rows("select url from page_status where frequency is null")
        return {row["url"].removeprefix("http://").removesuffix(".test/") for row in rows}

    def report(kind: str, **what: object) -> None:
        crawl.report({"url": f"http://{kind}.test/", **what})

    report("visited", status=200)
    report("declined", declined=True)
    report("gone", status=410)
    crawl.value("select set_setting('max_attempts', '1')")
    (page,) = [page for page in crawl.next() if "failing" in page["url"]]
    report("failing", status=0, lease_id=page["lease_id"])
    assert unknown() == {"declined", "gone"}
    run_job("allocate", url)
    assert unknown() == {"declined", "gone", "new", "failing"}


def test_without_floors_and_ceilings_it_is_the_pure_optimum(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 100, "b.test": 100}, rates=[0.01, 0.1, 1, 10, 100])
    crawl.value("select set_setting('budget', '20')")
    for name, value in {"exploration": "0", "longest_interval": "none", "shortest_interval": "none"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    run_job("allocate", url)
    pages = crawl.rows("select value, rate from page_status order by page_id")
    optimum = unconstrained(np.array([p["value"] for p in pages]), np.array([p["rate"] for p in pages]), 20.0)
    np.testing.assert_allclose(frequencies(crawl), optimum.frequency, rtol=1e-5, atol=1e-9)
    assert (frequencies(crawl) == 0).any(), "some are not worth it"


def test_floors_keep_the_hopeless_visited_and_ceilings_the_rest_in_bounds(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 100}, rates=[0.0, 0.2, 5000.0])
    for name, value in {"budget": "300", "longest_interval": "10 days", "shortest_interval": "4 hours"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    run_job("allocate", url)
    asked = frequencies(crawl)
    assert asked.min() == pytest.approx(0.15), "the floor of exploration is higher than once in ten days"
    assert asked.max() <= 6 + 1e-9
    crawl.value("select set_setting('exploration', '0')")
    run_job("allocate", url)
    assert frequencies(crawl).min() == pytest.approx(0.1)


def test_a_longest_interval_that_the_budget_does_not_reach_is_said(crawl: Crawl, url: str) -> None:
    """Floors take half of the budget at most: the other half goes where it earns most."""
    fill(crawl, {"a.test": 100}, rates=[0.0, 0.2])
    assert crawl.value("select value from settings where name = 'longest_interval'") == "60 days"
    crawl.value("select set_setting('budget', '10')")
    assert "longest_interval" not in run_job("allocate", url)
    assert frequencies(crawl).min() == pytest.approx(1 / 60)
    crawl.value("select set_setting('budget', '2')")
    assert run_job("allocate", url).endswith(
        "; longest_interval (60 days) is not kept: the least frequencies get at most half of the "
        "budget and half of a host's slots, so a page may wait 100 days"
    )
    assert frequencies(crawl).sum() == pytest.approx(2, rel=1e-6)
    assert frequencies(crawl).min() == pytest.approx(0.01)
    crawl.value("select set_setting('longest_interval', 'none')")
    assert "longest_interval" not in run_job("allocate", url)


def test_a_crawl_without_a_budget_gets_one_of_its_size(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 40})
    crawl.value("select set_setting('frequency', '0.5')")
    run_job("allocate", url)
    assert last_run(crawl)["budget"] == pytest.approx(20)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_spends_the_budget(crawl: Crawl, url: str, objective: str) -> None:
    fill(crawl, {"a.test": 100, "b.test": 30})
    crawl.value("select set_setting('objective', %s)", objective)
    crawl.value("select set_setting('budget', '60')")
    run_job("allocate", url)
    assert frequencies(crawl).sum() == pytest.approx(60, rel=1e-6)


def test_what_it_works_on_is_what_was_fetched_or_pinned_and_lives(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 10})
    crawl.add("http://new.test/", "http://fetched.test/", "http://dead.test/", rate=[None, None, 1.0])
    crawl.value("select keep_out(array(select page_id from page_status where host = 'dead.test'))")
    crawl.report({"url": "http://fetched.test/", "status": 200})
    run_job("allocate", url)
    assert last_run(crawl)["pages"] == 11
    assert crawl.page("http://new.test/")["frequency"] is None
    assert crawl.page("http://dead.test/")["frequency"] is None
    assert crawl.page("http://fetched.test/")["frequency"] > 0


def test_a_host_blocked_for_long_leaves_its_share_to_the_others(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 10, "b.test": 10, "c.test": 10})
    crawl.value("select set_setting('budget', '10')")
    crawl.value("select block_host('b.test', %s)", crawl.now + 36 * HOUR)
    crawl.value("select block_host('c.test', %s)", crawl.now + 12 * HOUR)
    crawl.add(*(f"http://b.test/new{i}" for i in range(10)))
    crawl.tick()
    run_job("allocate", url)
    given = dict(crawl.connection.execute("select host, frequency from host_status").fetchall())
    assert given == {"a.test": pytest.approx(5), "b.test": 0, "c.test": pytest.approx(5)}
    assert last_run(crawl)["for_new"] == 0, "its new pages wait too"


def test_an_empty_crawl_is_told_what_to_do_and_nothing_is_put_in_force(crawl: Crawl, url: str) -> None:
    crawl.value("select set_setting('budget', '10')")
    assert "`recrawl add` adds pages" in run_job("allocate", url)
    assert "no page has been fetched twice yet" in run_job("rates", url)
    assert crawl.rows("select * from allocation_run") == []
    assert [row["ok"] for row in crawl.rows("select ok from job_run")] == [True, True]


@pytest.mark.parametrize(
    ("pages", "value", "rate"),
    [(1, 1, 1), (5, 0, 1), (5, 1, 0), (5, 0, 0), (5, 1e-30, 1e30), (5, 1e30, 1e-30)],
)
def test_no_web_is_too_odd(crawl: Crawl, url: str, pages: int, value: float, rate: float) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(pages)), value=[value], rate=[rate])
    crawl.value("select set_setting('budget', '10')")
    run_job("allocate", url)
    run = last_run(crawl)
    assert (run["pages"], run["budget"]) == (pages, 10)
    assert sum(row["frequency"] for row in crawl.rows("select frequency from page_status")) == pytest.approx(
        run["for_revisits"], rel=1e-5
    )


@pytest.mark.parametrize("objective", ["freshness", "new_content", "poisson_freshness"])
def test_a_budget_that_runs_out_among_equals_is_spent_all_the_same(crawl: Crawl, url: str, objective: str) -> None:
    crawl.add(*(f"http://{host}.test/{i}" for host in "abc" for i in range(20)), rate=[100.0])
    crawl.value("select set_host('c.test', gap => '1 day')")
    for name, value in {"budget": "21", "exploration": "0", "objective": objective}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    run_job("allocate", url)
    assert frequencies(crawl).sum() == pytest.approx(21, rel=1e-6)
    (page, *_) = crawl.next()
    crawl.report_ok([page])
    assert frequencies(crawl).sum() == pytest.approx(21, rel=1e-6), "and stays so, report by report"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("budget", "0", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got 0"),
        ("budget", "NaN", "set_setting: budget must lie between 1e-6 and 1e12 fetches per day, or none, got NaN"),
        (
            "objective",
            "joy",
            "set_setting: objective must be one of freshness, new_content, poisson_freshness, harmonic",
        ),
        ("exploration", "0.6", "set_setting: exploration must lie between 0 and 0.5, got 0.6"),
        ("longest_interval", "0", "set_setting: longest_interval must lie between 1 minute and 10 years, got 0"),
        (
            "longest_interval",
            "2 minutes",
            "set_setting: longest_interval must not be shorter than shortest_interval, got 2 minutes",
        ),
        ("shortest_interval", "x", "set_setting: shortest_interval must be of type interval, got x"),
    ],
)
def test_absurd_settings_are_refused_by_name(crawl: Crawl, name: str, value: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.value("select set_setting(%s, %s)", name, value)
    assert (error.value.diag.message_primary or "").startswith(message)


@pytest.mark.parametrize("budget", ["1e-6", "1e12"])
def test_a_budget_of_almost_nothing_or_of_anything_is_allocated(crawl: Crawl, url: str, budget: str) -> None:
    fill(crawl, {"a.test": 20, "b.test": 20})
    crawl.connection.execute("update page set fetched_at = now() - '1 hour'::interval, successes = 1")
    run_job("allocate", url)
    crawl.value("select set_setting('budget', %s)", budget)
    for _ in range(2):
        run_job("allocate", url)
    assert crawl.value("select bool_and(ok) from job_run")


# -------------------------------------------------------------------------------------- between runs, and due times


def test_a_page_first_fetched_after_a_run_is_priced_at_once(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 50})
    crawl.value("select set_setting('budget', '100')")
    crawl.add("http://a.test/young", value=[3.0])
    run_job("allocate", url)
    crawl.tick()
    crawl.report({"url": "http://a.test/young", "status": 200})
    young = crawl.page("http://a.test/young")
    common = "(select t from host_terms t where host_id = 0)"
    assert young["frequency"] == pytest.approx(
        crawl.value(f"select frequency from frequency_in_force(null, {common}, null, 3, 0.2)"),
        rel=1e-5,
    )


def test_the_next_visit_follows_what_the_last_one_taught(crawl: Crawl, url: str) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.report(result_of(page, content_hash="1"))
    crawl.value("select set_setting('budget', '1')")
    run_job("allocate", url)
    crawl.wait(DAY)
    (page,) = crawl.next()
    (answer,) = crawl.report(result_of(page, content_hash="2"))
    status = crawl.page("http://a.test/")
    every = timedelta(days=1 / status["frequency"])
    assert answer["next_fetch_at"] == pytest.approx(page["fetch_at"] + every, abs=timedelta(seconds=5))


def test_a_new_rate_counts_at_the_old_price(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 20}, rates=[0.5])
    crawl.value("select set_setting('budget', '20')")
    run_job("allocate", url)
    before = crawl.page("http://a.test/0")
    crawl.value("select set_rate(%s, 0.05)", before["page_id"])
    assert crawl.page("http://a.test/0")["frequency"] < 0.6 * before["frequency"]


def test_pages_due_far_beyond_their_new_interval_come_forward_and_the_over_eager_keep_their_grid(
    crawl: Crawl, url: str
) -> None:
    promised = {}
    for path, frequency, rate in (("late", 1 / 300, 1.0), ("soon", 10, 0.001)):
        visit(crawl, frequency, f"http://a.test/{path}")
        page = crawl.page(f"http://a.test/{path}")
        crawl.value("select set_rate(%s, %s)", page["page_id"], rate)
        promised[path] = page["due_at"]
    crawl.value("select set_setting('budget', '2')")
    assert run_job("allocate", url).endswith("1 of 2 pages are due earlier than before")
    crawl.now = crawl.value("select clock_timestamp()")
    assert misplaced(crawl) == []
    late = crawl.page("http://a.test/late")
    assert crawl.now <= late["due_at"] <= crawl.now + timedelta(days=1 / late["frequency"])
    grid = (promised["late"] - late["due_at"]) / timedelta(days=1 / late["frequency"])
    assert grid > 100 and grid == pytest.approx(round(grid), abs=1e-3), "on its own grid"
    assert crawl.page("http://a.test/soon")["due_at"] == promised["soon"]


def test_what_waits_for_other_reasons_than_its_frequency_stays_where_it_is(crawl: Crawl, url: str) -> None:
    visit(crawl, 0.01, "http://a.test/", "http://a.test/failing", "http://b.test/denied")
    for path, result in (("a.test/failing", {"status": 404}), ("b.test/denied", {"status": 0, "robots_denied": True})):
        page_id = crawl.page(f"http://{path}")["page_id"]
        crawl.value("select fetch_now_at(%s, %s::bigint[])", crawl.now, [page_id])
        crawl.tick()
        (page,) = crawl.next()
        crawl.report(result_of(page, **result))
        crawl.wait(MINUTE)
    crawl.tick()
    before = {row["url"]: row["due_at"] for row in crawl.rows("select url, due_at from page")}
    crawl.value("select set_setting('budget', '100')")
    assert run_job("allocate", url).endswith("1 of 3 pages are due earlier than before")
    moved = [row["url"] for row in crawl.rows("select url, due_at from page") if row["due_at"] != before[row["url"]]]
    assert moved == ["http://a.test/"]


def test_a_first_allocation_writes_only_the_pages_that_come_forward(crawl: Crawl, url: str) -> None:
    visit(crawl, 1, *(f"http://a.test/{i}" for i in range(40)))
    for page_id in range(1, 21):
        crawl.value("select set_value(%s, 100)", page_id)
    before = crawl.value("select pg_current_xact_id()::text::bigint")
    crawl.value("select set_setting('budget', '100')")
    run_job("allocate", url)
    written = crawl.rows("select page_id from page where xmin::text::bigint >= %s order by page_id", before)
    assert [row["page_id"] for row in written] == [*range(1, 21)]
    assert frequencies(crawl).sum() == pytest.approx(100, rel=1e-6), "all are in force"


def test_pages_that_come_forward_leave_room_for_their_neighbours(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one transaction the new rows of a block would not fit into it, so they would move with their index entries."""
    monkeypatch.setattr(runs, "CHUNK", 25)
    monkeypatch.setattr(allocate, "_fit", lambda *_: None)
    visit(crawl, 0.01, *(f"http://{host}.test/{i}" for host in range(5) for i in range(40)))
    crawl.value("select set_setting('budget', '200')")
    assert run_job("allocate", url).endswith("200 of 200 pages are due earlier than before")
    written = crawl.rows("select array_agg(page_id order by page_id) as pages from page group by xmin::text")
    for chunk in written:
        assert np.diff(chunk["pages"]).min(initial=200) > 25 / 4, "a block holds 25 pages, and has room for four more"


def test_the_next_visit_of_a_page_follows_the_price_whatever_was_stored_before(crawl: Crawl, url: str) -> None:
    visit(crawl, 4, "http://a.test/")
    crawl.value("select set_setting('budget', '2')")
    run_job("allocate", url)
    assert crawl.value("select frequency from page") is None, "it was not written"
    crawl.now += DAY
    (page,) = crawl.next()
    (answer,) = crawl.report_ok([page])
    every = timedelta(days=1 / crawl.page("http://a.test/")["frequency"])
    assert every > DAY / 3
    assert timedelta(0) < answer["next_fetch_at"] - page["fetch_at"] <= every, "on its own grid"
    assert misplaced(crawl) == []


def test_an_allocation_of_nothing_gives_new_pages_no_price(crawl: Crawl, url: str) -> None:
    crawl.value("select set_setting('budget', '10')")
    run_job("allocate", url)
    crawl.add("http://a.test/", "http://b.test/", rate=[None, 0.0])
    crawl.report({"url": "http://a.test/", "status": 200})
    assert crawl.page("http://a.test/")["frequency"] == 1, "as the setting says"
    run_job("allocate", url)
    crawl.add("http://b.test/2", rate=[0.2])
    assert crawl.page("http://b.test/2")["frequency"] < 11


def test_another_objective_counts_from_the_next_allocation_on(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 30})
    run_job("allocate", url)
    before = frequencies(crawl)
    crawl.value("select set_setting('objective', 'age')")
    assert (frequencies(crawl) == before).all()
    run_job("allocate", url)
    assert not np.allclose(frequencies(crawl), before, rtol=0.01)


@pytest.mark.parametrize("objective", ["harmonic", "age"])
def test_a_blocked_host_leaves_the_proof_whole(crawl: Crawl, url: str, objective: str) -> None:
    fill(crawl, {"a.test": 10, "b.test": 10})
    crawl.value("select block_host('b.test')")
    crawl.value("select set_setting('objective', %s)", objective)
    run_job("allocate", url)
    run = last_run(crawl)
    assert np.isfinite([run["utility"], run["limit_with_gaps"], run["limit_without_gaps"]]).all()
    assert (run["pages"], run["hosts"]) == (10, 1)


def test_what_is_hopeless_and_gets_no_floor_is_left_alone(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 400}, rates=[0.2, 50.0, 50.0, 50.0])
    crawl.value("select set_host('a.test', gap => '12 hours')")
    crawl.value("select set_setting('exploration', '0')")
    crawl.value("select set_setting('longest_interval', 'none')")
    run_job("allocate", url)
    assert frequencies(crawl).sum() <= 2.05


def test_a_run_that_changes_little_writes_little(crawl: Crawl, url: str) -> None:
    fill(crawl, {f"h{i}.test": 20 for i in range(10)})
    run_job("allocate", url)
    assert run_job("allocate", url).endswith("0 of 200 pages are due earlier than before")
    written = crawl.value("select count(*) from host_terms where xmin = pg_current_xact_id()::xid")
    assert written == 0


# -------------------------------------------------------------------------------------------------------------- rates


def test_new_pages_start_from_what_the_pages_of_their_host_taught(crawl: Crawl, url: str) -> None:
    for host, changed in (("busy.test", True), ("still.test", False)):
        crawl.add(*(f"http://{host}/{i}" for i in range(40)))
        for _ in range(6):
            crawl.report(
                *({"url": f"http://{host}/{i}", "status": 200, "changed": changed, "fetched_at": str(crawl.now)}
                  for i in range(40))
            )  # fmt: skip
            crawl.wait(DAY)
    crawl.add("http://busy.test/new", "http://still.test/new", "http://unknown.test/")
    run_job("rates", url)
    busy, still, unknown = (
        crawl.page(f"http://{page}")["rate"] for page in ("busy.test/new", "still.test/new", "unknown.test/")
    )
    assert busy > 1 and still < busy / 4
    assert still < unknown < busy


def test_a_crawl_of_which_nothing_is_known_yet_keeps_the_first_prior(crawl: Crawl, url: str) -> None:
    crawl.add("http://a.test/")
    run_job("rates", url)
    assert crawl.page("http://a.test/")["rate"] == pytest.approx(0.2, rel=1e-2)


# ------------------------------------------------------------------------------------------------ one worker at a time


def test_two_workers_never_run_a_job_at_once(crawl: Crawl, url: str) -> None:
    with store.runs.run(url, "allocate"):
        done = recrawl(url, "run", "allocate")
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1].startswith("recrawl: allocate is being run by another worker since ")
        with store.runs.run(url, "rates"):
            pass
    run_job("allocate", url)


def test_two_jobs_write_the_terms_of_hosts_one_after_the_other_and_no_reader_waits(crawl: Crawl, url: str) -> None:
    """If they wrote row by row, each could wait for the other."""
    fill(crawl, {"a.test": 3})
    with psycopg.connect(url) as rates, ThreadPoolExecutor() as pool:
        start = "select recrawl_internal.start_job('rates', '1 minute')"
        (token,) = rates.execute(start).fetchone() or (0,)
        rates.execute("select recrawl_internal.put_priors(%s, '1 minute', '{7}', '{1}', '{2}')", [token])
        allocating = pool.submit(run_job, "allocate", url)
        waiting = (
            "select from pg_stat_activity where datname = current_database()"
            " and application_name = %s and wait_event_type = 'Lock'"
        )
        eventually(lambda: crawl.rows(waiting, "recrawl allocate"), what="it did not wait")
        assert crawl.value("select count(*) from page_status") == 3
        assert crawl.value("select count(*) from allocation_run") == 0
        rates.commit()
        allocating.result(60)
    assert crawl.value("select count(*) from allocation_run") == 1
    terms = crawl.row("select prior_changes, price from host_terms where host_id = 7")
    assert terms == {"prior_changes": 1, "price": None}


@pytest.mark.parametrize(
    ("error", "says"), [(RuntimeError("out of luck"), "out of luck"), (RuntimeError(), "RuntimeError")]
)
def test_a_run_that_fails_says_so_and_leaves_the_last_result_in_force(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    fill(crawl, {"a.test": 10})
    run_job("allocate", url)
    before = crawl.host("a.test")["price"]
    crawl.value("select set_setting('budget', '1')")

    def torn(*_: object) -> None:
        raise error

    monkeypatch.setattr(what_if, "bounds", torn)
    with pytest.raises(RuntimeError):
        run_job("allocate", url)
    assert crawl.host("a.test")["price"] == before
    last = crawl.rows("select ok, message from job_run")[-1]
    assert (last["ok"], last["message"]) == (False, says)


@pytest.fixture
def blocked_page(crawl: Crawl, url: str) -> Iterator[psycopg.Connection]:
    """Somebody who holds a page, so that a run waits in the middle of bringing pages forward."""
    visit(crawl, 0.01, *(f"http://{host}.test/{i}" for host in "ab" for i in range(10)))
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.page where page_id = 15 for update")
        yield holder


def test_a_worker_killed_while_it_writes_leaves_a_complete_result_and_the_job_to_others(
    crawl: Crawl, url: str, blocked_page: psycopg.Connection
) -> None:
    crawl.value("select set_setting('budget', '7')")
    worker = command.Running("recrawl", "run", "allocate", environment=os.environ | {"DATABASE_URL": url})
    waits = (
        "select count(*) from pg_stat_activity where datname = current_database()"
        " and application_name = 'recrawl allocate' and wait_event_type = 'Lock'"
    )
    until = time.monotonic() + 120
    while not crawl.value(waits):
        assert worker.poll() is None and time.monotonic() < until, worker.stderr.read()
        time.sleep(0.05)
    worker.kill()
    worker.communicate()
    crawl.value(
        "select count(pg_terminate_backend(pid, 60000)) from pg_stat_activity"
        " where datname = current_database() and application_name ~ '^recrawl '"
    )
    blocked_page.rollback()

    assert frequencies(crawl).sum() == pytest.approx(7, rel=1e-6), "the prices are in force"
    run_job("allocate", url)
    assert [row["ok"] for row in crawl.rows("select ok from job_run order by started_at")] == [False, True]


def test_what_a_run_writes_after_another_took_over_is_refused(crawl: Crawl, url: str) -> None:
    fill(crawl, {"a.test": 10})
    with store.runs.run(url, "allocate") as slow:
        crawl.connection.execute("update job set alive_until = clock_timestamp()")
        run_job("allocate", url)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState, match="another worker took this job over"):
            slow.put("bring_forward", np.array([1]), np.array([1.0], np.float32))
    assert crawl.value("select count(*) from job_run where ok") == 1


def test_a_run_that_computes_for_long_gives_signs_of_life(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "HEARTBEAT_SECONDS", 0.05)
    alive = "select alive_until from job"
    with store.runs.run(url, "allocate"):
        at_first = crawl.value(alive)
        eventually(lambda: crawl.value(alive) > at_first)

        beating = "select pid from pg_stat_activity where application_name = 'recrawl heartbeat'"
        lost = crawl.value(f"{beating} and datname = current_database()")
        crawl.value("select pg_terminate_backend(%s)", lost)
        eventually(lambda: crawl.value(f"{beating} and pid = %s", lost) is None)
        at_first = crawl.value(alive)
        eventually(lambda: crawl.value(alive) > at_first, what="no other follows one that is lost")
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("(beat)")]


def test_pops_and_reports_go_on_while_pages_come_forward(crawl: Crawl, url: str) -> None:
    visit(crawl, 0.01, *(f"http://h{i}.test/old{k}" for i in range(40) for k in range(30)))
    crawl.value("select set_setting('shortest_interval', '1 second')")
    fill(crawl, {f"h{i}.test": 20 for i in range(40)})
    done = threading.Event()

    def crawling() -> int:
        pages = 0
        with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
            other = Crawl(connection)
            while not done.is_set():
                other.now = other.value("select clock_timestamp()")
                taken = other.next()
                other.report_ok(taken)
                pages += len(taken)
        return pages

    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor() as pool:
        crawlers = [pool.submit(crawling) for _ in range(3)]
        for budget in ("1000", "1e6", "10", "3e6"):
            crawl.value("select set_setting('budget', %s)", budget)
            run_job("allocate", url)
        done.set()
        assert sum(crawler.result() for crawler in crawlers) > 0
    crawl.now = crawl.value("select clock_timestamp()") + 5 * MINUTE  # by then a recheck has found late entries
    assert misplaced(crawl) == []


# ------------------------------------------------------------------------------------------------------------- upkeep


def test_upkeep_goes_on_until_nothing_is_left_and_says_how_much_there_was(crawl: Crawl, url: str) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(2500)))  # one step takes 2,000
    assert run_job("upkeep", url) == "2,500 pages came into the queue"
    assert crawl.value("select count(*) from inbox") == 0
    assert run_job("upkeep", url) == "0 pages came into the queue"


@pytest.mark.parametrize("discovery", ["0", "0.5", "1"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_told_are_numbers_or_nothing(
    url: str, connection: psycopg.Connection, objective: str, discovery: str
) -> None:
    """Where new pages have it all, some objectives lose without limit: that is null, and so is what is told of it."""
    crawl = Crawl(connection)
    crawl.add(*(f"http://{host}.test/{i}" for host in "ab" for i in range(20)), rate=[0.1 * 1.3**i for i in range(40)])
    crawl.add(*(f"http://{host}.test/new{i}" for host in "ab" for i in range(50)))
    crawl.tick()
    for name, value in {"budget": "30", "discovery": discovery, "objective": objective, "exploration": "0"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    crawl.value("select set_host('a.test', gap => '6 hours')")
    message = run_job("allocate", url)
    row = crawl.row("select * from allocation_run")
    figures = {name: value for name, value in row.items() if isinstance(value, float)}
    assert all(math.isfinite(value) for value in figures.values()), figures
    without_limit = discovery == "1" and objective in ("harmonic", "delay", "age")
    for name in ("utility", "limit_with_gaps", "limit_without_gaps", "settings_cost"):
        assert (row[name] is None) == without_limit, name
    assert "inf" not in message and "nan" not in message
    assert ("without limit" in message) == without_limit
    plan = Plan(url)
    (point,) = plan.curve([30])
    assert point.utility == pytest.approx(row["utility"])
    assert all(math.isfinite(host.half_gap_gain) for host in plan.capped_hosts())
    assert plan.capped_hosts() == [] or not without_limit
    for page in crawl.rows("select frequency from page_status where rate is not null and frequency is not null"):
        assert math.isfinite(page["frequency"])
