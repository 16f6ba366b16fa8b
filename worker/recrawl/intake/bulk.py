"""Streams pages into the database over several connections. Knows nothing of files or of the screen."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import psycopg

from recrawl import store
from recrawl.intake.importers import BadLine
from recrawl.intake.urls import clean
from recrawl.store import Page

BATCH = 1000
CONNECTIONS = 4
# Beside four connections that add, one drain falls behind, and so do several in small steps: each looks through sixteen
# times as many entries for those of its slice of the hosts.
DRAINS, STEP = 2, 20_000
INVALID_SHOWN = 5


@dataclass
class Progress:
    """How many URLs came out as new, known, excluded or invalid; the first few invalid ones with the reason."""

    counts: Counter[str] = field(default_factory=Counter)
    invalid: list[tuple[str, str]] = field(default_factory=list)


def add(
    url: str,
    pages: Iterable[Page | BadLine],
    watch: Callable[[Progress], None] = lambda _: None,
    progress: Progress | None = None,
) -> Progress:
    """Adds all pages, every batch in a transaction of its own; `watch` sees the progress after each.

    When `pages` or the database raises, what was added so far stays, and is counted in the `progress` given.
    """
    progress = progress or Progress()
    under_way: deque[Future[store.Added]] = deque()

    def finish_one() -> None:
        added = under_way.popleft().result()
        progress.counts.update(added.counts)
        progress.invalid = (progress.invalid + added.invalid)[:INVALID_SHOWN]
        watch(progress)

    with ExitStack() as stack:
        connections = [stack.enter_context(store.connect(url, "recrawl add")) for _ in range(CONNECTIONS)]
        stack.enter_context(_upkeep(url))
        pool = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))

        def add_batch(batch: list[Page | BadLine]) -> store.Added:
            pages = [item._replace(url=clean(item.url)) for item in batch if isinstance(item, Page)]
            bad = [item for item in batch if isinstance(item, BadLine)]
            connection = connections.pop()
            try:
                added = store.add_pages(connection, pages)
            finally:
                connections.append(connection)
            if bad:
                added.counts["invalid"] = added.counts.get("invalid", 0) + len(bad)
                added.invalid = [*((line.where, line.problem) for line in bad[:INVALID_SHOWN]), *added.invalid]
            return added

        try:
            for batch in _batches(pages):
                under_way.append(pool.submit(add_batch, batch))
                if len(under_way) > 2 * CONNECTIONS:
                    finish_one()
        finally:
            while under_way:
                finish_one()
    return progress


def _batches(pages: Iterable[Page | BadLine]) -> Iterator[list[Page | BadLine]]:
    batch = []
    try:
        for page in pages:
            batch.append(page)
            if len(batch) == BATCH:
                yield batch
                batch = []
    except Exception:
        yield batch  # what came before a file turned out to be torn
        raise
    if batch:
        yield batch


@contextmanager
def _upkeep(url: str) -> Iterator[None]:
    """Moves what is added from the inbox to the queue meanwhile, so that it does not pile up where no worker runs."""
    done = threading.Event()

    def work() -> None:
        with store.connect(url, "recrawl add upkeep") as connection:
            while True:
                was_done = done.is_set()
                try:
                    moved = store.tick(connection, max_entries=STEP)
                except psycopg.errors.InsufficientPrivilege:
                    return  # somebody who may add but not tick: a worker or next_pages will
                if not moved:
                    if was_done:
                        return
                    done.wait(0.05)

    with ThreadPoolExecutor(DRAINS) as pool:
        drains = [pool.submit(work) for _ in range(DRAINS)]
        try:
            yield
        finally:
            done.set()
            for drain in drains:
                drain.result()
