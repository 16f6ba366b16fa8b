"""How far pages drift from their fetched copies, and the worth of a visit after that (Olston & Pandey, Recrawl
Scheduling Based on Information Longevity, 2008).

Divergence is the share of the content of two versions that only one of them has, 0 to 1. If a page diverges by D(t) on
average within t days of a fetch, a visit after t days is worth

    U(t) = t · D(t) − ∫ D  from 0 to t,   in divergence · days

Of all ways to make a given number of visits, the best makes each visit when U reaches the same threshold. The threshold
is the price of a host divided by the value of the page. If any change makes a copy worthless, D(t) = 1 − e^(−rate · t),
and these are the visits that the objective freshness asks for at that price.

These policies decide page by page, from the results of the page's visits, and know nothing of other pages.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

# Given the day of an earlier visit: the divergence between that visit and now.
DivergedSince = Callable[[float], float]


@dataclass(frozen=True)
class Terms:
    """The parameters of a wait. Times are in days."""

    threshold: float  # the least worth of a visit: price / value, in divergence · days
    first: float = 1.0  # the first wait, when nothing is known
    shortest: float = 1 / 24
    longest: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold < math.inf:  # at 0 every page would be visited without end
            raise ValueError(f"threshold must be positive and finite, got {self.threshold}")
        if not 0 < self.shortest <= self.first <= self.longest < math.inf:
            raise ValueError(
                "shortest, first and longest must be positive, finite and in this order, got "
                f"{self.shortest}, {self.first} and {self.longest}"
            )

    def within(self, days: float) -> float:
        return min(max(days, self.shortest), self.longest)


@dataclass
class Profile:
    """The divergence that later visits found since the visit of one day."""

    base: float
    days: list[float] = field(default_factory=list)  # from the base to each later visit
    diverged: list[float] = field(default_factory=list)

    @property
    def last(self) -> float:
        return self.diverged[-1] if self.diverged else 0.0

    def found(self, today: float, diverged: float) -> None:
        self.days.append(today - self.base)
        self.diverged.append(diverged)


class Visitor(Protocol):
    """Such a policy at work on one page."""

    def visited(self, today: float, diverged_since: DivergedSince) -> float:
        """Takes in the visit of today. Returns the days until the next visit."""
