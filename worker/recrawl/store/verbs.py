"""What the command line and the worker's upkeep ask of the queue, one call each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.store.connection import Connection

WORKER = "recrawl worker"  # what a worker's connection is called


def workers(connection: Connection) -> int:
    """How many workers are connected, as far as this login may see."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute(
            "select count(*) from pg_stat_activity where datname = current_database() and application_name = %s",
            [WORKER],
        )
        return int(cursor.fetchone() or 0)


def tick(connection: Connection, max_leases: int = 200, max_entries: int = 2000) -> int:
    """One step of the queue's upkeep; how many pages it moved."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute("select recrawl_internal.tick(%s, %s)", [max_leases, max_entries])
        return int(cursor.fetchone() or 0)


def follow_boosts(connection: Connection, most: int = 2000) -> int:
    """One step of what boosts have still to do; how many pages it looked at, 0 when there is none."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute("select recrawl_internal.follow_boosts(%s)", [most])
        return int(cursor.fetchone() or 0)


def take_vitals(connection: Connection) -> bool:
    """Writes the minute that ended last into the view vitals; whether nobody had yet."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return bool(cursor.execute("select recrawl_internal.take_vitals()").fetchone())


def forget_history(connection: Connection) -> int:
    """Deletes what is older than the settings say; how many rows."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return int(cursor.execute("select recrawl_internal.forget_history()").fetchone() or 0)


class PageToAdd(NamedTuple):
    """A page to add; None = not given, so that SQL decides. The rate is in changes per day; infinity is never."""

    url: str
    value: float | None = None
    rate: float | None = None
    due: datetime | Literal["infinity"] | None = None
    meta: dict[str, object] | None = None


@dataclass
class AddedPages:
    """The outcome of a batch: the number of URLs by code, and a few of the invalid ones."""

    counts: dict[str, int] = field(default_factory=dict)
    invalid: list[tuple[str, str]] = field(default_factory=list)


def add_pages(connection: Connection, pages: Sequence[PageToAdd]) -> AddedPages:
    rows = connection.execute(
        """
        select code, count(*), (pg_catalog.array_agg(array[url, detail]) filter (where code = 'invalid'))[:3]
        from recrawl.add_pages(%b::text[], %b::float8[], %b::float8[], %b::text[]::timestamptz[], %b::jsonb[])
        group by code
        """,
        [
            [page.url for page in pages],
            _column([page.value for page in pages]),
            _column([page.rate for page in pages]),
            _column([page.due and str(page.due) for page in pages]),
            _column([page.meta and Jsonb(page.meta) for page in pages]),
        ],
    ).fetchall()
    added = AddedPages()
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


def coming(connection: Connection, n: int) -> list[dict[str, Any]]:
    """About what next_pages would hand out; leases nothing."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl_internal.coming(clock_timestamp(), %s)", [n])
        return cursor.fetchall()


def explain_page(connection: Connection, what: str) -> list[dict[str, Any]]:
    """What is known of a page, by its URL or id, and why it is not handed out now; a row a topic."""
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.explain_page(%s::text)", [what])
        return cursor.fetchall()


def release(connection: Connection, lease_id: int, page_ids: Sequence[int] | None) -> int:
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute("select recrawl.release(%s, %s)", [lease_id, page_ids and list(page_ids)])
        return int(cursor.fetchone() or 0)


def queue_status(connection: Connection) -> dict[str, Any]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.queue_status")
        return cursor.fetchone() or {}
