"""A web, a database, and a Scrapy project that crawls the one by the other."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import namedtuple_row

from crawler import Site
from spiders import Project
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
        # Windows as long as the gap: on a loaded machine short ones are often missed.
        for name, value in {"default_gap": "0.1 s", "start_within": "1"}.items():
            db.execute("select recrawl.set_setting(%s, %s)", [name, value])
        yield db


@pytest.fixture
def project(url: str, db: psycopg.Connection[Any], tmp_path: Path) -> Iterator[Callable[..., Project]]:
    """Makes one, whose processes end with the test."""
    made: list[Project] = []

    def make(settings: str = "", **spiders: str) -> Project:
        made.append(Project(tmp_path / str(len(made)), url, settings, **spiders))
        return made[-1]

    yield make
    for one in made:
        one.end()
