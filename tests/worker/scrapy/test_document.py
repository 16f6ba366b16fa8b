"""docs/scrapy.md, from start to end: its spider and its settings, on a web of the test's."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from crawler import Site, state
from helpers import eventually
from recrawl.client import Page
from recrawl.scrapy.addon import DEFAULTS
from spiders import Project
from web import Answer, Web, links

DOCUMENT = Path(__file__).parents[3] / "docs" / "scrapy.md"


def file(name: str) -> str:
    """The text that the document puts into a file."""
    (text,) = re.findall(rf"^```py\n# {name}\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return str(text)


def test_the_document_start_to_end(
    project: Callable[..., Project], db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    at = f"http://127.0.0.2:{web.port}"
    quote = '<div class="quote"><span class="text">So</span><small class="author">Me</small></div>'
    site.answers |= {
        "/": Answer(body=f'{quote}<ul class="pager">{links(["/page/2/"])}</ul>'),
        "/page/2/": Answer(body=f"{quote}<span>{links(['/author/Me'])}</span>"),
        "/author/Me": Answer(body="born"),
    }
    spider = file("quotes/spiders/quotes.py").replace("https://quotes.toscrape.com", at)
    settings = file("quotes/settings.py") + 'FEEDS = {"items.json": {"format": "json"}}\n'
    quotes = project(settings, quotes=spider)
    crawler = quotes.start("quotes")
    eventually(lambda: len(web.log) == 4, what="all is found")
    crawler.interrupt()
    crawler.ends()
    assert crawler.errors == []
    assert quotes.items() == [{"text": "So", "author": "Me"}] * 2
    assert state(db, f"{at}/page/2/").relevance == 1
    assert abs(state(db, f"{at}/author/Me").relevance - 0.2) < 1e-6


def test_the_document_names_every_setting_and_what_a_visit_has() -> None:
    text = DOCUMENT.read_text()
    assert set(re.findall(r"\bRECRAWL_[A-Z]+", text)) == {*DEFAULTS, "RECRAWL_DSN", "RECRAWL_ENABLED"}
    named = set(re.findall(r"response\.recrawl\.(\w+)", text))
    assert named == {"relevance", "links", "meta", "due", "page"}
    of_page = re.findall(r"returned for the page: (.*?), … \|", text)[0].replace("`", "").split(", ")
    assert set(of_page) <= set(Page.__slots__)
