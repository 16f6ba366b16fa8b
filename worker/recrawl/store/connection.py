"""Connections to the crawl's database."""

from typing import Any

import psycopg
from psycopg import sql

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
