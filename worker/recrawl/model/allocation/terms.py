"""Turns an allocation into rows of the table host_terms. The row with host_id 0 has the common terms. The row of a host
has only the terms that differ, for example its price."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.pins import PinShares
from recrawl.model.allocation.solve import Allocation, Web
from recrawl.model.limits import EQUAL

COMMON = 0  # the host id of the common row: its terms hold for each host that has no term of its own
AS_COMMON = math.nan  # in the row of a host: the term of the common row holds


@dataclass(frozen=True)
class HostTerms:
    """A row for COMMON, and a row for every host that took part or is closed."""

    host_id: NDArray[np.int64]
    price: Floats  # utility per fetch a day; AS_COMMON = the common price. In the row COMMON: NaN = no common price
    ties: Floats  # fetches per change of pages that earn exactly the price of this row; NaN = no such page, or no price
    floor: Floats  # fetches per day of each page; AS_COMMON = the common floor
    capped: NDArray[np.bool_]
    frequency: Floats  # fetches per day of all pages of the host; NaN for COMMON
    pins_kept: Floats  # the share of their pinned frequency that pinned pages get; AS_COMMON = the common share


def host_terms(
    hosts: NDArray[np.int64],
    closed: NDArray[np.int64],
    web: Web,
    allocation: Allocation,
    objective: str,
    pins: PinShares,
) -> HostTerms:
    """`hosts` are the hosts of the web, in its order. Hosts in `closed` get nothing. The web has no pinned pages."""
    tied = per_change_at_the_price(web, allocation, objective)
    common_tie = np.append(tied[~allocation.capped & ~np.isnan(tied)], math.nan)[0]
    host_floor, host_price, common_price = allocation.host_floor, allocation.host_price, allocation.price
    common_floor = host_floor.max(initial=0.0)
    # A tie counts only with the price of its own row. So a host with another tie stores its price too, even if that is
    # the common one.
    has_own_price = allocation.capped | (np.abs(tied - common_tie) > 1e-9 * common_tie)
    if allocation.price == 0:
        # The budget is more than all pages can take, so there is no common price (NaN). A host without any page that
        # changes gets an infinite price, which no page earns. At price 0 a page that changes later would take all that
        # it can.
        common_price = math.nan
        host_price = np.where(web.on_hosts(web.rate) > 0, host_price, math.inf)
        has_own_price[:] = True
    nothing = np.zeros(len(closed))
    return HostTerms(
        host_id=np.r_[COMMON, hosts, closed],
        price=np.r_[common_price, np.where(has_own_price, host_price, AS_COMMON), nothing + math.inf],
        ties=np.r_[common_tie, np.where(has_own_price, tied, math.nan), nothing + math.nan],
        floor=np.r_[common_floor, np.where(host_floor < common_floor, host_floor, AS_COMMON), nothing],
        capped=np.r_[False, allocation.capped, nothing == 0],
        frequency=np.r_[math.nan, web.on_hosts(allocation.frequency) + pins.taken, nothing],
        pins_kept=np.r_[pins.common, np.where(pins.on_host < pins.common, pins.on_host, AS_COMMON), nothing],
    )


def per_change_at_the_price(web: Web, allocation: Allocation, objective: str) -> Floats:
    """For each host, the fetches per change of the pages whose weight equals the price of the host. The price alone
    does not say how often these pages are fetched. In sum they get what the allocation gave them.

    For freshness the marginal utility of a page is weight · φ(u), where u is its number of changes per fetch, and
    φ(u) = 1 − (1 + u)·e^−u. If a page changes much more often than it is fetched, φ(u) is nearly 1: 1 − φ(u) is 4e-8
    for u = 20, and less than the resolution of a double for u = 40. The marginal utility is then the weight, at any
    such frequency. Example: a crawl has few fetches for many pages, and knows little about them. All its pages are
    then like this. The budget ends among pages of equal weight, and the price is that weight. The price does not say
    how many fetches each of these pages gets.

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
