"""How far pages drift from what was fetched of them, and what a visit is worth then (Olston & Pandey, Recrawl
Scheduling Based on Information Longevity, 2008).

Divergence is the share of what either version shows that only one of them does, 0 to 1. If a page diverges by D(t) on
average within t days of a fetch, a visit after t days is worth

    U(t) = t · D(t) − ∫ D  from 0 to t,   in divergence · days

and of all ways to make so many visits the best is to make each when U reaches the same threshold. That threshold is
the price of a host over the value of the page: where a change makes a page worthless at once, D(t) = 1 − e^(−rate · t),
these are the visits that the objective freshness asks for at that price.

Policies here decide page by page, from what each visit finds, and know nothing of other pages.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

# How far the page that is seen now is from what an earlier visit saw; by the day of that visit.
DivergedSince = Callable[[float], float]


@dataclass(frozen=True)
class Terms:
    """What decides how long to wait; times are in days."""

    threshold: float  # what a visit must be worth: price / value, in divergence · days
    first: float = 1.0  # the first wait, when nothing is known
    shortest: float = 1 / 24
    longest: float = 60.0

    def __post_init__(self) -> None:
        if not 0 < self.threshold < math.inf:  # for nothing, everything would be visited without end
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
    """How far a page was, at later visits, from what the visit of one day saw."""

    base: float
    days: list[float] = field(default_factory=list)  # since then
    diverged: list[float] = field(default_factory=list)

    @property
    def last(self) -> float:
        return self.diverged[-1] if self.diverged else 0.0

    def found(self, today: float, diverged: float) -> None:
        self.days.append(today - self.base)
        self.diverged.append(diverged)


class Visitor(Protocol):
    """What one page needs of such a policy."""

    def visited(self, today: float, diverged_since: DivergedSince) -> float:
        """Days until the next visit, once a visit of today is over."""
