"""The published methods work page by page. They reach the result of the batch iteration, only later."""

import numpy as np
import pytest

from recrawl.lab.methods import hits, opic_plain, power
from recrawl.lab.methods.opic_classic import Books, Order, highest_cash, in_turn, marked_first, step
from recrawl.model.graph import graph, opic
from recrawl.model.graph.graph import Graph

TOY = graph.compile([1, 2, 3, 4], [1, 2, 3], [0, 1, 2, 5], [2, 4, 1, 2, 4])
RELEVANCE = np.array([1, 0.8, np.nan, 0.25], np.float32)


def random_graph(seed: int = 1, pages: int = 60, links: int = 240) -> Graph:
    rng = np.random.default_rng(seed)
    targets = (pages * rng.random(links) ** 2).astype(np.int64)
    first = np.sort(np.concatenate([[0, links], rng.integers(0, links, pages - 1)]))
    return graph.compile(np.arange(pages), np.arange(pages), first, targets)


@pytest.mark.parametrize("order", [in_turn, highest_cash, marked_first([3, 3, 0], in_turn)])
def test_classic_opic_comes_to_the_scores_of_the_batch(order: Order) -> None:
    books = Books.opened(4)
    for _ in range(8_000):
        step(books, TOY, RELEVANCE, order, 2)
    hub, authority = books.scores()
    batch = opic.run(TOY, RELEVANCE, error=1e-5)
    assert hub == pytest.approx(batch.hub, abs=1e-3)
    assert authority == pytest.approx(batch.authority, abs=1e-3)


def test_the_error_of_a_history_falls_as_one_over_time() -> None:
    of = random_graph()
    exact = (np.diff(of.into_starts) + 1) / (of.links + of.pages)
    books, errors = Books.opened(of.pages), []
    for _ in range(2):
        for _ in range(100):
            step(books, of, None, in_turn, of.pages)
        errors.append(np.abs(books.scores()[1] - exact).sum())
    assert errors[0] < 0.05 and errors[1] == pytest.approx(errors[0] / 2, rel=0.2)


@pytest.mark.parametrize("window", [np.inf, 8 * 61.0])
def test_cash_is_conserved_one_page_at_a_time(window: float) -> None:
    of, rng = random_graph(), np.random.default_rng(1)
    relevance = rng.choice(np.array([0, 0.3, 1, np.nan], np.float32), of.pages)
    books = Books.opened(of.pages)
    for _ in range(50):
        step(books, of, relevance, marked_first(rng.integers(0, of.pages, 3).tolist(), highest_cash), 10, window)
        assert books.total == pytest.approx(2 * of.pages + 2, rel=1e-12)
        assert min(books.hub.cash.min(), books.authority.cash.min(), books.hub.virtual) >= 0


def test_with_a_window_history_follows_a_graph_that_changes() -> None:
    before, after = random_graph(1), random_graph(2)
    exact = (np.diff(after.into_starts) + 1) / (after.links + after.pages)
    errors = {}
    for window in (np.inf, 8 * (after.pages + 1.0)):
        books = Books.opened(after.pages)
        for of, passes in ((before, 200), (after, 30)):
            for _ in range(passes):
                step(books, of, None, in_turn, of.pages, window)
        errors[window] = np.abs(books.scores()[1] - exact).sum()
    assert errors[8 * (after.pages + 1.0)] < 0.1 * errors[np.inf]


def test_round_robin_meets_every_page_once_a_pass() -> None:
    books = Books.opened(10)
    assert sorted(page for _ in range(5) for page in in_turn(books, 2)) == list(range(10))


def test_the_richest_are_chosen_as_hubs_or_as_authorities() -> None:
    books = Books.opened(5)
    books.hub.cash[3], books.authority.cash[1] = 9, 8
    assert set(highest_cash(books, 2)) == {1, 3}
    assert sorted(highest_cash(books, 99)) == [0, 1, 2, 3, 4]


def test_marked_pages_go_first_and_once() -> None:
    marked = [4, 4, 2, 3]
    order = marked_first(marked, in_turn)
    assert list(order(Books.opened(5), 3)) == [4, 2, 0]
    assert marked == [3]


def test_misuse_is_refused() -> None:
    with pytest.raises(ValueError, match="window must be positive, got 0"):
        step(Books.opened(4), TOY, None, in_turn, 1, 0)
    with pytest.raises(ValueError, match="count must be positive, got 0"):
        step(Books.opened(4), TOY, None, in_turn, 0)
    with pytest.raises(ValueError, match="passes must be positive, got 0"):
        opic_plain.importance(TOY, 0)
    with pytest.raises(ValueError, match="multiplications must not be negative, got -1"):
        power.importance(TOY, -1)
    with pytest.raises(ValueError, match="residual must not be negative, got nan"):
        hits.scores(TOY, float("nan"))
    with pytest.raises(ValueError, match="most_rounds must be positive, got 0"):
        hits.scores(TOY, most_rounds=0)


# ------------------------------------------------------------------------------------------------- plain OPIC and HITS


def test_plain_importance_is_the_eigenvector_of_the_normalised_links() -> None:
    assert opic_plain.importance(TOY, 5000) == pytest.approx([0.19802, 0.29703, 0.15842, 0.34653], abs=2e-5)


@pytest.mark.parametrize("of", [TOY, random_graph(1)])
def test_the_power_method_finds_the_dominant_eigenvector(of: Graph) -> None:
    links = np.zeros((of.pages + 1, of.pages + 1))  # from column to row; the virtual page is the last one
    links[of.out, np.repeat(np.arange(of.pages), np.diff(of.out_starts))] = 1
    links[-1], links[:, -1], links[-1, -1] = 1, 1, 0
    values, vectors = np.linalg.eig(links / links.sum(axis=0))
    dominant = np.abs(vectors[: of.pages, values.real.argmax()])
    assert power.importance(of, 300) == pytest.approx(dominant / dominant.sum(), abs=1e-12)
    assert power.importance(of, 0) == pytest.approx(1 / of.pages)


def test_kleinbergs_hubs_and_authorities() -> None:
    scores = hits.scores(TOY)
    assert scores.converged
    assert scores.hub == pytest.approx([0.3251, 0.3251, 0.8881, 0], abs=5e-5)
    assert scores.authority == pytest.approx([0.4597, 0.6280, 0, 0.6280], abs=5e-5)


def test_hits_are_the_singular_vectors_of_the_links() -> None:
    of = random_graph()
    links = np.zeros((of.pages, of.pages))
    links[np.repeat(np.arange(of.pages), np.diff(of.out_starts)), of.out] = 1
    left, _, right = np.linalg.svd(links)
    scores = hits.scores(of)
    assert scores.hub == pytest.approx(np.abs(left[:, 0]), abs=1e-6)
    assert scores.authority == pytest.approx(np.abs(right[0]), abs=1e-6)


def test_hits_that_did_not_converge_say_so() -> None:
    scores = hits.scores(random_graph(), residual=1e-9, most_rounds=2)
    assert (scores.converged, scores.rounds) == (False, 2) and scores.residual > 1e-9


def test_graphs_without_links_or_pages_have_scores_too() -> None:
    lonely, empty = graph.compile([1, 2], [], [0], []), graph.compile([], [], [0], [])
    assert hits.scores(lonely).hub.tolist() == [0, 0]
    assert opic_plain.importance(lonely, 3) == pytest.approx([0.5, 0.5])
    assert power.importance(lonely, 3) == pytest.approx([0.5, 0.5])
    assert len(hits.scores(empty).hub) == len(opic_plain.importance(empty, 1)) == len(power.importance(empty, 1)) == 0
    books = Books.opened(0)
    step(books, empty, None, in_turn, 1)
    assert books.total == 2


@pytest.mark.parametrize("of", [TOY, random_graph(1), random_graph(2)])
def test_the_batch_finds_the_importance_that_page_by_page_opic_comes_to(of: Graph) -> None:
    batch = opic.importance(of, error=1e-5)
    assert batch.sweeps.converged and batch.sweeps.residual <= 1e-6
    assert batch.scores == pytest.approx(opic_plain.importance(of, 2000), abs=2e-4)
    again = opic.importance(of, batch.scores, error=1e-5)
    assert again.sweeps.count < batch.sweeps.count and again.scores == pytest.approx(batch.scores, abs=1e-5)
