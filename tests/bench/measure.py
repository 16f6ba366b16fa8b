"""CPU of a server process, buffers of a call, medians of interleaved calls."""

import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, LiteralString, ParamSpec, Self, TypeVar

import psycopg

Given = ParamSpec("Given")
Result = TypeVar("Result")
Row = tuple[Any, ...]


class Backend:
    """A connection, and how much CPU time the process that serves it has used."""

    def __init__(self, url: str) -> None:
        self.connection: psycopg.Connection[Row] = psycopg.connect(url, autocommit=True, application_name="bench")
        self.process = Path(f"/proc/{self.connection.info.backend_pid}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.connection.close()

    def cpu(self) -> float:
        """Milliseconds on a CPU so far. Waits until the process sleeps: only then is the kernel's figure up to date."""
        while _stat(self.process)[0] == "R":
            time.sleep(0)
        return int((self.process / "schedstat").read_text().split()[0]) / 1e6

    def cpu_of_server(self) -> float:
        """Seconds on a CPU of all the server's processes so far, those that have ended included."""
        server = _stat(self.process)[1]
        used = sum(map(int, _stat(Path("/proc", server))[11:15]))
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                stat = _stat(process)
                used += sum(map(int, stat[11:13])) if stat[1] == server else 0
        return used / os.sysconf("SC_CLK_TCK")

    def rows(self, query: LiteralString, arguments: Sequence[object] = ()) -> list[Row]:
        """Prepared, like any crawler's call that comes again and again."""
        return self.connection.execute(query, arguments, prepare=True).fetchall()

    def run(self, query: LiteralString, arguments: Sequence[object] = ()) -> None:
        self.connection.execute(query, arguments, prepare=True)

    def buffers(self, query: LiteralString, arguments: Sequence[object] = ()) -> tuple[int, int]:
        """Shared buffers that a query touches, including all functions that it calls, and the number of its rows."""
        explained = self.connection.execute(f"explain (analyze, buffers, timing off, format json) {query}", arguments)
        plan = explained.fetchall()[0][0][0]["Plan"]
        return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"], int(plan["Actual Rows"])


def cpu_of(pid: int) -> float:
    """Milliseconds on a CPU so far, of a process with all its threads."""
    return 1000 * sum(map(int, _stat(Path("/proc", str(pid)))[11:13])) / os.sysconf("SC_CLK_TCK")


def _stat(process: Path) -> list[str]:
    """Of /proc/…/stat what follows the command: state, parent, …; at 11 the time used, at 13 of ended children."""
    return (process / "stat").read_text().rpartition(") ")[2].split()


def must_see_the_server(url: str) -> None:
    """Stops unless the CPU time of the server's processes can be read here."""
    with Backend(url) as backend:
        if sys.platform != "linux":
            raise SystemExit("bench: the CPU time of the server is read from /proc, which only Linux has")
        try:
            command = (backend.process / "comm").read_text()
        except OSError:
            command = ""
        if "postgres" not in command:
            raise SystemExit("bench: the CPU time of the server is read from /proc: it must run on this machine")


class Samples:
    """CPU times in milliseconds, by name."""

    def __init__(self) -> None:
        self.taken: defaultdict[str, list[float]] = defaultdict(list)

    def take(
        self, name: str, backend: Backend, call: Callable[Concatenate[Backend, Given], Result],
        *arguments: Given.args, **options: Given.kwargs,
    ) -> Result:  # fmt: skip
        before = backend.cpu()
        result = call(backend, *arguments, **options)
        self.taken[name].append(backend.cpu() - before)
        return result

    def median(self, name: str) -> float:
        return statistics.median(self.taken[name])

    def sum_of_medians(self, *names: str) -> float:
        return sum(map(self.median, names))


def progress(message: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
