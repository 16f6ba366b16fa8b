"""The rows about boost and policy, which a person sets for many pages: on the standard pages, while a crawler and a
worker run.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import LiteralString

from bench import data
from bench.crawler import Crawler, compared, crawling
from bench.measure import Backend, progress
from bench.stage import Stage
from bench.table import Line, at_most, note

PATTERN = r"/section-[0-4]/"  # half of the pages
QUIET = 20.0  # seconds
NEWEST: LiteralString = "from recrawl.allocation_run order by started_at desc limit 1"


def boost(stage: Stage) -> Iterator[Line]:
    """Until every value is in force; then the way back."""
    in_force: LiteralString = "select not exists (select from recrawl.boosts where in_force_at is null)"
    with _steered(stage, "rates", "opic", "allocate") as (backend, crawler):
        for says, times in (("boosted", 3.0), ("ended", None)):
            say = partial(backend.run, "select recrawl.boost(%s, %s)", [PATTERN, times])
            said, seconds, lines = _beside(crawler, say, partial(_until, backend, in_force), f"while pages are {says}")
            _check(backend, times, stage.pages)
            yield note(f"until {stage.pages:,} pages are looked at and half of them {says}", f"{seconds:.3g} s")
            yield at_most(f"the call of boost itself, pages are {says}", 1e3 * said, 500, "ms")
            yield from lines


def policy(stage: Stage) -> Iterator[Line]:
    """Another one on a live crawl: the worker notices, allocates and publishes its prices."""
    in_force: LiteralString = f"select policy = (select value from recrawl.settings where name = 'policy') {NEWEST}"
    with _steered(stage, "rates", "opic") as (backend, crawler):
        backend.run("select recrawl.set_setting('budget', %s)", [str(stage.pages / 10)])
        _until(backend, in_force)
        for name in ("uniform", "opt_polite"):
            say = partial(backend.run, "select recrawl.set_setting('policy', %s)", [name])
            when = f"while {name} comes into force"
            _, seconds, lines = _beside(crawler, say, partial(_until, backend, in_force), when)
            yield at_most(f"until {name} is in force for {stage.pages:,} pages", seconds, 60, "s")
            yield from lines


@contextmanager
def _steered(stage: Stage, *quiet: str) -> Iterator[tuple[Backend, Crawler]]:
    """The standard pages, a worker that leaves some jobs alone, and a crawler that has warmed up."""
    with stage.standard() as url:
        with Backend(url) as backend:
            for job in quiet:
                backend.run("select recrawl.set_setting(%s, 'none')", [f"{job}_every"])
            data.warm(backend.connection, stage.hosts)
        with Backend(url) as backend, _worker(url), crawling(url) as crawler:
            time.sleep(3 * QUIET)  # the first pops after a load cost more
            yield backend, crawler


def _beside(
    crawler: Crawler, say: Callable[[], object], in_force: Callable[[], None], when: str
) -> tuple[float, float, list[Line]]:
    """Seconds of the call, seconds until it is in force, and the cost of pops in this time compared with before."""
    progress(f"pops alone, then {when}")
    between = crawler.pops_while(lambda: time.sleep(QUIET))
    began = time.monotonic()
    say()
    said = time.monotonic() - began
    during = crawler.pops_while(in_force)
    seconds = time.monotonic() - began
    lines = [*compared(f"{when} ÷ before", during, between, 1.2)]
    longest, of_before = (1e3 * max(pop.seconds for pop in pops) for pops in (during, between))
    lines.append(note(f"the longest pop {when}", f"{longest:.3g} ms ({of_before:.3g} before)"))
    return said, seconds, lines


@contextmanager
def _worker(url: str) -> Iterator[None]:
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", "worker"],
        env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _until(backend: Backend, is_so: LiteralString) -> None:
    while not any(row[0] for row in backend.rows(is_so)):
        time.sleep(0.5)


def _check(backend: Backend, times: float | None, pages: int) -> None:
    ((boosted,),) = backend.rows("select count(*) from recrawl_internal.page where boost is not null")
    if boosted != (pages // 2 if times else 0):
        raise RuntimeError(f"{boosted} pages are boosted")
