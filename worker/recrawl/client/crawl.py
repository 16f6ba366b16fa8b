"""A crawler's client for asyncio.

    Asking: next_pages ──▶ Leases: in hand ──▶ Waiting: until fetch_at ──▶ Visits ──▶ Outbox: report, release
                                                 Errands: robots.txt, in a page's slot

Four things go on beside the visits: asking for pages, sending what became of them, watching holds, keeping leases.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self

from recrawl.client.answers import Result
from recrawl.client.asking import Asking
from recrawl.client.clock import Clock
from recrawl.client.database import Away, Database, Error
from recrawl.client.errands import Errands
from recrawl.client.gate import Gate, Passage
from recrawl.client.leases import Hook, Lease, Leases
from recrawl.client.misses import Misses
from recrawl.client.outbox import Outbox
from recrawl.client.page import Kind, Page
from recrawl.client.preparation import Preparation
from recrawl.client.visits import Visit, Visits
from recrawl.client.waiting import Waiting

log = logging.getLogger("recrawl.client")

WATCH_EVERY = 0.25  # seconds; a held host is left alone within twice that


class Client:
    """Pages to visit, each yielded when it may be requested.

    user_agent       how robots.txt and the servers know this crawler
    concurrency      the most visits at the same time
    robots           whether to obey robots.txt
    sitemaps         whether to add the pages of the sitemaps that robots.txt lists
    ahead            how many seconds before its slot a page is leased
    preparation      how many seconds a visit needs before its request. This value is for the first visits; later the
                     client knows it from the calls of begins()
    lease            seconds after which the pages of a crawler that died come back
    per_host         the most pages of a host in one answer of the database
    on_outcome       called once for each leased page, with what became of it
    stop_on_signals  SIGTERM and SIGINT end the iteration, a second signal also ends the visits
    grace            how many seconds visits, and a database that is away, get at the end
    """

    def __init__(
        self,
        dsn: str,
        *,
        user_agent: str,
        concurrency: int = 100,
        robots: bool = True,
        sitemaps: bool = False,
        ahead: float = 2,
        preparation: float = 0,
        lease: float = 600,
        per_host: int | None = None,
        on_outcome: Hook | None = None,
        stop_on_signals: bool = False,
        grace: float = 30,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be positive, got {concurrency}")
        if not 0 <= preparation <= 2 * ahead:
            raise ValueError(f"preparation must lie between 0 and twice ahead ({2 * ahead:g} s), got {preparation}")
        self.concurrency = concurrency
        self.user_agent = user_agent
        self._lease = lease
        self._takes_sitemaps = sitemaps
        self._stops_on_signals = stop_on_signals
        self._grace = grace

        self._clock = Clock()
        self._asking = Database(dsn, self._clock)  # of its own: a long report keeps no page and no slot waiting
        self._database = Database(dsn, self._clock)
        self._leases = Leases(on_outcome)
        self.counts = self._leases.counts  # what became of pages, and what the client did
        readiness = Preparation(preparation, longest=2 * ahead)
        self._misses = Misses(self.counts, readiness, concurrency)
        self._outbox = Outbox(self._database, self._clock, self._leases, self._hosts_are_held)
        self._waiting = Waiting(self._clock, self._outbox, readiness, self._wake)
        self._visits = Visits(self._clock, self._waiting, self.counts, self._one_has_ended)
        self.lag = self._visits.lag  # seconds from fetch_at to the start, of the last thousand requests
        self._gate = Gate(self._asking, user_agent) if robots else None
        self._errands = Errands(
            self._database, self._asking, self._gate, self._waiting, self._outbox, self.counts, self._settle,
            self._begin_errand, user_agent, sitemaps,
        )  # fmt: skip

        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._stopping = False
        self._signals = 0
        self._consumers: set[asyncio.Future[None]] = set()  # that wait for a page
        self._asker = Asking(
            self._asking, self._waiting, self._visits, self._outbox, self._leases, self._consumers, self._take_in,
            concurrency, ahead, lease, per_host,
        )  # fmt: skip

    # ---------------------------------------------------------------------------------------- beginning, end

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        try:
            await self._database.open()
            await self._asking.open()
            await self._asking.ask_the_time()
            if self._stops_on_signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._loop.add_signal_handler(number, self.told_to_stop)
        except BaseException:
            await self._close()
            raise
        self._waiting.answer_time += 2 * self._clock.doubt(time.monotonic())
        self._asks = self._background(self._asker.ask_until_stopped())
        self._background(self._outbox.send_for_ever())
        self._background(self._watch())
        self._background(self._keep_leases())
        return self

    def stop(self) -> None:
        """Ends the iteration; visits go on."""
        self._stopping = self._waiting.is_closed = True
        self._asker.stop()
        self._wake()

    def told_to_stop(self) -> None:
        """By a signal; by a second one visits end, too."""
        self._signals += 1
        if self._signals > 1:
            self._visits.cancel()
        self.stop()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Visits end, what is in hand is reported or given back; nothing stays leased."""
        self.stop()
        try:
            if kind is not None:
                self._visits.cancel()
            await self._end(self._grace)
        except asyncio.CancelledError:
            await self._end(0)
            raise
        finally:
            if self._stops_on_signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._loop.remove_signal_handler(number)
            await self._close()
            self._misses.tell()
            if left := len(self._outbox):
                log.warning("the database did not take all in: %s pages come back when their leases end", left)
        if self._failure and kind is None:
            raise self._failure

    async def _end(self, seconds: float) -> None:
        """Within about as many seconds, and a few more."""
        give_up = self._database.until = self._asking.until = time.monotonic() + seconds

        def left() -> float:
            return max(0.0, give_up - time.monotonic())

        await asyncio.wait([self._asks], timeout=max(1.0, left()))  # pages may be on their way
        self._waiting.drop(self._waiting, "released")
        await self._visits.end(left())
        if errands := [task for task in self._tasks if task.get_name() == "errand"]:
            _, unfinished = await asyncio.wait(errands, timeout=left())
            for task in unfinished:
                task.cancel()
            if unfinished:
                await asyncio.wait(unfinished, timeout=1)
        with contextlib.suppress(Away, TimeoutError):
            await asyncio.wait_for(self._outbox.send(), max(1.0, left()))

    async def _close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=5)
        await self._asking.close()
        await self._database.close()

    def _background(self, work: Coroutine[Any, Any, None], name: str = "loop") -> asyncio.Task[None]:
        async def guarded() -> None:
            try:
                await work
            except Away:
                pass  # the end says so
            except Exception as error:
                self._failure = self._failure or error
                self.stop()

        task = asyncio.create_task(guarded(), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _begin_errand(self, work: Coroutine[Any, Any, None]) -> None:
        self._background(work, "errand")

    # --------------------------------------------------------------------------------------- pages, one by one

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        while True:
            self._asker.is_wanted = True
            if self._failure:
                raise self._failure
            if self._stopping:
                raise StopAsyncIteration
            if page := self._next():
                return page
            consumer = self._loop.create_future()
            self._consumers.add(consumer)
            try:
                await consumer
            finally:
                self._consumers.discard(consumer)

    def _wake(self) -> None:
        for consumer in self._consumers:
            if not consumer.done():
                consumer.set_result(None)

    def _next(self) -> Page | None:
        """What may be requested now, as far as visits have room."""
        while len(self._visits) < self.concurrency and (page := self._waiting.first()):
            now = time.monotonic()
            first, last = self._clock.window(page.fetch_at, page.start_by, now)
            if now < first - self._waiting.preparation.lead:  # the clock knows better by now
                self._waiting.add(page)
            elif now > last:
                self._waiting.drop([page], "missed")
            elif now > last - self._waiting.preparation.least:
                self._waiting.drop([page], "unready")
            elif passed := self._errands.passes(page):
                return self._visits.begin(passed, now)
        return None

    def _one_has_ended(self) -> None:
        self._asker.one_has_ended()
        self._wake()

    def spawn(self, visit: Visit, page: Page) -> asyncio.Task[None]:
        """Visits a page beside others. What it does not report is given back; where it raises, there was no answer."""
        return self._visits.spawn(visit, page)

    async def begins(self, page: Page) -> bool:
        """Waits for the slot of a page. False: the slot has passed, the page was given back, and must not be requested.

        A visit that needs time before its request, such as one that opens a browser tab, calls this right before the
        request, and does so for every page. The client yields later pages earlier, by the time that visits need.
        """
        return await self._visits.begins(page)

    async def claim(self, who: str) -> None:
        """An Error where the crawl is somebody else's."""
        if (owner := await self._database.claim(who)) != who:
            raise Error(f"this database is the crawl of {owner}, and not of {who}: give that one a database of its own")

    def add(self, url: str, meta: object = None) -> None:
        """Takes a URL in, to be handed out with that meta: soon, and before any report made from now on."""
        self._outbox.add(url, meta)

    def aside(self, url: str, meta: object = None) -> "asyncio.Future[None]":
        """Asks for a slot of its own for a request that is no page: it is yielded like one, unless robots.txt denies it
        or its host gives no slot. Such requests wait in memory. Done when it was made, or will not be.
        """
        return self._errands.aside(url, meta)

    @property
    def is_idle(self) -> bool:
        """Nothing is in hand, and nothing on its way to the database."""
        return not (self._leases or self._errands.asides or len(self._outbox))

    def _settle(self, page: Page, result: Result | None, body: bytes | str | None, again: bool) -> None:
        """A page was reported or released, in whatever thread."""
        if again:
            self.counts["reported again"] += result is not None
        elif threading.get_ident() == self._thread:
            self._settled(page, result, body)
        else:
            self._loop.call_soon_threadsafe(self._settled, page, result, body)

    def _settled(self, page: Page, result: Result | None, body: bytes | str | None) -> None:
        self._visits.settled(page)
        if page.kind in ("robots", "aside"):
            self._errands.answered(page, result, body)
        elif result is None:
            self._outbox.give_back(page, "released", page.spent)
        else:
            self.counts["declined"] += "declined" in result
            if page.kind == "sitemap" and body and 200 <= result["status"] < 300:
                self._errands.take_sitemap(page, body)
            self._outbox.report(page, result)

    # ------------------------------------------------------------------------------------------------- taking in

    async def _take_in(self, rows: list[Any]) -> None:
        if not rows:
            return
        self.counts["handed out"] += len(rows)
        pages = [Page(row, self.user_agent, self._kind_of(row.meta), self._settle) for row in rows]
        until = self._clock.moment(rows[0].lease_until)
        self._leases.add(Lease(rows[0].lease_id, until, {page.page_id: page for page in pages}))
        if rows[0].start_by <= rows[0].fetch_at:
            self._waiting.drop(pages, "released")
            raise Error("the setting start_within is 0, and no request begins in no time: set it to 0.01 or more")
        if self._gate:
            await self._gate.look_up([page.url for page in pages])
        for page in pages:
            if self._gate and not self._stopping and self._gate.verdict(page.url) is Passage.DENIED:
                self._errands.deny(page)
            else:
                self._waiting.add(page)

    def _kind_of(self, meta: Any) -> Kind:
        return "sitemap" if self._takes_sitemaps and isinstance(meta, dict) and "sitemap" in meta else "page"

    # ---------------------------------------------------------------------------------------------- watching

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY)
            self._waiting.drop_late()
            self._misses.tell_sometimes()
            if waiting := {page.lease_id for page in self._waiting}:
                held = await self._asking.held_pages(list(waiting))
                self._waiting.drop([page for page in self._waiting if (page.lease_id, page.page_id) in held], "held")

    def _hosts_are_held(self, hosts: set[str]) -> None:
        self._waiting.drop([page for page in self._waiting if page.host in hosts], "held")

    async def _keep_leases(self) -> None:
        """Apart from watching: a report on a lease keeps whoever extends it waiting."""
        while True:
            await asyncio.sleep(WATCH_EVERY)
            for lease in self._leases.ending_by(time.monotonic() + self._lease / 2):
                await self._extend(lease)

    async def _extend(self, lease: Lease) -> None:
        until = await self._database.extend_lease(lease.lease_id, self._lease)
        if until is not None:
            lease.until = self._clock.moment(until)
            return
        # It has ended, and its pages may be with somebody else. What is reported already is told so.
        reported = self._outbox.reported()
        lost = [page for page in lease.pages.values() if page not in reported]
        self._visits.lose(lost)
        for page in lost:
            self._leases.is_over(page, "lost")
