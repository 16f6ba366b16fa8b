"""What two numbers know of how often a page changes: an assumed-density filter, whose belief is always a Gamma.

A page that changes at random moments, λ times a day, is believed to have λ ~ Gamma(shape a, rate b): a is worth a
count of changes, b the days in which they were seen; the estimate is a/b. Visits without a change and counted
changes keep the belief a Gamma exactly; a visit that only says "changed" does not, and is replaced by the Gamma of
equal mean and variance.

Everything is plain arithmetic with exp, ln and sqrt, in an order that keeps clear of cancellation, underflow and
overflow, so that SQL can do the same in float8 (where an underflow is an error): a and b from 1e-12 to 1e12,
intervals from 1e-9 to 1e9 days. No observation ever lowers a or b: a page that starts at its prior (a0, b0)
has a >= a0 and b >= b0 for good. So a page may store its evidence (a − a0, b − b0) alone, and a new prior for a host
then moves all its pages without touching them.

Intervals and ages are in days. lab/methods/beliefs.py does all of it over arrays.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainccinv, gammaincinv

from recrawl.model.compiled import scalar

Array = NDArray[np.float64]

# The past counts for as many visits or as many days, whichever is longer: see lab.methods.beliefs.remembered.
MEMORY_VISITS = 50.0
MEMORY_DAYS = 100.0

# The share of the belief that lies below, and again above, the credible interval.
TAIL = 0.05


@scalar
def changed_once(a, b, w):  # type: ignore[no-untyped-def]
    """The belief after a visit that found the page changed, once or more often.

    With s = w/(b+w) and q = P(unchanged)/P(changed), the posterior's mean is (a/b)·(1 + qs) and its variance
    (a/b²)·(1 + qs(2 − s) − as²q(1 + q)). The textbook's differences of 1 − (b/(b+w))^a, ^(a+1) and ^(a+2) are the
    same, but lose every digit when w << b or a << 1, and need a guard there; these do not.
    a' >= a and a' <= a + 1, b' >= b: a bit never says more than a counted change.
    """
    x = w / b
    log_ratio = x * (1 - x * (0.5 - x / 3)) if x < 1e-4 else math.log(1 + x)
    s = w / (b + w)
    surprise = min(a * log_ratio, 100.0)  # −ln P(unchanged); q of any more would only underflow, an error in SQL
    q = 1 / surprise - 0.5 + surprise / 12 if surprise < 1e-4 else 1 / (math.exp(surprise) - 1)
    mean = 1 + q * s
    variance = 1 + q * s * (2 - s) - a * s * s * q * (1 + q)
    return a * mean * mean / variance, b * mean / variance


@scalar
def kept_after(interval):  # type: ignore[no-untyped-def]
    """The share of the evidence that is left at the next visit."""
    return math.exp(-min(1 / MEMORY_VISITS, interval / MEMORY_DAYS))


def credible_interval(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """The rates between which λ is believed to lie with 90 %, as much below as above: exact quantiles."""
    a, b = np.broadcast_arrays(positive("a", a), positive("b", b))
    return gammaincinv(a, TAIL) / b, gammainccinv(a, TAIL) / b


def positive(name: str, given: ArrayLike) -> Array:
    array = not_negative(name, given)
    _refuse(name, array, array == 0, "positive")
    return array


def not_negative(name: str, given: ArrayLike) -> Array:
    array = np.asarray(given, np.float64)
    _refuse(name, array, ~((array >= 0) & (array < np.inf)), "finite and not negative")
    return array


def _refuse(name: str, array: Array, wrong: NDArray[np.bool], wanted: str) -> None:
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"{name} must be {wanted}, got {array.flat[first]} at index {first}")
