from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy.engine import make_url

from sql.loads import Connection, Loaded, load


@pytest.fixture
def catalogue(template: str, server: str) -> Iterator[psycopg.Connection[Any]]:
    """The migrated database that all others are cloned from; read only, and left before anybody clones it again."""
    with psycopg.connect(server, dbname=template, autocommit=True, row_factory=dict_row) as connection:
        yield connection


def connected(url: str) -> Connection:
    return psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal")


@pytest.fixture(scope="module")
def filled(
    template: str, new_database: Callable[..., str], on_server: Callable[..., None]
) -> Iterator[Callable[..., str]]:
    """Makes databases of a load and names them, each load once; to be cloned."""
    made: list[str] = []

    @cache
    def make(fill: Callable[..., None], **how: object) -> str:
        url = new_database(template)
        with connected(url) as connection:
            fill(connection, **how)
        made.append(make_url(url).database or "")
        return made[-1]

    yield make
    for name in made:
        on_server("drop database {} with (force)", name)


@pytest.fixture
def loaded(
    filled: Callable[..., str], new_database: Callable[..., str], on_server: Callable[..., None]
) -> Iterator[Loaded]:
    """Connects to a database of its own that has the load."""
    with ExitStack() as ends:

        def connect(fill: Callable[..., None] = load, **how: object) -> Connection:
            url = new_database(filled(fill, **how))
            ends.callback(on_server, "drop database {} with (force)", make_url(url).database or "")
            return ends.enter_context(connected(url))

        yield connect
