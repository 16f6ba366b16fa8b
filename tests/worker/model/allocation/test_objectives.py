"""The gain of a fetch, and the frequency at which one more fetch is worth the price."""

import math
from decimal import Decimal, getcontext

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainccinv, gammaincinv

from recrawl.model.allocation.objectives import OBJECTIVES

FRESHNESS, NEW_CONTENT, AGE = OBJECTIVES["freshness"], OBJECTIVES["new_content"], OBJECTIVES["age"]
# They do not fetch a page whose weight is below the price.
DROPPING = ("freshness", "new_content", "poisson_freshness")
every_objective = pytest.mark.parametrize("name", OBJECTIVES)


def random(decades: float, seed: int, size: int = 300) -> np.ndarray:
    return 10 ** np.random.default_rng(seed).uniform(-decades, decades, size)


# ------------------------------------------------------------------------------------------ frequency


def test_known_frequencies() -> None:
    assert FRESHNESS.frequency([0.9, 0.5, 0.1], 1, 1) == pytest.approx([0.257088, 0.595824, 1.88037], rel=3e-6)


def test_the_inverse_agrees_with_the_incomplete_gamma_function() -> None:
    x = np.concatenate((np.geomspace(1e-300, 0.5, 5000), np.linspace(0.001, 0.999, 5000)))
    assert FRESHNESS.frequency(x, 1, 1) == pytest.approx(1 / gammaincinv(2, x), rel=1e-12)
    left = np.geomspace(2.0**-50, 0.5, 5000)
    price = 1 - left
    assert FRESHNESS.frequency(price, 1, 1) == pytest.approx(1 / gammainccinv(2, 1 - price), rel=1e-12)


def changes_per_visit(name: str, price: Decimal, start: float) -> Decimal:
    """By Newton's method in a hundred digits."""
    u = Decimal(start)
    for _ in range(6):
        gone = (-u).exp()
        phi = 1 - (1 + u) * gone
        u -= (phi - price) / (u * gone) if name == "freshness" else (u * u / 2 - phi - price) / (u * (1 - gone))
    return u


@pytest.mark.parametrize(
    ("name", "prices"),
    [
        ("freshness", np.r_[random(20, 1, 150) * 1e-21, np.linspace(0.01, 0.99, 99), 1 - random(7, 2, 150) * 1e-8]),
        ("age", np.r_[random(20, 3, 150) * 1e-15, random(3, 4, 150)]),
    ],
)
def test_frequencies_are_exact_to_the_last_digits(name: str, prices: np.ndarray) -> None:
    getcontext().prec = 100
    prices = prices[prices < 1] if name == "freshness" else prices
    for price, frequency in zip(prices, OBJECTIVES[name].frequency(prices, 1, 1), strict=True):
        exact = 1 / changes_per_visit(name, Decimal(float(price)), 1 / frequency)
        assert abs(Decimal(float(frequency)) / exact - 1) < Decimal("2e-15")


@every_objective
def test_the_last_fetch_is_worth_the_price(name: str) -> None:
    objective = OBJECTIVES[name]
    value, rate = random(6, 1), random(6, 2)
    price = objective.weight(value, rate) * 10 ** np.random.default_rng(3).uniform(-20, -1e-6, 300)
    frequency = objective.frequency(price, value, rate)
    assert objective.marginal(frequency, value, rate) == pytest.approx(price, rel=1e-12)


@pytest.mark.parametrize("name", DROPPING)
def test_what_is_not_worth_the_price_is_not_fetched(name: str) -> None:
    objective = OBJECTIVES[name]
    weight = float(objective.weight(3, 2))
    assert objective.frequency([weight, 2 * weight, math.inf], 3, 2).tolist() == [0, 0, 0]
    assert objective.frequency(np.nextafter(weight, 0), 3, 2) > 0
    assert objective.marginal(0, 3, 2) == weight


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name not in DROPPING])
def test_what_changes_and_matters_is_always_fetched(name: str) -> None:
    assert OBJECTIVES[name].frequency(1e12, 1e-6, 1e-6) > 0
    assert OBJECTIVES[name].marginal(0, 1e-6, 1e-6) == math.inf
    assert OBJECTIVES[name].utility(0, 1, 1) == -math.inf


@every_objective
def test_free_fetches_are_taken_without_end(name: str) -> None:
    assert OBJECTIVES[name].frequency(0, [1, 0, 1], [1, 1, 0]).tolist() == [math.inf, 0, 0]


@every_objective
def test_the_ends_of_double_precision_do_no_harm(name: str) -> None:
    extremes = [0, 5e-324, 1e-300, 1, 1e300]
    grid = np.meshgrid([*extremes, math.inf], extremes, extremes)
    assert OBJECTIVES[name].frequency(*grid).shape == grid[0].shape


@every_objective
def test_pages_that_never_change_or_have_no_value_are_not_fetched(name: str) -> None:
    assert OBJECTIVES[name].frequency(1e-9, [0, 5, 0], [1, 0, 0]).tolist() == [0, 0, 0]
    assert OBJECTIVES[name].marginal([0, 0, 1], [0, 5, 0], [1, 0, 0]).tolist() == [0, 0, 0]


# -------------------------------------------------------------------------------------------- utility


def test_freshness_is_the_share_of_time_that_the_copy_is_fresh() -> None:
    for value, rate, frequency in [(2, 3, 0.5), (1, 0.01, 7), (5, 1, 1)]:
        fresh, _ = quad(lambda t, rate=rate: math.exp(-rate * t), 0, 1 / frequency)
        assert FRESHNESS.utility(frequency, value, rate) == pytest.approx(value * frequency * fresh, rel=1e-12)


def test_age_is_the_time_since_the_copy_became_stale() -> None:
    for value, rate, frequency in [(2, 3, 0.5), (1, 0.01, 7), (5, 1, 1)]:
        # Stale at t since the first change at s < t: age t − s.
        old, _ = quad(lambda t, rate=rate: t + math.expm1(-rate * t) / rate, 0, 1 / frequency, epsabs=0, epsrel=1e-11)
        assert AGE.utility(frequency, value, rate) == pytest.approx(-value * frequency * old, rel=1e-8)


def test_utilities_of_memoryless_visits() -> None:
    assert OBJECTIVES["poisson_freshness"].utility(3, 10, 2) == pytest.approx(6)
    assert OBJECTIVES["harmonic"].utility(3, 10, 2) == pytest.approx(10 * math.log(0.6))
    assert OBJECTIVES["delay"].utility(4, 10, 2) == pytest.approx(-5)


def test_new_content_is_freshness_of_pages_valued_by_their_changes() -> None:
    frequency, value, rate = random(3, 1), random(3, 2), random(3, 3)
    assert NEW_CONTENT.utility(frequency, value, rate) == pytest.approx(
        FRESHNESS.utility(frequency, value * rate, rate), rel=1e-13
    )


@every_objective
def test_marginal_utility_is_the_slope_of_utility(name: str) -> None:
    objective = OBJECTIVES[name]
    value, rate = random(2, 1), random(2, 2)
    frequency = rate * random(2, 3)
    step = frequency * 1e-4
    above, below = (objective.utility(frequency + by, value, rate) for by in (step, -step))
    marginal = objective.marginal(frequency, value, rate)
    rounding = 1e-15 * np.maximum(np.abs(above), np.abs(below)) / step
    assert (np.abs((above - below) / (2 * step) - marginal) <= 1e-6 * marginal + rounding).all()


@every_objective
def test_a_page_that_never_changes_is_always_fresh(name: str) -> None:
    always = 7 if OBJECTIVES[name].is_share else 0
    assert OBJECTIVES[name].utility([0, 1, 100], 7, 0).tolist() == [always] * 3


@every_objective
def test_hopeless_pages_do_not_overflow(name: str) -> None:
    assert OBJECTIVES[name].utility(1e-320, 1, 1e6) <= 0 or name in DROPPING
    assert OBJECTIVES[name].marginal(1e-100, 1, 1e6) >= 0


# ------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_bad_input_is_named(bad: float) -> None:
    with pytest.raises(ValueError, match=rf"value\[1\] must be finite and not negative, got {bad}"):
        FRESHNESS.weight([1, bad], [1, 1])
    with pytest.raises(ValueError, match=r"rate must be finite and not negative"):
        FRESHNESS.frequency(1, 1, bad)
    with pytest.raises(ValueError, match=r"frequency\[0, 1\] must be"):
        FRESHNESS.utility([[1, bad]], 1, 1)


def test_a_price_may_be_infinite_but_not_negative() -> None:
    assert FRESHNESS.frequency(math.inf, 1, 1) == 0
    with pytest.raises(ValueError, match=r"price\[2\] must be"):
        FRESHNESS.frequency([1, 2, -1], 1, 1)


def test_no_pages() -> None:
    assert FRESHNESS.frequency(1, [], []).size == 0
