"""Two pages share a budget: how many fetches each of them gets (optimal revisiting algorithm of crawlfrontier)."""

import numpy as np

from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultTable, Row
from recrawl.lab.methods import dual_ascent
from recrawl.model.allocation.objectives import OBJECTIVES, Floats
from recrawl.model.allocation.solve import unconstrained

# From the source: the first page changes often and is worth little. The second page changes rarely and is worth more.
VALUE, RATE = np.array([1.0, 5.0]), np.array([5.0, 1.0])  # rates in changes per day
FOUND = OBJECTIVES["new_content"]
BUDGETS = (1.0, 2.0, 4.0, 10.0)  # fetches per day
MOST = 10.0  # fetches per day: the end of the axes of the figure


def run(seed: int, quick: bool) -> Findings:
    """The seed has no effect, because nothing is random."""
    many = np.linspace(0, MOST, 41 if quick else 401)
    shared = np.array([unconstrained(VALUE, RATE, budget, FOUND.name).frequency for budget in many])
    # The budget at which the first fetch of page 1 is worth its price.
    starts = float(FOUND.frequency(VALUE[0], VALUE[1], RATE[1]))
    both = many > starts
    overtakes = float(np.interp(0, shared[both, 0] - shared[both, 1], many[both]))
    return Findings(
        tables=[
            ResultTable("fetches a day, and the value of the changes that they find", [_row(of) for of in BUDGETS])
        ],
        figure=[[_contour(many), _against_budget(many, shared)]],
        says=(
            f"With a budget below {starts:.2f} fetches a day page 1 is not fetched at all, because its changes have a "
            f"low value. With a budget above {overtakes:.2f} fetches a day it is fetched more often than page 2, "
            f"because it changes more often."
        ),
    )


def _row(budget: float) -> Row:
    best = unconstrained(VALUE, RATE, budget, FOUND.name)
    by_the_source = dual_ascent.solve(VALUE, RATE, budget)
    return {
        "budget, fetches a day": budget,
        "page 1": float(best.frequency[0]),
        "page 2": float(best.frequency[1]),
        "page 1, by the source's dual ascent": float(by_the_source[0]),
        "value found a day": best.utility,
        "price, value a fetch": best.price,
    }


def _contour(many: Floats) -> Panel:
    """Budgets, the best point of each, and the line of equal value through it."""
    best = [unconstrained(VALUE, RATE, budget, FOUND.name) for budget in BUDGETS]
    of_first, of_second = (FOUND.utility(many, value, rate) for value, rate in zip(VALUE, RATE, strict=True))
    levels = []
    for allocation in best:
        missing = allocation.utility - of_first
        reached = (missing >= 0) & (missing <= of_second[-1])
        levels.append(PlotSeries("", many[reached], np.interp(missing[reached], of_second, many), "thin"))
    ends = [PlotSeries(f"budget {budget:g}", np.array([0, budget]), np.array([budget, 0])) for budget in BUDGETS]
    points = np.array([allocation.frequency for allocation in best])
    return Panel(
        "what budgets allow, and lines of equal value found",
        "page 1, fetches a day",
        "page 2, fetches a day",
        [*levels, *ends, PlotSeries("the best", points[:, 0], points[:, 1], "dots")],
    )


def _against_budget(many: Floats, shared: Floats) -> Panel:
    return Panel(
        "the best division",
        "budget, fetches a day",
        "fetches a day",
        [PlotSeries("page 1: 5 changes a day, worth 1", many, shared[:, 0]),
         PlotSeries("page 2: 1 change a day, worth 5", many, shared[:, 1], "dashed")],
    )  # fmt: skip
