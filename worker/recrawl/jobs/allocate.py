"""Computes the price of every host and puts it in force. From the price follows how often each page is fetched.

Then it moves due times: of pages that are due much too late for the new prices, and of pages whose coming fetches do
not fit the budget.
"""

import time
from dataclasses import astuple
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.jobs.allocation_input import NOBODY_TAKES_PART, AllocationInput, Unpinned, finite, read
from recrawl.jobs.job import Job, Tell, silent
from recrawl.model.allocation import due_moves, what_if
from recrawl.model.allocation.new_pages import BudgetSplit
from recrawl.model.allocation.objectives import objective_named
from recrawl.model.allocation.solve import Allocation
from recrawl.model.allocation.terms import host_terms
from recrawl.model.limits import LEAST_FREQUENCY, MOST_FREQUENCY
from recrawl.store import reads
from recrawl.words import count, things, utility

# Due times are fitted to the budget for the days until the next run. The estimate of these days is the time since the
# last run, within these limits.
LEAST_AHEAD, MOST_AHEAD = 10 / 1440, 1.0
# In the last 24 hours more or fewer pages were handed out than the budget allows. The difference is corrected within
# CORRECTION_DAYS, but one run corrects at most the share MOST_CORRECTED of it. Example: 600 pages too many were handed
# out. If the next run is in an hour, this run plans 600 · (1/24)/.25 = 100 fetches less until then. If the next run is
# in a day, it plans 300 fetches less: 600 would give that day an equally large difference in the other direction.
CORRECTION_DAYS, MOST_CORRECTED = 0.25, 0.5
MOST_LISTED = 200  # capped hosts


class Allocate(Job):
    def run(self, tell: Tell = silent) -> str:
        """Reads the crawl, divides the budget, writes the prices, and moves due times to fit the prices and the budget.
        Returns the message of the run."""
        with store.runs.run(self.url, "allocate", self.as_of) as run:
            started = time.monotonic()
            crawl = read(self.url, run.connection, tell, self.as_of)
            if not crawl.pages:
                run.message = NOBODY_TAKES_PART
                return run.message
            tell(f"dividing the fetches between {things(crawl.pages, 'page')} on {things(len(crawl.hosts), 'host')}")
            split = crawl.split(crawl.budget)
            record = _record(crawl, split)

            tell("writing the prices")
            last_day = reads.fetches_of_last_day(run.connection, self.as_of or reads.clock(run.connection))
            _put_prices(run, crawl, split, record | {"seconds": time.monotonic() - started})

            tell("making pages due earlier")
            brought_forward = _bring_forward(run, crawl, split, tell)
            if crawl.settings.budget is not None:
                tell("fitting due times to the budget")
                _fit(run, crawl, split, last_day)
            run.message = _summary(crawl, split, record, brought_forward)
        return run.message


def _put_prices(run: store.runs.Run, crawl: AllocationInput, split: BudgetSplit, record: dict[str, Any]) -> None:
    unpinned = crawl.unpinned(split)
    terms = host_terms(
        crawl.hosts, crawl.closed_hosts, unpinned.web, unpinned.allocation, split.allocation.objective, unpinned.pins
    )
    run.put("put_prices", record, *astuple(terms))
    _put_capped_hosts(run, crawl, split, unpinned)


def _bring_forward(run: store.runs.Run, crawl: AllocationInput, split: BudgetSplit, tell: Tell) -> int:
    """Makes pages due earlier that are planned much too late for their new frequency. Returns their number."""
    late_pages = np.flatnonzero(due_moves.too_late(crawl.due_in, split.allocation.frequency))
    return run.put_in_chunks(
        "bring_forward",
        *_by_id(crawl, split.allocation, late_pages),
        watch=lambda done: tell("making pages due earlier", done, len(late_pages)),
    )


def _summary(crawl: AllocationInput, split: BudgetSplit, record: dict[str, Any], brought_forward: int) -> str:
    is_share = objective_named(crawl.objective).is_share
    sentences = [
        f"{crawl.settings.policy}: expected {crawl.objective} {utility(record['utility'], is_share)}, "
        f"{utility(record['limit_with_gaps'], is_share)} with the best possible allocation within the gaps",
        f"of {count(record['budget'])} fetches a day, {count(split.allocation.spent)} are for revisits, "
        f"{count(record['for_new'])} for new pages and {count(record['for_retries'])} for retries",
        f"the gap limits {count(record['capped_hosts'])} of {things(record['hosts'], 'host')}",
        f"{count(brought_forward)} of {things(crawl.pages, 'page')} are due earlier than before",
    ]
    needed, got = record["pinned_wanted"], record["pinned"]
    if got < needed * (1 - 1e-3):
        sentences.append(f"pinned intervals need {count(needed)} fetches a day and get {count(got)}")
    if reason := crawl.longest_interval_problem(split.allocation):
        sentences.append(reason)
    return "; ".join(sentences)


def _fit(run: store.runs.Run, crawl: AllocationInput, split: BudgetSplit, last_day: reads.FetchesOfLastDay) -> None:
    """Moves due times that follow from old prices, so that the fetches until the next run match the budget."""
    ahead = min(max(last_day.since_last, LEAST_AHEAD), MOST_AHEAD)
    # The last allocations cover less than CORRECTION_DAYS when the crawl is young: then this shorter time counts.
    part_now = min(MOST_CORRECTED, ahead / min(max(last_day.days, ahead), CORRECTION_DAYS))
    to_make_up = last_day.to_make_up * part_now
    max_correction = ahead * split.budget / 2
    result = split.allocation
    revisits = min(result.spent, split.budget - crawl.new_pages_within(ahead, split) - split.retries)
    pages_of_host = np.diff(crawl.starts)
    is_blocked = np.repeat(crawl.blocked_for >= ahead, pages_of_host)
    pages = due_moves.to_move(
        np.where(is_blocked, np.nan, crawl.due_in),
        crawl.planned_interval,
        result.frequency,
        np.repeat(result.capped, pages_of_host),
        ahead,
        (revisits + split.retries) * ahead + min(max(to_make_up, -max_correction), max_correction),
    )
    run.put_in_chunks("put_dues", *_by_id(crawl, result, pages), np.full(len(pages), ahead))


def _record(crawl: AllocationInput, split: BudgetSplit) -> dict[str, Any]:
    """A row of the table allocation: the input, and how good the result is."""
    result = split.allocation
    return crawl.result(split) | {
        "policy": crawl.settings.policy,
        "objective": crawl.objective,
        "priced_by": result.objective,
        "for_retries": split.retries,
        "newest_page": crawl.newest_page,
        "pinned_wanted": crawl.pins.wanted,
        "price": finite(result.price),
        "pages": crawl.pages,
        "hosts": len(crawl.hosts),
        "residual": result.residual,
        "spread": result.spread,
        "duality_gap": result.duality_gap,
        "longest_days": finite(result.floor_interval),
    }


def _put_capped_hosts(run: store.runs.Run, crawl: AllocationInput, split: BudgetSplit, unpinned: Unpinned) -> None:
    """Writes the hosts whose gap costs most, in the order of an upper bound of the gain from half the gap."""
    gain = crawl.most_gain_of_half_the_gap(split, unpinned) / crawl.total_value
    best = np.argsort(-gain, kind="stable")[:MOST_LISTED]
    is_priced = crawl.is_priced_by_the_objective(split.allocation)
    best = best[(gain[best] > 0) & np.isfinite(gain[best]) & is_priced]
    web, allocation = what_if.of_hosts(unpinned.web, unpinned.allocation, best)
    wanted = what_if.wanted(web, allocation, crawl.objective, crawl.limits)
    run.put(
        "put_capped_hosts",
        crawl.hosts[best],
        np.diff(crawl.starts)[best],
        wanted + crawl.pins.asked_on_host[best],
        web.on_hosts(allocation.frequency) + unpinned.pins.taken[best],
        gain[best],
    )


def _by_id(
    crawl: AllocationInput, result: Allocation, pages: NDArray[np.intp]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The ids of the pages and their frequencies, in order of id, because such pages are neighbours in the table."""
    pages = pages[np.argsort(crawl.page_id[pages])]
    return crawl.page_id[pages], np.clip(result.frequency[pages], LEAST_FREQUENCY, MOST_FREQUENCY).astype(np.float32)
