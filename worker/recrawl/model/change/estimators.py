"""Estimators of how often pages change, from all their visits: the methods of the literature under their names.

A page is taken to change at random moments, λ times a day (a Poisson process); a visit tells whether it changed
since the one before. `full_mle` and `full_map` use everything that is known; the others are what the papers
propose, kept for comparison and as oracles: Cho & Garcia-Molina (equal intervals, Last-Modified), Azar et al.,
Learning to Crawl (moment matching). The scheduler itself lives on two numbers a page (gamma_filter).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.change.gamma_filter import Array, not_negative, positive

# Rates that moment matching may answer, per day: once in three thousand years, every tenth of a second.
RATE_LEAST = 1e-6
RATE_MOST = 1e6


@dataclass(frozen=True)
class Visits:
    """The successful visits of many pages, page by page: those of page i are first[i]:first[i + 1].

    `interval` is the time in days since the visit before, `changed` whether the page had changed meanwhile. A
    page's very first visit has nothing to compare with and is not one of them, nor is a visit that failed.
    """

    first: NDArray[np.int64]
    interval: Array
    changed: NDArray[np.bool]

    def __post_init__(self) -> None:
        first = np.asarray(self.first, np.int64)
        interval = positive("interval", self.interval)
        changed = np.asarray(self.changed, np.bool)
        if first.size == 0 or first[0] != 0 or first[-1] != interval.size or (np.diff(first) < 0).any():
            raise ValueError(f"first must rise from 0 to the number of visits, {interval.size}, got {first}")
        if changed.shape != interval.shape:
            raise ValueError(f"changed must have one element for each of {interval.size} visits, got {changed.size}")
        for name, array in (("first", first), ("interval", interval), ("changed", changed)):
            object.__setattr__(self, name, array)

    @cached_property
    def page(self) -> NDArray[np.int64]:
        """Whose visit each one is."""
        return np.repeat(np.arange(self.first.size - 1), np.diff(self.first))

    @cached_property
    def visits(self) -> Array:
        return np.diff(self.first).astype(np.float64)

    @cached_property
    def changes(self) -> Array:
        """Visits that found a change."""
        return self.total(self.changed)

    @cached_property
    def days(self) -> Array:
        return self.total(self.interval)

    def total(self, of_visit: ArrayLike) -> Array:
        """The sum over each page's visits."""
        return _by_page(self.page, of_visit, self.first.size - 1)


def full_mle(visits: Visits) -> Array:
    """The rate under which the visits are likeliest. Always finite: nan without visits, 0 if no visit found a change.

    Where every visit found a change, half an unchanged visit of mean length is added: at equal intervals this is
    what the bias correction of Cho & Garcia-Molina makes of it.
    """
    phantom = np.where(visits.changes == visits.visits, 0.5 * visits.days / np.maximum(visits.visits, 1), 0.0)
    return np.where(visits.visits > 0, _likeliest(visits, 0.0, phantom), np.nan)


def full_map(visits: Visits, prior_a: ArrayLike, prior_b: ArrayLike) -> Array:
    """The likeliest ln λ for a rate that was drawn from Gamma(prior_a, prior_b).

    The mode of ln λ, not of λ: it does not depend on whether rates or intervals are asked for, and is positive for
    any prior.
    """
    return _likeliest(visits, positive("prior_a", prior_a), positive("prior_b", prior_b))


def _likeliest(visits: Visits, more_changes: ArrayLike, more_days: ArrayLike) -> Array:
    """Solves a0 + Σ_changed y/(e^y − 1) = λ·(b0 + Σ_unchanged w), y = λw, by Newton steps in ln λ on its logarithm.

    As 1 − y/2 <= y/(e^y − 1) <= 1, the solution lies between (a0 + X)/(b0 + U + V/2) and (a0 + X)/(b0 + U).
    """
    more_changes = np.broadcast_to(np.asarray(more_changes, np.float64), visits.visits.shape)
    on_change = np.flatnonzero(visits.changed)
    page, interval = visits.page[on_change], visits.interval[on_change]
    unchanged_days = np.asarray(more_days, np.float64) + visits.total(np.where(visits.changed, 0, visits.interval))
    events = more_changes + visits.changes
    known = events > 0

    def excess(log_rate: Array) -> tuple[Array, Array]:
        y = np.exp(log_rate)[page] * interval
        odds = np.exp(-y) / -np.expm1(-y)  # 1/(e^y − 1) without its overflow
        value = more_changes + _by_page(page, y * odds, events.size)
        slope = _by_page(page, y * odds * (1 - y * (1 + odds)), events.size)
        with np.errstate(divide="ignore", invalid="ignore"):  # where all terms have underflowed: bisected
            return np.log(value) - np.log(unchanged_days) - log_rate, slope / value - 1

    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.log(events) - np.log(unchanged_days + visits.total(np.where(visits.changed, visits.interval, 0)) / 2)
        most = np.log(events) - np.log(unchanged_days)
    return np.where(known, np.exp(_root(excess, np.where(known, least, 0.0), np.where(known, most, 0.0))), 0.0)


def moment_matching(visits: Visits, least: float = RATE_LEAST, most: float = RATE_MOST) -> Array:
    """The rate at which as many visits as did would find no change on average: mean e^{−λw} = 1 − mean(changed).

    Azar et al., Learning to Crawl. Within [least, most], which answer for pages that never or always changed; nan
    without visits.
    """
    _check_range(least, most)
    share = 1 - visits.changes / np.maximum(visits.visits, 1)

    def excess(log_rate: Array) -> tuple[Array, Array]:
        y = np.exp(log_rate)[visits.page] * visits.interval
        unchanged = np.exp(-y)
        count = np.maximum(visits.visits, 1)
        return visits.total(unchanged) / count - share, -visits.total(y * unchanged) / count

    shape = visits.visits.shape
    rate = np.exp(_root(excess, np.full(shape, np.log(least)), np.full(shape, np.log(most))))
    return np.where(visits.visits > 0, np.clip(rate, least, most), np.nan)


def moment_matching_radius(visits: Visits, most: float, confidence: float = 0.9) -> Array:
    """How far moment matching may be from the truth, if that is at most `most`. Infinite where nothing can be said.

    √(ln(2/δ)/2n) / mean(w e^{−most·w}), by Hoeffding's inequality and the mean value theorem. Valid for any n and
    some 25 times too wide: for a figure to show, use the filter's credible interval.
    """
    if not 0 < most < np.inf:
        raise ValueError(f"most must be a finite rate above 0, got {most}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    weight = visits.total(visits.interval * np.exp(-most * visits.interval)) / np.maximum(visits.visits, 1)
    with np.errstate(divide="ignore"):
        radius: Array = np.sqrt(np.log(2 / (1 - confidence)) / (2 * visits.visits)) / weight
    return radius


def equal_intervals(visits: Visits) -> Array:
    """−ln(1 − X/n)/w: the MLE for visits at equal intervals. Infinite if all found a change, nan without visits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.log1p(-visits.changes / visits.visits) / (visits.days / visits.visits)


def cho_garcia_molina(visits: Visits) -> Array:
    """−ln((n − X + ½)/(n + ½))/w: the same, finite and less biased. For near-regular visits only: it does not
    converge to the rate when intervals vary. nan without visits."""
    with np.errstate(invalid="ignore"):
        return -np.log1p(-visits.changes / (visits.visits + 0.5)) / (visits.days / visits.visits)


def simple(visits: Visits) -> Array:
    """Visits that found a change, per day. Never more than the frequency of visits: λ = 3 visited daily gives .95.

    nan without visits."""
    with np.errstate(invalid="ignore"):
        return visits.changes / visits.days


def fully_observed(visits: Visits, changes: ArrayLike) -> Array:
    """Changes per day, where each visit learns how many there were since the last. nan without visits."""
    changes = _for_each(visits, "changes", changes)
    with np.errstate(invalid="ignore"):
        return visits.total(changes) / visits.days


def last_modified(visits: Visits, age: ArrayLike) -> Array:
    """The MLE when each change comes with its age (days before the visit, less than the interval): X/(Σ_unchanged w
    + Σ age).

    Infinite if all ages are 0 and nothing was ever unchanged, nan without visits.
    """
    age = _for_each(visits, "age", age)
    late = visits.changed & (age > visits.interval)
    if late.any():
        first = int(np.flatnonzero(late)[0])
        raise ValueError(f"age must not exceed the interval of a changed visit, got {age[first]} at index {first}")
    with np.errstate(divide="ignore", invalid="ignore"):
        return visits.changes / visits.total(np.where(visits.changed, age, visits.interval))


def _by_page(page: NDArray[np.int64], summed: ArrayLike, pages: int) -> Array:
    # (Without any page bincount counts in integers, whatever the weights.)
    return np.bincount(page, np.asarray(summed, np.float64), minlength=pages).astype(np.float64)


def _root(function: Callable[[Array], tuple[Array, Array]], least: Array, most: Array) -> Array:
    """Where falling functions, one a page, cross 0 between least and most: by Newton's step, or bisection."""
    low, high, x = least.copy(), most.copy(), least.copy()
    for _ in range(200):
        value, slope = function(x)
        low, high = np.where(value > 0, x, low), np.where(value > 0, high, x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = x - value / slope
        inside = (step >= low) & (step <= high)  # False for nan
        following = np.where(value == 0, x, np.where(inside, step, (low + high) / 2))
        settled = np.abs(following - x) <= 1e-13 * np.maximum(1, np.abs(x))
        x = following
        if settled.all():
            return x
    return x


def _check_range(least: float, most: float) -> None:
    if not 0 < least < most < np.inf:
        raise ValueError(f"least and most must be finite rates with 0 < least < most, got {least} and {most}")


def _for_each(visits: Visits, name: str, given: ArrayLike) -> Array:
    array = not_negative(name, given)
    if array.shape != visits.interval.shape:
        raise ValueError(f"{name} must have one element for each of {visits.interval.size} visits, got {array.size}")
    return array
