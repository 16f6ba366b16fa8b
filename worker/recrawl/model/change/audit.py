"""Compares the belief about each page with the full maximum likelihood from the fetch log."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammainccinv, gammaincinv

from recrawl.model.change.estimators import VisitLog, full_mle
from recrawl.model.checks import Array, positive

# Pages are grouped by their visits: 1–4, 5–9, 10–49, 50–199 and 200 or more.
VISITS_FROM = (1, 5, 10, 50, 200)

TAIL = 0.05  # the share of the belief below the credible interval, and above it


@dataclass(frozen=True)
class Agreement:
    """How far two rates are apart, on pages with this many visits: the rate of the belief (the prior of the host plus
    the evidence that recrawl stores), and the likeliest rate.

    The ratio of the two rates exists only if the likeliest rate is positive. A page that was never seen to change has
    no ratio. It counts only for `inside`: the share of pages whose likeliest rate lies in the belief's 90 % interval.
    A likeliest rate of 0 lies inside if the interval begins below half a change in all the days observed.
    """

    visits_from: int
    pages: int
    changed_pages: int
    median_log_ratio: float
    most_log_ratio: float  # nine pages in ten have at most this
    inside: float


def agreement(visits: VisitLog, a: ArrayLike, b: ArrayLike) -> list[Agreement]:
    """One line for each group that has pages; a and b are the belief, as changes in days, after these visits."""
    a, b = positive("a", a), positive("b", b)
    likeliest = full_mle(visits)
    low, high = credible_interval(a, b)
    inside = np.where(likeliest > 0, (low <= likeliest) & (likeliest <= high), low * visits.days < 0.5)
    with np.errstate(divide="ignore"):
        log_ratio = np.abs(np.log(a / b) - np.log(likeliest))
    lines = []
    for start, stop in zip(VISITS_FROM, (*VISITS_FROM[1:], np.inf), strict=True):
        group = (start <= visits.visits) & (visits.visits < stop)
        if not group.any():
            continue
        known = log_ratio[group & (likeliest > 0)]
        median, most = np.quantile(known, [0.5, 0.9]) if known.size else (np.nan, np.nan)
        lines.append(
            Agreement(start, int(group.sum()), known.size, float(median), float(most), float(inside[group].mean()))
        )
    return lines


def credible_interval(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """The bounds between which λ lies with a probability of 90 %: exact quantiles, with 5 % on each side."""
    a, b = np.broadcast_arrays(positive("a", a), positive("b", b))
    return gammaincinv(a, TAIL) / b, gammainccinv(a, TAIL) / b
