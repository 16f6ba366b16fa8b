"""The rows about looking at a large crawl: looks (views and functions), commands (recrawl status and its like)."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString

from bench.job_rows import Run
from bench.large import Large
from bench.measure import Backend, Samples
from bench.table import Line, at_most

ROUNDS = 11
VIEWS: tuple[LiteralString, ...] = (
    "crawl_status", "queue_status", "lease_status", "vitals", "vitals_by_hour", "late_hosts", "capped_hosts", "events",
    "job_run", "job_schedule", "allocation_run", "opic_run", "checkup", "settings",
)  # fmt: skip
# A page in each state. The host with a tenth of all pages has most of its pages before or behind these pages.
PAGES: dict[str, LiteralString] = {
    "due": "select page_id from queue where host_id = (select min(host_id) from host where head_due < now() "
           "and host_id > 100) order by due_at limit 1",
    "not due": "select page_id from queue where host_id = 104 order by due_at desc limit 1",
    "due on a large host": "select page_id from queue where host_id = 1 and due_at <= now() "
                           "order by due_at desc limit 1",
    "not due on a large host": "select page_id from queue where host_id = 1 order by due_at desc limit 1",
    "new": "select page_id from new_page where host_id > 100 limit 1",
    "new on a large host": "select page_id from new_page where host_id = 1 order by rank desc, page_id desc limit 1",
    "leased": "select page_id from recrawl.next_pages(1, lease => '10 minutes')",
    "on a blocked host": "select page_id from queue where host_id = 102 limit 1",
    "excluded": "select page_id from page where host_id = 103 limit 1",
}  # fmt: skip


def looks(large: Large) -> Iterator[Line]:
    """All rows of each view, as recrawl_reader."""
    with large.server() as url, Backend(url) as backend:
        backend.connection.execute("set search_path = recrawl_internal, pg_temp")
        if not backend.rows("select from recrawl.capped_hosts limit 1"):
            Run(large.environment, "allocate")
        backend.run("select take_vitals_at(now()), look_at_hosts(now())")
        backend.run("select recrawl.block_host(name) from host where host_id = 102")
        backend.run(
            "select recrawl.keep_out(array(select page_id from page where host_id = 103 order by page_id limit 1))"
        )
        pages = {state: int(backend.rows(query)[0][0]) for state, query in PAGES.items()}
        urls = {
            state: backend.rows("select url from page where page_id = %s", [id_])[0][0] for state, id_ in pages.items()
        }
        host = backend.rows("select name from host where host_id = 104")[0][0]
        backend.run("set role recrawl_reader")
        for view in VIEWS:
            yield _look(backend, view, 50, f"select * from recrawl.{view}")
            if not backend.rows(f"select from recrawl.{view} limit 1"):
                raise RuntimeError(f"{view} has no rows here: how long that takes says nothing")
        yield _look(backend, "host_status of a host", 50, "select * from recrawl.host_status where host = %s", host)
        yield _look(
            backend, "page_status of a page", 50, "select * from recrawl.page_status where page_id = %s", pages["due"]
        )
        yield _look(backend, "page_of(url)", 10, "select recrawl.page_of(%s)", urls["due"])
        explained: LiteralString = "select * from recrawl.explain_page(%s)"
        for state, page in pages.items():
            for argument in (page, urls[state]):
                what = f"explain_page({'url' if argument != page else 'page_id'}), {state}"
                yield _look(backend, what, 10, explained, argument)
        yield _look(backend, "explain_page(url), unknown", 10, explained, f"http://{host}/nowhere")
        backend.run("reset role")
        backend.run("select recrawl.unblock_host(name) from host where host_id = 102")


def _look(backend: Backend, what: str, bound: float, query: LiteralString, *arguments: object) -> Line:
    """By the CPU of the server process; the time until the rows are here has what else the machine does in it."""
    samples, seconds = Samples(), []
    for _ in range(ROUNDS):
        started = time.monotonic()
        rows = samples.take(what, backend, Backend.rows, query, arguments)
        seconds.append(time.monotonic() - started)
    detail = (
        f" (first {samples.taken[what][0]:.3g}; {len(rows):,} rows here in {statistics.median(seconds) * 1e3:.3g} ms)"
    )
    return at_most(f"CPU of {what}", samples.median(what), bound, "ms", detail)


@dataclass(frozen=True)
class Ran:
    cpu: float  # seconds
    wall: float


def commands(large: Large) -> Iterator[Line]:
    """Each in a process of its own."""
    with large.server() as url, Backend(url) as backend:
        page = str(backend.rows("select max(page_id) from recrawl_internal.page")[0][0])
        for words in (["--help"], ["status"], ["explain", page], ["doctor"], ["jobs"]):
            yield from _command(" ".join(words[:1]), [_ran(large, words) for _ in range(ROUNDS)])


def _command(name: str, runs: Sequence[Ran]) -> Iterator[Line]:
    yield at_most(f"CPU of recrawl {name}", statistics.median(run.cpu for run in runs), 0.3, "s")
    walls = sorted(run.wall for run in runs)
    yield at_most(f"time of recrawl {name}", statistics.median(walls), 0.3, "s", f" ({walls[0]:.3g} … {walls[-1]:.3g})")


def _ran(large: Large, words: Sequence[str]) -> Ran:
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", *words],
        env=large.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    said = process.stderr.read() if process.stderr else b""
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if said:
        raise RuntimeError(said.decode())
    return Ran(used.ru_utime + used.ru_stime, time.monotonic() - started)
