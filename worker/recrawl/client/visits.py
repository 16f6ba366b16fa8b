"""Pages that were yielded, until their visits end: each is requested in its slot, or given back."""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable

from recrawl.client.clock import Clock
from recrawl.client.page import Page
from recrawl.client.waiting import Waiting

log = logging.getLogger("recrawl.client")

Visit = Callable[[Page], Awaitable[object]]


class Visits:
    def __init__(self, clock: Clock, waiting: Waiting, counts: Counter[str], one_has_ended: Callable[[], None]) -> None:
        self.lag: deque[float] = deque(maxlen=1000)  # seconds from fetch_at to the start, of the last requests
        self._clock = clock
        self._waiting = waiting
        self._counts = counts
        self._one_has_ended = one_has_ended
        self._running: set[Page] = set()
        self._tasks: dict[Page, asyncio.Task[None]] = {}  # of those that were spawned

    def __len__(self) -> int:
        return len(self._running)

    def begin(self, page: Page, now: float) -> Page:
        self._waiting.leave(page)
        self._running.add(page)
        page.began = now
        if not self._waiting.preparation.lead:
            self.lag.append(now - self._clock.moment(page.fetch_at))
        self._counts["requests"] += 1
        return page

    def spawn(self, visit: Visit, page: Page) -> asyncio.Task[None]:
        task = asyncio.create_task(self._visit(visit, page))
        self._tasks[page] = task
        task.add_done_callback(lambda _: self._task_ended(page))  # also of one that was cancelled before it began
        return task

    async def _visit(self, visit: Visit, page: Page) -> None:
        if self._is_given_back(page, time.monotonic(), "missed"):  # a busy loop begins tasks when it gets to them
            return
        try:
            await visit(page)
        except Exception as error:
            self._counts["raised"] += 1
            log.info("the visit of %s raised %s: %s", page.url, type(error).__name__, error)
            if not page.is_settled:
                page.report(0)

    async def begins(self, page: Page) -> bool:
        self._waiting.visit_was_ready_after(time.monotonic() - page.began)
        while not page.is_settled:
            now = time.monotonic()
            first, _ = self._clock.window(page.fetch_at, page.start_by, now)
            if now < first:
                await asyncio.sleep(first - now)
            elif not self._is_given_back(page, now, "unready"):
                page.began = now
                self.lag.append(now - self._clock.moment(page.fetch_at))
                return True
        return False

    def _is_given_back(self, page: Page, now: float, outcome: str) -> bool:
        """A page that was yielded in its slot, if that has passed until its request would begin."""
        _, last = self._clock.window(page.fetch_at, page.start_by, now)
        if now > last:
            self._counts["requests"] -= 1
            self._has_ended(page)
            self._waiting.drop([page], outcome)
        return now > last

    # --------------------------------------------------------------------------------------------------- their end

    def settled(self, page: Page) -> None:
        """It was reported or released. A visit that was spawned may still be at it."""
        if page not in self._tasks:
            self._has_ended(page)

    def _task_ended(self, page: Page) -> None:
        page.release(spent=True)  # nobody knows what it did
        del self._tasks[page]
        self._has_ended(page)

    def _has_ended(self, page: Page) -> None:
        if page in self._running:
            self._running.discard(page)
            self._one_has_ended()

    def lose(self, pages: Iterable[Page]) -> None:
        """Somebody else may have them: whatever comes of them counts no more."""
        for page in pages:
            self._cancel(page)
            self._waiting.leave(page)
            page.is_settled = True
            self._has_ended(page)

    def cancel(self) -> None:
        for page in list(self._tasks):
            self._cancel(page)

    def _cancel(self, page: Page) -> None:
        if task := self._tasks.get(page):
            task.cancel()

    async def end(self, seconds: float) -> None:
        """Within about as many seconds; what is at it then is cancelled."""
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=seconds)
        self.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=1)
        for page in list(self._running):
            page.release(spent=True)  # yielded, but neither spawned nor reported
