"""What hub and authority are worth, and that cash is neither made nor lost on the way."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse.linalg import eigs

from recrawl.model.graph import graph, opic
from recrawl.model.graph.graph import Delta, Graph
from recrawl.model.graph.opic import Cash

TOY = graph.compile([1, 2, 3, 4], [1, 2, 3], [0, 1, 2, 5], [2, 4, 1, 2, 4])
patient = settings(deadline=None)  # the first call compiles
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


def far(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    return float(np.abs(one - other).sum())


def by_eigenvector(of: Graph, relevance: Relevance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The same cash flow as one big matrix over pages and the virtual page, and its eigenvector by ARPACK."""
    n = of.pages
    into = np.diff(of.into_first)
    sources = np.repeat(np.arange(n), np.diff(of.out_first))
    adjacency = scipy.sparse.csr_array((np.ones(of.links), (sources, of.out)), shape=(n, n))
    r = np.where(np.isnan(relevance), 0.5, relevance).astype(float)
    back = np.where(into > 0, r / np.maximum(into * r + 1 - r, 1e-300), 0)
    hub_part = 1 / (np.diff(of.out_first) + 1)
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
    scores = opic.run(TOY, residual=1e-6)
    assert scores.hub * 9 == pytest.approx([2, 2, 4, 1], rel=EXACT)
    assert scores.authority * 9 == pytest.approx([2, 3, 1, 3], rel=EXACT)


def test_the_centre_of_a_wheel_is_worth_five_of_seventeen() -> None:
    wheel = graph.compile(range(5), range(5), [0, 4, 6, 8, 10, 12], [1, 2, 3, 4, 0, 2, 0, 3, 0, 4, 0, 1])
    scores = opic.run(wheel, residual=1e-6)
    for side in (scores.hub, scores.authority):
        assert side * 17 == pytest.approx([5, 3, 3, 3, 3], rel=EXACT)


def test_relevance_draws_cash_to_the_hubs_of_relevant_pages() -> None:
    scores = opic.run(TOY, relevances(1, 0.8, 0.5, 0.25), residual=1e-6)
    assert scores.hub == pytest.approx([0.24543, 0.16159, 0.48476, 0.10823], abs=1e-5)
    assert scores.authority == pytest.approx([0.22509, 0.37362, 0.07841, 0.32288], abs=1e-5)


@patient
@given(st.integers(0, 2**32), st.integers(1, 30), st.integers(0, 90))
def test_any_graph_without_relevance_has_the_closed_form(seed: int, pages: int, links: int) -> None:
    of = random_graph(pages, links, seed)
    scores = opic.run(of, residual=1e-6, most_sweeps=20_000)
    assert scores.converged
    assert far(scores.authority, (np.diff(of.into_first) + 1) / (of.links + pages)) < 1e-4
    assert far(scores.hub, (np.diff(of.out_first) + 1) / (of.links + pages)) < 1e-4


@pytest.mark.parametrize("low", [0.0, 0.3])
def test_with_relevance_scores_are_the_eigenvector_of_the_cash_flow(low: float) -> None:
    of = random_graph(2000, 15_000)
    rng = np.random.default_rng(2)
    relevance = rng.uniform(low, 1, of.pages).astype(np.float32)
    relevance[rng.random(of.pages) < 0.1] = np.nan
    relevance[:20], relevance[20:40] = 0, 1
    scores = opic.run(of, relevance, residual=1e-6)
    hub, authority = by_eigenvector(of, relevance)
    assert scores.converged
    assert far(scores.hub, hub) < 1e-6 and far(scores.authority, authority) < 1e-6


def test_unknown_relevance_is_one_half() -> None:
    unknown, half, none = (
        opic.run(TOY, r, residual=1e-6) for r in (relevances(*[np.nan] * 4), relevances(*[0.5] * 4), None)
    )
    assert unknown.hub.tolist() == half.hub.tolist() == none.hub.tolist()


def test_relevance_makes_its_hub_not_itself() -> None:
    """Two hubs with one page each: the hub of the relevant page is the better one."""
    of = graph.compile([1, 2, 3, 4], [1, 2], [0, 1, 2], [3, 4])
    hub = opic.run(of, relevances(0.5, 0.5, 0.9, 0.1), residual=1e-6).hub
    assert hub[0] > 1.5 * hub[1] and hub[2] == hub[3]


@pytest.mark.parametrize("relevance", [0.0, 0.5, 1.0])
def test_pages_without_links_are_alike(relevance: float) -> None:
    scores = opic.run(graph.compile(range(5), [], [0], []), relevances(*[relevance] * 5))
    assert scores.converged
    assert scores.hub.tolist() == scores.authority.tolist() == [0.2] * 5


def test_where_nothing_is_relevant_all_hubs_are_alike() -> None:
    scores = opic.run(TOY, relevances(0, 0, 0, 0), residual=1e-6)
    assert scores.converged
    assert far(scores.hub, np.full(4, 0.25)) < 1e-6 and far(scores.authority, np.full(4, 0.25)) < 1e-5
    drained = Cash(TOY.page_ids, np.zeros(4), 1.0)
    assert opic.run(TOY, relevances(0, 0, 0, 0), drained).hub.tolist() == [0.25] * 4


def test_relevance_of_one_keeps_authority_cash_among_pages() -> None:
    """Every page has a parent and all are fully relevant: the virtual page as a hub has nothing, and never less."""
    ring = graph.compile(range(7), range(7), range(8), [1, 2, 3, 4, 5, 6, 0])
    scores = opic.run(ring, np.ones(7, np.float32), residual=1e-6)
    assert 0 <= scores.cash.virtual < 1e-6 * scores.cash.total
    assert scores.hub == pytest.approx(np.full(7, 1 / 7), rel=1e-6)


def test_parts_that_are_not_connected_share_by_their_links() -> None:
    parts = graph.compile(range(6), [0, 1, 3], [0, 1, 2, 3], [1, 0, 4])
    scores = opic.run(parts, residual=1e-6)
    assert scores.authority * 9 == pytest.approx([2, 2, 1, 1, 2, 1], rel=1e-6)


def test_a_page_may_have_a_million_parents() -> None:
    pages = np.arange(1_000_001)
    of = graph.compile(pages, pages[1:], np.arange(1_000_001), np.zeros(1_000_000, np.int64))
    scores = opic.run(of, residual=1e-6)
    assert scores.authority[0] == pytest.approx(1_000_001 / 2_000_001, rel=1e-5)
    assert scores.cash.total == pytest.approx(1_000_002, rel=1e-12)


def test_an_empty_graph_has_no_scores() -> None:
    scores = opic.run(graph.compile([], [], [0], []))
    assert (len(scores.hub), scores.converged, scores.cash.total) == (0, True, 1.0)


# ------------------------------------------------------------------------------------------------------ conservation


@patient
@given(st.integers(0, 2**32))
def test_there_is_one_for_every_page_and_one_for_the_virtual_page_through_all_edits_and_restarts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of = random_graph(20, 60, seed)
    cash = Cash.uniform(of.page_ids)
    for _ in range(12):
        relevance = rng.choice(relevances(0, 0.001, 0.5, 1, np.nan), of.pages)
        scores = opic.run(of, relevance, cash, most_sweeps=int(rng.integers(1, 4)))
        assert scores.cash.total == pytest.approx(of.pages + 1, rel=1e-12)
        assert scores.cash.virtual >= 0 and (scores.cash.hub >= 0).all()
        before, removed = of, rng.integers(0, 40, 4)
        sources = rng.choice(40, 3, replace=False)
        added = np.setdiff1d(rng.integers(0, 40, 4), removed)
        of = graph.apply(of, Delta(added, removed, sources, [0, 5, 10, 15], rng.integers(0, 40, 15)))
        cash = opic.resumed(of, carried(before, of, scores.hub))


def carried(before: Graph, after: Graph, hub: NDArray[np.float64]) -> NDArray[np.float64]:
    """The scores of the pages that are still there; nan for new ones."""
    where = graph.positions(before.page_ids, after.page_ids)
    return np.where(where == graph.NOWHERE, np.nan, hub[np.minimum(where, before.pages - 1)])


def test_a_run_goes_on_where_the_last_one_ended() -> None:
    of = random_graph(2000, 10_000)
    relevance = np.random.default_rng(1).random(of.pages, np.float32)
    exact = opic.run(of, relevance, residual=1e-6)
    resumed = opic.resumed(of, exact.hub)
    assert far(resumed.hub / resumed.total, exact.cash.hub / exact.cash.total) < 1e-5
    assert opic.run(of, relevance, resumed).sweeps == 2, "there is a residual from the second on"


def test_a_new_page_with_links_starts_like_others_with_links() -> None:
    before = random_graph(200, 1000)
    scores = opic.run(before)
    after = graph.apply(before, Delta([200, 201], [], [200], [0, 2], [3, 4]))
    cash = opic.resumed(after, carried(before, after, scores.hub))
    links = np.diff(after.out_first) > 0
    assert cash.hub[200] == pytest.approx(cash.hub[:200][links[:200]].mean()) and cash.hub[201] == 0


def test_new_pages_that_nothing_is_known_of_start_evenly() -> None:
    assert opic.resumed(TOY, np.full(4, np.nan)).hub.tolist() == [1, 1, 1, 1]
    assert opic.resumed(graph.compile([], [], [0], []), np.empty(0)).total == 1


# -------------------------------------------------------------------------------------------------------- convergence


def test_a_warm_start_has_less_to_do() -> None:
    of = random_graph(20_000, 150_000)
    cold = opic.run(of, residual=1e-4)
    rng = np.random.default_rng(1)
    sources = np.sort(rng.choice(of.pages, 200, replace=False))
    changed = graph.apply(of, Delta([], [], sources, np.arange(0, 2001, 10), rng.integers(0, of.pages, 2000)))
    again, warm = opic.run(changed, residual=1e-3), opic.run(changed, start=cold.cash, residual=1e-3)
    assert warm.converged and warm.sweeps < again.sweeps
    exact = (np.diff(changed.into_first) + 1) / (changed.links + changed.pages)
    assert far(warm.authority, exact) < 2e-3


def test_what_did_not_converge_says_so() -> None:
    """A long ring in which neighbours link each other hands cash on slowly."""
    pages = 2000
    near = [(page + step) % pages for page in range(pages) for step in range(-40, 41) if step]
    ring = graph.compile(range(pages), range(pages), np.arange(pages + 1) * 80, near)
    lopsided = Cash(ring.page_ids, np.where(np.arange(pages) < pages // 2, 2.0, 0.0), 1.0)
    short = opic.run(ring, start=lopsided, residual=1e-4, most_sweeps=5)
    assert not short.converged and short.sweeps == 5 and short.residual > 1e-4
    long = opic.run(ring, start=lopsided, residual=1e-4, most_sweeps=500)
    assert long.converged and long.sweeps > 50


def test_one_sweep_says_nothing_about_the_next() -> None:
    assert opic.run(TOY, most_sweeps=1).residual == np.inf


@patient
@given(st.integers(0, 2**32), st.integers(2, 12))
def test_the_residual_bounds_how_far_the_last_sweep_went(seed: int, sweeps: int) -> None:
    of = random_graph(30, 60, seed)
    relevance = np.random.default_rng(seed).random(30).astype(np.float32) ** 8
    before, after = (opic.run(of, relevance, residual=0, most_sweeps=n) for n in (sweeps - 1, sweeps))
    moved = far(before.hub, after.hub) + far(before.authority, after.authority)
    assert moved <= after.residual * (1 + 1e-9) + 1e-15


def test_sums_do_not_depend_on_the_number_of_threads() -> None:
    of = random_graph(300_000, 3_000_000)
    relevance = np.random.default_rng(1).random(of.pages).astype(np.float32)
    one, three = (opic.run(of, relevance, most_sweeps=4, residual=0, threads=threads) for threads in (1, 3))
    assert len(of.out) > 4 * opic.CHUNK
    assert (one.hub == three.hub).all() and (one.authority == three.authority).all()
    assert (one.residual, one.cash.virtual) == (three.residual, three.cash.virtual)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"relevance": relevances(0, 1, 1.5, 0)}, "relevance must lie between 0 and 1, got 1.5 at index 2"),
        ({"relevance": relevances(0, -1, 0, 0)}, "relevance must lie between 0 and 1, got -1.0 at index 1"),
        ({"relevance": relevances(0, np.inf, 0, 0)}, "relevance must lie between 0 and 1, got inf at index 1"),
        ({"relevance": relevances(0)}, r"relevance must have one element for each of 4 pages, got \(1,\)"),
        ({"residual": -1.0}, "residual must not be negative, got -1"),
        ({"residual": np.nan}, "residual must not be negative, got nan"),
        ({"most_sweeps": 0}, "most_sweeps must be positive, got 0"),
        ({"threads": 0}, "threads must be positive, got 0"),
        ({"start": Cash(TOY.page_ids, np.array([1, np.nan, 1, 1]), 1)}, "start.hub must be .* got nan at index 1"),
        ({"start": Cash(TOY.page_ids, np.array([1.0, 1, -1, 1]), 1)}, "start.hub must be .* got -1.0 at index 2"),
        ({"start": Cash(TOY.page_ids, np.ones(3), 1)}, "start.hub must have an element for each of 4 pages"),
        ({"start": Cash(TOY.page_ids, np.ones(4), -1)}, "start.virtual must be .* got -1"),
        ({"start": Cash(TOY.page_ids, np.zeros(4), 0)}, "start must hold between 1e-20 and 1e30 of cash, got 0"),
    ],
)
def test_misuse_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        opic.run(TOY, **arguments)  # type: ignore[arg-type]
