"""Two Scrapy middlewares: one checks the slot before a request goes out, one reports a page after its callback."""

from collections.abc import AsyncIterator
from typing import Any, Self

from scrapy import Request, Spider
from scrapy.crawler import Crawler
from scrapy.exceptions import CloseSpider, IgnoreRequest
from scrapy.http import Response
from scrapy.spidermiddlewares.httperror import HttpError

from recrawl.scrapy.visit import CrawlerVisits, Visit, visits


class Middleware:
    def __init__(self, crawler: Crawler) -> None:
        self._visits = CrawlerVisits.of(crawler)
        self._stats = crawler.stats

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)


class SlotMissed(IgnoreRequest):
    pass


class Starting(Middleware):
    """A request begins in its slot. If the slot has passed before the request comes here, it does not begin at all."""

    async def process_request(self, request: Request, spider: Spider | None = None) -> None:
        if visit := self._visits.under_way.get(request):
            visit.has_begun = await self._visits.client.begins(visit.page)
            if not visit.has_begun:
                raise SlotMissed("its slot has passed")


class Reading(Middleware):
    """Reports each page once, when its callback has returned its last item or request."""

    async def process_spider_output(
        self, response: Response, result: AsyncIterator[Any], spider: Spider | None = None
    ) -> AsyncIterator[Any]:
        visit = visits.get(response)
        try:
            async for output in result:
                # A callback may return the same Request twice.
                if visit and isinstance(output, Request) and output not in self._visits.found_by:
                    visit.to_come += 1
                    self._visits.found_by[output] = visit
                yield output
        except Exception as error:
            self._callback_failed(visit, response, error)
            raise
        if visit:
            visit.callback_ended(response)

    def process_spider_exception(self, response: Response, exception: Exception, spider: Spider | None = None) -> None:
        self._callback_failed(visits.get(response), response, exception)

    def _callback_failed(self, visit: Visit | None, response: Response, error: Exception) -> None:
        if visit is None or visit.page.is_settled:
            return
        if isinstance(error, (HttpError, CloseSpider)):
            visit.callback_ended(response)
        else:
            visit.fail()
            if self._stats:
                self._stats.inc_value("recrawl/raised")
