"""A spider forgets each page that was reported. No request without an answer keeps a spider from ending."""

from collections.abc import Callable
from typing import Any

import psycopg

from crawler import Site, leases, state
from helpers import eventually
from spiders import Project
from web import Answer, Web

Make = Callable[..., Project]

FILES = """
FEEDS = {"items.json": {"format": "json"}}
FILES_STORE = "files"
ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1}
"""
LONG = """
import gc
class Long(scrapy.Spider):
    name = "long"
    start_urls = [f"http://127.0.0.{n}:PORT/" for n in (2, 3, 4)]

    def parse(self, response):
        yield {"file_urls": [response.urljoin("/file")]}

    def closed(self, reason):
        gc.collect()
        for kind in (scrapy.http.Response, scrapy.Request):
            held = [one.url for one in gc.get_objects() if isinstance(one, kind)]
            self.crawler.stats.set_value(f"held/{kind.__name__}", held)
"""


def test_a_response_leaves_memory_when_its_page_is_reported(project: Make, web: Web, site: Site) -> None:
    """A spider kept each response and each request of a file, until it had no memory left."""
    site.answers["*"] = Answer(body="x")
    crawler = project(FILES, long=LONG.replace("PORT", str(web.port))).start("long")
    eventually(lambda: [entry.path for entry in web.log].count("/file") == 3, what="all is requested")
    crawler.interrupt()
    crawler.ends()
    assert crawler.stats["item_scraped_count"] == 3, crawler.log
    assert crawler.stats["held/Response"] == [] and crawler.stats["held/Request"] == []


CLOSES = """
from scrapy.exceptions import CloseSpider
class Closes(scrapy.Spider):
    name = "closes"
    start_urls = ["http://127.0.0.2:PORT/"]

    def parse(self, response):
        yield {"file_urls": ["http://127.0.0.5:PORT/file"]}
        raise CloseSpider("enough")
"""


def test_a_spider_closes_after_the_files_that_need_a_robots_txt(project: Make, web: Web, site: Site) -> None:
    """The robots.txt was never requested, so the file waited for it, and the spider for the file."""
    site.answers["*"] = Answer(body="x")
    closes = project(FILES, closes=CLOSES.replace("PORT", str(web.port)))
    closes.start("closes").ends(60)
    assert [entry.path for entry in web.of("127.0.0.5")] == ["/robots.txt", "/file"]
    assert [file["status"] for item in closes.items() for file in item["files"]] == ["downloaded"]


CANCELS = """
import asyncio
from scrapy.utils.defer import maybe_deferred_to_future
class Cancels(scrapy.Spider):
    name = "cancels"
    start_urls = ["http://127.0.0.2:PORT/"]

    async def parse(self, response):
        request, engine = scrapy.Request("http://127.0.0.5:PORT/api"), self.crawler.engine
        try:
            async with asyncio.timeout(0.05):  # its slot comes later
                if hasattr(engine, "download_async"):  # newer than the oldest Scrapy
                    await engine.download_async(request)
                else:
                    await maybe_deferred_to_future(engine.download(request))
        except TimeoutError:
            yield {"timeout": True}
"""


def test_a_spider_ends_after_a_request_that_was_cancelled(project: Make, web: Web, site: Site) -> None:
    """The request got its slot, but nobody used the slot or gave it back."""
    site.answers["*"] = Answer(body="x")
    cancels = project(FILES, cancels=CANCELS.replace("PORT", str(web.port)))
    cancels.start("cancels", RECRAWL_IDLE=3).ends(60)
    assert cancels.items() == [{"timeout": True, "files": []}]
    assert not web.of("127.0.0.5", "/api")


OFFSITE = """
import asyncio
class Offsite(scrapy.Spider):
    name = "offsite"
    start_urls = ["http://127.0.0.2:PORT/"]
    allowed_domains = ["127.0.0.2"]

    async def parse(self, response):
        offsite, within = scrapy.Request("http://127.0.0.9:PORT/"), response.follow("/next")
        for request in (offsite, within, offsite, offsite):
            yield request
        await asyncio.sleep(0.1)
        yield offsite
        yield within
        await asyncio.sleep(0.1)
"""


def test_a_callback_may_return_an_offsite_request_twice(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Its page waited for the second to come, for ever."""
    site.answers["*"] = Answer(body="x")
    crawler = project(FILES, offsite=OFFSITE.replace("PORT", str(web.port))).start("offsite")
    at = f"http://127.0.0.2:{web.port}"
    eventually(lambda: getattr(state(db, f"{at}/"), "last_status", None) == 200, 20, "it is reported")
    crawler.interrupt()
    crawler.ends()
    assert leases(db) == [] and crawler.errors == [], crawler.log
    links = db.execute("select url from recrawl.successors(%s)", [state(db, f"{at}/").page_id]).fetchall()
    assert [row.url for row in links] == [f"{at}/next"]


CHANGES = """
class Changes(scrapy.Spider):
    name = "changes"

    async def start(self):
        yield scrapy.Request("http://127.0.0.2:PORT/", meta={"way": []}, cb_kwargs={"seen": []})

    def parse(self, response, seen):
        response.meta["way"].append(response.url)
        seen.append(response.url)
        response.recrawl.meta["fetches"] = response.recrawl.meta.get("fetches", 0) + 1
        yield {"fetches": response.recrawl.meta["fetches"], "way": len(response.meta["way"]), "seen": len(seen)}
"""


def test_what_a_callback_adds_to_its_request_is_not_there_at_the_next_fetch(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """The lists in the stored request grew at each fetch, for ever."""
    site.answers["*"] = Answer(body="x")
    for name, value in {"shortest_interval": "1 s", "frequency": "86400"}.items():
        db.execute("select recrawl.set_setting(%s, %s)", [name, value])
    changes = project(FILES, changes=CHANGES.replace("PORT", str(web.port)))
    crawler = changes.start("changes")
    eventually(lambda: len(web.of("127.0.0.2", "/")) > 2, what="it is fetched again")
    crawler.interrupt()
    crawler.ends()
    items = [(item["fetches"], item["way"], item["seen"]) for item in changes.items()]
    assert items[:3] == [(1, 1, 1), (2, 1, 1), (3, 1, 1)]
