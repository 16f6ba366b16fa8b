"""Policies on webs whose every change is known: against plain loops, closed forms and real histories."""

import heapq
import math
from dataclasses import replace

import numpy as np
import pytest

from recrawl.lab import recorded, worlds
from recrawl.lab.methods import beliefs
from recrawl.lab.outcome import Outcome
from recrawl.lab.policies.registry import SIMULATED
from recrawl.lab.replay import PRODUCTION, Replay, run
from recrawl.lab.replay import replay as let_loose
from recrawl.lab.visits import Events, Pages, VisitTerms, visit
from recrawl.lab.world import Outages, World
from recrawl.model.allocation.solve import Web, allocate
from recrawl.model.policies.registry import POLICIES


def poisson_web(rates: np.ndarray, days: float, seed: int = 3) -> World:
    """Pages of one host that change at random moments. They live from the beginning and never die."""
    rng = np.random.default_rng(seed)
    changes = [np.sort(rng.uniform(0, days, rng.poisson(rate * days))) for rate in rates]
    return World(
        hosts=["a.test"],
        first_page=np.array([0, len(rates)]),
        born=np.full(len(rates), -1.0),
        died=np.full(len(rates), np.inf),
        first_change=np.append(0, np.cumsum([len(of_page) for of_page in changes])),
        changed_at=np.concatenate([*changes, np.empty(0)]),
    )


# --------------------------------------------------------------------------------- one by one, and all at once


def some_pages(rng: np.random.Generator, size: int, hosts: int, end: float) -> tuple[Pages, Events]:
    changes = [np.sort(rng.uniform(0, end, rng.poisson(rng.gamma(0.5) * end))) for _ in range(size)]
    first = np.append(0, np.cumsum([len(of_page) for of_page in changes]))
    pages = Pages(
        host=np.sort(rng.integers(hosts, size=size)),
        born=np.full(size, -1.0),
        died=np.where(rng.random(size) < 0.3, rng.uniform(0, end, size), np.inf),
        next_change=first[:-1].copy(),
        last_change=first[1:].copy(),
        value=rng.uniform(0.1, 5, size),
        is_noisy=rng.random(size) < 0.2,
        seen_at=np.zeros(size),
        is_gone=np.zeros(size, bool),
        due_at=rng.uniform(-1, 3, size),
        planned_interval=np.full(size, np.nan),
        seen_changes=np.zeros(size),
        seen_days=np.zeros(size),
        frequency=rng.uniform(0, 1, size),
        stale_days=np.zeros(size),
        missed_days=np.zeros(size),
        changes_seen=np.zeros(size, np.int64),
    )
    down_at, up_at = np.sort(rng.uniform(0, end, (hosts, 4, 2)).reshape(hosts, -1)).reshape(-1, 2).T
    return pages, Events(
        changed_at=np.concatenate([*changes, np.empty(0)]),
        version_ids=rng.integers(2, size=first[-1] + size),
        first_outage=4 * np.arange(hosts + 1),
        down_at=down_at.copy(),
        up_at=up_at.copy(),
    )


@pytest.mark.parametrize("learns", [True, False])
@pytest.mark.parametrize("sketches", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_all_at_once_is_what_a_queue_does_page_by_page(seed: int, sketches: bool, learns: bool) -> None:
    """Against a heap of due times, and the filter as it is written in arrays."""
    rng = np.random.default_rng(seed)
    begin, end = 0.5, 20.0
    pages, events = some_pages(rng, 40, 3, end)
    if not sketches:
        events = events._replace(version_ids=np.empty(0, np.int64))
    begun = pages.next_change.tolist()  # of the version that the last visit saw
    terms = VisitTerms(
        prior_changes=rng.uniform(0.3, 2, 3),
        prior_days=rng.uniform(1, 9, 3),
        price=np.array([0.3, 1.0, math.inf]),
        floor=np.array([0.05, 0.0, 0.2]),
        ceiling=3.0,
        objective="poisson_freshness",
        learns=learns,
    )
    due = pages.due_at.tolist()
    seen, frequency = [0.0] * 40, pages.frequency.tolist()
    belief = [(0.0, 0.0)] * 40
    stale, missed, found, visits = [0.0] * 40, [0.0] * 40, [0] * 40, 0
    queue = [(at, page) for page, at in enumerate(due)]
    heapq.heapify(queue)
    while queue and queue[0][0] < end:
        at, page = heapq.heappop(queue)
        now, outages = max(at, begin), slice(*events.first_outage[pages.host[page] :][:2])
        over = [up for down, up in zip(events.down_at[outages], events.up_at[outages], strict=True) if down <= now < up]
        if over:
            heapq.heappush(queue, (over[0], page))
            continue
        visits += 1
        if now >= pages.died[page]:
            continue
        own = events.changed_at[pages.next_change[page] : pages.last_change[page]]
        new = own[(own > seen[page]) & (own <= now)]
        if len(new):
            stale[page] += now - new[0]
            missed[page] += float((now - new).sum())
            found[page] += len(new)
        last, begun[page] = begun[page], begun[page] + len(new)
        looks = events.version_ids[[last + page, begun[page] + page]] if sketches else [0, len(new)]
        sees_change = pages.is_noisy[page] or looks[0] != looks[1]
        if learns and now > seen[page]:
            prior = float(terms.prior_changes[pages.host[page]]), float(terms.prior_days[pages.host[page]])
            before = prior[0] + belief[page][0], prior[1] + belief[page][1]
            faded = beliefs.remembered(*before, *prior, now - seen[page])
            a, b = (beliefs.changed if sees_change else beliefs.unchanged)(*faded, now - seen[page])
            belief[page] = float(a) - prior[0], float(b) - prior[1]
            rate, price = float(a / b), float(terms.price[pages.host[page]])
            wanted = max(0.0, math.sqrt(pages.value[page] * rate / price) - rate)
            frequency[page] = min(3.0, max(float(terms.floor[pages.host[page]]), wanted))
        seen[page] = now
        if frequency[page] > 0:
            following = at + 1 / frequency[page]
            while following < now:
                following += 1 / frequency[page]
            heapq.heappush(queue, (following, page))
    assert visit(begin, end, pages, events, terms) == visits
    np.testing.assert_allclose(pages.stale_days, stale, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pages.missed_days, missed, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pages.frequency, frequency, rtol=1e-9)
    np.testing.assert_allclose(np.transpose([pages.seen_changes, pages.seen_days]), belief, rtol=1e-9, atol=1e-12)
    assert pages.changes_seen.tolist() == found


# -------------------------------------------------------------------------------------------------- closed forms


def test_uniform_visits_of_pages_of_one_rate_are_as_fresh_as_the_formula_says() -> None:
    rate, budget = 0.5, 0.25
    web = poisson_web(np.full(2000, rate), 400)
    found = let_loose(web, POLICIES["uniform"], budget, 0, 400)
    assert found.freshness == pytest.approx(budget / rate * -math.expm1(-rate / budget), abs=0.005)
    assert found.mean_delay_days == pytest.approx(1 / budget / 2, rel=0.02)
    assert found.fetches == pytest.approx(budget * 2000 * 400, rel=0.01)
    assert found.changes == len(web.changed_at) >= found.changes_seen


def test_what_is_learnt_is_worth_nearly_what_it_is_to_know() -> None:
    """Half a point of freshness less than with the true rates from the start."""
    rates = np.random.default_rng(1).lognormal(-1.5, 1.5, 3000)
    web = poisson_web(rates, 400)
    found = let_loose(web, POLICIES["opt_polite"], 0.3, 0, 400)
    known = allocate(Web(np.ones(3000), rates, np.array([0, 3000]), np.array([np.inf])), 0.3 * 3000)
    assert known.utility / 3000 - 0.01 <= found.freshness <= known.utility / 3000 + 0.005
    assert found.fetches == pytest.approx(0.3 * 3000 * 400, rel=0.02)


def test_a_page_that_is_found_gone_is_fetched_once_more_and_counts_for_as_long_as_it_lived() -> None:
    never = poisson_web(np.zeros(1), 100)
    web = replace(never, died=np.array([10.0]), changed_at=np.array([4.0]), first_change=np.array([0, 1]))
    found = let_loose(web, POLICIES["uniform"], 0.05, 0, 100, seed=0)
    assert (found.changes, found.changes_seen) == (1, 0)
    assert found.freshness == pytest.approx(0.4) and found.mean_delay_days == pytest.approx(6)
    assert found.fetches <= 1


def test_a_page_is_fetched_when_it_is_born() -> None:
    web = replace(poisson_web(np.zeros(2), 100), born=np.array([-1.0, 50.0]))
    found = let_loose(web, POLICIES["best_first"], 1, 0, 100)
    assert (found.fetches, found.freshness) == (1, 1)


# --------------------------------------------------------------------------- values, outages, noise and content


def test_freshness_is_by_value() -> None:
    """One host per page, so that the result of each page is known. Uniform fetches do not depend on values."""
    rates, values = np.array([0.0, 0.1, 1.0, 5.0]), np.array([1.0, 2.0, 4.0, 8.0])
    web = replace(poisson_web(rates, 50), hosts=list("abcd"), first_page=np.arange(5))
    plain, weighed = (let_loose(of, POLICIES["uniform"], 0.5, 0, 50) for of in (web, replace(web, values=values)))
    assert weighed.freshness == pytest.approx(np.average([host.freshness for host in plain.hosts], weights=values))
    assert plain.freshness > weighed.freshness + 0.1
    assert weighed.hosts == plain.hosts


def test_what_is_worth_more_is_visited_more() -> None:
    web = replace(poisson_web(np.full(400, 0.5), 200), values=np.repeat([1.0, 10.0], 200))
    crawl = Replay(web, POLICIES["opt_polite"], 0.2, 0, 200, np.random.default_rng(0))
    run(crawl, lambda days: None)
    assert crawl.pages.frequency[200:].mean() > 3 * crawl.pages.frequency[:200].mean()


def test_a_page_that_only_seems_to_change_is_fresh_and_deceives_the_filter() -> None:
    web = replace(poisson_web(np.zeros(200), 100), noisy=np.arange(200) < 100)
    crawl = Replay(web, POLICIES["proportional"], 0.5, 0, 100, np.random.default_rng(0))
    found = run(crawl, lambda days: None)
    assert (found.freshness, found.changes, found.changes_seen) == (1, 0, 0)
    assert crawl.pages.seen_changes[:100].min() > 1 and crawl.pages.seen_changes[100:].max() == 0
    assert crawl.pages.frequency[:100].mean() > 10 * crawl.pages.frequency[100:].mean()


def test_what_is_due_in_an_outage_is_visited_when_that_is_over() -> None:
    """A fetch per day, except on ten days; one change on day 30, while the host was down."""
    outages = Outages(np.array([0, 2]), np.array([10.0, 28.0]), np.array([15.0, 33.0]))
    web = replace(
        poisson_web(np.zeros(1), 50), changed_at=np.array([30.0]), first_change=np.array([0, 1]), outages=outages
    )
    found = let_loose(web, POLICIES["uniform"], 1.0, 0, 50)
    assert found.mean_delay_days == pytest.approx(3) and found.freshness == pytest.approx(1 - 3 / 50)
    assert found.fetches == pytest.approx(50 - 10, abs=1.5)


def test_an_update_that_leaves_the_sketch_teaches_nothing_and_is_seen_all_the_same() -> None:
    changes = np.tile(np.arange(1.0, 100.0, 2), 2)
    looks = np.concatenate((np.zeros(51), np.arange(51)))
    web = replace(
        poisson_web(np.zeros(2), 100),
        changed_at=changes,
        first_change=np.array([0, 50, 100]),
        sketches=np.repeat(looks.astype(np.int32)[:, None], 8, axis=1),
    )
    crawl = Replay(web, POLICIES["uniform"], 0.5, 0, 100, np.random.default_rng(0))
    found = run(crawl, lambda days: None)
    assert crawl.pages.seen_changes[0] == 0 < crawl.pages.seen_changes[1]
    assert found.changes_seen == pytest.approx(100, abs=2)


# -------------------------------------------------------------------------------------------------- a real web


@pytest.fixture(scope="module")
def sample() -> World:
    return recorded.read("sample")


def test_the_default_is_ahead_on_a_real_web(sample: World) -> None:
    ours, *others = (
        let_loose(sample, POLICIES[name], 0.03, 4500, 5100) for name in ("opt_polite", "uniform", "proportional")
    )
    assert_ahead(ours, others)


@pytest.mark.soak
@pytest.mark.parametrize("budget", [0.01, 0.03, 0.1, 0.3])
def test_at_every_budget_the_default_is_ahead_in_freshness_and_in_delay(sample: World, budget: float) -> None:
    ours, *others = (
        let_loose(sample, POLICIES[name], budget, 3000, 5800, 1) for name in ("opt_polite", "uniform", "proportional")
    )
    assert_ahead(ours, others)


def assert_ahead(ours: Outcome, others: list[Outcome]) -> None:
    for other in others:
        assert ours.freshness > other.freshness and ours.mean_delay_days < other.mean_delay_days, other
        assert ours.fetches <= 1.02 * other.fetches, "not because it spent more"


@pytest.mark.soak
@pytest.mark.parametrize("budgets", [(0.01, 0.01), (0.003, 0.003), (0.1, 0.01), (0.3, 0.003)])
def test_no_host_freezes_where_the_budget_is_scarce_or_becomes_so(sample: World, budgets: tuple[float, float]) -> None:
    """Mass edits raise what is expected of a whole host, which freshness then drops. Floors keep half of uniform's."""

    def late_freshness(name: str) -> np.ndarray:
        crawl = Replay(sample.between(3000, 5800), POLICIES[name], budgets[0], 3000, 5800, np.random.default_rng(1))
        for day in range(3000, 5800):
            if day == 4200:
                crawl.budget, before = budgets[1], crawl.stale_days_until(4200)
            crawl.day(day, day + 1)
        lived = np.minimum(crawl.pages.died, 5800) - np.maximum(crawl.pages.born, 4200)
        of_host = [
            np.bincount(crawl.pages.host, days, minlength=7)
            for days in (crawl.stale_days_until(5800) - before, np.maximum(lived, 0))
        ]
        return 1 - of_host[0] / of_host[1]

    ours, uniform = late_freshness("opt_polite"), late_freshness("uniform")
    assert (ours >= 0.8 * uniform).all(), (ours, uniform)


@pytest.mark.parametrize("name", SIMULATED)
def test_every_policy_keeps_to_the_budget_and_to_its_seed(sample: World, name: str) -> None:
    first, again = (let_loose(sample, SIMULATED[name], 0.1, 5000, 5200, seed=4) for _ in range(2))
    assert first == again
    assert 0 < first.freshness < 1 and 0 < first.fetches <= 1.05 * 0.1 * sample.between(5000, 5200).pages * 200


@pytest.mark.parametrize(
    ("budget", "days", "problem"),
    [
        (0, (0, 1), "budget must be a positive number"),
        (math.nan, (0, 1), "budget must be a positive number"),
        (1, (5, 5), "the end must come after the beginning, day 5; got 5"),
        (1, (0, math.inf), "days must lie between -1,000,000 and 1,000,000, got 0 to inf"),
        (1, (-math.inf, 9), "days must lie between"),
        (1, (1e17, 2e17), "days must lie between"),
        (1, (math.nan, 9), "days must lie between"),
        (1, (0, math.nan), "days must lie between"),
        (1, (9000, 9001), "no page lives between day 9000 and day 9001"),
    ],
)
def test_what_makes_no_sense_is_refused(budget: float, days: tuple[float, float], problem: str) -> None:
    web = replace(poisson_web(np.ones(3), 10), died=np.full(3, 20.0))
    with pytest.raises(ValueError, match=problem):
        let_loose(web, POLICIES["uniform"], budget, *days)


def test_a_web_without_a_change_is_always_fresh() -> None:
    found = let_loose(poisson_web(np.zeros(10), 10), POLICIES["opt_polite"], 1, 0, 10)
    assert (found.freshness, found.changes, found.mean_delay_days) == (1, 0, 0)


class Patient(Replay):
    limits = replace(PRODUCTION, longest_interval=math.inf)


@pytest.mark.parametrize(("kind", "gain"), [("drift", 0.04), ("steady", -0.01)])
def test_a_longest_interval_pays_where_rates_drift_and_costs_little_where_they_do_not(kind: str, gain: float) -> None:
    world, policy = worlds.draw(kind, seed=1, hosts=20, pages=2000, days=400), POLICIES["opt_polite"]
    limited, unlimited = (
        run(crawl(world, policy, 0.03, 0, 400, np.random.default_rng(0)), lambda days: None).freshness
        for crawl in (Replay, Patient)
    )
    assert limited > unlimited + gain, (limited, unlimited)
