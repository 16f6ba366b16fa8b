"""Runs of jobs, and their writes.

                   put, heartbeat: alive for 45 more seconds
                      ┌────┐
                      │    ▼            end_job
    start_job ──────▶ RUNNING ──────────────────────────▶ ENDED: ok, failed or stopped
                         │
                         │ no put and no heartbeat for 45 seconds, or its connection is lost
                         ▼
                       DEAD: the next start_job, or the worker that leads, records it as failed

A run proves with its token that it still holds its job. The database refuses the writes of a run that is ENDED, or
recorded as failed. So another worker can take the job over, although the old worker may still compute.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.rows import scalar_row
from psycopg.types.json import Jsonb

from recrawl.store.connection import Connection, connect, value

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALIVE_FOR = timedelta(seconds=45)  # without a sign of life
HEARTBEAT_SECONDS = 15.0
PAUSE_SECONDS = 0.5  # before a call is repeated
CHUNK = 10_000
# A block of the table `page` holds 25 rows and has room for four new versions. With every eighth row a chunk writes
# about three rows of each block, so their new versions fit into it.
SPREAD = 8
STOPPED = "stopped"  # no failure: see job_schedule

# The SQL type of an array, by its dtype. PostgreSQL cannot guess the type of an empty array.
CASTS = {"int64": "bigint[]", "float64": "float8[]", "float32": "real[]", "bool": "boolean[]"}


@dataclass
class Run:
    """A run of a job. It writes with functions of recrawl_internal. Their first argument is the token of the run, and
    the second is the time for which the run now counts as alive."""

    connection: Connection
    token: int
    message: str = ""

    def put(self, function: str, *arguments: Any) -> Any:
        """Calls a function of recrawl_internal in one transaction. It fails if another worker took the job over.

        Arrays are numpy arrays. A mapping is sent as JSON.

        A call that reaches its lock_timeout is undone, and made again. If it waited longer, the reports of the pages
        that it has locked would wait until the transaction that blocks the call ends.
        """
        holders, values = [sql.SQL("%b"), sql.SQL("%b")], [self.token, ALIVE_FOR]
        for argument in arguments:
            if hasattr(argument, "dtype"):
                holders.append(sql.SQL("%b::" + CASTS[argument.dtype.name]))
                values.append(argument.tolist())
            else:
                holders.append(sql.SQL("%b"))
                values.append(_json(argument) if isinstance(argument, Mapping) else argument)
        call = sql.SQL("select recrawl_internal.{}({})").format(sql.Identifier(function), sql.SQL(", ").join(holders))
        while True:
            with suppress(psycopg.errors.LockNotAvailable), self.connection.cursor(row_factory=scalar_row) as cursor:
                return cursor.execute(call, values).fetchone()
            time.sleep(PAUSE_SECONDS)

    def put_in_chunks(
        self, function: str, *columns: "NDArray[Any]", watch: Callable[[int], None] = lambda _: None
    ) -> int:
        """Like put(), but in chunks of CHUNK rows, each in a transaction of its own. `watch` gets the number of rows
        done. Returns the sum of what the function returns.

        Neighbouring rows are in the same blocks. So a chunk takes every eighth row (SPREAD), and the next chunk finds
        room where the old versions of these rows were. Of a million pages, 98 % stayed in their blocks; with chunks of
        neighbouring rows it was only half.
        """
        rows = len(columns[0])
        spread = SPREAD if rows > CHUNK else 1  # rows that fit into one chunk are written in one transaction
        done = returned = 0
        for start in range(0, rows, spread * CHUNK):
            for first in range(start, min(start + spread, rows)):
                chunk = slice(first, start + spread * CHUNK, spread)
                returned += self.put(function, *(column[chunk] for column in columns)) or 0
                done += len(columns[0][chunk])
                watch(done)
        return returned


def _json(record: Mapping[str, Any]) -> Jsonb:
    """The record as JSON. Numbers that are not finite become text, because JSON has no such numbers. SQL reads the
    text."""
    return Jsonb({n: str(v) if isinstance(v, float) and not math.isfinite(v) else v for n, v in record.items()})


@contextmanager
def run(url: str, job: str, as_of: datetime | None = None) -> Iterator[Run]:
    """A run of a job. No other worker can run the job during it. However the run ends, it is in job_run.

    `as_of` is the time of a simulation.
    """
    with connect(url, f"recrawl {job}") as connection:
        token = value(connection, "select recrawl_internal.start_job(%s, %s, %s)", job, ALIVE_FOR, as_of)
        running = Run(connection, int(token or 0))
        with _heartbeat(url, running.token):
            try:
                yield running
            except BaseException as error:
                with suppress(psycopg.Error):
                    message = STOPPED if isinstance(error, KeyboardInterrupt) else str(error) or type(error).__name__
                    _end(connection, running.token, False, message)
                raise
            _end(connection, running.token, True, running.message)


def _end(connection: Connection, token: int, ok: bool, message: str) -> None:
    connection.execute("select recrawl_internal.end_job(%s, %s, %s)", [token, ok, " ".join(message.split())])


@contextmanager
def _heartbeat(url: str, token: int) -> Iterator[None]:
    """Tells the database that the run is alive while nothing is written: computing may take minutes."""
    done = threading.Event()

    def beat() -> None:
        # A lost heartbeat does not matter: the next one follows. If another worker took over, the next write fails.
        while not done.is_set():
            with suppress(psycopg.Error), connect(url, "recrawl heartbeat") as connection:
                while not done.wait(HEARTBEAT_SECONDS):
                    connection.execute("select recrawl_internal.keep_job(%s, %s)", [token, ALIVE_FOR])
            done.wait(1)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
