"""Spends a budget of fetches on pages so that the sum of their utilities is greatest (OPT_POLITE).

    maximise Σ utility(frequency)  with  Σ frequency ≤ budget,  Σ over each host ≤ its cap,  floor ≤ frequency ≤ ceiling

One price solves it. At price p the pages of a host take q(p) fetches in all, and q falls with p. At the price μ,
Σ min(cap, q(μ)) equals the budget. Every host that stays below its cap has the price μ. Every other host has a price of
its own, at which q equals the cap. This holds for any values, caps, floors and ceilings.

Every Allocation carries its proof: figures that are computed only from its frequencies and prices, not from the search.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.floors import NO_LIMITS, Limits, floors
from recrawl.model.allocation.objectives import Floats, Objective, objective_named
from recrawl.model.allocation.passes import Bracket, LimitedPages, demand_loops, fill_loop, search_loop
from recrawl.model.checks import check, refuse


@dataclass(frozen=True, eq=False)
class Web:
    """Pages, host by host. Host s has the pages starts[s]:starts[s + 1]. Rates and caps are per day."""

    value: NDArray[np.floating[Any]]  # float32 or float64, like rate
    rate: NDArray[np.floating[Any]]
    starts: NDArray[np.int64]
    cap: Floats  # 0 = the host is blocked; infinite = no limit

    def __post_init__(self) -> None:
        for name, array in (("value", self.value), ("rate", self.rate)):
            check(name, array)
        if len(self.value) != len(self.rate):
            raise ValueError(f"value and rate must be equally long, got {len(self.value)} and {len(self.rate)}")
        if len(self.starts) != len(self.cap) + 1:
            raise ValueError(f"starts must have one entry more than cap, got {len(self.starts)} and {len(self.cap)}")
        if self.starts[0] != 0 or self.starts[-1] != len(self.value) or (np.diff(self.starts) < 0).any():
            raise ValueError(f"starts must rise from 0 to the number of pages, {len(self.value)}")
        refuse("cap", self.cap, ~(self.cap >= 0), "0 or more")

    @cached_property
    def pages(self) -> Floats:
        """The number of pages of each host."""
        return np.diff(self.starts).astype(np.float64)

    @property
    def host(self) -> NDArray[np.intp]:
        """The host of each page. It is not stored: it would take as much memory as value and rate together."""
        return np.repeat(np.arange(len(self.cap)), np.diff(self.starts))

    def on_hosts(self, of_page: NDArray[np.floating[Any]]) -> Floats:
        """The sum over the pages of each host."""
        # astype: if there is no page, bincount answers integers, although it gets weights.
        return np.bincount(self.host, of_page, minlength=len(self.cap)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Allocation:
    objective: str  # that the prices belong to
    price: float  # utility that one more fetch per day would bring
    host_price: Floats  # the price of each host: `price`, or more if the host is at its cap
    host_floor: Floats  # the least fetches per day of each page of the host
    capped: NDArray[np.bool_]  # a larger cap would be used
    frequency: Floats  # fetches per day of each page
    spent: float  # fetches per day
    utility: float
    bound: float  # no allocation within these limits has more utility, by duality
    duality_gap: float  # (bound − utility) / utility, over the hosts whose utility is finite
    residual: float  # the largest share by which the budget is missed or a cap is exceeded
    # The largest share by which the marginal utility of a page differs from the price of its host. Less utility at a
    # floor and more at a ceiling do not count.
    spread: float
    floor_interval: float  # days: the longest time that floors let a page of an open host wait; NaN without floors

    @property
    def price_to_try(self) -> float | None:
        """The price at which the search in a similar problem may begin; None if it is of no use."""
        return self.price if 0 < self.price < math.inf else None


def allocate(
    web: Web, budget: float, objective: str = "freshness", limits: Limits = NO_LIMITS, last_price: float | None = None
) -> Allocation:
    """The best allocation. The price of a similar problem, such as yesterday's, saves some of the search."""
    problem = _Problem(web, budget, objective_named(objective), limits)
    return problem.allocation(problem.search(last_price))


def unconstrained(
    value: NDArray[np.floating[Any]],
    rate: NDArray[np.floating[Any]],
    budget: float,
    objective: str = "freshness",
    last_price: float | None = None,
) -> Allocation:
    """The best allocation without hosts and limits."""
    market = Web(value, rate, np.array([0, len(value)]), np.array([math.inf]))
    return allocate(market, budget, objective, last_price=last_price)


@dataclass(frozen=True, eq=False)
class HostTotals:
    spent: Floats  # fetches per day
    utility: Floats


def at_price(web: Web, allocation: Allocation, objective: str, limits: Limits) -> HostTotals:
    """The fetches that hosts would take at the price and with the floors of an allocation, within the caps of `web`,
    and their utility."""
    named, price = objective_named(objective), allocation.price
    pages = LimitedPages(web.value, web.rate, web.starts, web.cap, allocation.host_floor, limits.ceiling)
    if price == 0:
        demand = demand_loops(named).demand_for_nothing(pages)
    else:
        demand = np.empty(len(web.cap))
        demand_loops(named).demand_of_hosts(pages, price, np.zeros(len(web.cap)), demand)
    _, spent, utility, _, _ = fill_loop(named)(pages, _at(price, demand), np.empty(len(web.value)))
    return HostTotals(spent, utility)


def _at(price: float, demand: Floats) -> Bracket:
    return Bracket(price, demand, price, demand, 1.0)


class _Problem:
    def __init__(self, web: Web, budget: float, objective: Objective, limits: Limits) -> None:
        if not budget >= 0:
            raise ValueError(f"budget must not be negative, got {budget}")
        self.web, self.budget, self.objective = web, budget, objective
        self.floor = floors(web.pages, web.cap, budget, limits)
        self.pages = LimitedPages(web.value, web.rate, web.starts, web.cap, self.floor, limits.ceiling)
        self.for_nothing: Floats = demand_loops(objective).demand_for_nothing(self.pages)
        self.spendable = min(budget, float(np.minimum(web.cap, self.for_nothing).sum()))
        if self.spendable == math.inf:
            raise ValueError("budget must be finite where neither caps nor ceilings limit the pages, got inf")

    def search(self, price: float | None) -> Bracket:
        """Tries `price` first."""
        if self.spendable < self.budget:
            return _at(0.0, self.for_nothing)
        search = search_loop(self.objective)
        found: Bracket = search(self.pages, float(self.budget), 0.0, self.for_nothing, price or 0.0)
        return found

    def allocation(self, found: Bracket) -> Allocation:
        web, price = self.web, found.high
        frequency = np.empty(len(web.value))
        fill_frequencies = fill_loop(self.objective)
        host_price, spent, utility, shortfall, spread = fill_frequencies(self.pages, found, frequency)
        capped = host_price > price
        # The gap between utility and its bound has three parts: the shortfall of each host (see fill_host), the unused
        # slots of capped hosts times the difference of the two prices, and the unused budget times its price. They are
        # summed without the utility itself, whose rounding error is larger than the gap.
        dear = capped & (web.cap > 0)
        shortfall[dear] += (host_price[dear] - price) * (web.cap[dear] - spent[dear])
        unused = price * (self.budget - spent.sum()) if 0 < price < math.inf else 0.0
        gap = float(shortfall.sum() + unused)
        floors_of_open = self.floor[(web.pages > 0) & (web.cap > 0)]
        least_floor = float(floors_of_open.min()) if floors_of_open.size else 0.0
        return Allocation(
            objective=self.objective.name,
            price=price,
            host_price=host_price,
            host_floor=self.floor,
            capped=capped,
            frequency=frequency,
            spent=float(spent.sum()),
            utility=float(utility.sum()),
            bound=float(utility.sum()) + gap,
            duality_gap=abs(gap) / (abs(float(utility[np.isfinite(utility)].sum())) or 1.0),
            residual=_residual(web.cap, spent, self.spendable),
            spread=float(spread.max(initial=0.0)),
            floor_interval=1 / least_floor if least_floor > 0 else math.nan,
        )


def _residual(cap: Floats, spent: Floats, spendable: float) -> float:
    opened = cap > 0
    over = float((spent[opened] / cap[opened] - 1).max(initial=0.0))
    on_blocked = float(spent[~opened].sum())
    missed = abs(float(spent.sum()) - spendable) / (spendable or 1.0)
    return max(missed, over, on_blocked)
