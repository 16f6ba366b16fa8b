"""What frequencies come to when visits are equally spaced and pages change at random moments, by every measure."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Web


@dataclass(frozen=True)
class Outlook:
    """Fresh and old by value; infinite: some change is never seen."""

    fresh: float  # share of the value
    changes_seen: float  # visits per day that find a change
    delay_days: float  # from a change to the visit after it, on average
    age_days: float  # since what a page shows was up to date, on average
    fetches: float  # per day


def as_hosts_can(web: Web, frequency: Floats) -> Floats:
    """Where a host has fewer slots than are asked for, all its visits come late, in proportion."""
    host = np.repeat(np.arange(len(web.cap)), np.diff(web.first))
    wanted = np.bincount(host, frequency, minlength=len(web.cap))
    kept = np.divide(web.cap, wanted, out=np.ones(len(web.cap)), where=wanted > web.cap)
    late: Floats = frequency * kept[host]
    return late


def outlook(value: NDArray[np.floating[Any]], rate: NDArray[np.floating[Any]], frequency: Floats) -> Outlook:
    values, rates = value.astype(np.float64), rate.astype(np.float64)
    changes, worth = float(rates.sum()), float(values.sum()) or 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = rates / frequency  # changes between two visits
        seen = np.where(frequency > 0, frequency * -np.expm1(-expected), 0.0)
        fresh = np.where(rates > 0, seen / rates, 1.0)
        # The mean over an interval of the time since the first change in it: a series where that cancels.
        since = np.where(
            expected < 1e-3, expected / 6, 0.5 - 1 / expected - np.expm1(-expected) / (expected * expected)
        ) / frequency  # fmt: skip
        age = np.where(rates > 0, np.where(frequency > 0, since, math.inf), 0.0)
        delay = np.where(rates > 0, rates / (2 * frequency), 0.0)
    return Outlook(
        fresh=float((values * fresh).sum()) / worth,
        changes_seen=float(seen.sum()),
        delay_days=float(delay.sum()) / changes if changes else 0.0,
        age_days=float(np.where(values > 0, values * age, 0.0).sum()) / worth,
        fetches=float(frequency.sum()),
    )
