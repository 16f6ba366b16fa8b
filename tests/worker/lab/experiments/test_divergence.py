"""The benefit of knowing how much pages change: the policies of Olston & Pandey on their mix of pages."""

import numpy as np
import pytest

from recrawl.lab.content import draw
from recrawl.lab.experiments import divergence
from recrawl.lab.experiments.divergence import BY_CHANGES, ORACLE, UNIFORM, DriftingWeb
from recrawl.lab.experiments.findings import Findings, Row

# Of what the oracle gains over uniform visits, by the threshold: what the better of the two captures at least.
AT_LEAST = {0.1: 0.3, 0.3: 0.5, 1.0: 0.5}


def captured(found: Findings, threshold: float) -> dict[str, float]:
    (table,) = found.tables
    return {str(row["policy"]): number(row, "captured") for row in table.rows if row["threshold, days"] == threshold}


def number(row: Row, heading: str) -> float:
    return float(row[heading])


@pytest.mark.soak
def test_the_better_captures_much_of_the_gain_and_none_is_below_uniform_visits() -> None:
    """And it is worth more to learn how much pages change than to know how often."""
    found = divergence.run(0, quick=True)
    for threshold, at_least in AT_LEAST.items():
        of = captured(found, threshold)
        assert set(of) == {"bound_based", "curve_fitting"}
        assert max(of.values()) >= at_least, (threshold, of)
        assert min(of.values()) > 0 and max(of.values()) < 1, (threshold, of)
    (table,) = found.tables
    for row in table.rows:
        if row["policy"] == "curve_fitting":
            assert number(row, "captured") > number(row, f"captured by {BY_CHANGES}"), row


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_so_it_is_at_full_size_and_with_other_seeds(seed: int) -> None:
    found = divergence.run(seed, quick=False)
    for threshold, at_least in AT_LEAST.items():
        of = captured(found, threshold)
        assert max(of.values()) >= at_least and min(of.values()) > 0, (threshold, of)


def test_nobody_is_ahead_of_who_knows_all_and_all_spend_the_same() -> None:
    rng = np.random.default_rng(3)
    web = DriftingWeb(draw(rng, 300, 200), 200, rng.random(300))
    for budget in (0.05, 0.2, 1.0):
        known = web.known(budget)
        assert known[ORACLE].freshness > max(known[UNIFORM].freshness, known[BY_CHANGES].freshness)
        for outcome in known.values():
            assert outcome.fetches == pytest.approx(budget, rel=0.03)


@pytest.mark.soak
def test_the_same_seed_finds_the_same() -> None:
    assert divergence.run(0, quick=True).tables == divergence.run(0, quick=True).tables
