"""DELAYED turns frequencies into instants: as fresh as the polite bound allows, and never two requests within a gap."""

import heapq

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from recrawl.lab.experiments import figure_4_5
from recrawl.lab.methods import delayed, thesis
from recrawl.lab.methods.page import changes_found

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

GAP = 15 / 86400


def one_heap(
    frequency: Array, host: Labels, gap: Array, phase: Array, until: float, next_from_start: bool = False
) -> list[list[float]]:
    """The thesis' pseudocode, request by request: the instants at which each page is requested."""
    requests: list[list[float]] = [[] for _ in frequency]
    last = np.full(gap.size, -np.inf)
    heap = [(phase[i] / frequency[i], i) for i in range(frequency.size) if frequency[i] > 0]
    heapq.heapify(heap)
    while heap and heap[0][0] < until:
        due, page = heap[0]
        start = max(due, last[host[page]] + gap[host[page]])
        last[host[page]] = start
        if start < until:
            requests[page].append(start)
        heapq.heapreplace(heap, ((start if next_from_start else due) + 1 / frequency[page], page))
    return requests


def small_web(seed: int, load: float) -> tuple[Array, Labels, Array, Array]:
    """Frequencies that use this share of the hosts' caps, hosts, gaps and phases."""
    rng = np.random.default_rng(seed)
    gap = rng.uniform(0.01, 0.1, 3)
    host = rng.integers(0, 3, 20)
    frequency = rng.lognormal(0, 1, 20)
    frequency *= (load / gap / np.bincount(host, frequency, minlength=3))[host]
    return frequency, host, gap, rng.random(20)


@given(seed=st.integers(0, 10_000), load=st.floats(0.1, 5))
def test_host_by_host_is_the_same_as_one_heap(seed: int, load: float) -> None:
    frequency, host, gap, phase = small_web(seed, load)
    expected = one_heap(frequency, host, gap, phase, until=3.0)
    for s in range(3):
        here = np.flatnonzero(host == s)
        start, page = delayed.requests(frequency[here], phase[here], gap[s], until=3.0)
        for i, requested in enumerate(here):
            # The last instants before the end may fall on either side of it.
            assert np.count_nonzero(page == i) == pytest.approx(len(expected[requested]), abs=1)
            assert start[page == i][:-1] == pytest.approx(expected[requested][: np.count_nonzero(page == i) - 1])


@given(seed=st.integers(0, 10_000), load=st.floats(0.1, 5))
def test_requests_are_a_gap_apart_and_none_is_early(seed: int, load: float) -> None:
    frequency, host, gap, phase = small_web(seed, load)
    frequency, phase = frequency[host == 0], phase[host == 0]
    due, _ = delayed.due_instants(frequency, phase, 5.0)
    start = delayed.starts(np.sort(due), gap[0])
    assert np.all(np.diff(start) >= gap[0] * (1 - 1e-9))
    assert np.all(start >= np.sort(due) - 1e-12)


def test_due_instants_are_those_before_the_end() -> None:
    due, page = delayed.due_instants(np.array([1.0, 0.0, 4.0]), np.array([0.5, 0.1, 0.0]), until=1.0)
    assert (due.tolist(), page.tolist()) == ([0.5, 0.0, 0.25, 0.5, 0.75], [0, 2, 2, 2, 2])


def test_a_host_without_load_is_never_late() -> None:
    due = np.array([0.5, 2.0, 3.5])
    assert delayed.starts(due, 1.0).tolist() == due.tolist()


def test_a_crowd_is_served_in_turn_and_the_delay_is_made_up() -> None:
    assert delayed.starts(np.array([0.0, 0.0, 0.1, 5.0]), 1.0).tolist() == [0, 1, 2, 5]


def test_an_overloaded_host_is_kept_busy() -> None:
    start, _ = delayed.requests(np.full(50, 100.0), np.linspace(0, 0.99, 50), gap=0.01, until=10.0)
    assert start.size == pytest.approx(1000, abs=1)


def test_next_visits_counted_from_the_request_are_fewer() -> None:
    frequency, host, gap, phase = small_web(1, load=0.9)
    due = frequency.sum() * 100
    on_the_grid = sum(map(len, one_heap(frequency, host, gap, phase, 100.0)))
    from_the_request = sum(map(len, one_heap(frequency, host, gap, phase, 100.0, next_from_start=True)))
    assert on_the_grid == pytest.approx(due, rel=0.005)
    assert from_the_request < 0.985 * due


# ---------------------------------------------------------------------------------------------- freshness


def fresh(rate: list[float], frequency: list[float], phase: list[float], begin: float, end: float) -> Array:
    host = np.zeros(len(rate), np.int64)
    return delayed.freshness(rate, frequency, host, [0.0], phase, begin, end)


@pytest.mark.parametrize(("rate", "frequency"), [(1.0, 1.0), (0.01, 4.0), (20.0, 2.0)])
def test_a_lone_page_is_as_fresh_as_the_formula_says(rate: float, frequency: float) -> None:
    expected = changes_found(np.array([frequency]), np.array([rate])) / rate
    assert fresh([rate], [frequency], [0.3], begin=5.0, end=25.0) == pytest.approx(expected, rel=1e-12)


def test_a_page_is_stale_until_its_first_visit() -> None:
    # Visited at ½, watched over [0, 1]: ∫₀^½ e^−t dt.
    assert fresh([1.0], [1.0], [0.5], begin=0.0, end=1.0) == pytest.approx([1 - np.exp(-0.5)])


def test_static_pages_are_fresh_and_forgotten_ones_are_not() -> None:
    assert fresh([0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.5, 0.5, 0.5], begin=1.0, end=2.0).tolist() == [1, 1, 0]


def test_freshness_at_instants_adds_up_to_that_between_them() -> None:
    frequency, host, gap, phase = small_web(4, load=0.9)
    rate = np.where(np.arange(20) % 5 == 0, 0.0, np.random.default_rng(4).lognormal(0, 1, 20))
    begin, end = 0.0, 6.0
    middles = (np.arange(20_000) + 0.5) / 20_000 * (end - begin)
    for s in range(3):
        here = np.flatnonzero(host == s)
        some = frequency[here] * (np.arange(here.size) > 0)  # and one is kept_out
        start, page = delayed.requests(some, phase[here], gap[s], end)
        between = delayed.good_between(rate[here], start, page, begin, end)
        assert delayed.good_at(rate[here], start, page, middles).mean() == pytest.approx(between.sum(), rel=1e-4)
    nobody = np.empty(0), np.empty(0, np.int64)
    assert delayed.good_at(np.array([1.0, 0.0]), *nobody, np.array([0.0, 9.0])).tolist() == [1, 1]


@pytest.mark.parametrize("load", [0.5, 0.95, 3.0])
def test_expected_freshness_is_the_mean_over_many_webs(load: float) -> None:
    """Draws the changes of every page many times over, and looks whether there was one since the last request."""
    frequency, host, gap, phase = small_web(2, load)
    rng = np.random.default_rng(3)
    rate = rng.lognormal(1, 1, 20)
    begin, end, looks = 2.0, 6.0, 100_000
    expected = delayed.freshness(rate, frequency, host, gap, phase, begin, end)
    for page, requests in enumerate(one_heap(frequency, host, gap, phase, end)):
        at = rng.uniform(begin, end, looks)
        seen = np.searchsorted(requests, at) - 1
        last = np.where(seen >= 0, np.append(requests, 0.0)[seen], -np.inf)
        good = rng.exponential(1 / rate[page], looks) > at - last
        assert good.mean() == pytest.approx(expected[page], abs=5 * 0.5 / looks**0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": [1.0, np.nan]}, r"rate\[1\] must be finite and not negative, got nan"),
        ({"frequency": [1.0, -1.0]}, r"frequency\[1\] must be finite and not negative, got -1.0"),
        ({"gap": [-1.0]}, r"gap\[0\] must be finite and not negative, got -1.0"),
        ({"phase": [0.5, 1.0]}, r"phase\[1\] must be less than 1, got 1.0"),
        ({"phase": [0.5]}, "rate, frequency and phase must be equally long, got 2, 2 and 1"),
        ({"host": np.array([0, 1])}, r"host\[1\] must be one of the 1 hosts, got 1"),
        ({"end": 1.0}, "begin and end must be instants in this order, got 1.0 and 1.0"),
    ],
)
def test_nonsense_is_refused(change: dict[str, object], message: str) -> None:
    sensible: dict[str, object] = {
        "rate": [1.0, 1.0],
        "frequency": [1.0, 1.0],
        "host": np.array([0, 0]),
        "gap": [0.1],
        "phase": [0.5, 0.5],
        "begin": 1.0,
        "end": 2.0,
    }
    with pytest.raises(ValueError, match=message):
        delayed.freshness(**{**sensible, **change})  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ the thesis' experiment

# Expected freshness in percent of all pages, mean over the second half of the run, by an independent implementation.
EXPERIMENT = {
    # web, share of what all hosts allow: days, UNPOLITE, POLITE, DELAYED + OPT_POLITE, DELAYED + CHO, usable by CHO
    ("A", 0.9): (60, 96.118, 75.635, 75.628, 70.991, 0.27),
    ("A", 0.1): (250, 77.547, 72.641, 72.641, 68.398, 0.66),
    ("B", 0.9): (60, 98.906, 93.419, 93.402, 92.996, 0.49),
    ("B", 0.1): (250, 91.493, 90.046, 90.045, 88.946, 0.84),
    ("B", 0.01): (1500, 69.469, 69.469, 69.469, 69.469, 1.0),
}


@pytest.mark.soak
@pytest.mark.parametrize(("name", "share"), EXPERIMENT)
def test_delayed_with_opt_polite_comes_close_to_the_polite_bound_and_cho_does_not(name: str, share: float) -> None:
    days, unpolite, polite, with_opt_polite, with_cho, usable = EXPERIMENT[name, share]
    drawn = figure_4_5.draw(name)
    rate, phase = drawn.web.rate.astype(np.float64), drawn.phase
    host = np.repeat(np.arange(200), np.diff(drawn.web.starts))
    value, cap, gap = np.ones_like(rate), np.full(200, 1 / GAP), np.full(200, GAP)
    budget = share * cap.sum()
    cho = thesis.cho(value, rate, budget)
    opt_polite = thesis.solve(value, rate, host, cap, budget)

    def bound(frequency: Array) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(100 * np.mean(np.where(rate > 0, changes_found(frequency, rate) / rate, 1)))

    def simulated(frequency: Array) -> float:
        return float(100 * np.mean(delayed.freshness(rate, frequency, host, gap, phase, days / 2, days)))

    assert bound(cho) == pytest.approx(unpolite, abs=0.001)
    assert bound(opt_polite) == pytest.approx(polite, abs=0.001)
    assert simulated(opt_polite) == pytest.approx(with_opt_polite, abs=0.002)
    assert simulated(cho) == pytest.approx(with_cho, abs=0.002)
    assert np.minimum(np.bincount(host, cho), cap).sum() / budget == pytest.approx(usable, abs=0.006)
