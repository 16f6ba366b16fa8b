"""Which jobs there are. The command line, its help, the worker's schedule and the tests of roles follow from this."""

from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.jobs.job import Job


@dataclass(frozen=True)
class JobEntry:
    """A job `name` is the class of that name, capitalised, in the module of that name."""

    name: str
    does: str
    every: timedelta | None = None  # how often the worker runs it; None = a batch job: its setting says, NAME_every

    @property
    def is_batch(self) -> bool:
        """It may take minutes, runs in a process of its own and is in job_run."""
        return self.every is None

    def load(self) -> "type[Job]":
        """Only now: numpy and what is compiled take a second, psycopg .2 s, which `--help` has no use for."""
        loaded: type[Job] = getattr(import_module(f"recrawl.jobs.{self.name}"), self.name.capitalize())
        return loaded


JOBS = {
    entry.name: entry
    for entry in (
        JobEntry(
            "upkeep",
            "give back what leases that ran out hold, and take new pages into the queue",
            timedelta(seconds=0.4),
        ),
        JobEntry(
            "vitals",
            "add up what was reported, minute by minute, and look at how things stand",
            timedelta(minutes=1),
        ),
        JobEntry(
            "retention",
            "delete what is older than the settings keep_vitals and keep_history",
            timedelta(hours=1),
        ),
        JobEntry(
            "rates",
            "learn how often the pages of each host tend to change",
        ),
        JobEntry(
            "opic",
            "find out from the links how good each page is as a hub and as an authority, and what it is worth",
        ),
        JobEntry(
            "allocate",
            "divide the budget of fetches between all pages, as serves the objective best within every host's gap",
        ),
    )
}
