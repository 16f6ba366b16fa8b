"""Policies that know the rates: they agree with a closed form, and are better than policies that must learn."""

from dataclasses import replace

import numpy as np
import pytest

from recrawl.lab import recorded, worlds
from recrawl.lab.oracle import ORACLES, oracle
from recrawl.lab.replay import replay
from recrawl.model.allocation.solve import Web, allocate
from recrawl.model.policies.registry import POLICIES
from worker.lab.test_replay import poisson_web


@pytest.mark.parametrize("values", [np.ones(900), np.tile([1.0, 3.0, 9.0], 300)])
def test_a_steady_web_is_as_fresh_as_theory_allows(values: np.ndarray) -> None:
    rates, days, budget = np.repeat([0.05, 0.5, 5.0], 300), 100.0, 0.3
    web = Web(values, rates, np.array([0, 900]), np.array([np.inf]))
    best = allocate(web, budget * 900, "freshness").utility / values.sum()
    found = oracle(replace(poisson_web(rates, days), values=values), "oracle", budget, 0.0, days)
    assert found.freshness == pytest.approx(best, abs=0.015)
    assert found.fetches == pytest.approx(budget * 900 * days, rel=0.03)


def test_knowing_more_is_worth_more() -> None:
    sample = recorded.read("sample")
    foresight, knows, learns = (
        oracle(sample, "foresight", 0.03, 4500, 5100, 1),
        oracle(sample, "oracle", 0.03, 4500, 5100, 1),
        replay(sample, POLICIES["opt_polite"], 0.03, 4500, 5100, 1),
    )
    assert foresight.freshness > knows.freshness > learns.freshness
    assert foresight.mean_delay_days < knows.mean_delay_days < learns.mean_delay_days
    assert foresight.fetches < 1.03 * learns.fetches and knows.fetches < 1.03 * learns.fetches


@pytest.mark.parametrize(("kind", "seed"), [("drift", 0), ("steady", 5), ("values", 0), ("outages", 0)])
def test_knowing_more_costs_no_more(kind: str, seed: int) -> None:
    """Also where the first pages that are found never change, and others are found on the same day."""
    world = worlds.draw(kind, seed)
    learns = replay(world, POLICIES["opt_polite"], 0.2, 0.0, 90.0)
    for name in ORACLES:
        assert oracle(world, name, 0.2, 0.0, 90.0).fetches < 1.05 * learns.fetches
