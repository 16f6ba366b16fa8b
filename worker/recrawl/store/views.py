"""Reads for people, through the views that recrawl_reader may read. Only `in_force` needs more rights.

Most functions get a dataclass, `row_type`. Its fields are the names of the columns that they read.
"""

from dataclasses import fields
from datetime import datetime, timedelta
from typing import Any, LiteralString

from psycopg import sql
from psycopg.errors import InvalidSchemaName, UndefinedTable

from recrawl.store.connection import Connection, RowType, rows, rows_as, value


def row_of(connection: Connection, row_type: type[RowType], view: LiteralString) -> RowType:
    """The one row of a view. The database computes only the columns that `row_type` names."""
    (row,) = of_view(connection, row_type, view)
    return row


def recent(connection: Connection, row_type: type[RowType], view: LiteralString, last: timedelta) -> list[RowType]:
    """The rows of a view of vitals for the last hours or days, in order."""
    return of_view(connection, row_type, view, "where at >= clock_timestamp() - %s order by at", last)


def vitals_total(connection: Connection, row_type: type[RowType], last: timedelta) -> RowType:
    """The counts of all minutes within `last`, added up. `since` is the start of the first of these minutes. Three
    fields concern only the minutes whose budget is known: `budget_minutes` is their number, `budget_fetches` are the
    fetches in them, and `mean_budget` is the mean of their budgets."""
    special = {
        "since": sql.SQL("min(at)"),
        "budget_minutes": sql.SQL("count(budget)"),
        "budget_fetches": sql.SQL("coalesce(sum(fetches) filter (where budget is not null), 0)::float8"),
        "mean_budget": sql.SQL("avg(budget)"),
    }
    columns = [
        sql.SQL("{} as {}").format(
            special.get(name) or sql.SQL("coalesce(sum({}), 0)::float8").format(sql.Identifier(name)),
            sql.Identifier(name),
        )
        for name in (field.name for field in fields(row_type))
    ]
    query = sql.SQL("select {} from recrawl.vitals where at >= clock_timestamp() - %s::interval")
    (row,) = rows_as(connection, row_type, query.format(sql.SQL(", ").join(columns)), [last])
    return row


def last_allocation(connection: Connection, row_type: type[RowType]) -> RowType | None:
    found = of_view(connection, row_type, "allocation_run", "order by started_at desc limit 1")
    return found[0] if found else None


def late_hosts(connection: Connection, row_type: type[RowType], n: int) -> list[RowType]:
    """The host that is most late comes first."""
    return of_view(connection, row_type, "late_hosts", "order by late desc nulls last limit %s", n)


def capped_hosts(connection: Connection, row_type: type[RowType], n: int) -> list[RowType]:
    """The hosts that are limited by their gap, the host whose gap costs most first."""
    return of_view(connection, row_type, "capped_hosts", "order by half_gap_gain desc nulls last limit %s", n)


def last_runs(connection: Connection, row_type: type[RowType], always: list[str]) -> list[RowType]:
    """For each job: its last run, the time of its last success, and the number of failures since then. A job that
    always runs has a row here only if it failed once: the row says that it fails, or works again."""
    return rows_as(
        connection,
        row_type,
        """
        select job, ran_at as started_at, seconds, ok,
               case when running_since is null then message
                    when ok is null then 'is running'
                    else 'its process died, or lost its connection' end as message,
               succeeded_at, failures + (running_since is not null and ok is false)::int as failures
        from recrawl.job_schedule
        where ran_at is not null
        union all
        select l.job, l.started_at, l.seconds, l.ok, l.message,
               case when l.ok then l.started_at end, (not l.ok)::int
        from unnest(%s::text[]) as always (job)
        cross join lateral (
            select * from recrawl.job_run r where r.job = always.job order by r.started_at desc limit 1
        ) l
        order by job
        """,
        [always],
    )


def past_runs(connection: Connection, row_type: type[RowType], job: str | None) -> list[RowType]:
    """The last runs of one job or of all, the newest first."""
    rest: LiteralString = "where %s::text is null or job = %s order by started_at desc limit 20"
    return of_view(connection, row_type, "job_run", rest, job, job)


def shown_settings(connection: Connection) -> dict[str, str | None]:
    return dict(connection.execute("select name, value from recrawl.settings").fetchall())


def version(connection: Connection) -> str | None:
    """The version of the tables. None = the database was never migrated. "0000" = older than the view checkup."""
    try:
        with connection.transaction():  # a savepoint, if a transaction is open
            return str(value(connection, "select version from recrawl.checkup"))
    except UndefinedTable:  # there is no such view yet, or no schema
        is_there = value(connection, "select exists (select from pg_namespace where nspname = 'recrawl')")
        return "0000" if is_there else None


def in_force(connection: Connection) -> tuple[str, str] | None:
    """The version of the tables and the digest of sql/; None before the first migration."""
    try:
        found = connection.execute(
            "select version_num, digest from recrawl_internal.alembic_version, recrawl_internal.replayed"
        )
    except (InvalidSchemaName, UndefinedTable):
        return None
    return found.fetchone()


def schedule(connection: Connection, row_type: type[RowType]) -> list[RowType]:
    return of_view(connection, row_type, "job_schedule")


def last_report(connection: Connection) -> datetime | None:
    """The approximate time of the last report, as far as vitals go back."""
    at: datetime | None = value(
        connection,
        """
        select greatest((select max(at) + interval '1 minute' from recrawl.vitals where fetches > 0),
                        (select max(at) from recrawl.vitals_by_hour where fetches > 0))
        """,
    )
    return at


def vitals_by_ten_minutes(connection: Connection, row_type: type[RowType], last: timedelta) -> list[RowType]:
    """The minutes of the last hours, ten minutes in one row, in order. A field of `row_type` with the default 0 is a
    count, and is added up. Of the other columns this takes the mean."""
    columns = [
        sql.SQL("sum({0})::float8 as {0}" if field.default == 0 else "avg({0})::float8 as {0}").format(
            sql.Identifier(field.name)
        )
        for field in fields(row_type)
        if field.name != "at"
    ]
    query = sql.SQL(
        "select date_bin('10 minutes', at, 'epoch') as at, {} from recrawl.vitals "
        "where at >= clock_timestamp() - %s group by 1 order by 1"
    )
    return rows_as(connection, row_type, query.format(sql.SQL(", ").join(columns)), [last])


def blocked_hosts(connection: Connection, row_type: type[RowType], n: int) -> list[RowType]:
    """The blocked hosts with due pages, the host with most due pages first."""
    return of_view(connection, row_type, "late_hosts", "where waits_for = 'block' order by due desc, host limit %s", n)


def events(connection: Connection, row_type: type[RowType], last: timedelta, n: int) -> list[RowType]:
    """The newest first."""
    return of_view(
        connection, row_type, "events", "where at >= clock_timestamp() - %s order by at desc limit %s", last, n
    )


def host(connection: Connection, name: str) -> dict[str, Any] | None:
    """The row of a host in host_status, with the number of its due pages and how late they are. None if there is no
    host of that name."""
    query: LiteralString = (
        "select h.*, l.due, l.late, l.waits_for"
        " from recrawl.host_status h left join recrawl.late_hosts l using (host) where h.host = %s"
    )
    return next(iter(rows(connection, query, name)), None)


def of_view(
    connection: Connection, row_type: type[RowType], view: LiteralString, rest: LiteralString = "", *arguments: object
) -> list[RowType]:
    """Rows of a view of recrawl. `rest` is the end of the query, after the name of the view."""
    columns = sql.SQL(", ").join(sql.Identifier(field.name) for field in fields(row_type))
    return rows_as(
        connection, row_type, sql.SQL("select {} from recrawl." + view + " " + rest).format(columns), arguments
    )
