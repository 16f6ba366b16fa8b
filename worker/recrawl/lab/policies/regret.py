"""How long to learn, and what that costs at most (Upadhyay et al., Learning to Crawl, 2020).

Only a lower and an upper bound of the rates are known. All pages are visited at one interval for some days
(exploring). Rates are estimated from these visits by moment matching. From then to the horizon, visits come at random
moments, in the division that would be best if the estimates were true (committing). The regret is the loss of fresh
value · days, compared with rates that are known from the first day. All of this is for the objective
poisson_freshness.

The errors of single estimates (Lemmas 3 and 8) are in lab/methods/estimators.py, next to the estimators.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

UNSURE = 0.1  # the probability that the bounds may fail
MOST = 700.0  # e^700 is still a float, e^710 is not


@dataclass(frozen=True)
class Exploration:
    """All pages at one interval. No bound holds unless the days are a whole number of intervals."""

    interval: float  # days
    pages: int
    least_rate: float
    most_rate: float
    unsure: float = UNSURE

    def radius(self, days: float) -> float:
        """The largest error of the estimate of any page at the end of exploring: √(K/days)·least rate (Lemma 5, which
        is Lemma 3 for all pages together)."""
        return math.exp(min((self._log_k - math.log(days)) / 2, MOST)) * self.least_rate

    def regret(self, values: float, days: float, horizon: float) -> float:
        """An upper bound: while exploring all value is lost; then the loss that Lemma 4 gives for the radius (Theorem
        1)."""
        return values * (days + (horizon - days) * self._k / days)

    def best_days(self, horizon: float) -> float:
        """The days with the smallest bound: τ* = √(K·horizon)."""
        return math.exp(min((self._log_k + math.log(horizon)) / 2, MOST))

    @property
    def _k(self) -> float:
        return math.exp(min(self._log_k, MOST))

    @property
    def _log_k(self) -> float:
        """K = e^(2·most rate·interval)·ln(2·pages/unsure)/(2·interval·least rate²), in days. Its exponential makes it
        useless if intervals are long: more than 10¹⁰ days for a week and two changes a day."""
        in_doubt = math.log(2 * self.pages / self.unsure)
        return 2 * self.most_rate * self.interval + math.log(in_doubt / (2 * self.interval * self.least_rate**2))


def loss(value: ArrayLike, rate: ArrayLike, estimate: ArrayLike) -> float:
    """The most that the best division for the estimates loses per day, compared with the best one (Lemma 4)."""
    values, rates, estimates = (np.asarray(array, np.float64) for array in (value, rate, estimate))
    return float((values * (estimates - rates) ** 2 / (estimates * np.minimum(rates, estimates))).sum())
