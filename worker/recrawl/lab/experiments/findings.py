"""The result of an experiment: tables, a figure and a sentence, as numbers. Other modules draw and print them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from recrawl.model.allocation.objectives import Floats

Row = Mapping[str, str | int | float]  # by heading, with its unit


class ResultShare(float):
    """A number between 0 and 1 that is printed as a percentage."""


@dataclass(frozen=True)
class ResultTable:
    title: str
    rows: Sequence[Row]  # all with the same headings


@dataclass(frozen=True, eq=False)
class PlotSeries:
    """One line of a figure. Lines with the same name have the same colour in the whole figure."""

    name: str  # empty: the line is not in the legend
    x: Floats
    y: Floats
    look: Literal["line", "dashed", "dotted", "dots", "thin"] = "line"


@dataclass(frozen=True, eq=False)
class Panel:
    title: str
    x: str  # the quantity on the axis, with its unit
    y: str
    series: Sequence[PlotSeries]
    log: Literal["", "x", "y", "xy"] = ""  # which axes are logarithmic


@dataclass(frozen=True, eq=False)
class Findings:
    tables: Sequence[ResultTable]
    figure: Sequence[Sequence[Panel]]  # row by row
    says: str  # the result in one sentence, with computed numbers
