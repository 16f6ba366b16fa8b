"""The policies that a live crawl can follow: the names that the setting `policy` accepts.

Each file and docs/policies.md say what the policy does. lab/policies/ has the policies of the laboratory alone.
"""

from recrawl.model.policies import best_first, epsilon_greedy, opt_polite, optimal, proportional, uniform
from recrawl.model.policies.policy import Policy

POLICIES = {
    policy.name: policy
    for policy in (
        Policy("opt_polite", opt_polite.answer),
        Policy("optimal", optimal.answer),
        Policy("uniform", uniform.answer),
        Policy("proportional", proportional.answer),
        Policy("best_first", best_first.answer),
        Policy("epsilon_greedy", epsilon_greedy.answer),
    )
}
