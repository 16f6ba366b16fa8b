"""Fetches all pages equally often, as far as the gaps of their hosts allow. Every other policy is compared with this
one.

It assumes nothing. New pages are still fetched in order of value, and then again in the order of their first fetches.
So this is also best-first in rounds: each round begins with the page that was first in the round before.
"""

from dataclasses import replace

from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies.policy import Question, without_price


def answer(asked: Question) -> Allocation:
    all_of_it = replace(asked.limits, exploration=1.0, floor_share=1.0)
    return without_price(asked, allocate(asked.web, asked.budget, asked.objective, all_of_it))
