"""The frequencies of pages that earn exactly their host's price. Prices alone do not tell these frequencies.

A page that changes much more often than it is fetched earns its weight, to the last digit, at any such frequency:
1 − φ(u) is 4e-8 at 20 changes a fetch, and less than the resolution of a double at 40. Example: a crawl has few fetches
for many pages, and knows little about them. All its pages are then like this. The budget ends among pages of equal
weight, and the price is that weight. It does not say how much each of them gets.
"""

import math

import numpy as np

from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web
from recrawl.model.limits import EQUAL


def per_change_at_the_price(web: Web, allocation: Allocation, objective: str) -> Floats:
    """For each host, the fetches per change of the pages that earn its price. In sum they get what the allocation gave
    them.

    NaN for a host without such pages. A page gets its floor if the floor is more. The others share what is left, so
    the loop repeats until no further page is at its floor.
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
