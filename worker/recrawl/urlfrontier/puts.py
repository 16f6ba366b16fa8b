"""Stores the URLs that a client of URLFrontier puts, up to 1000 at a time. Puts of one URL are stored one after the
other. A put is acknowledged once it is committed.

While the database is away, every put is answered at once with FAIL, so that the client sends it again. No stream ends.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence

import psycopg

from recrawl.client.database import GaveUp, TooLong, one_line
from recrawl.urlfrontier.crawl_database import CrawlDatabase
from recrawl.urlfrontier.items import Put
from recrawl.urlfrontier.urlfrontier_pb2 import AckMessage

log = logging.getLogger("recrawl.urlfrontier")

WAIT = 0.01  # seconds to wait for more puts
MOST_AT_ONCE = 1000
LARGEST = 4_000_000  # characters of metadata at once; a single put may be larger
LONGEST_CALL = 20.0  # seconds for a call: StormCrawler counts a put as failed after 60 seconds without an answer
Ack = Callable[[AckMessage.Status], None]
OK, SKIPPED, FAIL = AckMessage.OK, AckMessage.SKIPPED, AckMessage.FAIL


class Puts:
    """The puts of one crawl, from all streams."""

    def __init__(self, crawl: CrawlDatabase) -> None:
        self._crawl = crawl
        self._waiting: deque[tuple[Put, Ack]] = deque()
        self._are_some = asyncio.Event()
        self._is_closed = False
        self._task = asyncio.create_task(self._take_for_ever())

    def put(self, put: Put, ack: Ack) -> None:
        if self._is_closed:
            ack(FAIL)
            return
        self._waiting.append((put, ack))
        self._are_some.set()

    async def close(self) -> None:
        """Answers all waiting puts, and all later ones, with FAIL."""
        self._is_closed = True
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task
        while self._waiting:
            _, ack = self._waiting.popleft()
            ack(FAIL)

    async def _take_for_ever(self) -> None:
        while True:
            await self._are_some.wait()
            if len(self._waiting) < MOST_AT_ONCE:
                await asyncio.sleep(WAIT)
            batch = self._next()
            statuses: list[AckMessage.Status] = []
            try:
                statuses = await self._taken([put for put, _ in batch])
            except (GaveUp, TimeoutError):
                batch += self._waiting
                self._waiting.clear()
            except Exception:
                # And go on: otherwise no put would ever be answered again.
                log.exception("these URLs cannot be added now")
            finally:
                statuses += [FAIL] * (len(batch) - len(statuses))
                for (_, ack), status in zip(batch, statuses, strict=True):
                    ack(status)
            if not self._waiting:
                self._are_some.clear()

    def _next(self) -> list[tuple[Put, Ack]]:
        batch: list[tuple[Put, Ack]] = []
        size = 0
        while self._waiting and len(batch) < MOST_AT_ONCE and size < LARGEST:
            batch.append(self._waiting.popleft())
            size += len(batch[-1][0].meta or "")
        return batch

    async def _taken(self, puts: Sequence[Put]) -> list[AckMessage.Status]:
        """Takes in each put that the database accepts. Raises GaveUp, or TimeoutError if there is no answer."""
        try:
            async with asyncio.timeout(LONGEST_CALL):
                return await taken(self._crawl, puts)
        except (psycopg.DataError, psycopg.OperationalError, TooLong) as error:
            if len(puts) > 1:
                half = len(puts) // 2
                return await self._taken(puts[:half]) + await self._taken(puts[half:])
            log.warning("%s: %s", puts[0].url[:200], one_line(error))
            return [FAIL if isinstance(error, TooLong) else SKIPPED]
        except psycopg.Error as error:
            log.error("these URLs cannot be added now: %s", one_line(error))
            return [FAIL] * len(puts)


async def taken(crawl: CrawlDatabase, puts: Sequence[Put]) -> list[AckMessage.Status]:
    """Adds the puts that are new pages, and reports the known URLs among the others. Returns a status for each put."""
    rows = await crawl.add(puts)
    statuses = [OK if row.code == "new" else SKIPPED for row in rows]
    again = [
        place for place, (put, row) in enumerate(zip(puts, rows, strict=True)) if put.is_known and row.code == "known"
    ]
    for place in again:
        statuses[place] = FAIL
    with contextlib.suppress(GaveUp):
        while again:
            # One put of each page per report: of two, the second would not count. Two spellings may be one page.
            first = {rows[place].page_id: place for place in reversed(again)}
            codes = await crawl.report(list(first), [puts[place] for place in first.values()])
            for place, code in zip(first.values(), codes, strict=True):
                statuses[place] = {"invalid": SKIPPED, "unknown_page": FAIL}.get(code, OK)
            again = sorted(set(again).difference(first.values()))
        known = [place for place, put in enumerate(puts) if put.is_known and statuses[place] == OK]
        await crawl.note_completed([rows[place].page_id for place in known])
    return statuses
