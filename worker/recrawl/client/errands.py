"""Requests that are no pages: robots.txt, in the slot of the first page that needs it; what somebody asks for beside
the pages, in slots of its own. And what sitemaps bring.
"""

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from datetime import datetime
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import psycopg

from recrawl.client import robots
from recrawl.client.answers import Result, request_headers
from recrawl.client.database import Database, NoHost
from recrawl.client.gate import Gate, Passage
from recrawl.client.listed import add_sitemaps, take_sitemap
from recrawl.client.outbox import Outbox
from recrawl.client.page import Page, Settle
from recrawl.client.waiting import Waiting

log = logging.getLogger("recrawl.client")

TRIES = 60  # for a slot of a host that gives none; about a second each

Answered = tuple[Result | None, bytes | str | None]  # what came, and its body; None: nothing was requested


class Errands:
    def __init__(
        self,
        database: Database,
        asking: Database,
        gate: Gate | None,
        waiting: Waiting,
        outbox: Outbox,
        counts: Counter[str],
        settle: Settle,
        begin: Callable[[Coroutine[Any, Any, None]], object],
        user_agent: str,
        takes_sitemaps: bool,
    ) -> None:
        self._database = database
        self._asking = asking  # waits for no report, so that slots come in time
        self._gate = gate
        self._waiting = waiting
        self._outbox = outbox
        self._counts = counts
        self._settle = settle
        self._in_background = begin
        self._user_agent = user_agent
        self._takes_sitemaps = takes_sitemaps
        self._answers: dict[Page, asyncio.Future[Answered]] = {}  # of requests that are no pages
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # by host, of asides that wait
        self.asides = 0  # that have no answer yet
        self._kept: defaultdict[str, list[Page]] = defaultdict(list)  # pages that wait for that of their site

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._in_background(self._guarded(work))

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        """What servers say must end no crawl."""
        try:
            await work
        except (psycopg.Error, ValueError, LookupError, OverflowError):
            self._counts["errands failed"] += 1
            log.exception("an errand failed")

    # --------------------------------------------------------------------------------------------- robots.txt

    def passes(self, page: Page) -> Page | None:
        """What may be requested in the slot of a page in line: itself, or the robots.txt that it needs first. Nothing
        where that denies it, or is on its way.
        """
        verdict = self._gate.verdict(page.url) if self._gate else Passage.ALLOWED
        if page.kind == "robots" or verdict is Passage.ALLOWED:
            return page
        if verdict is Passage.DENIED:
            self.deny(page)
        elif verdict is Passage.ASKED:
            self._kept[robots.site_of(page.url)].append(page)
        elif self._gate:
            self._waiting.leave(page)
            self._gate.asked.add(robots.site_of(page.url))
            robots_page = self._robots_page(page, robots.address(page.url))
            self._begin(self._learn_robots(self._gate, page, robots_page))
            return robots_page
        return None

    def deny(self, page: Page) -> None:
        self._waiting.leave(page)
        page.is_settled = True
        self._counts["denied"] += 1
        self._report(page, {"robots_denied": True})

    def answered(self, page: Page, result: Result | None, body: bytes | str | None) -> None:
        """What came of a request that is no page; None: it was not made, or its slot went to something else."""
        answer = self._answers.get(page)
        if answer and not answer.done():
            answer.set_result((result, body))

    def _awaited(self, page: Page) -> Page:
        self._answers[page] = asyncio.get_running_loop().create_future()
        return page

    async def _answer(self, page: Page) -> Answered:
        try:
            return await self._answers[page]
        finally:
            del self._answers[page]

    def _report(self, page: Page, result: Result) -> None:
        if page.kind == "aside":
            self.answered(page, result, None)
        else:
            self._outbox.report(page, result)

    def _robots_page(self, page: Page, url: str) -> Page:
        robots_page = Page(page, self._user_agent, "robots", self._settle)
        robots_page.url = url
        robots_page.request_headers = request_headers(self._user_agent, None, None)
        self._counts["robots"] += 1
        return self._awaited(robots_page)

    async def _learn_robots(self, gate: Gate, page: Page, robots_page: Page) -> None:
        """From one robots.txt, which may lie elsewhere, to what all processes know of a site."""
        site = robots.site_of(page.url)
        is_over = False
        try:
            fetched = await self._fetch_robots(robots_page)
            if fetched is None:
                return
            answer, result = fetched
            # Their slots are as far apart as was asked for until now.
            self._waiting.drop([p for p in self._waiting if p.host == page.host and p.kind != "robots"], "released")
            await self._outbox.send()
            rules = await gate.rules_of(answer.text)
            wait = result.get("retry_after")
            if await self._database.set_robots(page.url, answer.status, answer.text, rules.crawl_delay, wait):
                for row in await self._database.robots([page.url]):
                    rules = await gate.know(page.url, row.rules, row.good_for)
                if self._takes_sitemaps and rules.sitemaps:
                    await add_sitemaps(self._database, page.url, rules.sitemaps)
            else:
                # As long as nobody can read its rules nothing of the site can be fetched: the page has failed.
                page.began = robots_page.began
                self._report(page, {"status": answer.status})
                is_over = True
        finally:
            if not is_over and page.kind == "aside":
                self.answered(page, None, None)
            elif not is_over:
                self._outbox.give_back(page, "released", spent=True)
            gate.asked.discard(site)
            for other in self._kept.pop(site, []):
                self._waiting.is_ready(other)

    async def _fetch_robots(self, robots_page: Page) -> tuple[robots.Answer, Result] | None:
        """The answer in the end; None where nothing was requested."""
        redirects = 0
        while True:
            result, body = await self._answer(robots_page)
            if result is None:
                return None
            answer = robots.answer_of(result, body, redirects)
            if not answer.redirect_to:
                return answer, result
            host = urlsplit(answer.redirect_to).hostname or ""
            try:
                slot = await self._asking.take_slot(host, self._waiting.notice)
            except NoHost:
                return robots.Answer(404), result
            if slot is None:
                return robots.Answer(0), result  # nothing is known; the page is tried again, ever later
            redirects += 1
            robots_page = self._robots_page(robots_page, answer.redirect_to)
            robots_page.fetch_at, robots_page.start_by = slot
            self._waiting.add(robots_page)

    # ------------------------------------------------------------------------------------- beside the pages

    def aside(self, url: str, meta: object) -> "asyncio.Future[None]":
        self.asides += 1
        is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begin(self._aside(url, meta, is_over))
        return is_over

    async def _aside(self, url: str, meta: object, is_over: "asyncio.Future[None]") -> None:
        """Until it was made, in a slot of its own; one at a time of each host."""
        host = urlsplit(url).hostname or ""
        try:
            async with self._turns.setdefault(host, asyncio.Lock()):
                for _ in range(TRIES):
                    if self._waiting.is_closed:
                        break
                    if slot := await self._asking.take_slot(host, self._waiting.notice):
                        page = self._awaited(self._aside_page(url, host, slot, meta))
                        self._waiting.add(page)
                        if (await self._answer(page))[0] is not None:
                            return
                    else:
                        await asyncio.sleep(1)
        except NoHost:
            pass
        finally:
            self.asides -= 1
            if not is_over.done():  # who waited for it may have gone
                is_over.set_result(None)
        self._counts["asides dropped"] += 1

    def _aside_page(self, url: str, host: str, slot: tuple[datetime, datetime], meta: object) -> Page:
        row = SimpleNamespace(
            page_id=0, url=url, host=host, fetch_at=slot[0], start_by=slot[1], lease_id=0, lease_until=slot[1],
            attempt=1, value=1.0, etag=None, last_modified=None, content_hash=None, meta=meta,
        )  # fmt: skip
        return Page(row, self._user_agent, "aside", self._settle)

    # ----------------------------------------------------------------------------------------------- sitemaps

    def take_sitemap(self, page: Page, body: bytes | str) -> None:
        self._begin(self._take_sitemap(page, body))

    async def _take_sitemap(self, page: Page, body: bytes | str) -> None:
        self._counts["from sitemaps"] += await take_sitemap(self._database, page.meta, body)
