"""What visits find in a web whose every change is known, and what they teach: many pages at once, between two
allocations.

Between allocations prices stand still and, where gaps hold nobody back, pages do not know of each other: each is
visited when it is due, what the visit saw changes what is believed of it, and from that follows when it is due next, on
its own grid. That is what report does in SQL, page by page: the filter, the frequency in force, the next due time.

Times are in days.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats, Objective, Scalar, objective_named
from recrawl.model.change.gamma_filter import changed_once, kept_after
from recrawl.model.compiled import compiled


class Pages(NamedTuple):
    """Of every page: when it lives and changes, what is known of it, and what became of its changes."""

    host: NDArray[np.int64]
    born: Floats
    died: Floats
    next_change: NDArray[np.int64]  # the first that no visit came after
    last_change: NDArray[np.int64]  # of this page: the place behind its last one
    value: Floats
    is_noisy: NDArray[np.bool_]  # every visit sees a change
    seen_at: Floats  # the last visit; NaN: it is not known yet
    is_gone: NDArray[np.bool_]  # as a visit found
    due_at: Floats  # infinite: it is not to be visited
    promised: Floats  # days after the last visit that it is due
    seen_changes: Floats  # its evidence, beyond the prior of its host
    seen_days: Floats
    frequency: Floats
    stale_days: Floats
    missed_days: Floats  # from each change to the visit that came after it
    changes_seen: NDArray[np.int64]

    def is_known(self) -> NDArray[np.bool_]:
        """And not known to be gone."""
        return ~np.isnan(self.seen_at) & ~self.is_gone


class Events(NamedTuple):
    """What happens in the web."""

    changed_at: Floats
    look: NDArray[np.int64]  # by which a visit knows version n of page i, at n + i; empty: it sees every change
    first_outage: NDArray[np.int64]  # of each host, and the place behind its last one
    down_at: Floats
    up_at: Floats


class VisitTerms(NamedTuple):
    """Of every host: what a page's frequency follows from."""

    prior_changes: Floats
    prior_days: Floats
    price: Floats
    floor: Floats  # fetches per day
    ceiling: float
    objective: str
    learns: bool  # whether what is seen from now on counts


def visit(begin: float, end: float, pages: Pages, events: Events, terms: VisitTerms) -> int:
    """Visits what is due before a day, what was due before another one not before that; how many visits that were."""
    return int(_visits(objective_named(terms.objective))(begin, end, pages, events, terms))


@cache
def _visits(objective: Objective) -> Scalar:
    weight_of, share_at = objective.weight_of, objective.share_at

    # One loop over plain arrays: 17 to 25 million visits a second on one core, where the same in four functions that
    # pass the tuples on makes 3.
    @compiled(objective.name, error_model="numpy", nogil=True)
    def visits(begin, end, pages, events, terms):  # type: ignore[no-untyped-def]
        host, value, died, is_gone, last_change = pages.host, pages.value, pages.died, pages.is_gone, pages.last_change
        next_change, seen_at, due_at, promised = pages.next_change, pages.seen_at, pages.due_at, pages.promised
        seen_changes, seen_days, frequency = pages.seen_changes, pages.seen_days, pages.frequency
        stale_days, missed_days, changes_seen = pages.stale_days, pages.missed_days, pages.changes_seen
        prior_changes, prior_days, price, floor = terms.prior_changes, terms.prior_days, terms.price, terms.floor
        ceiling, learns = terms.ceiling, terms.learns
        changed_at, look, is_noisy = events.changed_at, events.look, pages.is_noisy
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

                sees_change = is_noisy[i] or (nth > first and (look.size == 0 or look[nth + i] != look[first + i]))
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

                # On its own grid, from when it was due; what was missed meanwhile is left out.
                every = 1.0 / frequency[i] if frequency[i] > 0.0 else math.inf
                due = due_at[i] + every
                if due < t:
                    due += math.floor((t - due) / every + 1.0) * every
                seen_at[i], due_at[i], promised[i] = t, due, due - t
        return made

    visits_of_objective: Scalar = visits
    return visits_of_objective
