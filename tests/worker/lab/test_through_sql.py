"""Worlds through real verbs and jobs on a virtual clock, and beside what is computed without a database."""

import math
import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import psycopg
import pytest

from recrawl.lab import through_sql, worlds
from recrawl.lab.outcome import Fetches, Outcome, judged
from recrawl.lab.replay import replay as let_loose
from recrawl.lab.world import World
from recrawl.model.policies.registry import POLICIES


def fetches(rng: np.random.Generator, world: World, end: float) -> Fetches:
    pages, days = [], []
    for page in range(world.pages):
        lives_until = min(world.died[page], end)
        made = world.born[page] + (lives_until - world.born[page]) * rng.random(rng.integers(0, 6))
        pages += [page] * len(made)
        days += made.tolist()
    order = rng.permutation(len(pages))
    return Fetches(np.array(pages, np.int64)[order], np.array(days, float)[order])


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_what_came_of_fetches_is_what_a_plain_loop_finds(kind: str) -> None:
    begin, end = 5.0, 28.0
    world = worlds.draw(kind, seed=2, hosts=3, pages=60, days=30).between(begin, end)
    rng = np.random.default_rng(4)
    made = fetches(rng, world, end)
    made = Fetches(made.page[made.day > begin], made.day[made.day > begin])
    lived = fresh = missed = 0.0
    seen = 0
    for page in range(world.pages):
        visits = sorted(made.day[made.page == page])
        changes = world.changed_at[world.first_change[page] : world.first_change[page + 1]]
        ends, here = min(world.died[page], end), max(world.born[page], begin)
        lived += ends - here
        for visit, following in pairwise([*visits, ends]):
            stale_from = min([change for change in changes if change > visit] + [math.inf])
            fresh += min(following, stale_from) - visit
        for change in changes:
            after = [visit for visit in visits if visit >= change]
            seen += bool(after)
            missed += (after[0] if after else ends) - change
    found = judged(world, "any", 0.1, begin, end, made)
    assert found.freshness == pytest.approx(fresh / lived)
    assert (found.changes_seen, found.fetches) == (seen, len(made.day))
    assert found.mean_delay_days == pytest.approx(missed / len(world.changed_at))


def test_drawn_worlds_are_as_they_say() -> None:
    steady, drift, turnover = (worlds.draw(kind, seed=3, pages=1500, days=60) for kind in worlds.KINDS)
    assert np.all(steady.died == np.inf) and steady.born.max() < worlds.FOUND_WITHIN
    assert np.mean(turnover.died < 60) > 0.4 and turnover.born.max() > 50
    for world in (steady, drift, turnover):
        page = np.repeat(np.arange(world.pages), np.diff(world.first_change))
        assert np.all(world.changed_at > world.born[page]) and np.all(world.changed_at <= world.died[page])
        assert np.all(np.diff(world.changed_at)[np.diff(page) == 0] >= 0)

    def both_halves(world: World) -> np.ndarray:
        page = np.repeat(np.arange(world.pages), np.diff(world.first_change))
        halves = [np.bincount(page[at], minlength=world.pages) for at in (world.changed_at < 35, world.changed_at > 35)]
        return np.corrcoef(*np.log1p(halves))

    assert both_halves(drift)[0, 1] < both_halves(steady)[0, 1] - 0.05, "rates move away from what they were"


def settled(world: World, since: float, end: float, before: Outcome, whole: Outcome) -> float:
    """Freshness from a day on, of a world whose pages are born before it."""
    lived = [float((np.minimum(world.died, day) - np.maximum(world.born, 0)).sum()) for day in (since, end)]
    stale = [(1 - found.freshness) * days for found, days in zip((before, whole), lived, strict=True)]
    return 1 - (stale[1] - stale[0]) / (lived[1] - lived[0])


def all_there(kind: str, seed: int, **size: int) -> World:
    """A world whose pages are there from the beginning: known then, without a database; new, through SQL."""
    world = worlds.draw(kind, seed, **size)
    return replace(world, born=np.full(world.pages, -1.0))


def hold_together(url: str, world: World, policy: str, budget: float, since: float, end: float, within: float) -> None:
    """Settled freshness through SQL is what it is without, but for what chance does to a single run."""
    made = through_sql.crawl(url, world, policy, budget, 0.0, end)
    by_sql = [judged(world.between(0.0, day), policy, budget, 0.0, day, made.before(day)) for day in (since, end)]
    found = []
    for seed in range(8):
        computed = [let_loose(world, POLICIES[policy], budget, 0.0, day, seed) for day in (since, end)]
        after = [outcomes[1].fetches - outcomes[0].fetches for outcomes in (by_sql, computed)]
        assert after[0] == pytest.approx(after[1], rel=0.02), "both spend the budget"
        found.append(settled(world, since, end, *computed))
    by_chance = 2 * statistics.stdev(found)
    assert settled(world, since, end, *by_sql) == pytest.approx(statistics.mean(found), abs=within + by_chance)


def test_sql_does_what_is_computed_without_it(url: str) -> None:
    world = all_there("steady", seed=1, hosts=5, pages=800, days=20)
    hold_together(url, world, "uniform", 0.4, 6.0, 20.0, within=0.01)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "policy"), [("steady", "opt_polite"), ("steady", "uniform"), ("drift", "opt_polite")])
def test_sql_does_what_is_computed_without_it_within_three_tenths_of_a_percent(
    url: str, kind: str, policy: str
) -> None:
    world = all_there(kind, seed=1, hosts=10, pages=5000, days=60)
    hold_together(url, world, policy, 0.2, 25.0, 60.0, within=0.003)


def test_pages_that_died_are_found_gone_once(url: str) -> None:
    world = worlds.draw("turnover", seed=1, hosts=4, pages=150, days=20)
    made = through_sql.crawl(url, world, "opt_polite", 0.5, 0.0, 20.0)
    assert np.all(made.day <= world.died[made.page])
    with psycopg.connect(url) as db:
        ((gone,),) = db.execute("select count(*) from recrawl.page_status where state = 'gone'").fetchall()
        runs = db.execute("select min(started_at)::date::text, max(started_at)::date::text from recrawl.allocation_run")
        assert runs.fetchall() == [("2001-01-02", "2001-01-20")], "by the crawl's own clock"
    assert 15 < gone <= np.count_nonzero(world.died < 20)
    assert judged(world, "opt_polite", 0.5, 0.0, 20.0, made).freshness > 0.5


def test_hosts_of_a_world_may_have_any_name(url: str) -> None:
    hosts = ["a b", "a/b", "a/c", "A/C", "a.test:80", "ä", "…" * 300, "https://"]
    world = replace(worlds.draw("steady", seed=1, hosts=len(hosts), pages=40, days=3), hosts=hosts)
    made = through_sql.crawl(url, replace(world, born=np.zeros(40)), "uniform", 2.0, 0.0, 2.0)
    assert set(made.page.tolist()) == set(range(40))
    with psycopg.connect(url) as db:
        ((known,),) = db.execute("select count(*) from recrawl.host_status").fetchall()
    assert known == len(set(world.host_of_page.tolist()))


def test_a_simulation_takes_no_database_of_a_crawl(url: str) -> None:
    through_sql.take(url)
    through_sql.take(url)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("select recrawl.set_setting('claimed_by', 'spider news')")
        with pytest.raises(ValueError, match="is the crawl of spider news"):
            through_sql.take(url)
        db.execute("select recrawl.set_setting('claimed_by', 'recrawl simulate')")
        db.execute("select recrawl.add_pages(array['http://a.test/'])")
        with pytest.raises(ValueError, match="has pages already"):
            through_sql.take(url)
