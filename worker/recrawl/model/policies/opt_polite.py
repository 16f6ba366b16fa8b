"""The best division of the budget within every host's gap (Souza, 2010: OPT_POLITE, for any objective and values).

It assumes that pages change at random moments at the rates that were learnt. Beyond the source, floors keep every page
visited, as rates are not known but learnt; and no page is visited more often than the shortest interval.
"""

from recrawl.model.allocation.solve import allocate
from recrawl.model.policies.policy import PolicyAnswer, Question


def answer(asked: Question) -> PolicyAnswer:
    return PolicyAnswer(allocate(asked.web, asked.budget, asked.objective, asked.limits, asked.last_price))
