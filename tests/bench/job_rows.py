"""The rows about the jobs rates and allocate: filter, allocate; beside (pops and upkeep while batch jobs run)."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median, quantiles
from typing import LiteralString, Self

from bench import calls, data, server
from bench.crawler import Crawler, Pop, compared, crawling
from bench.large import Large
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, at_most, note

ROUNDS = 3
PAUSE = 20.0  # seconds between two runs
PAGES: LiteralString = (
    "select page_id, host_id, value, rate, due_on, planned_interval from recrawl_internal.page_to_allocate"
)
NEVER_ALLOCATED: tuple[LiteralString, ...] = (
    "update recrawl_internal.page set frequency = null where frequency is not null",
    "update recrawl_internal.host_terms"
    " set price = null, ties = null, min_frequency = null, is_capped = null, frequency = null",
    "vacuum (analyze) recrawl_internal.page",
    "vacuum (analyze) recrawl_internal.host_terms",
    "checkpoint",
)
LEARNT_NOTHING: LiteralString = """
    create or replace function recrawl_internal.learnt(
        had_changes float8, had_days float8, prior_changes float8, prior_days float8,
        days float8, planned_days float8, counted int, is_changed boolean, age_days float8
    ) returns table (seen_changes float8, seen_days float8, worth float8)
    language sql immutable parallel safe rows 1 as 'select had_changes, had_days, days where days > 0 offset 0'
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


def allocate(large: Large) -> Iterator[Line]:
    """From end to end in a process of its own, while a crawler pops and reports."""
    with large.server() as url, Backend(url) as backend:
        backend.run("select recrawl.set_setting('budget', %s)", [str(large.pages)])
        copied, read = [], []
        for _ in range(3):
            copied.append(_seconds(lambda: backend.run(f"copy ({PAGES}) to '/dev/null' (format binary)")))
            read.append(_seconds(lambda: _python(f"from recrawl.store import reads; reads.pages_to_allocate({url!r})")))
        start = _seconds(lambda: _python("import numpy, recrawl.store"))
        share = (median(read) - start) / median(copied)
        yield at_most(
            f"reading {large.pages:,} pages ÷ COPY on the server", share, 2.5, "×", f" ({median(read):.3g} s)"
        )

        progress("as if there had been no allocation")
        for statement in NEVER_ALLOCATED:
            backend.run(statement)
        with crawling(url) as crawler:
            progress("the first allocation")
            used = backend.cpu_of_server()
            runs: list[Run] = []
            pops = crawler.pops_while(lambda: runs.append(Run(large.environment, "allocate")))
            (first,), used = runs, backend.cpu_of_server() - used
            yield note("the first allocation, until every frequency is in force", f"{first.in_force:.3g} s")
            yield at_most("and every page that is due too late came forward", first.seconds, 150, "s", first.steps)
            yield note("CPU of the server meanwhile, and of the job", f"{used:.3g} and {first.cpu:.3g} s")
            waits = [pop.seconds for pop in pops]
            yield note("pops meanwhile", f"{len(waits):,}, median {median(waits) * 1e3:.3g} ms")
            progress("one that brings up to date what was reported meanwhile")
            Run(large.environment, "allocate")
            crawler.pause()
            wal = backend.rows("select pg_current_wal_lsn()")[0][0]
            progress("one that moves little")
            used = backend.cpu_of_server()
            quiet = Run(large.environment, "allocate")
            used = backend.cpu_of_server() - used
            written = backend.rows("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s)::float8 / 1e6", [wal])[0][0]
        name = "an allocation that moves little, until its prices are in force"
        yield at_most(name, quiet.in_force, 30, "s", quiet.steps)
        yield note("CPU of the server meanwhile, and of the job", f"{used:.3g} and {quiet.cpu:.3g} s")
        yield at_most("publishing its prices", quiet.published, 5, "s")
        yield at_most("WAL it writes", float(written), 50, "MB")
        yield at_most("memory of its process at most", max(first.memory, quiet.memory), 2.5, "GB")


def beside(large: Large) -> Iterator[Line]:
    """Pops, and the upkeep of a worker, while a job runs, and between two runs, in turns."""
    with large.server() as url, _nothing_scheduled(url), server.worker(url), crawling(url) as crawler:
        for job in ("allocate", "opic"):
            yield from _beside(url, crawler, _Ticks(url), job)


def _beside(url: str, crawler: Crawler, ticks: "_Ticks", job: str) -> Iterator[Line]:
    during: list[Pop] = []
    between: list[Pop] = []
    with ticks:
        for number in range(ROUNDS):
            progress(f"{job}, {number + 1} of {ROUNDS}")
            between += crawler.pops_while(lambda: time.sleep(PAUSE))
            with ticks.counting():
                during += crawler.pops_while(lambda: _as_a_worker(url, job))
    longest, usual = max(ticks.gaps), quantiles(ticks.gaps, n=100)[98]
    detail = f" (99 % of {len(ticks.gaps):,} within {usual:.3g})"
    yield at_most(f"from one tick of upkeep to the next while {job} runs, at most", longest, 0.5, "s", detail)
    yield from compared(f"while {job} runs ÷ between", during, between, 1.2)


def _as_a_worker(url: str, job: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "recrawl.jobs.child", job],
        env=os.environ | {"DATABASE_URL": url}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdin and process.stdout
        print("run", file=process.stdin, flush=True)
        outcome = json.loads(process.stdout.readline())
        if not outcome["ok"]:
            raise RuntimeError(f"the job {job} failed: {outcome['said']}")


class Run:
    """A run of a batch job as a process; how long its steps took, in seconds. It can be stopped at a step."""

    def __init__(self, environment: Mapping[str, str], job: str, stop_at: str | None = None) -> None:
        started = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-m", "recrawl", "run", job],
            env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.began: dict[str, float] = {}
        said = ""
        for line in process.stderr or ():
            said = line.strip()
            if said == stop_at and said not in self.began:
                process.send_signal(signal.SIGINT)
            self.began.setdefault(said, time.monotonic() - started)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.memory, self.cpu = (
            time.monotonic() - started,
            used.ru_maxrss / 1e6,
            used.ru_utime + used.ru_stime,
        )
        if process.returncode and stop_at not in self.began:
            raise RuntimeError(f"the job {job} failed: {said}")

    @property
    def published(self) -> float:
        return self.in_force - self.began["writing the prices"]

    @property
    def in_force(self) -> float:
        return self.began["making pages due earlier"]

    @property
    def steps(self) -> str:
        ends = [*list(self.began.values())[1:], self.seconds]
        steps = [f"{step} {end - begin:.3g}" for (step, begin), end in zip(self.began.items(), ends, strict=True)]
        return f" ({', '.join(steps)}; {self.cpu:.3g} of its CPU)"


class _Ticks(threading.Thread):
    """Sees each tick of the worker's upkeep, and how long after the one before it came, in seconds."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url = url
        self.gaps: list[float] = []
        self.counts, self.done = threading.Event(), threading.Event()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.join()

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.counts.set()
        yield
        self.counts.clear()

    def run(self) -> None:
        with Backend(self.url) as backend:
            last: float | None = None
            while not self.done.wait(0.02):
                ((ticked,),) = backend.rows("select last_value / 1e6::float8 from recrawl_internal.worker_ticked")
                if last is not None and ticked > last and self.counts.is_set():
                    self.gaps.append(ticked - last)
                last = ticked


@contextmanager
def _nothing_scheduled(url: str) -> Iterator[None]:
    """The worker does its small jobs only; afterwards all is as it was."""
    with Backend(url) as backend:
        before = backend.rows("select name, value from recrawl.settings where name ~ '^(rates|opic|allocate)_every$'")
        for name, _ in before:
            backend.run("select recrawl.set_setting(%s, 'none')", [name])
        try:
            yield
        finally:
            for name, value in before:
                backend.run("select recrawl.set_setting(%s, %s)", [name, value or "none"])


def _python(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def _seconds(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started
