"""Where the bench runs: a server, and scratch databases on it that are dropped when they are done with."""

import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from recrawl.setup import embedded, migrate


@contextmanager
def server() -> Iterator[str]:
    """The URL of DATABASE_URL's server, else of an embedded one in a temporary folder."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
        return
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        Path(folder).chmod(0o755)  # the server's account must be able to enter it
        with embedded.server(Path(folder) / "postgres") as url:
            yield url


@contextmanager
def database(
    server_url: str, template: str | None = None, upgrade: Callable[[str], None] = migrate.upgrade
) -> Iterator[str]:
    """The URL of a migrated database: a new one, or a copy of the one whose URL is given."""
    name = f"recrawl_bench_{uuid.uuid4().hex[:12]}"
    source = make_url(template).database if template else "template0"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {} encoding 'UTF8' strategy wal_log").format(
                sql.Identifier(name), sql.Identifier(source or "")
            )
        )
    try:
        url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
        if not template:
            upgrade(url)
        yield url
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


@contextmanager
def worker(url: str) -> Iterator[None]:
    """The real worker, in a process of its own."""
    command = [sys.executable, "-m", "recrawl", "worker"]
    process = subprocess.Popen(
        command, env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            at_work = "select 1 from pg_stat_activity where datname = %s and application_name = 'recrawl worker'"
            while connection.execute(at_work, [connection.info.dbname]).fetchone() is None:
                if process.poll() is not None:
                    raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
                time.sleep(0.05)
        yield
    finally:
        process.terminate()
        process.wait()
