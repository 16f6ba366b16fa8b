"""Crawlers whose visits need a while before the request, as those with a browser do. The log of the web is the judge.

The crawls run side by side, each in a database of its own, with the client's default `ahead` of 2 s.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from math import nan

from bench import server
from bench.client_rows import add, settings
from bench.stage import Stage
from bench.table import Line, at_least
from recrawl.client import Client, Page
from web import Answer, Web

GAP = 1.0  # seconds
HOSTS = 5
SKIPPED, COUNTED = 3.0, 27.0  # seconds from the crawler's start: those that do not count, and those that do
# Seconds from the page to the request, and what the crawler says of them beforehand.
VISITS = [(0.0, 0.0), (0.1, 0.0), (0.2, 0.0), (0.3, 0.0), (0.6, 0.0), (2.0, 0.0), (2.0, 2.0)]


def slow(stage: Stage) -> Iterator[Line]:
    """Requests from the third second on, compared with visits that need no time; and the least gap of all."""
    with ExitStack() as stack, Web(lambda request: Answer()) as web:
        urls = [stack.enter_context(server.database(stage.server_url)) for _ in VISITS]
        for crawl, url in enumerate(urls):
            settings(url, default_gap=f"{GAP} s")
            add(url, HOSTS, 60, f"http://127.0.{crawl + 1}.%s:{web.port}")
        started = asyncio.run(_crawl_all(urls, web))
        made: list[tuple[int, float]] = []
        for crawl, start in enumerate(started):
            of_hosts = [web.of(f"127.0.{crawl + 1}.{host}") for host in range(1, HOSTS + 1)]
            counted = [start + SKIPPED <= entry.at < start + SKIPPED + COUNTED for of in of_hosts for entry in of]
            gaps = (b.at - a.at for of in of_hosts for a, b in pairwise(of))
            made.append((sum(counted), min(gaps, default=nan)))
    for (seconds, expected), (requests, least_gap) in zip(VISITS, made, strict=True):
        said = f", preparation={expected:g}" if expected else ""
        share = 100 * requests / made[0][0]
        yield at_least(f"visits that need {seconds:g} s{said}: requests of those made at 0 s", share, 90, "%")
        yield at_least(f"visits that need {seconds:g} s{said}: least gap at the web", least_gap, 0.98 * GAP, "s")


async def _crawl_all(urls: list[str], web: Web) -> list[float]:
    crawls = zip(urls, VISITS, strict=True)
    return await asyncio.gather(*(_crawl(url, seconds, expected, web) for url, (seconds, expected) in crawls))


async def _crawl(url: str, seconds: float, expected: float, judge: Web) -> float:
    """When the crawler started, by the clock of the web's log."""
    import aiohttp  # here: test_slow_visits.py needs the rest of this file, in each process of a run

    async with (
        aiohttp.ClientSession() as web,
        Client(url, user_agent="bench", robots=False, concurrency=20, preparation=expected) as crawl,
    ):

        async def visit(page: Page) -> None:
            await asyncio.sleep(seconds)
            if await crawl.begins(page):
                async with web.get(page.url, headers=page.request_headers) as answer:
                    page.report(answer.status, answer.headers, body=await answer.read())

        async with web.get(f"http://127.0.0.1:{judge.port}/"):  # the first request of a process takes longer
            pass
        start = judge.loop.time()
        asyncio.get_running_loop().call_later(SKIPPED + COUNTED, crawl.stop)
        async for page in crawl:
            crawl.spawn(visit, page)
    return start
