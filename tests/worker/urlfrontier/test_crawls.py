"""Other crawls than the one that the service was given, and the rights of callers on them."""

import asyncio
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy.engine import make_url

from recrawl.setup import migrate
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from recrawl.urlfrontier.crawls import Crawls, UnknownCrawl
from recrawl.urlfrontier.items import Put
from worker.urlfrontier.client import FAIL, OK, SKIPPED, Frontier, discovered, known
from worker.urlfrontier.conftest import Command, Served

A, B = "http://a.example/", "http://b.example/"


@pytest.fixture
def news(url: str, db: psycopg.Connection[Any]) -> Iterator[bytes]:
    """The quoted name of the database that the crawl News has, once it has one."""
    name = f'"{conninfo_to_dict(url)["dbname"]}~News"'.encode()
    yield name
    db.execute(b"drop database if exists " + name + b" with (force)")


@pytest.mark.usefixtures("news")
def test_each_crawl_has_a_database_of_its_own(frontier: Frontier, caplog: pytest.LogCaptureFixture) -> None:
    put = [discovered(A, "1", crawl="News"), discovered(A, "2", crawl="DEFAULT"), discovered(B, "3")]
    assert sorted(frontier.put(*put)) == [("1", OK), ("2", OK), ("3", OK)]
    assert list(frontier.call("ListCrawls", pb.Local()).values) == ["DEFAULT", "News"]
    assert (frontier.urls(crawlID="News"), frontier.urls()) == ([A], [A, B])
    assert frontier.stats(crawl="News")[0] == 1
    got = sorted((page.crawlID, page.url) for page in frontier.get())
    assert got == [("DEFAULT", A), ("DEFAULT", B), ("News", A)], "of all where none is named"
    assert frontier.call("DeleteCrawl", pb.DeleteCrawlMessage(value="News")).value == 1
    assert frontier.put(discovered(A, crawl="no/name")) == [(A, SKIPPED)]
    refused = "a crawlID is 1 to 30 letters, digits, and _.-, got 'no/name'"
    assert [line for line in caplog.messages if "crawlID" in line] == [refused]


@pytest.mark.usefixtures("news")
def test_the_log_shows_nothing_of_a_crawl_that_is_made_and_of_calls_at_the_end(url: str, tmp_path: Path) -> None:
    """Alembic logged each version. A call that came during the end connected again, and could lease pages."""
    command = Command(url, tmp_path / "log")
    assert command.client.put(discovered(A, crawl="News")) == [(A, OK)]

    def call_until_it_ends() -> None:
        with suppress(grpc.RpcError):
            while True:
                command.client.urls()

    with ThreadPoolExecutor() as pool:
        calls = [pool.submit(call_until_it_ends) for _ in range(4)]
        time.sleep(0.5)
        command.process.send_signal(signal.SIGINT)
        assert command.process.wait(60) == 0
        for call in calls:
            call.result(60)
    assert command.log.read_text() == ""


@pytest.mark.usefixtures("news")
def test_the_database_may_be_named_outside_of_the_url(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The crawl News was in the database ~News, and lost after a restart."""
    monkeypatch.setenv("PGDATABASE", str(make_url(url).database))
    served = Served(make_url(url).set(database="").render_as_string(hide_password=False))
    try:
        assert served.client.put(discovered(A, crawl="News")) == [(A, OK)]
        assert list(served.client.call("ListCrawls", pb.Local()).values) == ["DEFAULT", "News"]
    finally:
        served.stop()


@pytest.mark.parametrize("name", ["unknown", "no/name"])
def test_a_crawl_that_does_not_exist_is_an_empty_one(frontier: Frontier, name: str) -> None:
    frontier.put(discovered(A))
    assert frontier.urls(crawlID=name) == []
    assert frontier.call("CountURLs", pb.CountUrlParams(crawlID=name)).value == 0
    assert frontier.call("ListQueues", pb.Pagination(crawlID=name)) == pb.QueueList(crawlID=name)
    stats = frontier.call("GetStats", pb.QueueWithinCrawlParams(crawlID=name))
    assert stats == pb.Stats(crawlID=name, counts={"completed": 0, "active_queues": 0})
    assert frontier.call("DeleteQueue", pb.QueueWithinCrawlParams(crawlID=name, key="a.example")).value == 0
    assert frontier.call("DeleteCrawl", pb.DeleteCrawlMessage(value=name)).value == 0
    assert frontier.call("PurgeURLs", pb.PurgeUrlParams(crawlID=name)).value == 0
    frontier.call("SetDelay", pb.QueueDelayParams(crawlID=name, delay_requestable=7))
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(crawlID=name, key="a.example", time=2**40))
    for call, message in {
        "GetURLStatus": pb.URLStatusRequest(crawlID=name, url=A),
        "SetCrawlLimit": pb.CrawlLimitParams(crawlID=name, key="a.example", limit=1),
    }.items():
        with pytest.raises(grpc.RpcError) as error:
            frontier.call(call, message)
        assert error.value.code() is grpc.StatusCode.NOT_FOUND
    assert list(frontier.call("ListCrawls", pb.Local()).values) == ["DEFAULT"]
    assert [page.url for page in frontier.get()] == [A]


@pytest.mark.usefixtures("news")
def test_a_call_for_any_crawl_draws_from_all(frontier: Frontier) -> None:
    frontier.put(*(discovered(f"http://h{n}.example/", crawl=crawl) for crawl in ("DEFAULT", "News") for n in range(6)))
    for _ in range(2):
        assert Counter(page.crawlID for page in frontier.get(queues=4)) == {"DEFAULT": 2, "News": 2}
    frontier.put(*(discovered(f"http://more{n}.example/", crawl="News") for n in range(10)))
    last = Counter(page.crawlID for page in frontier.get(queues=8))
    assert last["DEFAULT"] == 2 and last["News"] >= 4
    more = Counter(page.crawlID for page in frontier.get(queues=6))
    assert more == {"News": 6}, "the whole share of a crawl that has no more queues"


@pytest.mark.usefixtures("news")
def test_no_crawl_starves_beside_a_larger_one(frontier: Frontier) -> None:
    frontier.put(*(discovered(f"http://h{n}.example/") for n in range(6)), discovered(A, crawl="News"))
    got = [page.crawlID for _ in range(4) for page in frontier.get(queues=1)]
    assert sorted(got) == ["DEFAULT", "DEFAULT", "DEFAULT", "News"]


@pytest.mark.usefixtures("news")
def test_who_puts_into_a_new_crawl_need_not_wait_for_who_looks_for_it(url: str) -> None:
    async def both() -> None:
        crawls = Crawls(url, migrate.upgrade)
        await crawls.open()
        looks = asyncio.create_task(crawls.crawl("News"))
        await asyncio.sleep(0)
        assert await crawls.puts("News")
        with pytest.raises(UnknownCrawl):
            await looks
        assert await crawls.crawl("News")
        await crawls.close()

    asyncio.run(both())


def test_two_new_crawls_are_made_at_the_same_time(url: str, db: psycopg.Connection[Any]) -> None:
    names = ["News", "Shops"]

    async def both() -> None:
        crawls = Crawls(url, migrate.upgrade)
        await crawls.open()
        try:
            await asyncio.gather(*(crawls.puts(name) for name in names))
            assert await crawls.names() == ["DEFAULT", *names]
        finally:
            await crawls.close()

    try:
        asyncio.run(both())
    finally:
        for name in names:
            db.execute(f'drop database if exists "{db.info.dbname}~{name}" with (force)'.encode())


def test_a_put_that_comes_when_the_service_ends_must_be_sent_again(url: str) -> None:
    async def put() -> list[int]:
        acks: list[int] = []
        crawls = Crawls(url, migrate.upgrade)
        await crawls.open()
        puts = await crawls.puts("")
        puts.put(Put(A, None), acks.append)
        await crawls.close_puts()
        puts.put(Put(B, None), acks.append)
        told = acks.copy()
        await crawls.close()
        return told

    assert asyncio.run(put()) == [FAIL, FAIL]


@pytest.mark.usefixtures("news")
def test_a_crawl_that_is_made_while_all_are_inactive_is_so_too(frontier: Frontier) -> None:
    frontier.call("SetActive", pb.Active(state=False))
    assert frontier.put(discovered(A, crawl="News")) == [(A, OK)]
    assert frontier.get() == []
    frontier.call("SetActive", pb.Active(state=True))
    assert [page.url for page in frontier.get()] == [A]


def test_a_crawl_whose_making_was_cut_short_is_made_up_and_stops_no_other(
    frontier: Frontier, db: psycopg.Connection[Any], news: bytes
) -> None:
    db.execute(b"create database " + news + b" template template0")
    assert frontier.put(discovered(A)) == [(A, OK)]
    assert [page.url for page in frontier.get()] == [A]
    frontier.call("SetActive", pb.Active(state=True))
    assert frontier.call("GetActive", pb.Local()).state
    assert frontier.put(discovered(B, crawl="News")) == [(B, OK)]
    assert [page.url for page in frontier.get()] == [B]


def test_a_crawl_of_another_version_is_left_alone_and_stops_no_other(
    frontier: Frontier, url: str, db: psycopg.Connection[Any], news: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    db.execute(b"create database " + news + b" template template0")
    with psycopg.connect(url, dbname=news.decode().strip('"'), autocommit=True) as older:
        older.execute("create schema recrawl")
    assert frontier.put(discovered(A, crawl="News"), discovered(B)) == [(A, FAIL), (B, OK)]
    caplog.clear()
    assert [page.url for page in frontier.get()] == [B]
    assert [line for line in caplog.messages if line.startswith("the crawl News is left out: ")]


def test_a_database_may_have_any_name(
    server: str, template: str, on_server: Callable[..., None], new_database: Callable[..., str]
) -> None:
    name = f"{make_url(new_database()).database}.(x".ljust(60, "_")
    on_server("create database {} template {} strategy file_copy", name, template)
    try:
        served = Served(make_url(server).set(database=name).render_as_string(hide_password=False))
        put = [discovered(A), discovered(A, "1", crawl="DEFAULT"), discovered(A, "2", crawl="News")]
        assert sorted(served.client.put(*put)) == [("1", SKIPPED), ("2", SKIPPED), (A, OK)]
        assert list(served.client.call("ListCrawls", pb.Local()).values) == ["DEFAULT"], "NAME~News is too long"
        served.stop()
    finally:
        on_server("drop database {} with (force)", name)


def test_who_may_not_steer_is_told_so_and_still_crawls(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.urlfrontier.crawls.AGAIN", 60.0)
    login = f"{conninfo_to_dict(url)['dbname']}_crawler"
    db.execute(f"create role {login} login password 'x' in role recrawl_crawler, recrawl_reader".encode())
    try:
        as_crawler = psycopg.conninfo.make_conninfo(url, user=login, password="x")
        parts = conninfo_to_dict(as_crawler)
        host = f"{parts.get('host', '')}"
        address = f"postgresql://{login}:x@/{parts['dbname']}?host={host}&port={parts.get('port', 5432)}"
        served = Served(address)
        assert served.client.put(discovered(A)) == [(A, OK)]
        assert len(served.client.get()) == 1
        assert served.client.put(known(A, datetime.now(UTC) + timedelta(days=1))) == [(A, OK)]
        with pytest.raises(grpc.RpcError) as error:
            served.client.call("SetActive", pb.Active(state=False))
        assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED
        put = served.client.put(*(discovered(f"{A}{n}", crawl="New") for n in range(200)))
        assert {status for _, status in put} == {FAIL}, "it may make no database"
        assert len(caplog.messages) == 1, "it is not tried for each URL"
        served.stop()
    finally:
        db.execute(f"drop owned by {login}".encode())
        db.execute(f"drop role {login}".encode())
