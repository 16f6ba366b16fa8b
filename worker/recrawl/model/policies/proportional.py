"""Pages as often as they change: frequency = rate · a constant (a host's own one, where its gap holds it back).

It assumes that what changes more often deserves more fetches, which for freshness is worse than uniform visits
wherever rates differ (Cho & Garcia-Molina, 2003). Pages without value get nothing.
"""

from dataclasses import replace

from recrawl.model.allocation.objectives import PROPORTIONAL
from recrawl.model.allocation.solve import allocate
from recrawl.model.policies.policy import PolicyAnswer, Question, worth_of


def answer(asked: Question) -> PolicyAnswer:
    no_floors = replace(asked.limits, exploration=0.0, longest_interval=float("inf"))
    found = allocate(asked.web, asked.budget, PROPORTIONAL.name, no_floors, asked.last_price)
    return worth_of(asked, found, found.frequency)
