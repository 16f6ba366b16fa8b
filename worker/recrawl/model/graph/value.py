"""How values follow from scores. SQL computes the values that are stored: combined_value() in sql/jobs/opic.sql."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

PageColumn = NDArray[np.float32]
Counts = NDArray[np.int64]


def has_moved(now: PageColumn, then: PageColumn, share: float) -> NDArray[np.bool_]:
    """Whether each score moved by more than this share, or is a first score (the old one is nan)."""
    moved: NDArray[np.bool_] = (np.abs(now - then) > share * then) | (np.isnan(then) & ~np.isnan(now))
    return moved


def combined(scores: Mapping[str, PageColumn], weights: Mapping[str, float]) -> PageColumn:
    """The mean of the scores, weighted; nan if all weights are 0, because values then stay as they are."""
    combined = np.zeros_like(scores["relevance"])
    for name, weight in weights.items():
        if weight > 0:
            combined += weight * scores[name]
    total = sum(weights.values())
    return combined / total if total > 0 else np.full_like(combined, np.nan)


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
