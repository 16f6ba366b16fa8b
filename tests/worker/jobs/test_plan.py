"""Answers to "what if" questions from the crawl of the user."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import numpy as np
import psycopg
import pytest

from helpers import Crawl, run_job
from recrawl.__main__ import main
from recrawl.jobs.allocation_input import NOBODY_TAKES_PART
from recrawl.jobs.plan import Plan
from recrawl.store import reads


@pytest.fixture
def url(url: str, connection: psycopg.Connection) -> str:
    """A crawl of a large host and of one whose gap lets hardly anything through."""
    crawl = Crawl(connection)
    for host, pages in (("large.test", 60), ("slow.test", 40)):
        crawl.add(*(f"http://{host}/{i}" for i in range(pages)), rate=[0.1 * 1.3 ** (i % 12) for i in range(pages)])
    crawl.value("select set_host('slow.test', gap => '6 hours')")
    crawl.value("select set_setting('budget', '50')")
    return url


def in_a_process(url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "recrawl", "plan", *arguments],
        env=os.environ | {"DATABASE_URL": url}, capture_output=True, text=True,
    )  # fmt: skip


Recrawl = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def recrawl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recrawl:
    """The same in this process, where everything is compiled already."""

    def run(url: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        monkeypatch.setenv("DATABASE_URL", url)
        monkeypatch.setattr(sys, "argv", ["recrawl", "plan", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return subprocess.CompletedProcess(sys.argv, int(ended.value.code or 0), said.out, said.err)

    return run


def test_more_budget_brings_more_and_never_more_than_the_bounds(url: str) -> None:
    points = Plan(url).curve([5, 50, 500, 5000])
    assert [point.budget for point in points] == [5, 50, 500, 5000]
    reached = [point.utility for point in points if point.utility is not None]
    assert reached == sorted(reached) and reached[0] < 0.3 < 0.7 < reached[-1]
    for point in points:
        assert point.utility is not None and point.limit_with_gaps is not None and point.limit_without_gaps is not None
        assert point.utility <= point.limit_with_gaps + 1e-12 <= point.limit_without_gaps + 2e-12
        assert point.for_revisits <= point.budget * (1 + 1e-9)
    assert point.limit_without_gaps and point.limit_with_gaps
    assert point.limit_without_gaps - point.limit_with_gaps > 0.1, "the slow host"


def test_at_the_present_budget_the_plan_is_what_allocation_brings(url: str, connection: psycopg.Connection) -> None:
    (point,) = Plan(url).curve([50])
    run_job("allocate", url)
    row = Crawl(connection).row(
        "select utility, limit_with_gaps, limit_without_gaps, for_revisits, for_new from allocation_run"
    )
    for name, value in row.items():
        assert getattr(point, name) == pytest.approx(value, rel=1e-9)


def test_without_a_budget_the_plan_is_what_allocation_with_that_budget_brings(
    url: str, connection: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignored retries, and new pages got the fetches that revisits would want without a budget."""
    monkeypatch.setattr(reads, "retries_per_day", lambda *_: 4.0)
    crawl = Crawl(connection)
    crawl.add(*(f"http://large.test/new{i}" for i in range(200)))
    crawl.tick()
    crawl.value("select set_setting('budget', null)")
    crawl.value("select set_setting('frequency', '0.05')")
    (point,) = Plan(url).curve([40])
    crawl.value("select set_setting('budget', '40')")
    run_job("allocate", url)
    row = crawl.row("select utility, limit_with_gaps, limit_without_gaps, for_revisits, for_new from allocation_run")
    assert {name: getattr(point, name) for name in row} == pytest.approx(row, rel=1e-6)
    assert row["for_revisits"] + row["for_new"] == pytest.approx(36)


def test_the_budget_for_a_freshness_reaches_it(url: str) -> None:
    plan = Plan(url)
    budget = plan.budget_for(0.5)
    (point,) = plan.curve([budget])
    assert point.utility == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("policy", ["best_first", "uniform"])
def test_a_freshness_that_a_policy_never_reaches_is_refused_with_the_highest(
    url: str, connection: psycopg.Connection, policy: str
) -> None:
    """The search went on for ever: these policies have an infinite price for every budget."""
    Crawl(connection).value("select set_setting('policy', %s)", policy)
    plan = Plan(url)
    (point,) = plan.curve([1e9])
    with pytest.raises(ValueError, match="share must be at most") as refused:
        plan.budget_for(0.97)
    assert point.utility is not None and f" {point.utility:.6g} " in str(refused.value)
    assert plan.curve([plan.budget_for(0.9 * point.utility)])[0].utility == pytest.approx(0.9 * point.utility, rel=1e-3)


def test_it_names_the_hosts_whose_gap_costs_and_what_half_of_it_would_gain(
    url: str, connection: psycopg.Connection
) -> None:
    (slow,) = Plan(url).capped_hosts()
    assert (slow.host, slow.pages) == ("slow.test", 40) and slow.slot_every == pytest.approx(6 * 3600 + 2)
    before = utility_at_present(url)
    Crawl(connection).value("select set_host('slow.test', gap => '3 hours')")
    assert utility_at_present(url) - before == pytest.approx(slow.half_gap_gain, rel=1e-6) and slow.half_gap_gain > 0.01
    assert type(slow.slot_every) is float
    Crawl(connection).value("select set_setting('policy', 'proportional')")
    assert Plan(url).capped_hosts() == [], "its prices have another unit"


def test_an_allocation_leaves_the_hosts_that_their_gap_holds_back(url: str, connection: psycopg.Connection) -> None:
    random_crawl(connection, 1)
    run_job("allocate", url)
    listed = {host.host: host for host in Plan(url).capped_hosts(8)}
    rows = Crawl(connection).rows("select * from capped_hosts")
    assert {row["host"] for row in rows} >= set(listed) and len(rows) > 3
    for row in rows:
        # A bound, close where a host takes a small part of all fetches.
        assert row["wanted"] > row["frequency"] > 0
        if host := listed.get(row["host"]):
            assert host.half_gap_gain * (1 - 1e-6) <= row["half_gap_gain"] <= 1.5 * host.half_gap_gain
            assert row["pages"] == host.pages
            assert row["slot_every"].total_seconds() == pytest.approx(host.slot_every, rel=1e-6)


def utility_at_present(url: str) -> float:
    plan = Plan(url)
    (point,) = plan.curve([plan.present.budget])
    assert point.utility is not None
    return point.utility


def random_crawl(connection: psycopg.Connection, seed: int) -> Crawl:
    """Hosts that are mostly limited by their gaps, with new pages on half of them."""
    crawl, random = Crawl(connection), np.random.default_rng(seed)
    for host in range(8):
        pages = int(random.integers(5, 60))
        crawl.add(
            *(f"http://h{host}.test/{i}" for i in range(pages)),
            rate=random.lognormal(-1, 1.5, pages).tolist(),
            value=random.lognormal(0, 1, pages).tolist(),
        )
        crawl.value("select set_host(%s, gap => %s)", f"h{host}.test", timedelta(minutes=random.uniform(20, 600)))
        if host % 2:
            crawl.add(*(f"http://h{host}.test/new{i}" for i in range(20)), value=random.lognormal(0, 1, 20).tolist())
    crawl.tick()
    crawl.value("select set_setting('budget', %s)", str(random.uniform(50, 200)))
    crawl.value("select set_setting('discovery', %s)", str(random.choice([0.2, 0.5])))
    return crawl


@pytest.mark.parametrize("seed", range(4))
def test_the_hosts_it_lists_gain_what_it_says_and_no_other_more(
    url: str, template: str, new_database: Callable[..., str], seed: int
) -> None:
    url = new_database(template)
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
        crawl = random_crawl(connection, seed)
        listed = Plan(url).capped_hosts(3)
        before, gains = utility_at_present(url), {}
        for row in crawl.rows("select host, gap from host_status"):
            crawl.value("select set_host(%s, gap => %s)", row["host"], row["gap"] / 2)
            gains[row["host"]] = utility_at_present(url) - before
            crawl.value("select set_host(%s, gap => %s)", row["host"], row["gap"])
    best = sorted(gains, key=lambda host: -gains[host])[:3]
    assert [host.host for host in listed] == best
    assert [host.half_gap_gain for host in listed] == pytest.approx([gains[host] for host in best], rel=0.01)


@pytest.mark.parametrize("freshness", [0.3, 0.45])
def test_the_budget_for_a_freshness_counts_the_slots_that_new_pages_leave_of_it(
    url: str, connection: psycopg.Connection, freshness: float
) -> None:
    """It took the slots that they leave of the present budget, a tenth of what is asked for."""
    crawl = Crawl(connection)
    crawl.add(*(f"http://{host}/new{i}" for host in ("large.test", "slow.test") for i in range(2000)))
    crawl.tick()
    crawl.value("select set_setting('budget', '5')")
    crawl.value("select set_host('large.test', gap => '20 minutes')")
    budget = Plan(url).budget_for(freshness)
    crawl.value("select set_setting('budget', %s)", str(budget))
    run_job("allocate", url)
    assert crawl.value("select utility from allocation_run") == pytest.approx(freshness, rel=1e-3)


def test_the_command_prints_a_table_and_draws(url: str, tmp_path: Path) -> None:
    done = in_a_process(url, "--budget", "0.5x,1x,200", "--png", str(tmp_path / "plan.png"))
    assert done.returncode == 0, done.stderr
    assert "100 pages; the budget is 50 fetches a day" in done.stdout
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines() if " x " in line]
    assert [row[:2] for row in rows] == [["25", "0.5 x"], ["50", "1 x"], ["200", "4 x"]]
    assert "slow.test" in done.stdout
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_it_says_which_budgets_do_not_reach_the_longest_interval(url: str, recrawl: Recrawl) -> None:
    said = recrawl(url, "--budget", "2,50").stdout
    assert (
        "\nAt 2 fetches a day longest_interval (60 days) is not kept: the least frequencies get at most half "
        "of the budget and half of a host's slots, so a page may wait 100 days.\n" in said
    )
    assert said.count("is not kept") == 1


def test_without_matplotlib_it_says_what_to_install(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recrawl: Recrawl
) -> None:
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    done = recrawl(url, "--png", str(tmp_path / "plan.png"))
    assert done.returncode == 1
    assert done.stderr == "recrawl: matplotlib is missing; install it with: pip install 'recrawl[png]'\n"
    assert "slow.test" in done.stdout, "the table comes all the same"


def test_it_changes_nothing(url: str, connection: psycopg.Connection, recrawl: Recrawl) -> None:
    assert recrawl(url, "--freshness", "0.4").returncode == 0
    assert Crawl(connection).value("select count(*) from host_terms where is_capped is not null") == 0
    assert Crawl(connection).rows("select * from job_run") == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--budget", "7y"], "from 1e-6 to 1e12, or multiples like 2x, got '7y'"),
        (["--budget", "1e300"], "from 1e-6 to 1e12, or multiples like 2x, got '1e300'"),
        (["--budget", "-1"], "--budget must be numbers of fetches a day from 1e-6 to 1e12, or multiples like 2x, got"),
        (["--freshness", "1"], "share must be 0 or more, and less than 1, got 1.0"),
        (["--freshness", "0.99"], "share must be at most"),
    ],
)
def test_what_cannot_be_answered_is_said_in_one_line(
    url: str, recrawl: Recrawl, arguments: list[str], says: str
) -> None:
    done = recrawl(url, *arguments)
    assert done.returncode == 64
    (line,) = done.stderr.splitlines()
    assert says in line


def test_multiples_of_no_budget_are_refused_and_numbers_are_answered(
    url: str, connection: psycopg.Connection, recrawl: Recrawl
) -> None:
    crawl = Crawl(connection)
    crawl.value("select set_setting('policy', 'best_first')")
    crawl.value("select set_setting('budget', null)")
    done = recrawl(url)
    assert (done.returncode, done.stderr) == (
        64,
        "recrawl: the present budget is 0 fetches a day, so --budget must name numbers, for example 1000,10000. "
        "Try: recrawl plan --help\n",
    )
    done = recrawl(url, "--budget", "100")
    assert done.returncode == 0 and "of the present" not in done.stdout and " 100 " in f" {done.stdout}", done


def test_a_crawl_without_pages_is_told(template: str, new_database: Callable[..., str], recrawl: Recrawl) -> None:
    done = recrawl(new_database(template))
    assert (done.returncode, done.stderr) == (1, f"recrawl: {NOBODY_TAKES_PART}\n")
