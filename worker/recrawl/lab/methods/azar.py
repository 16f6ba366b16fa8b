"""The closed form of Azar et al., Tractable near-optimal policies for crawling, 2018.

Maximises Σ value·frequency/(frequency + rate): the freshness if fetches come at random moments too. A fetch is worth
its price if the marginal value·rate/(frequency + rate)² equals the price. Then frequency = √(value·rate/price) − rate.
The pages with the largest value/rate are crawled. Given these pages, the price follows from the budget.

Cost: a sort. Limit: the frequencies are differences. With a budget of 1e−k of the rates only 16 − k digits are exact.
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
    # Page k gets fetches if √(value/rate) is larger than the root of that price: true up to some k, false after it.
    crawled = np.count_nonzero(pull > root_price * drag) if budget > 0 else 0
    frequency = np.zeros_like(rate)
    if crawled:
        best = best_first[:crawled]
        frequency[best] = np.maximum(pull[:crawled] / root_price[crawled - 1] - drag[:crawled], 0)
    result = np.zeros_like(rates)
    result[changing] = frequency
    return result
