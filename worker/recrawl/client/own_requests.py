"""Requests of the client that are no pages of the crawl, and the answers that the client reads itself.

The robots.txt of a site is requested in the slot of the first page that needs it. `Client.extra_request` asks for
requests with slots of their own. Sitemaps are pages of the crawl, and their URLs become pages too.

How an answer comes back:

    page.report ──▶ Runner ──┬─ robots, extra ──▶ InHand.end_settled ──▶ Answered ──▶ the future
                             └─ sitemap ──▶ the future ──▶ _read_sitemap ──▶ Runner.finish
    given back by InHand ──▶ Answered without a result ──▶ the future
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import psycopg

from recrawl.client import robots
from recrawl.client.answers import Result, storable_url
from recrawl.client.database import Database, NoHost
from recrawl.client.in_hand import ROBOTS_FAILED, Answered
from recrawl.client.page import Kind, Page, request_row
from recrawl.client.robots_cache import RobotsCache
from recrawl.client.runner import Runner
from recrawl.client.sender import Sender
from recrawl.client.sitemap_pages import add_sitemaps, take_sitemap

log = logging.getLogger("recrawl.client")

Answering = asyncio.Future[Answered]

TRIES = 60  # of an extra request: slots that were asked for, about one a second
ROBOTS_TRIES = 600  # for a redirect of a robots.txt: the gap of its host may be minutes, and has just begun
# An answer of a server can cause these. They must not end the crawl.
FAULTS = (psycopg.Error, ValueError, LookupError, OverflowError)


@dataclass(eq=False)
class OwnRequests:
    _database: Database
    _robots_cache: RobotsCache
    _sender: Sender
    _runner: Runner
    _reads_sitemaps: bool
    extras = 0  # that have no answer yet

    def __post_init__(self) -> None:
        self._in_hand = self._runner.in_hand
        # By host: one extra request at a time.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def expect_answer_of(self, page: Page) -> None:
        """Begins to wait for the answer to a page that was yielded, if the client needs it."""
        if page in self._runner.answers:  # it is a request of _with_slot
            return
        if page.kind == "robots":
            self._begin(self._learn_robots(page, self._runner.expect_answer(page)))
        elif page.kind == "sitemap":
            self._begin(self._read_sitemap(page, self._runner.expect_answer(page)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._runner.background(self._guarded(work), "own request")

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except FAULTS:
            self._in_hand.counts["own_requests_failed"] += 1
            log.exception("a request of the client failed")

    async def _learn_robots(self, first: Page, answer: Answering) -> None:
        """From the first request of a robots.txt to the rules of its site, in the database and here:

        1. Wait for the answer, and follow its redirects.
        2. Give back the pages of the host: their slots were given by the gap that it had without these rules.
        3. Store the rules in the database. It refuses an answer that says nothing, such as 503, if there are no old
           rules. Then the page that gave its slot to the request has failed.
        4. Read the rules that count now: another process may have stored newer ones. Add the sitemaps.
        5. Let the pages go on that came after step 2 and wait for the rules.
        """
        failed: Result | None = None
        try:
            if (fetched := await self._fetch_robots(answer)) is None:
                return
            found, result = fetched
            self._in_hand.give_back("released", hosts={first.host})
            self._runner.catch_up()
            await self._sender.send()
            rules = await self._robots_cache.rules_of(found.text)
            wait = result.get("retry_after")
            if await self._database.set_robots(first.url, found.status, found.text, rules.crawl_delay, wait):
                if rules.crawl_delay:
                    # Pages that came since step 2 have slots by the old gap, too.
                    self._in_hand.give_back("released", hosts={first.host})
                    self._runner.catch_up()
                for row in await self._database.robots([first.url]):
                    rules = await self._robots_cache.store_rules(first.url, row.rules, row.good_for)
                if self._reads_sitemaps and rules.sitemaps:
                    await add_sitemaps(self._database, first.url, rules.sitemaps)
            else:
                failed = {"status": found.status}
        finally:
            self._in_hand.robots_came(first, failed)
            self._runner.catch_up()

    async def _fetch_robots(self, answer: Answering) -> tuple[robots.RobotsAnswer, Result] | None:
        """The answer after all redirects, and the last result. None: the request was not made or was given back,
        or the client ends."""
        redirects = 0
        while True:
            request, result, body = await answer
            if result is None:
                return None
            found = robots.answer_of(result, body, redirects)
            if body is None and 200 <= result["status"] < 300:
                log.warning(
                    "%s was reported without its body, so its rules are not known: pass body to report()", request.url
                )
            if not found.redirect_to:
                if redirects and result["status"] in (429, 503):
                    # The caller blocks only the first host. This blocks the host that answered.
                    with suppress(psycopg.DataError):  # a URL that the database takes for no page
                        wait = result.get("retry_after")
                        await self._database.set_robots(request.url, result["status"], None, None, wait)
                return found, result
            try:
                target = await self._with_slot(found.redirect_to, "robots", tries=ROBOTS_TRIES)
            except NoHost:
                return robots.RobotsAnswer(404), result
            if target is None:
                # Unless the client ends, this counts as if the target had not answered.
                return None if self._in_hand.is_closed else (robots.RobotsAnswer(0), result)
            redirects, answer = redirects + 1, target

    async def _with_slot(self, url: str, kind: Kind, meta: object = None, tries: int = 1) -> Answering | None:
        """Puts a request with a slot of its own into the line. None: the host gives no slot, or the client ends."""
        host = urlsplit(url).hostname or ""
        while not (slot := await self._database.take_slot(host, self._in_hand.notice)):
            tries -= 1
            if tries <= 0 or self._in_hand.is_closed:
                return None
            await asyncio.sleep(1)
        request = self._runner.page(request_row(url, host, slot, meta), kind)
        answer = self._runner.expect_answer(request)
        self._runner.add(request)
        return answer

    def extra_request(self, url: str, meta: object) -> "asyncio.Future[None]":
        self.extras += 1
        is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._begin(self._request_extra(storable_url(url), meta, is_over))
        return is_over

    async def _request_extra(self, url: str, meta: object, is_over: "asyncio.Future[None]") -> None:
        """Takes slots until the URL was requested, at most TRIES times. The extra requests of one host wait for each
        other."""
        try:
            async with self._turns.setdefault(urlsplit(url).hostname or "", asyncio.Lock()):
                await self._robots_cache.look_up([url])
                tries = 0
                while tries < TRIES and not self._in_hand.is_closed:
                    if not self._in_hand.has_place_for_extra:
                        await asyncio.sleep(1)  # a slot taken now would pass unused
                    elif answer := await self._with_slot(url, "extra", meta):
                        request, result, _ = await answer
                        if result == ROBOTS_FAILED:
                            break
                        if result is not None:
                            return
                        # If it was not made because other extra requests have all places, it was no try.
                        tries += bool(request.began or request.slot_used or self._in_hand.has_place_for_extra)
                    else:
                        tries += 1
                        await asyncio.sleep(1)
        except NoHost:
            pass
        finally:
            self.extras -= 1
            if not is_over.done():  # the caller may have cancelled it
                is_over.set_result(None)
        self._in_hand.counts["extra_dropped"] += 1

    async def _read_sitemap(self, page: Page, answer: Answering) -> None:
        """Reports the sitemap when its URLs are stored. If it were reported first and the process were killed, its next
        answer could be 304, and the missing URLs would never come."""
        _, result, body = await answer
        if result is None:
            return
        try:
            if body and 200 <= result.get("status", 0) < 300:
                self._in_hand.counts["from_sitemaps"] += await take_sitemap(self._database, page.url, page.meta, body)
        except FAULTS:
            self._runner.finish(page, result)
            raise
        except BaseException:
            page.slot_used = True
            self._runner.finish(page, None)
            raise
        self._runner.finish(page, result)
