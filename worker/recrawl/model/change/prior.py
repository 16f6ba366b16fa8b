"""What is believed of a page before its first visits: Gamma priors of the change rate, one a host, learnt from its
pages.

Empirical Bayes for the gamma filter. A page brings its evidence, how far the filter has moved it from its prior:
`changes` = a − a0 and `days` = b − b0. It needs no column beside a and b. Against page totals kept beside them (changed
visits, days seen changed, days seen unchanged), on twenty simulated hosts, without a prior of all hosts: the
mean rate comes out about as well; the shape is found too large where visits tell little, up to twice on slow hosts and
five to ten times where nearly every visit finds a change or three visits are all there is, where the totals err less.

Maximised is the likelihood of having seen so many changes in so many days (a negative binomial) on all the host's
pages, times how likely such a host is among all: few pages, or pages that tell little, leave it near the prior of all
hosts.

Where visits are so far apart that each finds a change, rates are known from below only: the fit then follows the
visits and comes near in several refits, as the pages are visited more often.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.change.gamma_filter import Array, not_negative
from recrawl.model.compiled import compiled
from recrawl.model.limits import FIRST_CHANGES, FIRST_DAYS

Positions = NDArray[np.int64]

# A prior worth more than ten changes would outvote a page's own; one worth less than a twentieth says that nearly all
# pages are static, and its credible intervals would start at 1e-27 of the mean.
LEAST_A, MOST_A = 0.05, 10.0

# Mean rates a prior may have: once in three centuries, every minute and a half.
LEAST_RATE, MOST_RATE = 1e-5, 1e3

# How far hosts lie from the prior of all hosts, a priori: the mean rate log-normally with this deviation, the shape as
# if so many pages of known rates spoke for it. (For the mean, too, that would be the conjugate choice, but ten pages of
# ordinary rates among 300 static ones hold all of them up, at a thirtieth of the ordinary rate.)
HOSTS_SPREAD = 0.5
SHAPE_PAGES = 10.0

# This share of a host's pages, and at least one, is taken to change no faster than the next one.
WILD_SHARE = 0.02

# A sample is enough: so many pages of a host for its own prior; for the prior of all hosts so many of each, lest the
# largest decide it, and so many together.
PAGES_FOR_HOST, PAGES_OF_EACH, PAGES_IN_ALL = 1000, 100, 200_000

# Steps go on until shape and rate move by less than a thousandth; the shape is then within 2 % of where they lead.
MOST_STEPS = 500


@dataclass(frozen=True)
class Priors:
    """The prior of each host, and that of all hosts for hosts still unknown: shapes a, rates b in days."""

    a: Array
    b: Array
    all_a: float
    all_b: float


def fit(first: ArrayLike, changes: ArrayLike, days: ArrayLike) -> Priors:
    """The priors that the pages' evidence speaks for; the pages of host h are first[h]:first[h + 1].

    Ten million pages on 200,000 hosts take 1.2 s on one thread, 4.6 s if none of them ever changed.
    """
    bounds = np.asarray(first, np.int64)
    changes, days = not_negative("changes", changes), not_negative("days", days)
    if days.shape != changes.shape:
        raise ValueError(f"changes and days must be equally long, got {changes.size} and {days.size}")
    if bounds.size == 0 or bounds[0] != 0 or bounds[-1] != changes.size or (np.diff(bounds) < 0).any():
        raise ValueError(f"first must rise from 0 to the number of pages, {changes.size}, got {bounds}")
    # Pages never visited again say nothing.
    telling = days > 0
    bounds = np.r_[0, np.cumsum(telling)][bounds]
    changes, days = changes[telling], days[telling]
    sample = _sample(bounds, PAGES_OF_EACH)
    sample = sample[:: max(1, sample.size // PAGES_IN_ALL)]
    of_all = _fit_one(changes[sample], days[sample], FIRST_CHANGES, FIRST_DAYS)
    a, b = _fit_hosts(bounds, changes, days, *of_all)
    return Priors(a, b, *of_all)


@compiled()
def _sample(first: Positions, most: int) -> Positions:
    """Up to so many pages of each host, evenly strewn."""
    sample = np.empty(np.minimum(np.diff(first), most).sum(), np.int64)
    taken = 0
    for host in range(first.size - 1):
        pages = first[host + 1] - first[host]
        count = min(pages, most)
        for i in range(count):
            sample[taken] = first[host] + i * pages // count
            taken += 1
    return sample


@compiled()
def _fit_hosts(first: Positions, changes: Array, days: Array, all_a: float, all_b: float) -> tuple[Array, Array]:
    hosts = first.size - 1
    a, b = np.empty(hosts), np.empty(hosts)
    for host in range(hosts):
        pages = first[host + 1] - first[host]
        count = min(pages, PAGES_FOR_HOST)
        host_changes, host_days = np.empty(count), np.empty(count)
        for i in range(count):
            page = first[host] + i * pages // count
            host_changes[i], host_days[i] = changes[page], days[page]
        a[host], b[host] = _fit_one(host_changes, host_days, all_a, all_b)
    return a, b


@compiled()
def _fit_one(changes: Array, days: Array, base_a: float, base_b: float) -> tuple[float, float]:
    """Expectation maximisation: the pages' mean λ and mean ln λ under the prior, then the likeliest prior for them."""
    pages = changes.size
    if pages == 0:
        return base_a, base_b
    days = _tamed(changes, days, base_a, base_b)
    base_log_rate = math.log(base_a / base_b)
    base_spread = math.log(base_a) - _digamma(base_a)
    a, b = base_a, base_b
    for _ in range(MOST_STEPS):
        rates = logs = 0.0
        for i in range(pages):
            rates += (a + changes[i]) / (b + days[i])
            logs += _digamma(a + changes[i]) - math.log(b + days[i])
        log_rate = _log_rate(rates / pages, a * pages, base_log_rate)
        spread = log_rate + rates / pages * math.exp(-log_rate) - 1 - logs / pages
        new_a = _shape((pages * spread + SHAPE_PAGES * base_spread) / (pages + SHAPE_PAGES), a)
        new_b = new_a / math.exp(log_rate)
        moved = max(abs(math.log(new_a / a)), abs(math.log(new_b / b)))
        a, b = new_a, new_b
        if moved < 1e-3:
            break
    return a, b


@compiled()
def _log_rate(rate: float, weight: float, base: float) -> float:
    """Solves weight (rate/m − 1) = (ln m − base)/HOSTS_SPREAD² for ln m: Newton from below never overshoots."""
    log_rate = min(math.log(rate), base)
    for _ in range(50):
        pull = weight * rate * math.exp(-log_rate)
        step = (pull - weight - (log_rate - base) / HOSTS_SPREAD**2) / (pull + 1 / HOSTS_SPREAD**2)
        log_rate += step
        if step < 1e-6:
            break
    return min(max(log_rate, math.log(LEAST_RATE)), math.log(MOST_RATE))


@compiled()
def _tamed(changes: Array, days: Array, base_a: float, base_b: float) -> Array:
    """The days, lengthened for the pages that change fastest until they seem as fast as the next one."""
    if days.size < 2:
        return days
    rate = (base_a + changes) / (base_b + days)
    wild = int(np.ceil(WILD_SHARE * days.size))
    fastest = np.sort(rate)[days.size - 1 - wild]
    tamed: Array = np.maximum(days, (base_a + changes) / fastest - base_b)
    return tamed


@compiled()
def _shape(spread: float, a: float) -> float:
    """Solves ln a − ψ(a) = spread, which is the logarithm of the mean less the mean of the logarithms.

    By Minka's Newton step in 1/a (Estimating a Gamma distribution, 2002).
    """
    if spread <= 1 / (2 * MOST_A):  # ln a − ψ(a) > 1/2a
        return MOST_A
    for _ in range(20):
        error = np.log(a) - _digamma(a) - spread
        if abs(error) < 1e-9 * spread:
            break
        inverse = 1 / a + error / (a * a * (1 / a - _trigamma(a)))
        a = min(max(1 / inverse, LEAST_A), MOST_A) if inverse > 0 else MOST_A
    return a


@compiled()
def _digamma(x: float) -> float:
    """To 1e-7, which is far more than the data can tell; scipy's has no compiled form to call from here."""
    below = 0.0
    while x < 4:
        below += 1 / x
        x += 1
    y = 1 / (x * x)
    return math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y / 252)) - below


@compiled()
def _trigamma(x: float) -> float:
    below = 0.0
    while x < 4:
        below += 1 / (x * x)
        x += 1
    y = 1 / (x * x)
    return below + 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y / 42))
