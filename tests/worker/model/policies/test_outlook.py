"""The measures of visits, against visits that are simulated one by one."""

import math

import numpy as np
import pytest

from recrawl.model.allocation.solve import Web
from recrawl.model.policies.outlook import as_hosts_can, outlook


@pytest.mark.parametrize(("rate", "frequency"), [(0.3, 1.0), (1.0, 0.4), (3.0, 0.2), (0.005, 1.0)])
def test_every_measure_is_what_a_page_that_is_watched_shows(rate: float, frequency: float) -> None:
    rng = np.random.default_rng(7)
    visits = 200_000
    every = 1 / frequency
    count = rng.poisson(rate * every, visits)
    changes = np.sort(every * (np.repeat(np.arange(visits), count) + rng.random(count.sum())))
    visit_after = (np.floor(changes / every) + 1) * every
    first = np.unique(np.floor(changes / every), return_index=True)[1]
    stale = visit_after[first] - changes[first]
    found = outlook(np.ones(1), np.array([rate]), np.array([frequency]))
    assert found.fresh == pytest.approx(1 - stale.sum() / (visits * every), abs=0.003)
    assert found.changes_seen == pytest.approx(len(first) / (visits * every), rel=0.03, abs=3e-5)
    assert found.delay_days == pytest.approx(float((visit_after - changes).mean()), rel=0.1)
    assert found.age_days == pytest.approx(float((stale**2 / 2).sum() / (visits * every)), rel=0.15)


@pytest.mark.parametrize("changes", [5e-4, 2e-3, 0.9])
def test_the_age_of_a_page_that_changes_seldom_is_exact(changes: float) -> None:
    """The mean of t − (1 − e^−ct)/c over an interval, as a power series in c: the changes between two visits."""
    series = sum(-((-changes) ** n) / math.factorial(n + 2) for n in range(1, 30))
    assert outlook(np.ones(1), np.array([changes]), np.ones(1)).age_days == pytest.approx(series, rel=3e-4)


def test_what_is_never_visited_is_never_seen_and_what_never_changes_is_fresh() -> None:
    found = outlook(np.array([1.0, 3.0]), np.array([1.0, 0.0]), np.zeros(2))
    assert (found.fresh, found.changes_seen, found.fetches) == (0.75, 0, 0)
    assert found.delay_days == found.age_days == math.inf
    without_value = outlook(np.array([0.0, 1.0]), np.ones(2), np.array([0.0, 1.0]))
    assert without_value.age_days < 1, "without a warning of numpy"
    static = outlook(np.ones(2), np.zeros(2), np.array([0.0, 1.0]))
    assert (static.fresh, static.delay_days, static.age_days, static.fetches) == (1, 0, 0, 1)


def test_a_host_without_enough_slots_is_late_with_all_its_pages() -> None:
    web = Web(np.ones(4), np.ones(4), np.array([0, 2, 4]), np.array([1.0, 9.0]))
    assert as_hosts_can(web, np.array([1.0, 3.0, 2.0, 3.0])).tolist() == [0.25, 0.75, 2, 3]
