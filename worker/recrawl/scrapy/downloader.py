"""Scrapy's downloader, with each request in a slot of its host. It reports the answers that the spider must not see."""

import asyncio
import contextlib
from collections.abc import Awaitable
from typing import Any, cast

from scrapy import Request, Spider
from scrapy.core.downloader import Downloader as ScrapysDownloader
from scrapy.crawler import Crawler
from scrapy.downloadermiddlewares.redirect import RedirectMiddleware
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Response
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from twisted.internet.defer import Deferred

from recrawl.client.answers import text_of
from recrawl.scrapy.middleware import SlotMissed
from recrawl.scrapy.stored import is_of_the_web, restored
from recrawl.scrapy.visit import CrawlerVisits, Visit, visits

Result = Response | Request


class Downloader(ScrapysDownloader):
    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self.crawler = crawler  # Scrapy 2.13 does not set it
        self._visits = CrawlerVisits.of(crawler)
        self._follows = crawler.settings.getbool("REDIRECT_ENABLED")
        self._redirects = RedirectMiddleware.from_crawler(crawler)
        self._page_redirects = RedirectMiddleware.from_crawler(crawler)
        self._page_redirects.max_redirect_times = 1  # each page of a chain of redirects is a request of its own

    def fetch(self, request: Request, spider: Spider | None = None) -> Deferred[Result]:
        as_asked = () if spider is None else (spider,)
        if is_of_the_web(request):
            return deferred_from_coro(self._fetch(request, as_asked))
        return super().fetch(request, *as_asked)

    async def _fetch(self, request: Request, spider: tuple[Spider, ...]) -> Result:
        if visit := self._visits.under_way.get(request):
            try:
                return await self._fetch_in_slot(visit, request, spider)
            except SlotMissed:
                request.errback = None  # the page comes again, with another Request
                raise
        # The request did not come through the scheduler, but for example from a media pipeline. If it misses its slot,
        # it gets another.
        is_over = self._visits.client.extra_request(request.url, request)
        while True:
            visit = self._visits.under_way[request] = await self._slot_for(request, is_over)
            with contextlib.suppress(SlotMissed):
                return await self._fetch_in_slot(visit, request, spider)

    async def _fetch_in_slot(self, visit: Visit, request: Request, spider: tuple[Spider, ...]) -> Result:
        # Each request gets a Scrapy slot of its own, so that Scrapy does not delay it: the database has set its time.
        slot = request.meta["download_slot"] = f"recrawl {id(visit)}"
        try:
            result = await cast(Awaitable[Result], maybe_deferred_to_future(super().fetch(request, *spider)))
            return self._outcome(visit, request, result, spider)
        except IgnoreRequest:
            visit.ignored()
            raise
        except BaseException:
            visit.fail()
            raise
        finally:
            del self._visits.under_way[request]
            if left := self.slots.pop(slot, None):
                left.close()

    def _outcome(self, visit: Visit, request: Request, result: Result, spider: tuple[Spider, ...]) -> Result:
        """The result for the engine. Reports the page, unless a callback must see the response first."""
        if isinstance(result, Request):
            visit.left_for(result.url)
        elif visit.page.kind == "extra":
            visit.report(result)
            if target := self._target(self._redirects, request, result, spider):
                self._visits.no_pages.add(target)
                return target
        elif visit.page.kind == "robots" or result.status == 304:
            visit.report(result, redirect_to=text_of(result.headers.get("Location") or b""))
            raise _nothing_for_the_spider(request)
        elif target := self._target(self._page_redirects, request, result, spider):
            self._redirect(visit, result, target.url)
            raise _nothing_for_the_spider(request)
        else:
            visits[result] = visit
        return result

    async def _slot_for(self, request: Request, is_over: asyncio.Future[None]) -> Visit:
        granted: asyncio.Future[Visit] = asyncio.get_running_loop().create_future()
        self._visits.wanted[request] = granted
        either: list[asyncio.Future[Any]] = [granted, is_over]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            if granted.done():  # the caller has cancelled the request just when its slot came
                granted.result().fail()
            raise
        finally:
            self._visits.wanted[request] = None  # the Visit in the future would keep the request in memory
        if not granted.done():
            raise IgnoreRequest(f"robots.txt denies it, or there is no slot: {request}")
        return granted.result()

    def _target(
        self, rules: RedirectMiddleware, request: Request, response: Response, spider: tuple[Spider, ...]
    ) -> Request | None:
        """The request that Scrapy's own redirect middleware, which is off, would make. None: the response goes to the
        caller."""
        found: Result = response
        if self._follows and response.headers.get("Location"):
            with contextlib.suppress(ValueError):  # the target is no URL
                found = rules.process_response(request, response, *spider)
        return found if isinstance(found, Request) else None

    def _redirect(self, visit: Visit, response: Response, url: str) -> None:
        """The target of a redirect becomes a page with the same callback, if the spider wants it."""
        assert self.crawler.engine and self.crawler.spider
        target = restored(url, visit.page.meta, self.crawler.spider)
        self.crawler.engine.crawl(target)
        visit.report(response, redirect_to=target.url if target in self._visits.accepted else None)


def _nothing_for_the_spider(request: Request) -> IgnoreRequest:
    """The exception that ends a request without calling its errback."""
    request.errback = None
    return IgnoreRequest("the frontier has it")
