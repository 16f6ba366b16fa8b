"""Worlds crawled by the real functions and jobs on a virtual clock, compared with results without a database."""

import math
import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import psycopg
import pytest

from recrawl.lab import content, through_sql, worlds
from recrawl.lab.outcome import Fetches, Outcome, outcome_of_fetches
from recrawl.lab.replay import replay as let_loose
from recrawl.lab.world import Outages, World
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
        lived += world.value[page] * (ends - here)
        for visit, following in pairwise([*visits, ends]):
            stale_from = min([change for change in changes if change > visit] + [math.inf])
            fresh += world.value[page] * (min(following, stale_from) - visit)
        for change in changes:
            after = [visit for visit in visits if visit >= change]
            seen += bool(after)
            missed += (after[0] if after else ends) - change
    found = outcome_of_fetches(world, "any", 0.1, begin, end, made)
    assert found.freshness == pytest.approx(fresh / lived)
    assert (found.changes_seen, found.fetches) == (seen, len(made.day))
    assert found.mean_delay_days == pytest.approx(missed / len(world.changed_at))


def test_drawn_worlds_are_as_they_say() -> None:
    steady, drift, turnover = (worlds.draw(kind, seed=3, pages=1500, days=60) for kind in worlds.LIVES)
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


@pytest.mark.parametrize("kind", ["values", "outages", "noise"])
def test_other_worlds_are_steady_ones_with_one_thing_more(kind: str) -> None:
    steady, world = (worlds.draw(one, seed=3, hosts=50, pages=1500, days=200) for one in ("steady", kind))
    for field in ("born", "died", "first_page", "first_change", "changed_at"):
        assert np.array_equal(getattr(steady, field), getattr(world, field))
    assert (steady.values, steady.outages, steady.noisy, steady.sketches) == (None,) * 4
    given = {
        "values": world.values is not None, "outages": world.outages is not None, "noise": world.noisy is not None,
    }  # fmt: skip
    assert [name for name, is_given in given.items() if is_given] == [kind]


def test_values_are_drawn_whatever_a_page_is_like() -> None:
    world = worlds.draw("values", seed=3)
    assert np.log(world.value).std() == pytest.approx(worlds.VALUES, rel=0.05)
    assert abs(np.corrcoef(np.log(world.value), np.log1p(np.diff(world.first_change)))[0, 1]) < 0.06


def test_a_tenth_of_the_pages_are_noisy() -> None:
    assert worlds.draw("noise", seed=3).is_noisy.mean() == pytest.approx(worlds.NOISY, abs=0.02)


def test_hosts_are_down_a_tenth_of_the_time_once_all_pages_are_there() -> None:
    world = worlds.draw("outages", seed=3, hosts=100, pages=200, days=210)
    down = world.down
    for host in range(100):
        begin, end = (days[slice(*down.first[host:][:2])] for days in (down.begin, down.end))
        assert np.all(begin < end) and np.all(end[:-1] < begin[1:])
    assert down.begin.min() > worlds.FOUND_WITHIN and down.begin.max() < 210
    assert (np.minimum(down.end, 210) - down.begin).sum() / (100 * 200) == pytest.approx(0.1, abs=0.02)
    assert len(down.begin) == pytest.approx(100 * 200 / (worlds.UP + worlds.DOWN), rel=0.1)


def test_an_outage_is_over_when_it_ends() -> None:
    down = Outages(np.array([0, 0, 2, 3]), np.array([1.0, 5, 2]), np.array([3.0, 6, 9]))
    assert [down.over(1, day) for day in (0.5, 1, 2, 3, 4, 5.5, 6, 7)] == [0.5, 3, 3, 3, 4, 6, 6, 7]
    assert [down.over(host, 2.0) for host in (0, 1, 2)] == [2, 3, 9]
    nothing = worlds.draw("steady", seed=1, hosts=2, pages=5).down
    assert [nothing.over(host, 2.0) for host in (0, 1)] == [2, 2]


def test_content_has_a_sketch_of_every_version_and_some_updates_leave_it() -> None:
    world = worlds.draw("content", seed=3, pages=800, days=40)
    assert world.sketches is not None and world.sketches.shape == (800 + len(world.changed_at), content.SKETCH)
    assert world.sketches.min() >= 0
    assert np.mean(np.diff(world.first_change) == 0) == pytest.approx(content.MIX[content.STATIC], abs=0.06)
    page = np.repeat(np.arange(800), np.diff(world.first_change))
    assert np.all(world.changed_at > world.born[page]) and np.all(np.diff(world.changed_at)[np.diff(page) == 0] > 0)
    after = np.arange(len(world.changed_at)) + page + 1
    differs = (world.sketches[after] != world.sketches[after - 1]).any(axis=1)
    assert np.array_equal(world.version_ids[after] != world.version_ids[after - 1], differs)
    assert 0.5 < differs.mean() < 0.95
    pages = np.repeat(np.arange(800), np.diff(world.first_change) + 1)
    alike = (world.sketches[1:] == world.sketches[:-1]).mean(axis=1)
    assert alike[np.diff(pages) == 0].mean() > 0.5 and alike[np.diff(pages) == 1].max() == 0, "each page has its own"


def test_a_time_of_a_world_has_what_it_had_then() -> None:
    number = np.arange(200)
    whole = replace(
        worlds.draw("content", seed=3, hosts=4, pages=200, days=40),
        died=np.where(number % 3, np.inf, 12.0),
        values=np.arange(200, dtype=np.float64),
        noisy=number % 7 == 0,
    )
    part = whole.between(15.0, 30.0)
    lives = np.flatnonzero(number % 3)
    page = np.repeat(number, np.diff(whole.first_change))
    assert np.array_equal(part.value, lives) and np.array_equal(part.is_noisy, lives % 7 == 0)
    assert part.sketches is not None and whole.sketches is not None
    for now, before in enumerate(lives):
        for day in (15.5, 22.0, 29.5):
            then = np.count_nonzero(whole.changed_at[page == before] <= day)
            changes = part.changed_at[part.first_change[now] : part.first_change[now + 1]]
            sketch = part.sketches[now + part.first_change[now] + np.count_nonzero(changes <= day)]
            assert np.array_equal(sketch, whole.sketches[before + whole.first_change[before] + then])


def settled(world: World, since: float, end: float, before: Outcome, whole: Outcome) -> float:
    """Freshness from a day on."""
    lived = [
        float((world.value * np.maximum(np.minimum(world.died, day) - np.maximum(world.born, 0), 0)).sum())
        for day in (since, end)
    ]
    stale = [(1 - found.freshness) * days for found, days in zip((before, whole), lived, strict=True)]
    return 1 - (stale[1] - stale[0]) / (lived[1] - lived[0])


def all_there(kind: str, seed: int, **size: int) -> World:
    """A world whose pages are there from the beginning: known then, without a database; new, through SQL."""
    world = worlds.draw(kind, seed, **size)
    return replace(world, born=np.full(world.pages, -1.0))


def judged_until(day: float, world: World, policy: str, budget: float, made: Fetches) -> Outcome:
    is_there = (world.born < day) & (world.died > 0)
    made = made.before(day)
    assert is_there[made.page].all()
    there = Fetches((np.cumsum(is_there) - 1)[made.page], made.day)
    return outcome_of_fetches(world.between(0.0, day), policy, budget, 0.0, day, there)


def hold_together(
    url: str, world: World, policy: str, budget: float, since: float, end: float, within: float, spent: float = 0.02
) -> None:
    """Settled freshness through SQL is what it is without, but for what chance does to a single run."""
    made = through_sql.crawl(url, world, policy, budget, 0.0, end)
    by_sql = [judged_until(day, world, policy, budget, made) for day in (since, end)]
    found = []
    for seed in range(8):
        computed = [let_loose(world, POLICIES[policy], budget, 0.0, day, seed) for day in (since, end)]
        after = [outcomes[1].fetches - outcomes[0].fetches for outcomes in (by_sql, computed)]
        assert after[0] == pytest.approx(after[1], rel=spent), "both spend the budget"
        found.append(settled(world, since, end, *computed))
    by_chance = 2 * statistics.stdev(found)
    assert settled(world, since, end, *by_sql) == pytest.approx(statistics.mean(found), abs=within + by_chance)


@pytest.mark.soak
def test_sql_does_what_is_computed_without_it(url: str) -> None:
    world = all_there("steady", seed=1, hosts=5, pages=800, days=20)
    hold_together(url, world, "uniform", 0.4, 6.0, 20.0, within=0.01, spent=0.04)


@pytest.mark.soak
def test_an_outage_costs_through_sql_what_is_computed_without_it(url: str) -> None:
    """And what is asked in vain. Each host is down three times, for a day."""
    begin = np.add.outer(np.arange(5) / 5, [8.0, 12.0, 16.0]).ravel()
    outages = Outages(3 * np.arange(6), begin, begin + 1)
    world = replace(all_there("steady", seed=1, hosts=5, pages=800, days=20), outages=outages)
    hold_together(url, world, "uniform", 0.4, 6.0, 20.0, within=0.06, spent=0.3)


def test_sql_is_told_what_a_page_is_worth_and_what_each_visit_saw(url: str) -> None:
    """Values; changes by sketches, but for the pages whose every answer is another one."""
    pages = np.arange(50)
    world = worlds.draw("content", seed=2, hosts=3, pages=len(pages), days=16).between(12.0, 16.0)
    world = replace(world, values=np.arange(50, dtype=np.float64), noisy=pages % 5 == 0)
    made = through_sql.crawl(url, world, "uniform", 3.0, 12.0, 16.0)
    with psycopg.connect(url) as db:
        known = db.execute(
            "select substring(url from '[0-9]+$')::int, value, successes, changes from recrawl.page_status"
        )
        of_page = {page: row for page, *row in known.fetchall()}
    unseen = 0
    for page in pages.tolist():
        days = np.sort(made.day[made.page == page])
        changes = world.changed_at[world.first_change[page] : world.first_change[page + 1]]
        versions = np.searchsorted(changes, days, "right")
        differ = np.count_nonzero(np.diff(world.version_ids[page + world.first_change[page] + versions]))
        unseen += bool(np.count_nonzero(np.diff(versions)) > differ)
        seen = len(days) - 1 if world.is_noisy[page] else differ
        assert of_page[page] == [page, len(days), seen]
    assert unseen > 2


def test_a_host_that_is_down_is_let_alone_and_its_pages_are_fetched_afterwards(url: str) -> None:
    """Later than it is up again, by no more than it was down, and half an hour."""
    world = all_there("steady", seed=1, hosts=2, pages=200, days=6)
    world = replace(world, outages=Outages(np.array([0, 1, 1]), np.array([2.0]), np.array([3.0])))
    made = through_sql.crawl(url, world, "uniform", 1.0, 0.0, 6.0)
    of_host = [made.day[world.host_of_page[made.page] == host] for host in (0, 1)]
    assert not np.any((of_host[0] > 2) & (of_host[0] < 3)) and np.any((of_host[1] > 2) & (of_host[1] < 3))
    assert of_host[0][of_host[0] > 3].min() < 4 + 1 / 48
    assert np.array_equal(np.unique(made.page[made.day > 4]), np.arange(200))
    with psycopg.connect(url) as db:
        assert db.execute("select count(*) from recrawl.page_status where state <> 'live'").fetchall() == [(0,)]


@pytest.mark.soak
@pytest.mark.parametrize(
    ("kind", "policy"),
    [
        ("steady", "opt_polite"), ("steady", "uniform"), ("drift", "opt_polite"), ("values", "opt_polite"),
        ("noise", "opt_polite"), ("content", "opt_polite"),
    ],
)  # fmt: skip
def test_sql_does_what_is_computed_without_it_within_three_tenths_of_a_percent(
    url: str, kind: str, policy: str
) -> None:
    world = all_there(kind, seed=1, hosts=10, pages=5000, days=60)
    hold_together(url, world, policy, 0.2, 25.0, 60.0, within=0.003)


@pytest.mark.soak
def test_where_pages_come_and_go_sql_does_what_is_computed_without_it_within_three_tenths_of_a_percent(
    url: str,
) -> None:
    """And spends the same, also on finding out which are gone."""
    world = worlds.draw("turnover", seed=1, hosts=10, pages=5000, days=80)
    hold_together(url, world, "opt_polite", 0.2, 40.0, 80.0, within=0.003)


@pytest.mark.soak
def test_outages_cost_through_sql_what_is_asked_in_vain_besides(url: str) -> None:
    """Without it a host that is down is known to be. A sixth of the fetches fail there, and are of the budget too."""
    world = all_there("outages", seed=1, hosts=10, pages=5000, days=60)
    hold_together(url, world, "opt_polite", 0.2, 25.0, 60.0, within=0.03, spent=0.2)


@pytest.mark.soak
def test_pages_that_died_are_found_gone_once(url: str) -> None:
    world = worlds.draw("turnover", seed=1, hosts=4, pages=150, days=20)
    made = through_sql.crawl(url, world, "opt_polite", 0.5, 0.0, 20.0)
    after = made.page[made.day > world.died[made.page]]
    assert len(after) == len(np.unique(after)) and len(after) > 15
    with psycopg.connect(url) as db:
        ((gone,),) = db.execute("select count(*) from recrawl.page_status where state = 'gone'").fetchall()
        runs = db.execute("select min(started_at)::date::text, max(started_at)::date::text from recrawl.allocation_run")
        assert runs.fetchall() == [("2001-01-02", "2001-01-20")], "by the crawl's own clock"
    assert 15 < gone <= np.count_nonzero(world.died < 20)
    assert outcome_of_fetches(world, "opt_polite", 0.5, 0.0, 20.0, made).freshness > 0.5


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
        with pytest.raises(ValueError, match="holds the crawl spider news"):
            through_sql.take(url)
        db.execute("select recrawl.set_setting('claimed_by', 'recrawl simulate')")
        db.execute("select recrawl.add_pages(array['http://a.test/'])")
        with pytest.raises(ValueError, match="has pages already"):
            through_sql.take(url)
