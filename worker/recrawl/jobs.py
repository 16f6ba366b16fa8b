"""The batch jobs: read, compute, write. No transaction is open while they compute."""

import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from recrawl import known_graph, store
from recrawl.known_graph import KnownGraph
from recrawl.model import allocation, planning, prior, rate_audit, ties, value
from recrawl.model import opic as cash_flow
from recrawl.model.allocation import Web
from recrawl.model.floors import Limits
from recrawl.model.rates import Visits

Tell = Callable[[str], None]

# Stored frequencies follow when they are off by this share of what was allocated; for less, the next report does.
TOLERANCE = 0.05
# Scores are written where they moved by this share. Sweeps end when one moves hub and authority scores by no more than
# the residual in all, each adding up to 1: a tenth of that share, for the average page.
MOVED = 0.01
RESIDUAL, MOST_SWEEPS = 1e-3, 200
# What a page's due times may follow (see page_frequency in sql/schedule.sql).
LEAST, MOST = 1e-4, 86400.0


def rates(url: str, tell: Tell = lambda _: None) -> str:
    """Learns from all pages how often the pages of each host tend to change; new pages start from that."""
    with store.run(url, "rates") as run:
        tell("reading what the fetches saw")
        evidence = store.evidence(url)
        hosts, order, first = by_host(evidence.host_id)
        tell(f"learning from {len(order):,} pages on {len(hosts):,} hosts")
        priors = prior.fit(first, evidence.changes[order], evidence.days[order])
        run.put_priors(
            np.concatenate(([0], hosts)), np.append(priors.all_a, priors.a), np.append(priors.all_b, priors.b)
        )
        rate = priors.all_a / priors.all_b
        run.message = f"{len(order):,} pages on {len(hosts):,} hosts; on average a page changes {rate:.3g} times a day"
    return run.message


def allocate(url: str, tell: Tell = lambda _: None) -> str:
    """Finds the price of every host, and with it how often each page is fetched, and puts them in force."""
    with store.run(url, "allocate") as run:
        started_at, started = datetime.now(UTC), time.monotonic()
        tell("reading the pages")
        crawl = read(url, run.connection)
        tell(f"allocating {crawl.budget:,.6g} fetches a day to {crawl.pages:,} pages on {len(crawl.hosts):,} hosts")
        result = allocation.allocate(crawl.web, crawl.budget, crawl.objective, crawl.limits)
        bounds = planning.bounds(crawl.web, crawl.budget, crawl.objective)
        tied = ties.fetches_per_change(crawl.web, result, crawl.objective)
        per_host = np.bincount(crawl.host_of_page, result.frequency, minlength=len(crawl.hosts))

        tell("publishing the prices")
        # Host 0 stands for all others: those at the price of the budget, and those that take no part yet.
        common_tie = np.append(tied[~result.capped & ~np.isnan(tied)], math.nan)[0]
        common_floor = result.host_floor.max(initial=0.0)
        priced = result.capped | (np.abs(tied - common_tie) > 1e-9 * common_tie)
        common_price = result.price
        if result.price == 0:
            # The budget is more than all can take: no price where nothing is known, or nothing changes.
            common_price = math.nan
            priced |= np.bincount(crawl.host_of_page, crawl.web.rate, minlength=len(crawl.hosts)) > 0
        closed = np.zeros(len(crawl.blocked_hosts))
        run.put_prices(
            {
                "started_at": started_at.isoformat(),
                "seconds": time.monotonic() - started,
                "policy": "OPT_POLITE",
                "objective": crawl.objective,
                "budget": crawl.budget,
                "spent": result.spent,
                "price": result.price,
                "pages": crawl.pages,
                "hosts": len(crawl.hosts),
                "capped_hosts": int(result.capped.sum()),
                "utility": result.utility / crawl.worth,
                "polite_bound": bounds.polite / crawl.worth,
                "unpolite_bound": bounds.unpolite / crawl.worth,
                "residual": result.residual,
                "spread": result.spread,
                "duality_gap": result.gap,
                "floor_days": None if math.isnan(result.floor_interval) else result.floor_interval,
            },
            np.concatenate(([0], crawl.hosts, crawl.blocked_hosts)),
            np.concatenate(([common_price], np.where(priced, result.host_price, math.nan), closed + math.inf)),
            np.concatenate(([common_tie], np.where(priced, tied, math.nan), closed + math.nan)),
            np.concatenate(
                ([common_floor], np.where(result.host_floor < common_floor, result.host_floor, math.nan), closed)
            ),
            np.concatenate(([False], result.capped, closed == 0)),
            np.concatenate(([math.nan], per_host, closed)),
        )

        wanted = np.clip(result.frequency, LEAST, MOST).astype(np.float32)
        moved = np.flatnonzero(~(np.abs(wanted - crawl.frequency) <= TOLERANCE * crawl.frequency))
        moved = moved[np.argsort(crawl.page_id[moved])]  # neighbours in the table go together
        run.put_frequencies(
            crawl.page_id[moved],
            wanted[moved],
            lambda done: tell(f"bringing frequencies up to date: {done:,} of {len(moved):,}"),
        )
        run.message = (
            f"{crawl.objective} {result.utility / crawl.worth:.4g} (at most {bounds.polite / crawl.worth:.4g}) "
            f"with {result.spent:,.6g} of {crawl.budget:,.6g} fetches a day; {result.capped.sum():,} of "
            f"{len(crawl.hosts):,} hosts are at their cap; {len(moved):,} of {crawl.pages:,} frequencies moved"
        )
    return run.message


@dataclass
class Memory:
    """What a worker that stays keeps between two runs of opic, which then reads only what changed."""

    graph: KnownGraph | None = None


def opic(url: str, tell: Tell = lambda _: None, memory: Memory | None = None) -> str:
    """Finds out what the links say of each page, and what its freshness is worth, and puts it in force."""
    memory = memory or Memory()
    with store.run(url, "opic") as run:
        started_at, started = datetime.now(UTC), time.monotonic()
        weights, last_terms = store.weights(run.connection), store.last_terms(run.connection)
        tell("reading the graph")
        known, memory.graph = known_graph.read(url, run, memory.graph), None  # if this run fails, all is read again
        of = known.graph
        tell(f"sending cash along {of.links:,} links between {of.pages:,} pages")
        found = _scored(known, weights["importance"] > 0)
        terms = value.terms(weights, found.mean_relevance, last_terms, MOVED)

        moved = np.full(of.pages, terms != last_terms)
        for name in store.SCORES:
            moved |= value.has_moved(found.scores[name], known.scores[name], 0.0 if name == "in_links" else MOVED)
        if weights["relevance"] > 0:
            moved |= known.is_news
        count = int(np.count_nonzero(moved))
        share = value.first_share(found.scores, weights, found.scores["in_links"], np.diff(of.out_first))
        run.put_graph_state(terms["mean_relevance"], share)
        run.put_scores(
            store.StoredScores(of.page_ids[moved], {name: found.scores[name][moved] for name in store.SCORES}),
            lambda done: tell(f"writing scores and values: {done:,} of {count:,}"),
        )
        record = {"pages": of.pages, "links": of.links, "is_full": known.is_whole, "moved": count, **found.proof}
        times = {"started_at": started_at.isoformat(), "seconds": time.monotonic() - started}
        run.put_opic(terms, record | times)
        kept = {name: np.where(moved, found.scores[name], then) for name, then in known.scores.items()}
        memory.graph = replace(known, scores=kept)
        hint = "" if found.proof["converged"] else f" instead of {RESIDUAL:g}: the next run goes on from here"
        run.message = (
            f"{of.pages:,} pages, {of.links:,} links; {found.proof['sweeps']} sweeps to a residual of "
            f"{found.proof['residual']:.2g}{hint}; the scores of {count:,} pages moved"
        )
    return run.message


@dataclass(frozen=True)
class _Found:
    scores: dict[str, known_graph.Scores]  # those that are stored, and relevance; 1 is the average
    mean_relevance: float
    proof: dict[str, float]


def _scored(known: KnownGraph, wants_importance: bool) -> _Found:
    """From where the last run ended."""
    of, limits = known.graph, (RESIDUAL, MOST_SWEEPS, os.cpu_count() or 1)
    flow = cash_flow.run(of, known.relevance, cash_flow.resumed(of, known.scores["hub"].astype(np.float64)), *limits)
    plain = cash_flow.Importance(np.full(of.pages, math.nan), sweeps=0, residual=0.0, converged=True)
    if wants_importance:
        plain = cash_flow.importance(of, known.scores["importance"].astype(np.float64), *limits)
    relevance = np.nan_to_num(known.relevance, nan=0.5)
    parts = {
        "hub": flow.hub * of.pages,
        "authority": flow.authority * of.pages,
        "importance": plain.scores * of.pages,
        "in_links": np.diff(of.into_first),
        "relevance": 2 * relevance,
    }
    return _Found(
        {name: part.astype(np.float32) for name, part in parts.items()},
        float(relevance.mean()) if of.pages else 0.5,
        {
            "sweeps": flow.sweeps + plain.sweeps,
            "residual": max(flow.residual, plain.residual),
            "converged": flow.converged and plain.converged,
            "cash": flow.cash.total,
        },
    )


def audit(url: str) -> list[rate_audit.Agreement]:
    """How the learnt rates compare with what the fetch log says in full; reads only."""
    log = store.logged_visits(url)
    pages, first = np.unique(log.page_id, return_index=True)  # they come page by page
    visits = Visits(np.append(first, len(log.page_id)), log.days.astype(np.float64), log.changed > 0)
    return rate_audit.audit(visits, log.belief_changes[first], log.belief_days[first]) if len(pages) else []


@dataclass(frozen=True)
class Crawl:
    """What allocation works on, host by host."""

    hosts: NDArray[np.int64]
    blocked_hosts: NDArray[np.int64]  # for so long that their pages take no part
    page_id: NDArray[np.int64]
    frequency: NDArray[np.float32]  # in force; NaN = none
    web: Web
    budget: float  # fetches per day
    objective: str
    limits: Limits

    @property
    def pages(self) -> int:
        return len(self.page_id)

    @property
    def host_of_page(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.hosts)), np.diff(self.web.first))

    @property
    def worth(self) -> float:
        """The value of all pages: what utility is told in units of."""
        return float(self.web.value.sum(dtype=np.float64)) or 1.0


def read(url: str, connection: store.Connection) -> Crawl:
    settings = store.settings(connection)
    pages, all_hosts = store.pages_to_allocate(url), store.hosts_to_allocate(url)
    open_hosts = all_hosts.cap > 0
    is_open = np.isin(pages.host_id, all_hosts.host_id[~open_hosts], invert=True)
    hosts, order, first = by_host(pages.host_id[is_open])
    order = np.flatnonzero(is_open)[order]
    return Crawl(
        hosts=hosts,
        blocked_hosts=np.intersect1d(pages.host_id[~is_open], all_hosts.host_id),
        page_id=pages.page_id[order],
        frequency=pages.frequency[order],
        web=Web(pages.value[order], pages.rate[order], first, all_hosts.cap[np.searchsorted(all_hosts.host_id, hosts)]),
        budget=settings.frequency * len(order) if settings.budget is None else settings.budget,
        objective=settings.objective,
        limits=Limits(
            exploration=settings.exploration,
            longest_interval=settings.longest_interval or math.inf,
            shortest_interval=settings.shortest_interval or 0.0,
        ),
    )


def by_host(host_id: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.int64]]:
    """The hosts, the order that brings the rows of each together, and where each one's begin."""
    order = np.argsort(host_id, kind="stable")
    hosts, first = np.unique(host_id[order], return_index=True)
    return hosts, order, np.append(first, len(host_id))


JOBS: dict[str, Callable[[str, Tell], str]] = {"opic": opic, "rates": rates, "allocate": allocate}
