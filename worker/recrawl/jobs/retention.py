"""Deletes rows that are older than the settings keep_vitals and keep_history."""

from recrawl import store
from recrawl.jobs.job import Job, Tell, silent
from recrawl.words import things


class Retention(Job):
    def run(self, tell: Tell = silent) -> str:
        with store.connect(self.url, "recrawl retention") as self.connection:
            gone = store.calls.forget_history(self.connection)
        return f"{things(gone, 'old row')} deleted"
