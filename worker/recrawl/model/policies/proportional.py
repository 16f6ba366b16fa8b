"""Fetches pages in proportion to their rates: frequency = rate · a constant. A host at its cap has a constant of its
own.

It assumes that a page that changes more often deserves more fetches. For freshness this is worse than uniform visits
if rates differ (Cho & Garcia-Molina, 2003). Pages without value get nothing.
"""

from dataclasses import replace

from recrawl.model.allocation.objectives import PROPORTIONAL
from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies.policy import Question, with_utility_of


def answer(asked: Question) -> Allocation:
    no_floors = replace(asked.limits, exploration=0.0, longest_interval=float("inf"))
    found = allocate(asked.web, asked.budget, PROPORTIONAL.name, no_floors, asked.last_price)
    return with_utility_of(asked, found, found.frequency)
