"""Estimators of how often pages change, from all their visits: the methods of the literature under their names.

Cho & Garcia-Molina, Estimating frequency of change, 2003 (equal intervals, Last-Modified); Upadhyay et al., Learning to
Crawl, 2020 (moment matching). `full_map` is the likelihood of likelihood.py with a prior.
"""

import numpy as np
from numpy.typing import ArrayLike

from recrawl.lab.methods.likelihood import VisitLog, likeliest, root
from recrawl.model.checks import Array, not_negative, positive

# Rates that moment matching may answer, per day: once in three thousand years, every tenth of a second.
RATE_LEAST = 1e-6
RATE_MOST = 1e6


def full_map(visits: VisitLog, prior_a: ArrayLike, prior_b: ArrayLike) -> Array:
    """The rate λ with the likeliest ln λ, if λ was drawn from Gamma(prior_a, prior_b).

    Unlike the likeliest λ, it is positive for any prior, and the same estimate for the interval 1/λ is its inverse.
    """
    return likeliest(visits, positive("prior_a", prior_a), positive("prior_b", prior_b))


def moment_matching(visits: VisitLog, least: float = RATE_LEAST, most: float = RATE_MOST) -> Array:
    """The rate at which the expected share of unchanged visits is the observed one: mean e^{−λw} = 1 − mean(changed).

    Pages that never changed get `least`. Pages that always changed get `most`. nan without visits.
    """
    if not 0 < least < most < np.inf:
        raise ValueError(f"least and most must be finite rates with 0 < least < most, got {least} and {most}")
    share = 1 - visits.changes / np.maximum(visits.visits, 1)

    def excess(log_rate: Array) -> tuple[Array, Array]:
        y = np.exp(log_rate)[visits.page] * visits.interval
        unchanged = np.exp(-y)
        count = np.maximum(visits.visits, 1)
        return visits.total(unchanged) / count - share, -visits.total(y * unchanged) / count

    shape = visits.visits.shape
    rate = np.exp(root(excess, np.full(shape, np.log(least)), np.full(shape, np.log(most))))
    return np.where(visits.visits > 0, np.clip(rate, least, most), np.nan)


def moment_matching_radius(visits: VisitLog, most: float, confidence: float = 0.9) -> Array:
    """A limit of the error of moment matching, if the true rate is at most `most`. Infinite if nothing can be said.

    √(ln(2/δ)/2n) / mean(w e^{−most·w}), by Hoeffding's inequality and the mean value theorem (Lemma 3). Valid for any n
    and some 25 times too wide: for a figure to show, use the filter's credible interval.
    """
    _check_radius(most, confidence)
    weight = visits.total(visits.interval * np.exp(-most * visits.interval)) / np.maximum(visits.visits, 1)
    with np.errstate(divide="ignore"):
        radius: Array = np.sqrt(np.log(2 / (1 - confidence)) / (2 * visits.visits)) / weight
    return radius


def equal_intervals(visits: VisitLog) -> Array:
    """−ln(1 − X/n)/w: the MLE for visits at equal intervals. Infinite if all found a change, nan without visits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return -np.log1p(-visits.changes / visits.visits) / (visits.days / visits.visits)


def cho_garcia_molina(visits: VisitLog) -> Array:
    """−ln((n − X + ½)/(n + ½))/w: the same, finite and less biased. For near-regular visits only: it does not
    converge to the rate when intervals vary. nan without visits."""
    with np.errstate(invalid="ignore"):
        return -np.log1p(-visits.changes / (visits.visits + 0.5)) / (visits.days / visits.visits)


def simple(visits: VisitLog) -> Array:
    """Fetches that found a change, per day. Never more than the frequency of fetches: λ = 3 with daily fetches gives
    .95. nan without fetches."""
    with np.errstate(invalid="ignore"):
        return visits.changes / visits.days


def fully_observed(visits: VisitLog, changes: ArrayLike) -> Array:
    """Changes per day, where each visit learns how many there were since the last. nan without visits."""
    changes = _for_each(visits, "changes", changes)
    with np.errstate(invalid="ignore"):
        return visits.total(changes) / visits.days


def fully_observed_radius(visits: VisitLog, most: float, confidence: float = 0.9) -> Array:
    """A limit of the error of `fully_observed`, cut off at `most`, if the true rate is at most `most` (Lemma 8).

    √(most·ln(2/δ)/((2 ln 2 − 1)·days)), and no more than `most`. By Bennett's inequality for the number of changes, of
    mean λt: it strays by εt with a probability of 2·e^(−λt·g(ε/λ)) at most, g(z) = (1 + z)ln(1 + z) − z. λ·g(ε/λ) falls
    as λ grows, and g(z) >= g(1)·z² for z <= 1. The number of visits does not matter: only the days count.
    """
    _check_radius(most, confidence)
    with np.errstate(divide="ignore"):
        radius: Array = np.sqrt(most * np.log(2 / (1 - confidence)) / ((2 * np.log(2) - 1) * visits.days))
    within: Array = np.minimum(most, radius)
    return within


def last_modified(visits: VisitLog, age: ArrayLike) -> Array:
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


def _check_radius(most: float, confidence: float) -> None:
    if not 0 < most < np.inf:
        raise ValueError(f"most must be a finite rate above 0, got {most}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")


def _for_each(visits: VisitLog, name: str, given: ArrayLike) -> Array:
    array = not_negative(name, given)
    if array.shape != visits.interval.shape:
        raise ValueError(f"{name} must have one element for each of {visits.interval.size} visits, got {array.size}")
    return array
