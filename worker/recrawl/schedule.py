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
from datetime import timedelta
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
MOST_PATIENT = 5.0  # seconds, between two tries to reach a database that does not answer


class Ticking:
    """Upkeep that says once when the database does not answer, and once when it does again.

    Where the database cannot be started again either, the worker ends with that `failure`.
    """

    def __init__(self, upkeep: Upkeep, restart: Callable[[], None]) -> None:
        self.upkeep, self.restart = upkeep, restart
        self.patience = 0.0  # seconds; 0 = it answers
        self.again_at = 0.0
        self.mended = ""  # what is said once it works again
        self.failure: Exception | None = None

    def __call__(self) -> None:
        if time.monotonic() < self.again_at:
            return
        try:
            self.upkeep.run()
        except psycopg.Error as error:
            is_away = isinstance(error, psycopg.OperationalError)
            if not self.patience:
                fails, self.mended = (
                    ("the database does not answer", "the database answers again")
                    if is_away
                    else ("upkeep fails", "upkeep goes on again")
                )
                log.warning("%s, trying again: %s", fails, str(error).splitlines()[0])
            self.patience = min(2 * self.patience, MOST_PATIENT) or 0.1
            self.again_at = time.monotonic() + self.patience
            if is_away:
                self._restart()
        else:
            if self.patience:
                log.info(self.mended)
            self.patience = 0.0

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
        self.is_stopped = False

    def __call__(self) -> None:
        try:
            if not self.is_stopped:
                self.job.run()
        except psycopg.Error as error:
            if not self.is_stopped:
                log.warning("%s: %s", self.entry.name, str(error).splitlines()[0])

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
        except psycopg.OperationalError:  # upkeep says so
            self.close()
        except psycopg.Error as error:
            if str(error) != self.problem:
                log.warning("what is due cannot be found out, trying again: %s", str(error).splitlines()[0])
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


def run(url: str, ready: Callable[[], None] = lambda: None, restart: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM. Raises at once if the database cannot be reached or was not migrated.

    `restart` is called when it does not answer later on, and starts it again if it ended.
    """
    upkeep = Upkeep(url)
    upkeep.connection = store.connect(url, store.WORKER)
    store.tick(upkeep.connection)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    executors = {name: ThreadPoolExecutor(1) for name in ("default", "small", "look", "batch")}
    scheduler = BlockingScheduler(
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
