"""The allocation that is used in production reaches what the methods of the papers reach, host caps and all."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl.lab.methods import azar, lambdacrawl, thesis
from recrawl.lab.methods.page import changes_found
from recrawl.model.allocation.solve import Web, allocate

Array = NDArray[np.float64]


def freshness(frequency: Array, value: Array, rate: Array) -> Array:
    return value * changes_found(frequency, rate) / rate


def new_content(frequency: Array, value: Array, rate: Array) -> Array:
    return value * changes_found(frequency, rate)


def poisson_freshness(frequency: Array, value: Array, rate: Array) -> Array:
    return value * frequency / (frequency + rate)


def harmonic(frequency: Array, value: Array, rate: Array) -> Array:
    return value * np.log(frequency / (frequency + rate))


def cho_for_new_content(value: Array, rate: Array, budget: float) -> Array:
    return thesis.cho(value * rate, rate, budget)


def lambdacrawl_unannounced(value: Array, rate: Array, budget: float) -> Array:
    return lambdacrawl.solve(value, rate, budget, np.zeros(value.size, bool))


@pytest.mark.soak
@pytest.mark.parametrize("load", [0.01, 0.3, 0.95, 2.0])
@pytest.mark.parametrize(
    ("objective", "method"),
    [
        (freshness, thesis.cho),
        (new_content, cho_for_new_content),
        (poisson_freshness, azar.solve),
        (harmonic, lambdacrawl_unannounced),
    ],
)
def test_production_reaches_the_utility_of_the_thesis_iteration(
    objective: Callable[[Array, Array, Array], Array], method: Callable[[Array, Array, float], Array], load: float
) -> None:
    rng = np.random.default_rng(1)
    pages = np.minimum(np.floor(3 * rng.random(100) ** (-1 / 0.8)), 1000).astype(np.int64)
    host = np.repeat(np.arange(100), pages)
    value, rate, cap = rng.lognormal(0, 1, host.size), rng.lognormal(0, 1, host.size), rng.lognormal(1, 1, 100)
    budget = load * float(cap.sum())
    expected = thesis.solve(value, rate, host, cap, budget, method)
    web = Web(value, rate, np.concatenate([[0], np.cumsum(pages)]), cap)
    given = allocate(web, budget, objective.__name__).frequency
    assert objective(given, value, rate).sum() == pytest.approx(objective(expected, value, rate).sum(), rel=1e-9)
    assert given.sum() == pytest.approx(expected.sum(), rel=1e-9)
    assert given == pytest.approx(expected, rel=1e-5, abs=1e-6 * cap.max())
