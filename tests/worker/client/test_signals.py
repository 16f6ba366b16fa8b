"""Crawlers that are told to stop, and told again."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from crawler import add, leases
from helpers import eventually

PATIENT = """
import asyncio, sys
from recrawl.client import Client

async def visit(page):
    print("begun", flush=True)
    await asyncio.sleep(60)

async def main():
    async with Client(sys.argv[1], user_agent="me", robots=False, stop_on_signals=True) as crawl:
        async for page in crawl:
            crawl.spawn(visit, page)

asyncio.run(main())
"""
IN_THREADS = """
import sys
from recrawl.client import ThreadedClient

def visit(page):
    print("begun", flush=True)
    sys.stdin.read()

with ThreadedClient(sys.argv[1], user_agent="me", robots=False, concurrency=2, stop_on_signals=True) as crawl:
    for page in crawl:
        crawl.spawn(visit, page)
"""


@contextmanager
def visiting(program: str, url: str) -> Iterator["subprocess.Popen[str]"]:
    """A crawler that was told to stop while it visits a page, and waits for that visit."""
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", program, url], **pipes) as crawler:
        try:
            assert crawler.stdout and crawler.stdout.readline() == "begun\n"
            crawler.send_signal(signal.SIGINT)
            time.sleep(1)
            assert crawler.poll() is None
            yield crawler
        finally:
            crawler.kill()


def test_a_second_signal_ends_visits_too_and_nothing_stays_leased(url: str, db: psycopg.Connection[Any]) -> None:
    add(db, "http://a.example/")
    with visiting(PATIENT, url) as crawler:
        assert leases(db) != []
        crawler.send_signal(signal.SIGINT)
        assert crawler.wait(60) == 0
    assert leases(db) == []


def test_after_a_second_signal_the_page_of_a_thread_stays_leased(url: str, db: psycopg.Connection[Any]) -> None:
    """Nothing can stop the thread. If its page was given back, another crawler could request it at the same time."""
    add(db, "http://a.example/")
    its_connections = (
        "select from pg_stat_activity where datname = current_database() and application_name = 'recrawl client'"
    )
    with visiting(IN_THREADS, url) as crawler:
        crawler.send_signal(signal.SIGINT)
        eventually(lambda: not db.execute(its_connections).fetchall())
        assert crawler.poll() is None and crawler.stdin, "the visit goes on"
        crawler.stdin.close()
        assert crawler.wait(60) == 0
    (lease,) = leases(db)
    assert lease.unreported == 1
