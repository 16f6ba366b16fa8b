"""What the command line shows: tables. Units stand in the headings."""

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from math import exp, isnan
from typing import TYPE_CHECKING, Any

import click

from recrawl.words import count

if TYPE_CHECKING:
    from recrawl.jobs.plan import HostAtGap, Point
    from recrawl.model.change.audit import Agreement


def table(rows: list[dict[str, Any]], nothing: str) -> None:
    """Rows as a table, without the columns that are empty in all of them; where it is too wide, a line a cell."""
    if not rows:
        click.echo(nothing)
        return
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    cells = [[readable(row[name]) for name in names] for row in rows]
    least = [max(_least(name, text) for text in [name, *column]) for name, *column in zip(names, *cells, strict=True)]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() or "COLUMNS" in os.environ else 200
    if sum(least) + len(" | ") * (len(names) - 1) > width:
        longest = max(map(len, names))
        for row in cells:
            for name, text in zip(names, row, strict=True):
                click.echo(f"{name:{longest}}  {text}")
            click.echo()
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.ASCII2, show_edge=False, pad_edge=False)
    for name, wide in zip(names, _widths(names, cells, least, width), strict=True):
        table.add_column(name, overflow="fold", width=wide)
    for row in cells:
        table.add_row(*map(Text, row))  # as they are: rich would read markup in them
    Console(width=width, highlight=False).print(table)


def _widths(names: list[str], cells: list[list[str]], least: list[int], width: int) -> list[int]:
    """The widest columns give way first, none below its least: rich cuts the last ones off instead."""
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    while sum(widths) + len(" | ") * (len(names) - 1) > width:
        wide = [full if full > narrowest else 0 for full, narrowest in zip(widths, least, strict=True)]
        widths[wide.index(max(wide))] -= 1
    return widths


FOLDED = 24  # characters; a longer URL takes several lines


def _least(name: str, text: str) -> int:
    """How wide a column must be to hold a text without cutting words."""
    widest = max(map(len, text.split()), default=0)
    return min(FOLDED, widest) if name in ("url", "host") else widest


def plain(text: str) -> str:
    """On a terminal: what others wrote neither steers it nor turns its lines round."""
    return "".join(character if character.isprintable() else " " for character in text)


def readable(value: Any) -> str:
    if isinstance(value, datetime):
        value = value.astimezone()
        return f"{value:%H:%M:%S}" if value.date() == datetime.now().date() else f"{value:%Y-%m-%d %H:%M:%S}"
    return "" if value is None else plain(str(value))


def iso(value: Any) -> str:
    """Times and durations as ISO 8601 has them, for JSON."""
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"
    return str(value.isoformat())


def curve(points: "Sequence[Point]", present: float, objective: str) -> None:
    """What budgets would bring, beside the present one."""
    rows = [
        {
            "budget, fetches a day": count(point.budget),
            "of the present": f"{point.budget / present:.3g} x",
            "revisits": count(point.spent),
            "new pages": count(point.new_pages),
            "pinned, of the revisits": count(point.pinned) if point.pinned else None,
            objective: _utility(point.utility),
            "polite bound": _utility(point.polite_bound),
            "unpolite bound": _utility(point.unpolite_bound),
            "hosts at their cap": f"{point.capped_hosts:,}",
        }
        for point in points
    ]
    table(rows, "")


def _utility(per_unit_of_value: float | None) -> str:
    return "no end of loss" if per_unit_of_value is None else f"{per_unit_of_value:.4f}"


def held_back(hosts: "Sequence[HostAtGap]", objective: str) -> None:
    rows = [
        {
            "host": host.host,
            "pages": f"{host.pages:,}",
            "slot every, s": f"{host.slot_every:,.6g}",
            f"{objective} with half the gap": f"+{host.gain:.4f}" if host.gain >= 0.0001 else "under +0.0001",
        }
        for host in hosts
    ]
    table(rows, "")


def agreement(lines: "Sequence[Agreement]") -> None:
    """Of the rates that were learnt with those that the fetch log suggests."""
    rows = [
        {
            "visits, from": f"{line.visits_from:,}",
            "pages": f"{line.pages:,}",
            "that changed": f"{line.changed_pages:,}",
            "rates differ by, median": _times(line.median_log_ratio),
            "90 % by less than": _times(line.most_log_ratio),
            "likeliest rate within rate_low … rate_high": f"{line.inside:.1%}",
        }
        for line in lines
    ]
    table(rows, "")


def _times(log_ratio: float) -> str:
    """Where no page was seen to change there is no rate to compare with."""
    return "–" if isnan(log_ratio) else f"{exp(log_ratio):.3g} x"


@contextmanager
def drawn(option: str) -> Iterator[None]:
    """What is done within is done with matplotlib, which not everybody has."""
    try:
        yield
    except ImportError:
        raise click.ClickException(f"{option} needs matplotlib: pip install 'recrawl[png]'") from None
