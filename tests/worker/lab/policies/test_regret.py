"""The theorems of Learning to Crawl, compared with simulated crawls."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.lab.methods import azar
from recrawl.lab.policies.regret import Exploration, loss
from recrawl.model.allocation.objectives import OBJECTIVES, Floats
from recrawl.model.policies.epsilon_greedy import until_steady

LEAST, MOST = 0.2, 1.0


def some_pages(seed: int, pages: int = 50) -> tuple[Floats, Floats]:
    """Values and rates."""
    rng = np.random.default_rng(seed)
    return rng.lognormal(0, 1, pages), rng.uniform(LEAST, MOST, pages)


def earned(frequency: Floats, value: Floats, rate: Floats) -> float:
    """Value · days fresh, per day."""
    return float(OBJECTIVES["poisson_freshness"].utility(frequency, value, rate).sum())


def estimated(rate: Floats, rounds: int, seed: int) -> Floats:
    """The rates that are estimated after a number of daily fetches, by moment matching."""
    changed = np.random.default_rng(seed).binomial(rounds, -np.expm1(-rate))
    with np.errstate(divide="ignore"):
        return np.clip(-np.log1p(-changed / rounds), LEAST, MOST)


@given(seed=st.integers(0, 10_000), spread=st.floats(0.01, 3), budget=st.floats(0.1, 500))
def test_wrong_estimates_cost_no_more_than_lemma_4_says(seed: int, spread: float, budget: float) -> None:
    value, rate = some_pages(seed)
    estimate = rate * np.random.default_rng(seed + 1).lognormal(0, spread, rate.size)
    best, found = (azar.solve(value, known, budget) for known in (rate, estimate))
    lost = earned(best, value, rate) - earned(found, value, rate)
    assert -1e-9 <= lost <= loss(value, rate, estimate) * (1 + 1e-9)


def test_right_estimates_cost_nothing_and_wrong_ones_more_the_more_they_are_wrong() -> None:
    assert loss([2.0], [0.5], [0.5]) == 0
    assert loss([2.0], [0.5], [1.0]) == pytest.approx(2 * 0.25 / (1.0 * 0.5))
    assert loss([2.0], [1.0], [0.5]) == pytest.approx(2 * 0.25 / (0.5 * 0.5))


@pytest.mark.parametrize("rounds", [20, 200, 2000])
def test_all_estimates_at_once_stay_within_their_radius_with_the_probability_that_was_asked_for(rounds: int) -> None:
    _, rate = some_pages(1)
    radius = Exploration(1.0, rate.size, LEAST, MOST).radius(rounds)
    worst = np.array([np.abs(estimated(rate, rounds, seed) - rate).max() for seed in range(200)])
    assert np.mean(worst <= radius) >= 0.9
    expected = math.exp(MOST) * math.sqrt(math.log(2 * 50 / 0.1) / (2 * rounds))
    assert radius == pytest.approx(expected), "Lemma 3 at equal intervals, with the doubt shared by all pages"


@pytest.mark.parametrize("rounds", [10, 100, 1000])
def test_exploring_and_committing_loses_no_more_than_the_theorem_says(rounds: int) -> None:
    value, rate = some_pages(2)
    budget, horizon = float(rate.size), 10_000.0
    best = earned(azar.solve(value, rate, budget), value, rate)
    exploring = float(OBJECTIVES["freshness"].utility(np.ones(rate.size), value, rate).sum())
    most = Exploration(1.0, rate.size, LEAST, MOST).regret(float(value.sum()), rounds, horizon)
    for seed in range(20):
        found = azar.solve(value, estimated(rate, rounds, seed), budget)
        assert rounds * (best - exploring) + (horizon - rounds) * (best - earned(found, value, rate)) <= most


@given(interval=st.floats(0.1, 10), spread=st.floats(1, 20), days=st.floats(1, 1e5), more=st.floats(0.01, 100))
def test_no_other_time_to_explore_has_a_lower_bound(interval: float, spread: float, days: float, more: float) -> None:
    of = Exploration(interval, 1000, 0.05, 0.05 * spread)
    best = of.best_days(days)
    least, other = of.regret(3.0, best, days), of.regret(3.0, best * more, days)
    assert least <= other + 1e-9 * abs(least)
    assert least == pytest.approx(3.0 * (2 * best - best**2 / days), rel=1e-6), "values·(2√(K·horizon) − K)"


def test_the_best_time_to_explore_grows_as_the_root_of_the_horizon() -> None:
    short, long = (Exploration(1, 1000, 0.1, 0.5).best_days(days) for days in (100, 10_000))
    assert long / short == pytest.approx(10)
    # √(K·T), K = e^(2·.5)·C·ln(2·1000/.1)/(2·1000·.1²) with C = 1000 fetches a day
    assert short == pytest.approx(math.sqrt(math.e * 1000 * math.log(2000 / 0.1) / (2 * 1000 * 0.01) * 100))


def test_a_bound_beyond_all_numbers_is_still_one() -> None:
    hopeless = Exploration(1000, 1000, 1e-9, 1e3)
    assert math.isfinite(hopeless.best_days(1e6)) and hopeless.best_days(1e6) > 1e300


def test_what_was_before_makes_no_difference_after_the_time_that_lemma_1_says() -> None:
    """Pages are visited and change at random moments; a copy is good if the last of both was a visit."""
    value, rate = some_pages(3)
    frequency, rng, looks = azar.solve(value, rate, 20.0), np.random.default_rng(3), 20_000
    for share in (0.3, 0.03):
        error = share * value.sum()
        days = until_steady(float(value.sum()), error, float(rate.min()))
        with np.errstate(divide="ignore"):
            visited = rng.exponential(1 / frequency, (looks, rate.size))  # days since the last fetch; infinite = never
        changed = rng.exponential(1 / rate, (looks, rate.size))
        for good_at_first in (False, True):
            good = np.where(visited < days, visited < changed, good_at_first & (changed > days))
            chance = 4 * float(np.sqrt((value**2).sum() / looks))
            assert abs(float(good.mean(axis=0) @ value) - earned(frequency, value, rate)) <= error + chance


def test_the_time_until_all_is_steady_in_closed_form() -> None:
    """After this time the error is e^(−least rate · days) of the values."""
    days = until_steady(values=200, error=0.5, least_rate=0.1)
    assert 200 * math.exp(-0.1 * days) == pytest.approx(0.5)
    assert until_steady(values=1, error=2, least_rate=0.1) == 0
