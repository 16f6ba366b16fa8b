"""Chooses the pages of a host with a backlog that go before pages that have been due for longer.

The experiment behind.py measures what this gains. Production does not do it: docs/experiments.md says why.

After an outage a host has more due pages than slots, for hours or days. The queue alone would fetch the pages that have
waited longest (DELAYED of Souza, 2010, serves pages in this order). The gain of a fetch now is the objective's marginal
utility of one more fetch, if the fetches were as far apart as the copy is old. For freshness this is value/rate · (1 −
(1 + rate·age)·e^(−rate·age)). The host has a number of slots until the job runs next. The pages that gain most take
these places, and exchange their due times with the pages that had the places before.

One place in eight is for the page whose last fetch + interval is longest ago. Neither its gain nor an earlier exchange
matters for this. So each page has its turn, even if the host never catches up.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats

SENIORS = 8  # one place in 8 is for the pages that are late for longest


def overtaking(
    host: NDArray[np.intp], late_by: Floats, late_by_frequency: Floats, gain_now: Floats, slots: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """The pages that exchange their places, and the days by which each is late after that.

    The arguments describe the pages that are due and may move. `late_by` is the time since the due time in the queue.
    `late_by_frequency` is the time since the moment (last fetch + 1/frequency). Both are in days. `gain_now` is the
    gain of a fetch now. `slots` are the slots of every host until the next run. If a host has fewer due pages than
    slots, all of them are fetched, and none changes its place.
    """
    goes_soon = _place(host, -late_by) < slots[host]
    places = np.bincount(host[goes_soon], minlength=len(slots))
    for_seniors = -(-places // SENIORS)
    goes = _place(host, -late_by_frequency) < for_seniors[host]
    others = np.flatnonzero(~goes)
    goes[others] = _place(host[others], -gain_now[others]) < (places - for_seniors)[host[others]]

    # On each host, `up` and `down` have equally many pages. Both are in order of hosts, the most overdue pages first.
    up, down = (
        which[np.lexsort((-late_by[which], host[which]))]
        for which in (np.flatnonzero(goes & ~goes_soon), np.flatnonzero(goes_soon & ~goes))
    )
    return np.concatenate([up, down]), np.concatenate([late_by[down], late_by[up]])


def _place(host: NDArray[np.intp], key: Floats) -> NDArray[np.intp]:
    """The place of each page among the pages of its host. The page with the least key has place 0."""
    order = np.lexsort((key, host))
    in_order = host[order]
    place = np.empty(len(host), np.intp)
    place[order] = np.arange(len(host)) - np.searchsorted(in_order, in_order)
    return place
