"""The policy explore_then_commit: what it spends while it explores, and what it stops learning afterwards."""

import math

import pytest

from recrawl.lab.policies import explore_then_commit
from recrawl.model.allocation.solve import allocate
from worker.model.policies.test_policies import asked, on_hosts, some_web


@pytest.mark.parametrize("seed", range(5))
def test_it_never_spends_more_than_the_budget_nor_fetches_from_a_blocked_host(seed: int) -> None:
    web = some_web(seed)
    for days in (0.0, 1e6):
        of_host = on_hosts(web, explore_then_commit.answer(asked(web, days=days, horizon=100.0)))
        assert of_host.sum() <= 40 * (1 + 1e-9) and of_host[5] == 0
        assert (of_host <= web.cap * (1 + 1e-9)).all(), "no more than the gap of a host allows"


def test_it_explores_first_and_learns_nothing_after_that() -> None:
    web = some_web(3)
    interval = len(web.rate) / 40
    explores = explore_then_commit.explores_for(asked(web, horizon=1000.0))
    assert explores / interval == pytest.approx(round(explores / interval)) and interval <= explores <= 100 + interval
    explores_still, commits = (asked(web, days=days, horizon=1000.0) for days in (explores * 0.99, explores))
    before, after = explore_then_commit.answer(explores_still), explore_then_commit.answer(commits)
    assert explore_then_commit.learns(explores_still) and not explore_then_commit.learns(commits)
    assert before.price == math.inf > after.price
    assert after.utility == pytest.approx(allocate(web, 40).utility)
