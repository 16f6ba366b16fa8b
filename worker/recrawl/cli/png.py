"""The picture of `recrawl plan`. This module needs matplotlib."""

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from recrawl.jobs.plan import Point


def draw_budgets(points: "Sequence[Point]", present: float, objective: str, file: str) -> None:
    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    points = sorted(points, key=lambda point: point.budget)
    budgets = [point.budget for point in points]
    lines: dict[str, dict[str, Any]] = {
        "limit_without_gaps": {"color": "0.6", "ls": ":", "marker": ".", "label": "limit without gaps"},
        "limit_with_gaps": {"color": "0.3", "ls": "--", "marker": ".", "label": "limit with gaps"},
        "utility": {"color": "C0", "marker": "o", "label": f"{objective} expected"},
    }
    for figure_of, style in lines.items():
        figures = [getattr(point, figure_of) for point in points]
        axes.plot(budgets, [nan if utility is None else utility for utility in figures], **style)
    axes.axvline(present, color="C1", lw=1, label="the present budget")
    axes.set(xscale="log", xlabel="budget, fetches per day", ylabel=f"{objective} per unit of value")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
