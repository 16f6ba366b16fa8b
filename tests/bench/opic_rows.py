"""OPIC-HITS on power-law graphs: sweeps to a given error, time of a sweep against scipy's, and what a change costs."""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigs

from bench.table import Line, at_least, at_most, note
from recrawl.model.graph import graph, opic
from recrawl.model.graph.graph import Graph
from recrawl.model.graph.opic import Cash

Ids = NDArray[np.int64]
Relevance = NDArray[np.float32]
Amounts = NDArray[np.float64]

ROUNDS = 9
ANCESTOR = 63, 3858  # page updates a second, at 10⁶ links in a file and at 10⁵ links in memory


def convergence() -> Iterator[Line]:
    """Sweeps from a uniform start until hub and authority together are off by no more than this."""
    of = _graph(100_000, 1_000_000)
    crawled_a_tenth = graph.compile(*_rows(100_000, 1_000_000, crawled=10))
    for name, web, relevance in (
        ("random relevance", of, _relevance(of)),
        ("no relevance", of, None),
        ("random relevance, a tenth of the pages crawled", crawled_a_tenth, _relevance(of)),
    ):
        hub, authority = _exact(web, relevance)
        cash, errors = Cash.uniform(web.pages), [2.0]
        while errors[-1] > 1e-6 and len(errors) < 100:
            scores = opic.run(web, relevance, cash, most_sweeps=1)
            cash = scores.cash
            errors.append(float(np.abs(scores.hub - hub).sum() + np.abs(scores.authority - authority).sum()))
        for error, bound in ((1e-3, 12), (1e-6, 22)):
            sweeps = next((n for n, e in enumerate(errors) if e <= error), 10**9)
            yield at_most(f"{name}: sweeps to an error of {error:.0e}", sweeps, bound, "sweeps")


def joined_weakly() -> Iterator[Line]:
    """Communities with 20 links between each two that follow each other, to the error that the job stops at, from a
    uniform start. Plain sweeps are as many as it takes one at a time, to the same true error."""
    for count in (2, 10):
        web, community = _communities(count)
        by_topic = np.linspace(0.2, 0.99, count, dtype=np.float32)[community]
        for name, relevance in (("random relevance", _relevance(web)), ("relevance by topic", by_topic)):
            hub, authority = _exact(web, relevance)

            def off(scores: opic.HubsAndAuthorities, hub: Amounts = hub, authority: Amounts = authority) -> float:
                return float(np.abs(scores.hub - hub).sum() + np.abs(scores.authority - authority).sum())

            scores = opic.run(web, relevance, Cash.uniform(web.pages), most_sweeps=200)
            cash, plain, error = Cash.uniform(web.pages), 0, 2.0
            while error > off(scores) and plain < 2000:
                one = opic.run(web, relevance, cash, most_sweeps=1)
                cash, plain, error = one.cash, plain + 1, off(one)
            worst = max(
                float(np.abs(found / exact - 1).max())
                for found, exact in ((scores.hub, hub), (scores.authority, authority))
            )
            communities = f"{count} communities, {name}"
            detail = f" (estimated {scores.sweeps.error:.1e}, the worst page {worst:.2%} off)"
            yield at_most(f"{communities}: error", off(scores), 1e-3, "", detail)
            yield at_most(f"{communities}: sweeps", scores.sweeps.count, 60, "sweeps", f" (plain: {plain})")


def sweep() -> Iterator[Line]:
    of = _graph(1_000_000, 10_000_000)
    times = _interleaved(
        scipy=_by_scipy(of), one=_sweeps(of, _relevance(of), threads=1), four=_sweeps(of, _relevance(of), threads=4)
    )
    yield note("a sweep of 10⁶ pages, 10⁷ links by scipy", f"{times['scipy'] * 1e3:.0f} ms")
    yield at_least("a sweep on one thread", times["scipy"] / times["one"], 1.3, "× scipy")
    yield at_least("a sweep on four threads", times["scipy"] / times["four"], 2.5, "× scipy")


def change() -> Iterator[Line]:
    """One page in a hundred links elsewhere."""
    pages = 1_000_000
    ids, _, first, targets = _rows(pages, 10_000_000)
    of = graph.compile(ids, ids, first, targets)
    rng = np.random.default_rng(2)
    elsewhere = targets.copy()
    for page in rng.choice(pages, pages // 100, replace=False).tolist():
        elsewhere[first[page] : first[page + 1]] = rng.integers(0, pages, first[page + 1] - first[page])
    relevance = _relevance(of)
    before = opic.run(of, relevance)
    after = graph.compile(ids, ids, first, elsewhere)

    def go_on() -> opic.HubsAndAuthorities:
        return opic.run(after, relevance, opic.resumed(after, before.hub))

    cold, warm = opic.run(after, relevance), go_on()
    times = _interleaved(
        compile=lambda: graph.compile(ids, ids, first, elsewhere),
        cold=lambda: opic.run(after, relevance),
        warm=go_on,
    )
    yield note("10⁶ pages, 10⁷ links: compiled in", f"{times['compile']:.2g} s")
    yield note(
        "after a change of 1 % to an error of 1e-3, warm against cold",
        f"{warm.sweeps.count} sweeps against {cold.sweeps.count}, {times['warm'] / times['cold']:.2f} × the time",
    )


def ancestor() -> Iterator[Line]:
    of = _graph(100_000, 1_000_000)
    relevance = _relevance(of)
    sweeps = opic.run(of, relevance).sweeps.count
    seconds = _interleaved(run=lambda: opic.run(of, relevance))["run"]
    rate = of.pages * sweeps / seconds
    slow, fast = ANCESTOR
    yield note(
        "page updates a second, 10⁵ pages, 10⁶ links",
        f"{rate:,.0f}: {rate / fast:,.0f} to {rate / slow:,.0f} × the ancestor's",
    )


def large() -> Iterator[Line]:
    """In a process of its own, which does what the job does: it reads rows, compiles them and runs."""
    with tempfile.TemporaryDirectory() as folder:
        _rows_to(Path(folder), 10_000_000, 100_000_000)
        command = [sys.executable, "-c", f"from bench import opic_rows; opic_rows._run_large({folder!r})"]
        printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    links, compiling, total, sweeps, gigabytes, one, four, scipy = map(float, printed.split())
    yield note("10⁷ pages: links, compiled in", f"{links:,.0f}, {compiling:.0f} s")
    yield at_most("10⁷ pages, 10⁸ links: memory of the worker", gigabytes, 5, "GB")
    yield note("10⁷ pages: run from a uniform start, four threads", f"{sweeps:.0f} sweeps, {total:.1f} s")
    yield note("10⁷ pages: a sweep on one thread", f"{one:.2f} s, {scipy / one:.2f} × scipy")
    yield note("10⁷ pages: a sweep on four threads", f"{four:.2f} s, {scipy / four:.2f} × scipy")


def _run_large(folder: str) -> None:
    source_ids, first, target_ids = (np.load(Path(folder, f"{name}.npy")) for name in ("sources", "first", "targets"))
    began = time.perf_counter()
    of = graph.compile(np.arange(len(source_ids)), source_ids, first, target_ids)
    compiling = time.perf_counter() - began
    del source_ids, first, target_ids
    relevance = _relevance(of)
    began = time.perf_counter()
    scores = opic.run(of, relevance, threads=4)
    total = time.perf_counter() - began
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    one, four, scipy = _sweeps(of, relevance, 1), _sweeps(of, relevance, 4), _by_scipy(of)
    times = _interleaved(3, scipy=scipy, one=one, four=four)
    print(of.links, compiling, total, scores.sweeps.count, gigabytes, times["one"], times["four"], times["scipy"])


# -------------------------------------------------------------------------------------------------- what is measured


def _sweeps(of: Graph, relevance: Relevance, threads: int) -> Callable[[], float]:
    """Seconds of one sweep: a run of five against a run of one, which sets up as much."""

    def seconds() -> float:
        began = time.perf_counter()
        opic.run(of, relevance, error=0, most_sweeps=1, threads=threads)
        after_one = time.perf_counter()
        opic.run(of, relevance, error=0, most_sweeps=5, threads=threads)
        return (time.perf_counter() - after_one - (after_one - began)) / 4

    return seconds


def _by_scipy(of: Graph) -> Callable[[], float]:
    """Seconds to multiply by the matrix of links and by its transpose, both in rows."""
    ones, shape = np.ones(of.links), (of.pages, of.pages)
    index: Any = np.int32 if of.links < 2**31 else np.int64
    back, forth = (
        scipy.sparse.csr_array((ones, links.view(np.int32), first.astype(index)), shape=shape)
        for first, links in ((of.out_starts, of.out), (of.into_starts, of.into))
    )
    vector = np.random.default_rng(4).random(of.pages)

    def seconds() -> float:
        began = time.perf_counter()
        back @ vector
        forth @ vector
        return time.perf_counter() - began

    return seconds


def _interleaved(rounds: int = ROUNDS, **calls: Callable[[], object]) -> dict[str, float]:
    """Median seconds by name. A call that returns a float has measured itself."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            result = call()
            taken[name].append(result if isinstance(result, float) else time.perf_counter() - began)
    return {name: median(seconds) for name, seconds in taken.items()}


def _exact(of: Graph, relevance: Relevance | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The closed form, or the eigenvector by ARPACK of the cash flow with the virtual page as the last page."""
    out, into = np.diff(of.out_starts), np.diff(of.into_starts)
    if relevance is None:
        return (out + 1) / (of.links + of.pages), (into + 1) / (of.links + of.pages)
    r = relevance.astype(np.float64)
    to_each = np.where(into > 0, r / np.maximum(into * r + 1 - r, 1e-300), 0)
    shape = (of.pages, of.pages)
    ones = np.ones(of.links)
    back = scipy.sparse.csr_array((ones, of.out.view(np.int32), of.out_starts), shape=shape)
    forth = scipy.sparse.csr_array((ones, of.into.view(np.int32), of.into_starts), shape=shape)

    def authorities(hubs: NDArray[np.float64]) -> NDArray[np.float64]:
        parts = hubs[:-1] / (out + 1)
        return np.append(forth @ parts + hubs[-1] / of.pages, parts.sum())

    def hubs(authorities: NDArray[np.float64]) -> NDArray[np.float64]:
        pages, virtual = authorities[:-1], authorities[-1]
        return np.append(back @ (to_each * pages) + virtual / of.pages, ((1 - into * to_each) * pages).sum())

    size = (of.pages + 1, of.pages + 1)
    operator = LinearOperator(size, matvec=lambda cash: hubs(authorities(cash)), dtype=np.float64)
    _, vectors = eigs(operator, k=1, which="LM", tol=1e-12, v0=np.ones(of.pages + 1))
    hub = np.real(vectors[:, 0])
    authority = authorities(hub)[:-1]
    return hub[:-1] / hub[:-1].sum(), authority / authority.sum()


# ----------------------------------------------------------------------------------------------------------- the web


def _graph(pages: int, links: int) -> Graph:
    return graph.compile(*_rows(pages, links))


def _relevance(of: Graph) -> Relevance:
    """By page id, so that a page keeps it in a graph that changed."""
    return np.random.default_rng(3).random(int(of.page_ids[-1]) + 1, np.float32)[of.page_ids]


def _communities(count: int) -> tuple[Graph, Ids]:
    """Of 10⁴ pages with 60 links each, and which of them a page belongs to."""
    rng, size = np.random.default_rng(5), 10_000
    pages = np.arange(count * size)
    targets = (size * rng.random((len(pages), 60)) ** 2).astype(np.int64) + (pages // size * size)[:, None]
    bridges = rng.choice(size, (count, 20), replace=False) + np.arange(count)[:, None] * size
    targets[bridges, 0] = (targets[bridges, 0] + size) % len(pages)
    return graph.compile(pages, pages, np.arange(len(pages) + 1) * 60, targets.ravel()), pages // size


def _rows(pages: int, links: int, crawled: int = 1) -> tuple[Ids, Ids, Ids, Ids]:
    """Both degrees have a heavy tail, and pages with neighbouring ids are not related. One page in a fixed number
    is crawled: the links of the others are not known."""
    rng = np.random.default_rng(1)
    degree = np.minimum(rng.pareto(1.2, pages) + 0.3, 1000)
    degree[np.arange(pages) % crawled > 0] = 0
    first = np.zeros(pages + 1, np.int64)
    np.cumsum(
        (degree * (1.08 * links / degree.sum()) + rng.random(pages) * (degree > 0)).astype(np.int64), out=first[1:]
    )
    popular = rng.permutation(pages)
    targets = np.empty(first[-1], np.int64)
    for part in np.array_split(targets, 1 + len(targets) // 10_000_000):
        part[:] = popular[(pages * rng.random(len(part)) ** 2.5).astype(np.int64)]
    return np.arange(pages), np.arange(pages), first, targets


def _rows_to(folder: Path, pages: int, links: int) -> None:
    _, sources, first, targets = _rows(pages, links)
    for name, array in (("sources", sources), ("first", first), ("targets", targets)):
        np.save(folder / f"{name}.npy", array)
