"""Which policies there are. What each does stands in its file, and in docs/policies.md."""

from collections.abc import Callable

from recrawl.model.policies import (
    best_first,
    epsilon_greedy,
    explore_then_commit,
    opt_polite,
    optimal,
    proportional,
    uniform,
)
from recrawl.model.policies.bound_based import BoundBased
from recrawl.model.policies.curve_fitting import CurveFitting
from recrawl.model.policies.longevity import Terms, Visitor
from recrawl.model.policies.policy import Policy

POLICIES = {
    policy.name: policy
    for policy in (
        Policy("opt_polite", opt_polite.answer),
        Policy("optimal", optimal.answer),
        Policy("uniform", uniform.answer),
        Policy("proportional", proportional.answer),
        Policy("best_first", best_first.answer),
        Policy("explore_then_commit", explore_then_commit.answer),
        Policy("epsilon_greedy", epsilon_greedy.answer),
    )
}

# What a live crawl cannot do: its filter goes on learning, and so frequencies move.
IN_THE_LABORATORY_ALONE = {"explore_then_commit"}

# Page by page, by how much of a page changes. The laboratory's alone, too: they compare a visit with up to ten earlier
# ones, and a live crawl keeps the sketch of the last; and what they spend follows from a threshold, not from a budget.
BY_DIVERGENCE: dict[str, Callable[[Terms], Visitor]] = {"bound_based": BoundBased, "curve_fitting": CurveFitting}


def policy_named(name: str) -> Policy:
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {name!r}")
    return POLICIES[name]
