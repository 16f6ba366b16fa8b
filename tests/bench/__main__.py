"""`python -m bench` measures every row, `python -m bench cycle idle` those two; --list says which there are."""

import argparse
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from bench import cpu_rows, job_rows, lasting_rows, rate_rows, server
from bench.measure import must_see_the_server, progress
from bench.stage import STANDARD_PAGES, Stage
from bench.table import Line, formatted

ROWS: dict[str, tuple[Callable[[Stage], Iterator[Line]], str]] = {
    "cycle": (cpu_rows.cycle, "CPU of a pop and its report"),
    "idle": (cpu_rows.idle, "nothing ready; 99 % not due"),
    "add": (rate_rows.add, "URLs taken in"),
    "links": (rate_rows.links, "reports that bring links"),
    "clients": (rate_rows.clients, "several crawlers at once"),
    "snapshot": (lasting_rows.snapshot, "a snapshot held elsewhere meanwhile"),
    "onehost": (cpu_rows.onehost, "one host with all pages"),
    "growth": (cpu_rows.growth, "ten times the pages"),
    "filter": (job_rows.report_with_filter, "reports that learn how often pages change"),
    "allocate": (job_rows.allocate, "an allocation from end to end, ten times the pages"),
    "bloat": (lasting_rows.bloat, "sizes after every page was popped six times"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="what to measure; all if none is named")
    parser.add_argument("--pages", type=int, default=STANDARD_PAGES, help="size of the standard data set (%(default)s)")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (_, meaning) in ROWS.items():
            print(f"{name:9} {meaning}")
        return
    if unknown := set(arguments.rows) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; --list says which there are")

    random.seed(1)
    lines: list[Line] = []
    with ExitStack() as stack:
        server_url = stack.enter_context(server.server())
        must_see_the_server(server_url)
        stage = Stage(server_url, arguments.pages / STANDARD_PAGES, stack)
        try:
            for name in arguments.rows or ROWS:
                progress(f"--- {name}")
                for line in ROWS[name][0](stage):
                    lines.append(line)
                    progress(f"{line.what}: {line.measured}")
        finally:
            if lines:
                print(formatted(lines))


if __name__ == "__main__":
    main()
