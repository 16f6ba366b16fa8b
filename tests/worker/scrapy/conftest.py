"""A Scrapy project that crawls a web by its database."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from spiders import Project


@pytest.fixture
def crawl_settings() -> dict[str, str]:
    """Windows as long as the gap: a busy machine misses short ones, and a redirect that misses its window fails."""
    return {"default_gap": "0.2 s", "window_share": "1"}


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
