"""Queries whose columns become numpy arrays.

They use ADBC. For ten million rows it is 3.3 times as fast as psycopg's binary COPY (ADBC 1, psycopg 3.2), and it makes
no Python object for each row.
"""

from collections.abc import Callable
from contextlib import closing
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Self

import adbc_driver_manager
import adbc_driver_postgresql
import adbc_driver_postgresql.dbapi as adbc
import nanoarrow
import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recrawl.client.database import with_timeouts

Watch = Callable[[int], None]  # gets the number of rows read so far


def read(url: str, query: str, watch: Watch = lambda _: None) -> list[NDArray[Any]]:
    """Reads the columns of one query, in a short transaction of its own."""
    with Columns(url) as columns:
        return columns.read(query, watch)


# A batch of this size reuses the memory of the last batch. Batches of ADBC's default size, 16 MB, get new memory from
# the system every time, which took up to half as long as reading (glibc 2.36).
BATCH_BYTES = 1 << 20


@lru_cache(maxsize=1)
def _database(url: str) -> Any:
    """ADBC's database object. It holds the types of the database, and no connection. To read the types takes 32 ms of
    CPU, more than most queries of jobs take, so they are kept for the next connection. Types that are created later are
    not needed: the columns have types of PostgreSQL itself."""
    with psycopg.connect(url) as connection:
        is_quoting = connection.execute("show quote_all_identifiers").fetchone() == ("on",)
    if is_quoting:  # the driver then knows no type, and it reads the types before a statement can change the setting
        given = conninfo_to_dict(url).get("options") or ""
        url = make_conninfo(url, options=f"{given} -c quote_all_identifiers=off")
    return adbc_driver_postgresql.connect(url)


class Columns:
    """A transaction that reads columns. It is committed at the end, unless there was an error."""

    def __init__(self, url: str) -> None:
        self._batches = {adbc_driver_postgresql.StatementOptions.BATCH_SIZE_HINT_BYTES.value: str(BATCH_BYTES)}
        left_open = SimpleNamespace(close=lambda: None)  # the database stays open when its connection closes
        try:
            database = _database(with_timeouts(url))
            self._connection = adbc.Connection(left_open, adbc_driver_manager.AdbcConnection(database))
        except adbc.Error as error:
            raise psycopg.OperationalError(str(error).rpartition("Failed to connect: ")[2].strip()) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with closing(self._connection):
            if kind is None:
                self._connection.commit()

    def execute(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            self._execute(cursor, statement)

    def read(self, query: str, watch: Watch = lambda _: None) -> list[NDArray[Any]]:
        """One array for each column. A column must not contain nulls. In a column of type bytea, each row holds ids of
        8 bytes, one after the other. Such a column gives two arrays: `first`, and the `ids` of all rows. Row r has
        ids[first[r] : first[r + 1]]."""
        with self._connection.cursor() as cursor:
            self._execute(cursor, query)
            stream = nanoarrow.ArrayStream(cursor.fetch_arrow())
            kinds = [field.type.name for field in stream.schema.fields]
            batches: list[list[list[NDArray[Any]]]] = [[] for _ in kinds]
            rows = 0
            for batch in stream:
                rows += len(batch)
                watch(rows)
                for column, kind, child in zip(batches, kinds, batch.iter_children(), strict=True):
                    column.append(_parts(kind, child))
        columns: list[NDArray[Any]] = []
        while kinds:  # one column at a time, so that memory never holds two copies of all columns
            columns = _joined(kinds.pop(), batches.pop()) + columns
        return columns

    def _execute(self, cursor: Any, statement: str) -> None:
        try:
            cursor.adbc_statement.set_options(**self._batches)
            cursor.execute(statement)
        except adbc.Error as error:
            message = message_of(error)
            # On SIGINT, ADBC cancels the statement and raises the server's error instead of KeyboardInterrupt. A
            # timeout has the same error code, so the text decides. Two cases remain wrong. An interrupted run counts as
            # failed if the server's messages are not in English. A run counts as stopped after pg_cancel_backend().
            if "user request" in message:
                raise KeyboardInterrupt from None
            if error.sqlstate == psycopg.errors.InsufficientPrivilege.sqlstate:
                raise psycopg.errors.InsufficientPrivilege(message) from None
            raise psycopg.DatabaseError(message) from None


def message_of(error: Exception) -> str:
    """The first line of the server's message, without its severity."""
    text = str(error)
    return (text.rpartition("ERROR: ")[2].strip() or text.strip() or type(error).__name__).splitlines()[0].strip()


def _parts(kind: str, child: Any) -> list[NDArray[Any]]:
    """Copies of one batch of a column: its values; for packed ids, the length of each row, and the ids of all rows."""
    if kind != "BINARY":
        dtype = _dtype(kind)
        return [np.frombuffer(child.buffers[1], dtype, len(child), child.offset * dtype.itemsize).copy()]
    first = np.frombuffer(child.buffers[1], np.int32, len(child) + 1, child.offset * 4)
    ids = np.frombuffer(child.buffers[2], ">i8", (first[-1] - first[0]) // 8, first[0])
    return [np.diff(first) // 8, ids.astype(np.int64)]


def _joined(kind: str, batches: list[list[NDArray[Any]]]) -> list[NDArray[Any]]:
    parts = list(zip(*batches, strict=True))
    if kind != "BINARY":
        return [np.concatenate(parts[0]) if parts else np.empty(0, _dtype(kind))]
    if not parts:
        return [np.zeros(1, np.int64), np.empty(0, np.int64)]
    first = np.append(0, np.cumsum(np.concatenate(parts[0]), dtype=np.int64))
    return [first, np.concatenate(parts[1])]


def _dtype(kind: str) -> np.dtype[Any]:
    return np.dtype({"INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "DOUBLE": np.float64}[kind])
