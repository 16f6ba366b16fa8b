"""How many pages a client asks for, and when."""

from collections import Counter
from typing import Any

import psycopg
import pytest

from crawler import Crawl, add
from recrawl.client import Page
from recrawl.client.asker import LONGEST_NOTICE, answer_time

HOSTS = 64


def test_after_a_stall_a_client_is_soon_as_quick_as_before() -> None:
    """Each page waited ten seconds for its slot, so the calls came every ten seconds: for minutes."""
    time = answer_time(0.01, 3600, since_last=3600)  # the database was away for an hour
    assert time == LONGEST_NOTICE
    seconds, calls = 0.0, 0
    while time > 0.5:
        seconds, calls = seconds + time, calls + 1
        time = answer_time(time, 0.01, since_last=time)
    assert seconds < 30 and calls < 20
    assert answer_time(0.5, 0.01, since_last=0.01) == pytest.approx(0.45)
    assert answer_time(0.01, 1, since_last=0.01) == pytest.approx(1.202)


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


def test_a_client_waits_while_its_login_may_have_no_more_pages(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    """It ended, with all other clients of the login. Nothing but the end of a lease was needed."""
    add(db, *(f"http://h{n}.example/" for n in range(20)))
    db.execute("select recrawl.set_setting('max_leased_per_login', '10')")
    others = db.execute("select lease_id from recrawl.next_pages(10)").fetchall()
    db.execute("select recrawl_internal.tick(100, 1000)")
    seen: set[str] = set()

    async def visit(page: Page) -> None:
        seen.add(page.url)
        page.report(200)

    def all_are_seen() -> bool:
        if "max_leased_per_login" in caplog.text:
            db.execute("select recrawl.release(%s)", [others[0].lease_id])
        return len(seen) == 20

    with caplog.at_level("WARNING", "recrawl.client"):
        Crawl(url, robots=False, concurrency=40).run(30, visit, until=all_are_seen)
    assert len(seen) == 20
    line = next(line for line in caplog.messages if "max_leased_per_login" in line)
    assert line.startswith("the login ") and line.endswith("the setting max_leased_per_login (10). The client waits")
