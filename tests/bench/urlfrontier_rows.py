"""URLFrontier's gRPC: the URLs that one stream of puts adds, and the cost of GetURLs compared with the pop that it
makes. Both are compared with a service that has nothing behind its gRPC: the difference is recrawl and PostgreSQL.

Client, service and PostgreSQL share this machine: with four cores, each has one for itself.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bench import calls
from bench.bare_urlfrontier import METADATA
from bench.measure import Backend, cpu_of, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import OK, Frontier, discovered, info

HOSTS = 2000
BATCH = 100
OURS, ALONE = ["-m", "recrawl", "urlfrontier", "--listen", "127.0.0.1:0"], ["-m", "bench.bare_urlfrontier"]


class Served(NamedTuple):
    client: Frontier
    pid: int


class Taken(NamedTuple):
    rate: float  # URLs per second
    cpu: float  # of the service, milliseconds a URL


@contextmanager
def served(command: Sequence[str], url: str = "") -> Iterator[Served]:
    process = subprocess.Popen(
        [sys.executable, *command], env=os.environ | {"DATABASE_URL": url}, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    port = re.search(r":(\d+);", process.stdout.readline())
    assert port
    client = Frontier(int(port[1]))
    try:
        yield Served(client, process.pid)
    finally:
        client.close()
        process.send_signal(signal.SIGINT if url else signal.SIGTERM)
        process.wait(60)


def urlfrontier(stage: Stage) -> Iterator[Line]:
    yield from puts(stage)
    yield from gets(stage)


def puts(stage: Stage) -> Iterator[Line]:
    count = stage.rounds(400) * 100
    urls = [f"http://h{n % HOSTS}.example/{n}" for n in range(3 * count)]
    items = [discovered(address, metadata=METADATA) for address in urls[:count]]
    batches = [
        pb.DiscoveredBatch(items=[info(address, metadata=METADATA) for address in urls[at : at + BATCH]])
        for at in range(count, 3 * count, BATCH)
    ]
    with served(ALONE) as service:
        single_alone, batches_alone = single(service, items), in_batches(service, batches)
    with stage.empty() as url, served(OURS, url) as service:
        service.client.put(*(discovered(f"http://h{n}.example/") for n in range(HOSTS)))
        one, many = single(service, items), in_batches(service, batches)
    yield at_least("PutURLs: single URLs acknowledged per second, one stream", one.rate, 20_000, "/s")
    yield note("the same by gRPC alone", f"{single_alone.rate:,.0f} /s")
    yield note("CPU of the service a single URL: recrawl, gRPC alone", told(one, single_alone))
    yield at_most("CPU of the service a single URL over gRPC alone", one.cpu / single_alone.cpu, 2, "×")
    yield at_least(f"PutDiscovered: URLs acknowledged per second, {BATCH} a batch", many.rate, 20_000, "/s")
    yield note("the same by gRPC alone", f"{batches_alone.rate:,.0f} /s")
    yield note("CPU of the service a URL in a batch: recrawl, gRPC alone", told(many, batches_alone))


def told(ours: Taken, alone: Taken) -> str:
    return f"{ours.cpu:.3f} ms, {alone.cpu:.3f} ms"


def single(service: Served, items: Iterable[pb.URLItem]) -> Taken:
    return of_stream(service, "PutURLs", items, lambda ack: int(ack.status == OK))


def in_batches(service: Served, batches: Iterable[pb.DiscoveredBatch]) -> Taken:
    return of_stream(service, "PutDiscovered", batches, lambda ack: list(ack.statuses).count(OK))


def of_stream(service: Served, name: str, messages: Iterable[Any], taken_in: Any) -> Taken:
    begun, used = time.perf_counter(), cpu_of(service.pid)
    taken = sum(taken_in(ack) for ack in service.client.calls[name](iter(messages)))
    return Taken(taken / (time.perf_counter() - begun), (cpu_of(service.pid) - used) / taken)


def gets(stage: Stage) -> Iterator[Line]:
    times: dict[str, list[float]] = {"grpc": [], "sql": [], "alone": []}
    with (
        stage.standard() as url, served(OURS, url) as ours, served(ALONE) as alone, Backend(url) as backend,
    ):  # fmt: skip
        backend.run("select recrawl.set_setting('default_gap', '1 millisecond')")
        ways: dict[str, Callable[[], Sequence[Any]]] = {
            "grpc": lambda: ours.client.get(BATCH),
            "sql": lambda: calls.pop(backend, calls.ONE_A_HOST),
            "alone": lambda: alone.client.get(BATCH),
        }
        for turn in range(stage.rounds(200)):
            for name in ways if turn % 2 else reversed(ways):
                begun = time.perf_counter()
                got = ways[name]()
                if turn >= 5:
                    times[name].append(time.perf_counter() - begun)
                assert len(got) == BATCH
    medians = {name: 1000 * statistics.median(measured) for name, measured in times.items()}
    progress(f"milliseconds: {medians}")
    yield note(
        "a pop of 100 pages: GetURLs, SQL; gRPC alone",
        f"{medians['grpc']:.2f} ms, {medians['sql']:.2f} ms; {medians['alone']:.2f} ms",
    )
    yield at_most("GetURLs(100) over the SQL pop", medians["grpc"] / medians["sql"], 2, "×")
    both = medians["sql"] + medians["alone"]
    yield at_most("GetURLs(100) over the SQL pop and gRPC alone", medians["grpc"] / both, 1.2, "×")
