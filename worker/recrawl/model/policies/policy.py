"""What a policy is asked, and what it answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web


@dataclass(frozen=True, eq=False)
class Question:
    """Fetches and changes are per day."""

    web: Web
    budget: float
    objective: str
    limits: Limits
    last_price: float | None = None  # where a search may begin
    days: float = math.inf  # since the policy came into force
    horizon: float = math.inf  # days that it will be in force


@dataclass(frozen=True, eq=False)
class PolicyAnswer:
    """Utility is by the objective that was asked for, whatever the policy makes largest."""

    allocation: Allocation
    learns: bool = True  # whether what visits see from now on counts


@dataclass(frozen=True)
class Policy:
    name: str
    answer: Callable[[Question], PolicyAnswer]


def without_price(asked: Question, found: Allocation) -> PolicyAnswer:
    """Nothing is worth a fetch beyond its floor, whatever is learnt of it."""
    hosts = len(asked.web.cap)
    return worth_of(
        asked,
        replace(found, price=math.inf, host_price=np.full(hosts, math.inf), capped=np.zeros(hosts, bool)),
        found.frequency,
    )


def worth_of(asked: Question, found: Allocation, frequency: Floats) -> PolicyAnswer:
    """As it comes about: with the frequencies that pages will really have."""
    of_page = objective_named(asked.objective).utility(frequency, asked.web.value, asked.web.rate)
    return PolicyAnswer(replace(found, utility=float(of_page.sum()), spent=float(frequency.sum())))
