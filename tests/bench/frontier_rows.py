"""URLFrontier's gRPC: what one stream of puts takes in, and what GetURLs costs beside the pop that it stands for.

Client, service and PostgreSQL share this machine: with four cores, each has one for itself.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from bench import calls
from bench.measure import Backend, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note
from recrawl.frontier import urlfrontier_pb2 as pb
from worker.frontier.frontier import OK, Frontier, discovered, info

HOSTS = 2000
BATCH = 100
METADATA = {"url.path": ["http://h1.example/"], "depth": ["3"]}


@contextmanager
def served(url: str) -> Iterator[Frontier]:
    process = subprocess.Popen(
        [sys.executable, "-m", "recrawl", "frontier", "--listen", "127.0.0.1:0"],
        env=os.environ | {"DATABASE_URL": url},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    port = re.search(r":(\d+);", process.stdout.readline())
    assert port
    client = Frontier(int(port[1]))
    try:
        yield client
    finally:
        client.close()
        process.send_signal(signal.SIGINT)
        process.wait(60)


def frontier(stage: Stage) -> Iterator[Line]:
    yield from puts(stage)
    yield from gets(stage)


def puts(stage: Stage) -> Iterator[Line]:
    count = stage.rounds(400) * 100
    urls = [f"http://h{n % HOSTS}.example/{n}" for n in range(3 * count)]
    with stage.empty() as url, served(url) as client:
        client.put(*(discovered(f"http://h{n}.example/") for n in range(HOSTS)))
        items = [discovered(address, metadata=METADATA) for address in urls[:count]]
        rate = of_stream(client.calls["PutURLs"], items, lambda ack: int(ack.status == OK))
        yield at_least("PutURLs: single URLs acknowledged per second, one stream", rate, 20_000, "/s")
        batches = [
            pb.DiscoveredBatch(items=[info(address, metadata=METADATA) for address in urls[at : at + BATCH]])
            for at in range(count, 3 * count, BATCH)
        ]
        rate = of_stream(client.calls["PutDiscovered"], batches, lambda ack: list(ack.statuses).count(OK))
        yield at_least(f"PutDiscovered: URLs acknowledged per second, {BATCH} a batch", rate, 20_000, "/s")


def of_stream(call: Any, messages: Iterable[Any], taken_in: Any) -> float:
    begun = time.perf_counter()
    taken = sum(taken_in(ack) for ack in call(iter(messages)))
    return float(taken / (time.perf_counter() - begun))


def gets(stage: Stage) -> Iterator[Line]:
    times: dict[str, list[float]] = {"grpc": [], "sql": []}
    with stage.standard() as url, served(url) as client, Backend(url) as backend:
        backend.run("select recrawl.set_setting('default_gap', '1 millisecond')")
        for turn in range(stage.rounds(200)):
            for name in ("grpc", "sql") if turn % 2 else ("sql", "grpc"):
                begun = time.perf_counter()
                got = client.get(BATCH) if name == "grpc" else calls.pop(backend, calls.ONE_A_HOST)
                if turn >= 5:
                    times[name].append(time.perf_counter() - begun)
                assert len(got) == BATCH
    medians = {name: 1000 * statistics.median(measured) for name, measured in times.items()}
    progress(f"milliseconds: {medians}")
    yield note("a pop of 100 pages: GetURLs, SQL", f"{medians['grpc']:.2f} ms, {medians['sql']:.2f} ms")
    yield at_most("GetURLs(100) over the SQL pop", medians["grpc"] / medians["sql"], 2, "×")
