"""What the command line shows: tables and a picture. Units stand in the headings."""

import sys
from collections.abc import Sequence
from datetime import datetime
from math import exp
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from recrawl.jobs.plan import HeldBack, Point
    from recrawl.model.change.audit import Agreement


def table(rows: list[dict[str, Any]], nothing: str) -> None:
    """Rows as a table, without the columns that are empty in all of them."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not rows:
        click.echo(nothing)
        return
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    table = Table(*columns, box=box.ASCII2, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*(readable(row[name]) for name in columns))
    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    console.print(table)


def readable(value: Any) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone():%Y-%m-%d %H:%M:%S}"
    return "" if value is None else str(value)


def curve(points: "Sequence[Point]", present: float, objective: str) -> None:
    """What budgets would bring, beside the present one."""
    rows = [
        {
            "budget, fetches/day": f"{point.budget:,.6g}",
            "of the present": f"{point.budget / present:.3g} x",
            "revisits": f"{point.spent:,.6g}",
            "new pages": f"{point.new_pages:,.6g}",
            objective: f"{point.utility:.4f}",
            "polite bound": f"{point.polite_bound:.4f}",
            "unpolite bound": f"{point.unpolite_bound:.4f}",
            "hosts at their cap": f"{point.capped_hosts:,}",
        }
        for point in points
    ]
    table(rows, "")


def held_back(hosts: "Sequence[HeldBack]", objective: str) -> None:
    rows = [
        {
            "host": host.host,
            "pages": f"{host.pages:,}",
            "slot every, s": f"{host.slot_every:,.6g}",
            f"{objective} with half the gap": f"+{host.gain:.2g} at most",
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
            "rates differ by, median": f"{exp(line.median_log_ratio):.3g} x",
            "90 % by less than": f"{exp(line.most_log_ratio):.3g} x",
            "likeliest rate within rate_low … rate_high": f"{line.inside:.1%}",
        }
        for line in lines
    ]
    table(rows, "")


def draw(points: "Sequence[Point]", present: float, objective: str, file: str) -> None:
    """Raises an ImportError where there is no matplotlib."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4.5), layout="constrained")
    axes = figure.add_subplot()
    points = sorted(points, key=lambda point: point.budget)
    budgets = [point.budget for point in points]
    axes.plot(budgets, [p.unpolite_bound for p in points], color="0.6", ls=":", marker=".", label="bound without gaps")
    axes.plot(budgets, [p.polite_bound for p in points], color="0.3", ls="--", marker=".", label="bound within gaps")
    axes.plot(budgets, [p.utility for p in points], color="C0", marker="o", label=f"{objective} reached")
    axes.axvline(present, color="C1", lw=1, label="the present budget")
    axes.set(xscale="log", xlabel="budget, fetches per day", ylabel=f"{objective} per unit of value")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(file, dpi=120)
