"""The client for crawlers that use threads. It runs the client for asyncio on a loop in a thread of its own."""

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from recrawl.client.crawl import Client
from recrawl.client.options import Options
from recrawl.client.page import Page

Result = TypeVar("Result")


class ThreadedClient:
    """It has the arguments of Client. Pages are visited in threads. A visit that has begun cannot be stopped: if it
    still runs when the client ends, its page stays leased until its lease ends."""

    def __init__(self, dsn: str, **options: Unpack[Options]) -> None:
        self._stops_on_signals = options.pop("stop_on_signals", False)
        self.client = Client(dsn, **options)
        self.counts = self.client.counts  # of outcomes, requests and the like
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="recrawl client", daemon=True)
        # As many again for extra requests: a visit that waits for its extra request keeps its thread.
        self._pool = ThreadPoolExecutor(2 * self.client.concurrency, "visit")
        self._before: dict[int, Any] = {}

    def _await(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            if self._stops_on_signals:
                for number in (signal.SIGTERM, signal.SIGINT):
                    self._before[number] = signal.signal(number, self._told_to_stop)
            self._await(self.client.__aenter__())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        leaving: asyncio.Task[None] | None = None

        async def leave() -> None:
            nonlocal leaving
            leaving = asyncio.current_task()
            await self.client.__aexit__(kind, error, trace)

        end = asyncio.run_coroutine_threadsafe(leave(), self._loop)
        try:
            end.result()
        except KeyboardInterrupt:  # the end is cut short, but the pages that no thread visits are given back
            self._loop.call_soon_threadsafe(lambda: leaving and leaving.cancel())
            with suppress(CancelledError, TimeoutError):
                end.result(5)
            raise
        finally:
            self._end()

    def _end(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._await(self._cancel_calls())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._pool.shutdown(wait=False)

    async def _cancel_calls(self) -> None:
        """Visits that still run may wait for these calls. Without an answer their threads would never end."""
        if calls := asyncio.all_tasks() - {asyncio.current_task()}:
            for call in calls:
                call.cancel()
            await asyncio.wait(calls, timeout=1)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Page:
        try:
            return self._await(self.client.__anext__())
        except StopAsyncIteration:
            raise StopIteration from None

    def _told_to_stop(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self.client.interrupt)

    def spawn(self, visit: Callable[[Page], object], page: Page) -> None:
        """Visits a page in one of the threads. A page that the visit does not report is given back. If the visit raises
        an exception, the page is reported with status 0."""

        async def in_thread(page: Page) -> None:
            call = self._pool.submit(visit, page)
            try:
                await asyncio.wrap_future(call)
            except asyncio.CancelledError:
                if call.running():  # nothing can stop a thread. No other crawler may get the page yet
                    self.client._lose(page)
                raise

        self._loop.call_soon_threadsafe(self.client.spawn, in_thread, page)

    def begins(self, page: Page) -> bool:
        """Waits for the slot of a page, as Client.begins does. A visit calls it right before its request."""
        try:
            return self._await(self.client.begins(page))
        except CancelledError:  # the client has ended
            return False

    def add(self, url: str, meta: object = None) -> None:
        """Adds a URL to the crawl, as Client.add does."""
        self._loop.call_soon_threadsafe(self.client.add, url, meta)

    def extra_request(self, url: str, meta: object = None) -> "Future[None]":
        """Asks for a slot for a request that is no page, as Client.extra_request does."""

        async def until_it_was_made() -> None:
            await self.client.extra_request(url, meta)

        return asyncio.run_coroutine_threadsafe(until_it_was_made(), self._loop)

    def stop(self) -> None:
        """Ends the iteration. Visits go on."""
        self._loop.call_soon_threadsafe(self.client.stop)
