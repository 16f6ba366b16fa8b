"""Connections to the crawl's database, and the few ways to read rows from them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import class_row, dict_row, scalar_row

from recrawl.client.database import styles_to_set, with_timeouts

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Connection = psycopg.Connection[Any]
RowType = TypeVar("RowType", bound="DataclassInstance")

# Makes a transaction read only, with a reader's rights if this login may take them. `reader` is null if the server has
# no roles of recrawl. Before PostgreSQL 16 each member may take the rights of a role.
ONLY_READ: LiteralString = """
    select pg_catalog.set_config('transaction_read_only', 'on', true),
           pg_catalog.set_config('statement_timeout', %s, true),
           pg_catalog.set_config('idle_in_transaction_session_timeout', '5s', true),
           case when pg_catalog.pg_has_role(reader, case when pg_catalog.current_setting('server_version_num')::int
                                                              >= 160000 then 'set' else 'member' end)
                     and pg_catalog.has_schema_privilege(reader, pg_catalog.to_regnamespace('recrawl')::oid, 'usage')
                then pg_catalog.set_config('role', reader::text, true) end
    from pg_catalog.to_regrole('recrawl_reader') as reader
"""
# Puts the schema recrawl on the search path of the database, for connections that begin later.
SEARCH_PATH: LiteralString = """
do $$ begin
    execute format('alter database %I set search_path = "$user", public, recrawl', current_database());
end $$"""


def connect(url: str, name: str = "recrawl", **options: Any) -> Connection:
    """A connection in autocommit: every statement is a transaction of its own. The options are libpq's.

    It prepares no statements. A pooler in transaction mode gives one session to several clients, and their prepared
    statements would have the same names.
    """
    connection = psycopg.connect(
        with_timeouts(url), autocommit=True, application_name=name, prepare_threshold=None, **options
    )
    settings = [
        # The login's own path could contain operators that replace operators of PostgreSQL. An empty path is no
        # solution: a pooler may give the session to a client that calls next_pages without its schema.
        ("search_path", "recrawl"),
        ("idle_session_timeout", "0"),  # a job may compute for minutes between two statements
        *styles_to_set(connection.info),
    ]
    try:
        for setting, chosen in settings:
            connection.execute("select pg_catalog.set_config(%s, %s, false)", [setting, chosen])
    except BaseException:
        connection.close()
        raise
    return connection


def value(connection: Connection, query: LiteralString, *arguments: object) -> Any:
    """The one value of the one row that a query returns; None if there is no row."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        return cursor.execute(query, arguments or None).fetchone()


def rows(connection: Connection, query: LiteralString, *arguments: object) -> list[dict[str, Any]]:
    """All rows that a query returns, by column."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, arguments or None).fetchall()


def rows_as(
    connection: Connection,
    row_type: type[RowType],
    query: LiteralString | sql.Composed,
    arguments: Sequence[object] | Mapping[str, object] | None = None,
) -> list[RowType]:
    """All rows that a query returns. The fields of the dataclass `row_type` are the names of its columns."""
    with connection.cursor(row_factory=class_row(row_type)) as cursor:
        return cursor.execute(query, arguments).fetchall()


def is_away(error: psycopg.Error) -> bool:
    """Whether the server could not be reached, or is shutting down. False for a query that the server refused."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def cancel(connection: Connection | None) -> None:
    """Cancels the query that the connection is waiting for, if any."""
    if connection:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=1)


@contextmanager
def only_read(connection: Connection, longest: timedelta) -> Iterator[None]:
    """A transaction that changes nothing, with a reader's rights if this login may take them. A query fails if it takes
    longer than `longest`.

    Rights of the whole session would stay in the pool of a pooler in transaction mode, and stop the crawlers that get
    this session next.
    """
    with connection.transaction():
        connection.execute(ONLY_READ, [str(round(longest / timedelta(milliseconds=1)))])
        yield
