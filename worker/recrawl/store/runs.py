"""Runs of jobs, and what they write: nothing of it is taken once another worker has taken the job over."""

import math
import threading
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

ALIVE_FOR = timedelta(minutes=1)
HEARTBEAT_SECONDS = 15.0
CHUNK = 10_000
SPREAD = 8  # of the 25 pages in a block a chunk writes three: there is room for four
STOPPED = "stopped"  # no failure: see job_schedule

# What an array is in SQL, by its dtype; an empty one does not say it by itself.
CASTS = {"int64": "bigint[]", "float64": "float8[]", "float32": "real[]", "bool": "boolean[]"}


@dataclass
class Run:
    """A run of a job. Its token is the first argument of whatever it writes by, and how long it is alive the second."""

    connection: Connection
    token: int
    message: str = ""

    def put(self, function: str, *arguments: Any) -> Any:
        """Calls a function of recrawl_internal: in one transaction, which is refused if the job was taken over.

        Arrays are numpy arrays; a mapping goes as JSON.
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
        with self.connection.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(call, values).fetchone()

    def put_in_chunks(
        self, function: str, *columns: "NDArray[Any]", watch: Callable[[int], None] = lambda _: None
    ) -> None:
        """The same, CHUNK rows at a time, each a transaction of its own; `watch` sees how many are done.

        Rows that follow each other lie in the same blocks: a chunk takes one in SPREAD of them, and the next one finds
        room where its old versions were. Of a million pages 98 % stayed in their blocks, in order only half.
        """
        rows = len(columns[0])
        spread = SPREAD if rows > CHUNK else 1  # what fits one chunk is there whole, or not at all
        done = 0
        for start in range(0, rows, spread * CHUNK):
            for first in range(start, min(start + spread, rows)):
                chunk = slice(first, start + spread * CHUNK, spread)
                self.put(function, *(column[chunk] for column in columns))
                done += len(columns[0][chunk])
                watch(done)


def _json(record: Mapping[str, Any]) -> Jsonb:
    """JSON has no infinite numbers; as text they are what SQL reads."""
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
