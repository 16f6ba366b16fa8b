"""The crawl as allocation and what-if questions work on it, read in one go."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.new_pages import Left, NewPages, left
from recrawl.model.allocation.solve import Web


@dataclass(frozen=True)
class Wanted:
    """The settings that say what is wanted of an allocation. Fetches per day, shares and days."""

    frequency: float
    budget: float | None
    objective: str
    exploration: float
    longest_interval: float | None
    shortest_interval: float | None
    discovery: float


@dataclass(frozen=True)
class Crawl:
    """Host by host. Caps are all slots of a host; what new pages leave of them depends on the budget."""

    hosts: NDArray[np.int64]
    closed_hosts: NDArray[np.int64]  # blocked for so long that their pages take no part
    page_id: NDArray[np.int64]
    frequency: NDArray[np.float32]  # in force; NaN = none
    web: Web
    budget: float  # fetches per day, those of new pages included
    objective: str
    limits: Limits
    slots: NDArray[np.float64]  # per day, of all hosts
    is_planned: NDArray[np.bool_]  # which of them have pages that take part
    new_pages: NewPages
    newest_page: int

    @property
    def pages(self) -> int:
        return len(self.page_id)

    @property
    def worth(self) -> float:
        """The value of all pages: what utility is told in units of."""
        return float(self.web.value.sum(dtype=np.float64)) or 1.0

    def left_by_new_pages(self, budget: float) -> tuple[Web, Left]:
        """The slots and the fetches that revisits may have of a budget."""
        found = left(self.slots, self.is_planned, budget, self.new_pages)
        return replace(self.web, cap=found.cap[self.is_planned]), found


def read(url: str, connection: store.Connection) -> Crawl:
    wanted = store.settings(connection, Wanted)
    newest_page = store.newest_page(connection)
    pages, all_hosts = store.pages_to_allocate(url), store.hosts_to_allocate(url)
    is_open = np.isin(pages.host_id, all_hosts.host_id[all_hosts.cap == 0], invert=True)
    hosts, order, first = by_host(pages.host_id[is_open])
    order = np.flatnonzero(is_open)[order]
    is_planned = np.isin(all_hosts.host_id, hosts)
    new_pages = NewPages(all_hosts.new_pages, wanted.discovery)
    budget = wanted.budget
    if budget is None:  # new pages are not paced
        revisits = wanted.frequency * len(order)
        new_pages = replace(new_pages, revisits=revisits)
        budget = revisits + left(all_hosts.cap, is_planned, 0.0, new_pages).wanted_new
    return Crawl(
        hosts=hosts,
        closed_hosts=np.intersect1d(pages.host_id[~is_open], all_hosts.host_id),
        page_id=pages.page_id[order],
        frequency=pages.frequency[order],
        web=Web(pages.value[order], pages.rate[order], first, all_hosts.cap[np.searchsorted(all_hosts.host_id, hosts)]),
        budget=budget,
        objective=wanted.objective,
        limits=Limits(
            exploration=wanted.exploration,
            longest_interval=wanted.longest_interval or math.inf,
            shortest_interval=wanted.shortest_interval or 0.0,
        ),
        slots=all_hosts.cap,
        is_planned=is_planned,
        new_pages=new_pages,
        newest_page=newest_page,
    )


def by_host(host_id: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]:
    """The hosts, the order that brings the rows of each together, and where each one's begin."""
    order = np.argsort(host_id, kind="stable")
    hosts, first = np.unique(host_id[order], return_index=True)
    return hosts, order, np.append(first, len(host_id))
