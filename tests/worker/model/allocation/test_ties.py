"""The fetches of pages whose gain is exactly the price. The price alone does not determine them."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recrawl.model.allocation import terms
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.solve import Web, allocate


def web(rate: float, cap: float = math.inf) -> Web:
    """Twenty equal pages on a host without a cap, twenty on one with."""
    return Web(np.ones(40), np.full(40, rate), np.array([0, 20, 40]), np.array([math.inf, cap]))


@pytest.mark.parametrize("objective", ["freshness", "new_content"])
def test_equals_that_change_much_faster_than_they_are_fetched_spend_the_budget_all_the_same(objective: str) -> None:
    fast = web(rate=100.0, cap=2.0)
    found = allocate(fast, 12.0, objective)
    asked = 100 * 20 * terms.per_change_at_the_price(fast, found, objective)
    assert asked.sum() == pytest.approx(12)
    assert asked == pytest.approx([found.frequency[:20].sum(), found.frequency[20:].sum()])


def test_there_are_none_where_a_price_tells_pages_apart() -> None:
    slow = web(rate=0.5)
    assert np.isnan(terms.per_change_at_the_price(slow, allocate(slow, 12.0), "freshness")).all()


def test_pages_that_get_nothing_are_no_ties() -> None:
    fast = Web(np.ones(2), np.array([100.0, 1e6]), np.array([0, 2]), np.array([math.inf]))
    assert np.isnan(terms.per_change_at_the_price(fast, allocate(fast, 0.0), "freshness")).all()


def test_at_an_infinite_price_no_page_is_tied() -> None:
    slow = web(rate=0.5)
    found = replace(allocate(slow, 12.0), host_price=np.full(2, math.inf))
    assert np.isnan(terms.per_change_at_the_price(slow, found, "freshness")).all()


@pytest.mark.parametrize("exploration", [0.05, 0.3, 0.5])
def test_with_floors_they_get_what_is_left_of_what_they_were_given(exploration: float) -> None:
    rate = 200 * np.exp(np.random.default_rng(4).normal(size=300))
    fast = Web(np.ones(300), rate, np.array([0, 200, 300]), np.array([20.0, 1e3]))
    found = allocate(fast, 40.0, "new_content", Limits(exploration=exploration))
    asked = np.repeat(terms.per_change_at_the_price(fast, found, "new_content"), [200, 100])
    floor = np.repeat(found.host_floor, [200, 100])
    told = np.where(np.isnan(asked), floor, np.maximum(floor, rate * asked))
    assert told[:200].sum() == pytest.approx(found.frequency[:200].sum(), rel=1e-9)
    assert told.sum() == pytest.approx(40)
