"""The visit of a page in hand, from its request to its report. A callback finds its Visit as `response.recrawl`."""

import asyncio
import copy
from collections.abc import Iterable
from datetime import datetime
from typing import Any, ClassVar
from weakref import WeakKeyDictionary, WeakSet

from scrapy import Request
from scrapy.crawler import Crawler
from scrapy.http import Response

from recrawl.client import Client, Page
from recrawl.scrapy.stored import KEY, own_part, stored_in


class Visit:
    """A callback may set `relevance` (0 to 1), `links` (URLs; by default the URLs of the requests that it returns),
    `meta` (the project's part of the page's meta, handed out with the page the next time) and `due` (the time of the
    next fetch)."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.relevance: float | None = None
        self.links: Iterable[str] | None = None
        self.due: datetime | None = None
        self.meta: dict[str, Any] = own_part(page.meta)
        self.has_begun = False  # its request went out
        self.found: list[str] = []  # URLs that became pages
        self.to_come = 0  # requests that the callback returned and the engine has not handed on yet
        self._meta_before = copy.deepcopy(self.meta)
        self._read: Response | None = None  # the response, after the callback has returned all

    def handed_one_on(self) -> None:
        self.to_come -= 1
        self._report_if_complete()

    def callback_ended(self, response: Response) -> None:
        self._read = response
        self._report_if_complete()

    def _report_if_complete(self) -> None:
        if self._read is not None and not self.to_come:
            try:
                self.report(self._read, self.found if self.links is None else self.links)
            except Exception:
                self.fail()  # for example if `due` is no time: an unreported page would keep its place for ever
                raise
            finally:
                self._read = None  # `visits` holds this visit, which would keep the response in memory

    def report(self, response: Response, links: Iterable[str] | None = None, redirect_to: str | None = None) -> None:
        """Reports the answer. `redirect_to` is the target of a redirect that is followed. A redirect that a callback
        sees is not followed."""
        more: dict[str, Any] = {}
        if self.relevance is not None:
            more["relevance"] = self.relevance
        if self.meta != self._meta_before:
            more["meta"] = self.meta | {KEY: stored_in(self.page.meta) or {}}
        headers = {name: values[0] for name, values in response.headers.items() if values}
        headers.pop(b"Location", None)
        if redirect_to:
            headers[b"Location"] = redirect_to.encode()
        self.page.report(response.status, headers, body=response.body, links=links, due=self.due, **more)

    def left_for(self, url: str) -> None:
        """A middleware replaced the request. If the URL is the same, the page is tried again. Otherwise it is reported
        as a temporary redirect."""
        if url == self.page.url:
            self.fail()
        else:
            self.page.report(302, {"Location": url})

    def fail(self) -> None:
        """Reports a failed fetch. The page is tried again. After each further failure the page waits longer."""
        if not self.page.is_settled:
            self.page.report(0)

    def ignored(self) -> None:
        """A middleware ignored the request or its response. If the request went out, the fetch counts as failed.
        Otherwise the page is declined."""
        if self.has_begun:
            self.fail()
        elif not self.page.is_settled:
            self.page.decline()


visits: WeakKeyDictionary[Response, Visit] = WeakKeyDictionary()  # a response that is no page has no visit
Response.recrawl = property(visits.get)  # type: ignore[attr-defined]  # since Scrapy 2.19 a response takes no attributes


class CrawlerVisits:
    """The page of each request, and the page that led to each request. All parts of a crawler share this."""

    _of: ClassVar[WeakKeyDictionary[Crawler, "CrawlerVisits"]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.client: Client  # set when the scheduler opens
        self.under_way: dict[Request, Visit] = {}  # from the hand-out by the database until the answer
        # The visits that a request waits for if it does not pass through the scheduler. None: it waits no more.
        self.wanted: WeakKeyDictionary[Request, asyncio.Future[Visit] | None] = WeakKeyDictionary()
        self.found_by: WeakKeyDictionary[Request, Visit] = WeakKeyDictionary()  # its callback returned the request
        self.no_pages: WeakSet[Request] = WeakSet()  # requests that are no pages, also if their URLs look like pages
        self.accepted: WeakSet[Request] = WeakSet()  # by the scheduler

    @classmethod
    def of(cls, crawler: Crawler) -> "CrawlerVisits":
        return cls._of.setdefault(crawler, cls())
