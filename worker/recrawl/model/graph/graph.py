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
    out_starts = np.zeros(len(page_ids) + 1, np.int64)
    out = np.empty(len(target_ids), np.uint32)
    _fill_out(page_ids, *_signposts(page_ids), row_of, starts, target_ids, out_starts, out)
    out = out[: out_starts[-1]].copy()
    into_starts = np.zeros(len(page_ids) + 1, np.int64)
    into = np.empty(len(out), np.uint32)
    _turn_round(out_starts, out, into_starts, into)
    return Graph(page_ids, out_starts, out, into_starts, into)


# ------------------------------------------------------------------------------------------------ from id to position


def positions(page_ids: Ids, ids: Ids) -> Positions:
    """Where these ids are in page_ids (ascending); NOWHERE for those that are not."""
    found = np.empty(len(ids), np.uint32)
    _find_all(page_ids, *_signposts(page_ids), ids, found)
    return found


def _signposts(page_ids: Ids) -> tuple[int, Positions]:
    """For each bucket of 2^shift ids the first position in it. Ids come from sequences and have few holes, so a bucket
    has one page or two. If it has more, the search in it is a binary search."""
    if len(page_ids) == 0:
        return 0, np.zeros(2, np.uint32)
    span = int(page_ids[-1]) - int(page_ids[0])
    shift = max(0, (span // (2 * len(page_ids))).bit_length())
    posts = np.empty((span >> shift) + 2, np.uint32)
    _put_up_signposts(page_ids, shift, posts)
    return shift, posts


@compiled(nogil=True)
def _put_up_signposts(page_ids: Ids, shift: int, posts: Positions) -> None:
    bucket = 0
    for position in range(page_ids.size):
        its_bucket = np.int64(np.uint64(page_ids[position] - page_ids[0]) >> np.uint64(shift))
        while bucket <= its_bucket:
            posts[bucket] = position
            bucket += 1
    posts[bucket] = page_ids.size


@compiled(nogil=True)
def _find(page_ids: Ids, shift: int, posts: Positions, page_id: int) -> int:
    if page_ids.size == 0 or page_id < page_ids[0] or page_id > page_ids[-1]:
        return NOWHERE
    # The difference may exceed an int64; as an uint64 it is right.
    bucket = np.int64(np.uint64(page_id - page_ids[0]) >> np.uint64(shift))
    low, high = np.int64(posts[bucket]), np.int64(posts[bucket + 1])
    while low < high:
        middle = (low + high) >> 1
        if page_ids[middle] < page_id:
            low = middle + 1
        else:
            high = middle
    return int(low) if low < page_ids.size and page_ids[low] == page_id else NOWHERE


@compiled(nogil=True)
def _find_all(page_ids: Ids, shift: int, posts: Positions, ids: Ids, found: Positions) -> None:
    for i in range(ids.size):
        found[i] = _find(page_ids, shift, posts, ids[i])


# ---------------------------------------------------------------------------------------------------------- the links


@compiled(nogil=True)
def _fill_out(
    page_ids: Ids, shift: int, posts: Positions, row_of: Offsets, starts: Offsets, target_ids: Ids,
    out_starts: Offsets, out: Positions,
) -> None:  # fmt: skip
    end = 0
    for page in range(page_ids.size):
        begin = end
        if row_of[page] >= 0:
            for k in range(starts[row_of[page]], starts[row_of[page] + 1]):
                target = _find(page_ids, shift, posts, target_ids[k])
                if target != NOWHERE and target != page:
                    out[end] = target
                    end += 1
            _sort(out[begin:end])
            distinct = begin
            for k in range(begin, end):
                if k == begin or out[k] != out[k - 1]:
                    out[distinct] = out[k]
                    distinct += 1
            end = distinct
        out_starts[page + 1] = end


@compiled(nogil=True)
def _sort(row: Positions) -> None:
    """Sorts in place. Rows from the database are in ascending order already. Rows of other callers are short."""
    for k in range(1, row.size):
        if row[k] < row[k - 1]:
            row.sort()
            return


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
