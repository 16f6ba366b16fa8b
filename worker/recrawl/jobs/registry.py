"""Which jobs there are. The command line, its help, the worker's schedule and the tests of roles follow from this."""

from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module

from recrawl.jobs.job import Job


@dataclass(frozen=True)
class Entry:
    """A job `name` is the class of that name, capitalised, in the module of that name."""

    name: str
    does: str
    every: timedelta  # how often the worker runs it
    is_batch: bool = True  # it may take minutes, and is in job_run

    def load(self) -> type[Job]:
        """Only now: numpy and what is compiled take a second, which `--help` has no use for."""
        loaded: type[Job] = getattr(import_module(f"recrawl.jobs.{self.name}"), self.name.capitalize())
        return loaded


JOBS = {
    entry.name: entry
    for entry in (
        Entry(
            "upkeep",
            "give back what leases that ran out hold, and take new pages into the queue",
            timedelta(seconds=0.2),
            is_batch=False,
        ),
        Entry(
            "rates",
            "learn how often the pages of each host tend to change",
            timedelta(hours=6),
        ),
        Entry(
            "opic",
            "find out from the links how good each page is as a hub and as an authority, and what it is worth",
            timedelta(hours=6),
        ),
        Entry(
            "allocate",
            "divide the budget of fetches between all pages, as serves the objective best within every host's gap",
            timedelta(hours=1),
        ),
    )
}
