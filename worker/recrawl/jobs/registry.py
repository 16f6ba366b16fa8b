"""The list of jobs. The command line, its help, the worker's schedule and the tests of roles are made from it."""

from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recrawl.jobs.job import Job


@dataclass(frozen=True)
class JobEntry:
    """A job `name` is the class of that name, capitalised, in the module of that name.

    A batch job may take minutes, runs in a process of its own and has a row in job_run.
    """

    name: str
    does: str
    every: timedelta | None  # None = a batch job, whose interval is the setting NAME_every

    @property
    def is_batch(self) -> bool:
        return self.every is None

    def load(self) -> "type[Job]":
        """Imported late: numpy and compiled code take a second, psycopg .2 s, and `--help` needs neither."""
        loaded: type[Job] = getattr(import_module(f"recrawl.jobs.{self.name}"), self.name.capitalize())
        return loaded


JOBS = {
    name: JobEntry(name, does, every)
    for name, does, every in (
        ("upkeep", "release the pages of ended leases, and put new pages into the queue", timedelta(seconds=0.4)),
        (
            "vitals",
            "count what was reported, minute by minute, and sample the state of the crawl",
            timedelta(minutes=1),
        ),
        ("retention", "delete rows that are older than the settings keep_vitals and keep_history", timedelta(hours=1)),
        ("rates", "learn how often the pages of each host usually change", None),
        ("opic", "compute the values of pages from the links between them", None),
        (
            "allocate",
            "divide the budget (the fetches per day) between the pages, so that the freshness is as high as possible; "
            "the setting objective can choose another goal",
            None,
        ),
    )
}
