"""Computes the results of given frequencies, by every measure. Visits are equally spaced, and pages change at random
moments."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Web


@dataclass(frozen=True)
class Outlook:
    """`fresh` and `age_days` are weighted by value. An infinite figure means that some change is never seen."""

    fresh: float  # share of the value
    changes_seen: float  # visits per day that find a change
    delay_days: float  # from a change to the visit after it, on average
    age_days: float  # since the copy of a page became stale, on average; 0 while it is fresh
    fetches: float  # per day


def as_hosts_can(web: Web, frequency: Floats) -> Floats:
    """The frequencies within the slots of each host. If a host has too few slots, all its visits come late, in
    proportion."""
    wanted = web.on_hosts(frequency)
    share = np.divide(web.cap, wanted, out=np.ones(len(web.cap)), where=wanted > web.cap)
    late: Floats = frequency * share[web.host]
    return late


def outlook(value: NDArray[np.floating[Any]], rate: NDArray[np.floating[Any]], frequency: Floats) -> Outlook:
    values, rates = value.astype(np.float64), rate.astype(np.float64)
    changes, total_value = float(rates.sum()), float(values.sum()) or 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = rates / frequency  # changes between two visits
        seen = np.where(frequency > 0, frequency * -np.expm1(-expected), 0.0)
        fresh = np.where(rates > 0, seen / rates, 1.0)
        # The mean over an interval of the time since its first change. A series, if the formula would cancel.
        since = np.where(
            expected < 1e-3, expected / 6, 0.5 - 1 / expected - np.expm1(-expected) / (expected * expected)
        ) / frequency  # fmt: skip
        age = np.where(rates > 0, np.where(frequency > 0, since, math.inf), 0.0)
        delay = np.where(rates > 0, rates / (2 * frequency), 0.0)
    return Outlook(
        fresh=float((values * fresh).sum()) / total_value,
        changes_seen=float(seen.sum()),
        delay_days=float(delay.sum()) / changes if changes else 0.0,
        age_days=float((values * np.where(values > 0, age, 0.0)).sum()) / total_value,
        fetches=float(frequency.sum()),
    )
