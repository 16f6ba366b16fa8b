"""The SQL of the jobs and of the commands. The packages setup, client, urlfrontier and lab have SQL of their own.

`reads` and `columns` read for the jobs. They need numpy, so this package does not import them: jobs and lab do. `runs`
writes the results of a job, and `schedule` says which job is due. `views` and `server` read for people, and `scrape`
for Prometheus. `calls` calls the functions of recrawl.
"""

from recrawl.store import calls, runs, schedule, scrape, server, views
from recrawl.store.connection import SEARCH_PATH, Connection, cancel, connect, is_away, only_read

__all__ = [
    "SEARCH_PATH", "Connection", "calls", "cancel", "connect", "is_away", "only_read",
    "runs", "schedule", "scrape", "server", "views",
]  # fmt: skip
