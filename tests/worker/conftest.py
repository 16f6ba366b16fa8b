"""A web and a crawl of it."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from crawler import Site
from web import Web


@pytest.fixture
def site() -> Site:
    return Site()


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with Web(site) as web:
        yield web


@pytest.fixture
def crawl_settings() -> dict[str, str]:
    return {}


@pytest.fixture
def db(url: str, crawl_settings: dict[str, str]) -> Iterator[psycopg.Connection[Any]]:
    """Of a crawl with those settings."""
    with psycopg.connect(url, autocommit=True, row_factory=namedtuple_row) as db:
        for name, value in crawl_settings.items():
            db.execute("select recrawl.set_setting(%s, %s)", [name, value])
        yield db
