"""How many pages a client asks for, and when."""

from collections import Counter
from typing import Any

import psycopg

from crawler import Crawl, add
from recrawl.client import Page

HOSTS = 64


def test_hosts_that_are_all_free_do_not_go_in_step(url: str, db: psycopg.Connection[Any]) -> None:
    """Otherwise a crawl of hundreds of hosts would ask for hundreds of pages, and then for none until the next gap."""
    add(db, *(f"http://h{n}.example/{m}" for n in range(HOSTS) for m in range(10)))
    first: dict[str, Any] = {}

    async def visit(page: Page) -> None:
        first.setdefault(page.host, page.fetch_at)
        page.report(200)

    crawl = Crawl(url, robots=False, concurrency=200)
    crawl.run(20, visit, until=lambda: len(first) == HOSTS)
    assert len(first) == HOSTS
    assert max(Counter(first.values()).values()) <= 16
