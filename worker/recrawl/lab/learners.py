"""Crawls that learn rates while they run: explore then commit, and phased ε-greedy (Upadhyay et al., 2020).

They gain value · days fresh (poisson_freshness: fetches at random moments, as in the paper. While they explore, fetches
come at one interval). The regret is the loss against a crawl that knows all rates from the start. It is given in days:
the number of days without any fresh page that would cost as much.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.methods import azar
from recrawl.lab.methods.estimators import moment_matching
from recrawl.lab.methods.likelihood import VisitLog
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import OBJECTIVES, Floats
from recrawl.model.allocation.solve import Web, allocate


@dataclass(frozen=True, eq=False)
class PagesToLearn:
    """Pages, and a budget that fetches each of them once in an interval."""

    value: Floats
    rate: Floats  # changes per day
    least: float  # all rates lie between these two, and this is known
    most: float
    interval: float  # days

    @property
    def budget(self) -> float:
        return len(self.rate) / self.interval

    @property
    def worth(self) -> float:
        return float(self.value.sum())

    def web(self, rate: Floats) -> Web:
        return Web(self.value, rate, np.array([0, len(rate)]), np.array([math.inf]))

    def best_for(self, rate: Floats) -> Floats:
        """The best fetches per day of each page if these are the rates."""
        return azar.solve(self.value, rate, self.budget)

    def lost(self, frequency: Floats) -> float:
        """Days of regret per day, with visits at random moments."""
        return (self._best - self._earned(frequency)) / self.worth

    @cached_property
    def lost_exploring(self) -> float:
        """Days of regret per day of fetches of all pages at one interval."""
        every = np.full(len(self.rate), 1 / self.interval)
        return (self._best - float(OBJECTIVES["freshness"].utility(every, self.value, self.rate).sum())) / self.worth

    @cached_property
    def _best(self) -> float:
        return self._earned(self.best_for(self.rate))

    def _earned(self, frequency: Floats) -> float:
        return float(OBJECTIVES["poisson_freshness"].utility(frequency, self.value, self.rate).sum())


@dataclass(frozen=True, eq=False)
class Explored:
    """All pages were fetched at their interval for some rounds: the cost of committing to the rates that are known
    then."""

    pages: PagesToLearn
    rounds: NDArray[np.int64]
    lost: Floats  # days of regret per day; the mean of some runs

    @property
    def days(self) -> Floats:
        return self.rounds.astype(np.float64) * self.pages.interval

    def regret(self, horizon: float) -> Floats:
        """Days of regret, by the time of exploring."""
        return self.days * self.pages.lost_exploring + np.maximum(horizon - self.days, 0) * self.lost

    def best_days(self, horizon: float) -> float:
        return float(self.days[self.regret(horizon).argmin()])

    def course(self, days: float, horizon: float) -> tuple[Floats, Floats]:
        """Days, and the regret until each of them, of a policy that explores for the given number of days."""
        exploring = days * self.pages.lost_exploring
        lost = float(np.interp(days, self.days, self.lost))
        return np.array([0, days, horizon]), np.array([0, exploring, exploring + (horizon - days) * lost])


def explore(pages: PagesToLearn, most_days: float, runs: int, rng: np.random.Generator) -> Explored:
    rounds = np.unique(np.geomspace(1, most_days / pages.interval, 150).astype(np.int64))
    lost = np.zeros(rounds.size)
    for _ in range(runs):
        changed, before = np.zeros(len(pages.rate)), 0
        for place, done in enumerate(rounds.tolist()):
            changed += rng.binomial(done - before, -np.expm1(-pages.rate * pages.interval))
            before = done
            with np.errstate(divide="ignore"):  # moment matching, with equal intervals
                matched = np.clip(-np.log1p(-changed / done) / pages.interval, pages.least, pages.most)
            lost[place] += pages.lost(pages.best_for(matched)) / runs
    return Explored(pages, rounds, lost)


def greedy(
    pages: PagesToLearn, exploration: float, phase: float, phases: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Days, and the regret until each of them. A phase of exploring comes first. In each later phase the division is
    the best for all that was seen before, and a share of the budget is a minimum for all pages."""
    seen = [_look(pages, np.repeat(np.arange(len(pages.rate)), int(phase / pages.interval)), pages.interval, rng)]
    lost = [0.0, pages.lost_exploring]
    for _ in range(phases - 1):
        known = pages.web(moment_matching(_by_page(len(pages.rate), seen), pages.least, pages.most))
        limits = Limits(exploration=exploration)
        frequency = allocate(known, pages.budget, "poisson_freshness", limits).frequency
        page = np.repeat(np.arange(len(pages.rate)), rng.poisson(frequency * phase))
        seen.append(_look(pages, page, rng.exponential(1 / frequency[page]), rng))
        lost.append(pages.lost(frequency))
    return phase * np.arange(phases + 1, dtype=np.float64), phase * np.cumsum(lost)


Seen = tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]  # page, days since the visit before, whether it had changed


def _look(pages: PagesToLearn, page: NDArray[np.int64], interval: Floats | float, rng: np.random.Generator) -> Seen:
    since = np.broadcast_to(interval, page.shape)
    return page, since, rng.random(page.size) < -np.expm1(-pages.rate[page] * since)


def _by_page(pages: int, seen: list[Seen]) -> VisitLog:
    page, since, changed = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    order = np.argsort(page, kind="stable")
    return VisitLog(np.append(0, np.cumsum(np.bincount(page, minlength=pages))), since[order], changed[order])
