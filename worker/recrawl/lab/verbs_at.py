"""The functions that simulated crawls call, with a time that the caller names. A simulation has a clock of its own."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg.rows import namedtuple_row

from recrawl.client.fingerprint import VALUES
from recrawl.store.connection import Connection

NO_SKETCH = [None] * VALUES


def has_pages(connection: Connection) -> bool:
    """Whether the crawl has pages, in a database of any version. False if the tables do not exist."""
    ((is_there,),) = connection.execute("select to_regclass('recrawl_internal.page') is not null").fetchall()
    return is_there and bool(connection.execute("select from recrawl_internal.page limit 1").fetchall())


def claim(connection: Connection, who: str) -> str:
    """Claims the crawl for this name. Returns the name that claimed it first."""
    ((owner,),) = connection.execute("select recrawl.claim(%s)", [who]).fetchall()
    return str(owner)


def add_pages_at(connection: Connection, t: datetime, urls: Sequence[str], values: Sequence[float | None]) -> None:
    connection.execute(
        "select recrawl_internal.add_pages_at(%b, %b::text[], %b::float8[], null, null, null, null)",
        [t, list(urls), list(values)],
    )


def next_pages_at(connection: Connection, t: datetime, n: int, ahead: timedelta, lease: timedelta) -> list[Any]:
    """Named tuples of page_id, url, fetch_at and lease_id."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        cursor.execute(
            "select page_id, url, fetch_at, lease_id from recrawl_internal.next_pages_at(%b, %b::int, %b, %b, null)",
            [t, n, ahead, lease],
        )
        return cursor.fetchall()


def report_at(
    connection: Connection,
    t: datetime,
    pages: Sequence[Any],
    statuses: Sequence[int],
    changed: Sequence[bool | None],
    links: Sequence[Sequence[str] | None],
    sketches: Sequence[Sequence[int] | None],
) -> None:
    """Reports for each page its status, whether it changed, its links (None = as before) and its sketch."""
    connection.execute(
        """
        select recrawl_internal.report_pages_at(
            t => %b, page_ids => %b::bigint[], lease_ids => %b::bigint[], statuses => %b::int[],
            changed => %b::boolean[], fetched_at => %b::timestamptz[], content_hash => null, etag => null,
            last_modified => null, links => %b::jsonb[], sketch => %b::int[])
        """,
        [
            t,
            [page.page_id for page in pages],
            [page.lease_id for page in pages],
            list(statuses),
            list(changed),
            [page.fetch_at for page in pages],
            [None if of_page is None else json.dumps(list(of_page)) for of_page in links],
            [number for sketch in sketches for number in sketch or NO_SKETCH] if any(sketches) else None,
        ],
    )


def tick_at(connection: Connection, t: datetime) -> None:
    connection.execute("select recrawl_internal.tick_at(%b, 200, 20000)", [t])


def fold_vitals_at(connection: Connection, t: datetime) -> None:
    """Adds up the reports of a minute. Does not sample the state of the crawl: that takes as long as a step of the
    simulation."""
    connection.execute(
        "select recrawl_internal.fold_pulses(%b, %b), recrawl_internal.fold_minutes(%b)",
        [t, t + timedelta(minutes=1), t],
    )


def take_vitals_at(connection: Connection, t: datetime) -> None:
    """Adds up the reports, and samples the state of the crawl."""
    connection.execute("select recrawl_internal.take_vitals_at(%b)", [t])


def set_gap_at(connection: Connection, t: datetime, host: str, gap: timedelta) -> None:
    connection.execute("select recrawl_internal.set_host_at(%b, %b, %b, null, null, '{}')", [t, host, gap])


def set_setting_at(connection: Connection, t: datetime, name: str, value: str) -> None:
    connection.execute("select recrawl_internal.set_setting_at(%b, %b, %b)", [t, name, value])
