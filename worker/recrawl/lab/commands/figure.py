"""The pictures of demo and experiment. This module needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from recrawl.lab.experiments.findings import Panel
from recrawl.words import percent

WIDTH, HEIGHT = 4.8, 3.8  # inches, of a panel
GREY = "#7a7a7a"  # can be read on a light and on a dark page
ON_ANY_PAGE: Any = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor", "xtick.color", "ytick.color"), GREY
    ),
    "legend.framealpha": 0,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "recrawl",  # the same figure is the same file
}
LOOKS: dict[str, dict[str, Any]] = {
    "line": {},
    "dashed": {"ls": "--"},
    "dotted": {"ls": ":"},
    "dots": {"ls": "", "marker": "o", "ms": 5},
    "thin": {"lw": 0.8, "color": "0.6"},
}


def draw_panels(panels: Sequence[Sequence[Panel]], file: Path) -> None:
    """Writes an SVG with a transparent background."""
    columns = max(map(len, panels))
    with rc_context(ON_ANY_PAGE):
        figure = Figure(figsize=(WIDTH * columns, HEIGHT * len(panels)), layout="constrained")
        colours: dict[str, str] = {}
        for row, in_row in enumerate(panels):
            for column, panel in enumerate(in_row):
                _draw(figure.add_subplot(len(panels), columns, row * columns + column + 1), panel, colours)
        figure.savefig(file, format="svg", transparent=True, metadata={"Date": None})


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


def draw_freshness(day: Sequence[float], fresh: Sequence[float], compared: dict[str, float], file: str) -> None:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    axes.plot(day, fresh, color="C0", lw=2, label="recrawl")
    for (name, share), style in zip(compared.items(), ("--", ":", "-.", (0, (1, 3))), strict=True):
        axes.axhline(share, color="0.4", ls=style, lw=1.2, label=f"{name}: {percent(share)}")
    axes.set(xlabel="days", ylabel="share of the value that is fresh", xlim=(0, max(day)))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
