"""A batch job, or the worker that started it, is killed while it reads, while it computes and while it writes.

The phase is held: by a lock that its statement waits for or, while it computes, by what it has to compile first. What
was in force then still is, all of it or all of what follows, and the next run completes.
"""

import math
import os
import signal
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest

from helpers import MINUTE, Crawl, eventually, misplaced, result_of, run_job
from worker.jobs.test_clock import BATCH, child_of, runs, worker

pytestmark = pytest.mark.soak

PAGES, HOSTS = 200, 10

IN_FORCE = {
    "rates": "select host_id, prior_changes, prior_days from host_terms order by host_id",
    "opic": "select page_id, hub, authority, in_links from page_score order by page_id",
    "allocate": "select host_id, price, min_frequency, is_capped::int from host_terms order by host_id",
}


class Phase(NamedTuple):
    """The table that a job waits for in it: the last that it reads, or one that it writes."""

    job: str
    phase: str
    table: str

    def __str__(self) -> str:
        return f"{self.job}-{self.phase}-{self.table}"


PHASES = [
    Phase("rates", "read", "page"),
    Phase("rates", "compute", "page"),
    Phase("rates", "write", "host_terms"),
    Phase("opic", "read", "page_score"),
    Phase("opic", "compute", "page_score"),
    Phase("opic", "write", "page_score"),
    Phase("opic", "write", "opic"),
    Phase("allocate", "read", "new_page"),
    Phase("allocate", "compute", "new_page"),
    Phase("allocate", "write", "allocation"),
    Phase("allocate", "write", "capped_hosts"),  # prices are in force, no page came forward
    Phase("allocate", "write", "inbox"),  # a page's due time moves
]


@pytest.fixture
def moving(crawl: Crawl, url: str) -> Crawl:
    """A crawl in which every job has run, and in which each job would now find a change. No job runs automatically."""
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.add(*(f"http://h{i % HOSTS}.test/{i}" for i in range(PAGES)))
    crawl.tick()
    pages = crawl.next(PAGES, ahead=MINUTE)
    assert len(pages) == PAGES
    crawl.wait(MINUTE)
    links = [[f"http://h{i % HOSTS}.test/{i}" for i in range(place % 7)] for place in range(PAGES)]
    crawl.report(*(result_of(page, links=found) for page, found in zip(pages, links, strict=True)))
    crawl.tick()
    crawl.connection.execute("update page set seen_changes = page_id % 5, seen_days = 4, successes = 3")
    for job in BATCH:
        run_job(job, url)
        crawl.value("select set_setting(%s, 'none')", f"{job}_every")
    crawl.connection.execute("update page set seen_changes = page_id % 11, seen_days = 3")
    crawl.connection.execute("update link set targets = '' where page_id % 3 = 0")
    crawl.connection.execute("truncate job")
    return crawl


def in_force(crawl: Crawl, job: str) -> list[float]:
    rows = crawl.connection.execute(IN_FORCE[job].encode()).fetchall()
    return [math.nan if figure is None else float(figure) for row in rows for figure in row]


def is_same(found: list[float], other: list[float]) -> bool:
    """But for what a second run finds a little better: scores are written where they moved by a hundredth."""
    return len(found) == len(other) and found == pytest.approx(other, rel=0.02, nan_ok=True)


def sessions(crawl: Crawl, job: str) -> str:
    """The present work of the sessions of a run. A session that reads columns has no name."""
    rows = crawl.rows(
        "select application_name as name, wait_event_type as waits from pg_stat_activity"
        " where datname = current_database() and application_name in ('', %s) and pid <> pg_backend_pid() order by 1",
        f"recrawl {job}",
    )
    return " ".join(f"{row['name'] or 'reader'}:{row['waits']}" for row in rows)


@pytest.mark.parametrize("victim", ["child", "worker"])
@pytest.mark.parametrize("held", PHASES, ids=str)
def test_what_was_in_force_stays_and_the_next_run_completes(
    moving: Crawl, url: str, held: Phase, victim: str, tmp_path: Path
) -> None:
    job = held.job
    before = in_force(moving, job)
    # Nothing is compiled yet: computing begins with seconds of that.
    cold = {"XDG_CACHE_HOME": str(tmp_path)} if held.phase == "compute" else {}
    with psycopg.connect(url, application_name="holder") as holder, worker(url, **cold) as first:
        mode = "share" if held.phase == "write" else "access exclusive"
        holder.execute(f"lock table recrawl_internal.{held.table} in {mode} mode".encode())
        moving.value("select set_setting(%s, '1 hour')", f"{job}_every")
        eventually(lambda: ":Lock" in sessions(moving, job))
        child = child_of(first)
        if held.phase == "compute":
            holder.rollback()
            eventually(lambda: sessions(moving, job) == f"recrawl {job}:Client")
        os.kill(child if victim == "child" else first.pid, signal.SIGKILL)
        eventually(lambda: not is_alive(child))
        holder.rollback()
        eventually(lambda: not sessions(moving, job).replace(f"recrawl {job}:Client", ""))
        found = in_force(moving, job)
        if held.phase != "write" and victim == "child":
            assert found == before
        if victim == "child":
            eventually(lambda: runs(moving)[-1] == (job, True), 1800)
            assert first.poll() is None
    if victim == "worker":
        with worker(url):
            eventually(lambda: runs(moving)[-1] == (job, True), 1800)
    assert [ok for _, ok in runs(moving)] == [False, True]
    after = in_force(moving, job)
    assert not is_same(before, after), "there was something to write"
    assert is_same(found, before) or is_same(found, after), "all of it, or nothing"
    run_job(job, url)
    assert is_same(in_force(moving, job), after)
    assert misplaced(moving) == []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
