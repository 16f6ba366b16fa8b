"""The rows about the worker on a large crawl: worker (at rest), start (recrawl up), minute (its small jobs)."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import LiteralString

from bench.job_rows import Run
from bench.large import Large
from bench.measure import Backend, Samples, progress
from bench.table import Line, at_most, note

TICKS = os.sysconf("SC_CLK_TCK")
SETTLES = 90.0  # seconds: it looks for batch jobs after a minute
AT_REST = 390.0  # seconds: more than from one look at all hosts to the next
LEADER: LiteralString = "select pid from recrawl_internal.leader where pid is not null"
# Of the minutes that vitals are taken of none was before.
SMALL_JOBS: dict[str, LiteralString] = {
    "vitals, once a minute": "select recrawl_internal.take_vitals_at(now() + %s * interval '1 minute')",
    "the look at all hosts, every five minutes": "select recrawl_internal.look_at_hosts(now())",
    "retention, once an hour": "select recrawl_internal.forget_history()",
    "the look for what is due, once a second": "select * from recrawl_internal.due_jobs()",
    "upkeep, 2.5 times a second": "select recrawl_internal.tick(200, 2000)",
}


def worker(large: Large) -> Iterator[Line]:
    """While nobody crawls, and after each batch job was done."""
    with large.server() as url, Backend(url) as backend:
        for job in ("rates", "opic", "allocate"):
            progress(f"the job {job}")
            Run(large.environment, job)
        postmaster = _parent(int(backend.process.name))
        with _started(large, "worker") as process:
            progress("a worker settles")
            time.sleep(SETTLES)
            progress("a worker at rest")
            before, of_server, began = _cpu(process.pid), _cpu(postmaster), time.monotonic()
            time.sleep(AT_REST)
            seconds = time.monotonic() - began
            used, by_server = _cpu(process.pid) - before, _cpu(postmaster) - of_server
            memory, peak = _memory(process.pid, "VmRSS"), _memory(process.pid, "VmHWM")
            sessions = backend.rows("select pid, application_name from pg_stat_activity "
                                    "where application_name like 'recrawl%%'")  # fmt: skip
            theirs = ", ".join(f"{name} {_memory(pid, 'RssAnon'):.3g}" for pid, name in sessions)
        yield at_most("CPU of an idle worker", 100 * used / seconds, 1, "%", f" (over {seconds:.0f} s)")
        yield note("CPU of all server processes beside it", f"{100 * by_server / seconds:.3g} %")
        yield at_most("memory of an idle worker", memory, 200, "MB", f" ({peak:.3g} at most)")
        yield note("memory of its own of each of its server processes", f"{theirs} MB")


def minute(large: Large) -> Iterator[Line]:
    """The CPU that the worker needs: in its own process, and on the server."""
    with large.server() as url, Backend(url) as backend:
        samples = Samples()
        for number in range(7):
            for name, query in SMALL_JOBS.items():
                samples.take(name, backend, Backend.rows, query, [number] if "%s" in query else [])
    for name, taken in samples.taken.items():
        yield note(f"CPU of {name}", f"{statistics.median(taken):.3g} ms ({min(taken):.3g} … {max(taken):.3g})")


def start(large: Large) -> Iterator[Line]:
    """recrawl up on what is there, from nothing until the worker is at work."""
    with large.server():
        pass
    seconds = []
    for _ in range(5):
        began = time.monotonic()
        with _started(large, "up"):
            seconds.append(time.monotonic() - began)
    detail = f" ({min(seconds):.3g} … {max(seconds):.3g})"
    yield at_most("start of recrawl up until the worker works", statistics.median(seconds), 3, "s", detail)


def takeover(large: Large) -> Iterator[Line]:
    """Of two workers the one that does the batch jobs is killed, until the other does them."""
    seconds = []
    with large.server() as url, Backend(url) as backend:
        for _ in range(5):
            with _started(large, "worker") as first:
                led = _next_leader(backend)
                with _started(large, "worker"):
                    first.kill()
                    began = time.monotonic()
                    _next_leader(backend, led)
                    seconds.append(time.monotonic() - began)
    detail = f" ({min(seconds):.3g} … {max(seconds):.3g})"
    yield at_most("from kill -9 of a worker until another does its jobs, at most", max(seconds), 5, "s", detail)


def _next_leader(backend: Backend, former: int | None = None) -> int:
    while True:
        for (pid,) in backend.rows(LEADER):
            if pid != former:
                return int(pid)
        time.sleep(0.01)


@contextmanager
def _started(large: Large, command: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", command],
        env=large.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout
        for line in process.stdout:
            if "at work" in line:
                break
        else:
            raise RuntimeError(f"recrawl {command} ended with {process.wait()}")
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def _parent(pid: int) -> int:
    return int(_stat(pid)[1])


def _cpu(pid: int) -> float:
    """Seconds so far, of its children too, whether they have ended or not."""
    children = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and _is_child(int(p.name), pid)]
    return sum(map(int, _stat(pid)[11:15])) / TICKS + sum(sum(map(int, _stat(c)[11:13])) / TICKS for c in children)


def _is_child(pid: int, parent: int) -> bool:
    try:
        return _parent(pid) == parent
    except OSError:
        return False


def _memory(pid: int, kind: str) -> float:
    """MB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{kind}:")) / 1e3
