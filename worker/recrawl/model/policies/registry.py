"""The policies that a live crawl can follow: the names that the setting `policy` accepts.

Each file and docs/policies.md say what the policy does. lab/policies/ has the policies of the laboratory alone.
"""

from recrawl.model.policies import best_first, epsilon_greedy, opt_polite, optimal, proportional, uniform
from recrawl.model.policies.policy import Policy

FILES = (opt_polite, optimal, uniform, proportional, best_first, epsilon_greedy)
NAMES = [file.__name__.rpartition(".")[2] for file in FILES]
POLICIES = {name: Policy(name, file.answer) for name, file in zip(NAMES, FILES, strict=True)}
