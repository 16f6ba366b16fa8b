"""`python -m bench` measures every row, `python -m bench cycle idle` those two; --list says which there are."""

import argparse
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

from bench import (
    allocation_rows,
    bare_rows,
    before_rows,
    client_rows,
    cpu_rows,
    graph_rows,
    job_rows,
    lasting_rows,
    line_rows,
    look_rows,
    move_rows,
    opic_rows,
    rate_rows,
    replay_rows,
    scrapy_rows,
    server,
    size_rows,
    slow_rows,
    steer_rows,
    urlfrontier_rows,
    worker_rows,
)
from bench.large import TIMES, Large, large
from bench.measure import must_see_the_server, progress
from bench.stage import STANDARD_PAGES, Stage
from bench.table import Line, formatted

ROWS: dict[str, tuple[Callable[[Stage], Iterator[Line]], str]] = {
    "cycle": (cpu_rows.cycle, "CPU of a pop and its report"),
    "rollup": (cpu_rows.rollup, "what vitals cost a report"),
    "lines": (line_rows.lines, "the same where new pages wait, or both kinds"),
    "bare": (bare_rows.bare, "the same as a multiple of its bare writes"),
    "before": (before_rows.before, "the same beside earlier revisions of this repository"),
    "moves": (move_rows.moves, "reports that move their page in the queue, in a crawl with prices"),
    "shares": (line_rows.shares, "who gets what of the crawl"),
    "values": (line_rows.values, "how good the new pages are that go first"),
    "pace": (line_rows.pace, "new pages within a budget"),
    "idle": (cpu_rows.idle, "nothing ready; 99 % not due"),
    "add": (rate_rows.add, "URLs taken in"),
    "links": (rate_rows.links, "reports that bring links"),
    "clients": (rate_rows.clients, "several crawlers at once"),
    "client": (client_rows.client, "the client for asyncio: its cost, what it reaches, how prompt it is"),
    "slow": (slow_rows.slow, "visits that need a while before their request, as with a browser"),
    "scrapy": (scrapy_rows.scrapy, "Scrapy: what it reaches of what gaps allow, and how fast it gets"),
    "urlfrontier": (urlfrontier_rows.urlfrontier, "URLFrontier's gRPC: puts per second, GetURLs beside the pop"),
    "snapshot": (lasting_rows.snapshot, "a snapshot held elsewhere meanwhile"),
    "onehost": (cpu_rows.onehost, "one host with all pages"),
    "growth": (cpu_rows.growth, "ten times the pages"),
    "filter": (job_rows.report_with_filter, "reports that learn how often pages change"),
    "opic": (graph_rows.opic, "reading the graph; a batch of OPIC from end to end"),
    "boost": (steer_rows.boost, "the value of half of the pages multiplied, beside pops"),
    "policy": (steer_rows.policy, "another policy on a live crawl, beside pops"),
    "bloat": (lasting_rows.bloat, "sizes after every page was popped six times"),
}
# Rows about a crawl of ten times the pages.
LARGE_ROWS: dict[str, tuple[Callable[[Large], Iterator[Line]], str]] = {
    "looks": (look_rows.looks, "the views and functions that people look at"),
    "commands": (look_rows.commands, "recrawl status, explain, doctor, jobs, --help"),
    "allocate": (job_rows.allocate, "an allocation from end to end"),
    "beside": (job_rows.beside, "pops and upkeep while allocate and opic run"),
    "checkpoint": (lasting_rows.checkpoint, "pops after a checkpoint"),
    "minute": (worker_rows.minute, "what the worker's small jobs cost the server"),
    "worker": (worker_rows.worker, "a worker at rest"),
    "start": (worker_rows.start, "recrawl up"),
    "takeover": (worker_rows.takeover, "the death of a worker"),
}
# Rows that make large databases of their own, and run only if they are named.
NAMED_ROWS: dict[str, tuple[Callable[[], Iterator[Line]], str]] = {
    "sizes": (size_rows.sizes, "crawls of 1, 10 and 30 million pages next to each other: an hour, and 45 GB of disk"),
}
# Rows about the numerics, which need no database.
MODEL_ROWS: dict[str, tuple[Callable[[], Iterator[Line]], str]] = {
    "market": (allocation_rows.market, "the price without hosts"),
    "golden": (allocation_rows.golden, "the same beside golden section and a fixed point"),
    "polite": (allocation_rows.polite, "a price for every host"),
    "replay": (replay_rows.visits, "visits a second of the laboratory's replay"),
    "memory": (allocation_rows.memory, "memory that takes"),
    "convergence": (opic_rows.convergence, "sweeps of OPIC-HITS"),
    "joined_weakly": (opic_rows.joined_weakly, "sweeps of OPIC-HITS where communities hardly link to each other"),
    "sweep": (opic_rows.sweep, "the speed of one, beside scipy"),
    "change": (opic_rows.change, "a graph of which 1 % changed"),
    "ancestor": (opic_rows.ancestor, "page updates beside the ancestor's"),
    "large": (opic_rows.large, "ten million pages"),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="what to measure; all but sizes if none is named")
    parser.add_argument("--pages", type=int, default=STANDARD_PAGES, help="size of the standard data set (%(default)s)")
    parser.add_argument("--keep", type=Path, help="a folder in which the large database is kept for the next time")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    arguments = parser.parse_args()
    if arguments.list:
        for name, (_, meaning) in (ROWS | LARGE_ROWS | NAMED_ROWS | MODEL_ROWS).items():
            print(f"{name:12} {meaning}")
        return
    names = arguments.rows or [*ROWS, *LARGE_ROWS, *MODEL_ROWS]
    if unknown := set(names) - {*ROWS, *LARGE_ROWS, *NAMED_ROWS, *MODEL_ROWS}:
        parser.error(f"no such row: {', '.join(sorted(unknown))}; --list says which there are")

    random.seed(1)
    lines: list[Line] = []

    def measure(name: str, rows: Iterator[Line]) -> None:
        progress(f"--- {name}")
        for line in rows:
            lines.append(line)
            progress(f"{line.what}: {line.measured}")

    try:
        for name in names:
            if name in NAMED_ROWS | MODEL_ROWS:
                measure(name, (NAMED_ROWS | MODEL_ROWS)[name][0]())
        if any(name in ROWS for name in names):
            with ExitStack() as stack:
                server_url = stack.enter_context(server.server())
                must_see_the_server(server_url)
                stage = Stage(server_url, arguments.pages / STANDARD_PAGES, stack)
                for name in names:
                    if name in ROWS:
                        measure(name, ROWS[name][0](stage))
        if any(name in LARGE_ROWS for name in names):
            with large(TIMES * arguments.pages, arguments.keep) as crawl:
                for name in names:
                    if name in LARGE_ROWS:
                        measure(name, LARGE_ROWS[name][0](crawl))
    finally:
        if lines:
            print(formatted(lines))


if __name__ == "__main__":
    main()
