"""The common parts of the tests of the client: hosts with answers by path, and a crawler in this process."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import psycopg
import pytest

from recrawl.client import Client, Page
from web import Answer, Request

GAP = 0.3  # seconds
LATE = 0.1  # seconds that a busy machine may hold a process between its look at the clock and its request
Visit = Callable[[Page], Awaitable[None]]


def with_start_times(program: str) -> str:
    """The README's crawler with the header X-Began, the time when a request began. Without it the log of the web has
    the time of arrival, which is later on a busy machine."""
    headers = "headers=page.request_headers"
    assert headers in program
    return "import time\n" + program.replace(headers, headers + ' | {"X-Began": str(time.monotonic())}')


class Site:
    """The answers of the hosts of a test, by path; `*` is every other path. A page without an answer does not exist."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | Callable[[Request], Answer]] = {"/robots.txt": Answer(404)}

    def __call__(self, request: Request) -> Answer:
        for key in (request.host + request.path, request.path, "*"):
            if key in self.answers:
                found = self.answers[key]
                return found(request) if callable(found) else found
        return Answer(404)


def add(db: psycopg.Connection[Any], *urls: str) -> None:
    db.execute("select recrawl.add_pages(%s)", [list(urls)])


def state(db: psycopg.Connection[Any], url: str) -> Any:
    return db.execute("select * from recrawl.page_status where url = %s", [url]).fetchone()


class Crawl:
    """A crawler in this process; what became of its pages."""

    def __init__(self, dsn: str, timeout: float = 60, **options: Any) -> None:
        self.client = Client(dsn, user_agent="shop-bot", **{"on_outcome": self.note, **options})
        self.timeout = timeout  # seconds for an answer
        self.outcomes: list[tuple[str, str, str | None]] = []

    def note(self, page: Page, outcome: str, detail: str | None) -> None:
        if outcome not in ("missed", "unready"):  # a loaded machine
            self.outcomes.append((page.url, outcome, detail))

    def of(self, url: str) -> list[str]:
        return [outcome for at, outcome, _ in self.outcomes if at == url]

    def run(self, seconds: float, visit: Visit | None = None, until: Callable[[], object] | None = None) -> None:
        """Crawls for some seconds. With `until`, it crawls until that is true, for two minutes at most: this machine
        may be busy with other work."""
        if until:
            seconds = max(seconds, 120)
        asyncio.run(asyncio.wait_for(self._run(seconds, visit, until or (lambda: False)), seconds + 60))

    async def _run(self, seconds: float, visit: Visit | None, until: Callable[[], object]) -> None:
        async with httpx.AsyncClient(timeout=self.timeout, trust_env=False) as self.web:
            with pytest.raises(httpx.ConnectError):  # the first request of a process takes its time
                await self.web.get("http://127.0.0.1:9/")
            async with self.client as crawl:
                watch = asyncio.create_task(self._stop_when(seconds, until))
                async for page in crawl:
                    crawl.spawn(visit or self.visit, page)
                watch.cancel()

    async def _stop_when(self, seconds: float, until: Callable[[], object]) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end and not until():
            await asyncio.sleep(0.05)
        self.client.stop()

    async def visit(self, page: Page) -> None:
        headers = {**page.request_headers, "X-Began": str(time.monotonic())}
        answer = await self.web.get(page.url, headers=headers, follow_redirects=False)
        found = re.findall(r'href="([^"]+)"', answer.text)
        page.report(answer.status_code, answer.headers, body=answer.content, links=found)


def leases(db: psycopg.Connection[Any]) -> list[Any]:
    return db.execute("select * from recrawl.lease_status").fetchall()
