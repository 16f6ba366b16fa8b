"""Policies that know the true rates, which no crawler can know. They show how far real policies are from the best.

`oracle` knows how often each page changes over the whole time, `foresight` over a month before and after each day. Both
divide the fetches as opt_polite does, without floors. They learn only which pages are gone, immediately.
"""

import math
from collections.abc import Callable

import numpy as np

from recrawl.lab.outcome import Outcome
from recrawl.lab.replay import PRODUCTION, Replay, run
from recrawl.lab.world import World
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import Floats
from recrawl.model.policies import opt_polite
from recrawl.model.policies.policy import Policy

ORACLES = {"oracle": math.inf, "foresight": 30.0}  # days before and after that it knows


def oracle(
    world: World, name: str, budget: float, begin: float, end: float, seed: int = 0,
    watch: Callable[[float], None] = lambda days: None,
) -> Outcome:  # fmt: skip
    policy = Policy(name, opt_polite.answer)
    return run(Oracle(world.between(begin, end), policy, budget, begin, end, np.random.default_rng(seed)), watch)


class Oracle(Replay):
    learns_rates = False
    limits = Limits(shortest_interval=PRODUCTION.shortest_interval)

    def day(self, today: float, tomorrow: float) -> None:
        gone = self.world.died <= today
        self.pages.is_gone[gone], self.pages.due_at[gone] = True, math.inf
        super().day(today, tomorrow)

    def _rate(self, today: float) -> Floats:
        world, around = self.world, ORACLES[self.policy.name]
        since, until = max(self.begin, today - around), min(self.end, today + around)
        counted = np.append(0, np.cumsum((world.changed_at > since) & (world.changed_at <= until)))
        changes = np.diff(counted[world.first_change])
        lived = np.minimum(world.died, until) - np.maximum(world.born, since)
        rate: Floats = np.divide(changes, lived, out=np.zeros(world.pages), where=lived > 0)
        return rate
