"""The rows about the graph in the database: reading it, and a batch of OPIC from end to end."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from statistics import median

import numpy as np

from bench import data, opic_rows
from bench.measure import Backend, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note
from recrawl.jobs.opic import Opic
from recrawl.store.columns import read

PACKED = "select page_id, targets from recrawl_internal.link_in_graph"
IN_ROWS = "select source_id, target_id from recrawl_internal.link_in_rows"
LINKS_A_PAGE = 10
CHANGED = 100  # one page in this number
BATCH = 100


def opic(stage: Stage) -> Iterator[Line]:
    """A power-law graph of the standard pages, ten links each; then one page in a hundred links elsewhere."""
    with stage.empty() as url, Backend(url) as backend:
        progress(f"loading {stage.pages:,} pages with {LINKS_A_PAGE * stage.pages:,} links")
        data.load_pages(backend.connection, stage.hosts, stage.pages)
        links = _load_links(backend, stage.pages)
        yield from _reading(url, backend, links)
        yield from _batches(url, backend, stage)


def _reading(url: str, backend: Backend, links: int) -> Iterator[Line]:
    size = backend.rows("select pg_total_relation_size('recrawl_internal.link')::float8")[0][0]
    yield at_most("links on disk, with their index", float(str(size)) / links, 15, "bytes a link")
    backend.run(
        "create table recrawl_internal.link_in_rows as select l.page_id as source_id, t as target_id"
        " from recrawl_internal.link l cross join lateral recrawl_internal.unpacked(l.targets) t"
    )
    backend.run("vacuum (analyze) recrawl_internal.link_in_rows")
    times = _interleaved(
        packed=lambda: read(url, PACKED),
        in_rows=lambda: read(url, IN_ROWS),
        floor=lambda: backend.connection.execute(f"copy ({PACKED}) to '/dev/null' (format binary)"),
    )
    seconds = f" ({times['packed']:.3g} s)"
    yield at_least("reading packed links", times["in_rows"] / times["packed"], 5, "× as fast as rows", seconds)
    yield at_most("reading packed links ÷ COPY on the server", times["packed"] / times["floor"], 2.5, "×")
    backend.run("drop table recrawl_internal.link_in_rows")
    page = backend.rows("select page_id from recrawl_internal.page limit 1 offset 1000")[0]
    found = _interleaved(found=lambda: backend.rows("select count(*) from recrawl.predecessors(%s)", page))
    yield note("predecessors() of a page", f"{found['found'] * 1e3:.0f} ms")


def _batches(url: str, backend: Backend, stage: Stage) -> Iterator[Line]:
    """The first run of a small crawl has compiled everything before the clock runs."""
    with stage.empty() as elsewhere:
        Opic(elsewhere).run()
    job = Opic(url)
    progress("the cold run: everything is read and written")
    cold = _seconds(lambda: job.run())
    warm = []
    for _ in range(3):
        progress("one page in a hundred links elsewhere")
        _relink(backend, stage)
        warm.append(_seconds(lambda: job.run()))
    runs = backend.rows("select sweeps, moved::float8 from recrawl.opic_run order by started_at")
    sweeps, moved = [list(column) for column in zip(*runs, strict=True)]
    yield note("a cold batch: full read, full write", f"{cold:.3g} s, {sweeps[0]} sweeps")
    detail = f" ({median(warm):.3g} s, {sweeps[-1]} sweeps, {moved[-1]:,.0f} scores moved)"
    yield at_most("a batch after 1 % of the pages changed ÷ cold", median(warm) / cold, 0.5, "×", detail)


def _load_links(backend: Backend, pages: int) -> int:
    _, _, first, targets = opic_rows._rows(pages, LINKS_A_PAGE * pages)
    links = 0
    into = "copy recrawl_internal.link (page_id, targets) from stdin (format binary)"
    with backend.connection.cursor() as cursor, cursor.copy(into) as copy:
        copy.set_types(["int8", "bytea"])
        for page, (begin, end) in enumerate(itertools.pairwise(first.tolist())):
            row = np.unique(targets[begin:end])
            row = row[row != page] + 1
            links += len(row)
            copy.write_row((page + 1, row.astype(">i8").tobytes()))
    backend.run("vacuum (analyze) recrawl_internal.link")
    return links


def _relink(backend: Backend, stage: Stage) -> None:
    """By reports, as ever."""
    rng = np.random.default_rng()
    changed = rng.choice(stage.pages, stage.pages // CHANGED, replace=False) + 1
    for batch in np.array_split(changed, max(1, len(changed) // BATCH)):
        results = [
            {
                "page_id": page,
                "status": 200,
                "links": [
                    data.url_of(target, stage.hosts) for target in rng.integers(1, stage.pages, LINKS_A_PAGE).tolist()
                ],
            }
            for page in batch.tolist()
        ]
        backend.run("select * from recrawl.report(%s::jsonb)", [json.dumps(results)])


def _interleaved(rounds: int = 5, **calls: Callable[[], object]) -> dict[str, float]:
    """Median seconds by name."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            taken[name].append(_seconds(call))
    return {name: median(seconds) for name, seconds in taken.items()}


def _seconds(call: Callable[[], object]) -> float:
    started = time.monotonic()
    call()
    return time.monotonic() - started
