"""Dumps a small crawl of this version into tests/fixtures: `make fixture`.

There is a dump from the embedded PostgreSQL, and one from the oldest PostgreSQL of Debian that this machine has. With
the sums of the files that made its tables, each stays as it is once its version is released: when the CHANGELOG has a
date for this version, `make fixture` refuses.
"""

import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from helpers import eventually, run_job, run_program
from recrawl.setup import embedded, migrate, project
from worker.setup.test_backup import OLDER, begin, connect, fetch

ROOT = project.root()
FOLDER = ROOT / "tests" / "fixtures"
RELEASE = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CHANGELOG = ROOT / "CHANGELOG.md"
VERSIONS = ROOT / "migrations" / "versions"


def sums() -> str:
    """A line for each file that makes tables, and one for all files of sql/, as sha256sum writes it."""
    files = sorted(path for path in VERSIONS.rglob("*") if path.suffix in (".py", ".sql"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(ROOT)}\n" for path in files]
    return "".join([*lines, f"{project.sql_digest()}  sql\n"])


def crawl(url: str) -> None:
    """A crawl with something of everything: pages in each state, leases, links, settings, runs of jobs."""
    migrate.upgrade(url)
    begin(url)
    with connect(url) as connection:
        chance = random.Random(1)
        for _ in range(10):
            fetch(connection, chance)
        for statement in (
            "select set_setting('budget', '5000'), set_host('host1.test', max_pages => 500)",
            "select exclude('/77$'), boost('/1', 3), set_value(5, 2), set_rate(6, 3)",
            "select set_interval('{7}', '1 hour'), hint_change('{8}'), keep_out('{9}'), delete_pages('{10}')",
            "select block_host('host2.test', now() + interval '10 s', 'for the fixture'), claim('the fixture')",
            "select set_robots('http://host3.test/robots.txt', 200, 'User-agent: *')",
            "select from add_pages('{http://host4.test/never}', due => '{infinity}')",
            "select from add_pages('{http://host5.test/mine}', meta => array['{\"of\": \"mine\"}'::jsonb])",
        ):
            connection.execute(statement.encode())
        ends: list[dict[str, object]] = [
            {"declined": True}, {"robots_denied": True}, {"status": 410}, {"status": 429, "retry_after": "1"},
            {"status": 0}, {"status": 301, "redirect_to": "http://host6.test/moved"},
            {"status": 200, "due": "infinity"}, {"status": 200, "meta": {"n": 1}},
            {"status": 200, "etag": '"a"', "last_modified": "Tue, 24 Nov 2026 12:00:00 GMT"},
        ]  # fmt: skip
        pages = taken(connection, len(ends))
        results = [
            {"page_id": page_id, "lease_id": lease_id} | end
            for (page_id, lease_id), end in zip(pages, ends, strict=True)
        ]
        connection.execute("select from report(%s)", [Jsonb(results)])
    for job in ("rates", "opic", "allocate", "vitals"):
        run_job(job, url)
    with connect(url) as connection:
        fetch(connection, random.Random(2))
        taken(connection, 5)  # they are leased while the dump is made


def taken(connection: psycopg.Connection[Any], n: int) -> list[tuple[int, int]]:
    """Page and lease of n pages."""
    pages: list[tuple[int, int]] = []
    connection.execute("select fetch_now(array(select page_id from page where state = 'live' limit 100))")

    def are_enough() -> bool:
        more = connection.execute("select page_id, lease_id from next_pages(%s, lease => '10 s')", [n - len(pages)])
        pages.extend(more.fetchall())
        return len(pages) == n

    eventually(are_enough)
    return pages


def dump(url: str) -> None:
    crawl(url)
    with psycopg.connect(url) as connection:
        major = connection.info.server_version // 10000
    file = FOLDER / f"{RELEASE}-postgresql{major}.sql.gz"
    what = ["--schema=recrawl", "--schema=recrawl_internal", "--no-owner", "--no-privileges"]
    run_program("pg_dump", "--compress=gzip:9", f"--file={file}", *what, url)
    print(f"{file.relative_to(ROOT)}: {file.stat().st_size / 1000:.0f} kB")


def released_on(release: str) -> str | None:
    heading = rf"^## \[?{re.escape(release)}\]?\W+(\d{{4}}-\d\d-\d\d)\W*$"
    found = re.search(heading, CHANGELOG.read_text(), re.MULTILINE)
    return found[1] if found else None


def refuse_if_released() -> None:
    if day := released_on(RELEASE):
        raise SystemExit(
            f"{CHANGELOG.name} says that {RELEASE} was released on {day}. Its fixture stays as it is:"
            " set the next version in pyproject.toml first"
        )


def main() -> None:
    refuse_if_released()
    if url := os.environ.get("DATABASE_URL"):
        dump(url)
    elif not OLDER:
        raise SystemExit("a fixture of an older PostgreSQL is needed too: apt install postgresql")
    else:
        subprocess.run([".ci/with-postgres", OLDER, sys.executable, "-m", "worker.setup.fixture"], cwd=ROOT, check=True)
        with tempfile.TemporaryDirectory() as folder:
            Path(folder).chmod(0o755)
            with embedded.server(Path(folder) / "data") as url:
                dump(url)
        (FOLDER / f"{RELEASE}.sha256").write_text(sums())


if __name__ == "__main__":
    main()
