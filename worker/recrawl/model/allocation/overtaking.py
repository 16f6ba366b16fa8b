"""Which pages of a host that is behind go before others that have been due for longer.

After an outage a host has more due than slots, for hours or days, and first due first asks for whatever has waited
longest. A visit is worth what the objective says of the next one, if visits came as far apart as the copy is old: for
freshness value/rate · (1 − (1 + rate·age)·e^(−rate·age)) (Souza, 2010, DELAYED, whose queue is first due first). So of
what the host can be asked for until the next run, the pages that are worth most change places with those that stood
there.

One place in eight is for whoever is overdue for longest by the pages' own intervals, whatever it is worth and wherever
it was put before: so each page has its turn, be the host behind for ever and its crawlers slow.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats

SENIORS = 8  # one place in so many is for them


def overtaking(
    host: NDArray[np.intp], overdue: Floats, overdue_by_itself: Floats, worth: Floats, slots: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """The pages that change places, and for how long each is overdue then. Times in days.

    Of the pages that are due and may move: `host`, `overdue` as the queue has it and `overdue_by_itself`, by when each
    was fetched and how often it is to be; `worth` of a visit now; `slots` of every host until the next run. A host that
    has fewer pages due than slots asks for them all, in whatever order.
    """
    goes_soon = _place(host, -overdue) < slots[host]
    places = np.bincount(host[goes_soon], minlength=len(slots))
    for_seniors = -(-places // SENIORS)
    goes = _place(host, -overdue_by_itself) < for_seniors[host]
    others = np.flatnonzero(~goes)
    goes[others] = _place(host[others], -worth[others]) < (places - for_seniors)[host[others]]

    # As many of each host; both in order of hosts, those that are overdue for longest first.
    up, down = (
        which[np.lexsort((-overdue[which], host[which]))]
        for which in (np.flatnonzero(goes & ~goes_soon), np.flatnonzero(goes_soon & ~goes))
    )
    return np.concatenate([up, down]), np.concatenate([overdue[down], overdue[up]])


def _place(host: NDArray[np.intp], key: Floats) -> NDArray[np.intp]:
    """Of each page among its host's, the least key first."""
    order = np.lexsort((key, host))
    in_order = host[order]
    place = np.empty(len(host), np.intp)
    place[order] = np.arange(len(host)) - np.searchsorted(in_order, in_order)
    return place
