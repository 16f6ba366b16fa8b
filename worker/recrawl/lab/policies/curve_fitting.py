"""Fits a curve to the divergence that visits found, and waits until a visit is worth enough according to the curve
(Olston & Pandey, Recrawl Scheduling Based on Information Longevity, 2008: the curve-fitting policy).

It assumes that a page's updates come at random moments, and that each update replaces everything that ever changes
(churn), or the oldest item of a list (scroll). It deviates from the source in four points. Scrolls have one of a few
lengths, and rates lie on a grid. A wait has a lower and an upper limit, at any threshold. Of several curves that fit
about equally well it takes the slowest. And it learns differently: a page that was never found changed waits at most as
long as it has been watched, while the source's longest wait grows by the same amount at every visit.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

from recrawl.lab.policies.longevity import DivergedSince, Profile, Terms

Array = NDArray[np.float64]

LEAST_SCATTER = 1e-6  # the least mean square of the distances of fetches from a curve
AS_GOOD = 3  # times the scatter: curves whose sums of squares differ by less fit equally well
PROFILES = 8  # earlier visits that a visit is compared with
ITEMS = (1, 2, 5, 10, 20)  # numbers of items of a scroll; 1 is churn
STEP = np.log(10) / 16  # between two rates of the grid, and between two entries of the tables
RATES = np.exp(STEP * np.arange(-40, 25))  # updates per day: .003 to 32
EXPECTED = np.exp(STEP * np.arange(-120, 72))  # numbers of updates that the tables have: 3e-8 to 3e4


@dataclass(frozen=True)
class Curve:
    """D(t) = most · (1/items) · Σ P(i, rate · t) for i = 1 … items, where P is the regularised gamma function."""

    most: float
    items: int
    rate: float

    def divergence(self, days: float) -> float:
        return self.most * float(np.mean(gammainc(np.arange(1, self.items + 1), self.rate * days)))

    def worth(self, days: float) -> float:
        """The worth of a visit after these days: i/rate · P(i + 1, rate · t) is the integral of t · dP(i, rate · t)."""
        nth = np.arange(1, self.items + 1)
        return self.most / self.rate * float(np.mean(nth * gammainc(nth + 1, self.rate * days)))

    def days_until_worth(self, threshold: float) -> float:
        """Days until a visit is worth the threshold; infinite if it never is."""
        wanted = threshold * self.rate
        worth = self.most * _worths()[ITEMS.index(self.items)]
        return float(np.interp(wanted, worth, EXPECTED) / self.rate) if wanted < worth[-1] else np.inf


@dataclass
class CurveFitting:
    terms: Terms
    profiles: deque[Profile] = field(default_factory=lambda: deque(maxlen=PROFILES))

    def visited(self, today: float, diverged_since: DivergedSince) -> float:
        for profile in self.profiles:
            profile.found(today, diverged_since(profile.base))
        self.profiles.append(Profile(today))
        found = ([one.days for one in self.profiles], [one.diverged for one in self.profiles])
        days, diverged = (np.array([*chain(*of)]) for of in found)
        if not diverged.any():
            return self.terms.within(max(self.terms.first, today - self.profiles[0].base))
        return self.terms.within(fit(days, diverged).days_until_worth(self.terms.threshold))


def fit(days: Array, diverged: Array) -> Curve:
    """The curve with the least squares. Of several that fit equally well it takes the slowest.

    A page that changes faster than it is visited looks the same at any higher rate. If the policy believes that it is
    slow, the page is visited soon and the error is found. If the policy believes that it is hopeless, it never visits.
    """
    place = np.clip(np.log(days * RATES[0] / EXPECTED[0]) / STEP, 0, len(EXPECTED) - len(RATES) - 1)
    left = np.floor(place).astype(int)
    right = (place - left)[:, None]
    shapes = np.stack([(1 - right) * gone[left] + right * gone[left + 1] for gone in _gone()], 1)
    squares = np.maximum((shapes**2).sum(0), 1e-12)  # by items and rate
    along = np.einsum("f,fir->ir", diverged, shapes)
    most = np.clip(along / squares, 0.0, 1.0)
    off = most**2 * squares - 2 * most * along
    scatter = max(float(diverged @ diverged + off.min()) / len(days), LEAST_SCATTER)
    rate = int((off <= off.min() + AS_GOOD * scatter).any(axis=0).argmax())
    items = int(off[:, rate].argmin())
    return Curve(float(most[items, rate]), ITEMS[items], float(RATES[rate]))


@cache
def _gone() -> list[Array]:
    """For each length of a scroll, the replaced share. Row k: at all rates after EXPECTED[k] / RATES[0] days."""
    gone = [np.mean([gammainc(i, EXPECTED) for i in range(1, items + 1)], axis=0) for items in ITEMS]
    return [np.lib.stride_tricks.sliding_window_view(of_items, len(RATES)) for of_items in gone]


@cache
def _worths() -> list[Array]:
    """For each length of a scroll, the worth of a visit after each number of updates in EXPECTED, in 1/rate."""
    return [np.mean([i * gammainc(i + 1, EXPECTED) for i in range(1, items + 1)], axis=0) for items in ITEMS]
