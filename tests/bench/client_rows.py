"""The cost of the client for asyncio, its share of the requests that gaps allow, and the delay of its requests."""

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp

from bench import calls, server
from bench.crew import Crew
from bench.measure import Backend, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note
from recrawl.client import Client, Page
from web import Answer, Request, Web

CONSUMERS = 4
START, SECONDS = 3.0, 8.0
HOSTS, GAP = 60, 0.2


def client(stage: Stage) -> Iterator[Line]:
    yield from overhead(stage)
    yield from allowed(stage)
    yield from promptness(stage)


def overhead(stage: Stage) -> Iterator[Line]:
    """Both pop and report a hundred pages at a time and do nothing else; hosts have slots enough."""
    ratios = []
    for turn in range(3):
        rates = {}
        for name in ("sql", "client") if turn % 2 else ("client", "sql"):
            with stage.standard() as url:
                settings(url, default_gap="100 milliseconds", window_share="1")
                rates[name] = raw_rate(url) if name == "sql" else client_rate(url)
        progress(f"pages per second: {rates}")
        ratios.append(rates["sql"] / rates["client"] - 1)
    yield note("pages per second, four consumers: SQL, client", f"{rates['sql']:,.0f}, {rates['client']:,.0f}")
    yield at_most("client over SQL, four consumers", 100 * statistics.median(ratios), 15, "% slower")


def settings(url: str, **values: str) -> None:
    with Backend(url) as backend:
        for name, value in values.items():
            backend.run("select recrawl.set_setting(%s, %s)", [name, value])


def cycle(backend: Backend) -> int:
    pages = calls.pop(backend, "2 s")
    calls.report_json(backend, [{"page_id": page[0], "lease_id": page[1], "status": 200} for page in pages])
    return len(pages)


def raw_rate(url: str) -> float:
    with Crew(url, CONSUMERS) as crew:
        return crew.rate(cycle, SECONDS)


async def report(page: Page) -> None:
    page.report(200)


async def crawl(url: str, seconds: float, **options: Any) -> int:
    """The number of requests in that time. The first seconds, for the start, do not count."""
    async with Client(url, user_agent="bench", robots=False, **options) as crawl:
        begun: list[int] = []
        loop = asyncio.get_running_loop()
        loop.call_later(START, lambda: begun.append(crawl.counts["requests"]))
        loop.call_later(START + seconds, crawl.stop)
        async for page in crawl:
            crawl.spawn(report, page)
        return crawl.counts["requests"] - begun[0]


async def request(url: str, seconds: float, **options: Any) -> None:
    """Each request says when it was to begin."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    async with (
        aiohttp.ClientSession(connector=connector) as web,
        Client(url, user_agent="bench", robots=False, **options) as crawl,
    ):

        async def visit(page: Page) -> None:
            headers = {**page.request_headers, "X-Due": str(page.fetch_at.timestamp())}
            async with web.get(page.url, headers=headers, allow_redirects=False) as answer:
                page.report(answer.status, answer.headers, body=await answer.read())

        asyncio.get_running_loop().call_later(seconds, crawl.stop)
        async for page in crawl:
            crawl.spawn(visit, page)


def _member(url: str, seconds: float, options: dict[str, Any], tell: Callable[[object], None]) -> None:
    tell(asyncio.run(crawl(url, seconds, **options)))


def _requester(url: str, seconds: float, options: dict[str, Any]) -> None:
    asyncio.run(request(url, seconds, **options))


def crawlers(url: str, count: int, seconds: float, **options: Any) -> list[int]:
    spawn = multiprocessing.get_context("spawn")
    results = spawn.SimpleQueue()
    members = [
        spawn.Process(target=_member, args=(url, seconds, options, results.put), daemon=True) for _ in range(count)
    ]
    for member in members:
        member.start()
    found = [results.get() for _ in members]
    for member in members:
        member.join()
    return found


def client_rate(url: str) -> float:
    return sum(crawlers(url, CONSUMERS, SECONDS, concurrency=200)) / SECONDS


def allowed(stage: Stage) -> Iterator[Line]:
    at_hosts = f"{HOSTS} hosts with a gap of {GAP} s: requests of what gaps and windows allow"
    yield at_least(at_hosts, _share_of_allowed(stage), 96, "%")
    asked_rarely = _share_of_allowed(stage, ahead=10, per_host=50)
    yield note("the same, asking 10 s ahead for 50 of a host", f"{asked_rarely:.0f} %")


def _share_of_allowed(stage: Stage, **options: Any) -> float:
    with server.database(stage.server_url) as url:
        settings(url, default_gap=f"{GAP} s")
        add(url, HOSTS, 500, "http://h%s.example")
        (reported,) = crawlers(url, 1, 20, **options)
        return 100 * reported / (20 * HOSTS / (1.1 * GAP))


def promptness(stage: Stage) -> Iterator[Line]:
    """Requests to a web on this machine: it says when each arrives, by the clock that the database goes by."""
    arrived: list[tuple[float, float]] = []  # when, and how long after fetch_at

    def answer(request: Request) -> Answer:
        arrived.append((request.at, time.time() - float(request.headers["x-due"])))
        return Answer()

    with server.database(stage.server_url) as url, Web(answer) as web:
        settings(url, default_gap="1 s")
        add(url, 155, 40, *(f"http://127.{n}.%s.1:{web.port}" for n in range(1, 5)))
        spawn = multiprocessing.get_context("spawn")
        requester = spawn.Process(target=_requester, args=(url, START + 20, {"concurrency": 500}), daemon=True)
        requester.start()
        requester.join()
        begun = arrived[0][0] + START
        lags = sorted(lag for at, lag in arrived if begun <= at < begun + 20 - 1)
        yield at_least("requests per second to a web on this machine", len(lags) / 19, 490, "")
        yield at_most("fetch_at to the request's arrival there, p99", 1000 * lags[len(lags) * 99 // 100], 50, "ms")


def add(url: str, hosts: int, pages: int, *names: str) -> None:
    with Backend(url) as backend:
        for page in range(0, pages, 20):
            backend.run(
                "select count(*) from recrawl.add_pages(array(select format(n || '/%%s', h, p)"
                " from unnest(%s::text[]) n, generate_series(1, %s) h, generate_series(%s::int, %s::int) p))",
                [list(names), hosts, page, page + 19],
            )
        while backend.rows("select recrawl_internal.tick(1000, 10000)")[0][0]:
            time.sleep(0)
