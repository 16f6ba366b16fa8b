"""A load like StormCrawler's: one stream of puts that never ends, many in flight, while Postgres comes and goes."""

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from helpers import eventually
from recrawl.setup import embedded
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import FAIL, OK, SKIPPED, Frontier, discovered, known
from worker.urlfrontier.conftest import Command

HOSTS = 50


class Endless:
    """A stream that stays open. Acknowledgements are counted by ID. Items that must be sent again are sent again."""

    def __init__(self, frontier: Frontier) -> None:
        self.sent: Counter[str] = Counter()
        self.acks: dict[str, list[int]] = {}
        self.failed = 0
        self.error: Exception | None = None
        self._items: queue.SimpleQueue[pb.URLItem | None] = queue.SimpleQueue()
        self._of_id: dict[str, pb.URLItem] = {}
        self._again: queue.SimpleQueue[pb.URLItem] = queue.SimpleQueue()
        self._stream = frontier.calls["PutURLs"](iter(self._items.get, None))
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def send(self, item: pb.URLItem) -> None:
        self.sent[item.ID] += 1
        self._of_id[item.ID] = item
        self._items.put(item)

    def _listen(self) -> None:
        try:
            for ack in self._stream:
                self.acks.setdefault(ack.ID, []).append(ack.status)
                if ack.status == FAIL:
                    self.failed += 1
                    self._again.put(self._of_id[ack.ID])
        except Exception as error:
            self.error = error

    def send_again(self) -> None:
        while not self._again.empty():
            self.send(self._again.get())

    def settled(self) -> int:
        return sum(statuses[-1] != FAIL for statuses in list(self.acks.values()))

    def end(self) -> None:
        self._items.put(None)
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("items", [3000, pytest.param(100_000, marks=pytest.mark.soak)])
def test_everything_is_acknowledged_and_taken_in_once_though_postgres_restarts(
    home_of_a_crawl: Callable[[str], Path], tmp_path: Path, items: int
) -> None:
    folder = home_of_a_crawl(f"frontier-{items}")
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(days=9)
    urls = [f"http://h{n % HOSTS}.example/{n}" for n in range(items)]
    with ExitStack() as stack:
        with embedded.server(folder) as url:
            command = Command(url, tmp_path / "log")
            stack.callback(command.process.kill)
            stream = Endless(command.client)
            first, second = urls[: items // 2], urls[items // 2 :]
            for n, address in enumerate(first):
                stream.send(first_word(n, address, later))
            wait_for(stream, items // 3)
        for n, address in enumerate(second, len(first)):
            stream.send(first_word(n, address, later))
        assert eventually(lambda: stream.failed > 0 or stream.error is not None, what="while it is away")
        assert stream.error is None
        with embedded.server(folder) as again:
            assert again == url
            wait_for(stream, items)
            # The known URLs a second time: the last message counts.
            for n in range(0, items, 3):
                stream.send(known(urls[n], later + timedelta(days=1), ID=f"again {n}"))
            wait_for(stream, items + len(range(0, items, 3)))
            stream.end()
            assert stream.error is None
            assert {name: len(statuses) for name, statuses in stream.acks.items()} == stream.sent, "one each"
            # An item that was committed while the connection broke got FAIL, and gets SKIPPED the second time.
            assert all(s[-1] == OK or (s[-1] == SKIPPED and FAIL in s) for s in stream.acks.values())
            with psycopg.connect(url) as db:
                rows = db.execute("select url, due_at, state from recrawl.page_status").fetchall()
            dues = {address: due_at for address, due_at, _ in rows}
            assert len(rows) == len(dues) == items, "none is lost, none is there twice"
            for n, address in enumerate(urls):
                want = later + timedelta(days=1) if n % 3 == 0 else later if n % 5 == 0 else None
                due = dues[address]
                is_right = due is None if want is None else abs(due - want) < timedelta(seconds=0.5)
                assert is_right, (address, due, want)
            command.stop()


def first_word(n: int, address: str, later: datetime) -> pb.URLItem:
    return known(address, later, ID=str(n)) if n % 5 == 0 else discovered(address, ID=str(n))


def wait_for(stream: Endless, count: int) -> None:
    end = time.monotonic() + 1200
    while stream.settled() < count:
        assert stream.error is None and time.monotonic() < end, (stream.error, stream.settled())
        stream.send_again()
        time.sleep(0.2)
