"""Tables on the command line. The heading of a column has the unit."""

import os
import shutil
import sys
from datetime import datetime, timedelta
from typing import Any

import click


def table(rows: list[dict[str, Any]]) -> None:
    """Prints one row or more as a table without its empty columns. If the table is too wide, each cell gets a line."""
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
        table.add_row(*map(Text, row))  # plain text: rich would read markup
    Console(width=width, highlight=False).print(table)


def _widths(names: list[str], cells: list[list[str]], least: list[int], width: int) -> list[int]:
    """The widest columns shrink first, none below its minimum. (rich would cut off the last columns.)"""
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    while sum(widths) + len(" | ") * (len(names) - 1) > width:
        wide = [full if full > narrowest else 0 for full, narrowest in zip(widths, least, strict=True)]
        widths[wide.index(max(wide))] -= 1
    return widths


FOLDED = 24  # characters; a longer URL takes several lines


def _least(name: str, text: str) -> int:
    """The width that a column needs to show a text without cutting words."""
    widest = max(map(len, text.split()), default=0)
    return min(FOLDED, widest) if name in ("url", "host") else widest


def plain(text: str) -> str:
    """Text from the web, without characters that control a terminal or change the direction of a line."""
    return "".join(character if character.isprintable() else " " for character in text)


def readable(value: Any) -> str:
    if isinstance(value, datetime):
        value = value.astimezone()
        return f"{value:%H:%M:%S}" if value.date() == datetime.now().date() else f"{value:%Y-%m-%d %H:%M:%S}"
    return "" if value is None else plain(str(value))


def iso(value: Any) -> str:
    """Times and durations in ISO 8601, for JSON."""
    if isinstance(value, timedelta):
        return f"PT{value.total_seconds():.6f}".rstrip("0").rstrip(".") + "S"
    return str(value.isoformat())
