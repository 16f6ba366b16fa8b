"""Pages that were handed out and have not begun: each waits for its slot, then for a visit that is free."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from recrawl.client.clock import Clock
from recrawl.client.outbox import Outbox
from recrawl.client.page import Page
from recrawl.client.preparation import Preparation


class Waiting:
    def __init__(
        self, clock: Clock, outbox: Outbox, preparation: Preparation, one_is_ready: Callable[[], None]
    ) -> None:
        self.answer_time = 0.3  # seconds from calling next_pages to having its pages; the first call takes longer
        self.preparation = preparation
        self.is_closed = False  # whoever comes now is given back
        self._clock = clock
        self._outbox = outbox
        self._one_is_ready = one_is_ready
        self._timers: dict[Page, asyncio.TimerHandle | None] = {}  # without one: ready, or for robots.txt
        self._ready: deque[Page] = deque()

    def __len__(self) -> int:
        return len(self._timers)

    def __iter__(self) -> Iterator[Page]:
        return iter(list(self._timers))

    def __contains__(self, page: Page) -> bool:
        return page in self._timers

    @property
    def notice(self) -> float:
        """How many seconds from now a slot must begin, so that a visit can be ready for it."""
        return self.answer_time + self.preparation.lead

    def add(self, page: Page) -> None:
        """The page is ready when its slot begins, less the time that its visit needs before the request."""
        if self.is_closed:
            self.drop([page], "released")
        else:
            first, _ = self._clock.window(page.fetch_at, page.start_by, time.monotonic())
            self._timers[page] = asyncio.get_running_loop().call_at(first - self.preparation.lead, self.is_ready, page)

    def visit_was_ready_after(self, seconds: float) -> None:
        before = self.preparation.lead
        self.preparation.took(seconds)
        if self.preparation.lead > before:
            for page, timer in list(self._timers.items()):
                if timer:
                    timer.cancel()
                    self.add(page)

    def is_ready(self, page: Page) -> None:
        """Now, if it was not dropped."""
        if page in self._timers:
            self._timers[page] = None
            self._ready.append(page)
            self._one_is_ready()

    def first(self) -> Page | None:
        """The page that has been ready for longest. It is returned once, and counts as waiting until it leaves."""
        while self._ready:
            page = self._ready.popleft()
            if page in self._timers:
                return page
        return None

    def leave(self, page: Page) -> None:
        if timer := self._timers.pop(page, None):
            timer.cancel()

    def drop(self, pages: Iterable[Page], outcome: str) -> None:
        """Gives pages back unfetched."""
        for page in list(pages):
            self.leave(page)
            if page.kind in ("robots", "aside"):
                page.release()  # its errand knows what then
            else:
                page.is_settled = True
                self._outbox.give_back(page, outcome)

    def drop_late(self) -> None:
        """Those for which no visit was free, or no robots.txt came."""
        now = time.monotonic()
        late = [
            page
            for page, timer in self._timers.items()
            if timer is None and now > self._clock.window(page.fetch_at, page.start_by, now)[1]
        ]
        self.drop(late, "missed")
