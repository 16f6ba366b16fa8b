"""The terms with which values follow from scores. SQL computes the values: combined_value() in sql/jobs/opic.sql."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from recrawl.model.limits import MOVED

PageColumn = NDArray[np.float32]
Counts = NDArray[np.int64]


def has_moved(now: PageColumn, then: PageColumn, share: float) -> NDArray[np.bool_]:
    """Whether each score moved by more than this share, or is a first score (the old one is nan)."""
    moved: NDArray[np.bool_] = (np.abs(now - then) > share * then) | (np.isnan(then) & ~np.isnan(now))
    return moved


def terms(weights: Mapping[str, float], mean_relevance: float, last: Mapping[str, float] | None) -> dict[str, float]:
    """The terms of values. They are the last terms, unless a weight changed, or the mean relevance counts and moved by
    more than the share MOVED."""
    now = {**weights, "mean_relevance": mean_relevance}
    if last is None or any(last.get(name) != weight for name, weight in weights.items()):
        return now
    moved = abs(mean_relevance - last["mean_relevance"]) > MOVED * last["mean_relevance"]
    return now if weights["relevance"] > 0 and moved else dict(last)


def first_share(
    parts: Mapping[str, PageColumn], weights: Mapping[str, float], in_links: PageColumn, out_links: Counts
) -> float:
    """A page starts with this share of the value of the page on which its first link is found. The share is the mean
    value of linked pages without links of their own, divided by the mean value of pages with links. So a new page is
    neither better nor worse off than the pages that wait already. It is one half if one of the two kinds does not
    exist."""
    is_waiting, is_source = (out_links == 0) & (in_links > 0), out_links > 0
    if not is_waiting.any() or not is_source.any():
        return 0.5
    used = [(weight, parts[name]) for name, weight in weights.items() if weight > 0]
    of_waiting = sum(weight * float(part[is_waiting].mean()) for weight, part in used)
    of_sources = sum(weight * float(part[is_source].mean()) for weight, part in used)
    return min(1.0, max(0.01, of_waiting / of_sources)) if of_sources > 0 else 0.5
