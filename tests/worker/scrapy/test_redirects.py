"""Where answers lead, and where a project does not want to be led."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import psycopg

from crawler import Site, leases, state
from helpers import eventually
from spiders import Project
from web import Answer, Request, Web

Make = Callable[..., Project]

SETTINGS = """
FEEDS = {"items.json": {"format": "json"}}
FILES_STORE = "files"
ITEM_PIPELINES = {"scrapy.pipelines.files.FilesPipeline": 1}
MEDIA_ALLOW_REDIRECTS = True
REDIRECT_MAX_TIMES = 3
ROBOTSTXT_USER_AGENT = "led-bot"
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
        yield scrapy.Request(f"{at}/posted", method="POST", body="a=b")
        yield scrapy.Request(f"{at}/posted-again", method="POST", body="a=b")
        yield scrapy.Request(f"{at}/replaced", method="PUT", body="a=b")
        yield scrapy.Request(f"{at}/loop", method="HEAD")
        yield scrapy.Request(f"{at}/secret", headers={"Authorization": "me"})
        yield scrapy.Request(f"{at}/denied")

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
    told: list[str] = []  # paths whose requests had the header Authorization

    def secret(location: str) -> Callable[[Request], Answer]:
        def answer(request: Request) -> Answer:
            told.extend([request.path] if "authorization" in request.headers else [])
            return leads_to(location) if location else Answer()

        return answer

    site.answers |= {
        "/robots.txt": Answer(body="User-agent: led-bot\nDisallow: /denied"), "/loop": leads_to("/loop"),
        "/posted": leads_to("/sent"), "/posted-again": leads_to("/sent-again", 307), "/replaced": leads_to("/put", 303),
        "/sent": Answer(), "/sent-again": Answer(), "/put": Answer(), "/elsewhere": secret(""),
        "/secret": secret("/within"), "/within": secret(f"http://127.0.0.3:{web.port}/elsewhere"),
        "/kept": leads_to("/never"), "/kept-for-good": leads_to("/never", 301),
        "/accents": leads_to("/wörter"), "/w%C3%B6rter": Answer(body="words"),
        "/file": leads_to("file:///etc/hostname"), "/data": leads_to("data:,said"),
        "/asked": leads_to("/there"), "/there": Answer(), "/asked-file": leads_to("file:///etc/hostname"),
        "/picture": leads_to("/drawn"), "/drawn": Answer(body="a picture"),
    }  # fmt: skip
    led = project(SETTINGS, led=LED.replace("PORT", str(web.port)))
    crawler = led.start("led")
    paths = ["/accents", "/asked", "/asked-file", "/data", "/drawn", "/file", "/kept", "/kept-for-good"]
    paths += ["/picture", "/robots.txt", "/there", "/w%C3%B6rter", "/posted", "/sent", "/posted-again", "/sent-again"]
    paths += ["/replaced", "/put", "/secret", "/within", "/elsewhere", "/robots.txt", *["/loop"] * 4]
    at = f"http://127.0.0.2:{web.port}"
    eventually(lambda: getattr(state(db, f"{at}/denied"), "state", None) == "denied", what="led-bot obeys robots.txt")
    eventually(lambda: len(web.log) >= len(paths), what="all is requested")
    crawler.interrupt()
    crawler.ends()

    found = led.items()
    files = [file for item in found for file in item.get("files", [])]
    items = {(item["url"].removeprefix(at), item["status"], item["method"]) for item in found if "url" in item}
    assert items == {
        ("/kept", 302, "GET"), ("/kept-for-good", 301, "GET"), ("/w%C3%B6rter", 200, "GET"), ("/there", 200, "HEAD"),
        ("/sent", 200, "GET"), ("/sent-again", 200, "POST"), ("/put", 200, "GET"),
        (f"http://127.0.0.3:{web.port}/elsewhere", 200, "GET"),
    }, crawler.log  # fmt: skip
    assert told == ["/secret", "/within"], "the header is not sent to another host"
    assert [file["status"] for file in files] == ["downloaded"]
    assert Counter(entry.path for entry in web.log) == Counter(paths)
    assert state(db, f"{at}/kept-for-good").state != "moved" and state(db, f"{at}/never") is None
    assert crawler.errors == [] and leases(db) == [], crawler.log


def test_pages_may_redirect_whatever_the_limit_for_one_request_is(
    project: Make, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """The target is a page of its own, so no request follows a redirect."""
    site.answers |= {"/a": leads_to("/b", 301), "/b": leads_to("/c", 301), "/c": Answer(body="words")}
    at = f"http://127.0.0.2:{web.port}"
    led = project(
        led=f"""
        class Led(scrapy.Spider):
            name = "led"
            start_urls = ["{at}/a"]

            def parse(self, response):
                yield {{"url": response.url}}
        """
    )
    crawler = led.start("led", REDIRECT_MAX_TIMES=0)
    eventually(lambda: getattr(state(db, f"{at}/c"), "state", None) == "live", what="the target is fetched")
    crawler.interrupt()
    crawler.ends()
    assert [state(db, at + path).state for path in ("/a", "/b")] == ["moved", "moved"], crawler.log
