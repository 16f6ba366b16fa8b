"""What new pages leave to revisits, worked out by hand."""

import numpy as np
import pytest

from recrawl.model.allocation.new_pages import NewPages, left, with_new_pages

CAP = np.array([100.0, 100.0, 100.0])
WITH_REVISITS = np.array([True, True, False])


def new_pages(waiting: list[float], discovery: float = 0.5) -> NewPages:
    return NewPages(np.array(waiting), discovery)


def test_without_new_pages_revisits_have_everything() -> None:
    found = left(CAP, WITH_REVISITS, 50.0, new_pages([0, 0, 0]))
    assert (found.budget, found.new_pages) == (50.0, 0.0)
    assert found.cap.tolist() == CAP.tolist()


def test_few_are_fetched_within_a_day() -> None:
    found = left(CAP, WITH_REVISITS, 1000.0, new_pages([10, 0, 30]))
    assert found.new_pages == 40
    assert found.budget == 960
    assert found.cap.tolist() == [90, 100, 70]


def test_many_have_their_share_of_a_hosts_slots_and_all_where_nothing_is_revisited() -> None:
    found = left(CAP, WITH_REVISITS, 1e6, new_pages([1e6, 20, 1e6], discovery=0.3))
    assert found.cap.tolist() == [70, 80, 0]
    assert found.new_pages == 30 + 20 + 100


def test_many_have_their_share_of_the_budget_which_hosts_divide() -> None:
    found = left(CAP, WITH_REVISITS, 40.0, new_pages([1e6, 1e6, 1e6], discovery=0.5))
    assert found.new_pages == found.budget == 20
    assert found.cap.tolist() == pytest.approx([95, 95, 90])


@pytest.mark.parametrize(("discovery", "budget"), [(0.0, 100.0), (1.0, 0.0)])
def test_the_ends_of_discovery(discovery: float, budget: float) -> None:
    found = left(np.array([100.0, np.inf, 0.0]), WITH_REVISITS, 100.0, new_pages([1e6, 1e6, 1e6], discovery))
    assert found.budget == budget
    assert (found.cap >= 0).all()


@pytest.mark.parametrize("discovery", [0.0, 0.2, 0.5, 0.8])
@pytest.mark.parametrize("revisits", [1.0, 30.0, 1e4])
def test_the_budget_that_leaves_so_many_fetches_does(discovery: float, revisits: float) -> None:
    new = new_pages([20, 30, 40], discovery)
    wanted = left(CAP, WITH_REVISITS, 0.0, new).wanted_new
    budget = with_new_pages(revisits, wanted, discovery)
    assert left(CAP, WITH_REVISITS, budget, new).budget == pytest.approx(revisits)
