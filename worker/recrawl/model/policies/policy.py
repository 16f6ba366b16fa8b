"""What a policy is asked, and what it answers."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import objective_named
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
class Answer:
    allocation: Allocation
    objective: str  # from whose prices the frequency of a page follows, also when more is known of it
    learns: bool = True  # whether what visits see from now on counts


@dataclass(frozen=True)
class Policy:
    name: str
    says: str  # what it does and assumes, in a line
    answer: Callable[[Question], Answer]


def without_price(allocation: Allocation) -> Allocation:
    """Nothing is worth a fetch beyond its floor, whatever is learnt of it."""
    price = np.full(len(allocation.host_price), math.inf)
    return replace(allocation, price=math.inf, host_price=price, capped=np.zeros(len(price), bool))


def utility(web: Web, allocation: Allocation, objective: str) -> float:
    """What an allocation is worth by an objective, which need not be what it was made for."""
    return float(objective_named(objective).utility(allocation.frequency, web.value, web.rate).sum())
