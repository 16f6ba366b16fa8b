"""Finds the price of an open market in a few passes over the pages. In an open market all pages have one price and no
limits.

Pages of about the same weight are replaced by two pages with the same sum of rates, mean weight and variance of
weights. This model is solved in almost no time, but its error is up to 1e-3, because demand has an infinite slope where
the price reaches the weight of a page. So the pages with weights near the price are put into the model one by one. The
error is then 1e-10 or less, unless the demand of one page jumps across the budget.
"""

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats, Objective
from recrawl.model.allocation.passes import BIN_BITS, Passes, passes_for
from recrawl.model.compiled import scalar

_NEAR = 16  # bins on each side of the price: an eighth of it or less


def open_market_price(
    objective: Objective, value: NDArray[np.floating[Any]], rate: NDArray[np.floating[Any]], budget: float
) -> float:
    """A price that spends about the budget, for 0 < budget < inf. The caller must check how exact it is."""
    passes, model = passes_for(objective), passes_for(_by_weight(objective))
    row, bins = passes.histogram(value, rate)
    weights, rates = _stand_ins(row, bins)
    price = _solve(model, weights, rates, budget, 0.0)

    middle = int(np.float64(price).view(np.int64) >> BIN_BITS)
    lowest, highest = _edge(np.array([middle - _NEAR, middle + _NEAR + 1]))
    near = int(bins[np.abs(row - middle) <= _NEAR, 0].sum())
    if near > max(len(value) / 8, 10_000):  # a list of these pages would cost memory and more time than it saves
        return price
    near_weights, near_rates = np.empty(near + 1), np.empty(near + 1)
    passes.collect(value, rate, lowest, highest, near_weights, near_rates)
    far = (weights < lowest) | (weights >= highest)
    weights, rates = np.concatenate((weights[far], near_weights[:-1])), np.concatenate((rates[far], near_rates[:-1]))
    return _solve(model, weights, rates, budget, price)


@cache
def _by_weight(objective: Objective) -> Objective:
    """The same objective for pages that are given by weight and rate."""

    @scalar
    def given(weight, rate):  # type: ignore[no-untyped-def]
        return weight

    drops = objective.drops

    @scalar
    def first_fetch(frequency, weight, rate):  # type: ignore[no-untyped-def]
        # An open market calls worth_of only for the worth of the first fetch.
        return 0.0, weight if drops else math.inf

    return replace(objective, name=f"{objective.name}_by_weight", weight_of=given, worth_of=first_fetch)


def _edge(row: NDArray[np.int64]) -> Floats:
    return (row.clip(0) << BIN_BITS).view(np.float64)


def _stand_ins(row: NDArray[np.int64], bins: Floats) -> tuple[Floats, Floats]:
    rates = bins[:, 1]
    mean = bins[:, 2] / rates
    deviation = np.sqrt(np.maximum(bins[:, 3] / rates - mean * mean, 0))
    places = np.concatenate((mean - deviation, mean + deviation))  # may lie outside of the bin, by half a bin
    start, width = _edge(row), _edge(row + 1) - _edge(row)
    return np.tile(start, 2) + places * np.tile(width, 2), np.tile(rates / 2, 2)


def _solve(model: Passes, weights: Floats, rates: Floats, wanted: float, start: float) -> float:
    low, _, high, _ = model.price_of_host(weights, rates, wanted, 0.0, math.inf, 0.0, math.inf, start)
    return float((low + high) / 2)
