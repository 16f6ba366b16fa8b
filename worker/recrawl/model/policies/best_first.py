"""Fetches each page once, the most valuable page first. The crawl discovers pages and does not come back to them.

It assumes that pages do not change. New pages get the whole budget.
"""

from recrawl.model.allocation.floors import NO_LIMITS
from recrawl.model.allocation.solve import Allocation, allocate
from recrawl.model.policies.policy import Question, without_price


def answer(asked: Question) -> Allocation:
    return without_price(asked, allocate(asked.web, 0.0, asked.objective, NO_LIMITS))
