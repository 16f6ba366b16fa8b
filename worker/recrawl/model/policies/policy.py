"""The question that every policy gets. Its answer is an allocation."""

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
    last_price: float | None = None  # the price at which a search may begin
    days: float = math.inf  # since the policy came into force
    horizon: float = math.inf  # days that it will be in force


@dataclass(frozen=True)
class Policy:
    """The allocation that answers a question has the utility by the objective of the question, even if the policy
    maximises something else."""

    name: str
    answer: Callable[[Question], Allocation]
    learns: Callable[[Question], bool] = lambda _: True  # False = it learns nothing from visits any more


def without_price(asked: Question, found: Allocation) -> Allocation:
    """The answer with an infinite price. At this price a page gets its floor, also after more is learned about it."""
    hosts = len(asked.web.cap)
    unpriced = replace(found, price=math.inf, host_price=np.full(hosts, math.inf), capped=np.zeros(hosts, bool))
    return with_utility_of(asked, unpriced, found.frequency)


def with_utility_of(asked: Question, found: Allocation, frequency: Floats) -> Allocation:
    """The answer with the utility and the fetches of `frequency`: the frequencies that pages will really have."""
    of_page = objective_named(asked.objective).utility(frequency, asked.web.value, asked.web.rate)
    return replace(found, utility=float(of_page.sum()), spent=float(frequency.sum()))
