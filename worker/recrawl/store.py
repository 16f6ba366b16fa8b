"""The only place that talks SQL for the worker and the command line. Has no mathematics and no opinions."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.importers import Page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Connection = psycopg.Connection[Any]


def connect(url: str, name: str = "recrawl") -> Connection:
    """A connection in autocommit: every verb is a transaction of its own."""
    return psycopg.connect(url, autocommit=True, application_name=name)


def put_on_search_path(connection: Connection) -> None:
    """From the next connection on, `SELECT * FROM next_pages(100)` works as written."""
    connection.execute(
        sql.SQL('alter database {} set search_path = "$user", public, recrawl').format(
            sql.Identifier(connection.info.dbname)
        )
    )


def tick(connection: Connection, max_leases: int = 200, max_entries: int = 2000) -> int:
    """One step of the queue's upkeep; how many pages it moved."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute("select recrawl_internal.tick(%s, %s)", [max_leases, max_entries])
        return int(cursor.fetchone() or 0)


@dataclass
class Added:
    """How many URLs of a batch came out as what, and a few of those that are invalid."""

    counts: dict[str, int] = field(default_factory=dict)
    invalid: list[tuple[str, str]] = field(default_factory=list)


def add_pages(connection: Connection, pages: Sequence[Page]) -> Added:
    rows = connection.execute(
        """
        select code, count(*), (array_agg(array[url, detail]) filter (where code = 'invalid'))[:3]
        from recrawl.add_pages(%b::text[], %b::float8[], %b::float8[], %b::timestamptz[], %b::jsonb[])
        group by code
        """,
        [
            [page.url for page in pages],
            _column([page.value for page in pages]),
            _column([page.rate for page in pages]),
            _column([page.due for page in pages]),
            _column([page.meta and Jsonb(page.meta) for page in pages]),
        ],
    ).fetchall()
    added = Added()
    for code, count, invalid in rows:
        added.counts[code] = count
        added.invalid += [(url, detail) for url, detail in invalid or []]
    return added


def _column(values: list[Any]) -> list[Any] | None:
    """None stands for a column in which nothing is given."""
    return values if any(value is not None for value in values) else None


def next_pages(
    connection: Connection, n: int, ahead: timedelta, lease: timedelta, per_host: int | None
) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.next_pages(%s, %s, %s, %s)", [n, ahead, lease, per_host])
        return cursor.fetchall()


def queue_status(connection: Connection) -> dict[str, Any]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.queue_status")
        return cursor.fetchone() or {}


# -------------------------------------------------------------------------------------------------------- batch jobs


@dataclass(frozen=True)
class Settings:
    """What allocation obeys. Fetches per day, shares and days."""

    frequency: float
    budget: float | None
    objective: str
    exploration: float
    longest_interval: float | None
    shortest_interval: float | None


def settings(connection: Connection) -> Settings:
    rows = connection.execute("select name, value from recrawl.settings").fetchall()
    given = {name: value for name, value in rows if value is not None}
    days = "select extract(epoch from %s::interval)::float8 / 86400"

    def interval(name: str) -> float | None:
        row = connection.execute(days, [given[name]]).fetchone() if name in given else None
        return float(row[0]) if row else None

    return Settings(
        frequency=float(given["frequency"]),
        budget=float(given["budget"]) if "budget" in given else None,
        objective=given["objective"],
        exploration=float(given["exploration"]),
        longest_interval=interval("longest_interval"),
        shortest_interval=interval("shortest_interval"),
    )


@dataclass(frozen=True)
class PagesToAllocate:
    page_id: "NDArray[np.int64]"
    host_id: "NDArray[np.int64]"
    value: "NDArray[np.float32]"
    rate: "NDArray[np.float32]"  # changes per day
    frequency: "NDArray[np.float32]"  # fetches per day, as stored; NaN = none


@dataclass(frozen=True)
class HostsToAllocate:
    host_id: "NDArray[np.int64]"  # ascending
    cap: "NDArray[np.float64]"  # fetches per day


@dataclass(frozen=True)
class Evidence:
    """On how often pages change: the filter's numbers beyond its prior."""

    host_id: "NDArray[np.int64]"
    changes: "NDArray[np.float32]"
    days: "NDArray[np.float32]"


def pages_to_allocate(url: str) -> PagesToAllocate:
    query: LiteralString = "select page_id, host_id, value, rate, frequency from recrawl_internal.page_to_allocate"
    return PagesToAllocate(*_columns(url, query))


def hosts_to_allocate(url: str) -> HostsToAllocate:
    return HostsToAllocate(
        *_columns(url, "select host_id, cap from recrawl_internal.host_to_allocate order by host_id")
    )


def evidence(url: str) -> Evidence:
    return Evidence(*_columns(url, "select host_id, seen_changes, seen_days from recrawl_internal.page_evidence"))


@dataclass(frozen=True)
class LoggedVisits:
    """Page by page; beside each visit the filter's numbers on its page."""

    page_id: "NDArray[np.int64]"
    days: "NDArray[np.float32]"
    changed: "NDArray[np.int32]"
    belief_changes: "NDArray[np.float64]"
    belief_days: "NDArray[np.float64]"


def logged_visits(url: str) -> LoggedVisits:
    query: LiteralString = (
        "select page_id, days, changed, belief_changes, belief_days from recrawl_internal.visit_to_audit"
    )
    return LoggedVisits(*_columns(url, query))


def host_names(connection: Connection, host_ids: Sequence[int]) -> list[str]:
    rows = connection.execute(
        """
        select name from unnest(%b::bigint[]) with ordinality as wanted (host_id, place)
        join recrawl_internal.host_to_allocate using (host_id) order by place
        """,
        [list(host_ids)],
    ).fetchall()
    return [name for (name,) in rows]


def _columns(url: str, query: LiteralString) -> "list[NDArray[Any]]":
    """The columns of a query, none of which may hold nulls, in one short transaction.

    By ADBC: three times as fast as psycopg's COPY for ten million rows, and without a Python object a row.
    """
    import adbc_driver_postgresql.dbapi as adbc
    import nanoarrow
    import numpy as np

    kinds = {"int32": np.int32, "int64": np.int64, "float": np.float32, "double": np.float64}
    with adbc.connect(url) as connection, connection.cursor() as cursor:
        try:
            cursor.execute(query)
        except adbc.Error as error:
            raise psycopg.DatabaseError(str(error).rpartition("ERROR: ")[2].splitlines()[0].strip()) from None
        stream = nanoarrow.ArrayStream(cursor.fetch_arrow())
        dtypes = [kinds[field.type.name.lower()] for field in stream.schema.fields]
        chunks: list[list[NDArray[Any]]] = [[] for _ in dtypes]
        for batch in stream:
            for column, dtype, child in zip(chunks, dtypes, batch.iter_children(), strict=True):
                column.append(
                    np.frombuffer(child.buffers[1], dtype, len(child), child.offset * np.dtype(dtype).itemsize)
                )
    columns = []
    for dtype in reversed(dtypes):  # one at a time, so that no two copies of all of them are there at once
        parts = chunks.pop()
        columns.append(np.concatenate(parts) if parts else np.empty(0, dtype))
    return columns[::-1]


ALIVE_FOR = timedelta(minutes=1)
HEARTBEAT_SECONDS = 15.0
CHUNK = 10_000


@dataclass
class Run:
    """A run of a job. Whatever it writes is refused once another worker has taken the job over."""

    connection: Connection
    token: int
    message: str = ""

    def put_prices(
        self,
        allocation: dict[str, object],
        host_ids: "NDArray[np.int64]",
        prices: "NDArray[np.float64]",
        ties: "NDArray[np.float64]",
        floors: "NDArray[np.float64]",
        capped: "NDArray[np.bool_]",
        frequencies: "NDArray[np.float64]",
    ) -> None:
        record = {
            name: str(v) if isinstance(v, float) and not math.isfinite(v) else v for name, v in allocation.items()
        }
        self.connection.execute(
            """
            select recrawl_internal.put_prices(
                %b, %b, %b,
                %b::bigint[], %b::float8[], %b::float8[], %b::float8[], %b::boolean[], %b::float8[])
            """,
            [
                self.token, ALIVE_FOR, Jsonb(record | {"token": self.token}), host_ids.tolist(), prices.tolist(),
                ties.tolist(), floors.tolist(), capped.tolist(), frequencies.tolist(),
            ],
        )  # fmt: skip

    def put_priors(
        self, host_ids: "NDArray[np.int64]", changes: "NDArray[np.float64]", days: "NDArray[np.float64]"
    ) -> None:
        self.connection.execute(
            "select recrawl_internal.put_priors(%b, %b, %b::bigint[], %b::float8[], %b::float8[])",
            [self.token, ALIVE_FOR, host_ids.tolist(), changes.tolist(), days.tolist()],
        )

    def put_frequencies(
        self,
        page_ids: "NDArray[np.int64]",
        frequencies: "NDArray[np.float32]",
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        """In chunks, each a transaction of its own; `watch` sees how many are done."""
        for start in range(0, len(page_ids), CHUNK):
            chunk = slice(start, start + CHUNK)
            self.connection.execute(
                "select recrawl_internal.put_frequencies(%b, %b, %b::bigint[], %b::real[])",
                [self.token, ALIVE_FOR, page_ids[chunk].tolist(), frequencies[chunk].tolist()],
            )
            watch(min(start + CHUNK, len(page_ids)))


@contextmanager
def run(url: str, job: str) -> Iterator[Run]:
    """A run of a job, which no other worker can run meanwhile; it is in job_run however it ends."""
    with connect(url, f"recrawl {job}") as connection:
        with connection.cursor(row_factory=scalar_row) as cursor:
            token = cursor.execute("select recrawl_internal.start_job(%s, %s)", [job, ALIVE_FOR]).fetchone()
        running = Run(connection, int(token or 0))
        with _heartbeat(url, running.token):
            try:
                yield running
            except BaseException as error:
                with suppress(psycopg.Error):
                    _end(connection, running.token, False, str(error) or type(error).__name__)
                raise
            _end(connection, running.token, True, running.message)


def _end(connection: Connection, token: int, ok: bool, message: str) -> None:
    connection.execute("select recrawl_internal.end_job(%s, %s, %s)", [token, ok, " ".join(message.split())])


@contextmanager
def _heartbeat(url: str, token: int) -> Iterator[None]:
    """Signs of life while nothing is written: computing may take minutes."""
    done = threading.Event()

    def beat() -> None:
        # When it cannot be heard, or another worker took over, the next write says so.
        with suppress(psycopg.Error), connect(url, "recrawl heartbeat") as connection:
            while not done.wait(HEARTBEAT_SECONDS):
                connection.execute("select recrawl_internal.keep_job(%s, %s)", [token, ALIVE_FOR])

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
