"""The worker's clockwork: the registry of jobs, put on a clock. APScheduler wiring and nothing else."""

import _thread
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import psycopg
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler

from recrawl import store
from recrawl.jobs.registry import JOBS, Entry
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=1)  # after the start, before the first batch job
LOOK = timedelta(seconds=1)  # between two looks at which jobs are due
LOOK_CLOSER = timedelta(minutes=1)  # at which are worth running early
STEP = timedelta(seconds=1)  # of the machine's clock, from which on its dates are put anew
MOST_PATIENT = 5.0  # seconds, between two tries to reach a database that does not answer


class Health:
    """Of a job that runs all the time: only that it fails, and that it goes on again, is said and written down."""

    def __init__(self, job: str, url: str) -> None:
        self.job, self.url = job, url
        self.is_well = True  # as was said
        self.written: bool | None = None  # None = not yet: a worker before this one may have seen it fail

    def note(self, error: psycopg.Error | None = None) -> None:
        """Of each run: the error with which it failed, or none."""
        if error and self.is_well:
            log.warning("%s fails, trying again: %s", self.job, _first_line(error))
        elif not error and not self.is_well:
            log.info("%s goes on again", self.job)
        self.is_well = error is None
        if self.written is not self.is_well:
            with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
                store.note_health(connection, self.job, _first_line(error) if error else None)
                self.written = self.is_well


class Ticking:
    """Upkeep that says once when the database does not answer, and once when it does again.

    Where the database cannot be started again either, the worker ends with that `failure`.
    """

    def __init__(self, upkeep: Upkeep, restart: Callable[[], None]) -> None:
        self.upkeep, self.restart = upkeep, restart
        self.health = Health("upkeep", upkeep.url)
        self.is_away = False  # the database
        self.patience = 0.0  # seconds, until it is tried again
        self.again_at = 0.0
        self.failure: Exception | None = None

    def __call__(self) -> None:
        if time.monotonic() < self.again_at:
            return
        try:
            self.upkeep.run()
        except psycopg.Error as error:
            self.patience = min(2 * self.patience, MOST_PATIENT) or 0.1
            self.again_at = time.monotonic() + self.patience
            if not store.is_away(error):
                self.health.note(error)
                return
            if not self.is_away:
                log.warning("the database does not answer, trying again: %s", _first_line(error))
            self.is_away = True
            self._restart()
        else:
            if self.is_away:
                log.info("the database answers again")
            self.is_away, self.patience = False, 0.0
            if not self.upkeep.is_stopped:
                self.health.note()

    def _restart(self) -> None:
        try:
            self.restart()
        except Exception as failure:
            self.failure = failure
            _thread.interrupt_main()


class Small:
    """A job of a moment, in this process: when it fails, its next turn comes soon."""

    def __init__(self, entry: Entry, url: str) -> None:
        self.entry = entry
        self.job = entry.load()(url)
        self.health = Health(entry.name, url)
        self.is_stopped = False

    def __call__(self) -> None:
        if self.is_stopped:
            return
        try:
            self.job.run()
        except psycopg.Error as error:
            if not self.is_stopped and not store.is_away(error):  # which upkeep says
                self.health.note(error)
        else:
            self.health.note()

    def stop(self) -> None:
        self.is_stopped = True
        self.job.stop()


class Batch:
    """A batch job, in a process of its own (recrawl.jobs.child)."""

    def __init__(self, entry: Entry, url: str) -> None:
        self.entry, self.url = entry, url
        self.process: subprocess.Popen[str] | None = None
        self.is_under_way = self.is_running = self.is_stopped = False

    def __call__(self, why: str, newest: int) -> None:
        """Runs it. `newest` was the last run of any job before."""
        try:
            if not self.is_stopped:
                self.is_running = True
                self._told(self._run(), why, newest)
        finally:
            self.is_under_way = self.is_running = False

    def _run(self) -> dict[str, Any]:
        if not self.process or self.process.poll() is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "recrawl.jobs.child", self.entry.name],
                env=os.environ | {"DATABASE_URL": self.url},  # not in its command line, which is everybody's to read
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,  # Ctrl-C is the worker's, who tells it
            )
        process = self.process
        assert process.stdin and process.stdout
        if self.is_stopped:
            self.stop()
        with suppress(BrokenPipeError):
            process.stdin.write("run\n")
            process.stdin.flush()
        outcome: dict[str, Any] = json.loads(process.stdout.readline() or "{}")
        if not outcome.get("stays"):
            process.stdin.close()
            code = process.wait()
            self.process = None
            outcome = outcome or {"ok": False, "said": f"its process died ({_ending(code)})"}
        return outcome

    def _told(self, outcome: dict[str, Any], why: str, newest: int) -> None:
        if self.is_stopped:
            outcome = {"ok": False, "said": "stopped"}
        level = logging.INFO if outcome["ok"] or self.is_stopped else logging.WARNING
        log.log(level, _line({"job": self.entry.name, "why": why} | outcome))
        if not outcome["ok"] and not self.is_stopped:
            with suppress(psycopg.Error), store.connect(self.url, "recrawl schedule") as connection:
                store.note_failure(connection, self.entry.name, newest, outcome["said"])

    def stop(self) -> None:
        """It is given up: what it wrote so far is complete in itself, and its next run goes on from there."""
        self.is_stopped = True
        if process := self.process:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)

    def kill(self) -> None:
        if process := self.process:
            process.kill()


def _first_line(error: psycopg.Error) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]


def _line(fields: dict[str, Any]) -> str:
    """As those who search logs like it: name=value, quoted where it has more than a word."""
    words = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    is_plain = re.compile(r"[\w.-]+").fullmatch
    return " ".join(f"{name}={word if is_plain(word) else json.dumps(word)}" for name, word in words.items())


def _ending(code: int) -> str:
    return f"{signal.Signals(-code).name}; out of memory?" if code == -signal.SIGKILL else f"exit code {code}"


class Look:
    """Starts the batch jobs that are due, on the one worker that does them; the others stand by."""

    def __init__(self, url: str, batches: list[Batch], start: Callable[[Batch, str, int], None]) -> None:
        self.url, self.batches, self.start = url, batches, start
        self.connection: store.Connection | None = None
        self.leads = False  # as long as the connection lasts
        self.is_stopped = False
        self.problem = ""  # that was told last
        self.from_then_on = time.monotonic() + SETTLED.total_seconds()
        self.closer_at = self.from_then_on

    def __call__(self) -> None:
        try:
            if not self.is_stopped:
                self._look()
                self.problem = ""
        except psycopg.Error as error:
            if not store.is_away(error) and str(error) != self.problem:  # upkeep says that it is away
                log.warning("what is due cannot be found out, trying again: %s", _first_line(error))
            self.problem = str(error)
            self.close()

    def _look(self) -> None:
        self.connection = self.connection or store.connect(self.url, "recrawl schedule")
        self.leads = self.leads or store.leads(self.connection)
        if self.leads:
            store.end_dead_runs(self.connection)
            if time.monotonic() >= self.from_then_on:
                self._start_what_is_due(self.connection)

    def _start_what_is_due(self, connection: store.Connection) -> None:
        looks_closer = time.monotonic() >= self.closer_at
        if looks_closer:
            self.closer_at = time.monotonic() + LOOK_CLOSER.total_seconds()
        due = store.due_jobs(connection, looks_closer)
        for batch in self.batches:  # one at a time, in the order of the registry
            if batch.entry.name in due and not batch.is_under_way and not self.is_stopped:
                batch.is_under_way = True
                self.start(batch, *due[batch.entry.name])

    def stop(self) -> None:
        self.is_stopped = True
        store.cancel(self.connection)

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection, self.leads = None, False


class Clockwork(BlockingScheduler):
    """APScheduler goes by dates: when the machine's clock steps back an hour, nothing would run for an hour."""

    ahead: float | None = None  # of the clock that only runs forward, in seconds

    def _process_jobs(self) -> Any:
        before, self.ahead = self.ahead, time.time() - time.monotonic()
        if before is not None and abs(self.ahead - before) > STEP.total_seconds():
            log.warning("this machine's clock stepped by %+.0f s: the jobs follow", self.ahead - before)
            for job in self.get_jobs():
                job.modify(next_run_time=datetime.now(UTC))
        return super()._process_jobs()


def run(url: str, ready: Callable[[], None] = lambda: None, restart: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM. Raises at once if the database cannot be reached or was not migrated.

    `restart` is called when it does not answer later on, and starts it again if it ended.
    """
    upkeep = Upkeep(url)
    upkeep.connection = store.connect(url, store.WORKER)
    store.tick(upkeep.connection)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    executors = {name: ThreadPoolExecutor(1) for name in ("default", "small", "look", "batch")}
    scheduler = Clockwork(
        executors=executors,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        timezone="UTC",
    )

    def start(batch: Batch, why: str, newest: int) -> None:
        scheduler.add_job(batch, id=batch.entry.name, args=[why, newest], executor="batch", replace_existing=True)

    batches = [Batch(entry, url) for entry in JOBS.values() if entry.is_batch]
    ticking, look = Ticking(upkeep, restart), Look(url, batches, start)
    scheduler.add_job(look, "interval", seconds=LOOK.total_seconds(), id="look", executor="look")
    small = [Small(entry, url) for entry in JOBS.values() if entry.every and entry.name != "upkeep"]
    for entry, work, executor in [
        (JOBS["upkeep"], ticking, "default"),
        *((job.entry, job, "small") for job in small),
    ]:
        seconds = (entry.every or LOOK).total_seconds()
        scheduler.add_job(work, "interval", seconds=seconds, id=entry.name, executor=executor)

    # Raised, not shut down from here: the signal may come before the scheduler runs, or while it holds its locks.
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    def kill(_signal: int, _frame: FrameType | None) -> None:
        for batch in batches:
            batch.kill()

    try:
        _on_signals(stop)
        ready()
        scheduler.start()
    except KeyboardInterrupt:
        _on_signals(kill)
        parts: list[Upkeep | Look | Small] = [upkeep, look, *small]
        for part in parts:
            part.stop()
        for batch in batches:
            if batch.is_running:
                log.info("waiting for %s to stop; once more kills it", batch.entry.name)
            batch.stop()
        if scheduler.running:
            scheduler.shutdown(wait=False)  # it would wait with a lock in hand that a look may want
            for executor in executors.values():
                executor.shutdown(wait=True)
    upkeep.close()
    look.close()
    if ticking.failure:
        raise ticking.failure


def _on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
