"""The belief about how often a page changes, in two numbers. It is always a Gamma distribution (an assumed-density
filter).

A page changes at random moments, λ times a day. The belief is λ ~ Gamma(shape a, rate b): a is like a number of
changes, and b like the days in which they were seen. The estimate is a/b. After a visit without a change, or with
a counted number of changes, the exact belief is a Gamma again. After a visit that only says "changed" it is not: the
filter then takes the Gamma with the same mean and variance.

The code is plain arithmetic with exp, ln and sqrt. Its order avoids cancellation, underflow and overflow, so that SQL
can do the same in float8, in which an underflow is an error. This holds for a and b from 1e-12 to 1e12 and intervals
from 1e-9 to 1e9 days. No observation lowers a or b: a page that starts at its prior (a0, b0) always has a >= a0 and
b >= b0. So a page may store only its evidence (a − a0, b − b0). A new prior for a host then changes the beliefs about
all its pages, and no page has to be written.

Intervals and ages are in days. lab/methods/beliefs.py does all of it over arrays.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainccinv, gammaincinv

from recrawl.model.compiled import scalar

Array = NDArray[np.float64]

# The past counts for 50 visits or 100 days, the longer of the two: see lab.methods.beliefs.remembered.
MEMORY_VISITS = 50.0
MEMORY_DAYS = 100.0

# The share of the belief below the credible interval. The share above it is the same.
TAIL = 0.05


@scalar
def changed_once(a, b, w):  # type: ignore[no-untyped-def]
    """The belief after a visit that found the page changed, once or more often.

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


def credible_interval(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """The bounds between which λ lies with a probability of 90 %: exact quantiles, with 5 % on each side."""
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
