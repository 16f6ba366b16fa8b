"""The loop of a worker: runs the registry's jobs at their times, until it is told to stop. Upkeep, vitals and
retention run in each worker, batch jobs only in the worker that leads. The database keeps the times of batch jobs,
APScheduler all others."""

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from types import FrameType
from typing import Any
from uuid import uuid4

import psycopg
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler

from recrawl import store
from recrawl.jobs.job import Job
from recrawl.jobs.registry import JOBS
from recrawl.jobs.running import BatchRunner, IntervalRunner, UpkeepRunner, first_line
from recrawl.jobs.upkeep import Upkeep

log = logging.getLogger(__name__)

WARM_UP = timedelta(minutes=1)  # from the start of the worker to the first run of any job but upkeep
ASK_EVERY = timedelta(seconds=1)  # between two questions which jobs are due
PATIENT = 2.0  # seconds: while a worker stops, it cancels its queries this often
STEP = timedelta(seconds=1)  # a larger step of the machine's clock sets the jobs' next times anew


class BatchStarter:
    """Starts the batch jobs that are due, if this worker leads. Other workers do nothing here."""

    def __init__(self, url: str, batches: list[BatchRunner], start: Callable[[BatchRunner, str, int], None]) -> None:
        self.url, self.batches, self.start = url, batches, start
        self.connection: store.Connection | None = None
        self.worker = uuid4()  # this worker's name among the others
        self.leads = False  # the answer to its last question whether it leads
        self.is_stopped = False
        self.problem = ""  # the problem that the log already has
        self.starts_from = time.monotonic() + WARM_UP.total_seconds()

    def __call__(self) -> None:
        try:
            if not self.is_stopped:
                self._start_if_it_leads()
                self.problem = ""
        except psycopg.Error as error:
            is_known = str(error) == self.problem or store.is_away(error)  # upkeep logs that the database is away
            if not is_known and not self.is_stopped:
                log.warning("cannot read which jobs are due, trying again: %s", first_line(error))
            self.problem = str(error)
            self.close()

    def _start_if_it_leads(self) -> None:
        self.connection = self.connection or store.connect(self.url, "recrawl schedule")
        led, self.leads = self.leads, store.schedule.leads(self.connection, self.worker)
        if led and not self.leads:
            log.warning("this worker gave no sign of life. Another worker runs the batch jobs now")
        if self.leads:
            store.schedule.end_dead_runs(self.connection)
            if time.monotonic() >= self.starts_from:
                self._start_due_jobs(self.connection)

    def still_leads(self) -> bool:
        """Whether this worker still leads. A job that had to wait asks this first: the worker may have been frozen."""
        with suppress(psycopg.Error):
            return self.connection is not None and store.schedule.leads(self.connection, self.worker)
        return False

    def _start_due_jobs(self, connection: store.Connection) -> None:
        due = store.schedule.due_jobs(connection)
        for batch in self.batches:  # one at a time, in the order of the registry
            batch.kill_if_frozen(batch.entry.name in due)
            if batch.entry.name in due and not batch.is_under_way and not self.is_stopped:
                batch.is_under_way = True
                self.start(batch, *due[batch.entry.name])

    def stop(self) -> None:
        self.is_stopped = True
        store.cancel(self.connection)

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None


class SteppingClockScheduler(BlockingScheduler):
    """APScheduler that keeps its intervals when the machine's clock steps.

    APScheduler goes by dates. After a step of an hour back it would run nothing for an hour. After a step of ten years
    ahead it would first list each run that it missed. So the dates must be corrected before each choice of the jobs to
    run. The only place for this is a private method. test_apscheduler.py tests what this override relies on, for the
    versions that pyproject.toml allows.
    """

    wall_clock_lead: float | None = None  # seconds by which the clock is ahead of the monotonic clock
    # A signal handler only sets this: an exception raised in a signal handler may leave a lock locked forever.
    is_told_to_stop = False

    def _process_jobs(self) -> Any:
        """Moves the jobs after a step of the clock, then runs what is due. APScheduler calls this at least once a
        second, because the seconds that this method returns are at most one."""
        if self.is_told_to_stop:
            self.shutdown(wait=False)  # with wait=True it would hold a lock that a running job may need
            return None
        before, self.wall_clock_lead = self.wall_clock_lead, time.time() - time.monotonic()
        if before is not None and abs(self.wall_clock_lead - before) > STEP.total_seconds():
            log.warning(
                "this machine's clock stepped by %+.0f s. The times of the jobs are adjusted",
                self.wall_clock_lead - before,
            )
        now = datetime.now(UTC)
        # Also without a step: the clock may have stepped ahead and back since the last call, and a job may have got its
        # time in between.
        for job in self.get_jobs():
            every = getattr(job.trigger, "interval", timedelta(0))
            if not now - STEP <= job.next_run_time <= now + every + STEP:
                job.modify(next_run_time=now)
        seconds = super()._process_jobs()
        # APScheduler computes these seconds from dates: after a step back in this very moment they would be an hour.
        return ASK_EVERY.total_seconds() if seconds is None else min(seconds, ASK_EVERY.total_seconds())


def run(url: str, ready: Callable[[], None] = lambda: None, restart: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM. Raises at once if the database cannot be reached or was not migrated.

    `restart` is called when the database stops answering. It starts the database again if that has ended.
    """
    upkeep = Upkeep(url)
    upkeep.connection = store.connect(url, store.calls.WORKER)
    store.calls.tick(upkeep.connection)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    executors = {name: ThreadPoolExecutor(1) for name in ("upkeep", "interval", "starter", "batch")}
    scheduler = SteppingClockScheduler(
        executors=executors,
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        timezone="UTC",
    )

    def start(batch: BatchRunner, why: str, newest: int) -> None:
        # The executor has one thread, so one batch job runs at a time. max_instances is 2, because for a moment after
        # a run has ended, APScheduler may still count it as running.
        scheduler.add_job(
            batch,
            id=batch.entry.name,
            args=[why, newest, starter.still_leads],
            executor="batch",
            replace_existing=True,
            max_instances=2,
        )

    batches = [BatchRunner(entry, url) for entry in JOBS.values() if entry.is_batch]
    upkeep_runner, starter = UpkeepRunner(upkeep, restart), BatchStarter(url, batches, start)
    intervals = {entry.name: entry.every for entry in JOBS.values() if entry.every}
    others = [IntervalRunner(JOBS[name], url) for name in intervals if name != "upkeep"]

    def repeat(work: Callable[[], None], name: str, every: timedelta, executor: str) -> None:
        first = datetime.now(UTC) + min(every, WARM_UP)
        scheduler.add_job(
            work, "interval", seconds=every.total_seconds(), id=name, executor=executor, next_run_time=first
        )

    repeat(starter, "starter", ASK_EVERY, "starter")
    repeat(upkeep_runner, "upkeep", intervals["upkeep"], "upkeep")
    for job in others:
        repeat(job, job.entry.name, intervals[job.entry.name], "interval")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        scheduler.is_told_to_stop = True

    _on_signals(stop)
    ready()
    scheduler.start()  # returns when the scheduler is told to stop
    _end([upkeep, starter, *(other.job for other in others)], batches, executors.values())
    upkeep.close()
    starter.close()
    if upkeep_runner.failure:
        raise upkeep_runner.failure


def _end(parts: list[Job | BatchStarter], batches: list[BatchRunner], executors: Iterable[ThreadPoolExecutor]) -> None:
    """Stops what runs on the executors, and waits until it has ended."""

    def kill(_signal: int, _frame: FrameType | None) -> None:
        for batch in batches:
            batch.kill()

    def stop_again() -> None:
        """Cancels again: a query may have begun right after the first cancel, or a request to cancel was lost."""
        for nth in count():
            if has_ended.wait(PATIENT):
                return
            for part in parts:
                part.stop()
            if nth == 1 and not any(batch.is_running for batch in batches):
                log.info("the database does not answer, waiting for it")

    _on_signals(kill)
    for part in parts:
        part.stop()
    for batch in batches:
        if batch.is_running:
            log.info("waiting for the job %s to stop; a second Ctrl-C kills it", batch.entry.name)
        batch.stop()
    has_ended = threading.Event()
    threading.Thread(target=stop_again, daemon=True).start()
    for executor in executors:
        executor.shutdown(wait=True)
    has_ended.set()


def _on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)
