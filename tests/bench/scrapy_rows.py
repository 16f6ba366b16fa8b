"""Scrapy on recrawl, against a web on this machine: its share of the requests that gaps allow, its speed, and the
least time between requests. For comparison Scrapy alone, without gaps, on the same web: its speed and its cost.
"""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench import server
from bench.client_rows import settings
from bench.measure import cpu_of, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note
from spiders import Project
from web import Answer, Request, Web, links

SECONDS = 20.0
BEGUN = 4  # requests to a host, until it runs evenly
PAGES = 4000  # a host
WINDOW = 1.1  # gaps between two slots: the setting window_share
PLAIN = {
    "RECRAWL_ENABLED": False, "ROBOTSTXT_OBEY": False, "DOWNLOAD_DELAY": 0, "CONCURRENT_REQUESTS_PER_DOMAIN": 8
}  # fmt: skip
FEW_ITEMS = {"CONCURRENT_ITEMS": 8}  # Scrapy 2.19 begins that many tasks for each response, and by itself 100
SPIDER = """
class Tree(scrapy.Spider):
    name = "tree"

    async def start(self):
        for host in self.settings.getlist("HOSTS"):
            yield scrapy.Request(f"http://{host}/0", dont_filter=True)

    def parse(self, response):
        yield from map(response.follow, response.css("a::attr(href)").getall())
"""


class Crawled(NamedTuple):
    rate: float  # requests per second, once it runs evenly
    cpu: float  # milliseconds a request, of Scrapy's process
    closest: float  # seconds between two requests to a host


def scrapy(stage: Stage) -> Iterator[Line]:
    few = crawled(stage, 60, 0.2)
    share = 100 * few.rate * WINDOW * 0.2 / 60
    yield at_least("60 hosts, gap 0.2 s: requests of what gaps and windows allow", share, 80, "%")
    many = crawled(stage, 200, 0.3)
    yield at_least("200 hosts, gap 0.3 s: requests per second", many.rate, 500, "")
    yield at_least("closest two of a host, less the gap", 1000 * (many.closest - 0.3), -5, "ms")
    plain = crawled(stage, 200, 0, **PLAIN)
    yield note("Scrapy as it is, 200 hosts without a gap: requests per second", f"{plain.rate:.0f}")
    yield note("CPU a request: on recrawl, as it is", f"{many.cpu:.2f} ms, {plain.cpu:.2f} ms")
    yield at_most("CPU a request over Scrapy as it is", many.cpu / plain.cpu, 2, "×")
    many, plain = crawled(stage, 200, 0.3, **FEW_ITEMS), crawled(stage, 200, 0, **PLAIN, **FEW_ITEMS)
    yield note("requests per second at CONCURRENT_ITEMS 8: on recrawl, as it is", f"{many.rate:.0f}, {plain.rate:.0f}")
    yield note("CPU a request at CONCURRENT_ITEMS 8: on recrawl, as it is", f"{many.cpu:.2f} ms, {plain.cpu:.2f} ms")


def tree(request: Request) -> Answer:
    if request.path == "/robots.txt":
        return Answer(404)
    n = int(request.path[1:])
    return Answer(body=links(f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < PAGES))


def crawled(stage: Stage, hosts: int, gap: float, **options: object) -> Crawled:
    names = [f"127.0.{n // 200}.{2 + n % 200}" for n in range(hosts)]
    with server.database(stage.server_url) as url, Web(tree) as web, tempfile.TemporaryDirectory() as folder:
        if gap:
            settings(url, default_gap=f"{gap} s")
        project = Project(Path(folder), url, tree=SPIDER)
        seeds = ",".join(f"{name}:{web.port}" for name in names)
        options = {"HOSTS": seeds, "CONCURRENT_REQUESTS": 200, "LOG_LEVEL": "ERROR", **options}
        crawler = subprocess.Popen(project.command("tree", **options), cwd=folder, env=os.environ | {"no_proxy": "*"})
        while len(web.log) < BEGUN * hosts:
            time.sleep(0.1)
        before, began, used = len(web.log), time.monotonic(), cpu_of(crawler.pid)
        time.sleep(SECONDS)
        requests, seconds = len(web.log) - before, time.monotonic() - began
        cpu = (cpu_of(crawler.pid) - used) / requests
        crawler.terminate()
        crawler.wait()
        closest = min(apart for name in names for apart in web.apart(name)[:1])
        found = Crawled(requests / seconds, cpu, closest)
        progress(f"{hosts} hosts, gap {gap} s: {found}")
        return found
