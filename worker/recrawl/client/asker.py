"""Calls next_pages so often that the visits never run out of pages: pages for `ahead` seconds are in hand."""

import asyncio
import contextlib
import logging
import math
import random
import time
from typing import Any

import psycopg

from recrawl.client.database import Database, Error, one_line
from recrawl.client.options import Options
from recrawl.client.page import Kind
from recrawl.client.robots_cache import RobotsCache
from recrawl.client.runner import Runner
from recrawl.client.sender import Sender

log = logging.getLogger("recrawl.client")

ASK_EVERY = 0.1  # seconds from an answer with too few pages to the next call; also the longest wait for room
LONGEST_NOTICE = 10.0  # seconds; see InHand.notice
LONGEST_SLEEP = 1.0  # seconds: somebody may add pages during it
MOST_AT_ONCE = 1000  # pages of a call
# Calls are small, so that the slots of hosts do not all begin at the same moment. Hosts that one call finds free have
# their first slots at the same moment, and the next slots one gap later. A crawl whose hosts are all in step sends
# hundreds of requests at once and none in between. With 60 hosts and a gap of 0.2 s, Scrapy reaches 85 % of what the
# gaps allow, compared with 65 % in step.
FEW = 16  # pages of a call; more only for a crawler that is so fast that calls would follow each other without pause
# Seconds: a random time up to this is added to the notice of a call (InHand.notice), so that the slots of two calls do
# not coincide.
SPREAD = 0.02


class Asker:
    def __init__(
        self, database: Database, runner: Runner, sender: Sender, robots_cache: RobotsCache, options: Options
    ) -> None:
        self._database = database
        self._runner = runner
        self._in_hand = runner.in_hand
        self._sender = sender
        self._robots_cache = robots_cache
        self._options = options
        self.is_wanted = True  # the caller has asked for a page since the last call of next_pages, or waits for one
        self._longest_notice = LONGEST_NOTICE
        # The time of the last measurement of the rate, and the number of visits that had ended by then.
        self._measured_at, self._ended = time.monotonic(), 0
        self._rate = 0.0  # visits that end per second
        self._warned_at = -math.inf  # when the log last said that this login may lease no more pages
        self._answered_at = time.monotonic()

    async def ask_until_closed(self) -> None:
        while not self._in_hand.is_closed:
            self._measure_rate()
            if not self.is_wanted or (room := self._room()) <= 0:
                await self._sleep_until_room()
                continue
            few = min(room, max(FEW, int(self._rate * ASK_EVERY / 3)))
            found = await self._ask(few)
            if found is None:
                continue  # the next call has a shorter notice
            if found == few and few < room:
                continue  # there may be more pages now
            if found >= room:
                await self._sleep_until_room()
            elif found or self._in_hand.has_leases:
                await self._sleep(ASK_EVERY)
            else:
                await self._sleep(max(0.02, await self._database.ready_in(LONGEST_SLEEP)))

    def _most(self) -> int:
        """The most visits and pages in line: `concurrency`, plus the visits that will end within `ahead` seconds."""
        return self._options["concurrency"] + int(self._rate * self._options["ahead"])

    def _room(self) -> int:
        return 0 if self._sender.is_behind else min(self._most() - self._in_hand.pages_and_visits, MOST_AT_ONCE)

    def _measure_rate(self) -> None:
        """A moving average over about two seconds."""
        now, ended = time.monotonic(), self._in_hand.visits_ended
        if (passed := now - self._measured_at) > ASK_EVERY:
            self._rate += min(1.0, passed / 2) * ((ended - self._ended) / passed - self._rate)
            self._measured_at, self._ended = now, ended

    async def _ask(self, n: int) -> int | None:
        """The number of pages that came. None: this notice is more than the database allows."""
        self.is_wanted = self._runner.consumers > 0
        sent = time.monotonic()
        notice = min(self._in_hand.notice + random.uniform(0, SPREAD), self._longest_notice)
        ahead, lease, per_host = self._options["ahead"], self._options["lease"], self._options["per_host"]
        try:
            rows = await self._database.next_pages(n, ahead, lease, per_host, notice)
        except psycopg.errors.InvalidParameterValue as error:
            if "max_leased_per_login" in str(error):
                if n > 1:
                    return await self._ask(n // 2)
                if time.monotonic() - self._warned_at > 60:
                    log.warning("%s. The client waits", one_line(error).removeprefix("next_pages: "))
                    self._warned_at = time.monotonic()
                await self._sleep(LONGEST_SLEEP)
                return 0
            if not notice:
                raise
            # The usual reason: `ahead` and this notice are together more than the setting max_ahead. So half the notice
            # is tried. An error with another reason comes again without a notice, and is raised then.
            self._longest_notice = notice / 2 if notice > 0.01 else 0.0
            return None
        if rows:
            await self._take_in(rows)
        now = time.monotonic()
        self._in_hand.answer_time = answer_time(self._in_hand.answer_time, now - sent, now - self._answered_at)
        self._answered_at = now
        return len(rows)

    async def _take_in(self, rows: list[Any]) -> None:
        pages = [self._runner.page(row, self._kind_of(row.meta)) for row in rows]
        self._in_hand.received(pages)
        try:
            if rows[0].start_by <= rows[0].fetch_at:
                raise Error(
                    "the setting window_share is 0, so every request would be too late. It is a share of the gap: "
                    "set it to 0.01 or more"
                )
            await self._robots_cache.look_up([page.url for page in pages])
        finally:
            self._in_hand.start_waiting(pages, time.monotonic())
            self._runner.catch_up()

    def _kind_of(self, meta: Any) -> Kind:
        return "sitemap" if self._options["sitemaps"] and isinstance(meta, dict) and "sitemap" in meta else "page"

    async def _sleep_until_room(self) -> None:
        """Sleeps until there is room for a quarter of `concurrency`, but not longer than ASK_EVERY."""
        below = -1 if self._sender.is_behind else self._most() - self._options["concurrency"] // 4
        await self._sleep(ASK_EVERY, below)

    async def _sleep(self, seconds: float, ask_below: int = -1) -> None:
        """Ends earlier if at most `ask_below` pages are visited or in line, or if the client is closed."""
        if not self._in_hand.is_closed:
            self._runner.ask_below = ask_below
            self._runner.has_room.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._runner.has_room.wait(), seconds)


def answer_time(before: float, took: float, since_last: float) -> float:
    """Seconds to allow for the next answer: the larger of two times. One is the time that the last call took, plus a
    reserve. The other is `before`, reduced by a tenth, or by a tenth for each second if the last answer is older than a
    second. Without this reduction, all later pages would get late slots after one slow answer."""
    fallen: float = before * 0.9 ** max(1.0, since_last)
    return max(min(1.2 * took + 0.002, LONGEST_NOTICE), fallen)
