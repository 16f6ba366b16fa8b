"""How fast OPIC finds what the power method finds (Abiteboul, Preda & Cobena, 2003; and a comparison by crawlfrontier).

OPIC page by page needs no matrix and takes pages in any order. The error of its scores is proportional to 1/passes.
OPIC in batch, as in recrawl, takes the scores from the flow of cash: its error falls geometrically.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultTable, Row
from recrawl.lab.methods import opic_plain, power
from recrawl.lab.methods.opic_classic import Books, Order, highest_cash, in_turn, step
from recrawl.model.allocation.objectives import Floats
from recrawl.model.graph import graph, opic
from recrawl.model.graph.graph import Graph
from recrawl.model.graph.opic import Cash
from recrawl.words import count

TOY = graph.compile([1, 2, 3, 4], [1, 2, 3], [0, 1, 2, 5], [2, 4, 1, 2, 4])  # the example of crawlfrontier
PAGES, FEW_PAGES, LINKS = 1000, 150, 8  # LINKS: of a page, on average
PASSES, FEW_PASSES = 512, 64
SWEEPS = 40  # at most, of methods whose error falls geometrically
STEPS = 20  # parts of a pass; before each part the pages to spend are chosen anew
ERRORS = (1e-1, 1e-2, 1e-3, 1e-6)
Errors = tuple[NDArray[np.int64], Floats]  # numbers of passes, and the errors after them in L1


def run(seed: int, quick: bool) -> Findings:
    of, most = draw(seed, FEW_PAGES if quick else PAGES), FEW_PASSES if quick else PASSES
    importance, authority = _of_importance(of, most), _of_authority(of, most)
    passes, error = importance["OPIC, page by page"]
    falls = np.polyfit(np.log(passes[-4:]), np.log(error[-4:]), 1)[0]
    needs = {name: _needed(errors, 1e-6) for name, errors in importance.items()}
    return Findings(
        tables=[
            ResultTable("importance on crawlfrontier's graph 1→2→4, 3→1, 3→2, 3→4", _on_the_toy()),
            ResultTable(
                f"passes over {count(of.pages)} pages with {count(of.links)} links, until the error is at most (L1)",
                [_row(name, errors) for name, errors in [*importance.items(), *authority.items()]],
            ),
        ],
        figure=[[_panel("importance", importance), _panel("authority, by hubs and authorities", authority)]],
        says=(
            f"The error of OPIC changes like the number of passes over all pages to the power of {falls:.2f}: it is "
            f"{error[-1]:.1g} after {passes[-1]} passes. For an error of 1e-6 the power method needs "
            f"{needs['power method']} multiplications, and OPIC in batch needs {needs['OPIC in batch']} sweeps."
        ),
    )


def draw(seed: int, pages: int) -> Graph:
    """A few pages receive most of the links, and some pages link to no other page."""
    rng = np.random.default_rng(seed)
    links = LINKS * pages
    first = np.sort(np.concatenate([[0, links], rng.integers(0, links, pages - 1)]))
    return graph.compile(np.arange(pages), np.arange(pages), first, (pages * rng.random(links) ** 3).astype(np.int64))


def _of_importance(of: Graph, most: int) -> dict[str, Errors]:
    exact = power.importance(of, 1000)

    def errors(passes: NDArray[np.int64], scores: Callable[[int], Floats]) -> Errors:
        return passes, np.array([np.abs(scores(int(count)) - exact).sum() for count in passes])

    sweeps = np.arange(1, SWEEPS + 1)
    return {
        "OPIC, page by page": errors(_doubled(most), lambda passes: opic_plain.importance(of, passes)),
        "power method": errors(sweeps, lambda count: power.importance(of, count)),
        "OPIC in batch": errors(sweeps, lambda count: opic.importance(of, error=0, most_sweeps=count).scores),
    }


def _of_authority(of: Graph, most: int) -> dict[str, Errors]:
    """Without relevance the limit of the scores is known."""
    exact = (np.diff(of.into_starts) + 1) / (of.links + of.pages)

    def in_batch(sweeps: int) -> float:
        found = opic.run(of, start=Cash.uniform(of.pages), error=0, most_sweeps=sweeps)
        return float(np.abs(found.authority - exact).sum())

    sweeps = np.arange(1, SWEEPS + 1)
    return {
        "in turn": _page_by_page(of, exact, in_turn, most),
        "highest cash first": _page_by_page(of, exact, highest_cash, most),
        "hubs and authorities in batch": (sweeps, np.array([in_batch(int(count)) for count in sweeps])),
    }


def _page_by_page(of: Graph, exact: Floats, order: Order, most: int) -> Errors:
    books, passes, found = Books.opened(of.pages), _doubled(most), []
    for done in range(1, most + 1):
        for _ in range(STEPS):
            step(books, of, None, order, -(-of.pages // STEPS))
        if done in passes:
            found.append(np.abs(books.scores()[1] - exact).sum())
    return passes, np.array(found)


def _doubled(most: int) -> NDArray[np.int64]:
    return 2 ** np.arange(most.bit_length())


def _on_the_toy() -> list[Row]:
    by_page, by_power = opic_plain.importance(TOY, 1000), power.importance(TOY, 100)
    in_batch = opic.importance(TOY, error=1e-5).scores
    return [
        {
            "page": int(page),
            "OPIC, 1,000 passes page by page": float(by_page[place]),
            "power method": float(by_power[place]),
            "OPIC in batch": float(in_batch[place]),
        }
        for place, page in enumerate(TOY.page_ids)
    ]


def _row(name: str, errors: Errors) -> Row:
    return {"method": name, **{f"{least:g}": _needed(errors, least) for least in ERRORS}}


def _needed(errors: Errors, least: float) -> int | str:
    """The number of passes after which the error stays below a limit."""
    passes, error = errors
    above = np.flatnonzero(error > least)
    place = int(above[-1]) + 1 if above.size else 0
    return int(passes[place]) if place < passes.size else f"over {passes[-1]}"


def _panel(title: str, of: dict[str, Errors]) -> Panel:
    series = [PlotSeries(name, passes.astype(np.float64), error) for name, (passes, error) in of.items()]
    return Panel(title, "passes over all pages", "error, L1", series, log="xy")
