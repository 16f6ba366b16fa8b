"""Pages that were handed out and have not begun: each waits for its slot, then for a visit that is free."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from recrawl.client.clock import Clock
from recrawl.client.outbox import Outbox
from recrawl.client.page import Page

MOST_EARLY = 0.15  # seconds


class Waiting:
    def __init__(self, clock: Clock, outbox: Outbox, one_is_ready: Callable[[], None]) -> None:
        self.notice = 0.3  # seconds from asking for pages to their standing here, as of late; a first call takes longer
        self.early = 0.0  # seconds before its slot at which a page is ready: what its visit needs until the request
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

    def add(self, page: Page) -> None:
        """It is ready when its slot comes."""
        if self.is_closed:
            self.drop([page], "released")
        else:
            first, _ = self._clock.window(page.fetch_at, page.start_by, time.monotonic())
            self._timers[page] = asyncio.get_running_loop().call_at(first - self.early, self.is_ready, page)

    def takes(self, seconds: float) -> None:
        """How long one was on its way to its request: up at once, down slowly."""
        self.early = min(MOST_EARLY, max(1.5 * seconds, 0.99 * self.early))

    def is_ready(self, page: Page) -> None:
        """Now, if it was not dropped."""
        if page in self._timers:
            self._timers[page] = None
            self._ready.append(page)
            self._one_is_ready()

    def first(self) -> Page | None:
        """The one that has been ready for longest. It stays in line; who calls again gets the next."""
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
        self.drop(late, "late")
