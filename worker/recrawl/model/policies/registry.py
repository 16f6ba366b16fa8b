"""Which policies there are."""

from recrawl.model.policies import (
    best_first,
    epsilon_greedy,
    explore_then_commit,
    opt_polite,
    optimal,
    proportional,
    uniform,
)
from recrawl.model.policies.policy import Policy

POLICIES = {
    policy.name: policy
    for policy in (
        Policy("opt_polite", "the best within the budget and every host's gap", opt_polite.answer),
        Policy("optimal", "the best within the budget, as if hosts had no gaps", optimal.answer),
        Policy("uniform", "all pages equally often", uniform.answer),
        Policy("proportional", "pages as often as they change", proportional.answer),
        Policy("best_first", "each page once, the most valuable first", best_first.answer),
        Policy("explore_then_commit", "equally often to learn, then the best for good", explore_then_commit.answer),
        Policy("epsilon_greedy", "equally often at first, then the best, exploring on", epsilon_greedy.answer),
    )
}


# What a live crawl cannot do: its filter goes on learning, and so frequencies move.
IN_THE_LABORATORY_ALONE = {"explore_then_commit"}


def policy_named(name: str) -> Policy:
    if name not in POLICIES:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)}, got {name!r}")
    return POLICIES[name]
