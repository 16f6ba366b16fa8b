"""The worker's clockwork: which job runs how often. APScheduler wiring and nothing else."""

import logging
import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

import psycopg
from apscheduler.schedulers.blocking import BlockingScheduler

from recrawl import store

log = logging.getLogger(__name__)

TICK_SECONDS = 0.2


class Upkeep:
    """The queue's upkeep, on one connection that is made again when it breaks."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: store.Connection | None = None
        self.is_answered = True
        self.is_stopped = False

    def __call__(self) -> None:
        try:
            self.connection = self.connection or store.connect(self.url, "recrawl worker")
            while not self.is_stopped and store.tick(self.connection):
                pass
            if not self.is_answered:
                log.info("the database answers again")
                self.is_answered = True
        except psycopg.OperationalError as error:
            if self.is_answered and not self.is_stopped:
                log.warning("the database does not answer, trying again: %s", str(error).splitlines()[0])
            self.is_answered = False
            self.close()

    def stop(self) -> None:
        """Takes back the step it is at, which may be waiting for a lock; it is a transaction, and not missed."""
        self.is_stopped = True
        if self.connection:
            with suppress(psycopg.Error):
                self.connection.cancel_safe(timeout=1)

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None


def run(url: str, ready: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM. Raises at once if the database cannot be reached or was not migrated."""
    upkeep = Upkeep(url)
    upkeep.connection = store.connect(url, "recrawl worker")
    store.tick(upkeep.connection)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    scheduler = BlockingScheduler(
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}, timezone="UTC"
    )
    scheduler.add_job(upkeep, "interval", seconds=TICK_SECONDS, id="upkeep")

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
        if scheduler.running:
            scheduler.shutdown()
    upkeep.close()
