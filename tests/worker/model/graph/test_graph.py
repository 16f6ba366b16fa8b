"""A graph holds each link once, both ways."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.model.graph import graph
from recrawl.model.graph.graph import Graph

Links = dict[int, list[int]]


def compiled(pages: set[int], links: Links) -> Graph:
    return graph.compile(sorted(pages), *rows(links))


def rows(links: Links) -> tuple[list[int], list[int], list[int]]:
    first = [0]
    for targets in links.values():
        first.append(first[-1] + len(targets))
    return list(links), first, [target for targets in links.values() for target in targets]


def out_links(of: Graph) -> Links:
    return as_ids(of, of.out_starts, of.out)


def in_links(of: Graph) -> Links:
    return as_ids(of, of.into_starts, of.into)


def as_ids(of: Graph, first: "np.typing.NDArray[np.int64]", links: "np.typing.NDArray[np.uint32]") -> Links:
    ids = of.page_ids.tolist()
    return {page: [ids[k] for k in links[first[p] : first[p + 1]]] for p, page in enumerate(ids)}


def expected(pages: set[int], links: Links) -> tuple[Links, Links]:
    out = {p: sorted(set(links.get(p, [])) & pages - {p}) for p in sorted(pages)}
    into = {p: sorted(q for q in pages if p in out[q]) for p in sorted(pages)}
    return out, into


IDS = st.integers(0, 12) | st.sampled_from([-(2**63), 2**63 - 1, 2**40, 2**40 + 1])
WEBS = st.tuples(st.sets(IDS), st.dictionaries(IDS, st.lists(IDS, max_size=8), max_size=8))


@given(WEBS)
def test_each_link_between_known_pages_is_held_once_both_ways(web: tuple[set[int], Links]) -> None:
    pages, links = web
    of = compiled(pages, links)
    assert (out_links(of), in_links(of)) == expected(pages, links)
    assert of.out.dtype == of.into.dtype == np.uint32


def test_sources_come_in_any_order() -> None:
    assert out_links(graph.compile([1, 2, 3], [3, 1], [0, 1, 2], [1, 2])) == {1: [2], 2: [], 3: [1]}


def test_ids_with_wide_holes_are_found() -> None:
    ids = np.unique(np.random.default_rng(1).integers(-(2**62), 2**62, 10_000))
    crowd = np.unique(np.concatenate([ids, np.arange(5_000), [2**63 - 1]]))  # one run of ids is full, others empty
    wanted = np.concatenate([crowd, crowd + 1, [-(2**63)]])
    positions = graph.positions(crowd, wanted)
    oracle = [{int(page): at for at, page in enumerate(crowd)}.get(int(page), graph.NOWHERE) for page in wanted[:50]]
    assert positions[:50].tolist() == oracle
    known = np.isin(wanted, crowd)
    assert (crowd[positions[known]] == wanted[known]).all() and (positions[~known] == graph.NOWHERE).all()


def test_a_page_may_have_a_million_parents() -> None:
    pages = np.arange(1_000_001)
    of = graph.compile(pages, pages[1:], np.arange(1_000_001), np.zeros(1_000_000, np.int64))
    assert of.into_starts[1] == of.links == 1_000_000
    assert (of.into == pages[1:]).all()


def test_an_empty_graph_is_a_graph() -> None:
    of = graph.compile([], [], [0], [])
    assert (of.pages, of.links) == (0, 0)
