"""Where answers lead, and where a project does not want to be led."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from crawler import Site, leases, state
from helpers import eventually
from spiders import Project
from web import Answer, Web

Make = Callable[..., Project]

SETTINGS = """
FEEDS = {"items.json": {"format": "json"}}
FILES_STORE = "files"
ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1}
MEDIA_ALLOW_REDIRECTS = True
"""
LED = """
class Led(scrapy.Spider):
    name = "led"

    async def start(self):
        at = "http://127.0.0.2:PORT"
        looked_at = {"dont_redirect": True, "handle_httpstatus_list": [301, 302]}
        yield scrapy.Request(f"{at}/kept", meta=looked_at)
        yield scrapy.Request(f"{at}/kept-for-good", meta=looked_at)
        yield scrapy.Request(f"{at}/accents")
        yield scrapy.Request(f"{at}/file")
        yield scrapy.Request(f"{at}/data")
        yield scrapy.Request(f"{at}/asked", method="HEAD")
        yield scrapy.Request(f"{at}/asked-file", method="POST")

    def parse(self, response):
        yield {"url": response.url, "status": response.status, "method": response.request.method}
        if response.url.endswith("/kept"):
            yield {"file_urls": [response.urljoin("/picture")]}
"""


def leads_to(location: str, status: int = 302) -> Answer:
    return Answer(status, headers={"Location": location})


def test_answers_lead_where_a_browser_and_the_project_would_go(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers |= {
        "/kept": leads_to("/never"), "/kept-for-good": leads_to("/never", 301),
        "/accents": leads_to("/wörter"), "/w%C3%B6rter": Answer(body="words"),
        "/file": leads_to("file:///etc/hostname"), "/data": leads_to("data:,said"),
        "/asked": leads_to("/there"), "/there": Answer(), "/asked-file": leads_to("file:///etc/hostname"),
        "/picture": leads_to("/drawn"), "/drawn": Answer(body="a picture"),
    }  # fmt: skip
    led = project(SETTINGS, led=LED.replace("PORT", str(web.port)))
    crawler = led.start("led")
    paths = ["/accents", "/asked", "/asked-file", "/data", "/drawn", "/file", "/kept", "/kept-for-good"]
    paths += ["/picture", "/robots.txt", "/there", "/w%C3%B6rter"]
    eventually(lambda: {*paths} <= {entry.path for entry in web.log}, what="all is requested")
    crawler.interrupt()
    crawler.ends()

    at = f"http://127.0.0.2:{web.port}"
    found = led.items()
    files = [file for item in found for file in item.get("files", [])]
    items = {(item["url"].removeprefix(at), item["status"], item["method"]) for item in found if "url" in item}
    assert items == {
        ("/kept", 302, "GET"), ("/kept-for-good", 301, "GET"), ("/w%C3%B6rter", 200, "GET"), ("/there", 200, "HEAD")
    }, crawler.log  # fmt: skip
    assert [file["status"] for file in files] == ["downloaded"]
    assert Counter(entry.path for entry in web.log) == Counter(paths)
    assert state(db, f"{at}/kept-for-good").state != "moved" and state(db, f"{at}/never") is None
    assert crawler.errors == [] and leases(db) == [], crawler.log
