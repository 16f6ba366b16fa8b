"""The worker's clockwork: the registry of jobs, put on a clock. APScheduler wiring and nothing else."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

import psycopg
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler

from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.jobs.running import Batch, Small, Ticking, first_line
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

SETTLED = timedelta(minutes=1)  # after the start, before the first batch job
LOOK = timedelta(seconds=1)  # between two looks at which jobs are due
LOOK_CLOSER = timedelta(minutes=1)  # at which are worth running early
PATIENT = 2.0  # seconds, until it says what it waits for before it ends
STEP = timedelta(seconds=1)  # of the machine's clock, from which on its dates are put anew


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
                log.warning("cannot read which jobs are due, trying again: %s", first_line(error))
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
    """APScheduler goes by dates: when the machine's clock steps back an hour, nothing would run for an hour. When it
    steps ten years ahead, each run that there would have been is listed before the next.
    """

    ahead: float | None = None  # of the clock that only runs forward, in seconds
    # Set by a signal, whose handler does no more: an exception out of it may leave a lock taken for ever.
    is_told_to_stop = False

    def _process_jobs(self) -> Any:
        """Comes at least once a second, and as a rule as often as upkeep does."""
        if self.is_told_to_stop:
            self.shutdown(wait=False)  # it would wait with a lock in hand that a look may want
            return None
        before, self.ahead = self.ahead, time.time() - time.monotonic()
        if before is not None and abs(self.ahead - before) > STEP.total_seconds():
            log.warning(
                "this machine's clock stepped by %+.0f s. The times of the jobs are adjusted", self.ahead - before
            )
        now = datetime.now(UTC)
        for job in self.get_jobs():  # also of a step that was taken back before anybody saw it
            every = getattr(job.trigger, "interval", timedelta(0))
            if not now - STEP <= job.next_run_time <= now + every + STEP:
                job.modify(next_run_time=now)
        seconds = super()._process_jobs()
        # By dates as well: of a clock that stepped back just now it would be an hour.
        return LOOK.total_seconds() if seconds is None else min(seconds, LOOK.total_seconds())


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
        # Its thread takes one at a time. Two, as the last run may be over and not yet counted so.
        scheduler.add_job(
            batch, id=batch.entry.name, args=[why, newest], executor="batch", replace_existing=True, max_instances=2
        )

    batches = [Batch(entry, url) for entry in JOBS.values() if entry.is_batch]
    ticking, look = Ticking(upkeep, restart), Look(url, batches, start)
    small = [Small(entry, url) for entry in JOBS.values() if entry.every and entry.name != "upkeep"]

    def again_and_again(work: Callable[[], None], name: str, every: timedelta, executor: str) -> None:
        first = datetime.now(UTC) + min(every, SETTLED)
        scheduler.add_job(
            work, "interval", seconds=every.total_seconds(), id=name, executor=executor, next_run_time=first
        )

    again_and_again(look, "look", LOOK, "look")
    again_and_again(ticking, "upkeep", JOBS["upkeep"].every or LOOK, "default")
    for job in small:
        again_and_again(job, job.entry.name, job.entry.every or LOOK, "small")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        scheduler.is_told_to_stop = True

    def kill(_signal: int, _frame: FrameType | None) -> None:
        for batch in batches:
            batch.kill()

    def tell_what_it_waits_for() -> None:
        if not any(batch.is_running for batch in batches):
            log.info("the database does not answer, waiting for it")

    _on_signals(stop)
    ready()
    scheduler.start()  # until it is told to stop

    _on_signals(kill)
    parts: list[Upkeep | Look | Small] = [upkeep, look, *small]
    for part in parts:
        part.stop()
    for batch in batches:
        if batch.is_running:
            log.info("waiting for the job %s to stop; a second Ctrl-C kills it", batch.entry.name)
        batch.stop()
    waits = threading.Timer(PATIENT, tell_what_it_waits_for)
    waits.start()
    for executor in executors.values():
        executor.shutdown(wait=True)
    waits.cancel()
    upkeep.close()
    look.close()
    if ticking.failure:
        raise ticking.failure


def _on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
