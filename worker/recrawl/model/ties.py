"""What pages get that earn exactly their host's price: the part of an allocation that prices alone cannot tell.

A page that changes much more often than it is fetched earns its weight, to the last digit, whatever its frequency:
1 − φ(u) is 4e-8 at 20 changes a fetch and below a double's resolution at 40. Where all pages are such, as on a crawl
with few fetches for many pages of which little is known, the budget runs out among equals, and the price only says so.
"""

import math

import numpy as np

from recrawl.model.allocation import Allocation, Web
from recrawl.model.objectives import Floats, objective_named

# How far, relatively, a weight may be from the price and still count as equal to it: further than a price may be off
# that was found between two that buy too much and too little (1e-10). sql/objective.sql has the same number.
EQUAL = 3e-10


def fetches_per_change(web: Web, allocation: Allocation, objective: str) -> Floats:
    """Of each host's pages that earn its price, such that together they get what they were given; NaN without any.

    A page gets its floor if that is more, so the others share what is left: like water over steps, from above.
    """
    price = np.repeat(allocation.host_price, np.diff(web.first))
    weight = objective_named(objective).weight(web.value, web.rate)
    with np.errstate(invalid="ignore"):
        tied = np.flatnonzero((np.abs(weight - price) <= EQUAL * price) & (allocation.frequency > 0) & (weight > 0))
    hosts = len(web.cap)
    host = np.searchsorted(web.first, tied, side="right") - 1
    rate, floor = web.rate[tied].astype(np.float64), allocation.host_floor[host]
    given = np.bincount(host, allocation.frequency[tied], minlength=hosts)
    shares = np.ones(len(tied), np.bool_)
    while True:
        changes = np.bincount(host, rate * shares, minlength=hosts)
        left = given - np.bincount(host, floor * ~shares, minlength=hosts)
        asked = np.where(changes > 0, left / np.where(changes > 0, changes, 1), math.nan)
        above = shares & (rate * asked[host] > floor)
        if (above == shares).all():
            return asked
        shares = above
