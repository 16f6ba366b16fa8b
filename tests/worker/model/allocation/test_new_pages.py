"""The fetches that new pages leave to revisits: examples by hand, and rules for any division on random crawls."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from recrawl.model.allocation.new_pages import (
    TOLERANCE,
    BudgetSplit,
    NewPages,
    Slots,
    new_pages_within,
    split_budget,
)
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Allocation, Web, allocate

EACH = 100.0  # slots a day


def new_pages(*classes: list[float]) -> NewPages:
    """How many each host has in each class."""
    hosts = len(classes[0])
    pages = np.ravel(classes)
    return NewPages(
        np.tile(np.arange(hosts), len(classes)), np.repeat(np.arange(len(classes)), hosts), pages, 0.0 * pages
    )


class Counted:
    """Revisits that take what they may, or as much as they want at most; and how often they were asked."""

    def __init__(self, wanted: list[float]) -> None:
        self.wanted, self.times = np.array(wanted), 0

    def __call__(self, cap: Floats, fetches: float, price: float | None) -> tuple[Allocation, Floats]:
        self.times += 1
        n = len(cap)
        web = Web(np.ones(n), self.wanted, np.arange(n + 1), np.minimum(cap, self.wanted))
        found = allocate(web, fetches)
        return found, found.frequency


def divide(
    wanted: list[float],
    new: NewPages,
    budget: float,
    discovery: float,
    revisits_without_budget: float = math.inf,
    retries: float = 0,
) -> BudgetSplit:
    """Hosts of 100 slots each. Hosts whose revisits want no fetch have no revisits."""
    planned = np.array(wanted) > 0
    slots = Slots(np.full(len(wanted), EACH), planned, new, discovery)
    return split_budget(slots, budget, retries, Counted([w for w in wanted if w]), None, revisits_without_budget)


def test_the_best_class_goes_first_and_in_it_the_hosts_take_turns() -> None:
    new = new_pages([3, 0, 40, 90], [50, 50, 0, 0])
    room = np.array([20.0, 20.0, 30.0, 100.0])
    assert new.shared_out(room, 30.0).tolist() == [3, 0, 13.5, 13.5]
    assert new.shared_out(room, 83.0).tolist() == [3, 0, 30, 50]
    assert new.shared_out(room, 133.0).tolist() == [8, 5, 30, 90]
    assert new.shared_out(room, math.inf).tolist() == [20, 20, 30, 90]
    assert new_pages([0, 0]).shared_out(room[:2], 10.0).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("waiting", "comes", "expected"),
    [(0, 12, 12), (12, 0, 30), (1, 0, 24), (1, 6, 30), (1000, 0, 30)],
    ids=["what comes, comes all day", "what waits goes now", "all of it", "and what comes", "at the pace"],
)
def test_what_waits_is_gone_before_the_day_is(waiting: float, comes: float, expected: float) -> None:
    """Of 100 fetches a day 30 are sure for new pages, in the hour to come as in any other."""
    new = NewPages(np.array([0]), np.array([0]), np.array([waiting + comes]), np.array([float(waiting)]))
    slots = Slots(np.array([EACH]), np.array([True]), new, 0.3)
    found = split_budget(slots, 100.0, 0.0, Counted([500]), None, math.inf)
    assert new_pages_within(1 / 24, slots, found, np.array([70.0])) == pytest.approx(expected)


def test_without_new_pages_revisits_have_everything_at_the_first_try() -> None:
    revisits = Counted([500, 500])
    slots = Slots(np.full(2, EACH), np.array([True, True]), new_pages([0, 0]), 0.5)
    found = split_budget(slots, 150.0, 0.0, revisits, None, math.inf)
    assert (found.for_revisits, found.new_pages, revisits.times) == (150, 0, 1)
    assert found.cap.tolist() == [EACH, EACH]


def test_few_are_fetched_within_a_day() -> None:
    found = divide([500, 500, 0], new_pages([10, 0, 30]), 1000.0, 0.5)
    assert found.new_on_host.tolist() == [10, 0, 30]
    assert (found.for_revisits, found.cap.tolist()) == (960, [90, 100])


def test_many_have_their_share_of_a_hosts_slots_and_all_where_nothing_is_revisited() -> None:
    found = divide([500, 500, 0], new_pages([1e6, 20, 1e6]), 1e6, 0.3)
    assert found.cap.tolist() == [70, 80]
    assert found.new_on_host.tolist() == pytest.approx([30, 20, 100])


def test_what_is_fetched_retries_comes_off_what_revisits_have_and_leaves_them_half_of_it() -> None:
    few, many = new_pages([10, 0]), new_pages([1e6, 1e6])
    found = divide([500, 500], few, 100.0, 0.5, retries=30)
    assert (found.new_pages, found.retries, found.for_revisits, found.allocation.spent) == (10, 30, 60, 60)
    assert found.budget == 100
    found = divide([500, 500], many, 100.0, 0.5, retries=80)
    assert (found.new_pages, found.retries, found.for_revisits) == (50, 25, 25)
    found = divide([20, 0], many, 100.0, 0.5, retries=10)
    assert found.new_pages == pytest.approx(70), "they have what neither wants"
    found = divide(
        [30],
        many_wait := NewPages(np.array([0]), np.array([0]), np.array([1e6]), np.array([1e6])),
        90.0,
        0.1,
        retries=10,
    )
    slots = Slots(np.array([EACH]), np.array([True]), many_wait, 0.1)
    assert new_pages_within(1 / 24, slots, found, np.array([30.0])) == pytest.approx(50)


def test_they_have_the_slots_that_revisits_do_not_want() -> None:
    found = divide([500, 10], new_pages([1e6, 1e6]), 1e6, 0.3)
    assert found.new_on_host.tolist() == pytest.approx([30, 90])
    assert found.allocation.spent == pytest.approx(80)


def test_the_best_are_all_on_one_host() -> None:
    """It was thought to give its part only: 90 slots for revisits, when the best new pages take 30 of them."""
    found = divide([500, 10, 10], new_pages([1e6, 0, 0], [0, 1e6, 1e6]), 100.0, 0.3)
    assert found.new_on_host.tolist() == pytest.approx([30, 0, 0])
    assert found.cap.tolist() == [70, 100, 100]


def test_many_have_their_share_of_the_budget_and_what_revisits_cannot_spend() -> None:
    assert divide([500, 500], new_pages([1e6, 1e6]), 40.0, 0.5).new_on_host.tolist() == [10, 10]
    found = divide([500, 0], new_pages([1e6, 1e6]), 180.0, 0.5)
    assert found.allocation.spent + found.new_pages == pytest.approx(180)
    assert found.new_on_host.tolist() == pytest.approx([50, 80])


@pytest.mark.parametrize("discovery", [0.0, 1.0])
def test_the_ends_of_discovery(discovery: float) -> None:
    found = divide([500, 500], new_pages([1e6, 1e6]), 100.0, discovery)
    assert found.new_pages == pytest.approx(100 * discovery, abs=1e-9)
    assert found.for_revisits == pytest.approx(100 * (1 - discovery), abs=1e-9)


def test_without_a_budget_new_pages_have_all_that_is_left() -> None:
    found = divide([500, 500], new_pages([1e6, 1e6]), math.inf, 0.5, revisits_without_budget=30)
    assert found.allocation.spent == found.for_revisits == 30
    assert found.new_pages == pytest.approx(170)
    assert found.budget == pytest.approx(200)


def random_crawl(seed: int) -> tuple[Slots, Web]:
    random = np.random.default_rng(seed)
    hosts = 30
    is_planned: NDArray[np.bool_] = random.random(hosts) < 0.8
    pages = random.integers(1, 40, int(is_planned.sum()))
    per_day = random.lognormal(2, 1.5, hosts)
    new = new_pages(*(random.lognormal(1, 2, hosts) * (random.random(hosts) < 0.5) for _ in range(4)))  # type: ignore[arg-type]
    slots = Slots(per_day, is_planned, new, float(random.choice([0.1, 0.3, 0.5, 0.8])))
    first = np.concatenate(([0], np.cumsum(pages)))
    return slots, Web(random.random(first[-1]), random.lognormal(-1, 1.5, first[-1]), first, per_day[is_planned])


@pytest.mark.parametrize("part", [0.05, 0.5, 0.9, 2.0])  # of all slots
@pytest.mark.parametrize("seed", range(8))
def test_either_has_what_the_other_leaves(seed: int, part: float) -> None:
    slots, web = random_crawl(seed)
    budget, times = part * slots.per_day.sum(), 0
    host_of_page = np.repeat(np.arange(len(web.cap)), np.diff(web.starts))

    def revisits(cap: Floats, fetches: float, price: float | None) -> tuple[Allocation, Floats]:
        nonlocal times
        times += 1
        found = allocate(Web(web.value, web.rate, web.starts, cap), fetches, last_price=price)
        return found, np.bincount(host_of_page, found.frequency, minlength=len(cap)).astype(np.float64)

    found = split_budget(slots, budget, 0.0, revisits, None, math.inf)
    spent, new = found.allocation.spent, found.new_pages
    taken = np.zeros(len(slots.per_day))
    taken[slots.is_planned] = np.bincount(host_of_page, found.allocation.frequency, minlength=len(web.cap))
    off = 5 * TOLERANCE * budget
    assert spent + new <= budget + off
    assert (taken + found.new_on_host <= slots.per_day * (1 + 1e-3) + off).all()
    assert (found.cap >= slots.sure_of_revisits[slots.is_planned] * (1 - 1e-12)).all()
    if spent + new < budget - off:
        allowed = slots.for_new_pages(taken)
        assert new == pytest.approx(slots.new_pages.shared_out(allowed, math.inf).sum(), abs=off), "nobody wants it"
    assert times <= 6
