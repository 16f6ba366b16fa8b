"""Asks for pages: for as many as will find a visit free in time, and again when that is worth while."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Sized
from typing import Any

import psycopg

from recrawl.client.database import Database
from recrawl.client.outbox import Outbox
from recrawl.client.waiting import Waiting

ASK_EVERY = 0.1  # seconds, while there is room for more
LONGEST_NOTICE = 10.0  # seconds
LONGEST_SLEEP = 1.0  # somebody may add pages meanwhile
MOST_AT_ONCE = 1000  # pages of a call
# Hosts that a call finds free have their first slots at the same moment, and the next ones a gap later: a crawl's hosts
# in step would ask for hundreds of requests at once, and for none in between. So calls are small, and the slots of each
# begin at another moment. Scrapy reaches 85 % of what gaps allow so, at 60 hosts and .2 s, and 65 % in step.
FEW = 16  # pages, or a third of those that are visited while it waits
SPREAD = 0.02  # seconds


class Asking:
    def __init__(
        self,
        database: Database,
        waiting: Waiting,
        running: Sized,
        outbox: Outbox,
        leases: Sized,
        consumers: Sized,
        take_in: Callable[[list[Any]], Awaitable[None]],
        concurrency: int,
        ahead: float,
        lease: float,
        per_host: int | None,
    ) -> None:
        self._database = database
        self._waiting = waiting
        self._running = running
        self._outbox = outbox
        self._leases = leases
        self._consumers = consumers  # that wait for a page
        self._take_in = take_in  # called with the rows of next_pages
        self._concurrency = concurrency
        self._ahead, self._lease, self._per_host = ahead, lease, per_host
        self.is_wanted = True  # somebody asked for a page since next_pages was called last
        self._is_over = False
        self._has_room, self._end = asyncio.Event(), asyncio.Event()
        self._longest_notice = LONGEST_NOTICE
        self._since = time.monotonic()  # when the rate of visits was reckoned last
        self._ended = 0  # visits since then
        self._rate = 0.0  # visits that end per second

    def stop(self) -> None:
        self._is_over = True
        self._has_room.set()
        self._end.set()

    def one_has_ended(self) -> None:
        """A visit."""
        self._ended += 1
        if self._room() * 4 >= self._concurrency:
            self._has_room.set()

    def _room(self) -> int:
        """How many more pages will find a visit free in time: those that are now, and those that end until then. None
        while the database takes in less than visits bring.
        """
        if self._outbox.is_behind:
            return 0
        expected = self._concurrency - len(self._running) + self._rate * self._ahead
        return min(int(expected) - len(self._waiting), MOST_AT_ONCE)

    async def ask_until_stopped(self) -> None:
        while not self._is_over:
            self._reckon()
            if not self.is_wanted or (room := self._room()) <= 0:
                await self._sleep(ASK_EVERY, self._has_room)
                continue
            few = min(room, max(FEW, int(self._rate * ASK_EVERY / 3)))
            found = await self._ask(few)
            if found is None or found == few < room:
                continue  # there may be more
            if found >= room:
                await self._sleep(ASK_EVERY, self._has_room)
            elif found or self._leases:
                await self._sleep(ASK_EVERY, self._end)
            else:
                await self._sleep(max(0.02, await self._database.ready_in(LONGEST_SLEEP)), self._end)

    def _reckon(self) -> None:
        """How many visits end per second, as of late."""
        now = time.monotonic()
        if now > self._since + ASK_EVERY:
            weight = min(1.0, (now - self._since) / 2)
            self._rate += weight * (self._ended / (now - self._since) - self._rate)
            self._ended, self._since = 0, now

    async def _ask(self, n: int) -> int | None:
        """How many pages came; None where the database does not let one ask so long ahead."""
        self.is_wanted = bool(self._consumers)
        sent = time.monotonic()
        notice = min(self._waiting.notice + random.uniform(0, SPREAD), self._longest_notice)
        try:
            rows = await self._database.next_pages(n, self._ahead, self._lease, self._per_host, notice)
        except psycopg.errors.InvalidParameterValue:
            if not notice:
                raise
            self._longest_notice = notice / 2 if notice > 0.01 else 0.0  # more than max_ahead leaves of ahead
            return None
        await self._take_in(rows)
        taken = 1.2 * (time.monotonic() - sent) + 0.002
        self._waiting.answer_time = max(taken, 0.9 * self._waiting.answer_time)
        return len(rows)

    async def _sleep(self, seconds: float, unless: asyncio.Event) -> None:
        if not self._is_over:
            unless.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(unless.wait(), seconds)
