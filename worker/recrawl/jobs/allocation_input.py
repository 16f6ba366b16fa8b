"""The input of an allocation and of what-if questions: pages and hosts as arrays, and settings. `read` reads them."""

import math
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.jobs.job import Tell, silent
from recrawl.model.allocation import what_if
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.new_pages import BudgetSplit, NewPages, Slots, new_pages_within, split_budget
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.pins import Pins, PinShares, allocate_beside, pins_of
from recrawl.model.allocation.solve import Allocation, Web
from recrawl.model.policies.policy import Question
from recrawl.model.policies.registry import POLICIES
from recrawl.store import reads
from recrawl.words import count

CLOSED_BEYOND = 1.0  # days: a host that is blocked for longer takes no part of the budget
NOBODY_TAKES_PART = (
    "no page takes part. A page takes part when it has been fetched or when its rate is pinned, unless its host is "
    "blocked for more than a day. `recrawl add` adds pages; your crawlers fetch them"
)


@dataclass(frozen=True)
class AllocationSettings:
    """The settings of an allocation, in fetches per day, shares and days."""

    frequency: float
    budget: float | None
    policy: str
    objective: str
    exploration: float
    longest_interval: float | None
    shortest_interval: float | None
    discovery: float


@dataclass(frozen=True, eq=False)
class Unpinned:
    """The pages without a pin, with the slots that pins leave them, and the allocation with their frequencies only. The
    sums of the allocation (`spent`, `utility`) are still sums over all pages."""

    web: Web
    allocation: Allocation
    pins: PinShares


@dataclass(frozen=True)
class AllocationInput:
    """Arrays of pages are in order of their hosts.

    Host h of `hosts`, `blocked_for`, `starts` and of each Web is one of the planned hosts. `slots` and
    `slots_with_half_the_gap` have all hosts; `[slots.is_planned]` takes the planned ones from such an array.
    """

    today: float  # days since 1970, when it was read
    hosts: NDArray[np.int64]
    closed_hosts: NDArray[np.int64]  # blocked for so long that their pages are left out
    blocked_for: Floats  # days from now; negative = the host is not blocked
    page_id: NDArray[np.int64]
    value: NDArray[np.float32]
    rate: NDArray[np.float32]
    due_in: NDArray[np.float32]  # days from now; negative = already due, NaN = no due time
    # Days from the last fetch to the due time. NaN = the due time has another reason than the frequency, for example a
    # hint, so the job must not move it.
    planned_interval: NDArray[np.float32]
    pinned: NDArray[np.float32]  # fetches per day; NaN = the price decides
    starts: NDArray[np.int64]  # host h has the pages starts[h]:starts[h + 1]
    settings: AllocationSettings
    retries: float  # recent fetches per day of pages whose previous attempt had failed
    policy_days: float  # days since the policy came into force
    slots: Slots  # of all hosts, also of hosts whose pages are left out
    slots_with_half_the_gap: Floats
    newest_page: int

    def is_priced_by_the_objective(self, found: Allocation) -> bool:
        """Whether the prices of `found` are finite, and in the unit of the objective of this crawl."""
        return found.objective == self.objective and found.price < math.inf

    @property
    def pages(self) -> int:
        return len(self.page_id)

    @property
    def objective(self) -> str:
        return self.settings.objective

    @property
    def budget(self) -> float:
        """Fetches per day, including first fetches. Infinite = no budget."""
        return math.inf if self.settings.budget is None else self.settings.budget

    @cached_property
    def limits(self) -> Limits:
        return Limits(
            exploration=self.settings.exploration,
            longest_interval=self.settings.longest_interval or math.inf,
            shortest_interval=self.settings.shortest_interval or 0.0,
        )

    @cached_property
    def total_value(self) -> float:
        """The value of all pages. Messages give utility divided by it."""
        return float(self.value.sum(dtype=np.float64)) or 1.0

    def web(self, cap: Floats) -> Web:
        return Web(self.value, self.rate, self.starts, cap)

    def split(self, budget: float, price: float | None = None) -> BudgetSplit:
        """Divides the budget, without the retries of failing pages, between new pages and revisits, and the revisits
        between pages.

        The price of a similar budget, if known, saves some time.
        """
        return split_budget(self.slots, budget, self.retries, self._revisits, price, self._revisits_without_budget)

    def _revisits(self, cap: Floats, fetches: float, price: float | None) -> tuple[Allocation, Floats]:
        """The allocation of these fetches by the policy, pinned pages first, and the fetches of each host."""

        def by_policy(web: Web, left: float) -> Allocation:
            asked = Question(web, left, self.objective, self.limits, price, self.policy_days)
            return POLICIES[self.settings.policy].answer(asked)

        web = self.web(cap)
        found = allocate_beside(self.pins, web, fetches, self.objective, self.limits, by_policy)
        return found, web.on_hosts(found.frequency)

    @cached_property
    def pins(self) -> Pins:
        return pins_of(self.pinned, self.starts, self.limits)

    @cached_property
    def _revisits_without_budget(self) -> float:
        """Revisits per day if there is no budget: the setting frequency for each page without a pin, plus the pinned
        fetches. At least pinned fetches / (1 − exploration), because pins get at most the share 1 − exploration."""
        pins, limits = self.pins, self.limits
        of_others = self.settings.frequency * len(pins.unpinned)
        return max(of_others + pins.wanted, pins.wanted / (1 - limits.exploration))

    def pin_shares(self, cap: Floats, split: BudgetSplit) -> PinShares:
        return self.pins.shares(cap, split.for_revisits, self.limits)

    def unpinned(self, split: BudgetSplit) -> Unpinned:
        """The pages without a pin. Copies their columns, so call it once."""
        shares = self.pin_shares(split.cap, split)
        web = self.pins.unpinned_web(self.web(split.cap), shares)
        allocation = replace(split.allocation, frequency=split.allocation.frequency[self.pins.unpinned])
        return Unpinned(web, allocation, shares)

    def most_gain_of_half_the_gap(self, split: BudgetSplit, unpinned: Unpinned) -> Floats:
        """For each host, an upper bound of the utility that half its gap would bring. It is close if the host takes a
        small part of all fetches."""
        cap = split.cap + (self.slots_with_half_the_gap - self.slots.per_day)[self.slots.is_planned]
        wider = np.maximum(0, cap - self.pin_shares(cap, split).taken)
        return what_if.gain_of_wider_caps(unpinned.web, unpinned.allocation, wider, self.objective, self.limits)

    def result(self, split: BudgetSplit) -> dict[str, Any]:
        """The result of a budget. Fetches are per day. Utility and bounds are per unit of value.

        None = no finite number: if no fetch is left for pages that change, some objectives lose without limit.
        """
        allocation = split.allocation
        bounds = what_if.bounds(self.web(split.cap), split.for_revisits, self.objective)
        return {
            "budget": split.budget,
            "for_revisits": allocation.spent,
            "for_new": split.new_pages,
            "pinned": float(self.pin_shares(split.cap, split).taken.sum()),
            "utility": finite(allocation.utility / self.total_value),
            "limit_with_gaps": finite(bounds.polite / self.total_value),
            "limit_without_gaps": finite(bounds.unpolite / self.total_value),
            "capped_hosts": int(allocation.capped.sum()),
        }

    def longest_interval_problem(self, found: Allocation) -> str | None:
        """Why pages may wait for longer than the setting longest_interval says. None: they do not."""
        longest = self.limits.longest_interval
        if not len(self.pins.unpinned) or longest == math.inf or found.floor_interval <= longest * (1 + 1e-9):
            return None
        waiting = "for ever" if math.isnan(found.floor_interval) else f"{count(found.floor_interval)} days"
        return (
            f"longest_interval ({count(longest)} days) is not kept: the least frequencies get at"
            f" most half of the budget and half of a host's slots, so a page may wait {waiting}"
        )

    def new_pages_within(self, days: float, split: BudgetSplit) -> float:
        return new_pages_within(days, self.slots, split, self.web(split.cap).on_hosts(split.allocation.frequency))


def read(url: str, connection: store.Connection, tell: Tell = silent, as_of: datetime | None = None) -> AllocationInput:
    settings = reads.settings(connection, AllocationSettings)
    t = as_of or reads.clock(connection)
    today = t.timestamp() / 86400
    newest_page = reads.newest_page(connection)
    tell("reading the pages")
    pages = reads.pages_to_allocate(url, watch=lambda rows: tell("reading the pages", rows, newest_page))
    tell("reading the hosts")
    all_hosts, new = reads.hosts_to_allocate(url), reads.new_pages_to_allocate(url, t)
    is_closed = all_hosts.blocked_until > today + CLOSED_BEYOND
    is_open = np.isin(pages.host_id, all_hosts.host_id[is_closed], invert=True)
    hosts, order, starts = by_host(pages.host_id[is_open])
    order = np.flatnonzero(is_open)[order]
    is_read = np.isin(new.host_id, all_hosts.host_id)  # a host may have been added after the hosts were read
    return AllocationInput(
        today=today,
        hosts=hosts,
        closed_hosts=np.intersect1d(pages.host_id[~is_open], all_hosts.host_id),
        blocked_for=(all_hosts.blocked_until - today)[np.searchsorted(all_hosts.host_id, hosts)],
        page_id=pages.page_id[order],
        value=pages.value[order],
        rate=pages.rate[order],
        due_in=(pages.due_on[order] - today).astype(np.float32),
        planned_interval=pages.planned_interval[order],
        pinned=pages.pinned[order],
        starts=starts,
        settings=settings,
        retries=reads.retries_per_day(connection, t),
        policy_days=reads.policy_days(connection, t),
        slots=Slots(
            per_day=np.where(is_closed, 0.0, all_hosts.cap),
            is_planned=np.isin(all_hosts.host_id, hosts),
            new_pages=NewPages(
                host=np.searchsorted(all_hosts.host_id, new.host_id[is_read]),
                value_class=new.value_class[is_read],
                pages=new.pages[is_read],
                waiting=new.waiting[is_read],
            ),
            discovery=settings.discovery,
        ),
        slots_with_half_the_gap=np.where(is_closed, 0.0, all_hosts.cap_with_half_the_gap),
        newest_page=newest_page,
    )


def by_host(host_id: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]:
    """Returns the hosts, the order that sorts the rows by host, and the starts of hosts in this order: host h has the
    rows order[starts[h]:starts[h + 1]]."""
    order = np.argsort(host_id, kind="stable")
    in_order = host_id[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=-1))
    return in_order[starts], order, np.append(starts, len(host_id))


def finite(figure: float) -> float | None:
    """None for a figure that is infinite or NaN. Example: without fetches for pages that change, some objectives lose
    without limit."""
    return figure if math.isfinite(figure) else None
