"""The client against a real database and a real web, whose log is the judge."""

import asyncio
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from crawler import GAP, LATE, Crawl, Site, add, leases, state
from recrawl.client import Client, Error, Page, ThreadedClient
from recrawl.client.options import DEFAULTS, Options
from web import Answer, Request, Web, links

# ------------------------------------------------------------------------------------------------------ pages


def test_pages_are_found_reported_and_a_gap_apart(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    hosts = [f"127.0.0.{n}" for n in (2, 3, 4)]
    site.answers |= {f"/{n}": Answer(body=links([f"/{n + 1}"]), headers={"ETag": f'"{n}"'}) for n in range(5)}
    add(db, *(f"http://{host}:{web.port}/0" for host in hosts))
    crawl = Crawl(url)
    crawl.run(30, until=lambda: crawl.client.counts["ok"] == 18)
    for host in hosts:
        assert [entry.path for entry in web.of(host)] == ["/robots.txt", *(f"/{n}" for n in range(6))]
        assert web.apart(host)[0] > GAP - LATE
    assert state(db, f"http://127.0.0.2:{web.port}/4").successes == 1
    assert state(db, f"http://127.0.0.2:{web.port}/5").last_status == 404
    assert leases(db) == []
    in_hand = crawl.client.counts["handed_out"] - crawl.client.counts["missed"]
    assert in_hand == len(crawl.outcomes), "each page in hand has one outcome"


def test_what_stays_is_asked_for_with_its_validators(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    asked: list[dict[str, str]] = []

    def page(request: Request) -> Answer:
        asked.append(request.headers)
        validators = {"ETag": '"1"', "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"}
        return Answer(304 if request.headers.get("if-none-match") == '"1"' else 200, headers=validators)

    site.answers["/"] = page
    for name, value in {"shortest_interval": "1 s", "frequency": "86400"}.items():
        db.execute("select recrawl.set_setting(%s, %s)", [name, value])
    add(db, f"http://127.0.0.2:{web.port}/")
    crawl = Crawl(url)
    crawl.run(20, until=lambda: crawl.client.counts["ok"] == 3)
    assert "if-none-match" not in asked[0]
    assert (asked[2]["if-none-match"], asked[2]["if-modified-since"]) == ('"1"', "Sun, 06 Nov 1994 08:49:37 GMT")
    assert asked[0]["user-agent"] == "shop-bot"
    assert state(db, f"http://127.0.0.2:{web.port}/").changes == 0


def test_a_redirect_for_now_is_a_link_and_one_for_good_hands_over(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    at = f"http://127.0.0.2:{web.port}"
    site.answers |= {
        "/now": Answer(302, headers={"Location": "/a"}), "/ever": Answer(308, headers={"Location": "/b"}),
        "/a": Answer(), "/b": Answer(),
    }  # fmt: skip
    add(db, f"{at}/now", f"{at}/ever")
    crawl = Crawl(url)
    crawl.run(20, until=lambda: crawl.client.counts["ok"] == 4)
    assert {entry.path for entry in web.log} == {"/robots.txt", "/now", "/ever", "/a", "/b"}
    assert (state(db, f"{at}/now").state, state(db, f"{at}/ever").state) == ("live", "moved")


# ----------------------------------------------------------------------------------------------------- mishaps


def test_only_the_first_visit_that_raises_is_a_warning(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, "http://a.example/", "http://b.example/")

    async def visit(page: Page) -> None:
        raise RuntimeError(page.host)

    crawl = Crawl(url)
    with caplog.at_level("INFO", "recrawl.client"):
        crawl.run(20, visit, until=lambda: crawl.client.counts["raised"] == 2)
    raised = [record for record in caplog.records if "raised RuntimeError: " in record.getMessage()]
    assert [record.levelname for record in raised] == ["WARNING", "INFO"]


def test_what_a_visit_does_becomes_an_outcome(url: str, db: psycopg.Connection[Any], web: Web) -> None:
    names = ["raises", "forgets", "twice", "unreadable", "undumpable", "good"]
    at = {name: f"http://{name}.example/" for name in names}
    add(db, *at.values())

    async def visit(page: Page) -> None:
        match page.host.split(".")[0]:
            case "raises":
                raise RuntimeError("of its own")
            case "twice":
                assert page.report(200) and not page.report(500) and not page.release()
            case "unreadable":
                page.report(200, meta={"a": "\0"})
            case "undumpable":
                page.report(200, meta={(1, 2): 3})
            case "good":
                page.report(200, relevance=1)

    crawl = Crawl(url, robots=False)
    crawl.run(30, visit, until=lambda: len(crawl.of(at["forgets"])) > 3 and all(map(crawl.of, at.values())))
    assert crawl.of(at["raises"]) == ["ok"] and state(db, at["raises"]).last_status == 0
    assert set(crawl.of(at["forgets"])) == {"released"} and state(db, at["forgets"]).successes == 0
    assert crawl.of(at["twice"]) == ["ok"] and state(db, at["twice"]).last_status == 200
    assert crawl.of(at["unreadable"])[0] == crawl.of(at["undumpable"])[0] == "invalid"
    assert crawl.of(at["good"]) == ["ok"] and state(db, at["good"]).relevance == 1
    assert crawl.client.counts["raised"] == 1 and crawl.client.counts["reported_again"] == 1


def test_a_visit_may_say_when_it_wants_a_page_again_or_that_it_does_not(url: str, db: psycopg.Connection[Any]) -> None:
    names = ["later", "enough", "declines"]
    at = {name: f"http://{name}.example/" for name in names}
    later = datetime.now(UTC) + timedelta(days=40)
    add(db, *at.values())

    async def visit(page: Page) -> None:
        match page.host.split(".")[0]:
            case "later":
                page.report(200, due=later)
            case "enough":
                page.report(200, due="infinity")
            case "declines":
                assert page.decline() and not page.report(200)

    crawl = Crawl(url, robots=False)
    crawl.run(30, visit, until=lambda: len(crawl.outcomes) >= 3)
    assert [crawl.of(at[name]) for name in names] == [["ok"]] * 3
    assert [state(db, at[name]).state for name in names] == ["live", "done", "declined"]
    assert later <= state(db, at["later"]).due_at <= later + timedelta(seconds=1)
    assert state(db, at["declines"]).successes == 0
    assert leases(db) == []


def test_a_hook_that_raises_stops_nothing(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/", "http://b.example/")
    crawl = Crawl(url, robots=False, on_outcome=lambda *_: 1 / 0)

    async def visit(page: Page) -> None:
        page.report(200)

    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"] == 2)
    counts = crawl.client.counts
    assert counts["ok"] == 2 == counts["hook_raised"] - counts["missed"]


def test_a_body_that_cannot_be_read_and_an_answer_that_never_comes_are_no_answer(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    broken = {
        "/gzip": Answer(body=b"\x1f\x8bnonsense", headers={"Content-Encoding": "gzip"}),
        "/short": Answer(body="abc", length=1000),
        "/hangs": Answer(hangs=True),
    }
    site.answers |= broken
    at = [f"http://127.0.0.2:{web.port}{path}" for path in broken]
    add(db, *at)
    crawl = Crawl(url, timeout=5)
    crawl.run(20, until=lambda: crawl.client.counts["ok"] == 3)
    assert crawl.client.counts["raised"] == 3
    assert {state(db, page).last_status for page in at} == {0}


def test_a_visit_that_outlives_its_lease_keeps_it(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")

    async def visit(page: Page) -> None:
        await asyncio.sleep(12)
        page.report(200)

    crawl = Crawl(url, robots=False, lease=10, ahead=0.5)
    crawl.run(30, visit, until=lambda: crawl.outcomes)
    assert [outcome for _, outcome, _ in crawl.outcomes] == ["ok"]


def test_a_lease_as_long_as_leases_may_be_is_kept(url: str, db: psycopg.Connection[Any]) -> None:
    """The client ended: it asked for half a lease more than the setting allows."""
    add(db, "http://a.example/")
    db.execute("select recrawl.set_setting('longest_lease', '10 seconds')")
    db.execute("select recrawl.set_setting('max_ahead', '1 second')")

    async def visit(page: Page) -> None:
        await asyncio.sleep(12)
        page.report(200)

    crawl = Crawl(url, robots=False, lease=10, ahead=0.5)
    crawl.run(30, visit, until=lambda: crawl.outcomes)
    assert [outcome for _, outcome, _ in crawl.outcomes] == ["ok"]


def test_a_visit_whose_lease_was_taken_away_is_cancelled(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    cancelled: list[Page] = []

    async def visit(page: Page) -> None:
        # The block comes first: otherwise the page is handed out again.
        db.execute("select recrawl.block_host('a.example', reason => 'test')")
        db.execute("select recrawl.release(%s)", [page.lease_id])
        try:
            await asyncio.sleep(120)
        except asyncio.CancelledError:
            cancelled.append(page)
            raise

    crawl = Crawl(url, robots=False, lease=2)
    crawl.run(30, visit, until=lambda: cancelled)
    assert cancelled and [outcome for _, outcome, _ in crawl.outcomes] == ["expired"]


def test_a_report_after_the_lease_is_counted(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")

    async def visit(page: Page) -> None:
        db.execute("select recrawl.release(%s)", [page.lease_id])
        page.report(200)

    crawl = Crawl(url, robots=False)
    crawl.run(30, visit, until=lambda: crawl.outcomes)
    assert crawl.outcomes[0][1] in ("stale_lease", "duplicate")


def test_pages_in_hand_of_a_blocked_host_are_given_back_soon(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, *(f"http://a.example/{n}" for n in range(50)))
    begun: list[float] = []
    blocked_at: list[float] = []

    async def visit(page: Page) -> None:
        begun.append(time.monotonic())
        if len(begun) == 3:
            await asyncio.to_thread(db.execute, "select recrawl.block_host('a.example', reason => 'test')")
            blocked_at.append(time.monotonic())
        page.report(200)

    crawl = Crawl(url, robots=False, ahead=10)
    crawl.run(6, visit, until=lambda: blocked_at and time.monotonic() > blocked_at[0] + 12)
    assert blocked_at and [at for at in begun if at > blocked_at[0] + 5] == []
    assert crawl.client.counts["blocked"] >= 1


def test_no_more_visits_than_asked_for_and_what_finds_none_free_is_given_back(
    url: str, db: psycopg.Connection[Any]
) -> None:
    add(db, *(f"http://h{n}.example/" for n in range(30)))
    under_way = most = 0

    async def visit(page: Page) -> None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.5)
        under_way -= 1
        page.report(200)

    crawl = Crawl(url, robots=False, concurrency=4)
    crawl.run(30, visit, until=lambda: crawl.client.counts["ok"] == 30)
    assert most == 4 and crawl.client.counts["ok"] == 30
    assert leases(db) == []


# ------------------------------------------------------------------------------------------------- beginning, end


@pytest.mark.parametrize("told", ["stop", "raise"])
def test_at_the_end_nothing_stays_leased(url: str, db: psycopg.Connection[Any], told: str) -> None:
    db.execute("select recrawl.set_setting('window_share', '1')")  # long slots, which nobody misses
    add(db, *(f"http://h{n}.example/{m}" for n in range(5) for m in range(20)))
    started: list[Page] = []
    finished: list[Page] = []

    async def visit(page: Page) -> None:
        started.append(page)
        await asyncio.sleep(0.5)
        finished.append(page)
        page.report(200)

    async def run() -> None:
        async with Client(url, user_agent="me", robots=False) as crawl:
            begun = 0
            async for page in crawl:
                crawl.spawn(visit, page)
                begun += 1
                if begun == 5:
                    if told == "raise":
                        raise KeyError("of the loop")
                    crawl.stop()

    if told == "stop":
        asyncio.run(run())
        assert finished and len(finished) == len(started), "visits under way end"
    else:
        with pytest.raises(KeyError, match="of the loop"):  # also after a visit that was cancelled before it began
            asyncio.run(asyncio.wait_for(run(), 120))
    assert leases(db) == []


def test_an_end_that_is_cancelled_leaves_nothing_leased(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, *(f"http://h{n}.example/" for n in range(5)))

    under_way: list[int] = []

    async def run() -> None:
        async with asyncio.timeout(60) as given, Client(url, user_agent="me", robots=False) as crawl:

            async def visit(page: Page) -> None:  # it has begun: no slot has passed before
                under_way.extend(leases(db))
                given.reschedule(asyncio.get_running_loop().time() + 5)
                crawl.stop()
                await asyncio.sleep(60)

            async for page in crawl:
                crawl.spawn(visit, page)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert under_way and leases(db) == []


def test_a_database_that_does_not_answer_keeps_no_crawler_from_ending(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")

    async def run() -> None:
        async with Client(url, user_agent="me", robots=False, grace=1) as crawl:
            async for page in crawl:
                db.execute("begin; lock table recrawl_internal.page, recrawl_internal.lease")
                page.report(200)
                break

    asyncio.run(asyncio.wait_for(run(), 120))
    db.execute("rollback")


def test_whoever_waits_for_a_page_hears_of_the_end(url: str, db: psycopg.Connection[Any]) -> None:
    async def run() -> None:
        async with Client(url, user_agent="me", robots=False) as crawl:
            waiting = [asyncio.ensure_future(anext(crawl, None)) for _ in range(3)]
            await asyncio.sleep(0.5)
            crawl.stop()
            assert await asyncio.wait_for(asyncio.gather(*waiting), 60) == [None] * 3

    asyncio.run(asyncio.wait_for(run(), 120))


def problem(dsn: str) -> str:
    async def open_it() -> None:
        async with Client(dsn, user_agent="me"):
            pass

    with pytest.raises(Error) as caught:
        asyncio.run(open_it())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_what_is_wrong_at_the_start_is_said_in_one_line(url: str, db: psycopg.Connection[Any], server: str) -> None:
    assert problem("nonsense").startswith("the connection string is not valid: ")
    assert problem("host=127.0.0.1 port=1 dbname=x").startswith("cannot connect to the database: ")
    assert problem("host=/tmp/recrawl-1000-0123456789abcdef dbname=recrawl") == (
        "cannot connect to the database: the embedded PostgreSQL does not run: "
        "start `env -u DATABASE_URL recrawl up` and leave it running"
    )
    refused = {"dbname": 'database "nosuch" does not exist', "user": 'role "nosuch" does not exist'}
    for name, reason in refused.items():
        said = problem(make_conninfo(url, **{name: "nosuch"}))
        assert said.startswith("cannot connect to the database: ") and reason in said
    assert "has no tables of recrawl yet. Run `recrawl migrate`" in problem(make_conninfo(server, dbname="template1"))
    db.execute("drop function recrawl.take_slot")
    assert "has another version of recrawl than this client. These functions are missing: take_slot" in problem(url)


def test_a_login_without_the_role_is_told_so(url: str, db: psycopg.Connection[Any]) -> None:
    login = f"nobody_in_{conninfo_to_dict(url)['dbname']}"  # roles belong to the server, which runs may share
    db.execute(f"create role {login} login".encode())
    try:
        assert "GRANT recrawl_crawler TO the login" in problem(make_conninfo(url, user=login))
        db.execute(f"grant recrawl_reader to {login}".encode())
        assert "GRANT recrawl_crawler TO the login" in problem(make_conninfo(url, user=login)), "it may only look"
        db.execute(f"grant recrawl_crawler to {login}".encode())
        add(db, "http://a.example/")

        async def visit(page: Page) -> None:
            page.report(200)

        crawl = Crawl(make_conninfo(url, user=login), robots=False)
        crawl.run(30, visit, until=lambda: crawl.outcomes)
        assert crawl.of("http://a.example/") == ["ok"], "the role suffices"
    finally:
        db.execute(f"drop owned by {login}; drop role {login}".encode())


def test_arguments_that_make_no_sense_are_refused() -> None:
    wrong: dict[str, Any] = {"user_agnt": "me"}
    with pytest.raises(TypeError, match="the client has no argument user_agnt"):
        Client("", user_agent="me", **wrong)
    with pytest.raises(TypeError, match="the client has no argument user_agnt"):
        ThreadedClient("", user_agent="me", **wrong)
    with pytest.raises(TypeError, match="the client needs the argument user_agent"):
        Client("")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="concurrency must be positive, got 0"):
        Client("", user_agent="me", concurrency=0)
    names: list[Any] = ["Zoë", "me\r\nCookie: x", "", None]
    for name in names:
        refusal = f"user_agent must consist of printable ASCII characters, got {name!r}"
        with pytest.raises(ValueError, match=re.escape(refusal)):
            Client("", user_agent=name)
    assert DEFAULTS.keys() == Options.__annotations__.keys() - {"user_agent"}


def test_on_outcome_may_stop_the_client(url: str, db: psycopg.Connection[Any]) -> None:
    """The loop waited for ever if the outcome was one that the call for the next page found."""
    add(db, *(f"http://h{n}.example/" for n in range(16)))

    def stop(page: Page, outcome: str, why: str | None) -> None:
        if outcome == "missed":
            client.stop()

    client = Client(url, user_agent="me", robots=False, on_outcome=stop)

    async def crawl() -> None:
        async with client:
            async for page in client:
                time.sleep(1)  # the slots of the other hosts pass
                page.report(200)

    asyncio.run(asyncio.wait_for(crawl(), 60))
    assert client.counts["missed"]


def test_a_window_of_no_length_is_an_error(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    db.execute("select recrawl.set_setting('window_share', '0')")
    with pytest.raises(Error, match="the setting window_share is 0"):
        Crawl(url).run(3)


# ---------------------------------------------------------------------------------------------------- threads


def test_threads_visit_pages_too(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    site.answers |= {f"/{n}": Answer(body=links([f"/{n + 1}"]), after=0.2) for n in range(4)}
    hosts = [f"127.0.0.{n}" for n in (2, 3, 4)]
    add(db, *(f"http://{host}:{web.port}/0" for host in hosts))
    threads = set()

    with (
        ThreadedClient(url, user_agent="me", concurrency=3) as crawl,
        httpx.Client(timeout=60, trust_env=False) as http,
    ):

        def visit(page: Page) -> None:
            threads.add(threading.get_ident())
            answer = http.get(page.url, headers=page.request_headers)
            page.report(answer.status_code, answer.headers, links=re.findall(r'href="([^"]+)"', answer.text))
            if answer.status_code == 404 and len(web.log) >= 18:
                crawl.stop()

        for page in crawl:
            crawl.spawn(visit, page)
    for host in hosts:
        assert {entry.path for entry in web.of(host)} == {"/robots.txt", *(f"/{n}" for n in range(5))}
    assert len(threads) > 1 and threading.get_ident() not in threads
    assert leases(db) == []


def test_threads_take_urls_in_and_ask_for_slots_beside_their_pages(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers |= {"/robots.txt": Answer(body="User-agent: *\nDisallow: /private"), "*": Answer()}
    at = f"http://127.0.0.2:{web.port}"
    add(db, f"{at}/0")
    seen: list[tuple[str, str, Any]] = []
    extras: dict[str, Future[None]] = {}

    with (
        ThreadedClient(url, user_agent="me", concurrency=3) as crawl,
        httpx.Client(timeout=60, trust_env=False) as http,
    ):

        def visit(page: Page) -> None:
            if page.kind == "page" and not extras:
                crawl.add(f"{at}/1", {"from": "0"})
                extras.update({name: crawl.extra_request(f"{at}/{name}", name) for name in ("form", "private")})
            answer = http.get(page.url, headers=page.request_headers)
            page.report(answer.status_code, answer.headers, body=answer.content)
            if page.kind != "robots":
                seen.append((page.kind, page.url, page.meta))
            if len(seen) == 3:
                for extra in extras.values():
                    extra.result(60)
                crawl.stop()

        for page in crawl:
            crawl.spawn(visit, page)
    assert sorted(seen) == [
        ("extra", f"{at}/form", "form"), ("page", f"{at}/0", None), ("page", f"{at}/1", {"from": "0"}),
    ]  # fmt: skip
    assert (crawl.counts["ok"], crawl.counts["new_urls"], crawl.counts["denied"]) == (2, 1, 1)
    assert "/private" not in {entry.path for entry in web.log} and leases(db) == []


def test_the_page_of_a_thread_that_outlives_the_client_stays_leased(url: str, db: psycopg.Connection[Any]) -> None:
    """It was given back, and another crawler could request it at the same time."""
    add(db, "http://a.example/")
    may_end = threading.Event()
    with ThreadedClient(url, user_agent="me", robots=False, grace=0.5) as crawl:
        for page in crawl:
            crawl.spawn(lambda _: may_end.wait(60), page)
            break
    try:
        (lease,) = leases(db)
        assert lease.pages == 1 and crawl.counts["expired"] == 1
    finally:
        may_end.set()


IMPATIENT = """
import os, signal, sys, threading, time
from recrawl.client import ThreadedClient

def visit(page):
    time.sleep(2)
    page.report(200)

with ThreadedClient(sys.argv[1], user_agent="me", robots=False, concurrency=5) as crawl:
    for n, page in enumerate(crawl):
        if n == 0:  # the first call of release in a session is slow
            page.release()
            while not crawl.counts["released"] or len(crawl.client._sender):
                time.sleep(0.01)
            continue
        crawl.spawn(visit, page)
        if n == 5:
            break
    threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
"""


def test_an_end_that_is_interrupted_gives_back_what_no_thread_visits(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, *(f"http://h{n}.example/" for n in range(20)))
    done = subprocess.run([sys.executable, "-c", IMPATIENT, url], stderr=subprocess.PIPE, text=True, timeout=60)
    assert "KeyboardInterrupt" in done.stderr and "was destroyed" not in done.stderr
    assert sum(lease.unreported for lease in leases(db)) <= 5, "at most those that threads visit"
