"""All pages equally often, as far as the gaps of their hosts allow: what every other policy is measured against.

It assumes nothing. New pages still come by value, and then take their turns in the order in which they came: so this
is also best-first in rounds, where the next round begins with the page that was first in the one before.
"""

from dataclasses import replace

from recrawl.model.allocation.solve import allocate
from recrawl.model.policies.policy import PolicyAnswer, Question, without_price


def answer(asked: Question) -> PolicyAnswer:
    all_of_it = replace(asked.limits, exploration=1.0, floor_share=1.0)
    return without_price(asked, allocate(asked.web, asked.budget, asked.objective, all_of_it))
