"""A worker runs the jobs of the registry automatically, and does upkeep at the same time."""

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from command import Running
from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, ended_run, eventually, five_seconds_go_by, misplaced, run_job
from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.setup import embedded
from recrawl.view import facts
from recrawl.view.verdict import checks, verdict

BATCH = [name for name, entry in JOBS.items() if entry.is_batch]
# The worker, but for the minutes that it gives a start to settle, things to move, and vitals to gather.
WORKER = """
import logging, signal, sys
from dataclasses import replace
from datetime import timedelta
from recrawl.jobs import clock
clock.JOBS["vitals"] = replace(clock.JOBS["vitals"], every=timedelta(seconds=1))
logging.basicConfig(format="%(message)s", level=logging.INFO)
clock.WARM_UP = timedelta(0)
clock.ASK_EARLY_EVERY = timedelta(seconds=1)
go = {signal.SIGUSR2}
signal.pthread_sigmask(signal.SIG_BLOCK, go)

def ready():
    print("ready", flush=True)
    if sys.argv[2:] == ["held"]:
        signal.sigwait(go)

clock.run(sys.argv[1], ready)
"""


# Takes the place of numpy, which every batch job needs.
BROKEN, BUSY = (str(Path(__file__).parents[1] / name) for name in ("broken", "busy"))

# A worker that does not wait for hours until it gives a job up.
IMPATIENT = """
from datetime import timedelta
from recrawl.jobs import running
running.LONGEST_RUN = timedelta(seconds=1)
"""

# Told to stop at the very moment that APScheduler hands a job to its thread.
STOPPED_WHILE_SUBMITTING = """
import signal
from apscheduler.executors.pool import ThreadPoolExecutor
submit = ThreadPoolExecutor._do_submit_job

def interrupted(self, job, run_times):
    if job.id == "vitals":
        signal.raise_signal(signal.SIGTERM)
    submit(self, job, run_times)

ThreadPoolExecutor._do_submit_job = interrupted
"""

# The process of a job that is deaf to interrupts at first, as inside a callback of compiled code.
DEAF = """
import sys, time
from recrawl.jobs import child

class Deaf:
    def __del__(self):
        print("deaf", file=sys.stderr, flush=True)
        time.sleep(60)

class Job:
    def __init__(self, url):
        pass

    def run(self):
        Deaf()
        time.sleep(60)

class Entry:
    load = staticmethod(lambda: Job)

child.JOBS = {"rates": Entry}
child.main("rates", "")
"""


@contextmanager
def worker(url: str, before: str = "", *arguments: str, **environment: str) -> Iterator[Running]:
    if path := environment.get("PYTHONPATH"):
        environment["PYTHONPATH"] = os.pathsep.join([path, os.environ.get("PYTHONPATH", "")])
    with Running("-c", before + WORKER, url, *arguments, environment=os.environ | environment) as process:
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            jobs = children(process) if process.poll() is None else []
            process.kill()
            for pid in jobs:  # a frozen one would not notice that its worker is gone
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)


@contextmanager
def held_worker(
    url: str, hold: LiteralString, before: str = ""
) -> Iterator[tuple[psycopg.Connection[tuple[Any, ...]], Running]]:
    """A worker whose jobs begin when another session has executed `hold`. The session comes with it."""
    with psycopg.connect(url) as holder, worker(url, before, "held") as process:
        holder.execute(hold)
        process.send_signal(signal.SIGUSR2)
        yield holder, process


def children(process: Running) -> list[int]:
    return [child.pid for child in psutil.Process(process.pid).children()]


def child_of(process: Running) -> int:
    (child,) = children(process)
    return child


# Statements after which the job `rates` waits, until their transaction ends.
CANNOT_BEGIN: LiteralString = "lock table recrawl_internal.job in access exclusive mode"
CANNOT_READ: LiteralString = "lock table recrawl_internal.page in access exclusive mode"
CANNOT_WRITE: LiteralString = "lock table recrawl_internal.host_terms in share mode"
LOCK_WAITS = (
    "select count(*) from pg_stat_activity where datname = current_database()"
    " and wait_event_type = 'Lock' and pid <> pg_backend_pid()"
)


def runs(crawl: Crawl) -> list[tuple[str, bool | None]]:
    return [(row["job"], row["ok"]) for row in crawl.rows("select job, ok from job_run order by started_at")]


@pytest.fixture
def fetched(crawl: Crawl) -> Crawl:
    """A crawl in which every job has something to write."""
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}', rate => '{1}')")
    crawl.connection.execute("update page set seen_changes = 1, seen_days = 2, successes = 3, fetched_at = now()")
    return crawl


@pytest.mark.parametrize("name", JOBS)
def test_every_job_of_the_registry_can_be_loaded_and_says_what_it_does(name: str) -> None:
    assert JOBS[name].load().__name__.lower() == name
    assert JOBS[name].does


def test_what_is_late_runs_in_the_order_of_the_registry_while_upkeep_goes_on(crawl: Crawl, url: str) -> None:
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}', rate => '{1}')")
    with worker(url) as process:
        eventually(lambda: len(runs(crawl)) == len(BATCH) and all(ok for _, ok in runs(crawl)))
        crawl.connection.execute("select recrawl.add_pages('{http://b.test/}')")
        eventually(lambda: crawl.value("select count(*) from inbox") == 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        _, said = process.communicate()
    assert [job for job, _ in runs(crawl)] == BATCH
    late = ("waiting for", "the database does not answer, waiting")  # while the last process ends, if that takes long
    lines = [line for line in said.splitlines() if not line.startswith(late)]
    assert [line.split()[0] for line in lines] == [f"job={name}" for name in BATCH], "a line for each"


def test_what_ran_lately_is_not_run_again(crawl: Crawl, url: str) -> None:
    crawl.connection.execute(
        "insert into job (token, job, started_at, alive_until, ended_at, ok)"
        " select nextval('job_token'), j, now(), now(), now(), true from unnest(%s::text[]) j",
        [BATCH],
    )
    with worker(url):
        time.sleep(2)
        assert len(runs(crawl)) == len(BATCH)


def test_a_stop_does_not_wait_for_a_job_and_the_job_says_so(fetched: Crawl, url: str) -> None:
    with held_worker(url, CANNOT_WRITE) as (holder, process):
        waits = (
            "select count(*) from pg_stat_activity where datname = current_database()"
            " and application_name = 'recrawl rates' and wait_event_type = 'Lock'"
        )
        eventually(lambda: fetched.value(waits))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        holder.rollback()
        eventually(lambda: runs(fetched)[-1] == ("rates", False))


def test_a_job_that_is_killed_is_one_failed_run_and_the_others_go_on(fetched: Crawl, url: str) -> None:
    patient = "from recrawl.jobs import running\nrunning.SESSION_ENDS = 60\n"  # this machine may be busy
    with held_worker(url, CANNOT_WRITE, patient) as (holder, process):
        eventually(lambda: runs(fetched))
        os.kill(child_of(process), signal.SIGKILL)
        holder.rollback()
        eventually(lambda: ("allocate", True) in runs(fetched))
        assert process.poll() is None
    said = fetched.row("select ok, message from job_run where job = 'rates' order by started_at limit 1")
    assert said == {"ok": False, "message": "its process died (SIGKILL; out of memory?)"}


@pytest.mark.parametrize(
    "hold",
    [
        pytest.param("alter view recrawl_internal.page_evidence set (security_barrier = false)", id="while it reads"),
        pytest.param(CANNOT_WRITE, id="while it writes"),
    ],
)
def test_a_job_that_is_stopped_with_its_worker_has_not_failed(fetched: Crawl, url: str, hold: LiteralString) -> None:
    with held_worker(url, hold) as (holder, process):
        eventually(lambda: fetched.value(LOCK_WAITS))
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        holder.rollback()
    assert fetched.row("select ok, message from job_run") == {"ok": False, "message": "stopped"}
    assert fetched.value("select says from events where kind = 'job' and subject = 'rates'") == "stopped"
    (check,) = [check for check in checks(facts.read(fetched.connection, False)) if check.code == "job_failing"]
    assert check.level == "ok"


def test_a_job_that_never_ends_is_killed_and_the_others_get_their_turn(crawl: Crawl, url: str) -> None:
    with worker(url, IMPATIENT, PYTHONPATH=BUSY) as process:
        eventually(lambda: {job for job, _ in runs(crawl)} == set(BATCH))
        assert process.poll() is None
    said = {(row["ok"], row["message"]) for row in crawl.rows("select ok, message from job_run")}
    assert said == {(False, "its process was killed: it ran for 0:00:01")}


def test_upkeep_ticks_on_while_a_job_computes(crawl: Crawl, url: str) -> None:
    with worker(url, PYTHONPATH=BUSY) as process:
        eventually(lambda: children(process))
        ticks = set()

        def has_ticked_often() -> bool:
            ticks.add(crawl.value("select last_value from worker_ticked"))
            return len(ticks) > 5

        eventually(has_ticked_often)
        assert runs(crawl) == [] and children(process), "it still computes"


def test_a_stop_says_which_job_it_waits_for_and_the_next_one_kills_it(fetched: Crawl, url: str) -> None:
    with held_worker(url, CANNOT_WRITE) as (_, process):
        eventually(lambda: runs(fetched))
        os.kill(child_of(process), signal.SIGSTOP)  # as deaf as one that computes
        process.send_signal(signal.SIGINT)
        assert "waiting for the job rates to stop; a second Ctrl-C kills it" in process.stderr.readline()
        time.sleep(0.5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0


def test_a_stop_is_not_taken_for_the_failure_of_a_job(crawl: Crawl, url: str) -> None:
    with worker(url, STOPPED_WHILE_SUBMITTING) as process:
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and "Error" not in said


def test_two_signals_at_once_stop_it_once(crawl: Crawl, url: str) -> None:
    only(crawl.connection, "")  # a job's process that is interrupted while it loads prints a traceback
    with worker(url) as process:
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):
            process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0 and "Traceback" not in said, said


def test_a_job_hears_an_interrupt_that_python_drops() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", DEAF], stdin=pipe, stderr=pipe, text=True) as process:
        assert process.stderr
        assert process.stderr.readline() == "deaf\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(600) != 0
        said = process.stderr.read()
    assert "ignored" not in said and said.endswith("KeyboardInterrupt\n"), said


@pytest.mark.parametrize("held_for", [0.2, 1, 30])
def test_a_stop_waits_for_nobodys_lock(fetched: Crawl, url: str, held_for: float) -> None:
    with held_worker(url, CANNOT_BEGIN) as (holder, process):
        eventually(lambda: fetched.value(f"{LOCK_WAITS} and query ~ 'end_dead_runs|due_jobs'"))
        process.send_signal(signal.SIGTERM)
        if held_for < 10:
            time.sleep(held_for)
            holder.rollback()  # what it waited for comes just as it stops
        assert process.wait(60) == 0


# The next query of this worker begins half a second after it was told to stop.
LATE_QUERY = """
import time
from recrawl.jobs import clock
step = clock.BatchStarter._start_if_it_leads

def late(self):
    print("between", flush=True)
    while not self.is_stopped:
        time.sleep(0.01)
    time.sleep(0.5)
    step(self)

clock.BatchStarter._start_if_it_leads = late
"""


def test_a_query_that_begins_after_the_stop_is_cancelled_too(fetched: Crawl, url: str) -> None:
    with held_worker(url, CANNOT_BEGIN, LATE_QUERY) as (_, process):
        assert process.stdout.readline() == "between\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.parametrize(("job", "function"), [("upkeep", "tick"), ("vitals", "take_vitals")])
def test_what_goes_wrong_again_and_again_is_said_and_written_down_once(
    fetched: Crawl, url: str, job: str, function: str
) -> None:
    only(fetched.connection, "")
    name = f"worker_{uuid.uuid4().hex[:8]}"
    fetched.connection.execute(f"create role {name} login in role recrawl_worker".encode())
    try:
        login = make_conninfo(url, user=name)
        with worker(login) as process:
            fetched.connection.execute(f"revoke execute on function recrawl_internal.{function} from recrawl_worker")
            eventually(lambda: runs(fetched) == [(job, False)])
            time.sleep(2)
            (check,) = [check for check in checks(facts.read(fetched.connection, False)) if check.code == "job_failing"]
            said = f"{check.headline} {check.detail}"
            assert f"The job {job} failed. Permission denied for function {function}." in said
            assert check.fixes[0].do == f"recrawl run {job}"
            fetched.connection.execute(f"grant execute on function recrawl_internal.{function} to recrawl_worker")
            eventually(lambda: runs(fetched) == [(job, False), (job, True)])
            time.sleep(2)
            process.send_signal(signal.SIGTERM)
            _, said = process.communicate(timeout=60)
        lines = [line for line in said.splitlines() if job in line]
        assert [line.split(":")[0] for line in lines] == [f"{job} fails, trying again", f"{job} works again"], said
        assert runs(fetched) == [(job, False), (job, True)]
        events = [row["says"] for row in fetched.rows("select says from events where subject = %s order by at", job)]
        assert events == [f"failed: permission denied for function {function}", "works again"]
    finally:
        fetched.connection.execute(f"drop role {name}".encode())


def test_what_an_earlier_worker_saw_fail_is_told_by_the_next_one_to_work(fetched: Crawl, url: str) -> None:
    fetched.value("select note_health('vitals', 'No space left on device')")
    fetched.value("select note_health('vitals', 'No space left on device')")
    with worker(url):
        eventually(
            lambda: [run for run in runs(fetched) if run[0] == "vitals"] == [("vitals", False), ("vitals", True)]
        )


# ------------------------------------------------------------------------------------------------------ several workers


LEADER = "select worker from leader"


def test_one_worker_does_the_jobs_and_the_next_one_takes_over_from_a_killed_one(fetched: Crawl, url: str) -> None:
    with held_worker(url, CANNOT_WRITE) as (holder, first):
        eventually(lambda: runs(fetched))
        of_the_first = children(first)
        with worker(url) as second:
            time.sleep(2)
            assert len(runs(fetched)) == 1 and not children(second), "it stands by"
            led = fetched.value(LEADER)
            first.kill()
            alive_until = fetched.value("select alive_until from leader")
            eventually(lambda: fetched.value(LEADER) not in (led, None))
            soon = "select alive_until < %s + '30 s'::interval from leader"
            assert fetched.value(soon, alive_until), "not only when the time of the dead leader is over"
            eventually(lambda: len(runs(fetched)) > 1)
            eventually(lambda: not any(Path(f"/proc/{child}").exists() for child in of_the_first))
            holder.rollback()
            eventually(lambda: len(runs(fetched)) == 1 + len(BATCH) and runs(fetched)[-1][1])
        first_run, *later = runs(fetched)
        assert first_run == ("rates", False) and all(ok for _, ok in later)
        assert fetched.value("select message from job_run order by started_at limit 1") in (
            "stopped",
            "its process died, or lost its connection",
        )


def freeze(process: Running, sign: signal.Signals = signal.SIGSTOP) -> None:
    """Stops a worker and the process of its job, or wakes them up: as on a machine that is suspended."""
    for pid in [process.pid, *children(process)]:
        os.kill(pid, sign)


def a_minute_goes_by(crawl: Crawl) -> None:
    """For a worker and a job without a sign of life: the times until which they count as alive are over."""
    for table in ("leader", "job"):
        (row,) = crawl.rows(f"select alive_until - clock_timestamp() as alive_for from {table}")
        assert row["alive_for"] < MINUTE
        crawl.connection.execute(f"update {table} set alive_until = clock_timestamp()".encode())


def test_a_frozen_worker_is_replaced_within_a_minute_and_writes_nothing_when_it_wakes_up(
    fetched: Crawl, url: str
) -> None:
    with held_worker(url, CANNOT_READ) as (holder, first):
        waits = (
            "select exists (select from pg_stat_activity"
            " where %s = any (pg_blocking_pids(pid)) and query like '%%page_evidence%%')"
        )
        eventually(lambda: fetched.value(waits, holder.info.backend_pid))
        assert runs(fetched) == [("rates", None)]
        freeze(first)
        led = fetched.value(LEADER)
        a_minute_goes_by(fetched)
        holder.rollback()
        newest = newest_run(fetched)
        with worker(url) as second:
            everything_runs_again(fetched, newest)
            (leader,) = {fetched.value(LEADER)} - {led}
            prices = fetched.rows("select * from host_terms order by host_id")
            freeze(first, signal.SIGCONT)
            eventually(lambda: not children(first))
            time.sleep(2)
            assert fetched.value(LEADER) == leader and not children(first), "it stands by"
            assert fetched.rows("select * from host_terms order by host_id") == prices
            assert [job for job, ok in runs(fetched) if not ok] == ["rates"]
            assert second.poll() is None
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=60)
    assert "Another worker runs the batch jobs now" in said
    assert "another worker took this job over" in said


def test_the_leader_stays_while_it_gives_signs_of_life(fetched: Crawl, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as first, psycopg.connect(url, autocommit=True) as second:
        one, two = uuid.uuid4(), uuid.uuid4()

        def leaders() -> list[bool]:
            return [store.schedule.leads(first, one), store.schedule.leads(second, two)]

        assert leaders() == [True, False] == leaders()
        written = "select xmin from leader"
        fetched.connection.execute("update leader set alive_until = clock_timestamp() + '30 s'::interval")
        before = fetched.value(written)
        assert leaders() == [True, False] and fetched.value(written) == before, "it writes only sometimes"
        fetched.connection.execute("update leader set alive_until = clock_timestamp() + '10 s'::interval")
        assert leaders() == [True, False]
        assert fetched.value("select alive_until > now() + '10 s'::interval from leader")
        fetched.connection.execute("update leader set alive_until = now() - '1 s'::interval")
        assert store.schedule.leads(second, two), "the first one was frozen"
        assert leaders() == [False, True]
        fetched.connection.execute("update leader set alive_until = now() + '1 day'::interval")
        assert leaders() == [True, False], "the clock was ahead"
        first.close()
        eventually(lambda: store.schedule.leads(second, two), 25, "the session of the leader has ended")


# A worker that after a signal kills the next process whose job the database has given up, and then waits as usual.
SUSPICIOUS = """
import signal
from datetime import timedelta
from recrawl.jobs import running

patience, give_up = running.KILL_AFTER_DUE, running.BatchRunner._give_up

def lose_patience(*_):
    running.KILL_AFTER_DUE = timedelta(0)

def give_up_once(self, why):
    running.KILL_AFTER_DUE = patience
    give_up(self, why)

running.BatchRunner._give_up = give_up_once
signal.signal(signal.SIGUSR1, lose_patience)
"""


def test_a_frozen_process_of_a_job_is_killed_and_the_job_runs_again(fetched: Crawl, url: str) -> None:
    with held_worker(url, CANNOT_READ, SUSPICIOUS) as (holder, process):
        eventually(lambda: runs(fetched) == [("rates", None)])
        os.kill(child_of(process), signal.SIGSTOP)
        holder.rollback()
        a_minute_goes_by(fetched)
        newest = newest_run(fetched)
        process.send_signal(signal.SIGUSR1)
        everything_runs_again(fetched, newest)
    first, *later = fetched.rows("select job, ok, message from job_run order by started_at")
    assert (first["job"], first["ok"]) == ("rates", False) and {row["ok"] for row in later} == {True}


def test_status_and_doctor_say_that_jobs_are_late_while_the_only_worker_is_frozen(fetched: Crawl, url: str) -> None:
    began(fetched, 2 * DAY)
    for job in BATCH:
        ended_run(fetched, job, True, DAY)
    with psycopg.connect(url) as holder, worker(url) as process:
        holder.execute("lock table recrawl_internal.page in access exclusive mode")
        freeze(process)
        holder.rollback()
        with store.connect(url) as connection:

            def read() -> facts.Facts:
                five_seconds_go_by(fetched)  # again and again, because a tick may still be under way
                return facts.read(connection, is_embedded=False)

            eventually(lambda: verdict(read().figures).code == "worker_silent")
            said = {check.code: check.headline for check in checks(read())}
        assert said["job_late"] == "The job rates should have started 18 h ago."


def newest_run(crawl: Crawl) -> int:
    return int(crawl.value("select last_value from job_token"))


def everything_runs_again(crawl: Crawl, newest: int) -> None:
    again = "select count(distinct job) from job where token > %s and ok"
    eventually(lambda: crawl.value(again, newest) == len(BATCH), 600)


@pytest.mark.soak
def test_of_five_workers_that_die_and_come_late_one_does_the_jobs(fetched: Crawl, url: str) -> None:
    for job in BATCH:
        fetched.value("select set_setting(%s, '10 s')", f"{job}_every")
    with ExitStack() as started:
        crew = [started.enter_context(worker(url)) for _ in range(5)]
        for death in range(4):
            (leader,) = eventually(lambda: [process for process in crew if children(process)])
            leader.kill()
            crew.remove(leader)
            if death < 2:
                crew.append(started.enter_context(worker(url)))
            everything_runs_again(fetched, newest_run(fetched))
        assert len(crew) == 3
    failed = [job for job, ok in runs(fetched) if ok is False]
    assert len(failed) <= 4, "one for each death at most"
    assert fetched.value("select count(*) from job a join job b using (job) where a.token < b.token"
                         " and b.started_at < a.ended_at") == 0, "one at a time"  # fmt: skip
    assert misplaced(fetched) == []


# ----------------------------------------------------------------------------------------------------- what is due when


def test_a_schedule_is_a_setting_that_counts_without_a_restart(fetched: Crawl, url: str) -> None:
    only(fetched.connection, "")
    with worker(url):
        time.sleep(2)
        assert runs(fetched) == []
        fetched.value("select set_setting('rates_every', '10 s')")
        eventually(lambda: ("rates", True) in runs(fetched))


def allocated(crawl: Crawl, url: str) -> Crawl:
    """A crawl in which every job has run and no job is due."""
    crawl.add(*(f"http://{host}.test/{page}" for host in "abc" for page in range(100)), rate=[1])
    began(crawl, 2 * DAY)  # it is not young
    for job in BATCH:
        run_job(job, url)
    crawl.connection.execute(
        "update job set started_at = started_at - '5 min'::interval, ended_at = started_at - '5 min'::interval"
    )
    crawl.connection.execute("update allocation set started_at = started_at - '5 min'::interval")
    crawl.connection.execute("select setval('steered', 1)")  # the test's own settings
    return crawl


def began(crawl: Crawl, ago: timedelta) -> None:
    crawl.connection.execute("insert into vital (at, pages) values (now() - %s, 1)", [ago])


def early(crawl: Crawl) -> dict[str, str]:
    """The early runs of due_jobs(), when 10 seconds have passed."""
    rows = crawl.rows("""
        select job, why
        from job_schedule
        cross join why_allocate_early(clock_timestamp() + '10 s'::interval, ran_at, seconds) why
        where job = 'allocate' and why is not null
        """)
    return {row["job"]: row["why"] for row in rows}


def test_nothing_is_worth_an_early_run_where_nothing_moved(crawl: Crawl, url: str) -> None:
    assert early(allocated(crawl, url)) == {}
    assert [row["due_at"] > crawl.value("select now()") for row in crawl.rows("select * from job_schedule")] == [
        True
    ] * 3


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("select set_setting('exploration', '0.1')", "settings or hosts were changed"),
        ("select set_host('a.test', gap => '1 hour')", "settings or hosts were changed"),
        ("select block_host('a.test')", "settings or hosts were changed"),
        ("update page set value = 2", None),
    ],
)
def test_an_allocation_comes_early_when_what_it_depends_on_moved(crawl: Crawl, url: str, what: str, why: str) -> None:
    assert_comes_early(allocated(crawl, url), url, what, why)


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("update setting set budget = 1.1 * budget", "budget moved"),  # as measure_budget() does
        ("update setting set budget = 1.05 * budget", None),
    ],
)
def test_so_it_does_when_the_budget_is_measured_anew(crawl: Crawl, url: str, what: str, why: str) -> None:
    crawl.value("select set_setting('budget', 'measured')")
    assert_comes_early(allocated(crawl, url), url, what, why)


def assert_comes_early(crawl: Crawl, url: str, what: str, why: str) -> None:
    crawl.connection.execute(what.encode())
    assert early(crawl).get("allocate") == why
    if why:
        run_job("allocate", url)
        assert early(crawl) == {}, "it has just run"
        crawl.connection.execute("update job set ended_at = ended_at - '1 min'::interval")
        assert early(crawl) == {}, "nothing has moved since"


def test_early_runs_take_a_twentieth_of_the_time(crawl: Crawl, url: str) -> None:
    allocated(crawl, url)
    crawl.value("select set_setting('exploration', '0.1')")
    crawl.connection.execute("update job set started_at = ended_at - '1 min'::interval")
    assert early(crawl) == {}
    crawl.connection.execute(
        "update job set ended_at = ended_at - '15 min'::interval, started_at = started_at - '15 min'::interval"
    )
    assert "allocate" in early(crawl)


def test_a_changed_setting_counts_soon_also_before_the_first_allocation(crawl: Crawl) -> None:
    ended_run(crawl, "allocate", True, ago=HOUR / 2)
    crawl.value("select set_setting('budget', '100')")
    assert early(crawl) == {"allocate": "settings or hosts were changed"}


def test_another_policy_waits_for_no_rest(crawl: Crawl, url: str) -> None:
    allocated(crawl, url)
    run_job("allocate", url)
    crawl.value("select set_setting('exploration', '0.1')")
    assert early(crawl) == {}, "that can wait"
    crawl.value("select set_setting('policy', 'uniform')")
    assert early(crawl) == {"allocate": "settings or hosts were changed"}
    run_job("allocate", url)
    crawl.value("select set_setting('policy', 'uniform')")
    assert early(crawl) == {}, "it is in force"


def test_a_job_that_fails_comes_again_ever_later(crawl: Crawl) -> None:
    rests = []
    for _ in range(10):
        with crawl.connection.transaction():  # now() is the same in all statements
            crawl.connection.execute(
                "insert into job (token, job, started_at, alive_until, ended_at, ok, message)"
                " select nextval('job_token'), 'opic', now(), now(), now(), false, 'no memory'"
            )
            (row,) = crawl.rows("select due_at - now() as rest, failures, message from job_schedule where job = 'opic'")
        rests.append(row["rest"].total_seconds())
    assert row["failures"] == 10 and row["message"] == "no memory"
    assert rests == pytest.approx([min(4**n, 6 * 3600) for n in range(10)], abs=0.5)


def test_a_job_of_a_young_crawl_runs_again_whenever_the_crawl_is_twice_as_old(crawl: Crawl) -> None:
    ages, rests = [0.0], []
    with crawl.connection.transaction():  # now() is the same in all statements
        began(crawl, 2 * DAY)
        while ages[-1] < 1500:
            ended_run(crawl, "rates", True, ago=2 * DAY - ages[-1] * MINUTE)
            (row,) = crawl.rows("select due_at - ran_at as rest from job_schedule where job = 'rates'")
            rests.append(row["rest"].total_seconds() / 60)
            ages.append(ages[-1] + rests[-1])
    assert rests == pytest.approx([1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360, 360], rel=0.15)


@pytest.mark.parametrize(("ago", "rest"), [(HOUR, MINUTE), (-HOUR, 6 * HOUR)], ids=["now", "by a clock ahead"])
def test_a_crawl_that_got_its_first_page_after_many_runs_is_young(
    crawl: Crawl, ago: timedelta, rest: timedelta
) -> None:
    for job in BATCH:
        ended_run(crawl, job, True, ago=2 * DAY)
        ended_run(crawl, job, True, ago=2 * HOUR)
    crawl.connection.execute("insert into vital (at, pages) values (now() - '2 days'::interval, 0)")
    began(crawl, ago)
    (row,) = crawl.rows("select due_at - ran_at as rest from job_schedule where job = 'rates'")
    assert row["rest"].total_seconds() == pytest.approx(rest.total_seconds(), abs=5)


def test_a_run_under_a_clock_that_was_ahead_holds_up_nothing(crawl: Crawl) -> None:
    for ok in (True, False):
        ended_run(crawl, "rates", ok, ago=-300 * DAY)
        (row,) = crawl.rows("select due_at <= clock_timestamp() as is_due from job_schedule where job = 'rates'")
        assert row["is_due"]
        with crawl.connection.transaction():  # now() is the same in all statements
            ended_run(crawl, "rates", True, ago=SECOND)
            (row,) = crawl.rows("select due_at - now() as rest from job_schedule where job = 'rates'")
        assert row["rest"].total_seconds() == pytest.approx(6 * 3600, abs=2)


def test_a_job_that_cannot_even_begin_is_a_failed_run(crawl: Crawl, url: str) -> None:
    """Its process starts, and dies of what somebody installed."""
    with worker(url, PYTHONPATH=BROKEN) as process:
        eventually(lambda: len(runs(crawl)) > 2)
        assert {ok for _, ok in runs(crawl)} == {False} and process.poll() is None
        assert "numpy cannot be loaded" in crawl.rows("select message from job_run where job = 'rates'")[0]["message"]


# ------------------------------------------------------------------------------------------------------ what is killed


def test_a_worker_outlives_its_server(home_of_a_crawl: Callable[[str], Path]) -> None:
    folder = home_of_a_crawl("restarted")
    with ExitStack() as running:
        with embedded.server(folder) as url:
            with store.connect(url) as connection:
                only(connection, "rates")
            process = running.enter_context(worker(url))
            eventually(lambda: number_of_runs(url) > 0)
        time.sleep(2)
        with embedded.server(folder) as again:
            assert again == url
            before = number_of_runs(url)
            with store.connect(url) as connection:
                connection.execute("update recrawl_internal.job set started_at = started_at - '1 hour'::interval")
            eventually(lambda: number_of_runs(url) > before)
            assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


def only(connection: psycopg.Connection, job: str) -> None:
    """Sets the schedule: this job runs every hour, and no other batch job runs automatically."""
    for name in BATCH:
        connection.execute("select recrawl.set_setting(%s, %s)", [f"{name}_every", "1 hour" if name == job else "none"])


def number_of_runs(url: str) -> int:
    with store.connect(url) as connection:
        return len(connection.execute("select from recrawl.job_run where ok").fetchall())


@pytest.mark.soak
def test_whenever_a_worker_or_its_job_is_killed_the_next_run_completes(crawl: Crawl, url: str) -> None:
    """A child or a worker dies at a moment of its own, 16 times; what is in force is always a complete result."""
    allocated(crawl, url)
    for job in BATCH:
        crawl.value("select set_setting(%s, '10 s')", f"{job}_every")
    rng = random.Random(3)
    for round_ in range(16):
        crawl.connection.execute("update job set started_at = started_at - '1 min'::interval")
        crawl.connection.execute("update page set pinned_rate = %s", [1 + round_ / 4])
        with worker(url) as process:
            time.sleep(rng.uniform(0.5, 5))
            with suppress(ProcessLookupError):  # the job has just ended
                os.kill(rng.choice([process.pid, *children(process)]), signal.SIGKILL)
            time.sleep(0.5)
    crawl.connection.execute("truncate job")
    with worker(url):
        eventually(lambda: {job for job, ok in runs(crawl) if ok} == set(BATCH), 600)
    (spent,) = crawl.rows("select sum(frequency) as spent from page_status")
    assert spent["spent"] == pytest.approx(300, rel=1e-3)
    assert misplaced(crawl) == []
