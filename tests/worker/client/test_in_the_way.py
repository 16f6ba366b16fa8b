"""A database that is busy with something else, that cuts calls short, that lets two of them wait for each other."""

import asyncio
import time
from threading import Event, Thread
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from crawler import Crawl, Site, add, leases
from helpers import eventually
from recrawl.client import Client, Error, Page
from recrawl.client.database import Connection
from web import Answer, Web


def reports_take(db: psycopg.Connection[Any], seconds: float) -> None:
    """Each page in a report takes this number of seconds. Other calls to the database take no longer than before."""
    db.execute(
        f"""
        create function recrawl_internal.slowly() returns trigger language plpgsql as $$
        begin
            perform pg_sleep({seconds});
            return new;
        end $$;
        create trigger slowly before update on recrawl_internal.page
        for each row when (new.successes <> old.successes) execute function recrawl_internal.slowly();
        """.encode()
    )


async def report(page: Page) -> None:
    page.report(200)


def test_no_page_is_asked_for_while_the_database_takes_in_less_than_visits_bring(
    url: str, db: psycopg.Connection[Any]
) -> None:
    add(db, *(f"http://h{n}.example/{m}" for n in range(100) for m in range(10)))
    db.execute("select recrawl.set_setting('default_gap', '0.1 s')")
    crawl = Crawl(url, robots=False, concurrency=10, grace=1)

    began: list[float] = []

    async def visit(page: Page) -> None:
        began.append(time.monotonic())
        for n in range(2000):
            crawl.client.add(f"{page.url}/{n}")
        page.report(200)

    reports_take(db, 5)
    crawl.run(5, visit, until=lambda: began and time.monotonic() > began[0] + 5)
    requests = crawl.client.counts["requests"]
    assert 0 < requests < 60, "those in hand when it was too much may have been visited, and no more"


def test_a_blocked_host_is_left_alone_soon_behind_a_report_that_takes_long(
    url: str, db: psycopg.Connection[Any]
) -> None:
    add(db, *(f"http://a.example/{n}" for n in range(50)))
    crawl = Crawl(url, robots=False, grace=1, ahead=10)
    begun: list[float] = []
    blocked_at: list[float] = []

    async def visit(page: Page) -> None:
        begun.append(time.monotonic())
        if len(begun) == 3:
            await asyncio.to_thread(db.execute, "select recrawl.block_host('a.example', reason => 'test')")
            blocked_at.append(time.monotonic())
        page.report(200)

    reports_take(db, 60)
    crawl.run(6, visit, until=lambda: blocked_at and time.monotonic() > blocked_at[0] + 12)
    assert blocked_at and [at for at in begun if at > blocked_at[0] + 5] == []
    assert crawl.client.counts["blocked"] >= 1


def test_a_request_beside_the_pages_waits_for_no_report(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    add(db, "http://a.example/")
    crawl = Crawl(url, robots=False, grace=1)

    async def visit(page: Page) -> None:
        if page.kind == "page":
            page.report(200)
            await asyncio.sleep(1)
            crawl.client.extra_request(f"http://127.0.0.2:{web.port}/extra")
        else:
            await crawl.visit(page)

    reports_take(db, 300)
    crawl.run(8, visit, until=lambda: web.log)
    assert [entry.path for entry in web.log] == ["/extra"]


def test_what_takes_longer_than_a_login_may_is_said_in_parts(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, *(f"http://h{n}.example/" for n in range(60)))
    reports_take(db, 0.02)
    crawl = Crawl(url, robots=False)
    began: list[Page] = []

    async def visit(page: Page) -> None:
        began.append(page)
        if len(began) == 1:
            await crawl.client._database._slow.call("select set_config('statement_timeout', '500ms', false)")
        while len({page.url for page in began}) < 60:  # one report holds all of them
            await asyncio.sleep(0.01)
        page.report(200)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"] >= 60)
    assert crawl.client.counts["ok"] >= 60 and "away" not in caplog.text
    assert leases(db) == []


def test_a_call_that_fails_because_a_migration_replaces_functions_is_made_again(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, "http://a.example/")
    db.execute("alter function recrawl_internal.record_results rename to gone")
    crawl = Crawl(url, robots=False)

    async def visit(page: Page) -> None:
        page.report(200)
        while "a call is made again: function record_results" not in caplog.text:
            await asyncio.sleep(0.01)
        db.execute("alter function recrawl_internal.gone rename to record_results")

    crawl.run(30, visit, until=lambda: crawl.outcomes)
    assert crawl.of("http://a.example/") == ["ok"]
    assert "away" not in caplog.text


def test_a_function_that_stays_away_ends_the_client(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    db.execute("alter function recrawl_internal.record_results rename to gone")
    with pytest.raises(psycopg.errors.UndefinedFunction):
        Crawl(url, robots=False).run(30, report)


def test_what_can_never_be_said_in_the_time_of_a_login_is_an_error(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    reports_take(db, 1)

    async def crawl() -> None:
        async with Client(url, user_agent="me", robots=False, grace=1) as crawl:

            async def visit(page: Page) -> None:
                await crawl._database._slow.call("select set_config('statement_timeout', '100ms', false)")
                page.report(200)

            async for page in crawl:
                crawl.spawn(visit, page)

    with pytest.raises(Error, match="longer than this login is given: cancel"):
        asyncio.run(asyncio.wait_for(crawl(), 120))


def test_of_two_that_wait_for_each_other_the_client_says_it_again(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, "http://a.example/", "http://b.example/")
    first, last = [row.page_id for row in db.execute("select page_id from recrawl.page_status order by page_id")]
    crawl = Crawl(make_conninfo(url, options="-c deadlock_timeout=10s"), robots=False)
    holds = Event()
    lock = "select from recrawl_internal.page where page_id = %s for update"
    waits = """
        select from pg_stat_activity
        where datname = current_database() and application_name = 'recrawl client' and wait_event_type = 'Lock'
    """

    def get_in_the_way() -> None:
        """More patient than the client's call, so that this is the one that ends."""
        with psycopg.connect(url) as other:
            other.execute("set deadlock_timeout = '10min'")
            other.execute(lock, [last])
            holds.set()
            eventually(lambda: db.execute(waits).fetchall())
            other.execute(lock, [first])

    both: list[Page] = []

    async def visit(page: Page) -> None:
        both.append(page)
        if len(both) == 2:
            other.start()  # not before: the client would wait for the lock when it releases a page that missed its slot
            while not holds.is_set():
                await asyncio.sleep(0.01)
            for each in both:  # in one call of report
                each.report(200)
        while not page.is_settled:
            await asyncio.sleep(0.01)

    other = Thread(target=get_in_the_way)
    crawl.run(20, visit, until=lambda: crawl.client.counts["ok"] == 2)
    other.join()
    assert crawl.client.counts["ok"] == 2 and leases(db) == []
    assert "deadlock detected" in caplog.text and "away" not in caplog.text


def test_many_hosts_asked_beside_the_pages_leave_nothing_in_memory(url: str, db: psycopg.Connection[Any]) -> None:
    crawl = Crawl(url, robots=False)
    add(db, "http://a.example/")

    async def visit(page: Page) -> None:
        if page.kind == "page":
            for n in range(20):
                crawl.client.extra_request(f"http://h{n}.example/")
        page.report(200)

    crawl.run(20, visit, until=lambda: crawl.client.counts["requests"] == 21 and crawl.client.is_idle)
    assert crawl.client.counts["requests"] == 21
    assert not crawl.client._own_requests._turns


@pytest.mark.parametrize("state", ["40P01", "55P03", "42883"])  # deadlock, lock timeout, function replaced
def test_a_call_that_another_session_is_in_the_way_of_is_made_again_even_by_who_does_not_wait(
    url: str, db: psycopg.Connection[Any], state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of URLFrontier does not wait for a database that is away."""
    db.execute("create sequence tries")
    db.execute(
        f"""
        create function third_time() returns text language plpgsql as $$
        begin
            if nextval('tries') < 3 then
                raise exception using errcode = '{state}';
            end if;
            return 'ok';
        end $$
        """.encode()
    )

    async def ask() -> list[Any]:
        connection = Connection(url)
        await connection.open()
        monkeypatch.setattr("recrawl.client.database.PATIENCE", 60.0)
        connection.give_up_at = 0.0
        try:
            return await connection.call("select public.third_time() as answer")
        finally:
            await connection.close()

    assert [row.answer for row in asyncio.run(ask())] == ["ok"]
