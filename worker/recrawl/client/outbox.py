"""What became of pages, and URLs to be taken in, until the database has them."""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import Callable
from itertools import islice

from recrawl.client.answers import Result, clean
from recrawl.client.clock import Clock
from recrawl.client.database import Database
from recrawl.client.leases import Leases
from recrawl.client.page import Page

SEND_EVERY = 0.2  # seconds, or
SEND_AT = 100  # results, whatever comes first
MOST_AT_ONCE = 500  # results of a call
MOST_URLS = 1000  # of a call
MOST_UNSENT = 20_000  # results, links and URLs: with more of them than that no page is asked for


class Outbox:
    def __init__(self, database: Database, clock: Clock, leases: Leases, are_held: Callable[[set[str]], None]) -> None:
        self._database = database
        self._clock = clock
        self._leases = leases
        self._are_held = are_held  # called with hosts
        self._urls: deque[tuple[str, object]] = deque()  # with what is to be handed out with each
        self._results: deque[tuple[Page, Result]] = deque()
        self._links = 0  # of all results
        self._released: defaultdict[tuple[int, bool], list[int]] = defaultdict(list)  # by lease, and whether spent
        self._is_full = asyncio.Event()
        self._sending = asyncio.Lock()

    def __len__(self) -> int:
        return len(self._urls) + len(self._results) + sum(map(len, self._released.values()))

    @property
    def is_behind(self) -> bool:
        """The database takes in less than comes."""
        return len(self) + self._links > MOST_UNSENT

    def add(self, url: str, meta: object) -> None:
        self._urls.append((clean(url), meta))

    def report(self, page: Page, result: Result) -> None:
        self._results.append((page, result))
        self._links += _links(result)
        if len(self._results) >= SEND_AT:
            self._is_full.set()

    def give_back(self, page: Page, outcome: str, spent: bool = False) -> None:
        """Unfetched; spent: a request was made in its slot."""
        self._released[page.lease_id, spent].append(page.page_id)
        self._leases.is_over(page, outcome)

    def reported(self) -> set[Page]:
        return {page for page, _ in self._results}

    async def send_for_ever(self) -> None:
        while True:
            self._is_full.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._is_full.wait(), SEND_EVERY)
            await self.send()

    async def send(self) -> None:
        """All that is there now. What was not taken in yet stays, also if this is cancelled."""
        async with self._sending:
            left = len(self._results)  # more may come meanwhile: what is given back must not wait for those
            await self._send_urls()  # first: what a page led to is known before it counts as visited
            while left > 0:
                left -= await self._send_results(min(left, MOST_AT_ONCE))
            for _ in range(len(self._released)):
                await self._send_released()

    async def _send_urls(self) -> None:
        for _ in range(0, len(self._urls), MOST_URLS):
            batch = list(islice(self._urls, MOST_URLS))
            rows = await self._database.add_pages([url for url, _ in batch], [meta for _, meta in batch])
            for row in rows:
                self._leases.counts[f"{row.code} urls"] += 1
                self._urls.popleft()

    async def _send_results(self, n: int) -> int:
        batch = [self._results[i] for i in range(n)]
        answers = await self._database.report([self._element(page, result) for page, result in batch])
        held = set()
        for (page, result), answer in zip(batch, answers, strict=True):
            self._results.popleft()
            self._links -= _links(result)
            self._leases.is_over(page, answer.code, answer.detail)
            if answer.is_held:
                held.add(page.host)
        if held:
            self._are_held(held)
        return n

    async def _send_released(self) -> None:
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


def _links(result: Result) -> int:
    return len(result.get("links", ()))
