"""Hub and authority scores are right, and no cash is made or lost."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.linalg import eigs

from recrawl.model.graph import graph, opic
from recrawl.model.graph.graph import Graph
from recrawl.model.graph.opic import Cash

TOY = graph.compile([1, 2, 3, 4], [1, 2, 3], [0, 1, 2, 5], [2, 4, 1, 2, 4])
EXACT = 1e-6  # what a page gives is a float32

Relevance = NDArray[np.float32]


def relevances(*of: float) -> Relevance:
    return np.array(of, np.float32)


def random_graph(pages: int, links: int, seed: int = 1) -> Graph:
    rng = np.random.default_rng(seed)
    sources = np.sort((pages * rng.random(links) ** 2).astype(np.int64))
    targets = pages - 1 - (pages * rng.random(links) ** 3).astype(np.int64)
    first = np.searchsorted(sources, np.arange(pages + 1))
    return graph.compile(np.arange(pages), np.arange(pages), first, targets)


def edited(of: Graph, added: Any, removed: Any, sources: Any, targets: NDArray[np.int64]) -> Graph:
    """The graph with more pages and fewer pages, in which source n links to the pages targets[n] and to no others."""
    pages = np.setdiff1d(np.union1d(of.page_ids, added), removed)
    ids = of.page_ids[of.out]
    rows = {int(page): ids[of.out_starts[p] : of.out_starts[p + 1]] for p, page in enumerate(of.page_ids)}
    rows |= dict(zip(np.asarray(sources).tolist(), targets, strict=True))
    starts = np.cumsum([0, *(len(row) for row in rows.values())])
    return graph.compile(pages, list(rows), starts, np.concatenate(list(rows.values())))


def far(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.abs(one - other).sum())


def by_eigenvector(of: Graph, relevance: Relevance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same cash flow as one big matrix over pages and the virtual page, and its eigenvector by ARPACK."""
    n = of.pages
    into = np.diff(of.into_starts)
    sources = np.repeat(np.arange(n), np.diff(of.out_starts))
    adjacency = scipy.sparse.csr_array((np.ones(of.links), (sources, of.out)), shape=(n, n))
    r = np.where(np.isnan(relevance), 0.5, relevance).astype(float)
    back = np.where(into > 0, r / np.maximum(into * r + 1 - r, 1e-300), 0)
    hub_part = 1 / (np.diff(of.out_starts) + 1)
    everyone = np.full((n, 1), 1 / n)
    forth = with_virtual(adjacency.T @ scipy.sparse.diags_array(hub_part), everyone, hub_part)
    and_back = with_virtual(adjacency @ scipy.sparse.diags_array(back), everyone, 1 - into * back)
    _, vectors = eigs(and_back @ forth, k=1, which="LM", tol=1e-13)
    hub = np.real(vectors[:, 0])
    authority = (forth @ hub)[:n]
    return hub[:n] / hub[:n].sum(), authority / authority.sum()


csr: Any = scipy.sparse.csr_array


def with_virtual(pages: Any, column: NDArray[np.float64], row: NDArray[np.float64]) -> Any:
    return csr(scipy.sparse.block_array([[pages, csr(column)], [csr(row[None, :]), None]]))


# --------------------------------------------------------------------------------------------------- known answers


def test_without_relevance_a_page_is_worth_its_links() -> None:
    scores = opic.run(TOY, start=Cash.uniform(TOY.pages), error=1e-5)
    assert scores.hub * 9 == pytest.approx([2, 2, 4, 1], rel=EXACT)
    assert scores.authority * 9 == pytest.approx([2, 3, 1, 3], rel=EXACT)


def test_the_centre_of_a_wheel_is_worth_five_of_seventeen() -> None:
    wheel = graph.compile(range(5), range(5), [0, 4, 6, 8, 10, 12], [1, 2, 3, 4, 0, 2, 0, 3, 0, 4, 0, 1])
    scores = opic.run(wheel, start=Cash.uniform(wheel.pages), error=1e-5)
    for side in (scores.hub, scores.authority):
        assert side * 17 == pytest.approx([5, 3, 3, 3, 3], rel=EXACT)


def test_relevance_draws_cash_to_the_hubs_of_relevant_pages() -> None:
    scores = opic.run(TOY, relevances(1, 0.8, 0.5, 0.25), error=1e-5)
    assert scores.hub == pytest.approx([0.24543, 0.16159, 0.48476, 0.10823], abs=1e-5)
    assert scores.authority == pytest.approx([0.22509, 0.37362, 0.07841, 0.32288], abs=1e-5)


@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 90))
def test_any_graph_without_relevance_has_the_closed_form(seed: int, pages: int, links: int) -> None:
    of = random_graph(pages, links, seed)
    scores = opic.run(of, start=Cash.uniform(of.pages), error=1e-5, most_sweeps=20_000)
    assert scores.sweeps.converged
    assert far(scores.authority, (np.diff(of.into_starts) + 1) / (of.links + pages)) < 1e-4
    assert far(scores.hub, (np.diff(of.out_starts) + 1) / (of.links + pages)) < 1e-4


@pytest.mark.parametrize("low", [0.0, 0.3])
def test_with_relevance_scores_are_the_eigenvector_of_the_cash_flow(low: float) -> None:
    of = random_graph(2000, 15_000)
    rng = np.random.default_rng(2)
    relevance = rng.uniform(low, 1, of.pages).astype(np.float32)
    relevance[rng.random(of.pages) < 0.1] = np.nan
    relevance[:20], relevance[20:40] = 0, 1
    scores = opic.run(of, relevance, error=1e-5)
    hub, authority = by_eigenvector(of, relevance)
    assert scores.sweeps.converged
    assert far(scores.hub, hub) < 1e-6 and far(scores.authority, authority) < 1e-6


def test_unknown_relevance_is_one_half() -> None:
    unknown, half, none = (
        opic.run(TOY, r, error=1e-5) for r in (relevances(*[np.nan] * 4), relevances(*[0.5] * 4), None)
    )
    assert unknown.hub.tolist() == half.hub.tolist() == none.hub.tolist()


def test_relevance_makes_its_hub_not_itself() -> None:
    """Two hubs with one page each: the hub of the relevant page is the better one."""
    of = graph.compile([1, 2, 3, 4], [1, 2], [0, 1, 2], [3, 4])
    hub = opic.run(of, relevances(0.5, 0.5, 0.9, 0.1), error=1e-5).hub
    assert hub[0] > 1.5 * hub[1] and hub[2] == hub[3]


@pytest.mark.parametrize("relevance", [0.0, 0.5, 1.0])
def test_pages_without_links_are_alike(relevance: float) -> None:
    scores = opic.run(graph.compile(range(5), [], [0], []), relevances(*[relevance] * 5))
    assert scores.sweeps.converged
    assert scores.hub.tolist() == scores.authority.tolist() == [0.2] * 5


def test_where_nothing_is_relevant_all_hubs_are_alike() -> None:
    scores = opic.run(TOY, relevances(0, 0, 0, 0), error=1e-5)
    assert scores.sweeps.converged
    assert far(scores.hub, np.full(4, 0.25)) < 1e-6 and far(scores.authority, np.full(4, 0.25)) < 1e-5
    drained = Cash(np.zeros(4), 1.0)
    assert opic.run(TOY, relevances(0, 0, 0, 0), drained).hub.tolist() == [0.25] * 4


def test_relevance_of_one_keeps_authority_cash_among_pages() -> None:
    """Every page has a parent and all are fully relevant: the virtual page as a hub has nothing, and never less."""
    ring = graph.compile(range(7), range(7), range(8), [1, 2, 3, 4, 5, 6, 0])
    scores = opic.run(ring, np.ones(7, np.float32), error=1e-5)
    assert 0 <= scores.cash.virtual < 1e-6 * scores.cash.total
    assert scores.hub == pytest.approx(np.full(7, 1 / 7), rel=1e-6)


def test_parts_that_are_not_connected_share_by_their_links() -> None:
    parts = graph.compile(range(6), [0, 1, 3], [0, 1, 2, 3], [1, 0, 4])
    scores = opic.run(parts, start=Cash.uniform(parts.pages), error=1e-5)
    assert scores.authority * 9 == pytest.approx([2, 2, 1, 1, 2, 1], rel=1e-6)


def test_a_page_may_have_a_million_parents() -> None:
    pages = np.arange(1_000_001)
    of = graph.compile(pages, pages[1:], np.arange(1_000_001), np.zeros(1_000_000, np.int64))
    scores = opic.run(of, start=Cash.uniform(len(pages)), error=1e-5)
    assert scores.authority[0] == pytest.approx(1_000_001 / 2_000_001, rel=1e-5)
    assert scores.cash.total == pytest.approx(1_000_002, rel=1e-12)


def test_an_empty_graph_has_no_scores() -> None:
    scores = opic.run(graph.compile([], [], [0], []))
    assert (len(scores.hub), scores.sweeps.converged, scores.cash.total) == (0, True, 1.0)


# ------------------------------------------------------------------------------------------------------ conservation


@given(st.integers(0, 2**32))
def test_there_is_one_for_every_page_and_one_for_the_virtual_page_through_all_edits_and_restarts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = random_graph(20, 60, seed)
    cash = Cash.uniform(of.pages)
    for _ in range(12):
        relevance = rng.choice(relevances(0, 0.001, 0.5, 1, np.nan), of.pages)
        scores = opic.run(of, relevance, cash, most_sweeps=int(rng.integers(1, 4)))
        assert scores.cash.total == pytest.approx(of.pages + 1, rel=1e-12)
        assert scores.cash.virtual >= 0 and (scores.cash.hub >= 0).all()
        before, removed = of, rng.integers(0, 40, 4)
        sources = rng.choice(40, 3, replace=False)
        added = np.setdiff1d(rng.integers(0, 40, 4), removed)
        of = edited(of, added, removed, sources, rng.integers(0, 40, (3, 5)))
        cash = opic.resumed(of, carried(before, of, scores.hub))


def carried(before: Graph, after: Graph, hub: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores of the pages that are still there; nan for new ones."""
    where = graph.positions(before.page_ids, after.page_ids)
    return np.where(where == graph.NOWHERE, np.nan, hub[np.minimum(where, before.pages - 1)])


def test_a_run_goes_on_where_the_last_one_ended() -> None:
    of = random_graph(2000, 10_000)
    relevance = np.random.default_rng(1).random(of.pages, np.float32)
    exact = opic.run(of, relevance, error=1e-5)
    resumed = opic.resumed(of, exact.hub)
    assert far(resumed.hub / resumed.total, exact.cash.hub / exact.cash.total) < 1e-5
    assert opic.run(of, relevance, resumed).sweeps.count == 2, "there is a residual from the second on"


def test_a_new_page_starts_with_as_much_for_each_link_as_others() -> None:
    before = random_graph(200, 1000)
    scores = opic.run(before)
    after = edited(before, [200, 201], [], [200], np.array([[3, 4]]))
    cash = opic.resumed(after, carried(before, after, scores.hub))
    links = np.diff(after.out_starts)
    assert cash.hub[200] == pytest.approx(2 * cash.hub[:200].sum() / links[:200].sum()) and cash.hub[201] == 0


def test_pages_that_nothing_is_known_of_start_by_their_links_where_all_ends_without_relevance() -> None:
    assert opic.resumed(TOY, np.full(4, np.nan)).hub.tolist() == [1, 1, 3, 0]
    start, end = opic.run(TOY, most_sweeps=1), opic.run(TOY, start=Cash.uniform(TOY.pages), error=1e-5)
    assert start.hub == pytest.approx(end.hub, rel=1e-6) and start.authority == pytest.approx(end.authority, rel=1e-6)
    lonely = graph.compile(range(3), [], [0], [])
    assert opic.resumed(lonely, np.full(3, np.nan)).hub.tolist() == [1, 1, 1]
    assert opic.resumed(graph.compile([], [], [0], []), np.empty(0)).total == 1


# -------------------------------------------------------------------------------------------------------- convergence


def communities(count: int, links_a_page: int, is_chain: bool = False) -> tuple[Graph, NDArray[np.int64]]:
    """Of 60 to 180 pages, two links from each to the next one, and which of them a page belongs to. In a chain the last
    one links to none."""
    rng = np.random.default_rng(1)
    sizes = 60 * (1 + np.arange(count) % 3)
    first = np.cumsum(sizes) - sizes
    of = np.repeat(np.arange(count), sizes)
    targets = (first[of] + (rng.random((links_a_page, len(of))) ** 2 * sizes[of]).astype(np.int64)).ravel()
    bridges = np.repeat(np.arange(count - is_chain), 2)
    after = (bridges + 1) % count
    sources = np.append(np.tile(np.arange(len(of)), links_a_page), first[bridges] + rng.integers(0, sizes[bridges]))
    targets = np.append(targets, first[after] + rng.integers(0, sizes[after]))
    order = np.argsort(sources, kind="stable")
    pages = np.arange(len(of))
    return graph.compile(pages, pages, np.searchsorted(sources[order], [*pages, len(of)]), targets[order]), of


Exact = tuple[NDArray[np.float64], NDArray[np.float64]]


def exactly(of: Graph, relevance: Relevance) -> Exact:
    """Hub and authority by a dense solution of the cash flow with the virtual page as the last page."""
    n = of.pages
    out, into, r = np.diff(of.out_starts), np.diff(of.into_starts), relevance.astype(float)
    links = np.zeros((n, n))
    links[np.repeat(np.arange(n), out), of.out] = 1
    back = np.where(into > 0, r / np.where(into > 0, into * r + 1 - r, 1), 0)
    forth, and_back = np.full((n + 1, n + 1), 1 / n), np.full((n + 1, n + 1), 1 / n)
    forth[:n, :n], forth[n] = links.T / (out + 1), np.append(1 / (out + 1), 0)
    and_back[:n, :n], and_back[n] = links * back, np.append(1 - into * back, 0)
    # Of the equations flow · hub = hub one follows from the others: all cash makes up for it.
    equations = and_back @ forth - np.eye(n + 1)
    equations[n] = 1
    hub = np.linalg.solve(equations, np.append(np.zeros(n), 1))
    assert np.abs(and_back @ (forth @ hub) - hub).sum() < 1e-12
    authority = (forth @ hub)[:n]
    return hub[:n] / hub[:n].sum(), authority / authority.sum()


def off(scores: opic.HubsAndAuthorities, exact: Exact) -> tuple[float, float]:
    """In all, and the worst page by its share."""
    pairs = list(zip((scores.hub, scores.authority), exact, strict=True))
    return sum(far(*pair) for pair in pairs), max(float(np.abs(found / known - 1).max()) for found, known in pairs)


WEAKLY_JOINED = pytest.mark.parametrize(
    ("count", "links_a_page", "is_chain"), [(2, 20, False), (2, 150, False), (10, 20, False), (10, 60, True)]
)
RELEVANT = pytest.mark.parametrize("relevant", ["alike", "at random", "by topic", "nearly all"])


def relevance_of(community: NDArray[np.int64], relevant: str) -> Relevance:
    rng = np.random.default_rng(2)
    by_topic = rng.permutation(np.linspace(0.2, 0.99, community.max() + 1))[community]
    at_random = rng.random(len(community))
    of = {"alike": 0.5 + 0 * by_topic, "at random": at_random, "by topic": by_topic, "nearly all": 1 - at_random / 30}
    return of[relevant].astype(np.float32)


@WEAKLY_JOINED
@RELEVANT
def test_weakly_joined_communities_get_the_scores_that_are_promised(
    count: int, links_a_page: int, is_chain: bool, relevant: str
) -> None:
    """From a uniform start, with ten times as much in every other community, from where runs start, and after news:
    one page in a hundred links elsewhere, a page is gone, and twenty are new."""
    of, community = communities(count, links_a_page, is_chain)
    relevance = relevance_of(community, relevant)
    lopsided = Cash(np.where(community % 2, 10.0, 1.0), 0.0)
    exact = exactly(of, relevance)
    for start in (None, Cash.uniform(of.pages), lopsided):
        scores = opic.run(of, relevance, start)
        all_off, worst = off(scores, exact)
        assert scores.sweeps.converged and scores.sweeps.count < 60
        assert all_off <= 1.1e-3 and all_off <= 2 * scores.sweeps.error and worst < 0.01
        total = of.pages + 1 if start is None else start.total
        assert scores.cash.total == pytest.approx(total, rel=1e-12) and (scores.cash.hub >= 0).all()

    rng = np.random.default_rng(3)
    sources = np.sort(rng.choice(of.pages, of.pages // 100 + 1, replace=False))
    new = np.arange(of.pages, of.pages + 20)
    targets = rng.integers(0, of.pages, (len(sources) + len(new), 10))
    after = edited(of, new, [5], np.append(sources, new), targets)
    hub = carried(of, after, scores.hub).astype(np.float32).astype(float)
    relevance = np.append(relevance, rng.random(20).astype(np.float32))[after.page_ids]
    warm = opic.run(after, relevance, opic.resumed(after, hub))
    all_off, worst = off(warm, exactly(after, relevance))
    assert warm.sweeps.converged and all_off <= 1.1e-3 and worst < 0.01


@WEAKLY_JOINED
def test_a_run_that_reaches_its_limit_of_sweeps_says_how_far_off_it_is(
    count: int, links_a_page: int, is_chain: bool
) -> None:
    of, community = communities(count, links_a_page, is_chain)
    relevance = relevance_of(community, "by topic")
    exact = exactly(of, relevance)
    for most_sweeps in (3, 4, 5, 6):
        scores = opic.run(of, relevance, Cash.uniform(of.pages), most_sweeps=most_sweeps)
        assert scores.sweeps.count == most_sweeps and not scores.sweeps.converged
        assert scores.sweeps.error > 1e-3 and scores.sweeps.error > off(scores, exact)[0] / 2


def test_importance_of_weakly_joined_communities_is_exact_too_whatever_way_cash_goes() -> None:
    """And of two groups that hand all their cash to and fro: steps that shrink slowly go to and fro as well."""
    there, back = np.arange(80), np.arange(80, 160)
    fro = graph.compile(range(200), range(200), np.arange(201) * 80, [*np.tile(back, 80), *np.tile(there, 120)])
    for of in (communities(2, 60)[0], communities(10, 60, is_chain=True)[0], fro):
        out = np.diff(of.out_starts)
        n = of.pages
        flow = np.full((n + 1, n + 1), 1 / n)
        flow[:n, :n] = 0
        flow[of.out, np.repeat(np.arange(n), out)] = np.repeat(1 / (out + 1), out)
        flow[n] = np.append(1 / (out + 1), 0)
        equations = flow - np.eye(n + 1)
        equations[n] = 1
        exact = np.linalg.solve(equations, np.append(np.zeros(n), 1))[:n]
        exact /= exact.sum()
        scores = opic.importance(of, error=1e-3)
        assert scores.sweeps.converged and far(scores.scores, exact) <= 1e-3
        assert np.abs(scores.scores / exact - 1).max() < 0.01


def test_a_warm_start_has_less_to_do() -> None:
    of = random_graph(4_000, 30_000)
    rng = np.random.default_rng(1)
    relevance = rng.random(of.pages).astype(np.float32)
    cold = opic.run(of, relevance, error=1e-4)
    sources = np.sort(rng.choice(of.pages, 40, replace=False))
    changed = edited(of, [], [], sources, rng.integers(0, of.pages, (40, 10)))
    uniform, warm = opic.run(changed, relevance, Cash.uniform(of.pages)), opic.run(changed, relevance, cold.cash)
    assert warm.sweeps.converged and warm.sweeps.count < uniform.sweeps.count
    hub, authority = by_eigenvector(changed, relevance)
    assert far(warm.hub, hub) + far(warm.authority, authority) < 1e-4


def test_what_did_not_converge_says_so() -> None:
    """A long ring in which neighbours link each other hands cash on slowly."""
    pages = 2000
    near = [(page + step) % pages for page in range(pages) for step in range(-40, 41) if step]
    ring = graph.compile(range(pages), range(pages), np.arange(pages + 1) * 80, near)
    lopsided = Cash(np.where(np.arange(pages) < pages // 2, 2.0, 0.0), 1.0)
    even = np.full(pages, 1 / pages)
    short = opic.run(ring, start=lopsided, error=1e-4, most_sweeps=5)
    assert not short.sweeps.converged and short.sweeps.count == 5 and short.sweeps.error >= far(short.hub, even) > 1e-4
    long = opic.run(ring, start=lopsided, error=1e-4, most_sweeps=500)
    assert long.sweeps.converged and long.sweeps.count > 5 and far(long.hub, even) + far(long.authority, even) <= 1e-4


def test_one_sweep_says_nothing_about_the_next() -> None:
    assert opic.run(TOY, most_sweeps=1).sweeps.residual == np.inf


@given(st.integers(0, 2**32), st.integers(2, 12))
def test_the_residual_bounds_how_far_the_last_sweep_went(seed: int, sweeps: int) -> None:
    of = random_graph(30, 60, seed)
    relevance = np.random.default_rng(seed).random(30).astype(np.float32) ** 8
    start = opic.run(of, relevance, error=0, most_sweeps=sweeps).cash
    before, after = (opic.run(of, relevance, start, error=0, most_sweeps=n) for n in (1, 2))
    moved = far(before.hub, after.hub) + far(before.authority, after.authority)
    assert moved <= after.sweeps.residual * (1 + 1e-9) + 1e-15


def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    of = random_graph(300_000, 3_000_000)
    relevance = np.random.default_rng(1).random(of.pages).astype(np.float32)
    one, three = (opic.run(of, relevance, most_sweeps=4, error=0, threads=threads) for threads in (1, 3))
    assert len(of.out) > 4 * opic.CHUNK
    assert (one.hub == three.hub).all() and (one.authority == three.authority).all()
    assert (one.sweeps.residual, one.cash.virtual) == (three.sweeps.residual, three.cash.virtual)
