"""The best division of the budget as if hosts had no gaps (Cho & Garcia-Molina, 2003; Souza, 2010: CHO).

It assumes the same as opt_polite, and also that every host allows any number of requests. If a host has fewer slots
than its pages get visits, all of them come late, in proportion, and a part of the budget is never spent. The utility in
the answer takes this into account. Blocked hosts still get nothing.
"""

from dataclasses import replace

import numpy as np

from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies.outlook import as_hosts_can
from recrawl.model.policies.policy import Question, with_utility_of


def answer(asked: Question) -> Allocation:
    open_hosts = replace(asked.web, cap=np.where(asked.web.cap > 0, np.inf, 0.0))
    found = allocate(open_hosts, asked.budget, asked.objective, asked.limits, asked.last_price)
    return with_utility_of(asked, found, as_hosts_can(asked.web, found.frequency))
