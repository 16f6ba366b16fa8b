"""Explores with uniform visits for some time, then keeps the best division for the learned rates permanently (Upadhyay
et al., 2020).

It assumes that rates never change, and that the length of the crawl is known. It deviates from the source in two
points. Rates are estimated by the filter, as everywhere here, and not by moment matching. The time of exploring is at
most a tenth of the horizon, because the source's bound grows as e^(2·rate·interval) and may be beyond the horizon.
"""

import math

import numpy as np

from recrawl.lab.policies.regret import Exploration
from recrawl.model.allocation.floors import NO_LIMITS
from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies import uniform
from recrawl.model.policies.policy import Question

MOST = 0.1  # share of the horizon for exploring


def answer(asked: Question) -> Allocation:
    if learns(asked):
        return uniform.answer(asked)
    return allocate(asked.web, asked.budget, asked.objective, NO_LIMITS, asked.last_price)


def learns(asked: Question) -> bool:
    return asked.days < explores_for(asked)


def explores_for(asked: Question) -> float:
    """Days of exploring: a whole number of rounds, at least one."""
    interval = len(asked.web.rate) / asked.budget if asked.budget > 0 else math.inf
    rate = asked.web.rate[asked.web.rate > 0].astype(np.float64)
    if not rate.size or asked.horizon == math.inf:
        return interval
    wanted = Exploration(interval, rate.size, float(rate.min()), float(rate.max())).best_days(asked.horizon)
    return max(1, math.floor(min(wanted, MOST * asked.horizon) / interval)) * interval
