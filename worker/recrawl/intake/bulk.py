"""Streams pages into the database over several connections. It does not read files or write to the screen."""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress

import psycopg

from recrawl import store
from recrawl.intake.importers import BadLine
from recrawl.intake.urls import clean
from recrawl.store.calls import AddedPages, PageToAdd

BATCH = 1000
BATCH_CHARACTERS = 1_000_000  # of URLs and their metadata. A batch ends with the page that exceeds this
CONNECTIONS = 4
# While four connections add pages, one thread cannot move them from the inbox to the queue fast enough. Nor can two
# with a small STEP: a call of tick reads 16 times as many entries as it moves if many wait (sql/upkeep/drain.sql).
DRAINS, STEP = 2, 20_000


def add(
    url: str,
    pages: Iterable[PageToAdd | BadLine],
    watch: Callable[[AddedPages], None] = lambda _: None,
    progress: AddedPages | None = None,
) -> AddedPages:
    """Adds all pages, every batch in a transaction of its own. Calls `watch` with the progress after a batch.

    If `pages` or the database raises, or the user interrupts, the pages that were added stay, and the `progress` given
    counts them. It is safe to add the same pages again.
    """
    progress = progress or AddedPages()
    counting = threading.Lock()
    under_way: deque[Future[None]] = deque()

    with ExitStack() as stack:
        connections = [stack.enter_context(store.connect(url, "recrawl add")) for _ in range(CONNECTIONS)]
        free = list(connections)
        stack.enter_context(_upkeep(url))
        pool = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))

        def add_batch(batch: list[PageToAdd | BadLine]) -> None:
            """Adds and counts in a thread, so that a user's interrupt cannot come between commit and count."""
            pages = [item._replace(url=clean(item.url)) for item in batch if isinstance(item, PageToAdd)]
            bad = [(item.where, item.problem) for item in batch if isinstance(item, BadLine)]
            connection = free.pop()
            try:
                for added in _added(connection, pages):
                    with counting:
                        progress.take(added)
                with counting:
                    progress.take(AddedPages(Counter(invalid=len(bad)) if bad else Counter(), bad))
            finally:
                free.append(connection)

        try:
            for batch in _batches(pages):
                under_way.append(pool.submit(add_batch, batch))
                if len(under_way) > 2 * CONNECTIONS:
                    under_way.popleft().result()
                    watch(progress)
            while under_way:
                under_way.popleft().result()
                watch(progress)
        except Exception:
            pool.shutdown()  # first adds the batches that were read
            raise
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for connection in connections:  # their present transactions are rolled back
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=1)
            raise
    return progress


# Errors that the data causes, not the state of the database.
REFUSALS = (
    psycopg.DataError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
    RecursionError,  # in writing deep JSON
)


def _added(connection: store.Connection, pages: list[PageToAdd]) -> Iterator[AddedPages]:
    """Adds the pages. If the database refuses a batch, its halves are tried alone, until the bad page is found. That
    page counts as invalid."""
    if not pages:
        return
    try:
        yield store.calls.add_pages(connection, pages)
    except REFUSALS as error:
        if len(pages) == 1:
            yield AddedPages(Counter(invalid=1), [(pages[0].url, str(error).partition("\n")[0])])
        else:
            half = len(pages) // 2
            yield from _added(connection, pages[:half])
            yield from _added(connection, pages[half:])
    except psycopg.OperationalError:
        if connection.broken:
            yield AddedPages(Counter(unanswered=len(pages)))
        raise


def _batches(pages: Iterable[PageToAdd | BadLine]) -> Iterator[list[PageToAdd | BadLine]]:
    batch, characters = list[PageToAdd | BadLine](), 0
    try:
        for page in pages:
            batch.append(page)
            characters += len(page[0]) + (len(str(page.meta)) if isinstance(page, PageToAdd) and page.meta else 0)
            if len(batch) == BATCH or characters > BATCH_CHARACTERS:
                yield batch
                batch, characters = [], 0
    except Exception:
        yield batch  # the pages before the place at which the file is damaged
        raise
    if batch:
        yield batch


@contextmanager
def _upkeep(url: str) -> Iterator[None]:
    """Moves added pages from the inbox to the queue while pages are added, so that they do not pile up if no worker
    runs."""
    done, given_up = threading.Event(), threading.Event()

    def work() -> None:
        with store.connect(url, "recrawl add upkeep") as connection:
            while not given_up.is_set():
                was_done = done.is_set()
                try:
                    moved = store.calls.tick(connection, max_entries=STEP)
                except psycopg.errors.InsufficientPrivilege:
                    return  # this login may add but not tick; a worker or next_pages will do it
                if not moved:
                    if was_done:
                        return
                    done.wait(0.05)

    with ThreadPoolExecutor(DRAINS) as pool:
        drains = [pool.submit(work) for _ in range(DRAINS)]
        try:
            yield
        except Exception:
            done.set()
            raise
        except BaseException:
            given_up.set()  # the worker or next_pages moves the rest
            done.set()
            raise
        done.set()
        for drain in drains:
            drain.result()
    # Once more alone. A tick notes which classes of new pages exist (a class is a range of values). If two ticks note
    # this at the same time, one overwrites what the other noted. next_pages finds no page of a class that was lost in
    # this way until the next tick.
    work()
