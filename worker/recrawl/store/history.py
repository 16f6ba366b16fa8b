"""Reads of the report and the dashboard that are not in looks.py: history, blocked hosts, events and one host."""

from dataclasses import fields
from datetime import timedelta
from typing import Any, LiteralString

from psycopg import sql

from recrawl.store.connection import Connection, Shape, rows, shaped
from recrawl.store.looks import of_view

# The counts among the columns that the report and the dashboard read by ten minutes: their minutes are added up. The
# other columns that they read are states: the mean is taken.
HAPPENED = {
    *("fetches", "changed", "unchanged", "first", "missing", "failed", "throttled", "denied"),
    *("skipped", "handed_out", "expired", "new_pages"),
}


def vitals_by_hour(connection: Connection, shape: type[Shape], last: timedelta) -> list[Shape]:
    """The hours of the last days, in order."""
    return of_view(connection, shape, "vitals_by_hour", "where at >= clock_timestamp() - %s order by at", last)


def vitals_by_ten_minutes(connection: Connection, shape: type[Shape], last: timedelta) -> list[Shape]:
    """The minutes of the last hours, ten minutes in one row, in order."""
    columns = [
        sql.SQL("sum({0})::float8 as {0}" if field.name in HAPPENED else "avg({0})::float8 as {0}").format(
            sql.Identifier(field.name)
        )
        for field in fields(shape)
        if field.name != "at"
    ]
    query = sql.SQL(
        "select date_bin('10 minutes', at, 'epoch') as at, {} from recrawl.vitals "
        "where at >= clock_timestamp() - %s group by 1 order by 1"
    )
    return shaped(connection, shape, query.format(sql.SQL(", ").join(columns)), [last])


def blocked_hosts(connection: Connection, shape: type[Shape], n: int) -> list[Shape]:
    """The blocked hosts with due pages, the host with most due pages first."""
    return of_view(connection, shape, "late_hosts", "where waits_for = 'block' order by due desc, host limit %s", n)


def events(connection: Connection, shape: type[Shape], last: timedelta, n: int) -> list[Shape]:
    """The newest first."""
    return of_view(connection, shape, "events", "where at >= clock_timestamp() - %s order by at desc limit %s", last, n)


def host(connection: Connection, name: str) -> dict[str, Any] | None:
    """The row of a host in host_status, with its due and late pages. None if there is no host of that name."""
    query: LiteralString = (
        "select h.*, l.due, l.late, l.waits_for"
        " from recrawl.host_status h left join recrawl.late_hosts l using (host) where h.host = %s"
    )
    return next(iter(rows(connection, query, name)), None)
