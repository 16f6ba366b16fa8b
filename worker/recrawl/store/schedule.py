"""What a worker asks about jobs: whether it is the one that does them, and which are due."""

from psycopg.rows import scalar_row

from recrawl.store.connection import Connection


def leads(connection: Connection) -> bool:
    """Whether this session is the worker that does the batch jobs; it stays so until its connection ends."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute("select recrawl_internal.leads()").fetchone())


def due_jobs(connection: Connection, or_early: bool) -> dict[str, tuple[str, int]]:
    """Those that are due, or worth running early: why, and the newest run that there was of any."""
    rows = connection.execute("select job, why, newest from recrawl_internal.due_jobs(%s)", [or_early]).fetchall()
    return {job: (why, newest) for job, why, newest in rows}


def end_dead_runs(connection: Connection) -> None:
    connection.execute("select recrawl_internal.end_dead_runs()")


def note_failure(connection: Connection, job: str, newest: int, message: str, has_died: bool) -> bool:
    """A run that failed before it could begin, or died. Whether it is written down: not while its session lives on."""
    query = "select recrawl_internal.note_failure(%s, %s, %s, %s)"
    return connection.execute(query, [job, newest, message, has_died]).fetchone() == (True,)


def note_health(connection: Connection, job: str, error: str | None) -> None:
    """Of a job that runs all the time, how it fares."""
    connection.execute("select recrawl_internal.note_health(%s, %s)", [job, error])
