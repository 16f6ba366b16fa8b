"""The links between pages as compact arrays: two for the pages that a page links to, and two for the pages that link
to it.

Inside a graph a page is its position in `page_ids`. Links are distinct and ascending. A link from a page to itself is
left out, because it says nothing about the opinion of others. A link from or to a page outside of the graph is left out
too.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.compiled import compiled

Ids = NDArray[np.int64]
Offsets = NDArray[np.int64]
Positions = NDArray[np.uint32]

NOWHERE = 2**32 - 1  # the position of an id that is not in the graph
CHUNK = 1 << 20  # ids that are looked up in one go: their positions first need 8 bytes each, and later only 4


@dataclass(frozen=True)
class Graph:
    """Page p links to the pages out[out_starts[p] : out_starts[p + 1]]. `into` has the pages that link to p, in the
    same form."""

    page_ids: Ids  # ascending
    out_starts: Offsets
    out: Positions
    into_starts: Offsets
    into: Positions

    @property
    def pages(self) -> int:
        return len(self.page_ids)

    @property
    def links(self) -> int:
        return len(self.out)


def compile(page_ids: ArrayLike, source_ids: ArrayLike, starts: ArrayLike, target_ids: ArrayLike) -> Graph:
    """The graph of these pages, where source s links to target_ids[starts[s] : starts[s + 1]].

    `page_ids` are ascending; sources come in any order, once each; a page that is no source has no links.
    Beyond its arguments it needs 8 bytes a link and 30 a page.
    """
    page_ids, starts, target_ids = (np.asarray(ids, np.int64) for ids in (page_ids, starts, target_ids))
    sources = positions(page_ids, np.asarray(source_ids, np.int64))
    known = np.flatnonzero(sources != NOWHERE)
    row_of = np.full(len(page_ids), -1, np.int64)  # the row of each page; -1: it is no source
    row_of[sources[known]] = known
    targets = positions(page_ids, target_ids)
    out_starts = np.zeros(len(page_ids) + 1, np.int64)
    out = np.empty(len(target_ids), np.uint32)
    _fill_out(row_of, starts, targets, out_starts, out)
    del targets
    out = out[: out_starts[-1]].copy()
    into_starts = np.zeros(len(page_ids) + 1, np.int64)
    into = np.empty(len(out), np.uint32)
    _turn_round(out_starts, out, into_starts, into)
    return Graph(page_ids, out_starts, out, into_starts, into)


def positions(page_ids: Ids, ids: Ids) -> Positions:
    """Where these ids are in page_ids (ascending); NOWHERE for those that are not."""
    found = np.full(len(ids), NOWHERE, np.uint32)
    if len(page_ids):
        for start in range(0, len(ids), CHUNK):
            part = ids[start : start + CHUNK]
            position = np.searchsorted(page_ids, part)
            is_there = page_ids.take(position, mode="clip") == part
            found[start : start + CHUNK][is_there] = position[is_there]
    return found


@compiled(nogil=True)
def _fill_out(row_of: Offsets, starts: Offsets, targets: Positions, out_starts: Offsets, out: Positions) -> None:
    end = 0
    for page in range(row_of.size):
        begin = end
        if row_of[page] >= 0:
            for k in range(starts[row_of[page]], starts[row_of[page] + 1]):
                target = targets[k]
                if target != NOWHERE and target != page:
                    out[end] = target
                    end += 1
            out[begin:end].sort()
            distinct = begin
            for k in range(begin, end):
                if k == begin or out[k] != out[k - 1]:
                    out[distinct] = out[k]
                    distinct += 1
            end = distinct
        out_starts[page + 1] = end


@compiled(nogil=True)
def _turn_round(starts: Offsets, links: Positions, back_starts: Offsets, back: Positions) -> None:
    """A counting sort by target: sources are met in ascending order, so every row of `back` is ascending."""
    for k in range(links.size):
        back_starts[links[k] + 1] += 1
    total = 0
    for page in range(back_starts.size - 1):  # back_starts[p + 1] is where the next link to p goes
        count = back_starts[page + 1]
        back_starts[page + 1] = total
        total += count
    for page in range(starts.size - 1):
        for k in range(starts[page], starts[page + 1]):
            target = links[k]
            back[back_starts[target + 1]] = page
            back_starts[target + 1] += 1
