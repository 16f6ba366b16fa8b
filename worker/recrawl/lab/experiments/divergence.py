"""Policies that learn how much of a page changes, next to policies that learn only whether (Olston & Pandey, 2008)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from recrawl.lab.content import ContentPage, draw
from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultShare, ResultTable, Row
from recrawl.lab.policies.longevity import Terms, Visitor
from recrawl.lab.policies.registry import BY_DIVERGENCE
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import unconstrained

THRESHOLDS = (0.1, 0.3, 1.0)  # the least worth of a fetch, in divergence · days
UNIFORM, BY_CHANGES, ORACLE = "uniform", "Cho & Garcia-Molina", "oracle"
WAITS = np.geomspace(1 / 24, 1000, 300)  # days: what the oracle chooses from


@dataclass(frozen=True)
class Reached:
    fetches: float  # per page and day
    freshness: float  # 1 minus the mean divergence


@dataclass(frozen=True)
class Learnt:
    """The result of a policy that learns, and of other policies with the same number of fetches."""

    policy: str
    threshold: float
    by: Reached
    others: dict[str, Reached]

    def captured(self, freshness: float) -> float:
        """The share of the gain of the oracle over uniform fetches."""
        uniform = self.others[UNIFORM].freshness
        return (freshness - uniform) / (self.others[ORACLE].freshness - uniform)


@dataclass(frozen=True, eq=False)
class DriftingWeb:
    """The figures are of the second half of the days, when the policies have learned."""

    pages: Sequence[ContentPage]
    days: float
    phase: Floats  # of each page, if fetches are regular

    def learn(self, policy: Callable[[Terms], Visitor], terms: Terms) -> Reached:
        return self._outcome([_visits(page, policy(terms), self.days) for page in self.pages])

    def known(self, budget: float) -> dict[str, Reached]:
        """The results of policies that know what they need: nothing, how often pages change, or how they diverge."""
        fetches = budget * len(self.pages)
        rate = np.array([page.rate for page in self.pages])
        with np.errstate(divide="ignore"):
            by_changes = 1 / unconstrained(np.ones(len(rate)), rate, fetches).frequency
        waits = {
            UNIFORM: np.full(len(rate), 1 / budget),
            BY_CHANGES: by_changes,
            ORACLE: self._best_waits(fetches),
        }
        return {name: self._regular(of_page) for name, of_page in waits.items()}

    def _regular(self, waits: Floats) -> Reached:
        return self._outcome([
            [0.0, *np.arange(phase * wait, self.days, wait)] if wait < np.inf else [0.0]
            for phase, wait in zip(self.phase, waits, strict=True)
        ])  # fmt: skip

    def _outcome(self, visits: Sequence[Sequence[float]]) -> Reached:
        begin = self.days / 2
        late = sum(len(of_page) - int(np.searchsorted(of_page, begin)) for of_page in visits)
        stale = [page.staleness(of_page, begin, self.days) for page, of_page in zip(self.pages, visits, strict=True)]
        return Reached(late / begin / len(visits), 1 - float(np.mean(stale)))

    def _best_waits(self, fetches: float) -> Floats:
        """The waits with a given number of fetches per day of all pages. Each page is fetched when that is worth the
        same threshold. This function searches the threshold."""
        low, high = 1e-9, 1e3
        for _ in range(60):
            threshold = np.sqrt(low * high)
            waits = np.array([np.interp(threshold, worth, WAITS, right=np.inf) for worth in self._worth])
            low, high = (threshold, high) if (1 / waits).sum() > fetches else (low, threshold)
        return waits

    @cached_property
    def _worth(self) -> list[Floats]:
        """U(t) of each page at WAITS, the integral of t · dD."""
        between = np.append(0, np.sqrt(WAITS[1:] * WAITS[:-1]))
        between[0] = WAITS[0] / 2
        return [
            np.cumsum(between * np.diff(page.expected_divergence(WAITS), prepend=0.0)) for page in self.pages
        ]  # fmt: skip


def _visits(page: ContentPage, visitor: Visitor, end: float) -> list[float]:
    visits, today = list[float](), 0.0
    while today < end:
        visits.append(today)
        now = today
        today += visitor.visited(now, lambda then: page.seems_diverged(then, now))  # noqa: B023
    return visits


def run(seed: int, quick: bool) -> Findings:
    """Four of ten pages never change. The others change in part, entirely or item by item, at rates of .02 to 5 a
    day."""
    rng = np.random.default_rng(seed)
    pages, days = (200, 150.0) if quick else (1000, 300.0)
    web = DriftingWeb(draw(rng, pages, days), days, rng.random(pages))
    found = [_learnt(web, name, threshold) for threshold in THRESHOLDS for name in BY_DIVERGENCE]
    return Findings(
        tables=[
            ResultTable("freshness with as many fetches, and what of the possible gain that is", [*map(_row, found)])
        ],
        figure=[[_against_budget(web, found), _captured(found)]],
        says=_says(found),
    )


def _learnt(web: DriftingWeb, name: str, threshold: float) -> Learnt:
    by = web.learn(BY_DIVERGENCE[name], Terms(threshold))
    return Learnt(name, threshold, by, web.known(by.fetches))


def _row(found: Learnt) -> Row:
    return {
        "threshold, days": found.threshold,
        "policy": found.policy,
        "fetches per page and day": found.by.fetches,
        "fresh": ResultShare(found.by.freshness),
        **{f"{name}, fresh": ResultShare(other.freshness) for name, other in found.others.items()},
        "captured": found.captured(found.by.freshness),
        f"captured by {BY_CHANGES}": found.captured(found.others[BY_CHANGES].freshness),
    }


def _against_budget(web: DriftingWeb, found: Sequence[Learnt]) -> Panel:
    spent = [one.by.fetches for one in found]
    budgets = np.geomspace(min(spent) / 1.5, max(spent) * 1.5, 7)
    known = [web.known(float(budget)) for budget in budgets]
    lines = [
        PlotSeries(name, budgets, np.array([100 * of[name].freshness for of in known]), "dashed" if at else "line")
        for at, name in enumerate((ORACLE, UNIFORM, BY_CHANGES))
    ]
    dots = [
        PlotSeries(
            name,
            np.array([one.by.fetches for one in found if one.policy == name]),
            np.array([100 * one.by.freshness for one in found if one.policy == name]),
            "dots",
        )
        for name in BY_DIVERGENCE
    ]
    return Panel("who knows all, and who learns", "fetches per page and day", "freshness, %", [*lines, *dots], "x")


def _captured(found: Sequence[Learnt]) -> Panel:
    series = [
        PlotSeries(
            name,
            np.array(THRESHOLDS),
            np.array([one.captured(one.by.freshness) for one in found if one.policy == name]),
        )
        for name in BY_DIVERGENCE
    ]
    return Panel("what is captured of the oracle's gain", "threshold, divergence · days", "share", series, "x")


def _says(found: Sequence[Learnt]) -> str:
    best = [max((one for one in found if one.threshold == threshold), key=_share) for threshold in THRESHOLDS]
    shares = ", ".join(f"{_share(one):.2f} at a threshold of {one.threshold:g} ({one.policy})" for one in best)
    worst = min(found, key=_share)
    by_changes = [one.captured(one.others[BY_CHANGES].freshness) for one in found]
    return (
        f"The better of the two policies captures {shares}. The smallest number in the column "
        f"captured is {_share(worst):.2f}, at a threshold of {worst.threshold:g} ({worst.policy}). The policy of "
        f"Cho & Garcia-Molina, which is told how often pages change but not how much, captures {min(by_changes):.2f} "
        f"to {max(by_changes):.2f}."
    )


def _share(found: Learnt) -> float:
    return found.captured(found.by.freshness)
