"""The model of a page that these methods share: it changes at random (a Poisson process) and is visited at equal
intervals.

With u = rate/frequency, the expected changes between two visits, a visit finds the page changed with
probability 1 − e^−u (Cho & Garcia-Molina). The derivative of frequency·(1 − e^−u) by the frequency is φ(u) = 1 −
(1+u)e^−u, which is the regularised incomplete gamma function P(2, u): its inverse is in SciPy.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammainc, gammainccinv, gammaincinv

from recrawl.model.checks import not_negative

Array = NDArray[np.float64]


def changes_found(frequency: Array, rate: Array) -> Array:
    """Visits per day that find a change. Divided by the rate: the freshness, the share of time the copy is good."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(frequency > 0, -frequency * np.expm1(-rate / frequency), 0.0)


def gain(frequency: Array, rate: Array) -> Array:
    """How many more changes one more fetch finds: 1 for the first fetch, less for each further fetch."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(frequency > 0, gammainc(2, rate / frequency), np.where(rate > 0, 1.0, 0.0))


def visits_per_change(price: float, weight: Array) -> Array:
    """1/u such that weight·φ(u) is the price; 0 if even the first fetch is worth less than the price."""
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.where(
            price < weight / 2,
            gammaincinv(2, np.minimum(price / weight, 1)),
            # Near 1 only the difference from 1 has exact digits.
            gammainccinv(2, np.maximum((weight - price) / weight, 0)),
        )
        return np.where(price < weight, 1 / u, 0.0)


def checked(value: ArrayLike, rate: ArrayLike, budget: float) -> tuple[Array, Array]:
    """The arguments of every method as arrays. Raises a ValueError that names a wrong argument."""
    values, rates = not_negative("value", value), not_negative("rate", rate)
    if values.shape != rates.shape:
        raise ValueError(f"value and rate must be equally long, got {values.size} and {rates.size}")
    if not 0 <= budget < np.inf:
        raise ValueError(f"budget must be finite and not negative, got {budget}")
    return values, rates


def grouped(host: NDArray[np.integer], pages: int, hosts: int) -> list[NDArray[np.int64]]:
    """The pages of each host, from the host of each page."""
    if host.size != pages:
        raise ValueError(f"host must be as long as the {pages} pages, got {host.size}")
    wrong = np.flatnonzero((host < 0) | (host >= hosts))
    if wrong.size:
        raise ValueError(f"host[{wrong[0]}] must be one of the {hosts} hosts, got {host[wrong[0]]}")
    by_host = np.argsort(host, kind="stable")
    return np.split(by_host, np.searchsorted(host[by_host], np.arange(1, hosts)))[:hosts]
