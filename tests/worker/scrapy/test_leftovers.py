"""A spider that runs for months keeps nothing of the pages behind it, and a request that comes to nothing keeps no
spider open."""

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
