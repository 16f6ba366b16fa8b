"""What pages get that earn exactly their host's price: the part of an allocation that prices alone cannot tell.

A page that changes much more often than it is fetched earns its weight, to the last digit, whatever its frequency:
1 − φ(u) is 4e-8 at 20 changes a fetch and below a double's resolution at 40. Where all pages are such, as on a crawl
with few fetches for many pages of which little is known, the budget runs out among equals, and the price only says so.
"""

import math

import numpy as np

from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web
from recrawl.model.limits import EQUAL


def per_change_at_the_price(web: Web, allocation: Allocation, objective: str) -> Floats:
    """Fetches per change, on each host, of the pages that earn its price; together they get what they were given.

    NaN where there are none. A page gets its floor if that is more, so the others share what is left: like water over
    steps, from above.
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
