"""A stream of puts and of their acknowledgements, in the order in which they are ready. The client ends the stream."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
from grpc import aio

from recrawl.client import Error
from recrawl.client.database import GaveUp
from recrawl.urlfrontier.crawls import Crawls, UnknownCrawl
from recrawl.urlfrontier.items import Put, discovered, put_of
from recrawl.urlfrontier.puts import FAIL, SKIPPED, Ack
from recrawl.urlfrontier.urlfrontier_pb2 import AckMessage, BatchAck, DiscoveredBatch, URLInfo, URLItem

log = logging.getLogger("recrawl.urlfrontier")

# The puts of a stream that have no acknowledgement yet. A put of n kilobytes counts as n puts. At the limit the client
# must read acknowledgements first.
MOST_IN_FLIGHT = 200_000


class Unreadable(Exception):
    """The client sent a message that its call does not take."""


def readable(message: Any) -> Any:
    if message is None:
        raise Unreadable("this is no message of this call: its fields or its UTF-8 are broken")
    return message


class Stream:
    """Reads and writes at the same time: a client may send without reading the answers."""

    def __init__(self, context: "aio.ServicerContext[Any, Any]") -> None:
        self._context = context
        self._answers: deque[tuple[object, int]] = deque()  # each with the weight of its puts
        self._has_answers = asyncio.Event()
        self._has_room = asyncio.Event()
        self._owed = 0  # the weight of the puts that were read and not yet answered
        self._has_ended = False  # the client sends no more

    async def run(self, take: Callable[["Stream", Any], Awaitable[None]]) -> None:
        writing = asyncio.create_task(self._write())
        try:
            while (message := await self._context.read()) is not aio.EOF:
                await take(self, readable(message))
                while self._owed > MOST_IN_FLIGHT:
                    self._has_room.clear()
                    await self._has_room.wait()
            self._has_ended = True
            self._has_answers.set()
            await writing
        finally:
            writing.cancel()

    def owe(self, weight: int) -> None:
        self._owed += weight

    def answer(self, message: object, weight: int) -> None:
        self._answers.append((message, weight))
        self._has_answers.set()

    async def _write(self) -> None:
        """Waits while the client does not read."""
        while self._owed or not self._has_ended:
            await self._has_answers.wait()
            self._has_answers.clear()
            while self._answers:
                message, weight = self._answers.popleft()
                await self._context.write(message)
                self._owed -= weight
                self._has_room.set()


class PutStreams:
    """Takes the messages of PutURLs and PutDiscovered."""

    def __init__(self, crawls: Crawls, client_sets_dates: bool) -> None:
        self._crawls = crawls
        self._client_sets_dates = client_sets_dates

    async def take_item(self, stream: Stream, item: URLItem) -> None:
        info = item.known.info if item.WhichOneof("item") == "known" else item.discovered.info
        name = item.ID or info.url

        def ack(status: AckMessage.Status) -> None:
            stream.answer(AckMessage(ID=name, status=status), weight)

        weight = max(1, item.ByteSize() // 1000)
        stream.owe(weight)
        await self._take(info, put_of(item, self._client_sets_dates), ack)

    async def take_batch(self, stream: Stream, batch: DiscoveredBatch) -> None:
        weight = max(1, len(batch.items), batch.ByteSize() // 1000)
        stream.owe(weight)
        statuses: list[AckMessage.Status] = [FAIL] * len(batch.items)
        left = len(batch.items)

        def ack_of(place: int) -> Ack:
            def ack(status: AckMessage.Status) -> None:
                nonlocal left
                statuses[place] = status
                left -= 1
                if not left:
                    stream.answer(BatchAck(ID=batch.ID, statuses=statuses), weight)

            return ack

        if not batch.items:  # clients send empty batches to see whether the service is there
            stream.answer(BatchAck(ID=batch.ID), weight)
        for place, info in enumerate(batch.items):
            await self._take(info, discovered(info), ack_of(place))

    async def _take(self, info: URLInfo, put: Put | None, ack: Ack) -> None:
        """Hands the put to its crawl. Answers a put itself if it can never be taken in, or its crawl cannot be made."""
        if put is None:
            ack(SKIPPED)
            return
        try:
            puts = await self._crawls.puts(info.crawlID)
        except UnknownCrawl as error:
            ack(SKIPPED)
            log.warning("%s", error)
        except (GaveUp, Error, psycopg.Error):
            ack(FAIL)
        else:
            puts.put(put, ack)
