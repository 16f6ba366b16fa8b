"""A crawler's client for asyncio. It makes its parts, opens them and ends them.

next_pages ◀──▶ Asker ───────────┐                         ┌──▶ Sender ──▶ add_pages, report, release
                                 ▼                         │
                               Runner, with InHand: the life of each page ◀──▶ the caller's visits
                                 ▲                         ▲
extend_lease ◀──▶ LeaseKeeper ───┘                         └─── OwnRequests ◀──▶ robots, set_robots, take_slot
blocked_pages                                                   for robots.txt, extra requests, sitemaps
"""

import asyncio
import contextlib
import logging
import signal
import time
from types import TracebackType
from typing import Self, Unpack

from recrawl.client.asker import Asker
from recrawl.client.clock import Clock
from recrawl.client.database import Database, Error, GaveUp
from recrawl.client.in_hand import InHand
from recrawl.client.lease_keeper import LeaseKeeper
from recrawl.client.missed_slots import MissedSlots
from recrawl.client.options import Options, complete
from recrawl.client.own_requests import OwnRequests
from recrawl.client.page import Page
from recrawl.client.preparation import Preparation
from recrawl.client.robots_cache import RobotsCache
from recrawl.client.runner import Runner, VisitFunction
from recrawl.client.sender import Sender

log = logging.getLogger("recrawl.client")

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Client:
    """Yields pages to visit, each when it may be requested. `Options` lists the arguments."""

    def __init__(self, dsn: str, **options: Unpack[Options]) -> None:
        self._options = given = complete(options)
        self.concurrency, self.user_agent = given["concurrency"], given["user_agent"]
        self._clock = Clock()
        self._database = Database(dsn, self._clock)
        robots_cache = RobotsCache(self._database, self.user_agent, given["robots"])
        preparation = Preparation(given["preparation"], longest=2 * given["ahead"])
        self._in_hand = InHand(self._clock, preparation, self.concurrency, robots_cache.access_to)
        self.counts = self._in_hand.counts  # of outcomes, requests and the like
        self.lag = self._in_hand.lag  # seconds from fetch_at to the start, of the last thousand requests
        self._runner = Runner(self._in_hand, self.user_agent, given["on_outcome"])
        self._missed_slots = MissedSlots(self.counts, preparation, self.concurrency)
        self._sender = Sender(self._database, self._runner)
        self._asker = Asker(self._database, self._runner, self._sender, robots_cache, given)
        self._lease_keeper = LeaseKeeper(self._database, self._runner, self._missed_slots, given["lease"])
        self._own_requests = OwnRequests(self._database, robots_cache, self._sender, self._runner, given["sitemaps"])
        self._signals = 0

    async def __aenter__(self) -> Self:
        self._runner.open()
        try:
            await self._database.open()
            if self._options["stop_on_signals"]:
                for number in SIGNALS:
                    asyncio.get_running_loop().add_signal_handler(number, self.interrupt)
        except BaseException:
            await self._close()
            raise
        # 2 × max_error is the time that the fastest call took: the first answer takes longer over a slow network.
        self._in_hand.answer_time += 2 * self._clock.max_error(time.monotonic())
        self._asker_task = self._runner.background(self._asker.ask_until_closed())
        self._runner.background(self._sender.send_for_ever())
        self._runner.background(self._lease_keeper.give_back_for_ever())
        self._runner.background(self._lease_keeper.extend_leases_for_ever())
        return self

    def stop(self) -> None:
        """Ends the iteration. Visits go on."""
        self._runner.close()

    def interrupt(self) -> None:
        """A signal came: ends the iteration. The second call also ends the visits."""
        self._signals += 1
        if self._signals > 1:
            self._runner.cancel_visits()
        self.stop()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends the visits, and reports or gives back their pages. If the database is away, their leases run out
        instead."""
        self.stop()
        try:
            if kind is not None:
                self._runner.cancel_visits()
            await self._end(self._options["grace"])
        except asyncio.CancelledError:
            await self._end(0)
            raise
        finally:
            if self._options["stop_on_signals"]:
                for number in SIGNALS:
                    asyncio.get_running_loop().remove_signal_handler(number)
            await self._close()
            self._missed_slots.tell()
            if left := self._runner.in_hand.unsent:
                log.warning(
                    "the database did not accept all results: %s pages can be fetched again when their leases end", left
                )
            if urls := len(self._sender.urls):
                log.warning("the database did not accept %s URLs of Client.add: add them again", urls)
        if self._runner.failure and kind is None:
            raise self._runner.failure

    async def _end(self, seconds: float) -> None:
        """Waits `seconds` for visits and own requests, then cancels those that still run. Then sends what is left. The
        cancelling and the sending together take at most about ten seconds more."""
        give_up = time.monotonic() + seconds
        self._database.set_give_up_at(give_up)

        def left() -> float:
            return max(0.0, give_up - time.monotonic())

        await asyncio.wait([self._asker_task], timeout=max(1.0, left()))  # an answer of next_pages may be on its way
        await self._runner.end_visits(left())
        # A visit may have just reported a sitemap. The task that reads the sitemap then needs a moment.
        await self._runner.end_tasks("own request", max(0.1, left()))
        with contextlib.suppress(GaveUp, TimeoutError):
            await asyncio.wait_for(self._sender.send(), max(1.0, left()))

    async def _close(self) -> None:
        await self._runner.end_tasks("loop", 0)
        await self._database.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        while True:
            self._asker.is_wanted = True
            if self._runner.failure:
                raise self._runner.failure
            if self._in_hand.is_closed:
                raise StopAsyncIteration
            if page := self._runner.next():
                self._own_requests.expect_answer_of(page)
                return page
            await self._runner.wait_for_page()

    def spawn(self, visit: VisitFunction, page: Page) -> asyncio.Task[None]:
        """Visits a page in the background. A page that the visit does not report is given back. If the visit raises an
        exception, the page is reported with status 0."""
        return self._runner.spawn(visit, page)

    def _lose(self, page: Page) -> None:
        """Ends a page whose visit still runs and cannot be stopped. The page stays leased until its lease ends, so that
        no other crawler requests it at the same time."""
        self._in_hand.lose(page)

    async def begins(self, page: Page) -> bool:
        """Waits for the slot of a page. Returns False if the page must not be requested any more, for example because
        the slot has passed.

        A visit that needs time before its request, for example to open a browser tab, calls this right before the
        request, for every page. The client then yields the next pages earlier, by the time that visits need.
        """
        return await self._runner.begins(page)

    async def claim(self, name: str) -> None:
        """Gives the crawl the name `name`. Raises an Error if it has another name."""
        if (owner := await self._database.claim(name)) != name:
            raise Error(f"this database holds the crawl {owner}. Use another database for the crawl {name}")

    def add(self, url: str, meta: object = None) -> None:
        """Adds a URL to the crawl, with the meta of its page. It is sent before the reports that are made after this
        call."""
        self._sender.add(url, meta)

    def extra_request(self, url: str, meta: object = None) -> "asyncio.Future[None]":
        """Asks for a slot for a request that is no page. The request is yielded like a page. It is dropped if
        robots.txt forbids it or cannot be fetched, if its host cannot exist or gives no slot, or after stop(). It is
        kept only in memory. The future is done when the request was reported or dropped. Do not wait for it in the
        visit of another extra request: the other request may have to be reported first."""
        return self._own_requests.extra_request(url, meta)

    @property
    def is_idle(self) -> bool:
        """No page is in hand, and there is nothing to send."""
        return not (self._in_hand.has_leases or self._own_requests.extras or len(self._sender))
