"""Six objectives: the utility of fetches, and the frequency at which a page's next fetch is worth a given price.

    freshness          value · share of time the copy is fresh, visits equally spaced     Cho & Garcia-Molina 2003
    new_content        value · changes seen per day                                       after the same
    poisson_freshness  as freshness, but memoryless visits                                Azar et al. 2018
    harmonic           value · ln(freshness), memoryless visits                           Kolobov et al. 2019
    delay              −value · changes not yet seen                                      Upadhyay et al. 2020
    age                −value · time since the copy became stale, equally spaced          Cho & Garcia-Molina 2003

(Cho & Garcia-Molina, Effective page refresh policies for Web crawlers, 2003. Azar et al., Tractable near-optimal
policies for crawling, 2018. Kolobov et al., Staying up to date with online content changes, 2019. Upadhyay et al.,
Learning to crawl, 2020.)

All have one form: a page of weight W is fetched rate·G(price/W) times a day, and G falls. Under the first three a page
whose weight is not above the price is dropped; under the others every page that changes and has a value is fetched.
A page that never changes needs no fetch: it is always fresh and never old.

Each objective is four scalar functions, which are compiled into every loop that uses them:
    weight_of(value, rate)                          W, 0 if no fetch can bring any utility
    share_at(price, weight)                         G, fetches per change; price > 0
    slope_at(price, weight, share)                  −dG / d ln price
    utility_and_marginal(frequency, value, rate)    utility, and marginal utility: utility per (fetch per day)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.model.allocation.inverse import exp_of_minus, phi_and_seen, share_for_age, share_for_freshness
from recrawl.model.checks import not_negative, refuse
from recrawl.model.compiled import compiled, scalar

Floats = NDArray[np.float64]
Scalar = Callable[..., Any]  # compiled


@dataclass(frozen=True, eq=False)
class Objective:
    name: str
    weight_of: Scalar
    share_at: Scalar
    slope_at: Scalar
    utility_and_marginal: Scalar
    is_share: bool = False  # utility is a share of time, weighted by value: at most 1 per unit of value

    def weight(self, value: ArrayLike, rate: ArrayLike) -> Floats:
        return self._over_arrays("weight", not_negative("value", value), not_negative("rate", rate))

    def frequency(self, price: ArrayLike, value: ArrayLike, rate: ArrayLike) -> Floats:
        """Fetches per day. At price 0 a page that is worth any fetch is worth infinitely many."""
        prices = np.asarray(price, np.float64)
        refuse("price", prices, ~(prices >= 0), "0 or more")
        return self._over_arrays("frequency", prices, not_negative("value", value), not_negative("rate", rate))

    def utility(self, frequency: ArrayLike, value: ArrayLike, rate: ArrayLike) -> Floats:
        return self._of_frequency("utility", frequency, value, rate)

    def marginal(self, frequency: ArrayLike, value: ArrayLike, rate: ArrayLike) -> Floats:
        return self._of_frequency("marginal", frequency, value, rate)

    def _of_frequency(self, name: str, frequency: ArrayLike, value: ArrayLike, rate: ArrayLike) -> Floats:
        frequency = not_negative("frequency", frequency)
        return self._over_arrays(name, frequency, not_negative("value", value), not_negative("rate", rate))

    def _over_arrays(self, name: str, *arguments: Floats) -> Floats:
        shape = np.broadcast_shapes(*(argument.shape for argument in arguments))
        whole = [a if a.shape == shape else np.broadcast_to(a, shape).copy() for a in arguments]
        result = np.empty(shape)
        self._loops[name](*(array.reshape(-1) for array in whole), result.reshape(-1))
        scalar_or_array: Floats = result[()]
        return scalar_or_array

    @cached_property
    def _loops(self) -> dict[str, Callable[..., None]]:
        weight_of, share_at, utility_and_marginal = self.weight_of, self.share_at, self.utility_and_marginal
        over_arrays = compiled(self.name, error_model="numpy", nogil=True)

        @over_arrays
        def weight(value, rate, result):  # type: ignore[no-untyped-def]
            for i in range(result.size):
                result[i] = weight_of(value[i], rate[i])

        @over_arrays
        def frequency(price, value, rate, result):  # type: ignore[no-untyped-def]
            for i in range(result.size):
                weight = weight_of(value[i], rate[i])
                if weight == 0.0:
                    result[i] = 0.0
                else:
                    result[i] = rate[i] * share_at(price[i], weight) if price[i] > 0.0 else math.inf

        @over_arrays
        def utility(frequency, value, rate, result):  # type: ignore[no-untyped-def]
            for i in range(result.size):
                result[i] = utility_and_marginal(frequency[i], value[i], rate[i])[0]

        @over_arrays
        def marginal(frequency, value, rate, result):  # type: ignore[no-untyped-def]
            for i in range(result.size):
                result[i] = utility_and_marginal(frequency[i], value[i], rate[i])[1]

        return {"weight": weight, "frequency": frequency, "utility": utility, "marginal": marginal}


# -------------------------------------------------------------------------------------------- weights


@scalar
def _value(value, rate):  # type: ignore[no-untyped-def]
    return value if rate > 0.0 else 0.0


@scalar
def _value_per_change(value, rate):  # type: ignore[no-untyped-def]
    return value / rate if rate > 0.0 else 0.0


@scalar
def _value_per_change_squared(value, rate):  # type: ignore[no-untyped-def]
    return value / rate / rate if rate > 0.0 else 0.0


# ------------------------------------------------------------------------------ equally spaced visits


@scalar
def _spaced_slope(price, weight, share):  # type: ignore[no-untyped-def]
    # u = 1/share is the number of changes per fetch. φ(u) = 1 − (1 + u)·e^−u = price/weight, so dφ/du = u·e^−u, and
    # e^−u = (1 − price/weight) / (1 + u).
    return share * share * (1.0 + share) * price / (weight - price) if price < weight else 0.0


@scalar
def _freshness(frequency, value, rate):  # type: ignore[no-untyped-def]
    weight = _value_per_change(value, rate)
    phi, seen = phi_and_seen(rate / frequency if frequency > 0.0 else math.inf)
    return weight * frequency * seen if rate > 0.0 else value, weight * phi


@scalar
def _new_content(frequency, value, rate):  # type: ignore[no-untyped-def]
    weight = _value(value, rate)
    phi, seen = phi_and_seen(rate / frequency if frequency > 0.0 else math.inf)
    return weight * frequency * seen, weight * phi


@scalar
def _age_slope(price, weight, share):  # type: ignore[no-untyped-def]
    return price / weight * share * share * share / -math.expm1(-1.0 / share) if share > 0.0 else 0.0


@scalar
def _age(frequency, value, rate):  # type: ignore[no-untyped-def]
    if rate == 0.0 or value == 0.0:
        return 0.0, 0.0
    if frequency == 0.0:
        return -math.inf, math.inf
    u = rate / frequency
    if u < 1.0:
        gone = exp_of_minus(u)
        # For a small u, u²/2 − u + 1 − e^−u (stale) and u²/2 − φ(u) (marginal) are differences of nearly equal numbers.
        # So e^u · stale and e^u · marginal are computed, as power series in u: all their terms are positive.
        stale, marginal = 0.0, 0.0
        for k in range(18, 2, -1):
            stale = (stale + (k - 1) * (k - 2) / 2) * u / k
            marginal = (marginal + (k * (k - 1) / 2 - 1)) * u / k
        return -value / rate * gone * stale * u / 2.0, value / rate / rate * gone * marginal * u * u / 2.0
    phi, seen = phi_and_seen(u)
    return -value / rate * (u / 2.0 - 1.0 + seen / u), value / rate / rate * (u * u / 2.0 - phi)


# --------------------------------------------------------------------------------- memoryless visits


@scalar
def _poisson_share(price, weight):  # type: ignore[no-untyped-def]
    # √(weight/price) − 1 without its cancellation
    return (weight - price) / price / (math.sqrt(weight / price) + 1.0) if price < weight else 0.0


@scalar
def _poisson_slope(price, weight, share):  # type: ignore[no-untyped-def]
    return (share + 1.0) / 2.0 if price < weight else 0.0


@scalar
def _poisson_freshness(frequency, value, rate):  # type: ignore[no-untyped-def]
    if rate == 0.0:
        return value, 0.0
    stale = rate / (frequency + rate)
    return value * (frequency / (frequency + rate)), value / rate * stale * stale


@scalar
def _harmonic_share(price, weight):  # type: ignore[no-untyped-def]
    changes = weight / price
    return 2.0 * changes / (math.sqrt(1.0 + 4.0 * changes) + 1.0)


@scalar
def _harmonic_slope(price, weight, share):  # type: ignore[no-untyped-def]
    return share * (share + 1.0) / (2.0 * share + 1.0)


@scalar
def _harmonic(frequency, value, rate):  # type: ignore[no-untyped-def]
    if rate == 0.0 or value == 0.0:
        return 0.0, 0.0
    if frequency == 0.0:
        return -math.inf, math.inf
    return -value * math.log1p(rate / frequency), value / frequency * (rate / (frequency + rate))


@scalar
def _delay_share(price, weight):  # type: ignore[no-untyped-def]
    return math.sqrt(weight / price)


@scalar
def _delay_slope(price, weight, share):  # type: ignore[no-untyped-def]
    return share / 2.0


@scalar
def _delay(frequency, value, rate):  # type: ignore[no-untyped-def]
    if rate == 0.0 or value == 0.0:
        return 0.0, 0.0
    if frequency == 0.0:
        return -math.inf, math.inf
    return -value * (rate / frequency), value * (rate / frequency) / frequency


@scalar
def _one(value, rate):  # type: ignore[no-untyped-def]
    return 1.0 if value > 0.0 and rate > 0.0 else 0.0


@scalar
def _inverse_share(price, weight):  # type: ignore[no-untyped-def]
    return weight / price


@scalar
def _inverse_slope(price, weight, share):  # type: ignore[no-untyped-def]
    return share


@scalar
def _proportional(frequency, value, rate):  # type: ignore[no-untyped-def]
    if rate == 0.0 or value == 0.0:
        return 0.0, 0.0
    if frequency == 0.0:
        return -math.inf, math.inf
    return rate * math.log(frequency), rate / frequency


# Not an objective for users: rate · ln(frequency) is largest if frequencies are in proportion to rates. The policy
# `proportional` uses it.
PROPORTIONAL = Objective("proportional", _one, _inverse_share, _inverse_slope, _proportional)

OBJECTIVES = {
    objective.name: objective
    for objective in (
        Objective("freshness", _value_per_change, share_for_freshness, _spaced_slope, _freshness, is_share=True),
        Objective("new_content", _value, share_for_freshness, _spaced_slope, _new_content),
        Objective(
            "poisson_freshness", _value_per_change, _poisson_share, _poisson_slope, _poisson_freshness, is_share=True
        ),
        Objective("harmonic", _value_per_change, _harmonic_share, _harmonic_slope, _harmonic),
        Objective("delay", _value_per_change, _delay_share, _delay_slope, _delay),
        Objective("age", _value_per_change_squared, share_for_age, _age_slope, _age),
    )
}


def objective_named(name: str) -> Objective:
    if name == PROPORTIONAL.name:
        return PROPORTIONAL
    if name not in OBJECTIVES:
        raise ValueError(f"objective must be one of {', '.join(OBJECTIVES)}, got {name!r}")
    return OBJECTIVES[name]
