"""A web on loopback addresses, in a thread of its own. Its log is the judge of crawlers: when each request arrived.

A host is an address 127.0.0.x. What it answers, a function of the request says; how it answers may be as bad as the
web is: late, never, cut off, broken.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

Result = TypeVar("Result")


class Request(NamedTuple):
    at: float  # monotonic
    host: str
    path: str
    headers: dict[str, str]  # names in small letters


@dataclass
class Answer:
    status: int = 200  # 0: the connection is closed without an answer
    body: bytes | str = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: float = 0  # seconds
    hangs: bool = False  # nothing comes, until the crawler gives up
    length: int | None = None  # what the header says; the body ends where it ends


class Entry(NamedTuple):
    at: float
    host: str
    path: str
    status: int


class Web:
    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.answer = answer
        self.log: list[Entry] = []
        self.under_way = self.most_under_way = 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="web", daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        self.server = self._do(asyncio.start_server(self._connected, "0.0.0.0", 0, backlog=1000))
        self.port: int = self.server.sockets[0].getsockname()[1]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async def end() -> None:
            self.server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()
            await asyncio.sleep(0)

        self._do(end())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def _do(self, work: Coroutine[Any, Any, Result]) -> Result:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            while await self._answered(reader, writer):
                pass
        writer.close()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request of a connection; whether another one may follow."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        arrived = time.monotonic()
        first, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        # A crawler of the tests says when it began: a loaded machine keeps requests on the way, each for another while.
        at = float(headers.get("x-began", arrived))
        request = Request(at, headers["host"].partition(":")[0], first.split(" ")[1], headers)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            answer = self.answer(request)
            self.log.append(Entry(at, request.host, request.path, answer.status))
            if answer.hangs:
                await reader.read()
            if answer.hangs or not answer.status:
                return False
            await asyncio.sleep(answer.after)
        finally:
            self.under_way -= 1
        body = answer.body.encode() if isinstance(answer.body, str) else answer.body
        body = b"" if answer.status == 304 else body
        length = len(body) if answer.length is None else answer.length
        sent = {"Content-Length": str(length), **answer.headers}
        text = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        writer.write(f"HTTP/1.1 {answer.status} x\r\n{text}\r\n".encode() + body)
        await writer.drain()
        return length == len(body)

    # ---------------------------------------------------------------------------------------------- the judge

    def of(self, host: str, path: str | None = None) -> list[Entry]:
        return sorted(entry for entry in self.log if entry.host == host and path in (None, entry.path))

    def apart(self, host: str, since: float = 0) -> list[float]:
        """Seconds between one request to a host and the next, the shortest first."""
        return sorted(b.at - a.at for a, b in pairwise(self.of(host)) if a.at >= since)


def links(paths: Iterable[object]) -> str:
    return "".join(f'<a href="{path}">{path}</a>\n' for path in paths)
