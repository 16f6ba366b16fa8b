"""Values from scores, and the share of its parent's value with which a page starts."""

import numpy as np
import pytest

from recrawl.model.graph.value import combined, first_share

NO_LINKS, LINKS = 0, 5


def share(waiting: list[float], sources: list[float], weights: dict[str, float] | None = None) -> float:
    """first_share of pages with these authorities: `waiting` are linked and have no links, `sources` have links. One
    more page was added by hand: it has no links at all and must not count. No page has an importance."""
    authority = np.array([*waiting, *sources, 100], np.float32)
    in_links = np.array([*([1] * len(waiting)), *([1] * len(sources)), 0], np.float32)
    out_links = np.array([*([NO_LINKS] * len(waiting)), *([LINKS] * len(sources)), NO_LINKS])
    parts = {"authority": authority, "importance": np.full(len(authority), np.nan, np.float32)}
    return first_share(parts, weights or {"authority": 2.0, "importance": 0.0}, in_links, out_links)


def test_a_new_page_starts_like_the_pages_that_wait() -> None:
    assert share([0.2, 0.4], [1.0, 2.0]) == pytest.approx(0.3 / 1.5)
    assert share([3.0], [1.0]) == 1, "no better than its parent"
    assert share([1e-6], [1.0]) == 0.01, "and not much worse"


def test_where_nothing_can_be_compared_it_starts_with_half() -> None:
    assert share([], [1.0]) == share([1.0], []) == share([1.0], [0.0]) == 0.5
    assert share([1.0], [2.0], {"authority": 0.0, "importance": 0.0}) == 0.5


def test_a_value_is_the_weighted_mean_of_the_scores_that_have_a_weight() -> None:
    scores = {"authority": np.array([2, 1], np.float32), "relevance": np.array([1, 4], np.float32)}
    scores["importance"] = np.full(2, np.nan, np.float32)
    weights = {"authority": 3.0, "relevance": 1.0, "importance": 0.0}
    assert combined(scores, weights).tolist() == [7 / 4, 7 / 4]
    assert np.isnan(combined(scores, dict.fromkeys(weights, 0.0))).all(), "values stay as they are"
