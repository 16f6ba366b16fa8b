"""Adds up the reports, minute by minute and hour by hour, and samples the state of the crawl."""

from recrawl import store
from recrawl.jobs.job import Job, Tell, silent


class Vitals(Job):
    def run(self, tell: Tell = silent) -> str:
        with store.connect(self.url, "recrawl vitals") as self.connection:
            is_new = store.calls.take_vitals(self.connection)
        return "the minute that ended last is in the view vitals" + ("" if is_new else " already")
