"""A crawl is dumped while it runs and restored elsewhere: it is whole, and goes on."""

import os
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import Crawl, eventually, misplaced, result_of, run_program
from recrawl.setup import migrate, project
from sql.model import BROKEN

HERE = "-c search_path=recrawl,recrawl_internal"
HOSTS = 40
SECONDS_UNSEEN = 3.0  # of crawling between the dump's snapshot and its sequences, which are read when they come


def connect(url: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, options=HERE)


def fetch(connection: psycopg.Connection[Any], chance: random.Random) -> int:
    """One round of a crawler that loses a few pages and finds new ones."""
    pages = connection.execute("select page_id, lease_id from next_pages(20, lease => '2 s')").fetchall()
    results = [
        {"page_id": page_id, "lease_id": lease_id, "status": chance.choice([200, 200, 200, 304, 404])}
        | {"links": [f"http://host{chance.randrange(HOSTS)}.test/{chance.randrange(1000)}"], "changed": True}
        for page_id, lease_id in pages
        if chance.random() < 0.9
    ]
    connection.execute("select from report(%s)", [Jsonb(results)])
    return len(pages)


@contextmanager
def crawlers(url: str, rounds: list[float] | None = None) -> Iterator[None]:
    """Three of them. `rounds` gets the seconds that each of their rounds took."""
    stop = threading.Event()

    def crawl(seed: int) -> None:
        chance = random.Random(seed)
        with connect(url) as connection:
            while not stop.is_set():
                start = time.monotonic()
                fetch(connection, chance)
                if rounds is not None:
                    rounds.append(time.monotonic() - start)

    threads = [threading.Thread(target=crawl, args=[seed]) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def begin(url: str) -> None:
    with connect(url) as connection:
        connection.execute("select set_setting('default_gap', '20 ms')")
        connection.execute("select set_setting('frequency', '86400')")
        urls = [f"http://host{n % HOSTS}.test/{n}" for n in range(300)]
        connection.execute("select from add_pages(%s)", [urls])


def test_a_crawl_dumped_while_it_runs_is_whole_where_it_is_restored_and_goes_on(
    url: str, new_database: Callable[..., str], tmp_path: Path
) -> None:
    begin(url)
    with crawlers(url), psycopg.connect(url) as holder:  # a dump that takes long, cut short
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        snapshot = eventually(partial(snapshot_with_leases, holder))
        time.sleep(SECONDS_UNSEEN)
        arguments = ["--format=custom", f"--snapshot={snapshot}", f"--file={tmp_path / 'dump'}"]
        run_program("pg_dump", *arguments, "--schema=recrawl", "--schema=recrawl_internal", url)
    elsewhere = new_database()
    restore(elsewhere, tmp_path / "dump")
    assert_whole_and_alive(elsewhere)


def snapshot_with_leases(holder: psycopg.Connection[Any]) -> str | None:
    """Names a snapshot in which many pages have been fetched and some are leased."""
    holder.rollback()
    fetched = "select count(*) > 200 from recrawl_internal.page where successes > 0"
    leased = "select from recrawl_internal.lease"
    row = holder.execute(f"select pg_export_snapshot(), ({fetched}) and exists ({leased})".encode()).fetchone()
    return row[0] if row and row[1] else None


def restore(url: str, dump: Path) -> None:
    """As the documents say."""
    assert run_program("pg_restore", "--no-owner", "--no-privileges", f"--dbname={url}", str(dump)) == ""
    prepared(url)


def prepared(url: str) -> None:
    """The commands after the restore."""
    migrate.upgrade(url)
    with connect(url) as connection:
        connection.execute("analyze")
        for login in ("recrawl_crawler", "recrawl_worker"):
            connection.execute(f"set role {login}")
            connection.execute("select next_ready_at()" if "crawler" in login else "select * from job_run")
            connection.execute("reset role")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("set role recrawl_reader; select recrawl.next_pages()")


def assert_whole_and_alive(url: str, least: int = 200) -> None:
    with connect(url) as connection:
        crawl = Crawl(connection)
        crawl.now = datetime.now(UTC)
        known = {row["page_id"] for row in crawl.rows("select page_id from page")}
        leased = {row["lease_id"] for row in crawl.rows("select lease_id from lease")}
        live = {row["page_id"] for row in crawl.rows("select page_id from page where state = 'live'")}
        assert len(live) > least and leased
        assert connection.execute(BROKEN, {"t": crawl.now}).fetchall() == []

        connection.execute("select set_setting('frequency', '1')")
        eventually(lambda: leases_have_ended(crawl))
        crawl.value("select fetch_now(%s)", [*live])  # even those whose next attempt is days away
        out: set[int] = set()

        def all_are_out() -> bool:
            pages = crawl.rows("select * from next_pages(lease => '1 hour')")
            assert not leased & {row["lease_id"] for row in pages}
            crawl.rows("select * from report(%s)", Jsonb([result_of(page) for page in pages]))
            out.update(page["page_id"] for page in pages)
            return live <= out

        eventually(all_are_out)
        (added,) = crawl.rows("select * from add_pages('{http://new.test/}')")
        assert added["code"] == "new" and added["page_id"] > max(known)
        crawl.now = datetime.now(UTC) + timedelta(seconds=1)
        assert misplaced(crawl) == []
        assert connection.execute(BROKEN, {"t": crawl.now}).fetchall() == []


def leases_have_ended(crawl: Crawl) -> bool:
    """Runs upkeep until no lease is left: fetch_now() does not move the next attempt of a page that is still leased."""
    crawl.now = datetime.now(UTC)
    crawl.tick()
    return crawl.rows("select from lease") == []


OLDER = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)
DUMPED = """
import os, random, subprocess, sys
from recrawl.setup import migrate
from worker.setup.test_backup import begin, connect, fetch
url = os.environ["DATABASE_URL"]
migrate.upgrade(url)
begin(url)
with connect(url) as connection:
    for round in range(10):
        fetch(connection, random.Random(round))
subprocess.run([sys.argv[2], "--format=custom", f"--file={sys.argv[1]}", url], check=True)
"""


def major(of_bin: Path | None) -> int:
    return int(re.findall(r"\d+", str(of_bin))[0]) if of_bin else 99


def test_an_older_servers_dump_is_whole_on_this_one(
    server: str, new_database: Callable[..., str], tmp_path: Path
) -> None:
    with psycopg.connect(server) as connection:
        if major(OLDER) >= connection.info.server_version // 10000:
            pytest.skip("no older PostgreSQL: apt install postgresql")
    assert OLDER
    done = subprocess.run(
        [".ci/with-postgres", OLDER, sys.executable, "-c", DUMPED, tmp_path / "dump", OLDER / "pg_dump"],
        cwd=project.root(), env=os.environ | {"PYTHONPATH": f"tests{os.pathsep}worker"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    elsewhere = new_database()
    restore(elsewhere, tmp_path / "dump")
    assert_whole_and_alive(elsewhere)
