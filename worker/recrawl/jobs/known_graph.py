"""The graph as the job opic works on it: read in full, or remembered and brought up to date."""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.jobs.job import Tell, silent
from recrawl.model.graph import graph
from recrawl.model.graph.graph import NOWHERE, Delta, Graph, positions
from recrawl.model.graph.value import PageColumn

NO_RUN = -1  # a token that no run has


@dataclass(frozen=True)
class KnownGraph:
    """The memory of a worker from one run to the next. Pages are in the order of the graph."""

    token: int  # the run that read it
    graph: Graph
    relevance: PageColumn  # NaN = unknown
    scores: dict[str, PageColumn]  # by store.reads.SCORES, as last written; NaN = never
    has_changed: NDArray[np.bool_]  # since the last run
    is_whole: bool  # whether the whole graph was read, and not only its changes

    @property
    def bytes(self) -> int:
        columns = [getattr(self.graph, field.name) for field in fields(self.graph)]
        columns += [self.relevance, self.has_changed, *self.scores.values()]
        return sum(column.nbytes for column in columns if isinstance(column, np.ndarray))


def read(url: str, run: store.runs.Run, remembered: KnownGraph | None, tell: Tell = silent) -> KnownGraph:
    # graph_news lists the pages that changed since the last read. If it is full and cannot be emptied, because another
    # transaction locks it, this run and the next one read the whole graph.
    reopened = bool(run.put("reopen_news"))
    reading = store.reads.read_graph(
        url,
        run.token,
        remembered.token if remembered and reopened else None,
        watch=lambda what, rows, most: tell(f"reading the graph: {what}", rows, most),
    )
    if remembered and isinstance(reading, store.reads.GraphChanges):
        return _up_to_date(remembered, run.token, reading)
    assert isinstance(reading, store.reads.WholeGraph)
    return _whole(run.token if reopened else NO_RUN, reading)


def _whole(token: int, reading: store.reads.WholeGraph) -> KnownGraph:
    order = np.argsort(reading.page_id, kind="stable")
    page_ids = reading.page_id[order]
    compiled = graph.compile(page_ids, reading.links.source_ids, reading.links.first, reading.links.target_ids)
    scores = _carried(reading.scores.page_id, page_ids, reading.scores.by_name)
    everything = np.ones(compiled.pages, np.bool_)
    return KnownGraph(token, compiled, reading.relevance[order], scores, everything, is_whole=True)


def _up_to_date(known: KnownGraph, token: int, changes: store.reads.GraphChanges) -> KnownGraph:
    page_id, lives = changes.links.source_ids, changes.is_live > 0
    # Dead pages have no targets here. So target_ids stays as it is when their rows are left out.
    starts = np.append(0, np.cumsum(np.diff(changes.links.first)[lives]))
    delta = Delta(page_id[lives], page_id[~lives], page_id[lives], starts, changes.links.target_ids)
    updated = graph.apply(known.graph, delta)
    carried = _carried(known.graph.page_ids, updated.page_ids, known.scores | {"relevance": known.relevance})
    relevance = carried.pop("relevance")
    has_changed = np.zeros(updated.pages, np.bool_)
    at = positions(updated.page_ids, page_id[lives])
    relevance[at], has_changed[at] = changes.relevance[lives], True
    return KnownGraph(token, updated, relevance, carried, has_changed, is_whole=False)


def _carried(from_ids: graph.Ids, page_ids: graph.Ids, columns: dict[str, PageColumn]) -> dict[str, PageColumn]:
    """The same columns for other pages; NaN for those that had no row."""
    at = positions(page_ids, from_ids)
    is_there = at != NOWHERE
    carried = {}
    for name, column in columns.items():
        carried[name] = np.full(len(page_ids), np.nan, np.float32)
        carried[name][at[is_there]] = column[is_there]
    return carried
