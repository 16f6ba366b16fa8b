"""The best division of the budget within every host's gap (Souza, 2010: OPT_POLITE, for any objective and values).

It assumes that pages change at random moments at the learned rates. It adds two things to the source. Floors keep every
page visited, because rates are only estimates. And no page is visited more often than the shortest interval allows.
"""

from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies.policy import Question


def answer(asked: Question) -> Allocation:
    return allocate(asked.web, asked.budget, asked.objective, asked.limits, asked.last_price)
