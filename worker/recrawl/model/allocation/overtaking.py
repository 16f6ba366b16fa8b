"""Which pages of a host that is behind go before others that have been due for longer.

After an outage a host has more due than slots, for hours or days, and first due first asks for whatever has waited
longest. A visit is worth what the objective says of the next one, if visits came as far apart as the copy is old: for
freshness value/rate · (1 − (1 + rate·age)·e^(−rate·age)) (Souza, 2010, DELAYED, whose queue is first due first). So of
what the host can be asked for until the next run, the pages that are worth most change places with those that stood
there. One place in eight stays first due, first served: a page that is worth little is asked for in its turn all the
same, be the host behind for ever.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl.model.allocation.objectives import Floats

STAYS = 8  # one place in so many


def overtaking(
    host: NDArray[np.intp], overdue: Floats, worth: Floats, slots: Floats
) -> tuple[NDArray[np.intp], Floats]:
    """The pages that change places, and for how long each is overdue then.

    `host`, `overdue` (days) and `worth` of the pages that are due and may move, `slots` of every host until the next
    run. A host that has fewer pages due than slots asks for them all, in whatever order.
    """
    place = _place(host, -overdue)
    goes_soon = place < slots[host]
    stays = goes_soon & (place % STAYS == 0)
    places = np.bincount(host[goes_soon & ~stays], minlength=len(slots))
    may_go = np.flatnonzero(~stays)
    goes_best = np.zeros(len(host), bool)
    goes_best[may_go] = _place(host[may_go], -worth[may_go]) < places[host[may_go]]

    # As many of each host; both in order of hosts, those that are overdue for longest first.
    up, down = (
        which[np.lexsort((-overdue[which], host[which]))]
        for which in (np.flatnonzero(goes_best & ~goes_soon), np.flatnonzero(goes_soon & ~stays & ~goes_best))
    )
    return np.concatenate([up, down]), overdue[np.concatenate([down, up])]


def _place(host: NDArray[np.intp], key: Floats) -> NDArray[np.intp]:
    """Of each page among its host's, the least key first."""
    order = np.lexsort((key, host))
    in_order = host[order]
    place = np.empty(len(host), np.intp)
    place[order] = np.arange(len(host)) - np.searchsorted(in_order, in_order)
    return place
