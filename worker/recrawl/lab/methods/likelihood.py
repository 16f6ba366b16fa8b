"""Estimates how often each page changes, from all its visits: the rate that makes these visits likeliest.

A page is assumed to change at random moments, λ times a day (a Poisson process). A visit tells whether the page changed
since the visit before. The scheduler itself keeps only two numbers per page (sql/common/rate.sql). estimators.py
has the estimators of the papers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.checks import Array, positive


@dataclass(frozen=True)
class VisitLog:
    """The successful visits of many pages, page by page. Page i has the visits starts[i]:starts[i + 1].

    `interval` is the time in days since the visit before. `changed` says whether the page changed in that interval. The
    first visit of a page is left out, because it has nothing to compare with. A failed visit is left out too.
    """

    starts: NDArray[np.int64]
    interval: Array
    changed: NDArray[np.bool]

    def __post_init__(self) -> None:
        starts = np.asarray(self.starts, np.int64)
        interval = positive("interval", self.interval)
        changed = np.asarray(self.changed, np.bool)
        if starts.size == 0 or starts[0] != 0 or starts[-1] != interval.size or (np.diff(starts) < 0).any():
            raise ValueError(f"starts must rise from 0 to the number of visits, {interval.size}, got {starts}")
        if changed.shape != interval.shape:
            raise ValueError(f"changed must have one element for each of {interval.size} visits, got {changed.size}")
        for name, array in (("starts", starts), ("interval", interval), ("changed", changed)):
            object.__setattr__(self, name, array)

    @cached_property
    def page(self) -> NDArray[np.int64]:
        """The page of each visit."""
        return np.repeat(np.arange(self.starts.size - 1), np.diff(self.starts))

    @cached_property
    def visits(self) -> Array:
        return np.diff(self.starts).astype(np.float64)

    @cached_property
    def changes(self) -> Array:
        """Visits that found a change."""
        return self.total(self.changed)

    @cached_property
    def days(self) -> Array:
        return self.total(self.interval)

    def total(self, of_visit: ArrayLike) -> Array:
        return by_page(self.page, of_visit, self.starts.size - 1)


def full_mle(visits: VisitLog) -> Array:
    """The rate under which the visits are likeliest. NaN without visits, 0 if no visit found a change; finite if every
    visit did.

    If every visit found a change, half an unchanged visit of mean length is added. With equal intervals the rate is
    then the one of the bias-corrected estimate of Cho & Garcia-Molina.
    """
    phantom = np.where(visits.changes == visits.visits, 0.5 * visits.days / np.maximum(visits.visits, 1), 0.0)
    return np.where(visits.visits > 0, likeliest(visits, 0.0, phantom), np.nan)


def likeliest(visits: VisitLog, more_changes: ArrayLike, more_days: ArrayLike) -> Array:
    """Solves more_changes + Σ_changed y/(e^y − 1) = λ·(more_days + U) for λ, by Newton steps in ln λ, on the
    logarithm of both sides.

    Here y = λw, and w are the intervals. X is the number of visits that found a change, U the days of the unchanged
    intervals, and V the days of the changed intervals. Because 1 − y/2 <= y/(e^y − 1) <= 1, the solution lies between
    (more_changes + X)/(more_days + U + V/2) and (more_changes + X)/(more_days + U).
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
        value = more_changes + by_page(page, y * odds, events.size)
        slope = by_page(page, y * odds * (1 - y * (1 + odds)), events.size)
        with np.errstate(divide="ignore", invalid="ignore"):  # if all terms underflow, root() bisects
            return np.log(value) - np.log(unchanged_days) - log_rate, slope / value - 1

    with np.errstate(divide="ignore", invalid="ignore"):
        least = np.log(events) - np.log(unchanged_days + visits.total(np.where(visits.changed, visits.interval, 0)) / 2)
        most = np.log(events) - np.log(unchanged_days)
    return np.where(known, np.exp(root(excess, np.where(known, least, 0.0), np.where(known, most, 0.0))), 0.0)


def by_page(page: NDArray[np.int64], summed: ArrayLike, pages: int) -> Array:
    # astype: if there is no page, bincount answers integers, although it gets weights.
    return np.bincount(page, np.asarray(summed, np.float64), minlength=pages).astype(np.float64)


def root(function: Callable[[Array], tuple[Array, Array]], least: Array, most: Array) -> Array:
    """The points between least and most at which falling functions, one for each page, are 0. Uses Newton's step, or
    bisection if that step leaves the bracket."""
    low, high, x = least.copy(), most.copy(), least.copy()
    for _ in range(200):
        value, slope = function(x)
        low, high = np.where(value > 0, x, low), np.where(value > 0, high, x)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = x - value / slope
        inside = (step >= low) & (step <= high)  # False for nan
        following = np.where(value == 0, x, np.where(inside, step, (low + high) / 2))
        converged = np.abs(following - x) <= 1e-13 * np.maximum(1, np.abs(x))
        x = following
        if converged.all():
            return x
    return x
