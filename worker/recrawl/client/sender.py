"""Sends results, pages that are given back, and new URLs to the database."""

import asyncio
import contextlib
from collections import deque
from itertools import islice

from recrawl.client.answers import storable_url
from recrawl.client.database import Database
from recrawl.client.runner import Runner

SEND_EVERY = 0.2  # seconds; earlier if the runner has SEND_AT results
MOST_AT_ONCE = 500  # results of a call
MOST_URLS = 1000  # of a call
MOST_UNSENT = 20_000  # results, their links, pages to give back, and URLs: with more the client asks for no pages


class Sender:
    def __init__(self, database: Database, runner: Runner) -> None:
        self._database = database
        self._runner = runner
        self._in_hand = runner.in_hand
        self.urls: deque[tuple[str, object]] = deque()  # each with its meta
        self._turn = asyncio.Lock()

    def __len__(self) -> int:
        return len(self.urls) + self._in_hand.unsent

    @property
    def is_behind(self) -> bool:
        """The database stores less than visits bring."""
        return len(self) + sum(len(result.get("links", ())) for _, result in self._in_hand.results) > MOST_UNSENT

    def add(self, url: str, meta: object) -> None:
        self.urls.append((storable_url(url), meta))

    async def send_for_ever(self) -> None:
        while True:
            self._runner.has_results.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._runner.has_results.wait(), SEND_EVERY)
            await self.send()

    async def send(self) -> None:
        """Sends everything that is there now. If this is cancelled, nothing is lost: the rest is sent the next time."""
        async with self._turn:
            left = len(self._in_hand.results)  # not the later results: the pages to give back would wait for them
            await self._send_urls()  # first: recrawl then knows the URLs before the page that led to them is reported
            while left > 0:
                batch = self._in_hand.batch(min(left, MOST_AT_ONCE))
                self._in_hand.reported(await self._database.report(batch))
                self._runner.catch_up()
                left -= len(batch)
            for (lease_id, slot_used), pages in list(self._in_hand.releases.items()):
                page_ids = [page.page_id for page in pages]
                await self._database.release(lease_id, page_ids, slot_used)
                self._in_hand.released(lease_id, slot_used, len(page_ids))

    async def _send_urls(self) -> None:
        for _ in range(0, len(self.urls), MOST_URLS):
            batch = list(islice(self.urls, MOST_URLS))
            for row in await self._database.add_pages(batch):
                self._in_hand.counts[f"{row.code}_urls"] += 1
                self.urls.popleft()
