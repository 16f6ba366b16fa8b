"""The worker's clockwork: which job runs how often. APScheduler wiring and nothing else."""

import logging
import signal
from collections.abc import Callable
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

    def __call__(self) -> None:
        try:
            self.connection = self.connection or store.connect(self.url, "recrawl worker")
            while store.tick(self.connection):
                pass
        except psycopg.OperationalError as error:
            log.warning("the database does not answer, trying again: %s", str(error).splitlines()[0])
            self.close()

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None


def run(url: str, ready: Callable[[], None] = lambda: None) -> None:
    """Works until SIGINT or SIGTERM, then finishes the step it is at."""
    upkeep = Upkeep(url)
    scheduler = BlockingScheduler(
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None}, timezone="UTC"
    )
    scheduler.add_job(upkeep, "interval", seconds=TICK_SECONDS, id="upkeep")

    def stop(_signal: int, _frame: FrameType | None) -> None:
        scheduler.shutdown(wait=False)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    ready()
    scheduler.start()
    upkeep.close()
