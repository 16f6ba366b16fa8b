"""The best division of the budget as if hosts had no gaps (Cho & Garcia-Molina, 2003; Souza, 2010: CHO).

It assumes what opt_polite does, and that every host answers as often as it is asked. Where it does not, visits come as
late as the gaps make them, and a part of the budget is never spent. Blocked hosts still get nothing.
"""

from dataclasses import replace

import numpy as np

from recrawl.model.policies import opt_polite
from recrawl.model.policies.policy import Answer, Question


def answer(asked: Question) -> Answer:
    cap = np.where(asked.web.cap > 0, np.inf, 0.0)
    return opt_polite.answer(replace(asked, web=replace(asked.web, cap=cap)))
