"""Visits pages uniformly in the first phase. Then divides the budget in the best way for the learned rates, and keeps
a share of the budget for exploring (Upadhyay et al., 2020, the version with phases).

It assumes that rates never change. The first phase lasts until the policy before it makes no difference any more:
ln(sum of all values / share of exploring) / least rate. It lasts no longer than one round of uniform visits. There are
two differences from the source. Prices follow the learned rates all the time, not only at the end of phases. And
exploring is a floor under every page (as in opt_polite), not a mixture of two policies, because a mixture would
overload hosts.
"""

import math

import numpy as np

from recrawl.model.allocation.solve import Allocation
from recrawl.model.policies import opt_polite, uniform
from recrawl.model.policies.policy import Question


def answer(asked: Question) -> Allocation:
    return uniform.answer(asked) if asked.days < phase(asked) else opt_polite.answer(asked)


def phase(asked: Question) -> float:
    interval = len(asked.web.rate) / asked.budget if asked.budget > 0 else math.inf
    rate = asked.web.rate[asked.web.rate > 0].astype(np.float64)
    if not rate.size or not asked.limits.exploration:
        return interval
    return min(interval, until_steady(float(asked.web.value.sum()), asked.limits.exploration, float(rate.min())))


def until_steady(values: float, error: float, least_rate: float) -> float:
    """τ0: the days until a policy's utility is within `error` of its utility in the long run, with any policy
    before it (Lemma 1). lab/policies/regret.py has the other bounds of that paper."""
    return math.log(max(values / error, 1.0)) / least_rate
