from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row


@pytest.fixture
def catalogue(template: str, server: str) -> Iterator[psycopg.Connection[Any]]:
    """The migrated database that all others are cloned from; read only, and left before anybody clones it again."""
    with psycopg.connect(server, dbname=template, autocommit=True, row_factory=dict_row) as connection:
        yield connection
