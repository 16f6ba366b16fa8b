"""A clock that is told by answers, over links of all kinds; no wall clock takes part."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from recrawl.client.clock import DRIFT, Clock

START = datetime(2030, 1, 1, tzinfo=UTC)
AHEAD = 1_000_000.0  # what the monotonic clock says at START


class Link:
    """A database's clock behind a link that takes its time on the way there and back."""

    def __init__(self, seed: int = 1, drift: float = 0) -> None:
        self.random = random.Random(seed)
        self.now = AHEAD
        self.drift = drift
        self.clock = Clock()

    def true(self, moment: float) -> datetime:
        return START + timedelta(seconds=(moment - AHEAD) * (1 + self.drift))

    def call(self, there: float, back: float) -> None:
        sent = self.now
        self.now += there + back
        self.clock.learn(sent, self.now, self.true(sent + there))

    def error(self) -> float:
        return abs((self.clock.to_datetime(self.now) - self.true(self.now)).total_seconds())


def test_the_error_is_never_more_than_the_doubt() -> None:
    for seed in range(20):
        link = Link(seed, drift=random.Random(seed).uniform(-DRIFT / 2, DRIFT / 2))
        for _ in range(500):
            link.call(*(link.random.expovariate(20) for _ in range(2)))
            assert link.error() <= link.clock.max_error(link.now) + 1e-6
            link.now += link.random.expovariate(1)


def test_a_slow_call_moves_nothing() -> None:
    link = Link()
    link.call(0.001, 0.001)
    before = link.clock.to_monotonic(START)
    link.call(0.001, 5)
    link.call(5, 0.001)
    assert link.clock.to_monotonic(START) == before


def test_the_fastest_call_counts_until_it_is_old() -> None:
    link = Link(drift=DRIFT / 2)
    link.call(0.001, 0.001)
    link.now += 600
    assert link.error() > 0.02, "it has drifted"
    link.call(0.002, 0.002)
    assert link.error() < 0.003


@pytest.mark.parametrize("step", [-3600, -2, 2, 86400])
def test_a_clock_that_was_set_is_believed_at_once(step: float) -> None:
    link = Link()
    link.call(0.001, 0.001)
    link.clock.learn(link.now, link.now + 0.01, link.true(link.now + 0.005) + timedelta(seconds=step))
    assert abs((link.clock.to_datetime(link.now) - link.true(link.now)).total_seconds() - step) < 0.01


def test_a_request_begins_inside_both_bounds_however_wrong_the_clock_is() -> None:
    fetch_at, start_by = START + timedelta(seconds=10), START + timedelta(seconds=10.2)
    for there, back in [(0.04, 0.001), (0.001, 0.04), (0.02, 0.02)]:
        link = Link()
        link.call(there, back)
        first, last = link.clock.window(fetch_at, start_by, link.now)
        assert first < last
        assert fetch_at <= link.true(first) and link.true(last) <= start_by


def test_a_link_that_is_always_slow_leaves_room_to_begin() -> None:
    link = Link()
    for _ in range(10):
        link.call(2, 2)
    first, last = link.clock.window(START, START + timedelta(seconds=0.1), link.now)
    assert last - first == pytest.approx(0.05, abs=1e-4)
    assert link.true(first) >= START and link.true(last) <= START + timedelta(seconds=0.1), "equal ways: no error"
