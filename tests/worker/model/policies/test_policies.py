"""Each policy gives the allocation that it promises, on random webs and in closed form."""

import math
from dataclasses import replace

import numpy as np
import pytest

from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.solve import Allocation, Web, allocate
from recrawl.model.policies import epsilon_greedy
from recrawl.model.policies.policy import Question
from recrawl.model.policies.registry import POLICIES

LIMITS = Limits(exploration=0.05, longest_interval=60, shortest_interval=0.01)


def some_web(seed: int, hosts: int = 12) -> Web:
    """Some hosts are slow, one is blocked, one has no page; some pages never change, some are worth nothing."""
    rng = np.random.default_rng(seed)
    pages = rng.integers(1, 60, hosts)
    pages[3] = 0
    first = np.append(0, np.cumsum(pages))
    rate = rng.lognormal(-1, 2, first[-1]) * (rng.random(first[-1]) > 0.2)
    value = rng.lognormal(0, 1, first[-1]) * (rng.random(first[-1]) > 0.1)
    cap = np.where(rng.random(hosts) < 0.5, np.inf, rng.uniform(0.1, 3, hosts))
    cap[5] = 0
    return Web(value, rate, first, cap)


def asked(web: Web, budget: float = 40, objective: str = "freshness", **more: float) -> Question:
    return Question(web, budget, objective, LIMITS, None, **more)


def on_hosts(web: Web, answer: Allocation) -> np.ndarray:
    host = np.repeat(np.arange(len(web.cap)), np.diff(web.starts))
    return np.bincount(host, answer.frequency, minlength=len(web.cap))


@pytest.mark.parametrize("objective", ["freshness", "age", "harmonic"])
@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("seed", range(5))
def test_no_policy_spends_more_than_the_budget_nor_on_what_is_blocked(name: str, seed: int, objective: str) -> None:
    web = some_web(seed)
    for days in (0.0, 1e6):
        found = POLICIES[name].answer(asked(web, objective=objective, days=days, horizon=100.0))
        of_host = on_hosts(web, found)
        assert of_host.sum() <= 40 * (1 + 1e-9) and of_host[5] == 0
        if name != "optimal":
            assert (of_host <= web.cap * (1 + 1e-9)).all(), "no more than the gap of a host allows"


@pytest.mark.parametrize("seed", range(5))
def test_uniform_visits_are_equal_but_where_a_host_is_slow(seed: int) -> None:
    web = some_web(seed)
    found = POLICIES["uniform"].answer(asked(web))
    of_host, pages = np.split(found.frequency, web.starts[1:-1]), np.diff(web.starts)
    most = max(of_page.max(initial=0) for of_page in of_host)
    for of_page, cap, count in zip(of_host, web.cap, pages, strict=True):
        assert of_page == pytest.approx(min(most, cap / count if count else 0))
    assert found.frequency.sum() == pytest.approx(40)
    assert found.price == math.inf, "nothing that is learnt of a page brings it more"


@pytest.mark.parametrize("seed", range(5))
def test_proportional_visits_are_so_but_where_a_host_is_slow(seed: int) -> None:
    web = some_web(seed)
    found = POLICIES["proportional"].answer(asked(web))
    counts = (web.value > 0) & (web.rate > 0)
    host = np.repeat(np.arange(len(web.cap)), np.diff(web.starts))
    per_change = np.divide(found.frequency, web.rate, out=np.zeros(len(web.rate)), where=counts)
    below = counts & (found.frequency < 100 * (1 - 1e-9))  # the shortest interval
    for of_host in range(len(web.cap)):
        some = per_change[below & (host == of_host)]
        assert some == pytest.approx(some[:1].repeat(len(some)), rel=1e-9)
    most = per_change[below].max()
    for slow in np.flatnonzero(found.capped & (web.cap > 0)):
        assert on_hosts(web, found)[slow] == pytest.approx(web.cap[slow])
        assert per_change[below & (host == slow)].max() < most
    assert (found.frequency[~counts] == 0).all()


def test_without_gaps_the_best_is_the_optimum() -> None:
    web = some_web(1)
    wide = Web(web.value, web.rate, web.starts, np.where(web.cap > 0, np.inf, 0))
    optimal, polite, free = (
        POLICIES[name].answer(asked(some)) for name, some in (("optimal", web), ("opt_polite", web), ("optimal", wide))
    )
    best = allocate(wide, 40, limits=LIMITS)
    assert (optimal.frequency == best.frequency).all() and free.utility == pytest.approx(best.utility)
    assert optimal.utility < polite.utility < free.utility, "told as it will be: late on hosts that cannot keep up"
    assert optimal.spent == pytest.approx(np.minimum(on_hosts(web, optimal), web.cap).sum())


def test_best_first_never_comes_back() -> None:
    web = some_web(2)
    assert not POLICIES["best_first"].answer(asked(web)).frequency.any()


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_worth_more_than_the_best(seed: int) -> None:
    web = some_web(seed)
    pure = Question(web, 40, "freshness", Limits(shortest_interval=0.01))
    best = POLICIES["opt_polite"].answer(pure).utility
    for name in ("uniform", "proportional", "best_first"):
        assert POLICIES[name].answer(pure).utility <= best * (1 + 1e-9)


# ------------------------------------------------------------------------------------------------------ learning


def test_who_is_greedy_visits_all_equally_often_in_the_first_phase_alone() -> None:
    web = some_web(4)
    phase = epsilon_greedy.phase(asked(web))
    assert 0 < phase <= len(web.rate) / 40
    no_exploring = Question(web, 40, "freshness", Limits())
    static = Question(replace(web, rate=np.zeros(len(web.rate))), 40, "freshness", LIMITS)
    assert epsilon_greedy.phase(no_exploring) == epsilon_greedy.phase(static) == len(web.rate) / 40, "a whole round"
    policy = POLICIES["epsilon_greedy"]
    assert policy.answer(asked(web, days=phase * 0.99)).price == math.inf
    assert policy.answer(asked(web, days=phase)).utility == allocate(web, 40, limits=LIMITS).utility
