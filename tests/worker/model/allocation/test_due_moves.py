"""The due times move so that the wanted number of fetches comes."""

import numpy as np
import pytest

from recrawl.model.allocation.due_moves import to_move, too_late

AHEAD = 1 / 24


def moved(due_in: list[float], promised: list[float], wanted: float, frequency: float = 1, **more: object) -> list[int]:
    count = len(due_in)
    capped = np.full(count, more.get("capped", False))
    due, waits = np.array(due_in, np.float32), np.array(promised, np.float32)
    return sorted(to_move(due, waits, np.full(count, float(frequency)), capped, AHEAD, wanted).tolist())


def test_what_is_due_far_beyond_its_new_interval_is_too_late() -> None:
    due_in = np.array([1.4, 1.6, -1, np.nan, 50, 50], np.float32)
    assert np.flatnonzero(too_late(due_in, np.array([1, 1, 1, 1, 0.02, 0]))).tolist() == [1]


def test_what_was_promised_too_often_waits_but_no_more_of_it_than_is_too_much() -> None:
    coming = [0.01] * 4
    assert moved(coming, [0.5, 0.8, 0.96, 0.6], wanted=2) == [0, 3], "those that are off most"
    assert moved(coming, [0.5, 0.8, 0.96, 0.6], wanted=0) == [0, 1, 3], "one is not off"
    assert moved(coming, [0.5, 0.8, 0.96, 0.6], wanted=4) == []


def test_what_was_promised_too_seldom_comes_if_it_would_be_due() -> None:
    later = [0.5, 0.5, 0.05, 2]
    assert moved(later, [1.5, 2, 1.02, 2.5], wanted=9) == [0, 1]
    assert moved(later, [1.5, 2, 1.02, 2.5], wanted=1) == [1]


def test_what_follows_nothing_but_its_frequency_or_its_hosts_gap_stays() -> None:
    assert moved([0.01, 0.01, np.nan], [np.nan, 0.5, np.nan], wanted=0) == [1]
    assert moved([0.01], [0.5], wanted=0, capped=True) == []
    assert moved([-0.1], [0.5], wanted=0) == [], "it is late"
    assert moved([0.01], [0.01], wanted=0, frequency=20) == [], "it comes again anyway"


def test_what_comes_twice_within_the_time_counts_twice() -> None:
    due_in, planned = np.array([0, 0.5], np.float32), np.array([np.nan, 1.5], np.float32)
    frequency, capped = np.array([1.5 / AHEAD, 1]), np.zeros(2, bool)
    assert to_move(due_in, planned, frequency, capped, AHEAD, wanted=2).tolist() == []
    assert to_move(due_in, planned, frequency, capped, AHEAD, wanted=3).tolist() == [1]


@pytest.mark.parametrize("wanted", [0.0, 50.0, 1000.0])
def test_while_prices_stay_nothing_moves(wanted: float) -> None:
    assert moved(list(np.linspace(0, 1, 100)), [1.0] * 100, wanted) == []
