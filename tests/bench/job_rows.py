"""The rows about rates and allocation in the database: filter, allocate."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

from bench import calls, data
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, at_most, note

LARGE = 10  # times the standard pages
PAGES: LiteralString = "select page_id, host_id, value, rate, frequency from recrawl_internal.page_to_allocate"
LEARNT_NOTHING: LiteralString = """
    create or replace function recrawl_internal.learnt(
        had_changes float8, had_days float8, prior_changes float8, prior_days float8,
        days float8, counted int, is_changed boolean, age_days float8
    ) returns table (seen_changes float8, seen_days float8)
    language sql immutable parallel safe rows 1 as 'select had_changes, had_days where days > 0 offset 0'
"""


def report_with_filter(stage: Stage) -> Iterator[Line]:
    """The same report with the function that learns and with one that does not, in turns; then with a price on top."""
    with stage.standard() as url, Backend(url) as backend:
        data.warm(backend.connection, stage.hosts)
        for name, share in _reports(stage, backend).items():
            yield at_most(f"CPU of {name}(100) with the filter ÷ without", share, 1.3, "×")
        for name, share in _reports(stage, backend, priced=True).items():
            yield note(f"CPU of {name}(100) with the filter and a price ÷ without either", f"{share:.3g} ×")


def _reports(stage: Stage, backend: Backend, priced: bool = False) -> dict[str, float]:
    """CPU of each twin of report that learns ÷ of one that does not."""
    learns = str(backend.rows("select pg_get_functiondef('recrawl_internal.learnt'::regproc)")[0][0])
    samples = Samples()
    for _ in range(max(2, stage.rounds(12))):
        for which in ("with", "without"):
            backend.connection.execute(LEARNT_NOTHING if which == "without" else learns.encode())
            if priced:
                backend.run("update recrawl_internal.host_terms set price = %s where host_id = 0",
                            [0.05 if which == "with" else None])  # fmt: skip
            for number in range(-5, 15):  # at first the functions are planned anew
                for name, report in calls.REPORTS.items():
                    outcomes = calls.fetched(calls.pop(backend, calls.TEN_A_HOST))
                    samples.take(f"{name} {which if number >= 0 else 'warming up'}", backend, report, outcomes)
    backend.connection.execute(learns.encode())
    return {name: samples.median(f"{name} with") / samples.median(f"{name} without") for name in calls.REPORTS}


def allocate(stage: Stage) -> Iterator[Line]:
    """From end to end in a process of its own, while a crawler pops and reports."""
    pages = LARGE * stage.pages
    with stage.empty() as url, Backend(url) as backend:
        progress(f"loading {pages:,} pages on {pages // data.PAGES_A_HOST:,} hosts")
        data.load_pages(backend.connection, pages // data.PAGES_A_HOST, pages)
        backend.run(
            "update recrawl_internal.page set value = 0.1 + random(), seen_changes = 5 * random(), seen_days = 5"
        )
        backend.run("vacuum (analyze) recrawl_internal.page")
        backend.run("select recrawl.set_setting('budget', %s)", [str(pages)])
        backend.run("checkpoint")

        copied, read = [], []
        for _ in range(3):
            copied.append(_seconds(lambda: backend.run(f"copy ({PAGES}) to '/dev/null' (format binary)")))
            read.append(_seconds(lambda: _python(f"from recrawl import store; store.pages_to_allocate({url!r})")))
        start = _seconds(lambda: _python("import numpy, recrawl.store"))
        share = (sorted(read)[1] - start) / sorted(copied)[1]
        yield at_most(f"reading {pages:,} pages ÷ COPY on the server", share, 2.5, "×", f" ({sorted(read)[1]:.3g} s)")

        progress("the first allocation: every frequency moves")
        first = Allocation(url)
        yield note("the first allocation, every frequency written", f"{first.seconds:.3g} s")
        Allocation(url)  # what was reported meanwhile is brought up to date
        with _crawler(url) as crawler:
            time.sleep(3)
            alone = crawler.median()
            wal = backend.rows("select pg_current_wal_lsn()")[0][0]
            crawler.pause()
            quiet = Allocation(url)
            written = backend.rows("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s)::float8 / 1e6", [wal])[0][0]
            crawler.resume()
            before = len(crawler.seconds)
            busy = Allocation(url)
            beside = sorted(crawler.seconds[before:])[len(crawler.seconds[before:]) // 2]
        steps = f" (reading {quiet.read:.3g}, computing {quiet.computed:.3g}, publishing {quiet.published:.3g})"
        yield note("allocation that moves little, end to end", f"{quiet.seconds:.3g} s{steps}")
        yield at_most("publishing it", quiet.published, 5, "s")
        yield at_most("WAL it writes", float(written), 50, "MB")
        yield at_most("memory of its process at most", max(quiet.memory, busy.memory), 2.5, "GB")
        yield at_most("median pop during an allocation ÷ before", beside / alone, 1.2, "×")


class Allocation:
    """One allocation as a process; when it said what."""

    def __init__(self, url: str) -> None:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "recrawl", "run", "allocate"],
            env=os.environ | {"DATABASE_URL": url}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        said: dict[str, float] = {}
        self.memory = 0.0
        peak = threading.Thread(target=self._watch, args=(process,), daemon=True)
        peak.start()
        for line in process.stderr or ():
            said.setdefault(line.split()[0], time.monotonic() - started)
        if process.wait():
            raise RuntimeError("the allocation failed")
        self.seconds = time.monotonic() - started
        self.read = said["allocating"] - said["reading"]
        self.computed = said["publishing"] - said["allocating"]
        self.published = self.seconds - said["publishing"]

    def _watch(self, process: subprocess.Popen[str]) -> None:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            for line in status.read_text().splitlines() if status.exists() else ():
                if line.startswith("VmHWM"):
                    self.memory = max(self.memory, int(line.split()[1]) / 1e6)
            time.sleep(0.05)


class _Crawler(threading.Thread):
    """Pops and reports, ten times a second; how long each pop took."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.seconds: list[float] = []
        self.done, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def run(self) -> None:
        with Backend(self.url) as backend:
            while not self.done.wait(0.05):
                self.goes_on.wait()
                started = time.monotonic()
                pages = calls.pop(backend, calls.ONE_A_HOST)
                self.seconds.append(time.monotonic() - started)
                calls.report_arrays(backend, calls.fetched(pages))

    def median(self) -> float:
        return float(sorted(self.seconds)[len(self.seconds) // 2])

    def pause(self) -> None:
        self.goes_on.clear()

    def resume(self) -> None:
        self.goes_on.set()


@contextmanager
def _crawler(url: str) -> Iterator[_Crawler]:
    crawler = _Crawler(url)
    crawler.start()
    try:
        yield crawler
    finally:
        crawler.resume()
        crawler.done.set()
        crawler.join()


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _seconds(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started
