"""An experiment's figure, drawn with matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recrawl.lab.experiments.findings import Panel

WIDTH, HEIGHT = 4.8, 3.8  # inches, of a panel
LOOKS: dict[str, dict[str, Any]] = {
    "line": {},
    "dashed": {"ls": "--"},
    "dotted": {"ls": ":"},
    "dots": {"ls": "", "marker": "o", "ms": 5},
    "thin": {"lw": 0.8, "color": "0.6"},
}


def draw(panels: Sequence[Sequence[Panel]], file: Path) -> None:
    columns = max(map(len, panels))
    figure = Figure(figsize=(WIDTH * columns, HEIGHT * len(panels)), layout="constrained")
    colours: dict[str, str] = {}
    for row, in_row in enumerate(panels):
        for column, panel in enumerate(in_row):
            _draw(figure.add_subplot(len(panels), columns, row * columns + column + 1), panel, colours)
    figure.savefig(file, dpi=110)


def _draw(axes: Axes, panel: Panel, colours: dict[str, str]) -> None:
    for series in panel.series:
        colour = colours.setdefault(series.name, f"C{len(colours) % 10}") if series.name else "0.6"
        looks = {"color": colour, "lw": 1.6, **LOOKS[series.look]}
        axes.plot(series.x, series.y, label=series.name or "_", **looks)
    axes.set_title(panel.title, fontsize="medium")
    axes.set(xlabel=panel.x, ylabel=panel.y)
    if "x" in panel.log:
        axes.set_xscale("log")
    if "y" in panel.log:
        axes.set_yscale("log")
    axes.grid(alpha=0.3)
    if any(series.name for series in panel.series):
        axes.legend(fontsize="small")
