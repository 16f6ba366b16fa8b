"""Another application in the same database: it takes advisory locks, rewrites tables with the names of ours, and holds
snapshots. A crawl goes on next to it. The log of the web is the judge."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from sqlalchemy.engine import make_url

from crawler import GAP, LATE, Crawl, Site, add, leases
from helpers import eventually
from sql.model import BROKEN
from test_whole_crawl import worker
from web import Answer, Request, Web, links

HOSTS = [f"127.0.0.{n}" for n in range(2, 14)]
PAGES = 15  # of a host
TABLES = ["page", "host", "queue", "lease", "link", "inbox", "setting", "job"]
ROWS = 50_000
TRAPS = ["next_pages(integer)", "report(jsonb)", "tick(integer, integer)", "clock_timestamp()", "host_gap(interval)"]
# One number and two numbers are different locks. Among the first numbers are ids of tables and of rows of the crawl.
LOCKS = """
    select count(pg_advisory_lock(n)), count(pg_advisory_lock(n / 10, n % 10)),
           count(pg_advisory_lock('recrawl_internal'::regnamespace::int, n))
    from generate_series(0, 99) n
"""
LOCKS_OF_A_TRANSACTION = """
    select count(pg_advisory_xact_lock(oid::bigint)), count(pg_advisory_xact_lock('pg_class'::regclass::int, oid::int))
    from pg_class where relnamespace = 'recrawl_internal'::regnamespace
"""


class Neighbour:
    """An application whose threads each repeat one thing. Its login has no rights on recrawl."""

    def __init__(self, url: str, login: str) -> None:
        self.conninfo = make_conninfo(url, user=login, password="x")
        self.ended = threading.Event()
        self.rounds: Counter[str] = Counter()
        self.errors: list[psycopg.Error] = []
        does = (self.locks, self.locks_briefly, self.fills, self.rewrites, self.indexes, self.holds_a_snapshot)
        self.threads = [threading.Thread(target=self._repeat, args=[each], name=each.__name__) for each in does]

    def __enter__(self) -> "Neighbour":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ended.set()
        for thread in self.threads:
            thread.join()

    def _repeat(self, does: Callable[[psycopg.Connection[Any]], None]) -> None:
        try:
            with psycopg.connect(self.conninfo, autocommit=True) as connection:
                while not self.ended.is_set():
                    does(connection)
                    self.rounds[threading.current_thread().name] += 1
        except psycopg.Error as error:
            self.errors.append(error)

    def locks(self, connection: psycopg.Connection[Any]) -> None:
        connection.execute(LOCKS)
        self.ended.wait()
        connection.execute("select pg_advisory_unlock_all()")

    def locks_briefly(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute(LOCKS_OF_A_TRANSACTION)
            self.ended.wait(1)

    def fills(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            for table in ("page", "queue"):
                connection.execute(f"insert into {table} select n, repeat('x', 100) from generate_series(1, {ROWS}) n")
                connection.execute(f"update {table} set note = note || 'y'")
            connection.execute("delete from page")
            connection.execute("delete from queue")
        self.ended.wait(0.2)

    def rewrites(self, connection: psycopg.Connection[Any]) -> None:
        for table in TABLES:
            connection.execute(f"vacuum full analyze {table}")
        self.ended.wait(0.2)

    def indexes(self, connection: psycopg.Connection[Any]) -> None:
        for table in ("host", "link"):
            connection.execute(f"truncate {table}")
            connection.execute(f"insert into {table} select n, 'x' from generate_series(1, {ROWS}) n")
            connection.execute(f"create index due_at on {table} (note)")
            connection.execute("drop index due_at")
        self.ended.wait(0.2)

    def holds_a_snapshot(self, connection: psycopg.Connection[Any]) -> None:
        with connection.transaction():
            connection.execute("set transaction isolation level repeatable read")
            connection.execute("select count(*) from setting")
            self.ended.wait(5)


@pytest.fixture
def neighbour(url: str, db: psycopg.Connection[Any], on_server: Callable[..., None]) -> Iterator[Neighbour]:
    """Its tables are in the schema public, before recrawl on the search_path of the database."""
    database = make_url(url).database or ""
    login = f"{database}_neighbour"
    on_server("create role {} login password 'x'", login)
    try:
        on_server("alter database {} set search_path = public", database)
        db.execute(f"grant create on schema public to {login}".encode())
        with psycopg.connect(url, user=login, password="x", autocommit=True) as connection:
            for table in TABLES:
                connection.execute(f"create table public.{table} (id int, note text)".encode())
            for trap in TRAPS:
                connection.execute(
                    f"create function public.{trap} returns int language plpgsql"
                    " as $$ begin raise exception 'trapped'; end $$".encode()
                )
        yield Neighbour(url, login)
    finally:
        db.execute(f"drop owned by {login}".encode())
        on_server("drop role {}", login)


def test_a_crawl_goes_on_next_to_an_application_that_locks_and_fills(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, neighbour: Neighbour
) -> None:
    def page(request: Request) -> Answer:
        n = int(request.path[1:] or 0)
        return Answer(body=links(f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES))

    site.answers["*"] = page
    settings = {"default_gap": f"{GAP} s"} | dict.fromkeys(("rates_every", "opic_every", "allocate_every"), "10 s")
    for setting in settings.items():
        db.execute("select recrawl.set_setting(%s, %s)", setting)
    expected = {"/robots.txt", "/", *(f"/{n}" for n in range(1, PAGES))}
    with ExitStack() as stack:
        stack.enter_context(neighbour)
        eventually(lambda: len(neighbour.rounds) >= 4 or neighbour.errors)
        stack.enter_context(worker(url))
        add(db, *(f"http://{host}:{web.port}/" for host in HOSTS))
        crawl = Crawl(url)
        began = time.monotonic()
        crawl.run(300, until=lambda: len(web.log) >= len(HOSTS) * len(expected))
        took = time.monotonic() - began
        ended = "select job from recrawl.job_run where ok"
        eventually(lambda: {"rates", "opic", "allocate"} <= {job for (job,) in db.execute(ended).fetchall()}, 300)
    assert neighbour.errors == []
    assert set(neighbour.rounds) == {thread.name for thread in neighbour.threads}
    for host in HOSTS:
        assert Counter(entry.path for entry in web.of(host)) == dict.fromkeys(expected, 1), host
        assert web.apart(host)[0] > GAP - LATE, host
    print(f"{took:.1f} s", neighbour.rounds)
    assert {outcome for _, outcome, _ in crawl.outcomes} <= {"ok", "released"}
    assert leases(db) == []
    # A job that runs when the worker is told to stop is stopped.
    failed = "select job, message from recrawl.job_run where not ok and message <> 'stopped'"
    assert db.execute(failed).fetchall() == []
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
        (now,) = connection.execute("select clock_timestamp()").fetchone() or (None,)
        assert connection.execute(BROKEN, {"t": now}).fetchall() == []
