"""A stream of puts and of their acknowledgements, in the order in which they are ready. The client ends the stream."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from grpc import aio

# A stream reads no more puts while more than this number have no acknowledgement. A put of n kilobytes counts as n
# puts. At the limit the client must read acknowledgements first.
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
