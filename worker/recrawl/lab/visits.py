"""The visits of many pages between two allocations, in a web whose every change is known: what each visit finds, and
what the filter learns from it.

Between allocations prices do not change. Without gaps the pages are independent of each other: each page is visited
when it is due, the visit changes the estimate of its rate, and the estimate gives the interval until it is due again.
The interval begins at the last due time, not at the visit. In SQL, report does the same for each page.

Times are in days.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats, Objective, Scalar, objective_named
from recrawl.model.compiled import compiled, scalar

# The past counts for 50 visits or 100 days, the longer of the two: see lab.methods.beliefs.remembered.
MEMORY_VISITS = 50.0
MEMORY_DAYS = 100.0


class Pages(NamedTuple):
    """For every page: when it lives and changes, what is known of it, and what visits found of its changes."""

    host: NDArray[np.int64]
    born: Floats
    died: Floats
    next_change: NDArray[np.int64]  # the first change that no visit has seen
    last_change: NDArray[np.int64]  # one more than the index of its last change
    value: Floats
    is_noisy: NDArray[np.bool_]  # every visit sees a change
    seen_at: Floats  # the last visit; NaN = the page is not known yet
    is_gone: NDArray[np.bool_]  # a visit found that the page is gone
    due_at: Floats  # infinite = the page is not fetched
    planned_interval: Floats  # days from the last visit to the due time
    seen_changes: Floats  # its evidence, beyond the prior of its host
    seen_days: Floats
    frequency: Floats
    stale_days: Floats
    missed_days: Floats  # from each change to the next visit
    changes_seen: NDArray[np.int64]

    def is_known(self) -> NDArray[np.bool_]:
        """For each page: it is known, and it is not known to be gone."""
        return ~np.isnan(self.seen_at) & ~self.is_gone


class Events(NamedTuple):
    """The changes of all pages, and the outages of all hosts."""

    changed_at: Floats
    version_ids: NDArray[np.int64]  # before change n, page i has version_ids[n + i]; empty = a visit sees every change
    first_outage: NDArray[np.int64]  # host h has the outages first_outage[h]:first_outage[h + 1]
    down_at: Floats
    up_at: Floats


class VisitTerms(NamedTuple):
    """For every host: the numbers from which a page's frequency follows."""

    prior_changes: Floats
    prior_days: Floats
    price: Floats
    floor: Floats  # fetches per day
    ceiling: float
    objective: str
    learns: bool  # whether visits change the estimates from now on


@scalar
def changed_once(a, b, w):  # type: ignore[no-untyped-def]
    """The belief after a visit that found the page changed, once or more often.

    The belief about the rate is a Gamma distribution: as if `a` changes had been seen in `b` days. `w` = the days since
    the visit before. sql/common/rate.sql is the same in SQL.

    With s = w/(b+w) and q = P(unchanged)/P(changed), the posterior's mean is (a/b)·(1 + qs) and its variance
    (a/b²)·(1 + qs(2 − s) − as²q(1 + q)). Textbooks use differences of 1 − (b/(b+w))^a, ^(a+1) and ^(a+2). Their result
    is the same, but they lose every digit if w << b or a << 1. This form does not, and needs no special case there.
    The new a is between a and a + 1, and the new b is at least b: "changed" never says more than one counted change.
    """
    x = w / b
    log_ratio = x * (1 - x * (0.5 - x / 3)) if x < 1e-4 else math.log(1 + x)
    s = w / (b + w)
    surprise = min(a * log_ratio, 100.0)  # −ln P(unchanged); above 100, q would underflow, which is an error in SQL
    q = 1 / surprise - 0.5 + surprise / 12 if surprise < 1e-4 else 1 / (math.exp(surprise) - 1)
    mean = 1 + q * s
    variance = 1 + q * s * (2 - s) - a * s * s * q * (1 + q)
    return a * mean * mean / variance, b * mean / variance


@scalar
def kept_after(interval):  # type: ignore[no-untyped-def]
    """The share of the evidence that is left at the next visit."""
    return math.exp(-min(1 / MEMORY_VISITS, interval / MEMORY_DAYS))


def visit(begin: float, end: float, pages: Pages, events: Events, terms: VisitTerms) -> int:
    """Visits the pages that are due before `end`, none of them before `begin`. Returns the number of visits."""
    return int(_visits(objective_named(terms.objective))(begin, end, pages, events, terms))


@cache
def _visits(objective: Objective) -> Scalar:
    weight_of, share_at = objective.weight_of, objective.share_at

    # One loop over plain arrays: 17 to 25 million visits a second on one core. Four functions that take the tuples make
    # 3 million.
    @compiled(objective.name, error_model="numpy", nogil=True)
    def visits(begin, end, pages, events, terms):  # type: ignore[no-untyped-def]
        host, value, died, is_gone, last_change = pages.host, pages.value, pages.died, pages.is_gone, pages.last_change
        next_change, seen_at, due_at = pages.next_change, pages.seen_at, pages.due_at
        planned_interval = pages.planned_interval
        seen_changes, seen_days, frequency = pages.seen_changes, pages.seen_days, pages.frequency
        stale_days, missed_days, changes_seen = pages.stale_days, pages.missed_days, pages.changes_seen
        prior_changes, prior_days, price, floor = terms.prior_changes, terms.prior_days, terms.price, terms.floor
        ceiling, learns = terms.ceiling, terms.learns
        changed_at, version_ids, is_noisy = events.changed_at, events.version_ids, pages.is_noisy
        first_outage, down_at, up_at = events.first_outage, events.down_at, events.up_at
        made = 0
        for i in range(due_at.size):
            h = host[i]
            outage, last_outage = first_outage[h], first_outage[h + 1]
            while due_at[i] < end:
                t = max(due_at[i], begin)
                while outage < last_outage and up_at[outage] <= t:
                    outage += 1
                if outage < last_outage and down_at[outage] <= t:
                    due_at[i] = up_at[outage]
                    continue
                made += 1
                if t >= died[i]:
                    is_gone[i], due_at[i] = True, math.inf
                    break

                first = nth = next_change[i]
                while nth < last_change[i] and changed_at[nth] <= t:
                    missed_days[i] += t - changed_at[nth]
                    nth += 1
                if nth > first:
                    stale_days[i] += t - changed_at[first]
                    changes_seen[i] += nth - first
                    next_change[i] = nth

                sees_change = is_noisy[i] or (
                    nth > first and (version_ids.size == 0 or version_ids[nth + i] != version_ids[first + i])
                )
                days = t - seen_at[i]
                if learns and days > 1e-9:
                    kept = kept_after(days)
                    a = prior_changes[h] + kept * seen_changes[i]
                    b = prior_days[h] + kept * seen_days[i]
                    if sees_change:
                        a, b = changed_once(a, b, days)
                    else:
                        b += days
                    seen_changes[i] = max(a - prior_changes[h], 0.0)
                    seen_days[i] = max(b - prior_days[h], 0.0)
                    wanted, weight = 0.0, weight_of(value[i], a / b)
                    if weight > 0.0 and price[h] < math.inf:
                        wanted = a / b * share_at(price[h], weight)
                    frequency[i] = min(ceiling, max(floor[h], wanted))

                # The next due time is a whole number of intervals after the last. It is not in the past.
                every = 1.0 / frequency[i] if frequency[i] > 0.0 else math.inf
                due = due_at[i] + every
                if due < t:
                    due += math.floor((t - due) / every + 1.0) * every
                seen_at[i], due_at[i], planned_interval[i] = t, due, due - t
        return made

    visits_of_objective: Scalar = visits
    return visits_of_objective
