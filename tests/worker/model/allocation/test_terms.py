"""An allocation is stored without loss: the common terms once, and for other hosts the differences."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.model.allocation.pins import PinShares
from recrawl.model.allocation.solve import Web, allocate
from recrawl.model.allocation.terms import COMMON, HostTerms, host_terms
from recrawl.model.limits import EQUAL

HOSTS = np.array([7, 8, 9])
NOBODY = np.array([], np.int64)
NO_PINS = PinShares(1.0, np.ones(3), np.zeros(3))


def web(cap: list[float], pages: int = 20, rate: float | None = None) -> Web:
    rng = np.random.default_rng(3)
    count = pages * len(cap)
    rates = np.full(count, rate) if rate is not None else rng.uniform(0.05, 3, count)
    return Web(rng.uniform(0.5, 2, count) if rate is None else np.ones(count), rates,
               np.arange(len(cap) + 1) * pages, np.array(cap))  # fmt: skip


def in_force(terms: HostTerms, host: int, of: Web, ceiling: float) -> NDArray[np.float64]:
    """As SQL works frequencies out: a host's own terms, else the common ones; ties belong to the price."""
    row = int(np.flatnonzero(terms.host_id == HOSTS[host])[0])
    own = not math.isnan(terms.price[row])
    price, tied = (terms.price[row], terms.ties[row]) if own else (terms.price[0], terms.ties[0])
    floor = terms.floor[0] if math.isnan(terms.floor[row]) else terms.floor[row]
    page = slice(of.starts[host], of.starts[host + 1])
    bought = OBJECTIVES["freshness"].frequency(price, of.value[page], of.rate[page])
    weight = OBJECTIVES["freshness"].weight(of.value[page], of.rate[page])
    if not math.isnan(tied):
        bought = np.where(np.abs(weight - price) <= EQUAL * price, of.rate[page] * tied, bought)
    said: NDArray[np.float64] = np.minimum(ceiling, np.maximum(floor, bought))
    return said


@pytest.mark.parametrize(
    ("cap", "rate", "limits"),
    [
        ([1e9, 1e9, 1e9], None, Limits()),
        ([1e9, 4.0, 1e9], None, Limits(exploration=0.05, shortest_interval=0.01)),
        ([1e9, 4.0, 0.5], None, Limits(exploration=0.1, longest_interval=30)),
        ([1e9, 1e9, 2.0], 50.0, Limits()),
    ],
)
def test_what_is_stored_says_what_was_allocated(cap: list[float], rate: float | None, limits: Limits) -> None:
    of = web(cap, rate=rate)
    found = allocate(of, 30.0, "freshness", limits)
    terms = host_terms(HOSTS, NOBODY, of, found, "freshness", NO_PINS)
    assert terms.host_id.tolist() == [COMMON, *HOSTS]
    for host in range(3):
        page = slice(of.starts[host], of.starts[host + 1])
        said = in_force(terms, host, of, limits.ceiling)
        np.testing.assert_allclose(said, found.frequency[page], rtol=1e-7, atol=1e-12)
        assert terms.frequency[1 + host] == pytest.approx(found.frequency[page].sum())
    assert terms.capped.tolist() == [False, *found.capped]


def test_hosts_at_the_common_price_store_none_of_their_own() -> None:
    of = web([1e9, 4.0, 1e9])
    terms = host_terms(HOSTS, NOBODY, of, allocate(of, 30.0), "freshness", NO_PINS)
    assert np.isnan(terms.price).tolist() == [False, True, False, True]
    assert terms.price[2] > terms.price[0]


def test_a_budget_beyond_what_all_can_take_leaves_no_common_price() -> None:
    of = web([1.0, 1.0, 1.0])
    terms = host_terms(HOSTS, NOBODY, of, allocate(of, 1e6), "freshness", NO_PINS)
    assert math.isnan(terms.price[0]) and np.isfinite(terms.price[1:]).all()


def test_where_nothing_changes_only_the_floor_is_given_however_large_the_budget() -> None:
    of = web([1e9, 1e9, 1e9], rate=0.0)
    limits = Limits(exploration=0.1, longest_interval=30, shortest_interval=0.01)
    of.rate[:20] = 2.0
    found = allocate(of, 1e6, "freshness", limits)
    terms = host_terms(HOSTS, NOBODY, of, found, "freshness", NO_PINS)
    for host in range(3):
        said = in_force(terms, host, of, limits.ceiling)
        np.testing.assert_allclose(said, found.frequency[of.starts[host] : of.starts[host + 1]], rtol=1e-7)
    assert terms.price[1:].tolist() == [0, math.inf, math.inf]


def test_a_closed_host_gets_nothing() -> None:
    of = web([1e9, 1e9, 1e9])
    terms = host_terms(HOSTS, np.array([12]), of, allocate(of, 30.0), "freshness", NO_PINS)
    assert (terms.host_id[-1], terms.price[-1], terms.floor[-1], terms.frequency[-1]) == (12, math.inf, 0, 0)
    assert terms.capped[-1]


def test_a_crawl_without_pages_has_common_terms_only() -> None:
    nothing = Web(np.array([]), np.array([]), np.array([0]), np.array([]))
    terms = host_terms(NOBODY, NOBODY, nothing, allocate(nothing, 10.0), "freshness", PinShares(1.0, *np.zeros((2, 0))))
    assert terms.host_id.tolist() == [COMMON] and math.isnan(terms.price[0]) and terms.floor.tolist() == [0]
