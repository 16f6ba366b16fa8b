"""The command `recrawl experiment`: repeats measurements of the literature."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli import show
from recrawl.cli.common import example, mistyped, needs
from recrawl.words import measured, percent

if TYPE_CHECKING:
    from recrawl.lab.experiments.findings import Findings


@click.command(epilog=example("recrawl experiment", "recrawl experiment opic --quick"))
@click.argument("name", required=False)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    metavar="NUMBER",
    default=0,
    show_default=True,
    help="Random seed. The documents show the results of seed 0.",
)
@click.option("--quick", is_flag=True, help="A smaller experiment: it takes seconds, and its numbers are rough.")
@click.option(
    "--figure", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg",
    help="Also draw the result into this file (needs matplotlib).",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def experiment(name: str | None, seed: int, quick: bool, figure: Path | None, as_json: bool) -> None:
    """Repeat an experiment of the literature. Without a NAME, list the experiments.

    No database is needed. The experiments run the code of production and the methods of the papers.
    """
    from recrawl.cli.progress import steps
    from recrawl.lab.experiments.registry import EXPERIMENTS, experiment_named

    if name is None:
        show.table([{"experiment": each.name, "shows": each.says} for each in EXPERIMENTS.values()])
        return
    with mistyped():
        wanted = experiment_named(name)
    if figure:
        _can_be_drawn(figure)
    with steps() as tell:
        tell(wanted.name)
        found = wanted.run(seed, quick)
    if as_json:
        tables = {table.title: table.rows for table in found.tables}
        click.echo(json.dumps({"experiment": wanted.name, "seed": seed, "tables": tables, "says": found.says}))
    else:
        _tell(found)
    if figure:
        from recrawl.lab.commands.figure import draw_panels

        draw_panels(found.figure, figure)


def _can_be_drawn(figure: Path) -> None:
    """Refuses a bad --figure before the experiment, which may take minutes."""
    if figure.suffix != ".svg":
        raise click.UsageError(f"--figure must be a file that ends in .svg, got {figure}")
    if not figure.absolute().parent.is_dir():
        raise click.UsageError(f"--figure must be in an existing folder, got {figure}")
    with needs("png"):
        import recrawl.lab.commands.figure  # noqa: F401


def _tell(found: "Findings") -> None:
    for table in found.tables:
        click.echo(f"{table.title}\n")
        show.table([{heading: _cell(value) for heading, value in row.items()} for row in table.rows])
        click.echo()
    click.echo(found.says)


def _cell(value: str | int | float) -> str:
    from recrawl.lab.experiments.findings import ResultShare

    if isinstance(value, str):
        return value
    return percent(value, 2) if isinstance(value, ResultShare) else measured(value, 5)
