"""The worker's clockwork: the registry of jobs, put on a clock. APScheduler wiring and nothing else."""

import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import FrameType

import psycopg
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler

from recrawl import store
from recrawl.jobs.registry import JOBS, Entry
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=1)  # after the start, before a batch job that is overdue


class Ticking:
    """Upkeep that says once when the database does not answer, and once when it does again."""

    def __init__(self, upkeep: Upkeep) -> None:
        self.upkeep = upkeep
        self.is_answered = True

    def __call__(self) -> None:
        try:
            self.upkeep.run()
        except psycopg.OperationalError as error:
            if self.is_answered:
                log.warning("the database does not answer, trying again: %s", str(error).splitlines()[0])
            self.is_answered = False
        else:
            if not self.is_answered:
                log.info("the database answers again")
            self.is_answered = True


class Batch:
    """A batch job in a process of its own, so that upkeep goes on beside it and its memory comes back."""

    def __init__(self, entry: Entry, url: str) -> None:
        self.entry, self.url = entry, url
        self.process: subprocess.Popen[str] | None = None
        self.is_stopped = False

    def __call__(self) -> None:
        if self.is_stopped:
            return
        self.process = subprocess.Popen(
            [sys.executable, "-m", "recrawl", "run", self.entry.name],
            env=os.environ | {"DATABASE_URL": self.url},  # not in its command line, which is everybody's to read
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,  # Ctrl-C is the worker's, who tells it
        )
        said, _ = self.process.communicate()
        code = self.process.returncode
        lines = [line for line in said.splitlines() if line.strip()]
        log.log(
            logging.WARNING if code and not self.is_stopped else logging.INFO,
            "%s: %s",
            self.entry.name,
            "stopped" if self.is_stopped else lines[-1] if lines else f"ended with {code}",
        )
        self.process = None

    def stop(self) -> None:
        """It is given up: what it wrote so far is complete in itself, and its next run goes on from there."""
        self.is_stopped = True
        if process := self.process:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)


def run(url: str, ready: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM. Raises at once if the database cannot be reached or was not migrated."""
    upkeep = Upkeep(url)
    upkeep.connection = store.connect(url, "recrawl worker")
    store.tick(upkeep.connection)
    last_started = store.last_started(upkeep.connection)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BlockingScheduler(
        executors={"default": ThreadPoolExecutor(1), "batch": ThreadPoolExecutor(1)},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        timezone="UTC",
    )
    batches = [Batch(entry, url) for entry in JOBS.values() if entry.is_batch]
    scheduler.add_job(Ticking(upkeep), "interval", seconds=JOBS["upkeep"].every.total_seconds(), id="upkeep")
    soonest = datetime.now(UTC) + SETTLED
    for place, batch in enumerate(batches):
        name, every = batch.entry.name, batch.entry.every
        due = last_started[name] + every if name in last_started else soonest
        scheduler.add_job(
            batch,
            "interval",
            seconds=every.total_seconds(),
            id=name,
            executor="batch",  # one at a time, in the order of the registry
            next_run_time=max(due, soonest + place * timedelta(seconds=0.1)),
        )

    # Raised, not shut down from here: the signal may come before the scheduler runs, or while it holds its locks.
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        ready()
        scheduler.start()
    except KeyboardInterrupt:
        upkeep.stop()
        for batch in batches:
            batch.stop()
        if scheduler.running:
            scheduler.shutdown()
    upkeep.close()
