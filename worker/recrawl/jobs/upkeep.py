"""The queue's upkeep: leases that ran out go back, what is new comes in; and boosts reach the pages there are."""

import psycopg

from recrawl import store
from recrawl.jobs.job import Job, Tell, nobody


class Upkeep(Job):
    """Remembers its connection, and makes a new one after that broke."""

    is_stopped = False

    def run(self, tell: Tell = nobody) -> str:
        moved = 0
        try:
            self.connection = self.connection or store.connect(self.url, store.WORKER)
            # In turn, so that neither waits for the other's backlog.
            while not self.is_stopped and (step := store.tick(self.connection) + store.follow_boosts(self.connection)):
                moved += step
        except psycopg.Error:
            self.close()
            if not self.is_stopped:
                raise
        return f"{moved:,} pages came into the queue"

    def stop(self) -> None:
        self.is_stopped = True
        super().stop()

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None
