"""Visits that need a while between their page and its request, as with a browser that opens a tab."""

import asyncio
import logging
import math
import re
import time
from collections import Counter
from contextlib import ExitStack
from threading import Event
from typing import Any

import psycopg
import pytest

from bench.slow_rows import VISITS, slow
from bench.stage import Stage
from bench.table import formatted
from crawler import GAP, LATE, Crawl, Site, add
from helpers import eventually
from recrawl.client import Page, ThreadedClient
from recrawl.client.missed_slots import MissedSlots
from recrawl.client.preparation import Preparation
from web import Answer, Web


@pytest.mark.parametrize("seconds", [0.3, 0.9])
def test_slow_visits_make_their_requests_in_their_slots(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, seconds: float
) -> None:
    site.answers["*"] = Answer()
    hosts = [f"127.0.0.{n}" for n in range(2, 6)]
    db.execute("select recrawl.set_setting('window_share', '0.5')")  # slots of 0.15 s: shorter than a visit
    add(db, *(f"http://{host}:{web.port}/{n}" for host in hosts for n in range(100)))
    crawl = Crawl(url, ahead=1)

    async def visit(page: Page) -> None:
        await asyncio.sleep(seconds)
        if await crawl.client.begins(page):
            await crawl.visit(page)

    crawl.run(60, visit, until=lambda: len(web.log) >= 70)
    assert len(web.log) >= 70
    # On a busy machine as many are not ready as are. If the client learnt nothing, there would be nine for each request
    # of a visit that takes .9 of the second that the client looks ahead.
    assert crawl.client.counts["unready"] < 3 * len(web.log)
    for host in hosts:
        assert web.apart(host)[0] > GAP - LATE


def test_a_visit_that_prepares_makes_no_request_to_a_host_that_was_blocked_meanwhile(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    add(db, f"http://127.0.0.2:{web.port}/")
    crawl = Crawl(url, robots=False, preparation=4)

    async def visit(page: Page) -> None:
        db.execute("select recrawl.block_host(%s, now() + interval '1 hour')", [page.host])
        await asyncio.sleep(1)
        if await crawl.client.begins(page):
            await crawl.visit(page)

    crawl.run(30, visit, until=lambda: crawl.client.counts["blocked"] == 1)
    assert web.log == [] and crawl.client.counts["requests"] == 0


@pytest.mark.soak
def test_slow_visits_make_nearly_as_many_requests_as_fast_ones_and_break_no_gap(server: str) -> None:
    """By the limits of `python -m bench slow`."""
    with ExitStack() as stack:
        lines = list(slow(Stage(server, 1, stack)))
    print(formatted(lines))
    assert len(lines) == 2 * len(VISITS)
    assert [line for line in lines if not line.met] == []


@pytest.mark.parametrize("preparation", [0.0, 1.5])
def test_the_first_page_comes_as_early_as_the_caller_says(
    url: str, db: psycopg.Connection[Any], preparation: float
) -> None:
    add(db, "http://a.example/")
    crawl = Crawl(url, robots=False, ahead=1, preparation=preparation)
    early: list[float] = []  # seconds before its slot at which a page came

    async def visit(page: Page) -> None:
        early.append(page.fetch_at.timestamp() - time.time())
        await crawl.client.begins(page)
        page.report(200)

    crawl.run(30, visit, until=lambda: early)
    if preparation:
        assert preparation / 2 < early[0] < preparation + 0.1
    else:
        assert early[0] < 0.1


def test_visits_in_threads_may_need_a_while_too(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    site.answers["*"] = Answer()
    add(db, *(f"http://127.0.0.2:{web.port}/{n}" for n in range(30)))
    began: list[bool] = []

    def visit(page: Page) -> None:
        time.sleep(0.4)
        began.append(crawl.begins(page))
        if began[-1]:
            page.report(200)
        if began.count(True) >= 3:
            crawl.stop()

    with ThreadedClient(url, user_agent="shop-bot", robots=False, ahead=1) as crawl:
        for page in crawl:
            crawl.spawn(visit, page)
    assert crawl.counts["ok"] >= 3


def test_a_visit_in_a_thread_that_waits_for_its_slot_ends_with_the_client(
    url: str, db: psycopg.Connection[Any]
) -> None:
    """Its thread waited for ever, and so did the end of the process."""
    add(db, *(f"http://h{host}.example/" for host in range(3)))
    began: list[bool] = []

    entered = Event()

    def visit(page: Page) -> None:
        entered.set()
        began.append(crawl.begins(page))

    crawl = ThreadedClient(url, user_agent="shop-bot", robots=False, preparation=3, ahead=4)

    def fail() -> None:
        with crawl:
            crawl.spawn(visit, next(crawl))
            assert entered.wait(60)
            raise KeyError("in the loop")

    with pytest.raises(KeyError):
        fail()
    eventually(lambda: began == [False])


def test_the_log_says_that_visits_are_not_ready_and_what_to_do(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, *(f"http://h{host}.example/{n}" for host in range(4) for n in range(20)))
    crawl = Crawl(url, robots=False, ahead=0.2)

    async def visit(page: Page) -> None:
        await asyncio.sleep(1)
        await crawl.client.begins(page)

    with caplog.at_level(logging.WARNING, "recrawl.client"):
        crawl.run(30, visit, until=lambda: crawl.client.counts["unready"] >= 10)
    line = next(message for message in caplog.messages if "not ready" in message)
    says = (
        "visits were not ready in their slots. They need (.*) s before the request, and pages come at most 0.4 s before"
    )
    found = re.search(says + r" their slots: set ahead to ([\d.]+)$", line)
    assert found and 1 <= float(found[2]) == pytest.approx(float(found[1]), abs=0.5)


def test_the_log_says_that_no_visit_was_free(
    url: str, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    add(db, *(f"http://h{host}.example/{n}" for host in range(20) for n in range(5)))
    crawl = Crawl(url, robots=False, concurrency=1, ahead=10)

    async def visit(page: Page) -> None:
        page.report(200)
        await asyncio.sleep(0.5 if crawl.client.counts["requests"] > 15 else 0)

    with caplog.at_level(logging.WARNING, "recrawl.client"):
        crawl.run(30, visit, until=lambda: crawl.client.counts["missed"] >= 5)
    (line,) = [message for message in caplog.messages if "all visits were busy" in message]
    assert line.endswith("Raise concurrency, which is 1, or run the crawler on a faster machine")


def test_the_log_counts_the_slots_that_passed_since_its_last_line(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.client.missed_slots.EVERY", math.inf)
    counts = Counter(requests=90, missed=5, unready=5)
    missed_slots = MissedSlots(counts, Preparation(0.4, longest=0.4), concurrency=7)
    missed_slots.tell()
    assert caplog.messages == [
        "5 of 100 visits were not ready in their slots. They need 0.4 s before the request: pass preparation=0.4 to the"
        " client, so that the first ones are in time too. If this goes on, raise concurrency, which is 7",
        "5 of 100 pages missed their slots, because all visits were busy or robots.txt came too late. Raise"
        " concurrency, which is 7, or run the crawler on a faster machine",
    ]
    caplog.clear()
    for few in (Counter(missed=4, unready=4), Counter(requests=100, missed=5, unready=5)):
        counts.update(few)
        missed_slots.tell()
    counts.update(missed=50)
    missed_slots.tell_sometimes()
    assert caplog.messages == []


def test_a_preparation_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"preparation must lie between 0 and twice ahead \(4 s\), got 5"):
        Crawl(url, preparation=5)


def test_what_most_visits_need_counts_and_not_the_mean() -> None:
    preparation = Preparation(0, longest=3)
    for seconds in [0.1] * 90 + [2.0] * 10:
        preparation.took(seconds)
    assert preparation.lead_time == 2.0
    for _ in range(100):
        preparation.took(0.1)
    assert preparation.lead_time == 0.1, "old visits are forgotten"
    preparation.took(60)
    assert preparation.lead_time == 0.1, "one slow visit changes nothing"
    for _ in range(20):
        preparation.took(60)
    assert preparation.lead_time == 3, "no page is yielded earlier than that"
