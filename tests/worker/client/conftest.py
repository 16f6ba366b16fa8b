"""A web and a database for crawlers in the tests of the client."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from crawler import GAP, Site
from web import Web


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with Web(site) as web:
        yield web


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(url, autocommit=True, row_factory=namedtuple_row) as db:
        db.execute("select recrawl.set_setting('default_gap', %s)", [f"{GAP} s"])
        yield db
