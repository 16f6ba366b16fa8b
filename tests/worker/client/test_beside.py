"""Other work of a client: it adds URLs, makes requests that are no pages, and claims the crawl."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from crawler import GAP, LATE, Crawl, Site, add, leases, state
from recrawl.client import Client, Error, Page, own_requests
from recrawl.client.clock import Clock
from recrawl.client.in_hand import InHand
from recrawl.client.page import request_row
from recrawl.client.preparation import Preparation
from recrawl.client.robots import Access
from recrawl.client.runner import Runner
from web import Answer, Web


def test_urls_are_known_before_the_page_that_led_to_them_is_visited(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    at = f"http://127.0.0.2:{web.port}"
    add(db, f"{at}/0")
    crawl = Crawl(url)
    seen: list[Any] = []

    async def visit(page: Page) -> None:
        if page.kind == "page":
            seen.append(page.meta)
            crawl.client.add(f"{at}/1", {"from": "\ud800"} if page.meta else {"from": "0"})
            crawl.client.add("nonsense")
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"] == 2)
    assert seen == [None, {"from": "0"}], "with what was said of it first"
    counts = crawl.client.counts
    assert (counts["new_urls"], counts["invalid_urls"]) == (1, 3), "what cannot be read harms no other"
    assert crawl.client.is_idle


def test_a_request_that_is_no_page_has_a_slot_of_its_own(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers |= {"/robots.txt": Answer(body="User-agent: *\nDisallow: /private"), "*": Answer()}
    at = f"http://127.0.0.2:{web.port}"
    add(db, *(f"{at}/{n}" for n in range(4)))
    crawl = Crawl(url)
    extras: list[tuple[str, Any]] = []

    async def visit(page: Page) -> None:
        if page.kind == "extra":
            extras.append((page.url, page.meta))
        elif page.kind == "page" and page.url.endswith("/0"):
            for name in ("form", "private", "form"):
                crawl.client.extra_request(f"{at}/{name}", name)
            crawl.client.extra_request("http://a..b/", "of no host").cancel()
        await crawl.visit(page)

    crawl.run(20, visit, until=lambda: len(extras) == 2 and crawl.client.is_idle)
    assert extras == [(f"{at}/form", "form")] * 2
    assert web.apart("127.0.0.2")[0] > GAP - LATE
    assert state(db, f"{at}/form") is None and leases(db) == []
    assert crawl.client.counts["denied"] == 1 == crawl.client.counts["extra_dropped"]


def test_a_visit_may_wait_for_its_extra_request(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    """It waited for ever if all visits did: they had the places that extra requests needed."""
    site.answers["*"] = Answer()
    add(db, *(f"http://127.0.0.{host}:{web.port}/page" for host in (2, 3, 4)))
    crawl = Crawl(url, concurrency=1)

    async def visit(page: Page) -> None:
        if page.kind == "page":
            await crawl.client.extra_request(page.url.replace("page", "login"))
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"] == 3)
    assert crawl.client.counts["extra_dropped"] == 0
    paths = [entry.path for entry in web.log if entry.path != "/robots.txt"]
    assert paths == ["/login", "/page"] * 3, "one visit at a time"


def test_a_visit_may_wait_for_its_extra_request_where_robots_txt_redirects(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """The target of the redirect waited for the place of the visit, and robots.txt was requested again and again."""
    at, other = (f"http://127.0.0.{n}:{web.port}" for n in (2, 3))
    site.answers |= {
        "127.0.0.2/robots.txt": Answer(301, headers={"Location": f"{other}/rules.txt"}),
        "/rules.txt": Answer(body=""),
        "*": Answer(),
    }
    add(db, f"http://127.0.0.4:{web.port}/page")
    crawl = Crawl(url, concurrency=1)

    async def visit(page: Page) -> None:
        if page.kind == "page":
            await crawl.client.extra_request(f"{at}/login")
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"])
    assert "/login" in [entry.path for entry in web.log]


def test_an_extra_request_for_a_blocked_host_is_not_made(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Its slot was taken before the block, up to a minute ahead."""
    site.answers["*"] = Answer()
    db.execute("select recrawl.set_host('127.0.0.3', gap => '8 s')")
    add(db, f"http://127.0.0.2:{web.port}/")
    crawl = Crawl(url, robots=False)
    extras: list[asyncio.Future[None]] = []

    async def visit(page: Page) -> None:
        if page.kind == "page":
            extras.extend(crawl.client.extra_request(f"http://127.0.0.3:{web.port}/{n}") for n in range(2))
            await extras[0]
            await asyncio.sleep(1)  # the other has the slot after 8 s
            await asyncio.to_thread(db.execute, "select recrawl.block_host('127.0.0.3', reason => 'test')")
            await asyncio.sleep(8)
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"])
    assert [entry.path for entry in web.of("127.0.0.3")] == ["/0"]


def test_extra_requests_wait_until_a_place_is_free(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They took slots, could not use them, and were dropped after TRIES of them."""
    monkeypatch.setattr(own_requests, "TRIES", 4)
    site.answers |= {"*": Answer(), "/slow": Answer(after=6)}
    at = [f"http://127.0.0.{host}:{web.port}" for host in (2, 3, 4, 5)]
    add(db, f"{at[0]}/")
    crawl = Crawl(url, robots=False, concurrency=1)

    async def visit(page: Page) -> None:
        if page.url == f"{at[0]}/":
            crawl.client.extra_request(f"{at[0]}/slow")
        elif page.url == f"{at[0]}/slow":
            for host in at[1:]:
                crawl.client.extra_request(f"{host}/login")
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: len(web.log) == 5 or crawl.client.counts["extra_dropped"])
    assert [entry.path for entry in web.log[2:]] == ["/login"] * 3
    assert crawl.client.counts["extra_dropped"] == 0


def test_a_loop_that_waits_for_an_extra_request_itself_goes_on(
    url: str, db: psycopg.Connection[Any], web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the loop waits, nothing yields the request, so it misses its slots. It must be dropped at some time."""
    monkeypatch.setattr(own_requests, "TRIES", 2)
    add(db, f"http://127.0.0.2:{web.port}/")

    async def loop() -> int:
        async with Client(url, user_agent="me", robots=False) as crawl:
            async for page in crawl:
                await asyncio.wait_for(crawl.extra_request(f"http://127.0.0.3:{web.port}/login"), 30)
                page.report(200)
                break
        return crawl.counts["extra_dropped"]

    assert asyncio.run(loop()) == 1


def test_a_request_of_the_client_comes_in_its_slot_although_nothing_else_happens() -> None:
    async def crawl() -> None:
        clock = Clock()
        now = time.monotonic()
        clock.learn(now, now, datetime.now(UTC))
        runner = Runner(InHand(clock, Preparation(0, 4), 10, lambda _: Access.ALLOWED), "me", None)
        runner.open()
        waits = asyncio.create_task(runner.wait_for_page())
        await asyncio.sleep(0)
        begins = datetime.now(UTC) + timedelta(seconds=0.1)
        row = request_row("http://a.example/login", "a.example", (begins, begins + timedelta(seconds=60)))
        runner.add(runner.page(row, "extra"))
        await asyncio.wait_for(waits, 30)
        while not (page := runner.next()):  # the clock may need some microseconds more
            await asyncio.wait_for(runner.wait_for_page(), 30)
        assert page.url == row.url

    asyncio.run(crawl())


def test_an_extra_request_uses_the_robots_txt_that_the_database_has(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    db.execute("select recrawl.set_robots(%s, 200, 'User-agent: *')", [f"http://127.0.0.2:{web.port}"])
    add(db, f"http://127.0.0.3:{web.port}/")
    crawl = Crawl(url)

    async def visit(page: Page) -> None:
        if page.kind == "page":
            crawl.client.extra_request(f"http://127.0.0.2:{web.port}/form")
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: web.log and web.log[-1].path == "/form")
    assert [entry.path for entry in web.log if entry.host == "127.0.0.2"] == ["/form"]


def test_an_extra_request_whose_robots_txt_cannot_be_read_is_dropped_and_counted(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers |= {"/robots.txt": Answer(503), "*": Answer()}
    crawl = Crawl(url)
    add(db, f"http://127.0.0.3:{web.port}/")
    db.execute("select recrawl.set_robots(%s, 200, '')", [f"http://127.0.0.3:{web.port}"])

    async def visit(page: Page) -> None:
        if page.kind == "page":
            await crawl.client.extra_request(f"http://127.0.0.2:{web.port}/login")
        await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"])
    assert crawl.client.counts["extra_dropped"] == 1
    assert [entry.path for entry in web.log if entry.host == "127.0.0.2"] == ["/robots.txt"]


def test_what_begins_too_late_is_given_back(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    begun: list[bool] = []

    async def visit(page: Page) -> None:
        begun.append(await crawl.client.begins(page))
        if begun == [True]:
            await asyncio.sleep(1)
            begun.append(await crawl.client.begins(page))

    crawl = Crawl(url, robots=False)
    crawl.run(30, visit, until=lambda: crawl.client.counts["unready"])
    assert begun[:2] == [True, False] and crawl.client.counts["unready"] >= 1
    assert leases(db) == []


def test_a_visit_that_a_busy_loop_would_begin_too_late_is_given_back(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    visited: list[Page] = []

    async def crawl() -> None:
        async with Client(url, user_agent="shop-bot", robots=False) as crawl:

            async def visit(page: Page) -> None:
                visited.append(page)
                crawl.stop()

            is_first = True
            async for page in crawl:
                crawl.spawn(visit, page)
                if is_first:
                    is_first, missed = False, crawl.counts["missed"]
                    time.sleep(GAP)
                    await asyncio.sleep(0)  # lets the task of the visit begin
                    assert visited == [] and crawl.counts["missed"] == missed + 1

    asyncio.run(asyncio.wait_for(crawl(), 120))
    assert len(visited) == 1


def test_a_crawl_is_somebodys(url: str, db: psycopg.Connection[Any]) -> None:
    async def claim(who: str) -> None:
        async with Client(url, user_agent="me") as crawl:
            await crawl.claim(who)

    asyncio.run(claim("mine"))
    with pytest.raises(Error, match=r"this database holds the crawl mine\. Use another database for the crawl yours"):
        asyncio.run(claim("yours"))
