"""LambdaCrawl (Kolobov et al., Staying up to date with online content changes, 2019): some pages announce every
change.

After n missed changes the staleness of a copy is 1 + 1/2 + … + 1/n. So a page that is fetched at random moments is
worth value·ln(frequency/(frequency + rate)). A page that announces every change is fetched after an announcement with
probability p. It is worth value·ln p and costs rate·p fetches per day. Both kinds have the same price, which spends the
budget. At a price, pages of the first kind have

    frequency = (√(rate² + 4·value·rate/price) − rate)/2    and the second    p = min(1, value/(rate·price)).

Each page that changes and has a value is fetched, even if its value is tiny. Cost: one pass over the pages for each
price that is tried, some ten. A page without value is never fetched. If all changes of announced pages are fetched and
there is no other page, the price is 0.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq

from recrawl.lab.methods.page import Array, checked


def solve(value: ArrayLike, rate: ArrayLike, budget: float, announced: NDArray[np.bool]) -> Array:
    """Fetches per day of every page. The fetches of an announced page, divided by its rate, are the probability p."""
    values, rates = checked(value, rate, budget)
    if announced.size != values.size:
        raise ValueError(f"announced must be as long as value, {values.size}, got {announced.size}")
    return frequency(price(values, rates, budget, announced), values, rates, announced)


def frequency(price: float, value: Array, rate: Array, announced: NDArray[np.bool]) -> Array:
    if price == 0:
        return np.where(announced & (value > 0), rate, np.where((value > 0) & (rate > 0), np.inf, 0.0))
    most = value / price  # no page gets more than this at this price
    with np.errstate(divide="ignore", invalid="ignore"):
        # The formula at the top, written without the subtraction.
        at_random = 2 * most / (1 + np.sqrt(1 + 4 * most / rate))
    return np.where(rate == 0, 0.0, np.where(announced, np.minimum(rate, most), at_random))


def price(value: Array, rate: Array, budget: float, announced: NDArray[np.bool]) -> float:
    """The price of a fetch: infinite without a budget, 0 if every change of every page can be fetched on notice."""
    crawled = (value > 0) & (rate > 0)
    if budget == 0:
        return np.inf
    if np.all(announced[crawled]) and rate[crawled].sum() <= budget:
        return 0.0

    def overspent(log_price: float) -> float:
        return float(frequency(np.exp(log_price), value, rate, announced).sum()) - budget

    high = float(np.log(value[crawled].sum() / budget))  # no page gets more than value/price
    span = 1.0
    while overspent(high - span) < 0:
        span *= 2
    return float(np.exp(brentq(overspent, high - span, high + 1e-9, xtol=1e-15, rtol=1e-15)))
