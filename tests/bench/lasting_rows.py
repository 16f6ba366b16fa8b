"""The rows about what happens in the long run: snapshot, checkpoint, bloat."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from functools import partial
from itertools import pairwise

import psycopg

from bench import calls, data, server
from bench.crawler import compared, crawling
from bench.crew import Crew
from bench.large import Large
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, at_most

# ----------------------------------------------------------------------------------------------------------- snapshot

EDGE = 100  # pops at the start, and at the end, that are compared
PARTS = ("start", "end")


@contextmanager
def held_snapshot(url: str) -> Iterator[None]:
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from recrawl_internal.host")
        yield


def snapshot(stage: Stage) -> Iterator[Line]:
    pops = int(400_000 * stage.scale) // calls.BATCH
    for shape, ahead in calls.SHAPES_OF_SHORT_GAP.items():
        for has_worker in (True, False):
            with ExitStack() as stack:
                url = stack.enter_context(stage.standard())
                if has_worker:
                    stack.enter_context(server.worker(url))
                with Backend(url) as backend:
                    backend.run("select recrawl.set_setting('default_gap', %s)", [calls.SHORT_GAP])
                    data.warm(backend.connection, stage.hosts)
                backend = stack.enter_context(Backend(url))
                for _ in range(EDGE):
                    calls.ref(backend)
                    calls.cycle(backend, ahead)
                stack.enter_context(held_snapshot(url))
                samples, horizons = Samples(), []
                for number in range(pops):
                    part = "start" if number < EDGE else "end" if number >= pops - EDGE else "middle"
                    samples.take(f"speed, {part}", backend, calls.arithmetic)
                    samples.take(f"ref, {part}", backend, calls.ref)
                    pages = samples.take(f"pop, {part}", backend, calls.pop, ahead)
                    if len(pages) < calls.BATCH:
                        raise RuntimeError(f"a pop got {len(pages)} pages")
                    samples.take(f"report, {part}", backend, calls.report_arrays, calls.fetched(pages))
                    horizons += backend.rows("select last_value from recrawl_internal.host_horizon")
            moves = sum(after != before for before, after in pairwise(horizons))
            how = f"{shape}, {'a worker' if has_worker else 'no worker'}"
            for verb, bound in (("pop", 1.2), ("report", 1.2)):
                start, end = (samples.median(f"{verb}, {part}") for part in PARTS)
                speed = samples.median("speed, end") / samples.median("speed, start")
                ref = samples.median("ref, start")
                detail = f" ({start / ref:.3g} and {end / speed / ref:.3g} × ref; {moves} moves of the horizon)"
                yield at_most(
                    f"{verb} CPU after ÷ before {pops * calls.BATCH:,} pages under a held snapshot, {how}",
                    end / speed / start, bound, "×", detail,
                )  # fmt: skip


# --------------------------------------------------------------------------------------------------------- checkpoint

AFTER = 10.0  # seconds: what is first changed after a checkpoint goes to the WAL as a whole block
CHECKPOINTS = 3


def checkpoint(large: Large) -> Iterator[Line]:
    """Pops before and after each, of pages all over a large table."""
    with large.server() as url, crawling(url) as crawler, Backend(url) as backend:
        progress("pops until nothing is cold")
        time.sleep(6 * AFTER)
        before, after = [], []
        for _ in range(CHECKPOINTS):
            before += crawler.pops_while(lambda: time.sleep(AFTER))
            backend.run("checkpoint")
            after += crawler.pops_while(lambda: time.sleep(AFTER))
            time.sleep(2 * AFTER)
    yield from compared(f"in the {AFTER:g} s after a checkpoint ÷ before", after, before, 1.5)


# -------------------------------------------------------------------------------------------------------------- bloat

CRAWLERS = 4
TABLES = ("queue", "host", "page", "lease")
CHUNK = 2500  # calls of each crawler between two looks at the sizes
FLAT = 1.1
MB = 2**20


def bloat(stage: Stage) -> Iterator[Line]:
    """Six days of a crawl that visits every page once a day, at times of its own and as fast as the server can."""
    # Ten pages of a host are due together, and all these groups one after the other.
    group = f"(page_id / {stage.hosts} % 5) * {stage.hosts} + host_id"
    due = f"now() + ({group}) * interval '1 day' / {stage.hosts * 5} + random() * interval '5 s'".replace("%", "%%")
    at: dict[int, dict[str, int]] = {}
    with stage.loaded(due) as url, Backend(url) as backend, Crew(url, CRAWLERS) as crew:
        ((start,),) = backend.rows("select min(due_at) from recrawl_internal.page")
        backend.run("create sequence public.calls")
        work = partial(next_of_day, start=start + timedelta(minutes=2), pages=stage.pages)
        at[0] = sizes(backend)
        popped = 0
        for days in (3, 6):
            while popped < days * stage.pages:
                popped += crew.do(work, int(CHUNK * stage.scale))
                now = sizes(backend)
                progress(f"{popped:,} pages popped; " + ", ".join(f"{part} {now[part] / MB:.1f} MB" for part in now))
            at[days] = now
    for part in at[0]:
        fresh, after_3, after_6 = (at[days][part] for days in (0, 3, 6))
        detail = f" ({fresh / MB:.3g} MB fresh, {after_3 / MB:.3g} and {after_6 / MB:.3g} after 3 and 6 rounds)"
        if not part.startswith("lease"):  # which is empty when fresh
            bound = 1.6 if part.endswith("heap") else 2.0
            yield at_most(f"{part} after {6 * stage.pages:,} pages popped ÷ fresh", after_6 / fresh, bound, "×", detail)
            detail = ""
        yield at_most(f"{part}, the same ÷ after {3 * stage.pages:,}", after_6 / after_3, FLAT, "×", detail)


def next_of_day(backend: Backend, start: datetime, pages: int) -> int:
    ((number,),) = backend.rows("select nextval('public.calls')")
    t = start + timedelta(days=number * calls.BATCH / pages)
    popped = calls.pop_at(backend, t, calls.TEN_A_HOST)
    calls.report_arrays_at(backend, t, calls.fetched(popped))
    return len(popped)


def sizes(backend: Backend) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in TABLES:
        ((heap, indexes),) = backend.rows(
            "select pg_relation_size(t), pg_indexes_size(t) from cast('recrawl_internal.' || %s as regclass) t", [table]
        )
        found |= {f"{table} heap": heap, f"{table} indexes": indexes}
    return found
