"""All SQL of the worker and the command line. It computes and decides nothing.

There is one file per reader or writer: `store.reads` for the jobs, `store.runs` for a run of a job, `store.looks` for
people.
"""

from recrawl.store import looks, reads, runs, schedule, scrape, server, verbs
from recrawl.store.connection import SEARCH_PATH, Connection, cancel, connect, is_away, only_read, put_on_search_path

__all__ = [
    "SEARCH_PATH", "Connection", "cancel", "connect", "is_away", "looks", "only_read", "put_on_search_path",
    "reads", "runs", "schedule", "scrape", "server", "verbs",
]  # fmt: skip
