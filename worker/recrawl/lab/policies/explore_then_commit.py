"""Uniform visits for a while, to learn; then the best division for what was learnt, for good (Upadhyay et al., 2020).

It assumes that rates never change and that it is known how long the crawl will run. It deviates from the source in the
estimate, which is the filter's and not one by moment matching, as everywhere here; and in the time of exploring, where
the source's bound, which grows as e^(2·rate·interval), is beyond the horizon: then it is a tenth of that.
"""

import math

import numpy as np

from recrawl.lab.policies.regret import Exploration
from recrawl.model.allocation.floors import NO_LIMITS
from recrawl.model.allocation.solve import allocate
from recrawl.model.policies import uniform
from recrawl.model.policies.policy import PolicyAnswer, Question

MOST = 0.1  # of the horizon, spent on exploring


def answer(asked: Question) -> PolicyAnswer:
    if asked.days < explores_for(asked):
        return uniform.answer(asked)
    found = allocate(asked.web, asked.budget, asked.objective, NO_LIMITS, asked.last_price)
    return PolicyAnswer(found, learns=False)


def explores_for(asked: Question) -> float:
    """Days; a whole number of rounds, and at least one."""
    interval = len(asked.web.rate) / asked.budget if asked.budget > 0 else math.inf
    rate = asked.web.rate[asked.web.rate > 0].astype(np.float64)
    if not rate.size or asked.horizon == math.inf:
        return interval
    wanted = Exploration(interval, rate.size, float(rate.min()), float(rate.max())).best_days(asked.horizon)
    return max(1, math.floor(min(wanted, MOST * asked.horizon) / interval)) * interval
