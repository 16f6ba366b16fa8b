"""The policies that only the laboratory can follow, and all policies that `recrawl simulate` can follow.

A live crawl can follow the policies of model/policies/registry.py. It cannot follow these:

* `explore_then_commit` must stop learning at some day. The filter of a live crawl always learns.
* `bound_based` and `curve_fitting` decide page by page, by how much of a page changed. They compare a visit with up to
  ten earlier visits, and a live crawl keeps only the sketch of the last one. What they spend follows from a threshold,
  not from a budget.
"""

from collections.abc import Callable

from recrawl.lab.policies import explore_then_commit
from recrawl.lab.policies.bound_based import BoundBased
from recrawl.lab.policies.curve_fitting import CurveFitting
from recrawl.lab.policies.longevity import Terms, Visitor
from recrawl.model.policies import registry
from recrawl.model.policies.policy import Policy

ONLY_SIMULATED = {
    "explore_then_commit": Policy("explore_then_commit", explore_then_commit.answer, explore_then_commit.learns)
}
SIMULATED = registry.POLICIES | ONLY_SIMULATED

BY_DIVERGENCE: dict[str, Callable[[Terms], Visitor]] = {"bound_based": BoundBased, "curve_fitting": CurveFitting}
