"""Which pages of a host that is behind change places."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model.allocation.overtaking import STAYS, overtaking


def places(overdue: list[float], worth: list[float], slots: float) -> list[int]:
    """Of one host, in the order in which they would be asked for."""
    late = np.array(overdue)
    pages, now = overtaking(np.zeros(len(late), np.intp), late, np.array(worth), np.array([slots]))
    late[pages] = now
    return [int(page) for page in np.argsort(-late, kind="stable")]


def test_what_is_worth_most_goes_first_but_for_one_place_in_eight() -> None:
    overdue = [float(20 - i) for i in range(20)]
    worth = [float(i) for i in range(20)]
    assert places(overdue, worth, 4) == [0, 17, 18, 19, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 1, 2, 3]
    assert places(overdue, worth, 10)[:10:STAYS] == [0, 8]
    assert set(places(overdue, worth, 10)[:10]) == {0, 8, *range(12, 20)}


def test_a_host_with_a_slot_for_each_keeps_its_order() -> None:
    assert places([3, 2, 1], [1, 2, 3], 3) == [0, 1, 2]
    assert places([3, 2, 1], [1, 2, 3], 0) == [0, 1, 2], "nor does one that is asked for nothing"


pages_of_hosts = st.lists(
    st.tuples(st.integers(0, 3), st.floats(1e-3, 100), st.sampled_from([0.0, 1e-12, 0.5, 0.5, 1.0, 1e12])), max_size=80
)


@given(pages_of_hosts, st.lists(st.floats(0, 30), min_size=4, max_size=4))
def test_places_are_exchanged_within_hosts(pages: list[tuple[int, float, float]], slots: list[float]) -> None:
    host = np.array([page[0] for page in pages], np.intp)
    overdue, worth = (np.array([page[i] for page in pages], np.float64) for i in (1, 2))
    moved, now = overtaking(host, overdue, worth, np.array(slots))
    assert len(set(moved.tolist())) == len(moved)
    later = overdue.copy()
    later[moved] = now
    for number in range(4):
        here = host == number
        assert sorted(later[here]) == sorted(overdue[here]), "no host looks more or less late"
        asked = min(int(np.ceil(slots[number])), here.sum())
        before, after = (
            np.sort(worth[here][np.argsort(-due[here], kind="stable")[:asked]]) for due in (overdue, later)
        )
        if len(set(overdue[here])) == here.sum():
            assert (after >= before).all(), "what is asked for next is worth as much"
    again, _ = overtaking(host, later, worth, np.array(slots))
    if len(set(overdue.tolist())) == len(overdue) and len(set(worth.tolist())) == len(worth):
        assert not len(again), "once is enough"


def test_whoever_is_worth_least_has_its_turn_however_long_the_host_is_behind() -> None:
    """A hundred pages that are always worth more come with every run; ten slots until the next."""
    rng = np.random.default_rng(1)
    overdue, worth = rng.uniform(100, 200, 50), np.zeros(50)
    for _ in range(2000):
        overdue, worth = np.append(overdue, rng.random(10)), np.append(worth, np.ones(10))
        pages, now = overtaking(np.zeros(len(worth), np.intp), overdue, worth, np.array([10.0]))
        overdue[pages] = now
        left = np.argsort(-overdue)[10:]
        overdue, worth = overdue[left] + 1, worth[left]
        if worth.all():
            return
    raise AssertionError(f"{int((worth == 0).sum())} were never asked for")
