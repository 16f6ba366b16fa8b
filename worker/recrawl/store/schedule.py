"""A worker's questions about jobs: whether it leads, and which jobs are due. And its notes about failed runs."""

from datetime import timedelta
from typing import LiteralString
from uuid import UUID

from recrawl.store.connection import Connection, value

LEADS_FOR = timedelta(seconds=30)  # without a sign of life. A leader asks once a second


def leads(connection: Connection, worker: UUID) -> bool:
    """Whether this worker runs the batch jobs."""
    return bool(value(connection, "select recrawl_internal.leads(%s, %s)", worker, LEADS_FOR))


def due_jobs(connection: Connection) -> dict[str, tuple[str, int]]:
    """The jobs that must run now. For each, the reason and the highest token that any run of any job has got."""
    rows = connection.execute("select job, why, newest from recrawl_internal.due_jobs()").fetchall()
    return {job: (why, newest) for job, why, newest in rows}


def end_dead_runs(connection: Connection) -> None:
    connection.execute("select recrawl_internal.end_dead_runs()")


def note_failure(connection: Connection, job: str, newest: int, message: str, has_died: bool) -> bool:
    """Records a run that failed before it could begin, or whose process died. Returns False, and records nothing, while
    the session of the run is still open."""
    query: LiteralString = "select recrawl_internal.note_failure(%s, %s, %s, %s)"
    return value(connection, query, job, newest, message, has_died) is True


def note_health(connection: Connection, job: str, error: str | None) -> None:
    """Records that a job that always runs fails (`error`), or works again (None)."""
    connection.execute("select recrawl_internal.note_health(%s, %s)", [job, error])
