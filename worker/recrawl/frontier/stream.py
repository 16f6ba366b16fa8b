"""A stream of puts, and of their acknowledgements as they come, in whatever order. It ends when its client ends it."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import psycopg
from grpc import aio

from recrawl.client import Error
from recrawl.frontier.crawls import Crawls, UnknownCrawl
from recrawl.frontier.items import discovered, put_of
from recrawl.frontier.puts import FAIL, SKIPPED, Ack
from recrawl.frontier.urlfrontier_pb2 import AckMessage, BatchAck, DiscoveredBatch, URLInfo, URLItem

log = logging.getLogger("recrawl.frontier")

MOST_IN_FLIGHT = 200_000  # puts of a stream; further ones are read when some of these are acknowledged


class Stream:
    """Reads on while it writes: nothing that a client sends waits for what it receives."""

    def __init__(self, context: "aio.ServicerContext[Any, Any]") -> None:
        self._context = context
        self._answers: deque[object] = deque()
        self._has_answers = asyncio.Event()
        self._has_room = asyncio.Event()
        self._owed = 0  # puts that were read and not answered
        self._has_ended = False  # what the client sends

    async def run(self, take: Callable[["Stream", Any], Awaitable[None]]) -> None:
        writing = asyncio.create_task(self._write())
        try:
            while (message := await self._context.read()) is not aio.EOF:
                await take(self, message)
                while self._owed > MOST_IN_FLIGHT:
                    self._has_room.clear()
                    await self._has_room.wait()
            self._has_ended = True
            self._has_answers.set()
            await writing
        finally:
            writing.cancel()

    def owe(self) -> None:
        self._owed += 1

    def answer(self, message: object) -> None:
        self._owed -= 1
        self._answers.append(message)
        self._has_answers.set()

    async def _write(self) -> None:
        while self._owed or self._answers or not self._has_ended:
            self._has_answers.clear()
            while self._answers:
                await self._context.write(self._answers.popleft())
            self._has_room.set()
            if self._owed or not self._has_ended:
                await self._has_answers.wait()


class PutStreams:
    """PutURLs and PutDiscovered."""

    def __init__(self, crawls: Crawls, obeys: bool) -> None:
        self._crawls = crawls
        self._obeys = obeys

    async def urls(self, context: "aio.ServicerContext[Any, Any]") -> None:
        await Stream(context).run(self._take_item)

    async def batches(self, context: "aio.ServicerContext[Any, Any]") -> None:
        await Stream(context).run(self._take_batch)

    async def _take_item(self, stream: Stream, item: URLItem) -> None:
        info = item.known.info if item.WhichOneof("item") == "known" else item.discovered.info
        name = item.ID or info.url

        def ack(status: AckMessage.Status) -> None:
            stream.answer(AckMessage(ID=name, status=status))

        stream.owe()
        put = put_of(item, self._obeys)
        if put is None:
            ack(SKIPPED)
        elif puts := await self._puts_of(info, [ack]):
            puts.put(put, ack)

    async def _take_batch(self, stream: Stream, batch: DiscoveredBatch) -> None:
        stream.owe()
        statuses: list[AckMessage.Status] = [FAIL] * len(batch.items)
        left = len(batch.items)

        def ack_of(place: int) -> Ack:
            def ack(status: AckMessage.Status) -> None:
                nonlocal left
                statuses[place] = status
                left -= 1
                if not left:
                    stream.answer(BatchAck(ID=batch.ID, statuses=statuses))

            return ack

        if not batch.items:  # clients ask so whether somebody is there
            stream.answer(BatchAck(ID=batch.ID))
        for place, info in enumerate(batch.items):
            put, ack = discovered(info), ack_of(place)
            if put is None:
                ack(SKIPPED)
            elif puts := await self._puts_of(info, [ack]):
                puts.put(put, ack)

    async def _puts_of(self, info: URLInfo, acks: Iterable[Ack]) -> Any:
        """Where it goes; nothing, and an answer, where that is nowhere."""
        try:
            return await self._crawls.puts(info.crawlID)
        except UnknownCrawl as error:
            status = SKIPPED
            log.warning("%s", error)
        except (Error, psycopg.Error, SystemExit) as error:
            status = FAIL
            log.warning("crawl %s: %s", info.crawlID, " ".join(str(error).split()))
        for ack in acks:
            ack(status)
        return None
