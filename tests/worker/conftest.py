"""A web and a crawl of it."""

import time
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
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This machine is in Berlin: UTC+1, in summer UTC+2."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


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
