"""A worker does the registry's jobs by itself, beside its upkeep."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from helpers import Crawl
from recrawl.jobs.registry import JOBS

BATCH = [name for name, entry in JOBS.items() if entry.is_batch]
# The worker, but for the minute that it gives a start to settle.
WORKER = """
import logging, sys
from datetime import timedelta
from recrawl import schedule
logging.basicConfig(format="%(message)s", level=logging.INFO)
schedule.SETTLED = timedelta(0)
schedule.run(sys.argv[1], ready=lambda: print("ready", flush=True))
"""


@contextmanager
def worker(url: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout and process.stdout.readline() == "ready\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.05)


def runs(crawl: Crawl) -> list[tuple[str, bool | None]]:
    return [(row["job"], row["ok"]) for row in crawl.rows("select job, ok from job_run order by started_at")]


@pytest.mark.parametrize("name", JOBS)
def test_every_job_of_the_registry_can_be_loaded_and_says_what_it_does(name: str) -> None:
    assert JOBS[name].load().__name__.lower() == name
    assert JOBS[name].does and JOBS[name].every.total_seconds() > 0


def test_what_is_overdue_runs_in_the_order_of_the_registry_while_upkeep_goes_on(crawl: Crawl, url: str) -> None:
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}', rate => '{1}')")
    with worker(url) as process:
        wait_for(lambda: len(runs(crawl)) == len(BATCH) and all(ok for _, ok in runs(crawl)))
        crawl.connection.execute("select recrawl.add_pages('{http://b.test/}')")
        wait_for(lambda: crawl.value("select count(*) from inbox") == 0, 5)
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        _, said = process.communicate()
    assert [job for job, _ in runs(crawl)] == BATCH
    assert [line.split(":")[0] for line in said.splitlines()] == BATCH, "a line for each"


def test_what_ran_lately_is_not_run_again(crawl: Crawl, url: str) -> None:
    crawl.connection.execute(
        "insert into job (token, job, started_at, alive_until, ended_at, ok)"
        " select nextval('job_token'), j, now(), now(), now(), true from unnest(%s::text[]) j",
        [BATCH],
    )
    with worker(url):
        time.sleep(2)
        assert len(runs(crawl)) == len(BATCH)


def test_a_stop_does_not_wait_for_a_job_and_the_job_says_so(crawl: Crawl, url: str) -> None:
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}', rate => '{1}')")
    with psycopg.connect(url) as holder, worker(url) as process:
        # Somebody who keeps `rates` from writing.
        holder.execute("lock table recrawl_internal.host_terms")
        waits = (
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and application_name = 'recrawl rates' and wait_event_type = 'Lock'"
        )
        wait_for(lambda: crawl.value(waits))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
        holder.rollback()
        wait_for(lambda: runs(crawl)[-1] == ("rates", False), 20)


def test_a_job_that_is_killed_is_one_failed_run_and_the_others_go_on(crawl: Crawl, url: str) -> None:
    with psycopg.connect(url) as holder, worker(url) as process:
        holder.execute("lock table recrawl_internal.host_terms")
        wait_for(lambda: runs(crawl))
        (child,) = (int(pid) for pid in os.popen(f"pgrep -P {process.pid}").read().split())
        os.kill(child, signal.SIGKILL)
        holder.rollback()
        wait_for(lambda: ("allocate", True) in runs(crawl))
        assert process.poll() is None
