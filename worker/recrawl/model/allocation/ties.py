"""The frequencies of pages whose marginal utility is exactly their host's price. Prices alone do not tell them.

For freshness the marginal utility of a page is weight · φ(u), where u is its number of changes per fetch, and φ(u) = 1
− (1 + u)·e^−u. If a page changes much more often than it is fetched, φ(u) is nearly 1: 1 − φ(u) is 4e-8 for u = 20, and
less than the resolution of a double for u = 40. The marginal utility is then the weight, at any such frequency.
Example: a crawl has few fetches for many pages, and knows little about them. All its pages are then like this. The
budget ends among pages of equal weight, and the price is that weight. It does not say how much each of them gets.
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
    price = allocation.host_price[web.host]
    weight = objective_named(objective).weight(web.value, web.rate)
    with np.errstate(invalid="ignore"):
        is_at_price = np.isfinite(price) & (np.abs(weight - price) <= EQUAL * price)
    tied = np.flatnonzero(is_at_price & (allocation.frequency > 0) & (weight > 0))
    hosts = len(web.cap)
    host = web.host[tied]
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
