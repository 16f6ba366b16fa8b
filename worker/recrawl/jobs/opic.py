"""Computes the scores of each page from the links, and its value from the scores, and puts both in force."""

import math
import os
import time
from dataclasses import asdict, dataclass

import numpy as np

from recrawl import store
from recrawl.jobs.job import Job, Tell, silent
from recrawl.model.graph import opic, value
from recrawl.model.graph.graph import NOWHERE, Graph, compile, positions
from recrawl.model.graph.value import PageColumn
from recrawl.model.limits import MOVED, UNKNOWN_RELEVANCE
from recrawl.store import reads
from recrawl.words import count, things

# Sweeps end when the errors of all hub and authority scores add up to at most ERROR. Hub scores add up to 1, and so do
# authority scores. So the errors are at most ERROR / 2 = .05 % of the sum of all scores. The scores of a page are
# written when one of them, or the value of the page, changes by more than 1 %, or when the number of links to the page
# changes.
ERROR, MOST_SWEEPS = 1e-3, 200


@dataclass(frozen=True)
class Weights:
    """The settings that say what makes up a value."""

    authority_weight: float
    hub_weight: float
    importance_weight: float
    relevance_weight: float

    def by_score(self) -> dict[str, float]:
        return {name.removesuffix("_weight"): weight for name, weight in asdict(self).items()}


@dataclass(frozen=True)
class KnownGraph:
    """The graph, values and scores that are stored. Pages are in the order of the graph."""

    graph: Graph
    relevance: PageColumn  # NaN = unknown
    value: PageColumn  # NaN = pinned
    scores: dict[str, PageColumn]  # by reads.SCORES, as last written; NaN = never


class Opic(Job):
    def run(self, tell: Tell = silent) -> str:
        with store.runs.run(self.url, "opic", self.as_of) as run:
            started = time.monotonic()
            weights = reads.settings(run.connection, Weights).by_score()
            known = read(self.url, tell)
            graph = known.graph
            found = _scored(known, weights["importance"] > 0, tell)

            is_pinned = np.isnan(known.value)
            moved = value.has_moved(value.combined(found.scores, weights), known.value, MOVED) & ~is_pinned
            for name in reads.SCORES:
                share = 0.0 if name == "in_links" else MOVED
                moved |= value.has_moved(found.scores[name], known.scores[name], share)
            changed = int(np.count_nonzero(moved))
            first_share = value.first_share(found.scores, weights, found.scores["in_links"], np.diff(graph.out_starts))
            run.put("put_graph_state", found.mean_relevance, first_share)
            run.put_in_chunks(
                "put_scores",
                graph.page_ids[moved],
                *(found.scores[name][moved] for name in reads.SCORES),
                watch=lambda done: tell("writing scores and values", done, changed),
            )
            record = {"pages": graph.pages, "links": graph.links, "moved": changed}
            run.put("put_opic", record | found.record | {"seconds": time.monotonic() - started})
            hint = "" if found.record["converged"] else f" (the goal is {ERROR:g}: the next run continues)"
            run.message = (
                f"{things(graph.pages, 'page')}, {things(graph.links, 'link')}; "
                f"the error is {count(found.record['error'])} after {things(found.record['sweeps'], 'sweep')}{hint}; "
                f"the scores or values of {things(changed, 'page')} changed"
            )
        return run.message


def read(url: str, tell: Tell = silent) -> KnownGraph:
    tell("reading the graph")
    stored = reads.graph(url, lambda what, rows, most: tell(f"reading the graph: {what}", rows, most))
    order = np.argsort(stored.page_id, kind="stable")
    page_ids = stored.page_id[order]
    graph = compile(page_ids, stored.links.source_ids, stored.links.first, stored.links.target_ids)
    at = positions(page_ids, stored.scored_id)
    is_there = at != NOWHERE
    scores = {name: np.full(len(page_ids), np.nan, np.float32) for name in stored.scores}
    for name, column in stored.scores.items():
        scores[name][at[is_there]] = column[is_there]
    return KnownGraph(graph, stored.relevance[order], stored.value[order], scores)


@dataclass(frozen=True)
class _Scores:
    scores: dict[str, PageColumn]  # the stored scores, and relevance; the mean is 1, except of in_links
    mean_relevance: float
    record: dict[str, float]


class _ErrorProgress:
    """Tells how much of the way to ERROR is done. Each sweep reduces the error by about the same share."""

    def __init__(self, tell: Tell, step: str) -> None:
        self.tell, self.step = tell, step
        self.start, self.done = math.nan, 0.0

    def __call__(self, error: float) -> None:
        if not 0 < error < math.inf:
            return
        if math.isnan(self.start):
            self.start = 2 * max(error, ERROR)  # twice, because the first sweep has done a part of the way
        self.done = max(self.done, min(1.0, math.log(self.start / error) / math.log(self.start / ERROR)))
        self.tell(self.step, self.done, 1)


def _scored(known: KnownGraph, wants_importance: bool, tell: Tell) -> _Scores:
    """Computes the scores, beginning with the scores of the last run."""
    graph, stopping = known.graph, (ERROR, MOST_SWEEPS, os.cpu_count() or 1)
    step = f"sending cash along {things(graph.links, 'link')} between {things(graph.pages, 'page')}"
    tell(step)
    start = opic.resumed(graph, known.scores["hub"].astype(np.float64))
    flow = opic.run(graph, known.relevance, start, *stopping, watch=_ErrorProgress(tell, step))
    plain = opic.Importance(np.full(graph.pages, math.nan), opic.NO_SWEEPS)
    if wants_importance:
        step = f"sending cash once more, without hubs, along {things(graph.links, 'link')}"
        tell(step)
        plain = opic.importance(
            graph, known.scores["importance"].astype(np.float64), *stopping, watch=_ErrorProgress(tell, step)
        )
    relevance = np.nan_to_num(known.relevance, nan=UNKNOWN_RELEVANCE)
    mean_relevance = float(relevance.mean()) if graph.pages else UNKNOWN_RELEVANCE
    return _Scores(
        {
            "hub": _with_mean_1(flow.hub),
            "authority": _with_mean_1(flow.authority),
            "importance": _with_mean_1(plain.scores),
            "in_links": np.diff(graph.into_starts).astype(np.float32),
            "relevance": (relevance / mean_relevance).astype(np.float32)
            if mean_relevance > 1e-6
            else np.ones_like(relevance),
        },
        mean_relevance,
        {
            "sweeps": flow.sweeps.count + plain.sweeps.count,
            "residual": max(flow.sweeps.residual, plain.sweeps.residual),
            "error": max(flow.sweeps.error, plain.sweeps.error),
            "converged": flow.sweeps.converged and plain.sweeps.converged,
            "cash": flow.cash.total,
        },
    )


def _with_mean_1(shares: opic.Amounts) -> PageColumn:
    return (shares * len(shares)).astype(np.float32)
