"""Computes the results of every policy on the user's own crawl. Changes nothing. recrawl.cli.compare prints them."""

import math
from dataclasses import dataclass, replace

from recrawl.jobs.allocation_input import AllocationInput
from recrawl.model.policies.outlook import Outlook, as_hosts_can, outlook
from recrawl.model.policies.registry import POLICIES

ROUNDING = 1e-9  # the share of the budget that rounding may leave over


@dataclass(frozen=True)
class PolicyOutlook:
    """`for_new` and `unused` are fetches per day."""

    policy: str
    outlook: Outlook
    for_new: float
    unused: float


def compare(crawl: AllocationInput) -> list[PolicyOutlook]:
    """The outlook of each policy at the present budget, as if the policy had been in force for a long time."""
    found = []
    for name in POLICIES:
        now = replace(crawl, settings=replace(crawl.settings, policy=name), policy_days=math.inf).split(crawl.budget)
        frequency = as_hosts_can(crawl.web(now.cap), now.allocation.frequency)
        visits = outlook(crawl.value, crawl.rate, frequency)
        unused = now.budget - visits.fetches - now.new_pages - now.retries
        found.append(PolicyOutlook(name, visits, now.new_pages, unused if unused > ROUNDING * now.budget else 0.0))
    return found
