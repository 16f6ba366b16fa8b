"""Scrapy's projects on recrawl: real processes against a real web, whose log is the judge."""

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from crawler import LATE, Site, add, leases, state
from helpers import eventually
from spiders import Project
from web import Answer, Request, Web, links

Make = Callable[..., Project]
GAP = 0.2  # seconds

TREE = """
class Tree(scrapy.Spider):
    name = "tree"
    custom_settings = {"DEPTH_LIMIT": 9}

    async def start(self):
        for host in self.settings.getlist("HOSTS"):
            yield scrapy.Request(f"http://{host}/0", dont_filter=True)

    def parse(self, response):
        yield {"url": response.url, "depth": response.meta["depth"]}
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse_other, cb_kwargs={"come_from": response.url})

    def parse_other(self, response, come_from):
        assert come_from.startswith("http://"), "what a request carries comes back with its page"
        yield from self.parse(response)
"""


def tree(pages: int) -> dict[str, Answer]:
    """Page n links to two more."""
    return {
        f"/{n}": Answer(body=links(f"/{m}" for m in (2 * n + 1, 2 * n + 2) if m < pages), headers={"ETag": f'"{n}"'})
        for n in range(pages)
    }


def all_apart(web: Web) -> bool:
    return all(apart > GAP - LATE for host in {entry.host for entry in web.log} for apart in web.apart(host))


# ------------------------------------------------------------------------------------- requests that are no pages

INLINE = """
from scrapy.utils.defer import maybe_deferred_to_future
class Inline(scrapy.Spider):
    name = "inline"
    start_urls = [f"http://127.0.0.{n}:PORT/" for n in (2, 3, 4)]

    async def parse(self, response):
        request, engine = scrapy.Request(response.urljoin("/api")), self.crawler.engine
        if hasattr(engine, "download_async"):  # newer than the oldest Scrapy
            other = await engine.download_async(request)
        else:
            other = await maybe_deferred_to_future(engine.download(request))
        yield {"api": other.url}
"""


def test_a_callback_may_wait_for_a_request(project: Make, web: Web, site: Site) -> None:
    """If all places of CONCURRENT_REQUESTS had such a callback, none of their requests went out."""
    site.answers["*"] = Answer(body="x")
    shop = project(FEEDS, inline=INLINE.replace("PORT", str(web.port)))
    shop.start("inline", CONCURRENT_REQUESTS=1, RECRAWL_IDLE=12).ends()
    assert sorted(item["api"] for item in shop.items()) == [f"http://127.0.0.{n}:{web.port}/api" for n in (2, 3, 4)]


TWICE = """
class Twice(scrapy.Spider):
    name = "twice"
    start_urls = ["http://127.0.0.2:PORT/"]

    def parse(self, response):
        request = response.follow("/next", self.parse_next)
        yield request
        yield request

    def parse_next(self, response):
        yield {"next": response.url}
"""


def test_a_callback_may_return_a_request_twice(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """The page waited for the second to come, for ever."""
    site.answers["*"] = Answer(body="x")
    shop = project(FEEDS, twice=TWICE.replace("PORT", str(web.port)))
    shop.start("twice", RECRAWL_IDLE=12).ends()
    assert len(shop.items()) == 1 and state(db, f"http://127.0.0.2:{web.port}/").last_status == 200


SLOW_FILES = """
class Files(scrapy.Spider):
    name = "files"
    start_urls = ["http://127.0.0.2:PORT/"]

    def parse(self, response):
        for host in range(3, 6):
            yield {"file_urls": [f"http://127.0.0.{host}:PORT/file"]}
"""
SLOW = """
import asyncio
class Slow:
    tries = {}
    async def process_request(self, request, spider=None):
        if request.url.endswith("/file"):
            self.tries[request.url] = self.tries.get(request.url, 0) + 1
            await asyncio.sleep(1 if self.tries[request.url] == 1 else 0)
"""


def test_a_file_whose_request_missed_its_slot_gets_another_slot(project: Make, web: Web, site: Site) -> None:
    """It was lost, without a word."""
    site.answers["*"] = Answer(body="x")
    more = "DOWNLOADER_MIDDLEWARES = {'shop.slow.Slow': 500}\n"
    shop = project(FEEDS + more, files=SLOW_FILES.replace("PORT", str(web.port)))
    (shop.folder / "shop" / "slow.py").write_text(SLOW)
    shop.start("files", RECRAWL_IDLE=12).ends()
    assert [len(item["files"]) for item in shop.items()] == [1, 1, 1]


# ------------------------------------------------------------------------------------------- a project as it is
# ------------------------------------------------------------------------------------------- a project as it is

FEEDS = """
FEEDS = {"items.json": {"format": "json"}}
FILES_STORE = "files"
ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1}
"""
SHOP = """
class Shop(scrapy.Spider):
    name = "shop"
    allowed_domains = ["127.0.0.2", "127.0.0.3"]
    start_urls = ["http://127.0.0.2:PORT/"]

    def parse(self, response):
        for path in ("/now", "/ever", "/fails", "/private", "/raises", "/wrong", "/leaves", "/said", "/media",
                     "/missing"):
            yield response.follow(path, getattr(self, "parse_" + path[1:], self.parse_item), errback=self.failed,
                                  meta={"from": "a page"})
        yield response.follow("http://127.0.0.9:PORT/offsite", self.parse_item)
        yield response.follow("/object", self.parse_item, cb_kwargs={"what": object()})
        yield scrapy.Request("data:,here", self.parse_home, dont_filter=True)
        yield scrapy.FormRequest(response.urljoin("/login"), formdata={"name": "me"}, callback=self.parse_home)

    def parse_item(self, response, what=None):
        assert what is None or type(what) is object
        assert what or response.meta["from"] == "a page"
        yield {"item": response.url}

    def parse_home(self, response):
        yield {"home": response.url}

    def parse_raises(self, response):
        yield response.follow("/found", self.parse_item, meta={"from": "a page"})
        raise KeyError("of the callback")

    def parse_wrong(self, response):
        response.recrawl.due = 5

    def parse_leaves(self, response):
        yield response.follow("http://127.0.0.3:PORT/other", self.parse_item, meta={"from": "a page"})

    def parse_said(self, response):
        response.recrawl.relevance = .75
        response.recrawl.links = ["/a-link"]
        response.recrawl.meta["seen"] = True
        response.recrawl.due = "2100-01-01"

    def parse_media(self, response):
        yield {"file_urls": [response.urljoin("/picture")]}

    def failed(self, failure):
        yield {"failed": failure.request.url, "why": str(failure.value)}
"""


def test_a_project_runs_as_it_is(project: Make, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    at = f"http://127.0.0.2:{web.port}"
    site.answers |= {
        "/robots.txt": Answer(body="User-agent: *\nDisallow: /private"), "*": Answer(body="x"),
        "/now": Answer(302, headers={"Location": "/target"}), "/ever": Answer(301, headers={"Location": "/moved"}),
        "/fails": Answer(500), "/missing": Answer(404),
        "/login": Answer(302, headers={"Location": "/home"}), "/picture": Answer(body="picture"),
    }  # fmt: skip
    add(db, f"http://127.0.0.9:{web.port}/", f"{at}/added")
    shop = project(FEEDS, shop=SHOP.replace("PORT", str(web.port)))
    crawler = shop.start("shop")
    wanted = ["/now", "/ever", "/fails", "/raises", "/wrong", "/leaves", "/said", "/media", "/missing"]
    wanted += ["/", "/added", "/target", "/moved", "/object", "/login", "/home", "/found", "/a-link", "/picture"]
    eventually(lambda: {*wanted, "/other"} <= {entry.path for entry in web.log}, what="all is found")
    pages = [f"{at}/target", f"{at}/moved", f"{at}/found", f"http://127.0.0.3:{web.port}/other"]
    reported = "select url from recrawl.page_status where url = any (%s) and last_status = 200"
    eventually(lambda: len(db.execute(reported, [pages]).fetchall()) == 4, what="all is reported")
    crawler.interrupt()
    crawler.ends()

    visits = Counter(entry.path for entry in web.of("127.0.0.2"))
    for failed in ("/fails", "/raises", "/wrong"):  # due again after a minute, which a busy machine may need
        tries = [entry.at for entry in web.of("127.0.0.2", failed)]
        assert all(later - earlier > 50 for earlier, later in pairwise(tries)), crawler.log
        visits[failed] = min(visits[failed], 1)
    assert visits == Counter(["/robots.txt", *wanted]), crawler.log
    assert Counter(entry.path for entry in web.of("127.0.0.3")) == Counter(["/robots.txt", "/other"])
    assert [entry.path for entry in web.of("127.0.0.9")] == ["/robots.txt"], "offsite"
    assert all_apart(web)
    assert leases(db) == [], crawler.log

    items = shop.items()
    files = [file for item in items for file in item.pop("files")]
    assert {"failed": f"{at}/fails", "why": "Ignoring non-200 response"} in items
    assert {"home": f"{at}/home"} in items and {"home": "data:,here"} in items
    assert [file["status"] for file in files] == ["downloaded"]
    found = {item["item"] for item in items if "item" in item}
    assert found == {*pages, f"{at}/object"}
    assert state(db, f"http://127.0.0.9:{web.port}/").state == "declined"
    assert state(db, f"{at}/ever").state == "moved" and state(db, f"{at}/private").state == "denied"
    assert state(db, f"{at}/raises").last_status == 0, "what no callback could read is tried again"
    assert state(db, f"{at}/wrong").last_status == 0, "and so is what cannot be reported as the callback says"
    said = state(db, f"{at}/said")
    assert said.relevance == 0.75 and said.due_at.year == 2100
    (meta,) = db.execute("select meta from recrawl_internal.page where page_id = %s", [said.page_id]).fetchall()
    assert meta.meta["seen"] and meta.meta["scrapy"]["callback"] == "parse_said"
    for page, link in [("/said", f"{at}/a-link"), ("/leaves", f"http://127.0.0.3:{web.port}/other")]:
        page_id = state(db, at + page).page_id
        assert [row.url for row in db.execute("select url from recrawl.successors(%s)", [page_id])] == [link]
    stats = crawler.stats
    assert stats["recrawl/raised"] >= 1 and (stats["recrawl/denied"], stats["recrawl/declined"]) == (1, 1)
    requests = len(web.log)

    again = shop.run("shop", RECRAWL_IDLE=0)
    due_again = {entry.path for entry in web.log[requests:]}
    assert due_again <= {"/fails", "/raises", "/wrong"}, "only what failed"
    assert again.stats["finish_reason"] == "finished" and again.process.returncode == 0


def test_a_revisit_has_its_callback_and_its_validators(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    def page(request: Request) -> Answer:
        is_known = request.headers.get("if-none-match") == '"1"'
        return Answer(304 if is_known else 200, headers={"ETag": '"1"'})

    site.answers |= tree(3) | {"/1": page}
    for name, value in {"shortest_interval": "1 s", "frequency": "86400"}.items():
        db.execute("select recrawl.set_setting(%s, %s)", [name, value])
    crawler = project(tree=TREE).start("tree", HOSTS=f"127.0.0.2:{web.port}")
    eventually(lambda: [entry.status for entry in web.of("127.0.0.2", "/1")].count(304) > 1, what="304 for what stays")
    eventually(lambda: len(web.of("127.0.0.2", "/2")) > 1, what="what changes is fetched again")
    crawler.interrupt()
    crawler.ends()
    assert leases(db) == [] and all_apart(web)
    assert crawler.errors == []
    visits = Counter(entry.path for entry in web.log if entry.status == 200)
    assert crawler.stats["item_scraped_count"] == visits["/0"] + visits["/1"] + visits["/2"]
    assert state(db, f"http://127.0.0.2:{web.port}/1").changes == 0


CYCLE = """
class Cycle(scrapy.Spider):
    name = "cycle"

    async def start(self):
        yield scrapy.Request("data:,0")

    def parse(self, response):
        yield {"text": response.text}
        yield scrapy.Request(f"data:,{(int(response.text) + 1) % 3}")
"""


def test_what_is_not_of_the_web_goes_in_no_circles(project: Make) -> None:
    cycle = project(FEEDS, cycle=CYCLE)
    cycle.run("cycle", RECRAWL_IDLE=2)
    assert sorted(item["text"] for item in cycle.items()) == ["0", "1", "2"]


PICKY = """
from scrapy.exceptions import IgnoreRequest

class Picky(scrapy.Spider):
    name = "picky"
    start_urls = [f"http://127.0.0.2:PORT/{name}" for name in ("unwanted", "unread", "wanted")]
    custom_settings = {"DOWNLOADER_MIDDLEWARES": {"shop.spiders.picky.Picks": 600}}

    def parse(self, response):
        yield {"url": response.url}

class Picks:
    def process_request(self, request, spider=None):
        if request.url.endswith("unwanted"):
            raise IgnoreRequest("not this one")

    def process_response(self, request, response, spider=None):
        if request.url.endswith("unread"):
            raise IgnoreRequest("not what it says")
        return response
"""


def test_what_a_middleware_ignores_is_declined_and_no_failure_of_its_host(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    at = f"http://127.0.0.2:{web.port}"
    pages = [f"{at}/{name}" for name in ("unwanted", "unread", "wanted")]

    def all_reported() -> bool:
        states = [state(db, page) for page in pages]
        return all(found and (found.state == "declined" or found.last_status is not None) for found in states)

    crawler = project(picky=PICKY.replace("PORT", str(web.port))).start("picky")
    eventually(all_reported, what="all is reported")
    crawler.interrupt()
    crawler.ends()
    assert sorted(entry.path for entry in web.log) == ["/robots.txt", "/unread", "/wanted"], crawler.log
    assert state(db, f"{at}/unwanted").state == "declined"
    assert state(db, f"{at}/unread").last_status == 0, "tried again"
    assert crawler.errors == [] and leases(db) == [], crawler.log


def test_a_request_whose_connection_is_closed_is_not_sent_again_at_once(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """The server closes a connection that was used before: this may be an answer that got lost, or the end of its
    patience."""
    site.answers |= {"*": Answer(), "/unread": Answer(0)}
    at = f"http://127.0.0.2:{web.port}"
    crawler = project(picky=PICKY.replace("PORT", str(web.port))).start("picky")
    eventually(lambda: getattr(state(db, f"{at}/unread"), "last_status", None) == 0, what="a report")
    crawler.interrupt()
    crawler.ends()
    assert web.apart("127.0.0.2")[0] > GAP - LATE and len(web.of("127.0.0.2", "/unread")) == 1, crawler.log


# ------------------------------------------------------------------------------------------------ several, killed


def test_two_processes_share_a_crawl_and_one_is_killed(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    hosts, pages = [f"127.0.0.{n}" for n in (2, 3, 4)], 15
    site.answers |= tree(pages)
    both = project(tree=TREE)
    options: dict[str, object] = {"RECRAWL_LEASE": 4, "RECRAWL_IDLE": 30}
    options["HOSTS"] = ",".join(f"{host}:{web.port}" for host in hosts)
    first, second = both.start("tree", **options), both.start("tree", **options)
    eventually(lambda: len(web.log) > 12, what="it begins")
    first.process.kill()
    killed = db.execute("select clock_timestamp() as at").fetchall()[0].at
    eventually(lambda: len({(entry.host, entry.path) for entry in web.log}) == 3 * (pages + 1), what="all is found")
    second.interrupt()
    second.ends()
    assert all_apart(web)
    # The killed process may still have a lease. No lease of the other process may be left.
    of_the_other = "select from recrawl.lease_status where lease_until > now() and handed_out_at > %s"
    assert db.execute(of_the_other, [killed]).fetchall() == []
    assert second.errors == []
    for host in hosts:
        assert max(Counter(entry.path for entry in web.of(host)).values()) <= 2, "again only what the killed one had"


def test_a_second_interrupt_ends_it_at_once_and_its_pages_come_back(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["/0"] = Answer(hangs=True)
    both = project(tree=TREE)
    options: dict[str, object] = {"HOSTS": f"127.0.0.2:{web.port}", "RECRAWL_LEASE": 8, "DOWNLOAD_TIMEOUT": 60}
    crawler = both.start("tree", **options)
    eventually(lambda: web.of("127.0.0.2", "/0"), what="it begins")
    crawler.interrupt()
    eventually(lambda: "shutting down gracefully" in crawler.log)
    time.sleep(1)
    assert crawler.process.poll() is None, "a request is under way"
    crawler.interrupt()
    crawler.ends()
    assert len(leases(db)) == 1
    site.answers["/0"] = Answer()
    again = both.start("tree", RECRAWL_IDLE=30)
    eventually(lambda: len(web.of("127.0.0.2", "/0")) == 2, what="it comes back")
    again.interrupt()
    again.ends()
    assert leases(db) == []


@pytest.mark.soak
def test_the_database_may_go_away(project: Make, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    site.answers |= tree(15)
    crawler = project(tree=TREE).start("tree", HOSTS=f"127.0.0.2:{web.port}")
    eventually(lambda: len(web.log) > 5, what="it begins")
    name = db.info.dbname
    with psycopg.connect(db.info.dsn, dbname="postgres", autocommit=True) as other:
        other.execute(f'alter database "{name}" allow_connections false')
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and application_name = %s",
            [name, "recrawl client"],
        )
        eventually(lambda: "the database is away" in crawler.log)
        time.sleep(60)
        other.execute(f'alter database "{name}" allow_connections true')
    eventually(lambda: len({entry.path for entry in web.log}) == 16, what="it goes on")
    crawler.interrupt()
    crawler.ends()
    assert leases(db) == [] and all_apart(web) and crawler.errors == []


# ------------------------------------------------------------------------------------------------------ bad input


def test_what_cannot_work_is_one_line(project: Make, db: psycopg.Connection[Any]) -> None:
    """test_client.py has the other lines that the client says of a database."""
    db.execute("select recrawl.claim('scrapy: other')")
    shop = project(tree=TREE)
    lines = {
        "postgresql://127.0.0.1:9/x": "cannot connect to the database: ",
        "": "set RECRAWL_DSN, or the environment's DATABASE_URL",
        shop.dsn: "this database holds the crawl scrapy: other. Use another database for the crawl scrapy: tree",
    }
    crawlers = [shop.start("tree", HOSTS="127.0.0.2:9", RECRAWL_DSN=dsn) for dsn in lines]
    for crawler, line in zip(crawlers, lines.values(), strict=True):
        crawler.ends()
        (said,) = crawler.errors
        assert line in said and "Traceback" not in crawler.log
        assert crawler.stats["finish_reason"] == "recrawl_failed"
        assert crawler.process.returncode == 1
    assert db.execute("select from recrawl.page_status").fetchall() == []


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("RECRAWL_IDLE", "soon", "RECRAWL_IDLE must be a number of seconds, got 'soon'"),
        ("RECRAWL_LEASE", "-1", "RECRAWL_LEASE must be a number of seconds, got '-1'"),
        ("CONCURRENT_REQUESTS", "-1", "CONCURRENT_REQUESTS cannot be used: concurrency must be positive, got -1"),
        ("USER_AGENT", "", "cannot be used: user_agent must consist of printable ASCII characters, got ''"),
        ("TWISTED_REACTOR", "twisted.internet.selectreactor.SelectReactor", "recrawl needs Scrapy's asyncio reactor"),
    ],
)
def test_a_wrong_setting_is_one_line(project: Make, name: str, value: str, line: str) -> None:
    options: dict[str, object] = {"HOSTS": "127.0.0.2:9", name: value}
    crawler = project(tree=TREE).start("tree", **options)
    crawler.ends()
    (said,) = crawler.errors
    assert line in said and "Traceback" not in crawler.log
    assert crawler.stats["finish_reason"] == "recrawl_failed"
    assert crawler.process.returncode == 1
