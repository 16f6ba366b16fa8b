"""The queue's upkeep: leases that ran out go back, what is new comes in."""

from contextlib import suppress

import psycopg

from recrawl import store
from recrawl.jobs.job import Job, Tell


class Upkeep(Job):
    """Remembers its connection, and makes a new one after that broke."""

    connection: store.Connection | None = None
    is_stopped = False

    def run(self, tell: Tell = lambda _: None) -> str:
        moved = 0
        try:
            self.connection = self.connection or store.connect(self.url, "recrawl worker")
            while not self.is_stopped and (step := store.tick(self.connection)):
                moved += step
        except psycopg.OperationalError:
            self.close()
            if not self.is_stopped:
                raise
        return f"{moved:,} pages moved"

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
