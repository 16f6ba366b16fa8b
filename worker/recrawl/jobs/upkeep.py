"""The queue's upkeep: calls tick() of the database, and applies boosts to pages, until nothing is left to do."""

import psycopg

from recrawl import store
from recrawl.jobs.job import Job, Tell, silent
from recrawl.words import things


class Upkeep(Job):
    """Keeps its connection between runs, and opens a new one after an error."""

    def run(self, tell: Tell = silent) -> str:
        moved = 0
        try:
            self.connection = self.connection or store.connect(self.url, store.calls.WORKER)
            # One step of the queue, then one step of the boosts: so neither waits until the other has no work.
            is_done = False
            while not self.is_stopped and not is_done:
                step = store.calls.tick(self.connection)
                is_done = not store.calls.follow_boosts(self.connection) and not step
                moved += step
        except psycopg.Error:
            self.close()
            if not self.is_stopped:
                raise
        return f"{things(moved, 'page')} came into the queue"

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None
