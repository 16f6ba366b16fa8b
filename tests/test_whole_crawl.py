"""A whole web, crawled by several processes: one is killed, Postgres is restarted. The web's log is the judge."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from helpers import eventually
from recrawl.setup import embedded
from spiders import Project
from web import Answer, Request, Web, links

CRAWLER = """
import asyncio, os, re, sys, time
import httpx
from recrawl.client import Client

async def main():
    limits = httpx.Limits(max_connections=200)
    async with httpx.AsyncClient(timeout=3, limits=limits, trust_env=False) as web:

        async def visit(page):
            headers = {**page.request_headers, "X-Began": str(time.monotonic())}
            async with web.stream("GET", page.url, headers=headers, follow_redirects=False) as answer:
                body = b""
                async for part in answer.aiter_bytes():
                    body += part
                    if len(body) > 200_000:
                        break
            links = re.findall(rb'href="([^"]+)"', body)
            missing = answer.status_code == 200 and b"no such page" in body
            page.report(404 if missing else answer.status_code, answer.headers, body=body,
                        links=[link.decode() for link in links])

        try:
            await web.get("http://127.0.0.1:9/")  # the first request of a process takes its time
        except httpx.ConnectError:
            pass
        async with Client(sys.argv[1], user_agent="shop-bot", concurrency=60, lease=15, stop_on_signals=True) as crawl:
            async for page in crawl:
                crawl.spawn(visit, page)
        print(dict(crawl.counts))

asyncio.run(main())
"""
SPIDER = """
class Shop(scrapy.Spider):
    name = "shop"
    custom_settings = {"DEPTH_LIMIT": 12, "DOWNLOAD_TIMEOUT": 3, "LOG_LEVEL": "CRITICAL"}

    async def start(self):
        return
        yield

    def parse(self, response):
        if isinstance(response, scrapy.http.TextResponse):
            yield from map(response.follow, response.css("a::attr(href)").getall())
"""
GAP = 0.2  # seconds
LATE = 0.03  # that a loaded machine may keep a request on its way
SLOWEST, FASTEST = 40.0, 2.0  # seconds between changes of a page
DEPTH = 12
ROBOTS = "User-agent: *\nDisallow: /private\n"


class Shop:
    """Hosts with `pages` each, which link to the next ones, to other hosts and to every kind of mishap.

    Page n of a host changes every so many seconds, from FASTEST to SLOWEST; half of the pages tell by etags.
    """

    def __init__(self, hosts: list[str], pages: int) -> None:
        self.hosts, self.pages = hosts, pages
        self.began = time.monotonic()
        self.throttled: dict[str, float] = {}  # until when

    def period(self, n: int) -> float:
        return FASTEST if n % 10 == 1 else SLOWEST

    def version(self, n: int) -> int:
        return int((time.monotonic() - self.began + 7 * n) / self.period(n))

    def __call__(self, request: Request) -> Answer:
        name = request.path.partition("?")[0].strip("/")
        if name == "robots.txt":
            return Answer(404) if request.host == self.hosts[0] else Answer(body=ROBOTS)
        special: dict[str, Answer] = {
            "302": Answer(302, headers={"Location": "/p1"}), "301": Answer(301, headers={"Location": "/p2"}),
            "308": Answer(308, headers={"Location": "//" + request.headers["host"] + "/p3"}),
            "loop": Answer(302, headers={"Location": "/loop2"}), "loop2": Answer(302, headers={"Location": "/loop"}),
            "410": Answer(410), "500": Answer(500), "soft404": Answer(body="no such page"),
            "slow": Answer(body="slow", after=1.5), "hangs": Answer(hangs=True),
            "gzip": Answer(body=b"\x1f\x8bnonsense", headers={"Content-Encoding": "gzip"}),
            "short": Answer(body="abc", length=1000), "huge": Answer(body=b"x" * 2_000_000),
            "etags": Answer(body="the same", headers={"ETag": f'"{time.monotonic_ns()}"'}),
        }  # fmt: skip
        if name in special:
            return special[name]
        if name.startswith("calendar"):
            day = int(name[8:])
            return Answer(body=links([f"/calendar{day + 1}", f"/calendar{day + 2}"]))
        if name == "busy" and request.host == self.hosts[1] and request.host not in self.throttled:
            self.throttled[request.host] = request.at + 3
            return Answer(429, headers={"Retry-After": "3"})
        if name == "busy" or name.startswith("private"):
            return Answer()
        if name and not name.startswith("p"):
            return Answer(404)
        return self.page(int(name[1:] or 0), request)

    def page(self, n: int, request: Request) -> Answer:
        etag = f'W/"{self.version(n)}"'
        if n % 2 and request.headers.get("if-none-match") == etag:
            return Answer(304, headers={"ETag": etag})
        to = [f"/p{m}" for m in range(2 * n + 1, 2 * n + 3) if m < self.pages]
        if n == 0:
            port = request.headers["host"].partition(":")[2]
            others = [f"http://{host}:{port}/" for host in self.hosts]
            mishaps = (
                "301 302 308 loop 410 500 soft404 slow hangs gzip short huge etags busy calendar0 private/x nowhere"
            )
            to += [*others, *(f"/{name}" for name in mishaps.split())]
        return Answer(body=f"version {self.version(n)}\n{links(to)}", headers={"ETag": etag} if n % 2 else {})


class Crew:
    """Crawler processes: of the client, or of Scrapy."""

    def __init__(self, folder: Path, url: str, kind: str) -> None:
        self.folder = folder
        if kind == "client":
            (folder / "crawler.py").write_text(CRAWLER)
            self.command = [sys.executable, str(folder / "crawler.py"), url]
        else:
            options = {"RECRAWL_IDLE": None, "RECRAWL_LEASE": 15, "CONCURRENT_REQUESTS": 60}
            self.command = Project(folder, url, shop=SPIDER).command("shop", **options)
        self.members: list[subprocess.Popen[str]] = []

    def start(self) -> subprocess.Popen[str]:
        member = subprocess.Popen(
            self.command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"NO_PROXY": "*"},
        )  # fmt: skip
        self.members.append(member)
        return member

    def end(self) -> None:
        """Each ends cleanly, but for those that were killed."""
        for member in self.members:
            member.send_signal(signal.SIGTERM)
        for member in self.members:
            _, errors = member.communicate(timeout=60)
            assert member.returncode in (0, -signal.SIGKILL), errors


@contextmanager
def crew(folder: Path, url: str, kind: str) -> Iterator[Crew]:
    crew = Crew(folder, url, kind)
    try:
        yield crew
    finally:
        for member in crew.members:
            if member.poll() is None:
                member.kill()


def missing(web: Web, hosts: list[str], paths: list[str]) -> list[tuple[str, str]]:
    seen = {(entry.host, entry.path) for entry in list(web.log)}
    return [(host, path) for host in hosts for path in paths if (host, path) not in seen]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "hosts", "pages", "revisits"),
    [("client", 10, 30, 20), ("scrapy", 10, 30, 20), ("client", 40, 60, 90)],
    ids=["client-some", "scrapy-some", "client-thousands"],
)
def test_a_whole_crawl(
    home_of_a_crawl: Callable[[str], Path], tmp_path: Path, kind: str, hosts: int, pages: int, revisits: float
) -> None:
    names = [f"127.0.0.{n}" for n in range(2, 2 + hosts)]
    unreachable = {7, *(n for n in range(pages) if {n, (n - 1) // 2, ((n - 1) // 2 - 1) // 2} & {7})}
    shop = Shop(names, pages)
    folder = home_of_a_crawl(f"whole-{kind}-{hosts}")
    with Web(shop) as web, ExitStack() as stack:
        with embedded.server(folder) as url:
            settings = {
                "default_gap": f"{GAP} s", "frequency": 8000, "shortest_interval": "1 s", "max_depth": DEPTH,
                "start_within": 0.25,
            }  # fmt: skip
            with psycopg.connect(url, autocommit=True) as db:
                for name, value in settings.items():
                    db.execute("select recrawl.set_setting(%s, %s)", [name, str(value)])
                db.execute("select recrawl.exclude('/p7$')")
                db.execute("select recrawl.add_pages(%s)", [[f"http://{names[0]}:{web.port}/"]])
            crawlers = stack.enter_context(crew(tmp_path, url, kind))
            for _ in range(3):
                crawlers.start()
            eventually(lambda: len(web.log) > 5 * hosts, 60, "it begins")
            crawlers.members[0].kill()
            crawlers.start()
            found = [f"/p{n}" for n in range(1, pages) if n not in unreachable]
            eventually(lambda: missing(web, names, found) == [], 60 + 2 * pages, "all that can be reached is found")
        with embedded.server(folder) as again:
            assert again == url
            back = time.monotonic()
            eventually(lambda: sum(entry.at > back for entry in web.log) > 20, 60, "goes on after a restart")
            time.sleep(revisits)
            held_at = time.monotonic()
            with psycopg.connect(url, autocommit=True) as db:
                db.execute("select recrawl.block_host(%s, reason => 'test')", [names[2]])
            time.sleep(3)
            crawlers.end()
            time.sleep(0.5)
            with psycopg.connect(url, row_factory=dict_row) as db:
                leases = db.execute("select * from recrawl.lease_status where lease_until > now()").fetchall()
                known = {row["url"]: row for row in db.execute("select * from recrawl.page_status").fetchall()}
    assert leases == [], "that of the process that was killed has ended"
    for host in names:
        at = f"http://{host}:{web.port}"
        paths = Counter(entry.path for entry in web.of(host))
        assert "/p7" not in paths, "excluded"
        assert host == shop.hosts[0] or not any(path.startswith("/private") for path in paths)
        apart = web.apart(host)
        # A visit begins some time after it was spawned: on a loaded machine, for a few, in some hundredths of a second.
        assert apart[0] > GAP / 4 and apart[len(apart) // 50] > GAP - LATE, (host, apart[:5])
        assert paths["/410"] <= 2, "again only if the one that was killed had it"
        assert not any(int(path[9:]) > 2 * DEPTH for path in paths if path.startswith("/calendar"))
        assert known[f"{at}/p1"]["changes"] > 0, "changes are seen"
        assert paths["/robots.txt"] <= 4, "no more than one for each process"
    after = [entry.at - held_at for entry in web.of(shop.hosts[2]) if entry.at > held_at + 1]
    assert after == [], "a held host is left alone within a second"
