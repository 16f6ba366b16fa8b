"""CHO and OPT_POLITE, as in thesis chapter 4: the best freshness without and with a gap between requests to a host.

Both maximise Σ value·(frequency/rate)(1 − e^(−rate/frequency)) with Σ frequency ≤ budget. CHO (Cho & Garcia-Molina)
does nothing else. Its value is the bound UNPOLITE. OPT_POLITE also keeps the sum of the frequencies of each host within
the cap of the host, which is 1/gap. Its value is the bound POLITE. It allocates without caps and fixes each host that
got too much at its cap. Then it begins again with the other hosts and the rest of the budget, until no host gets too
much.

The thesis proves this for pages of equal value and hosts of equal gap. The proof needs only two facts: the marginal of
a page falls as its frequency grows, and each fixing leaves more for the other hosts. So the method is exact for any
values, any caps and any such objective. If all hosts are at their caps, a part of the budget is left over. A page that
never changes gets nothing.

Cost: each round fixes at least one host, so at worst hosts × pages; three to six rounds on webs of 200 hosts.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from recrawl.lab.methods.page import Array, checked, grouped, visits_per_change
from recrawl.model.checks import refuse


def cho(value: ArrayLike, rate: ArrayLike, budget: float) -> Array:
    """Fetches per day of every page, without politeness. They add up to the budget, to the last digits."""
    values, rates = checked(value, rate, budget)
    crawled = (values > 0) & (rates > 0)
    result = np.zeros_like(rates)
    if budget == 0 or not crawled.any():
        return result
    weight, rate = values[crawled] / rates[crawled], rates[crawled]

    def frequency(log_price: float) -> Array:
        return rate * visits_per_change(np.exp(log_price), weight)

    def overspent(log_price: float) -> float:
        return float(frequency(log_price).sum()) - budget

    dear = float(np.log(weight.max())) + 1e-9  # at this price no page is fetched
    span = 1.0
    while overspent(dear - span) < 0:
        span *= 2
    log_price = brentq(overspent, dear - span, dear, xtol=1e-15, rtol=1e-15)
    # Near the price of its first fetch the frequency of a page jumps between two neighbouring doubles: mix both sides.
    width = 1e-15
    while overspent(log_price - width) < 0 or overspent(log_price + width) > 0:
        width *= 2
    much, little = frequency(log_price - width), frequency(log_price + width)
    share = (budget - little.sum()) / (much.sum() - little.sum()) if much.sum() > little.sum() else 0.0
    result[crawled] = little + share * (much - little)
    return result


def solve(
    value: ArrayLike,
    rate: ArrayLike,
    host: NDArray[np.integer],
    cap: ArrayLike,
    budget: float,
    allocate: Callable[[Array, Array, float], Array] = cho,
) -> Array:
    """Fetches per day of every page, politely.

    `host` is the position in `cap` of each page's host; `cap` is the most fetches per day of each host, infinite for no
    limit.
    Another objective's allocation in place of `allocate` gives that objective's polite optimum.
    """
    values, rates = checked(value, rate, budget)
    caps = np.asarray(cap, np.float64)
    refuse("cap", caps, ~(caps >= 0), "not negative")
    pages_of = grouped(host, values.size, caps.size)
    frequency = np.zeros_like(rates)
    free = np.ones(caps.size, bool)
    while True:
        pages = free[host]
        left = max(0.0, budget - caps[~free].sum())
        frequency[pages] = allocate(values[pages], rates[pages], left)
        violated = free & (np.bincount(host, frequency, minlength=caps.size) > caps)
        if not violated.any():
            return frequency
        for s in np.flatnonzero(violated):
            frequency[pages_of[s]] = allocate(values[pages_of[s]], rates[pages_of[s]], float(caps[s]))
        free &= ~violated
