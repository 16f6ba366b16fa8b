"""The closed form of Azar et al., Tractable near-optimal policies for crawling, 2018.

Maximises Σ value·frequency/(frequency + rate): the freshness if visits, too, come at random. Where the marginal
value·rate/(frequency + rate)² equals the price, frequency = √(value·rate/price) − rate. The crawled pages are those
with the largest value/rate, and given which they are the price follows from the budget.

Cost: a sort. Where it fails: the frequencies are differences, so that with a budget of 1e−k of the rates only 16 − k
digits are left.
"""

import numpy as np
from numpy.typing import ArrayLike

from recrawl.lab.methods.page import Array, checked


def solve(value: ArrayLike, rate: ArrayLike, budget: float) -> Array:
    """Fetches per day of every page."""
    values, rates = checked(value, rate, budget)
    changing = rates > 0
    value, rate = values[changing], rates[changing]
    best_first = np.argsort(-value / rate, kind="stable")
    pull, drag = np.sqrt(value * rate)[best_first], rate[best_first]
    # If the k best pages are crawled, Σ√(value·rate/price) − Σ rate = budget.
    root_price = np.cumsum(pull) / (budget + np.cumsum(drag))
    # The k-th gets something if √(value/rate) exceeds the root of that price: true up to some k, false from there.
    crawled = np.count_nonzero(pull > root_price * drag) if budget > 0 else 0
    frequency = np.zeros_like(rate)
    if crawled:
        best = best_first[:crawled]
        frequency[best] = np.maximum(pull[:crawled] / root_price[crawled - 1] - drag[:crawled], 0)
    result = np.zeros_like(rates)
    result[changing] = frequency
    return result
