"""Finds the price of every host, and with it how often each page is fetched, and puts them in force."""

import math
import time
from dataclasses import asdict, astuple, dataclass
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from recrawl import store
from recrawl.jobs.crawl import Crawl, read
from recrawl.jobs.job import Job, Tell
from recrawl.model.allocation import what_if
from recrawl.model.allocation.new_pages import Left
from recrawl.model.allocation.solve import Allocation, Web, allocate
from recrawl.model.allocation.terms import host_terms
from recrawl.model.limits import LEAST_FREQUENCY, MOST_FREQUENCY

# Stored frequencies follow when they are off by this share of what was allocated; for less, the next report does.
TOLERANCE = 0.05


class Allocate(Job):
    def run(self, tell: Tell = lambda _: None) -> str:
        with store.run(self.url, "allocate") as run:
            started_at, started = datetime.now(UTC), time.monotonic()
            tell("reading the pages")
            crawl = read(self.url, run.connection)
            web, left = crawl.left_by_new_pages(crawl.budget)
            tell(f"allocating {left.budget:,.6g} fetches a day to {crawl.pages:,} pages on {len(crawl.hosts):,} hosts")
            result = allocate(web, left.budget, crawl.objective, crawl.limits)
            proof = _proof(crawl, web, left, result)

            tell("publishing the prices")
            times = {"started_at": started_at.isoformat(), "seconds": time.monotonic() - started}
            terms = host_terms(crawl.hosts, crawl.closed_hosts, web, result, crawl.objective)
            run.put("put_prices", asdict(proof) | times, *astuple(terms))
            page_ids, frequencies = _moved(crawl, result)
            run.put_in_chunks(
                "put_frequencies",
                page_ids,
                frequencies,
                watch=lambda done: tell(f"bringing frequencies up to date: {done:,} of {len(page_ids):,}"),
            )
            run.message = (
                f"{crawl.objective} {proof.utility:.4g} (at most {proof.polite_bound:.4g}) with {result.spent:,.6g} of "
                f"{crawl.budget:,.6g} fetches a day, beside {proof.new_pages:,.6g} of new pages; "
                f"{proof.capped_hosts:,} of {proof.hosts:,} hosts are at their cap; "
                f"{len(page_ids):,} of {crawl.pages:,} frequencies moved"
            )
        return run.message


@dataclass(frozen=True)
class Proof:
    """A row of allocation_run: what was wanted, and how good the result is. Utility and bounds per unit of value."""

    policy: str
    objective: str
    budget: float
    spent: float
    new_pages: float
    newest_page: int
    price: float
    pages: int
    hosts: int
    capped_hosts: int
    utility: float
    polite_bound: float
    unpolite_bound: float
    residual: float
    spread: float
    duality_gap: float
    floor_days: float | None


def _proof(crawl: Crawl, web: Web, left: Left, result: Allocation) -> Proof:
    bounds = what_if.bounds(web, left.budget, crawl.objective)
    return Proof(
        policy="OPT_POLITE",
        objective=crawl.objective,
        budget=crawl.budget,
        spent=result.spent,
        new_pages=left.new_pages_beside(result.spent),
        newest_page=crawl.newest_page,
        price=result.price,
        pages=crawl.pages,
        hosts=len(crawl.hosts),
        capped_hosts=int(result.capped.sum()),
        utility=result.utility / crawl.worth,
        polite_bound=bounds.polite / crawl.worth,
        unpolite_bound=bounds.unpolite / crawl.worth,
        residual=result.residual,
        spread=result.spread,
        duality_gap=result.duality_gap,
        floor_days=None if math.isnan(result.floor_interval) else result.floor_interval,
    )


def _moved(crawl: Crawl, result: Allocation) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The pages whose stored frequencies are off, neighbours in the table together; and what they should be."""
    wanted = np.clip(result.frequency, LEAST_FREQUENCY, MOST_FREQUENCY).astype(np.float32)
    moved = np.flatnonzero(~(np.abs(wanted - crawl.frequency) <= TOLERANCE * crawl.frequency))
    moved = moved[np.argsort(crawl.page_id[moved])]
    return crawl.page_id[moved], wanted[moved]
