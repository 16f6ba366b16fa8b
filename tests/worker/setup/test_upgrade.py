"""Crawls of earlier releases, and crawlers that run during a migration."""

import gzip
import re
import select
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import eventually, run_program
from recrawl.client.database import REPLACED
from recrawl.setup import migrate, project
from worker.setup import fixture
from worker.setup.test_backup import assert_whole_and_alive, begin, connect, crawlers, prepared
from worker.setup.test_migrate import CONTENT, Project, dump, one_line, rows

NewDatabase = Callable[..., str]
FIXTURES = sorted(fixture.FOLDER.glob("*.sql.gz"))


@pytest.fixture
def copy(tmp_path: Path) -> Project:
    return Project(tmp_path / "recrawl")


def restore_release(file: Path, server: str, url: str) -> None:
    with psycopg.connect(server) as connection:
        if int(re.findall(r"postgresql(\d+)", file.name)[0]) > connection.info.server_version // 10000:
            pytest.skip("this server is older than the server of the dump")
    # pg_dump writes this setting of its own version for every server.
    text = gzip.decompress(file.read_bytes()).decode().replace("SET transaction_timeout = 0;\n", "")
    assert "ERROR" not in run_program("psql", "--quiet", "--no-psqlrc", url, text=text)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda path: path.name.removesuffix(".sql.gz"))
def test_a_crawl_of_each_release_is_whole_in_this_version_and_goes_on(
    file: Path, server: str, new_database: NewDatabase, url: str
) -> None:
    elsewhere = new_database()
    restore_release(file, server, elsewhere)
    prepared(elsewhere)
    assert dump(elsewhere) == dump(url), "the tables differ from those of a new crawl: `make fixture` before a release"
    assert rows(elsewhere, CONTENT) == rows(url, CONTENT)
    with connect(elsewhere) as connection:
        connection.execute("select unblock_host('host2.test'), fetch_now(array(select page_id from page limit 1000))")
    assert_whole_and_alive(elsewhere)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda path: path.name.removesuffix(".sql.gz"))
def test_an_upgrade_names_the_users_view_that_is_in_its_way_and_keeps_rights_granted_by_hand(
    file: Path, server: str, new_database: NewDatabase
) -> None:
    url, analyst = new_database(), f"recrawl_test_{uuid.uuid4().hex[:12]}"
    restore_release(file, server, url)
    with connect(url) as connection:
        connection.execute(f"create role {analyst}".encode())
        connection.execute(f"grant select on recrawl.opic_run to {analyst}".encode())
        connection.execute("create view public.mine as select pages from recrawl.opic_run")
        connection.execute("create view public.kept as select next_slot_at from recrawl.host_status")
        connection.execute("create view public.late as select host from recrawl.late_hosts")
    with pytest.raises(SystemExit, match=r"this recrawl changes the view recrawl\.opic_run, which .*mine depends on"):
        migrate.upgrade(url)
    with connect(url) as connection:
        connection.execute("drop view public.mine")
    migrate.upgrade(url)
    assert rows(url, f"select has_table_privilege('{analyst}', 'recrawl.opic_run', 'select')") == [(True,)]
    with connect(url) as connection:
        connection.execute(f"drop owned by {analyst}".encode())
        connection.execute(f"drop role {analyst}".encode())


@pytest.mark.parametrize("file", FIXTURES, ids=lambda path: path.name.removesuffix(".sql.gz"))
def test_links_that_a_release_had_set_aside_are_taken_in(file: Path, server: str, new_database: NewDatabase) -> None:
    url = new_database()
    restore_release(file, server, url)
    with connect(url) as connection:
        connection.execute(
            "insert into recrawl_internal.link_later (page_id, key, url, worth, depth, tries)"
            " select page_id, recrawl_internal.url_key(later), later, 1, 1, tries"
            " from recrawl_internal.page, generate_series(0, 2) as tries,"
            " format('http://later%s.test/', tries) as later"
            " where page_id = 1"
        )
    migrate.upgrade(url)
    with connect(url) as connection:
        for _ in range(2):
            connection.execute("select recrawl_internal.tick_at(clock_timestamp(), 100, 1000)")
    assert rows(url, "select url, state from recrawl.page_status where url like '%later%' order by url") == [
        (f"http://later{tries}.test/", "new") for tries in range(3)
    ]
    assert rows(url, "select count(*) from recrawl_internal.link_later") == [(0,)]


def test_there_is_a_fixture_of_this_release_from_two_servers() -> None:
    assert len([file for file in FIXTURES if file.name.startswith(f"{fixture.RELEASE}-")]) == 2


@pytest.mark.parametrize("heading", ["## {} - 2026-11-30", "## [{}] - 2026-11-30", "## {}: 2026-11-30"])
def test_the_fixture_of_a_release_is_never_overwritten(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixture, "CHANGELOG", tmp_path / "CHANGELOG.md")
    monkeypatch.setattr(fixture, "dump", lambda url: pytest.fail("it dumps"))
    monkeypatch.setenv("DATABASE_URL", "none")
    fixture.CHANGELOG.write_text(f"# Changelog\n\n## Unreleased\n\n{heading.format(fixture.RELEASE)}\n\n- It is new.\n")
    with pytest.raises(SystemExit, match="was released on 2026-11-30"):
        fixture.main()


def test_the_versions_of_a_release_are_not_edited() -> None:
    """Before its release: `make fixture`."""
    now = {path: digest for digest, path in (line.split("  ") for line in fixture.sums().splitlines())}
    for file in sorted(fixture.FOLDER.glob("*.sha256")):
        for line in file.read_text().splitlines():
            digest, path = line.split("  ")
            assert path == "sql" or now.get(path) == digest, (
                f"{path} differs from the file of {file.stem}: write a new version instead"
            )


def test_other_functions_than_those_of_a_release_have_a_new_version_even_an_empty_one() -> None:
    """By the version a worker, `status` and `recrawl migrate` see that a database is older or newer than they are."""
    for file in sorted(fixture.FOLDER.glob("*.sha256")):
        lines = file.read_text().splitlines()
        if fixture.released_on(file.stem) and f"{project.sql_digest()}  sql" not in lines:
            versions = {line.split("  ")[1] for line in lines if line.endswith(".py")}
            newer = {line.split("  ")[1] for line in fixture.sums().splitlines() if line.endswith(".py")} - versions
            assert newer, f"sql/ differs from {file.stem}: write a new version, even an empty one"


@pytest.mark.parametrize(
    "path", sorted((project.root() / "migrations" / "versions").glob("*.py")), ids=lambda p: p.name
)
def test_each_version_says_in_its_first_line_what_it_locks(path: Path) -> None:
    assert re.match(r'"""[A-Z].*\. Locks: .+\.(""")?\n', path.read_text())


LATER = "alter table recrawl_internal.setting add column later int; alter table recrawl_internal.host add column x int"


def test_crawlers_do_not_wait_behind_a_migration_that_waits(copy: Project, url: str) -> None:
    """A query that somebody runs for long, as pg_dump does, has a lock on the tables that the version changes."""
    begin(url)
    copy.add_version(LATER)
    with psycopg.connect(url) as holder, connect(url) as crawler:
        (pid,) = holder.execute("select pg_backend_pid() from recrawl_internal.setting").fetchone() or (0,)
        crawler.execute("set lock_timeout = '10 s'")
        migration = copy.start(url, "recrawl", "migrate")
        stderr = migration.stderr
        assert stderr

        def calls_until_it_says_something() -> bool:
            crawler.execute("select from next_pages(1)")
            crawler.execute("select from add_pages('{http://a.test/}')")
            return bool(select.select([stderr], [], [], 0)[0])

        try:
            eventually(calls_until_it_says_something)
            assert migration.poll() is None
            said = stderr.readline()
        finally:
            holder.rollback()
            _, errors = migration.communicate(timeout=600)
    assert migration.returncode == 0, errors
    assert f"the migration waits for process {pid} (" in said
    assert rows(url, "select later from recrawl_internal.setting") == [(None,)]


def test_crawlers_go_on_during_an_upgrade(copy: Project, url: str) -> None:
    """The version changes tables that each call uses. The longest round of a crawler is printed."""
    begin(url)
    copy.add_version(LATER)
    for file in ("steer/pause.sql", "show/events.sql"):
        copy.change(file, "create or replace", "-- Changed.\ncreate or replace")
    waits: list[float] = []
    with crawlers(url, waits):
        copy.migrate(url)
        before = len(waits)
        eventually(lambda: len(waits) >= before + 10)
    print(f"{len(waits)} rounds of a crawler; the longest took {max(waits):.2f} s")
    assert_whole_and_alive(url, least=100)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda path: path.name.removesuffix(".sql.gz"))
def test_a_call_that_runs_during_an_upgrade_from_a_release_fails_at_most_once(
    file: Path, server: str, new_database: NewDatabase
) -> None:
    """It fails because functions are replaced while it runs. Made again, it finds the new ones. A report may also wait
    too long for a lock, and is made again until the upgrade has ended."""
    url = new_database()
    restore_release(file, server, url)
    with connect(url) as connection:
        connection.execute("select set_setting('default_gap', '1 ms')")
        connection.execute("select from add_pages(array(select format('http://b%s.test/%s', i % 500, i)"
                           " from generate_series(1, 20000) i))")  # fmt: skip
    done, failed = Event(), Counter[str]()

    def crawl(seed: int) -> None:
        with connect(url) as connection:
            for n in count():
                new = [f"http://c{seed}.test/{n}"]
                pages = made(connection, "select page_id, lease_id from next_pages(50, lease => '3 s')")
                if done.is_set():
                    return
                results = [{"page_id": page, "lease_id": lease, "status": 200, "links": new} for page, lease in pages]
                made(connection, "select from report(%s)", Jsonb(results))
                made(connection, "select from add_pages(%s)", new)

    def made(connection: psycopg.Connection[Any], call: LiteralString, *arguments: object) -> list[Any]:
        was_replaced = False
        while True:
            try:
                return connection.execute(call, arguments).fetchall()
            except psycopg.errors.LockNotAvailable as error:  # report waits for 0.3 s at most
                failed[type(error).__name__] += 1
            except REPLACED as error:
                failed[type(error).__name__] += 1
                assert not was_replaced, "it failed twice"
                was_replaced = True

    with ThreadPoolExecutor(4) as pool:
        crawls = [pool.submit(crawl, seed) for seed in range(4)]
        try:
            migrate.upgrade(url)
        finally:
            done.set()
        for each in crawls:
            each.result()
    print(dict(failed))
    with connect(url) as connection:
        eventually(lambda: connection.execute("select from next_pages(lease => '10 s')").rowcount, what="a lease")
    assert_whole_and_alive(url, least=100)


@pytest.mark.parametrize("version", ["0000", "0099"])
def test_a_worker_refuses_a_crawl_of_another_version(copy: Project, url: str, version: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(f"update recrawl_internal.alembic_version set version_num = '{version}'".encode())
    line = one_line(copy.fails(url, "recrawl", "worker"))
    assert ("Run `recrawl migrate`" if version == "0000" else "pip install --upgrade") in line
