"""Scrapy's scheduler. Requests of the spider go to the database. Pages that the database hands out go to the engine.

engine ──enqueue_request──▶ Client.add, Client.extra_request        the database decides what comes when
   ▲ next_request ◀── ready ◀── engine.crawl ◀── pages, each when its slot has come
"""

import asyncio
import logging
import math
import time
from collections import deque
from typing import Self

from scrapy import Request, Spider, signals
from scrapy.core.scheduler import BaseScheduler
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, DontCloseSpider, IgnoreRequest
from scrapy.settings import BaseSettings
from scrapy.utils.defer import deferred_from_coro, maybe_deferred_to_future
from scrapy.utils.misc import build_from_crawler, load_object
from twisted.internet.defer import Deferred

from recrawl.client import Client, Error, Page
from recrawl.scrapy.stored import KEY, is_of_the_web, restored, stored
from recrawl.scrapy.visit import CrawlerVisits, Visit

log = logging.getLogger("recrawl.scrapy")

FAILED = "recrawl_failed"  # the finish_reason after an error of recrawl


def seconds(settings: BaseSettings, name: str) -> float:
    try:
        value = float(settings[name])
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf:
        raise Error(f"{name} must be a number of seconds, got {settings[name]!r}")
    return value


def is_on_asyncio() -> bool:
    try:
        return bool(asyncio.get_running_loop())
    except RuntimeError:
        return False


class Scheduler(BaseScheduler):
    def __init__(self, crawler: Crawler) -> None:
        self._crawler = crawler
        self._visits = CrawlerVisits.of(crawler)
        dupefilter = load_object(crawler.settings["DUPEFILTER_CLASS"])
        self._seen = build_from_crawler(dupefilter, crawler)  # for requests that are no pages
        self._ready: deque[Request] = deque()
        self._robots_fetches: set[asyncio.Future[None]] = set()
        self._busy_at = time.monotonic()
        self._is_open = False
        self._has_failed = False
        crawler.signals.connect(self._begin, signals.spider_opened)
        crawler.signals.connect(self._handed_on, signals.request_scheduled)
        crawler.signals.connect(self._idle, signals.spider_idle)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open(spider))

    async def _open(self, spider: Spider) -> None:
        settings = self._crawler.settings
        self._spider = spider
        try:
            if not is_on_asyncio():
                raise Error("recrawl needs Scrapy's asyncio reactor: take TWISTED_REACTOR out of the settings")
            if not settings.get("RECRAWL_DSN"):
                raise Error("set RECRAWL_DSN, or the environment's DATABASE_URL, to the URL of the crawl's database")
            never_closes = settings["RECRAWL_IDLE"] in (None, "None", "")
            self._patience = None if never_closes else seconds(settings, "RECRAWL_IDLE")
            user_agent = settings["ROBOTSTXT_USER_AGENT"] or getattr(spider, "user_agent", settings["USER_AGENT"])
            try:
                self._client = self._visits.client = Client(
                    settings["RECRAWL_DSN"],
                    user_agent=user_agent,
                    concurrency=settings.getint("CONCURRENT_REQUESTS") or 1000,  # Scrapy's 0 means no limit, here 1000
                    robots=settings.getbool("ROBOTSTXT_OBEY"),
                    lease=seconds(settings, "RECRAWL_LEASE"),
                    on_outcome=self._count,
                )
            except ValueError as error:
                raise Error(f"USER_AGENT or CONCURRENT_REQUESTS cannot be used: {error}") from None
            await self._client.__aenter__()
            self._is_open = True
            await self._client.claim(f"scrapy: {spider.name}")
        except Error as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Logs one line. The spider then closes, and the exit code is 1."""
        log.error("%s", str(error).partition("\n")[0])
        self._has_failed = True
        # weak=False: by then the engine has dropped this scheduler, and a weak signal would lose the receiver.
        self._crawler.signals.connect(self._has_no_spider, signals.engine_stopped, weak=False)

    def _has_no_spider(self) -> None:
        """Makes Scrapy's commands exit with 1. An exception does so only in the newest Scrapy, with a traceback."""
        self._crawler.spider = None

    def _begin(self) -> None:
        """Begins to hand pages out. Called when all parts of Scrapy are open, because they process each page."""
        if not self._has_failed:
            self._pump = asyncio.ensure_future(self._hand_out())

    def close(self, reason: str) -> Deferred[None] | None:
        return deferred_from_coro(self._close()) if self._is_open else None

    async def _close(self) -> None:
        for request in self._ready:
            if visit := self._visits.under_way.pop(request, None):
                visit.page.release()
        try:
            await self._client.__aexit__(None, None, None)
        except Exception as error:
            if not self._has_failed:  # an earlier failure is in the log already
                self._fail(error)
        for fetch in self._robots_fetches:
            fetch.cancel()
        self._count()

    def has_pending_requests(self) -> bool:
        if not self._is_open or self._has_failed:
            return bool(self._ready)
        is_busy = bool(self._ready) or not self._client.is_idle
        if is_busy:
            self._busy_at = time.monotonic()
        return is_busy

    def next_request(self) -> Request | None:
        return self._ready.popleft() if self._ready else None

    def enqueue_request(self, request: Request) -> bool:
        """Takes a request of a page that the client yielded, an extra request, a new page for the database, or a
        request that needs no slot."""
        if request in self._visits.under_way:
            self._ready.append(request)
        elif not self._is_open or self._has_failed:
            return False
        elif request in self._visits.no_pages:
            self._client.extra_request(request.url, request)
        elif is_of_the_web(request) and (kept := stored(request, self._spider)) is not None:
            self._client.add(request.url, {KEY: kept})
            if finder := self._visits.found_by.get(request):
                finder.found.append(request.url)
        elif not request.dont_filter and self._seen.request_seen(request):
            return False
        elif is_of_the_web(request):
            self._client.extra_request(request.url, request)
        else:
            self._ready.append(request)
        self._visits.accepted.add(request)
        return True

    def _handed_on(self, request: Request) -> None:
        """The engine has the request. It calls enqueue_request next, unless another part filters the request out."""
        if request in self._visits.found_by:
            asyncio.get_running_loop().call_soon(self._tell_finder, request)

    def _tell_finder(self, request: Request) -> None:
        """Tells the visit whose callback returned the request. If the callback returned the same Request twice within a
        moment, the visit counted it once, and is told once."""
        if finder := self._visits.found_by.pop(request, None):
            finder.handed_one_on()

    def _idle(self) -> None:
        if self._has_failed:
            raise CloseSpider(FAILED)
        if self._patience is None or time.monotonic() < self._busy_at + self._patience:
            raise DontCloseSpider

    async def _hand_out(self) -> None:
        try:
            async for page in self._client:
                self._give(page)
        except Exception as error:
            self._fail(error)

    def _give(self, page: Page) -> None:
        visit = Visit(page)
        if page.kind == "extra" and page.meta in self._visits.wanted:
            granted = self._visits.wanted[page.meta]
            if granted is None:
                visit.fail()  # the request missed an earlier slot, and has ended since then
            else:
                granted.set_result(visit)
            return
        try:
            request = self._request(page)
        except ValueError as error:
            log.error("%s: %s", page.url, error)
            visit.fail()
            return
        self._visits.under_way[request] = visit
        assert self._crawler.engine
        if page.kind == "robots":
            fetch = asyncio.ensure_future(self._fetch_robots(request))
            self._robots_fetches.add(fetch)
            fetch.add_done_callback(self._robots_fetches.discard)
            return
        self._crawler.engine.crawl(request)
        if request not in self._visits.accepted:  # it is offsite, or another part filtered it out
            del self._visits.under_way[request]
            page.decline()

    async def _fetch_robots(self, request: Request) -> None:
        """Fetches a robots.txt at once. A closing engine takes no more requests from the scheduler, but it waits for
        the requests of media pipelines, and they may need this robots.txt."""
        assert self._crawler.engine
        engine = self._crawler.engine
        spider = () if hasattr(engine, "download_async") else (self._spider,)  # Scrapy 2.13 needs it
        try:
            await maybe_deferred_to_future(engine.downloader.fetch(request, *spider))
        except IgnoreRequest:
            pass  # the client has the answer
        except Exception as error:
            log.error("%s cannot be fetched: %s", request.url, error)
        finally:
            if engine._slot:  # it may have room for another request now
                engine._slot.nextcall.schedule()

    def _request(self, page: Page) -> Request:
        if page.kind == "extra":
            return page.meta.copy()  # type: ignore[no-any-return]
        if page.kind == "robots":
            return Request(page.url, dont_filter=True, meta={"handle_httpstatus_all": True})
        request = restored(page.url, page.meta, self._spider)
        for name, value in page.request_headers.items():
            if name != "User-Agent":  # Scrapy has its own
                request.headers.setdefault(name, value)
        return request

    def _count(self, *_: object) -> None:
        for name, count in self._client.counts.items():
            if self._crawler.stats:
                self._crawler.stats.set_value(f"recrawl/{name}", count)
