"""The table that is printed: lines of what was measured against what is wanted."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    what: str
    measured: str
    wanted: str = ""
    met: bool | None = None  # None: for information


def at_most(what: str, measured: float, bound: float, unit: str, note: str = "") -> Line:
    return Line(what, _with_unit(measured, unit) + note, f"≤ {_with_unit(bound, unit)}", measured <= bound)


def at_least(what: str, measured: float, bound: float, unit: str, note: str = "") -> Line:
    return Line(what, _with_unit(measured, unit) + note, f"≥ {_with_unit(bound, unit)}", measured >= bound)


def note(what: str, measured: str) -> Line:
    return Line(what, measured)


def _with_unit(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"


HEADINGS = ("what", "measured", "at least / at most", "met?")


def formatted(lines: Sequence[Line]) -> str:
    rows = [HEADINGS, *((line.what, line.measured, line.wanted, _verdict(line.met)) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    text = [" | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    text.insert(1, "-|-".join("-" * width for width in widths))
    return "\n".join(text)


def _verdict(met: bool | None) -> str:
    return {True: "yes", False: "NO", None: ""}[met]
