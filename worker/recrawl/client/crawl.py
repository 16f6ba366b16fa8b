"""A crawler's client for asyncio.

    next_pages ──▶ waiting, until fetch_at ──▶ ready ──▶ running: visits ──▶ results ──▶ report
                     late, held: release                  robots.txt: errands

Four things go on beside the visits: asking for pages, sending what became of them, watching leases and holds, and the
client's own errands, robots.txt and sitemaps.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from recrawl.client import robots
from recrawl.client.answers import Result, request_headers
from recrawl.client.clock import Clock
from recrawl.client.database import Away, Database, Error
from recrawl.client.gate import Gate, Verdict
from recrawl.client.listed import add_sitemaps, take_sitemap
from recrawl.client.page import Kind, Page

log = logging.getLogger("recrawl.client")

Visit = Callable[[Page], Awaitable[object]]
Hook = Callable[[Page, str, str | None], object]

ASK_EVERY = 0.1  # seconds, while there is room for more
LONGEST_NOTICE = 10.0  # seconds
LONGEST_SLEEP = 1.0  # somebody may add pages meanwhile
MOST_AT_ONCE = 1000  # pages of a call
REPORT_EVERY = 0.2  # seconds, or
REPORT_AT = 100  # results, whatever comes first
WATCH_EVERY = 0.25  # seconds; a held host is left alone within twice that


@dataclass
class Lease:
    until: float  # by the monotonic clock
    pages: dict[int, Page] = field(default_factory=dict)  # in hand


class Client:
    """Pages to visit, each yielded when it may be requested.

    concurrency: visits at once · user_agent: how robots.txt and the servers know this crawler · robots: whether to obey
    robots.txt · sitemaps: whether to take in those that robots.txt lists · ahead: how many seconds before its time a
    page is asked for · lease: seconds after which pages of a crawler that died come back · on_outcome: called once for
    each page that was in hand, with what became of it · stop_on_signals: SIGTERM and SIGINT end the iteration, a second
    one also the visits · grace: seconds that visits, and a database that is away, get at the end.
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
        lease: float = 600,
        per_host: int | None = None,
        on_outcome: Hook | None = None,
        stop_on_signals: bool = False,
        grace: float = 30,
    ) -> None:
        if concurrency < 1:
            raise ValueError(f"concurrency must be positive, got {concurrency}")
        self.concurrency = concurrency
        self.user_agent = user_agent
        self.counts: Counter[str] = Counter()  # what became of pages, and what the client did
        self.lag: deque[float] = deque(maxlen=1000)  # seconds from fetch_at to the start, of the last requests
        self._clock = Clock()
        self._asking = Database(dsn, self._clock)  # of its own: a long report keeps no page waiting
        self._database = Database(dsn, self._clock)
        self._gate = Gate(self._asking, user_agent) if robots else None
        self._takes_sitemaps = sitemaps
        self._ahead, self._lease, self._per_host = ahead, lease, per_host
        self._on_outcome = on_outcome
        self._stops_on_signals = stop_on_signals
        self._grace = grace

        self._leases: dict[int, Lease] = {}
        self._waiting: dict[Page, asyncio.TimerHandle | None] = {}  # not begun; without a timer: ready, or for robots
        self._ready: deque[Page] = deque()
        self._for_robots: defaultdict[str, list[Page]] = defaultdict(list)  # pages that wait for their site's
        self._running: set[Page] = set()
        self._visits: dict[Page, asyncio.Task[None]] = {}
        self._fetched: dict[Page, asyncio.Future[tuple[Result | None, bytes | str | None]]] = {}  # errands under way
        self._results: deque[tuple[Page, Result]] = deque()
        self._released: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)  # by lease, and whether spent

        self._tasks: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._stopping = False
        self._wanted = True  # somebody asked for a page since next_pages was called last
        self._ended = 0  # visits since then
        self._rate = 0.0  # visits that end per second
        self._notice = 0.3  # seconds from asking to having the pages, as of late; a first call takes long
        self._consumer: asyncio.Future[None] | None = None

    # ---------------------------------------------------------------------------------------- beginning, end

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._has_room, self._has_results, self._stop_asking = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._sending = asyncio.Lock()
        try:
            await self._database.open()
            await self._asking.open()
        except BaseException:
            await self._close()
            raise
        if self._stops_on_signals:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._loop.add_signal_handler(number, self._told_to_stop)
        self._asker = self._background(self._ask())
        self._background(self._send())
        self._background(self._watch())
        return self

    def stop(self) -> None:
        """Ends the iteration; visits go on."""
        self._stopping = True
        self._stop_asking.set()
        self._has_room.set()
        self._wake()

    def _told_to_stop(self) -> None:
        if self._stopping:
            self._cancel_visits(self._visits)
        self.stop()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Visits end, what is in hand is reported or given back; nothing stays leased."""
        self.stop()
        give_up = time.monotonic() + self._grace
        self._database.until = self._asking.until = give_up
        if kind is not None:
            self._cancel_visits(self._visits)
        try:
            await asyncio.wait([self._asker], timeout=self._grace)
            self._drop(list(self._waiting), "released")
            while self._visits and time.monotonic() < give_up:
                await asyncio.wait(self._visits.values(), timeout=give_up - time.monotonic())
            self._cancel_visits(self._visits)
            if self._visits:
                await asyncio.wait(self._visits.values(), timeout=1)
            for page in list(self._running):
                page.release()  # yielded, but neither spawned nor reported
            for task in list(self._tasks):
                if task.get_name() == "errand":
                    await asyncio.wait([task], timeout=max(0.0, give_up - time.monotonic()))
            with contextlib.suppress(Away):
                await self._flush()
        finally:
            if self._stops_on_signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._loop.remove_signal_handler(number)
            await self._close()
        if left := len(self._results) + sum(map(len, self._released.values())):
            log.warning("the database is away: %s pages come back when their leases end", left)
        if self._failure and kind is None:
            raise self._failure

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

    # --------------------------------------------------------------------------------------- pages, one by one

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Page:
        while True:
            self._wanted = True
            if self._failure:
                raise self._failure
            if self._stopping:
                raise StopAsyncIteration
            if page := self._next():
                return page
            self._consumer = self._loop.create_future()
            await self._consumer

    def _wake(self) -> None:
        if self._consumer and not self._consumer.done():
            self._consumer.set_result(None)

    def _next(self) -> Page | None:
        """The first that may begin now, as far as visits have room."""
        while self._ready and len(self._running) < self.concurrency:
            page = self._ready.popleft()
            if page not in self._waiting:
                continue
            now = time.monotonic()
            first, last = self._clock.window(page.fetch_at, page.start_by, now)
            if now < first:  # the clock knows better by now
                self._place(page)
            elif now > last:
                self._drop([page], "late")
            elif page.kind == "robots" or self._passes(page):
                return self._begin(page, now)
            elif robots_page := self._errand_in(page):
                return self._begin(robots_page, now)
        return None

    def _passes(self, page: Page) -> bool:
        """Whether robots.txt lets it through; if not, the page is denied, or waits for it."""
        verdict = self._gate.verdict(page.url) if self._gate else Verdict.ALLOWED
        if verdict is Verdict.DENIED:
            self._deny(page)
        elif verdict is Verdict.ASKED:
            self._for_robots[robots.site_of(page.url)].append(page)
        return verdict is Verdict.ALLOWED

    def _begin(self, page: Page, now: float) -> Page:
        self._waiting.pop(page, None)
        self._running.add(page)
        page.began = now
        self.lag.append(now - self._clock.moment(page.fetch_at))
        self.counts["requests"] += 1
        return page

    def spawn(self, visit: Visit, page: Page) -> asyncio.Task[None]:
        """Visits a page beside others. What it does not report is given back; where it raises, there was no answer."""
        task = self._loop.create_task(self._visit(visit, page))
        self._visits[page] = task
        return task

    async def _visit(self, visit: Visit, page: Page) -> None:
        try:
            await visit(page)
        except Exception as error:
            self.counts["raised"] += 1
            log.info("the visit of %s raised %s: %s", page.url, type(error).__name__, error)
            if not page.is_settled:
                page.report(0)
        finally:
            page.release()
            del self._visits[page]
            self._has_ended(page)

    def _has_ended(self, page: Page) -> None:
        if page in self._running:
            self._running.discard(page)
            self._ended += 1
            if self._room() * 4 >= self.concurrency:
                self._has_room.set()
            self._wake()

    def _settle(self, page: Page, result: Result | None, body: bytes | str | None, again: bool) -> None:
        """A page was reported or released, in whatever thread."""
        if again:
            self.counts["reported again"] += result is not None
        elif threading.get_ident() == self._thread:
            self._settled(page, result, body)
        else:
            self._loop.call_soon_threadsafe(self._settled, page, result, body)

    def _settled(self, page: Page, result: Result | None, body: bytes | str | None) -> None:
        if page not in self._visits:
            self._has_ended(page)
        if future := self._fetched.pop(page, None):
            if not future.done():
                future.set_result((result, body))
        elif result is None:
            self._give_back(page, "released")
        else:
            if page.kind == "sitemap" and body and 200 <= result["status"] < 300:
                self._background(self._take_sitemap(page, body), "errand")
            self._results.append((page, result))
            if len(self._results) >= REPORT_AT:
                self._has_results.set()

    def _deny(self, page: Page) -> None:
        self._waiting.pop(page, None)
        page.is_settled = True
        self.counts["denied"] += 1
        self._results.append((page, {"robots_denied": True}))

    def _drop(self, pages: Iterable[Page], outcome: str) -> None:
        """Gives pages back that have not begun."""
        for page in pages:
            if timer := self._waiting.pop(page, None):
                timer.cancel()
            page.is_settled = True
            if future := self._fetched.pop(page, None):
                future.set_result((None, None))
            else:
                self._give_back(page, outcome)

    def _give_back(self, page: Page, outcome: str, spent: bool = False) -> None:
        self._released[page.lease_id, spent].append(page.page_id)
        self._is_over(page, outcome)

    def _is_over(self, page: Page, outcome: str, detail: str | None = None) -> None:
        lease = self._leases.get(page.lease_id)
        if not lease or not lease.pages.pop(page.page_id, None):
            return  # lost before
        if not lease.pages:
            del self._leases[page.lease_id]
        self.counts[outcome] += 1
        if self._on_outcome:
            try:
                self._on_outcome(page, outcome, detail)
            except Exception:
                self.counts["hook raised"] += 1
                log.exception("on_outcome raised")

    # ------------------------------------------------------------------------------------------------ asking

    def _room(self) -> int:
        """How many more pages will find a visit free in time: those that are now, and those that end until then."""
        expected = self.concurrency - len(self._running) + self._rate * self._ahead
        return min(int(expected) - len(self._waiting), MOST_AT_ONCE)

    async def _ask(self) -> None:
        since = time.monotonic()
        while not self._stopping:
            if not self._wanted or (room := self._room()) <= 0:
                await self._sleep(ASK_EVERY, self._has_room)
            else:
                self._wanted = self._consumer is not None and not self._consumer.done()
                sent = time.monotonic()
                rows = await self._asking.next_pages(
                    room, self._ahead, self._lease, self._per_host, min(self._notice, LONGEST_NOTICE)
                )
                await self._take_in(rows)
                taken = 1.2 * (time.monotonic() - sent) + 0.002
                self._notice = max(taken, 0.9 * self._notice)
                if len(rows) >= room:
                    await self._sleep(ASK_EVERY, self._has_room)
                elif rows or self._leases:
                    await self._sleep(ASK_EVERY, self._stop_asking)
                else:
                    await self._sleep(max(0.02, await self._asking.ready_in(LONGEST_SLEEP)), self._stop_asking)
            now = time.monotonic()
            if now > since + ASK_EVERY:
                weight = min(1.0, (now - since) / 2)
                self._rate += weight * (self._ended / (now - since) - self._rate)
                self._ended, since = 0, now

    async def _sleep(self, seconds: float, unless: asyncio.Event) -> None:
        if not self._stopping:
            unless.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(unless.wait(), seconds)

    async def _take_in(self, rows: list[Any]) -> None:
        if not rows:
            return
        if rows[0].start_by <= rows[0].fetch_at:
            raise Error("the setting start_within is 0, and no request begins in no time: set it to 0.01 or more")
        self.counts["handed out"] += len(rows)
        until = self._clock.moment(rows[0].lease_until)
        lease = self._leases[rows[0].lease_id] = Lease(until)
        pages = [Page(row, self.user_agent, self._kind_of(row.meta), self._settle) for row in rows]
        lease.pages.update((page.page_id, page) for page in pages)
        if self._gate:
            await self._gate.look_up([page.url for page in pages])
        for page in pages:
            self._waiting[page] = None
            if self._stopping:
                self._drop([page], "released")
            elif self._gate and self._gate.verdict(page.url) is Verdict.DENIED:
                self._deny(page)
            else:
                self._place(page)

    def _kind_of(self, meta: Any) -> Kind:
        return "sitemap" if self._takes_sitemaps and isinstance(meta, dict) and "sitemap" in meta else "page"

    def _place(self, page: Page) -> None:
        first, _ = self._clock.window(page.fetch_at, page.start_by, time.monotonic())
        self._waiting[page] = self._loop.call_at(first, self._is_due, page)

    def _is_due(self, page: Page) -> None:
        if page in self._waiting:
            self._waiting[page] = None
            self._ready.append(page)
            self._wake()

    # ----------------------------------------------------------------------------------------------- sending

    async def _send(self) -> None:
        while True:
            self._has_results.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_results.wait(), REPORT_EVERY)
            await self._flush()

    async def _flush(self) -> None:
        """Says what became of pages. What was not taken in yet stays, also if this is cancelled."""
        async with self._sending:
            while self._results:
                batch = [self._results[i] for i in range(min(len(self._results), 5 * REPORT_AT))]
                answers = await self._database.report([self._element(page, result) for page, result in batch])
                for (page, _), answer in zip(batch, answers, strict=True):
                    self._results.popleft()
                    self._is_over(page, answer.code, answer.detail)
                if held := {page.host for (page, _), answer in zip(batch, answers, strict=True) if answer.is_held}:
                    self._drop([page for page in self._waiting if page.host in held], "held")
            while self._released:
                (lease_id, spent), page_ids = next(iter(self._released.items()))
                sent = list(page_ids)  # more may come meanwhile
                await self._database.release(lease_id, sent, spent)
                del page_ids[: len(sent)]
                if not page_ids:
                    del self._released[lease_id, spent]

    def _element(self, page: Page, result: Result) -> Result:
        said: Result = {"page_id": page.page_id, "lease_id": page.lease_id}
        if page.began:
            said |= {"fetched_at": self._clock.said(page.began).isoformat()}
        return said | result

    # ---------------------------------------------------------------------------------------------- watching

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(WATCH_EVERY)
            now = time.monotonic()
            # Those for which no visit was free, or no robots.txt came.
            self._drop([page for page, timer in self._waiting.items() if timer is None and self._is_late(page, now)],
                       "late")  # fmt: skip
            if waiting := {page.lease_id for page in self._waiting}:
                held = await self._database.held_pages(list(waiting))
                self._drop([page for page in self._waiting if (page.lease_id, page.page_id) in held], "held")
            for lease_id, lease in list(self._leases.items()):
                if lease.until - time.monotonic() < self._lease / 2:
                    await self._extend(lease_id, lease)

    def _is_late(self, page: Page, now: float) -> bool:
        return now > self._clock.window(page.fetch_at, page.start_by, now)[1]

    async def _extend(self, lease_id: int, lease: Lease) -> None:
        until = await self._database.extend_lease(lease_id, self._lease)
        if until is not None:
            lease.until = self._clock.moment(until)
            return
        # It has ended, and its pages may be with somebody else. What is reported already is told so.
        reported = {page for page, _ in self._results}
        lost = [page for page in lease.pages.values() if page not in reported]
        self._cancel_visits(lost)
        for page in lost:
            if timer := self._waiting.pop(page, None):
                timer.cancel()
            page.is_settled = True
            self._has_ended(page)
            self._is_over(page, "lost")

    def _cancel_visits(self, pages: Iterable[Page]) -> None:
        for page in list(pages):
            if task := self._visits.get(page):
                task.cancel()

    # ----------------------------------------------------------------------------------------------- errands

    def _errand_in(self, page: Page) -> Page | None:
        """The robots.txt that a page has to wait for, to be fetched in its slot."""
        if page not in self._waiting or not self._gate or self._gate.verdict(page.url) is not Verdict.UNKNOWN:
            return None
        del self._waiting[page]
        self._gate.asked.add(robots.site_of(page.url))
        robots_page = self._robots_page(page, robots.address(page.url))
        self._background(self._learn_robots(self._gate, page, robots_page), "errand")
        return robots_page

    def _robots_page(self, page: Page, url: str) -> Page:
        errand = Page(page, self.user_agent, "robots", self._settle)
        errand.url = url
        errand.request_headers = request_headers(self.user_agent, None, None)
        self._fetched[errand] = self._loop.create_future()
        self.counts["robots"] += 1
        return errand

    async def _learn_robots(self, gate: Gate, page: Page, robots_page: Page) -> None:
        """From one robots.txt, which may lie elsewhere, to what all processes know of a site."""
        site = robots.site_of(page.url)
        try:
            fetched = await self._fetch_robots(robots_page)
            if fetched is None:
                self._give_back(page, "released", spent=True)
                return
            answer, result = fetched
            # Their slots are as far apart as was asked for until now.
            others = [other for other in self._waiting if other.host == page.host and other.kind != "robots"]
            self._drop(others, "released")
            await self._flush()
            rules = await gate.rules_of(answer.text)
            delay = rules.crawl_delay
            if await self._database.set_robots(page.url, answer.status, answer.text, delay):
                self._give_back(page, "released", spent=True)
                for row in await self._database.robots([page.url]):
                    rules = await gate.know(page.url, row.rules, row.good_for)
                if self._takes_sitemaps and rules.sitemaps:
                    await add_sitemaps(self._database, page.host, rules.sitemaps)
            else:
                # As long as nobody can read its rules nothing of the site can be fetched: the page has failed.
                page.began = robots_page.began
                kept = {"retry_after": result["retry_after"]} if "retry_after" in result else {}
                self._results.append((page, {"status": answer.status} | kept))
        finally:
            gate.asked.discard(site)
            for other in self._for_robots.pop(site, []):
                self._is_due(other)

    async def _fetch_robots(self, robots_page: Page) -> tuple[robots.Answer, Result] | None:
        """The answer in the end; None where nothing was requested, or no slot was free."""
        redirects = 0
        while True:
            result, body = await self._fetched[robots_page]
            if result is None:
                return None
            answer = robots.answer_of(result, body, redirects)
            if not answer.redirect_to:
                return answer, result
            host = urlsplit(answer.redirect_to).hostname or ""
            slot = await self._database.take_slot(host, self._notice)
            if slot is None or self._stopping:
                return None
            redirects += 1
            robots_page = self._robots_page(robots_page, answer.redirect_to)
            robots_page.fetch_at, robots_page.start_by = slot
            self._place(robots_page)

    async def _take_sitemap(self, page: Page, body: bytes | str) -> None:
        self.counts["from sitemaps"] += await take_sitemap(self._database, page.meta, body)
