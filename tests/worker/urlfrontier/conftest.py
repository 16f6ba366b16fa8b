"""The service, in a thread or as the command that it is, and a client as grpc makes one."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.setup import migrate
from recrawl.urlfrontier.crawls import Crawls
from recrawl.urlfrontier.service import serve
from worker.urlfrontier.client import Frontier


class Command:
    """`recrawl urlfrontier` on a database, at a port that was free."""

    def __init__(self, url: str, log: Path, *arguments: str) -> None:
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "recrawl", "urlfrontier", "--listen", "127.0.0.1:0", *arguments],
                env=os.environ | {"DATABASE_URL": url},
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        assert self.process.stdout
        said = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:(\d+)", said)
        assert found, said + log.read_text()
        self.port = int(found[1])
        self.client = Frontier(self.port)

    def stop(self) -> None:
        """Ctrl-C ends it, and nothing went wrong that nobody thought of."""
        self.client.close()
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait(60) == 0
        assert "Traceback" not in self.log.read_text()


class Served:
    """The same without the command, in a thread of this process: that takes no time to start."""

    def __init__(self, url: str, client_sets_dates: bool = True) -> None:
        self._url = url
        self._client_sets_dates = client_sets_dates
        self._runs = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._runs.wait(60)
        self.client = Frontier(self.port)

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        crawls = Crawls(self._url, migrate.upgrade)
        await crawls.open()
        server, self.port = await serve(crawls, "127.0.0.1", 0, self._client_sets_dates)
        self._runs.set()
        await self._stop.wait()
        await crawls.close()
        await server.stop(5)

    def stop(self) -> None:
        self.client.close()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(120)
        assert not self._thread.is_alive()


@pytest.fixture
def served(url: str) -> Iterator[Served]:
    served = Served(url)
    yield served
    served.stop()


@pytest.fixture
def frontier(served: Served) -> Frontier:
    return served.client
