"""The pages that change places on a host that is behind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.lab.experiments.overtaking import SENIORS, overtaking


def places(late_by: list[float], worth: list[float], slots: float) -> list[int]:
    """Of one host, in the order in which they would be asked for."""
    late = np.array(late_by)
    pages, now = overtaking(np.zeros(len(late), np.intp), late, late, np.array(worth), np.array([slots]))
    late[pages] = now
    return [int(page) for page in np.argsort(-late, kind="stable")]


def test_what_is_worth_most_goes_first_but_for_one_place_in_eight() -> None:
    late_by = [float(20 - i) for i in range(20)]
    worth = [2.0**i for i in range(20)]
    assert places(late_by, worth, 4) == [0, 17, 18, 19, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 2, 3]
    assert set(places(late_by, worth, 10)[:10]) == {0, 1, *range(12, 20)}


def test_a_host_with_a_slot_for_each_keeps_its_order() -> None:
    assert places([3, 2, 1], [1, 2, 3], 3) == [0, 1, 2]
    assert places([3, 2, 1], [1, 2, 3], 0) == [0, 1, 2], "nor does one that is asked for nothing"


pages_of_hosts = st.lists(
    st.tuples(
        st.integers(0, 3), st.floats(1e-3, 100), st.floats(-100, 100),
        st.sampled_from([0.0, 1e-12, 0.5, 0.5, 1.0, 1e12]),
    ),
    max_size=80,
)  # fmt: skip


@given(pages_of_hosts, st.lists(st.floats(0, 30), min_size=4, max_size=4))
def test_places_are_exchanged_within_hosts(pages: list[tuple[int, float, float, float]], slots: list[float]) -> None:
    host = np.array([page[0] for page in pages], np.intp)
    late_by, late_by_frequency, worth = (np.array([page[i] for page in pages], np.float64) for i in (1, 2, 3))
    moved, now = overtaking(host, late_by, late_by_frequency, worth, np.array(slots))
    assert len(set(moved.tolist())) == len(moved)
    later = late_by.copy()
    later[moved] = now
    for number in range(4):
        here = np.flatnonzero(host == number)
        assert sorted(later[here]) == sorted(late_by[here]), "no host looks more or less late"
        if len(set(late_by[here])) < here.size:
            continue
        asked = min(int(np.ceil(slots[number])), here.size)
        go = here[np.argsort(-later[here])[:asked]]
        stay = np.setdiff1d(here, go)
        seniors = here[np.argsort(-late_by_frequency[here], kind="stable")[: -(-asked // SENIORS)]]
        if len(set(late_by_frequency[here])) == here.size:
            assert np.isin(seniors, go).all()
        others = np.setdiff1d(go, seniors)
        if stay.size and others.size:
            assert worth[stay].max() <= worth[others].min()
    again, _ = overtaking(host, later, late_by_frequency, worth, np.array(slots))
    if len(set(late_by.tolist())) == len(late_by) and len(set(late_by_frequency.tolist())) == len(late_by_frequency):
        assert len(again) == 0 or len(set(worth.tolist())) < len(worth), "once is enough"


@pytest.mark.parametrize("served", [1, 60, 239, 240, None])
def test_whoever_is_worth_least_has_its_turn_however_long_the_host_is_behind(served: int | None) -> None:
    """As many pages that are always worth more come with every run as are served, of 240 slots until the next."""
    rng = np.random.default_rng(1)
    late_by, worth = rng.uniform(100, 200, 1200), np.zeros(1200)
    late_by_frequency = late_by.copy()
    for _ in range(1200 * SENIORS * 2 if served == 1 else 800):
        fetches = int(rng.integers(1, 240)) if served is None else served
        late_by, worth = np.append(late_by, rng.random(fetches)), np.append(worth, np.ones(fetches))
        late_by_frequency = np.append(late_by_frequency, late_by[-fetches:])
        pages, now = overtaking(np.zeros(len(worth), np.intp), late_by, late_by_frequency, worth, np.array([240.0]))
        late_by[pages] = now
        left = np.argsort(-late_by)[fetches:]
        late_by, late_by_frequency, worth = late_by[left] + 1, late_by_frequency[left] + 1, worth[left]
        if worth.all():
            return
    raise AssertionError(f"{int((worth == 0).sum())} were never asked for")
