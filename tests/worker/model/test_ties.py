"""What prices alone cannot tell: how much of the budget pages get that all earn exactly the price."""

import math

import numpy as np
import pytest

from recrawl.model import ties
from recrawl.model.allocation import Web, allocate


def web(rate: float, cap: float = math.inf) -> Web:
    """Twenty equal pages on a host without a cap, twenty on one with."""
    return Web(np.ones(40), np.full(40, rate), np.array([0, 20, 40]), np.array([math.inf, cap]))


@pytest.mark.parametrize("objective", ["freshness", "new_content"])
def test_equals_that_change_much_faster_than_they_are_fetched_spend_the_budget_all_the_same(objective: str) -> None:
    fast = web(rate=100.0, cap=2.0)
    found = allocate(fast, 12.0, objective)
    asked = 100 * 20 * ties.fetches_per_change(fast, found, objective)
    assert asked.sum() == pytest.approx(12)
    assert asked == pytest.approx([found.frequency[:20].sum(), found.frequency[20:].sum()])


def test_there_are_none_where_a_price_tells_pages_apart() -> None:
    slow = web(rate=0.5)
    assert np.isnan(ties.fetches_per_change(slow, allocate(slow, 12.0), "freshness")).all()


def test_a_page_at_its_floor_is_no_tie() -> None:
    fast = Web(np.ones(2), np.array([100.0, 1e6]), np.array([0, 2]), np.array([math.inf]))
    assert np.isnan(ties.fetches_per_change(fast, allocate(fast, 0.0), "freshness")).all()
