"""What a hint that a page changed is worth, when hints (sitemap lastmod, pings) can be missing or false.

Changes come λ times a day; each is announced at once with probability `recall`, and false announcements come
`false_rate` times a day: noisy change-indicating signals, for pages that change by a Poisson process. Since the last
visit, time without a signal speaks only of unannounced changes, (1 − recall)·λ a day, and each signal is false with
the same probability.
"""

import numpy as np
from numpy.typing import ArrayLike

from recrawl.model.change.gamma_filter import Array, not_negative


def unannounced_rate(rate: ArrayLike, recall: ArrayLike) -> Array:
    """Changes a day that no signal tells of: the rate by which such a page's interval is found."""
    rate, recall = not_negative("rate", rate), _share("recall", recall)
    return (1 - recall) * rate


def probability_fresh(
    rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike, days: ArrayLike, signals: ArrayLike
) -> Array:
    """That a page is still as it was `days` ago, after so many signals since: e^{−αt}·(ν/(rλ + ν))^n."""
    alone = np.exp(-unannounced_rate(rate, recall) * not_negative("days", days))
    return alone * _probability_false(rate, recall, false_rate) ** not_negative("signals", signals)


def age_of_a_signal(rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike) -> Array:
    """By how many days a signal ages a page, and brings it forward: β = −ln(ν/(rλ + ν))/α.

    Without false signals (ν = 0) a signal is proof: infinite, fetch at once. If every change is announced (r = 1)
    the page does not age without signals, and any signal that may be true is infinitely much older. Nothing (0) if
    no signal can be true, r = 0 or λ = 0.
    """
    false = _probability_false(rate, recall, false_rate)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(false == 1, 0.0, -np.log(false) / unannounced_rate(rate, recall))


def _probability_false(rate: ArrayLike, recall: ArrayLike, false_rate: ArrayLike) -> Array:
    """That a signal is false. A signal where none was to be expected (rλ + ν = 0) is: the page cannot have told."""
    true = not_negative("rate", rate) * _share("recall", recall)
    false = not_negative("false_rate", false_rate)
    with np.errstate(invalid="ignore"):
        return np.where(true == 0, 1.0, false / (true + false))


def _share(name: str, given: ArrayLike) -> Array:
    array = not_negative(name, given)
    if (array > 1).any():
        first = int(np.flatnonzero(array > 1)[0])
        raise ValueError(f"{name} must lie between 0 and 1, got {array.flat[first]} at index {first}")
    return array
