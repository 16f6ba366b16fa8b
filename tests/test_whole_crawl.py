"""A whole web, crawled by several processes and a worker: one process is killed, Postgres is restarted. The log of the
web is the judge.
"""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from email.utils import formatdate
from itertools import pairwise
from pathlib import Path
from typing import Any

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
            print("connected", flush=True)
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
# Without the minute that it gives a start to settle.
WORKER = """
import sys
from datetime import timedelta
from recrawl.jobs import clock
clock.WARM_UP = timedelta(0)
clock.run(sys.argv[1])
"""
GAP = 0.2  # seconds
LATE = 0.05  # that a loaded machine may keep a request on its way
SHORTEST = 1.0  # seconds between two visits of a page
HELD = 8  # seconds, as 429 and 503 ask
DEPTH = 12
RULES = "User-agent: *\nDisallow: /private\n"
ALL = {"/", "/open", "/private"}
# By host: its robots.txt, and what of ALL may be requested then.
RULED: dict[str, tuple[Answer, set[str]]] = {
    "127.0.1.1": (Answer(404), ALL),
    "127.0.1.2": (Answer(403), ALL),
    "127.0.1.3": (Answer(body="<html>not found</html>"), ALL),
    "127.0.1.4": (Answer(302, headers={"Location": "/robots.txt"}), ALL),
    "127.0.1.5": (Answer(301, headers={"Location": "/rules.txt"}), {"/", "/open"}),
    "127.0.1.6": (Answer(body=RULES + "#" * 600_000), {"/", "/open"}),
    "127.0.1.7": (Answer(body=RULES.encode("utf-8-sig")), {"/", "/open"}),
    "127.0.1.8": (Answer(body=RULES + "Crawl-delay: 1"), {"/", "/open"}),
    "127.0.1.9": (Answer(body="User-agent: *\nDisallow: /"), set()),
    "127.0.1.10": (Answer(500), set()),
    "127.0.1.11": (Answer(hangs=True), set()),
}
SLOW_HOST = "127.0.1.8"


class Shop:
    """Hosts with `pages` each, which link to the next ones, to other hosts and to every kind of mishap.

    A tenth of the pages changes about twice while all are visited once, the others ten times more slowly: so the best
    is to visit the tenth 2.5 times as often. Half of the pages tell by etags, a quarter by dates.
    """

    def __init__(self, hosts: list[str], pages: int, frequency: float) -> None:
        self.hosts, self.pages = hosts, pages
        self.fastest = 0.5 * 86_400 / frequency  # seconds between changes of a page
        self.slowest = 10 * self.fastest
        self.began = time.monotonic()
        self.throttled: dict[str, float] = {}  # when, by host
        self.served: defaultdict[tuple[str, int], list[int]] = defaultdict(list)  # versions, by host and page

    def period(self, n: int) -> float:
        return self.fastest if n % 10 == 1 else self.slowest

    def version(self, n: int) -> int:
        return int((time.monotonic() - self.began + 7 * n) / self.period(n))

    def __call__(self, request: Request) -> Answer:
        name = request.path.partition("?")[0].strip("/")
        if name == "rules.txt":
            return Answer(body=RULES)
        if request.host in RULED:
            return RULED[request.host][0] if name == "robots.txt" else Answer(body=links(sorted(ALL)))
        if name == "robots.txt":
            return Answer(body=RULES)
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
        if name == "busy" and request.host in self.hosts[1:3] and request.host not in self.throttled:
            self.throttled[request.host] = request.at
            return Answer(429 if request.host == self.hosts[1] else 503, headers={"Retry-After": str(HELD)})
        if name == "busy" or name.startswith("private"):
            return Answer()
        if name and not name.startswith("p"):
            return Answer(404)
        return self.page(int(name[1:] or 0), request)

    def page(self, n: int, request: Request) -> Answer:
        version = self.version(n)
        self.served[request.host, n].append(version)
        validators = {1: {"ETag": f'W/"{version}"'}, 2: {"Last-Modified": formatdate(version, usegmt=True)}}
        headers = validators.get(n % 4 if n % 2 == 0 else 1, {})
        asked = request.headers.get("if-none-match"), request.headers.get("if-modified-since")
        if headers and set(headers.values()) & set(asked):
            return Answer(304, headers=headers)
        to = [f"/p{m}" for m in range(2 * n + 1, 2 * n + 3) if m < self.pages]
        if n == 0:
            port = request.headers["host"].partition(":")[2]
            others = [f"http://{host}:{port}/" for host in [*self.hosts, *RULED]]
            mishaps = (
                "301 302 308 loop 410 500 soft404 slow hangs gzip short huge etags busy calendar0 private/x nowhere"
            )
            to += [*others, *(f"/{name}" for name in mishaps.split())]
        return Answer(body=f"version {version}\n{links(to)}", headers=headers)


class Crew:
    """Crawler processes: of the client, or of Scrapy."""

    def __init__(self, folder: Path, url: str, kind: str) -> None:
        self.folder, self.kind = folder, kind
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
        if self.kind == "client":  # whose first connection must not meet the restart of the server
            assert member.stdout and member.stdout.readline() == "connected\n"
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


@contextmanager
def worker(url: str) -> Iterator[None]:
    """Learns and allocates all the time, also when the database restarts."""
    process = subprocess.Popen([sys.executable, "-c", WORKER, url], stderr=subprocess.PIPE, text=True)
    try:
        yield
        assert process.poll() is None
    finally:
        process.kill()
        _, errors = process.communicate()
    assert "Traceback" not in errors, errors


def missing(web: Web, hosts: list[str], paths: list[str]) -> list[tuple[str, str]]:
    seen = {(entry.host, entry.path) for entry in list(web.log)}
    return [(host, path) for host in hosts for path in paths if (host, path) not in seen]


def visits_by_period(web: Web, shop: Shop, since: float) -> dict[float, float]:
    """How often a page was visited, on average, by how often such pages change."""
    visits = Counter((entry.host, entry.path) for entry in list(web.log) if entry.at > since)
    found: defaultdict[float, list[int]] = defaultdict(list)
    for host, n in list(shop.served):
        found[shop.period(n)].append(visits[host, f"/p{n}" if n else "/"])
    return {period: statistics.mean(counts) for period, counts in found.items()}


def wait_for_visits(web: Web, shop: Shop, since: float, visits: float) -> None:
    """Waits until the most frequent pages have this number of fetches, and pages that change often have more fetches
    than chance can explain. On a busy machine all pages are late at first, and get equal numbers of fetches. The
    function asks rarely, because the web is in this process.
    """
    end = time.monotonic() + 600
    while True:
        seen = visits_by_period(web, shop, since)
        if max(seen.values()) >= visits and seen[shop.fastest] > 1.4 * seen[shop.slowest]:
            return
        assert time.monotonic() < end, seen
        time.sleep(1)


def is_learnt(db: psycopg.Connection[Any], shop: Shop) -> bool:
    """True if the allocation in force knows which pages change often."""
    often = [f"%/p{n}" for n in range(shop.pages) if shop.period(n) == shop.fastest]
    row = db.execute(
        """
        select avg(frequency) filter (where url like any (%(often)s))
               > 1.5 * avg(frequency) filter (where url not like all (%(often)s))
        from recrawl.page_status where url ~ '^http://127.0.0.*/p[0-9]*$'
        """,
        {"often": often},
    ).fetchone()
    return bool(row and row[0])


@pytest.mark.parametrize(
    ("kind", "hosts", "pages", "frequency", "visits"),
    [
        pytest.param("client", 4, 12, 10_000, 6, id="client", marks=pytest.mark.soak),
        # Less than Scrapy can do: of pages that are all late the first due comes first, however often it is wanted.
        pytest.param("scrapy", 10, 30, 4000, 4, id="scrapy", marks=pytest.mark.soak),
        pytest.param("client", 40, 60, 10_000, 8, id="client-thousands", marks=pytest.mark.soak),
    ],
)
def test_a_whole_crawl(
    home_of_a_crawl: Callable[[str], Path],
    tmp_path: Path,
    kind: str,
    hosts: int,
    pages: int,
    frequency: int,
    visits: float,
) -> None:
    names = [f"127.0.0.{n}" for n in range(2, 2 + hosts)]
    unreachable = {7, *(n for n in range(pages) if {n, (n - 1) // 2, ((n - 1) // 2 - 1) // 2} & {7})}
    shop = Shop(names, pages, frequency)
    folder = home_of_a_crawl(f"whole-{kind}-{hosts}")
    with Web(shop) as web, ExitStack() as stack:
        with embedded.server(folder) as url:
            settings = {
                "default_gap": f"{GAP} s", "window_share": 0.25, "frequency": frequency, "max_depth": DEPTH,
                "shortest_interval": f"{SHORTEST} s",
                "rates_every": "10 s", "allocate_every": "10 s", "opic_every": "none",
            }  # fmt: skip
            with psycopg.connect(url, autocommit=True) as db:
                for name, value in settings.items():
                    db.execute("select recrawl.set_setting(%s, %s)", [name, str(value)])
                db.execute("select recrawl.exclude('/p7$')")
                db.execute("select recrawl.add_pages(%s)", [[f"http://{names[0]}:{web.port}/"]])
            crawlers = stack.enter_context(crew(tmp_path, url, kind))
            stack.enter_context(worker(url))
            for _ in range(3):
                crawlers.start()
            eventually(lambda: len(shop.throttled) == 2, what="it begins")
            time.sleep(1)
            crawlers.members[0].kill()
            crawlers.start()
            found = [f"/p{n}" for n in range(1, pages) if n not in unreachable]
            eventually(lambda: missing(web, names, found) == [], 600, "all that can be reached is found")
        with embedded.server(folder) as again:
            assert again == url
            back = time.monotonic()
            eventually(lambda: sum(entry.at > back for entry in web.log) > 20, what="goes on after a restart")
            with psycopg.connect(url, autocommit=True) as db:
                eventually(lambda: is_learnt(db, shop), 600, "what changes often is learnt, and put in force")
                learnt = time.monotonic()
                wait_for_visits(web, shop, learnt, visits)
                held_at = time.monotonic()
                db.execute("select recrawl.block_host(%s, reason => 'test')", [names[-1]])
            time.sleep(8)
            crawlers.end()
            time.sleep(0.5)
            with psycopg.connect(url, row_factory=dict_row) as db:
                leases = db.execute("select * from recrawl.lease_status where lease_until > now()").fetchall()
                known = {row["url"]: row for row in db.execute("select * from recrawl.page_status").fetchall()}
    assert leases == [], "the lease of the killed process has ended"
    judge_gaps(web)
    judge_robots(web)
    judge_paths(web, names)
    judge_holds(web, shop.throttled, names[-1], held_at)
    judge_changes(shop, known, web.port)


def judge_gaps(web: Web) -> None:
    for host in {entry.host for entry in web.log}:
        apart, gap = web.apart(host), 1 if host == SLOW_HOST else GAP
        # A visit begins some time after it was spawned: on a loaded machine, for a few, in some hundredths of a second.
        assert not apart or (apart[0] > gap / 4 and apart[len(apart) // 50] > gap - LATE), (host, apart[:5])


def judge_robots(web: Web) -> None:
    for host, (_, may) in RULED.items():
        seen = {entry.path for entry in web.of(host)}
        assert "/robots.txt" in seen and seen - {"/robots.txt", "/rules.txt"} == may, host


def judge_paths(web: Web, hosts: list[str]) -> None:
    unchanged = {int(entry.path[2:] or 0) % 2 for entry in web.log if entry.status == 304}
    assert unchanged == {0, 1}, "by dates and by etags"
    for host in hosts:
        visits: defaultdict[str, list[float]] = defaultdict(list)
        for entry in web.of(host):
            visits[entry.path].append(entry.at)
        assert "/p7" not in visits, "excluded"
        assert not any(path.startswith("/private") for path in visits), "denied"
        assert len(visits["/410"]) <= 2, "again only if the one that was killed had it"
        assert not any(int(path[9:]) > 2 * DEPTH for path in visits if path.startswith("/calendar"))
        assert len(visits.pop("/robots.txt")) <= 4, "no more than one for each process"
        apart = {path: min((b - a for a, b in pairwise(at)), default=SHORTEST) for path, at in visits.items()}
        assert min(apart.values()) > SHORTEST / 2, "twice in a lease"


def judge_holds(web: Web, throttled: dict[str, float], blocked: str, at: float) -> None:
    """A host that asks for a pause gets it within a second, on a busy machine within four."""
    for host, since, seconds in [*((host, since, HELD) for host, since in throttled.items()), (blocked, at, 60)]:
        after = [entry.at - since for entry in web.of(host)]
        assert [delay for delay in after if 4 < delay < seconds] == [], host


def judge_changes(shop: Shop, known: dict[str, dict[str, Any]], port: int) -> None:
    """Every change between two fetches was seen, except by fetches of the killed process."""
    for (host, n), versions in shop.served.items():
        changed = sum(a != b for a, b in pairwise(versions))
        seen = known[f"http://{host}:{port}/{f'p{n}' if n else ''}"]["changes"]
        assert changed - 1 <= seen <= changed, (host, n, versions)
    assert any(len(set(versions)) > 3 for versions in shop.served.values())
