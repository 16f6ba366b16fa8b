"""Dual ascent, as in the optimal revisiting algorithm of crawlfrontier: golden section on the dual of the Lagrangian.

Maximises the value of the changes found, Σ value·frequency·(1 − e^(−rate/frequency)), with Σ frequency = budget. (The
freshness of Cho & Garcia-Molina is the same problem with value/rate instead of value.) At a given price per fetch the
best frequency of each page does not depend on other pages. The dual is a convex function of the price. The right price
is at its minimum.

Cost: about 80 passes over the pages. Limit: the dual is flat near its minimum. When half of the digits of the price are
right, the dual has the same value at two neighbouring prices. The spent fetches then differ from the budget by 1e−8 to
1e−7 of it, and by some percent if the budget allows only a few fetches of a few pages. More steps do not help. A root
search on the spent fetches finds all digits, with a quarter of the passes.
"""

import numpy as np
from numpy.typing import ArrayLike

from recrawl.lab.methods.page import Array, changes_found, checked, visits_per_change

GOLDEN = (5**0.5 - 1) / 2


def solve(value: ArrayLike, rate: ArrayLike, budget: float) -> Array:
    """Fetches per day of every page."""
    values, rates = checked(value, rate, budget)
    return frequency(price(values, rates, budget), values, rates)


def frequency(price: float, value: Array, rate: Array) -> Array:
    """The best frequency of each page at that price: λ·g(price/value). (In the source g takes −price/value.)"""
    crawled = (value > 0) & (rate > 0)
    result = np.zeros_like(rate)
    result[crawled] = rate[crawled] * visits_per_change(price, value[crawled])
    return result


def dual(price: float, value: Array, rate: Array, budget: float) -> float:
    """The largest value minus cost, plus the cost of the budget: Q(α) of the source, with α = −N·price."""
    f = frequency(price, value, rate)
    return float(np.sum(value * changes_found(f, rate) - price * f) + price * budget)


def price(value: Array, rate: Array, budget: float) -> float:
    """The price with the smallest dual. It lies between 0 and the worth of the first fetch of the best page."""
    low, high = 0.0, float(np.max(value, where=rate > 0, initial=0.0))
    if budget == 0:
        return high
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = dual(left, value, rate, budget), dual(right, value, rate, budget)
    while low < left < right < high:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = dual(left, value, rate, budget)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = dual(right, value, rate, budget)
    return (low + high) / 2
