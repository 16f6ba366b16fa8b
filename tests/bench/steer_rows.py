"""The row about what a person says of many pages: boost, on the standard pages, beside a crawler and a worker."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from bench import data
from bench.job_rows import crawling
from bench.measure import Backend, progress
from bench.stage import Stage
from bench.table import Line, at_most, note

PATTERN = r"/section-[0-4]/"  # half of the pages
QUIET = 20.0  # seconds


def boost(stage: Stage) -> Iterator[Line]:
    """Until every value is in force; then the way back."""
    with stage.standard() as url:
        with Backend(url) as backend:
            for job in ("rates", "opic", "allocate"):
                backend.run("select recrawl.set_setting(%s, 'none')", [f"{job}_every"])
            data.warm(backend.connection, stage.hosts)
        with Backend(url) as backend, _worker(url), crawling(url) as crawler:
            time.sleep(3 * QUIET)  # the first pops after a load cost more
            for says, times in (("boosted", 3.0), ("ended", None)):
                progress(f"pops alone, before pages are {says}")
                between = crawler.pops_while(lambda: time.sleep(QUIET))
                progress(f"half of {stage.pages:,} pages are {says}")
                began = time.monotonic()
                backend.run("select recrawl.boost(%s, %s)", [PATTERN, times])
                said = time.monotonic() - began
                during = crawler.pops_while(lambda: _until_in_force(backend))
                seconds = time.monotonic() - began
                _check(backend, times, stage.pages)
                yield note(f"until {stage.pages:,} pages are looked at and half of them {says}", f"{seconds:.3g} s")
                yield at_most(f"the call of boost itself, pages are {says}", 1e3 * said, 500, "ms")
                for what, name in (("seconds", "time"), ("cpu", "CPU")):
                    busy, quiet = (median(getattr(pop, what) for pop in pops) for pops in (during, between))
                    detail = f" ({busy * 1e3:.3g} and {quiet * 1e3:.3g} ms)"
                    told = f"median {name} of a pop while pages are {says} ÷ before"
                    yield at_most(told, busy / quiet, 1.2, "×", detail)
                longest, of_before = (1e3 * max(pop.seconds for pop in pops) for pops in (during, between))
                yield note(f"the longest pop while pages are {says}", f"{longest:.3g} ms ({of_before:.3g} before)")


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


def _until_in_force(backend: Backend) -> None:
    while backend.rows("select from recrawl.boosts where in_force_at is null"):
        time.sleep(0.5)


def _check(backend: Backend, times: float | None, pages: int) -> None:
    ((boosted,),) = backend.rows("select count(*) from recrawl_internal.page where boost is not null")
    if boosted != (pages // 2 if times else 0):
        raise RuntimeError(f"{boosted} pages are boosted")
