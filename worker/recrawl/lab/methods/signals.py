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


def days_worth(days: ArrayLike, planned_days: ArrayLike, rate: ArrayLike) -> Array:
    """How many days without a change a visit is worth that found none after `days`, where it was planned after T.

    A visit that a signal brings forward to h < T comes because of what it is to see: e^{−λh} is not the probability
    that it sees no change. What the visit at T would have seen is not biased: it depends on nothing but the changes.
    Its score, d/dλ of its log likelihood, is T/(e^{λT} − 1) for a change and −T for none. So the visit at h is given
    what that score is expected to be at h, knowing all that happened until then: T/(e^{λT} − 1), as of a change
    within T days, if the page changed; else
        (1 − e^{−λ(T−h)})·T/(e^{λT} − 1) − e^{−λ(T−h)}·T = −T·(e^{λh} − 1)/(e^{λT} − 1),
    as of so many days without one. That is a martingale: it is 0 on average wherever signals stop it. So no share of
    announced changes, no delay and no false signal biases the rate, and none of them need be known; nor does the next
    interval, which begins at h, care. Measured, one seed, planned after T = 2 days: the learnt rate over that of pages
    without signals is 1.00 and 1.00 for λ = .5 and 1, all changes announced at once, where the plain bit gives 1.31
    and 1.81; at most .025 off over recalls, delays and false signals.
    """
    days, planned_days, rate = np.broadcast_arrays(
        not_negative("days", days), not_negative("planned_days", planned_days), not_negative("rate", rate)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.exp(-rate * (planned_days - days)) * np.expm1(-rate * days) / np.expm1(-rate * planned_days)
    return np.where(rate * planned_days == 0, days, planned_days * share)


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
