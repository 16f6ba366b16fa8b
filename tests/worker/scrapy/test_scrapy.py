"""Scrapy's projects on recrawl: real processes against a real web, whose log is the judge."""

from collections.abc import Callable
from typing import Any

import psycopg

from crawler import GAP, LATE, Site, leases, state
from spiders import Project
from web import Answer, Web, links

Make = Callable[..., Project]


def quotes(web: Web, *hosts: str) -> str:
    """A spider such as tutorials have."""
    return f"""
class Quotes(scrapy.Spider):
    name = "quotes"
    allowed_domains = {list(hosts)!r}
    start_urls = [f"http://{{host}}:{web.port}/0" for host in allowed_domains]

    def parse(self, response):
        yield {{"url": response.url, "depth": response.meta["depth"]}}
        for link in response.css("a::attr(href)"):
            yield response.follow(link, self.parse_other, cb_kwargs={{"come_from": response.url}})

    def parse_other(self, response, come_from):
        assert come_from.startswith("http://")
        yield from self.parse(response)
"""


def test_a_project_runs_as_it_is(project: Make, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    hosts = ["127.0.0.2", "127.0.0.3"]
    site.answers |= {f"/{n}": Answer(body=links([f"/{n + 1}", f"/{n + 2}"])) for n in range(5)}
    shop = project(quotes=quotes(web, *hosts))
    crawler = shop.run("quotes", ROBOTSTXT_OBEY=True)
    print(crawler.log)
    for host in hosts:
        assert {entry.path for entry in web.of(host)} == {"/robots.txt", *(f"/{n}" for n in range(7))}
        assert len(web.of(host)) == 8
        assert web.apart(host)[0] > GAP - LATE
    assert crawler.errors == []
    assert state(db, f"http://127.0.0.2:{web.port}/4").fetches == 1
    assert state(db, f"http://127.0.0.2:{web.port}/6").last_status == 404
    assert leases(db) == []
    assert crawler.stats["recrawl/ok"] == 14 and crawler.stats["item_scraped_count"] == 10
