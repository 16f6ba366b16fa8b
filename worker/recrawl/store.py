"""The only place that talks SQL for the worker and the command line. Has no mathematics and no opinions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.importers import Page

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
