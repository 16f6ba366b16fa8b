"""Compiled loops over the pages of all hosts: the fetches of pages at a price, their utility, and the price that spends
the budget.

Example, for freshness and a budget of 3 fetches per day. All values are 1. Host h has the pages A and B, and no cap.
Host k has page C, and a cap of .5.

                            fetches per day at a price of
    page   rate   weight    .05     .203    .3      .594    allocated
    A      1      1         2.81    1.20    .91     .50     1.20  at the price .203
    B      4      .25       4.85    1.30    0       0       1.30  at the price .203
    C      1      1         2.81    1.20    .91     .50     .50   at its host's own price .594, because of the cap
    min(demand, cap)        8.16    3.00    1.41    1.00    3.00

demand_of_hosts computes such a column. `search` tries prices until the last line is the budget: .203. fill_frequencies
then finds the own prices of hosts at their caps, with the same search, and fills the last column.

There is one set of passes for each objective, so that its arithmetic is compiled into the loops. Over a million pages
a pass then takes as long as 6 passes of np.exp, and 13 if the loop asks which objective it is. Pages are read in place,
in float32 or float64. Sums run over chunks: this keeps rounding small, and the pages of a chunk in the cache.
"""

import math
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats, Objective, Scalar
from recrawl.model.compiled import compiled

# A price is found if the fetches that it buys differ from the wanted fetches by at most the share TOLERANCE. A bracket
# is found if one price buys too much, and another price that is higher by at most the share WIDTH buys too little.
TOLERANCE, WIDTH = 1e-12, 1e-10
_CHUNK = 4096

# Sums that the compiler may reorder, to add in vector lanes.
compiled_reordering = partial(compiled, fastmath={"contract", "nsz", "reassoc"}, error_model="numpy", nogil=True)
compiled_in_order = partial(compiled, fastmath={"contract", "nsz"}, error_model="numpy", nogil=True)


class LimitedPages(NamedTuple):
    """Pages, host by host, and what limits their fetches per day."""

    value: NDArray[np.floating[Any]]
    rate: NDArray[np.floating[Any]]
    starts: NDArray[np.int64]  # host s has the pages starts[s]:starts[s + 1]
    cap: Floats  # of all pages of a host
    floor: Floats  # of each page of a host
    ceiling: float  # of each page


class Bracket(NamedTuple):
    """Two prices around the price that spends the budget, and the fetches of each host's pages at both. If that price
    is known exactly, `low` and `high` are equal."""

    low: float
    at_low: Floats
    high: float
    at_high: Floats
    share_at_low: float  # a page gets share_at_low · (its frequency at low) + (1 − share_at_low) · (that at high)


class Certificate(NamedTuple):
    """The worth of frequencies at a price. At an optimum `least` and `most` are the price itself, if any page is
    between its limits."""

    spent: float  # fetches
    utility: float
    profit: float  # utility minus cost
    least: float  # the least marginal utility of pages above the floor
    most: float  # the most of pages below the ceiling


class DemandLoops(NamedTuple):
    demand_of_hosts: Scalar
    demand_for_nothing: Scalar


@compiled_in_order()
def next_try(tried, result, slope, wanted, low, high, last_step, tries):  # type: ignore[no-untyped-def]
    """The next value to try between low and high, and the size of the step in ln. The result falls as the value rises.
    Example: demand falls as the price rises.

    It is Newton's step on ln result over ln tried, if it stays in the bracket and is at most half of the last step.
    Otherwise it is the geometric middle of the bracket. A bracket that is open (low is 0 or high is infinite) has no
    middle: there Newton's step may have any length, and otherwise `tried` is multiplied or divided by 4^tries.

    `slope` is −d result / d ln tried. For freshness and new_content, demand jumps at each price that is a page's
    weight. There the page gets no fetch. At the next lower double it gets about rate/40, because φ(40) is 1 up to
    rounding (see inverse.py). A tiny step is made a little longer, to end on the other side of such a jump.
    """
    step = math.inf
    if slope > 0.0 and result > 0.0 and wanted > 0.0:
        step = math.log(result / wanted) * result / slope
        if abs(step) < WIDTH / 3:
            step += math.copysign(WIDTH / 3, result - wanted)
    closed = low > 0.0 and high < math.inf
    newton = tried * math.exp(step) if abs(step) < 300.0 else math.nan
    if low < newton < high and (not closed or abs(step) <= last_step / 2):
        return newton, abs(step)
    if closed:
        return math.sqrt(low) * math.sqrt(high), math.log(high / low) / 2
    far = 4.0**tries
    return (tried * far if high == math.inf else tried / far), math.inf


# Each function below compiles loops for an objective. A loop uses only loops above it.
# ---- the demand of pages at a price


@cache
def demand_loops(objective: Objective) -> DemandLoops:
    weight_of, share_at, slope_at = objective.weight_of, objective.share_at, objective.slope_at

    @compiled_reordering(objective.name)
    def demand_of_chunk(value, rate, start, stop, price, floor, ceiling):  # type: ignore[no-untyped-def]
        demand = 0.0
        slope = 0.0
        for i in range(start, stop):
            r = np.float64(rate[i])
            weight = weight_of(np.float64(value[i]), r)
            share = share_at(price, weight)
            frequency = r * share
            demand += min(ceiling, max(floor, frequency))
            slope += r * slope_at(price, weight, share) if floor < frequency < ceiling else 0.0
        return demand, slope

    @compiled_in_order(objective.name)
    def demand_of(value, rate, start, stop, price, floor, ceiling):  # type: ignore[no-untyped-def]
        """Fetches per day of one host's pages at a price above 0, and by how much they fall with ln price."""
        demand = 0.0
        slope = 0.0
        for chunk in range(start, stop, _CHUNK):
            part, part_slope = demand_of_chunk(value, rate, chunk, min(stop, chunk + _CHUNK), price, floor, ceiling)
            demand += part
            slope += part_slope
        return demand, slope

    @compiled_in_order(objective.name)
    def demand_of_hosts(pages, price, at_higher_price, demand):  # type: ignore[no-untyped-def]
        """Fills the demand of each host. Returns the sum of all demands within the caps, and its slope over ln price.

        A host that is at its cap at a higher price is also at its cap at this price, and is not computed.
        """
        value, rate, starts, cap, floor, ceiling = pages
        total = 0.0
        total_slope = 0.0
        for host in range(cap.size):
            if at_higher_price[host] > cap[host] * (1.0 + TOLERANCE):  # as in fill_frequencies
                demand[host] = at_higher_price[host]
                total += cap[host]
                continue
            demand[host], slope = demand_of(value, rate, starts[host], starts[host + 1], price, floor[host], ceiling)
            if demand[host] > cap[host]:
                total += cap[host]
            else:
                total += demand[host]
                total_slope += slope
        return total, total_slope

    @compiled_in_order(objective.name)
    def demand_for_nothing(pages):  # type: ignore[no-untyped-def]
        """The fetches that each host's pages would take if fetches cost nothing."""
        value, rate, starts, _, floor, ceiling = pages
        demand = np.empty(starts.size - 1)
        for host in range(starts.size - 1):
            wanting = 0
            for i in range(starts[host], starts[host + 1]):
                wanting += weight_of(np.float64(value[i]), np.float64(rate[i])) > 0.0
                if wanting and ceiling == math.inf:
                    break
            content = starts[host + 1] - starts[host] - wanting
            demand[host] = content * floor[host] + (wanting * ceiling if wanting else 0.0)
        return demand

    return DemandLoops(demand_of_hosts, demand_for_nothing)


# ---- the price at which the demand is the budget


@cache
def search_loop(objective: Objective) -> Any:
    weight_of, utility_and_marginal = objective.weight_of, objective.utility_and_marginal
    demand_of_hosts = demand_loops(objective).demand_of_hosts

    @compiled_reordering(objective.name)
    def top_price(value, rate, start, stop, floor):  # type: ignore[no-untyped-def]
        """The lowest price at which none of these pages is fetched more than its floor says."""
        most = np.int64(0)  # as bits: see certify_chunk
        for i in range(start, stop):
            _, marginal = utility_and_marginal(floor, np.float64(value[i]), np.float64(rate[i]))
            most = max(most, np.float64(marginal).view(np.int64))
        # A little higher, because a price that was rounded down would still buy fetches.
        return np.int64(most).view(np.float64) * (1.0 + 1e-15)

    @compiled_in_order(objective.name)
    def first_price(value, rate, wanted):  # type: ignore[no-untyped-def]
        """A price to begin with. At this price pages take the `wanted` fetches if fetches per change = √(weight/price).
        This is about right if there are many fetches."""
        root = 0.0
        for i in range(value.size):
            r = np.float64(rate[i])
            root += r * math.sqrt(weight_of(np.float64(value[i]), r)) / wanted
        return min(max(root * root, 1e-290), 1e290)

    @compiled_in_order(objective.name)
    def search(pages, wanted, low, at_low, price):  # type: ignore[no-untyped-def]
        """The Bracket around the price at which all pages together get the `wanted` fetches per day within the caps.

        `low`: a price that buys as much or more, and `at_low` the fetches of each host at this price. `price`: the
        price to try first, 0 = unknown.
        """
        value, rate, starts, cap, floor, _ = pages
        # At the price `high` pages get only their floors. A blocked host (cap 0) still counts with its fetches at
        # `low`, so that it is above its cap at each price.
        high, at_high = low, at_low.copy()
        for host in range(cap.size):
            if cap[host] > 0.0:
                high = max(high, top_price(value, rate, starts[host], starts[host + 1], floor[host]))
                at_high[host] = (starts[host + 1] - starts[host]) * floor[host]
        bought_at_low, bought_at_high = np.minimum(cap, at_low).sum(), np.minimum(cap, at_high).sum()
        # If floors take all of it, any high price would be right.
        if bought_at_high >= wanted * (1.0 - TOLERANCE):
            return Bracket(high, at_high, high, at_high, 1.0)
        price = min(high, price if price > 0.0 else first_price(value, rate, wanted))
        last_step = math.inf
        tries = 1
        while high > low * (1.0 + WIDTH):
            demand = np.empty(cap.size)
            bought, slope = demand_of_hosts(pages, price, at_high, demand)
            if abs(bought - wanted) <= TOLERANCE * wanted:
                return Bracket(price, demand, price, demand, 1.0)
            if bought > wanted:
                low, at_low, bought_at_low = price, demand, bought
            else:
                high, at_high, bought_at_high = price, demand, bought
            price, last_step = next_try(price, bought, slope, wanted, low, high, last_step, tries)
            tries += 1
        return Bracket(low, at_low, high, at_high, (wanted - bought_at_high) / (bought_at_low - bought_at_high))

    return search


# ---- the frequencies of pages at that price


@cache
def fill_loop(objective: Objective) -> Any:
    weight_of, share_at = objective.weight_of, objective.share_at
    utility_and_marginal, search = objective.utility_and_marginal, search_loop(objective)

    @compiled_reordering(objective.name)
    def buy_chunk(value, rate, price, floor, ceiling, frequency):  # type: ignore[no-untyped-def]
        for i in range(value.size):
            r = np.float64(rate[i])
            bought = r * share_at(price, weight_of(np.float64(value[i]), r))
            frequency[i] = min(ceiling, max(floor, bought))

    @compiled_in_order(objective.name)
    def take_chunk(value, rate, floor, ceiling, frequency):  # type: ignore[no-untyped-def]
        """Fills the frequencies at price 0."""
        for i in range(value.size):
            wanting = weight_of(np.float64(value[i]), np.float64(rate[i])) > 0.0
            frequency[i] = ceiling if wanting else floor

    @compiled_reordering(objective.name)
    def blend_chunk(value, rate, share, price, floor, ceiling, frequency):  # type: ignore[no-untyped-def]
        """Mixes the frequencies: `share` of the frequency at another price, and the rest of the present frequency."""
        for i in range(value.size):
            r = np.float64(rate[i])
            bought = r * share_at(price, weight_of(np.float64(value[i]), r))
            frequency[i] = share * min(ceiling, max(floor, bought)) + (1.0 - share) * frequency[i]

    @compiled_reordering(objective.name)
    def certify_chunk(value, rate, price, floor, ceiling, frequency):  # type: ignore[no-untyped-def]
        spent = 0.0
        utility = 0.0
        profit = 0.0
        # As bits: doubles that are not negative have the same order as their bits read as integers, and the compiler
        # makes vector code of the least integer.
        least = np.float64(math.inf).view(np.int64)
        most = np.int64(0)
        for i in range(value.size):
            f = frequency[i]
            earned, marginal = utility_and_marginal(f, np.float64(value[i]), np.float64(rate[i]))
            spent += f
            utility += earned
            profit += earned - (price * f if f > 0.0 else 0.0)
            least = min(least, np.float64(marginal if f > floor else math.inf).view(np.int64))
            most = max(most, np.float64(marginal if f < ceiling else 0.0).view(np.int64))
        return Certificate(spent, utility, profit, np.int64(least).view(np.float64), np.int64(most).view(np.float64))

    @compiled_in_order(objective.name)
    def fill_host(value, rate, low, high, share_at_low, floor, ceiling, frequency):  # type: ignore[no-untyped-def]
        """Fills the frequencies of one host: `share_at_low` of the frequency at the lower price, and the rest of the
        frequency at the higher price. Example: a page is worth 2 fetches at the lower price, and none at the higher.
        1.5 are wanted, so share_at_low is .75, and the page gets .75 × 2 + .25 × 0 fetches.

        Marginal utility falls with frequency, so the marginal utility of each page is between the two prices. The
        profit of frequencies is their utility minus their cost at the higher price. The shortfall is the largest
        possible profit minus the profit of these frequencies. It is at most the difference of the prices times the
        fetches of the budget. With the cost at the lower price, the shortfall could be much larger, because demand may
        jump there far beyond the budget.
        """
        spent = 0.0
        utility = 0.0
        shortfall = 0.0
        least = math.inf
        most = 0.0
        for start in range(0, value.size, _CHUNK):
            stop = start + _CHUNK
            v, r, f = value[start:stop], rate[start:stop], frequency[start:stop]
            if high == 0.0:
                take_chunk(v, r, floor, ceiling, f)
            else:
                buy_chunk(v, r, high, floor, ceiling, f)
            found = certify_chunk(v, r, high, floor, ceiling, f)
            if low < high:
                profit_at_high = found.profit
                blend_chunk(v, r, share_at_low, low, floor, ceiling, f)
                found = certify_chunk(v, r, high, floor, ceiling, f)
                shortfall += profit_at_high - found.profit
            spent += found.spent
            utility += found.utility
            least = min(least, found.least)
            most = max(most, found.most)
        spread = 0.0
        if high == 0.0:
            spread = math.inf if most > 0.0 else 0.0
        elif high < math.inf:
            spread = max(0.0, most / high - 1.0, 1.0 - least / high if least < math.inf else 0.0)
        return spent, utility, shortfall, spread

    @compiled_in_order(objective.name)
    def fill_frequencies(pages, bracket, frequency):  # type: ignore[no-untyped-def]
        """Fills the frequencies. Returns for each host: price, fetches, utility, `shortfall` and spread of marginal
        utilities (see fill_host)."""
        cap, ceiling = pages.cap, pages.ceiling
        low, at_low, high, at_high, share_at_low = bracket
        figures = np.zeros((5, cap.size))
        for host in range(cap.size):
            start, stop, floor = pages.starts[host], pages.starts[host + 1], pages.floor[host]
            value, rate = pages.value[start:stop], pages.rate[start:stop]
            # The tolerance is for rounding: the floors of a host may add up to exactly its cap. Then no price makes its
            # demand smaller.
            if at_high[host] > cap[host] * (1.0 + TOLERANCE):
                # At the common price `high` the pages of this host want more than its cap. So the host gets a price of
                # its own, above `high`: the price at which its cap is what they want. `high` is the low end of this
                # search, and its first try: it buys too much, but its slope gives Newton's first step.
                bounds, no_cap = np.array([0, value.size]), np.array([math.inf])
                of_host = LimitedPages(value, rate, bounds, no_cap, pages.floor[host : host + 1], ceiling)
                lower, _, upper, _, share_at_lower = search(of_host, cap[host], high, at_high[host : host + 1], high)
            else:
                # At `low` a host may want more than its cap, and gets only the cap there. So its pages get a smaller
                # share of their frequencies at `low` than the pages of other hosts.
                lower, at_lower, upper, at_upper = low, at_low[host], high, at_high[host]
                wanted = share_at_low * min(cap[host], at_lower) + (1.0 - share_at_low) * at_upper
                share_at_lower = (wanted - at_upper) / (at_lower - at_upper) if at_lower > at_upper else 1.0
            figures[0, host] = upper
            figures[1:, host] = fill_host(
                value, rate, lower, upper, share_at_lower, floor, ceiling, frequency[start:stop]
            )
        return figures

    return fill_frequencies
