"""Commands that show how the crawl is doing: status, doctor, jobs. They change nothing."""

import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.cli.database import connected, database
from recrawl.jobs.registry import JOBS

TROUBLE, WARNING = 2, 3  # exit codes; 1 is an error, such as no connection
COLOURS = {"✓": "green", "▲": "yellow", "✕": "red", "▶": "cyan"}


@click.command(
    epilog=example(
        "recrawl status",
        notes="The exit code is 0 without trouble, 2 with trouble, and 1 if the database does not answer.",
    )
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object with the verdict and its figures.")
def status(as_json: bool) -> None:
    """Show whether the crawl works, its most important figures, and what to fix."""
    from recrawl.view import figures, screens
    from recrawl.view.verdict import verdict

    with connected() as connection:
        found = figures.read(connection)
    diagnosis = verdict(found)
    if as_json:
        click.echo(json.dumps({"verdict": asdict(diagnosis), "figures": asdict(found)}, default=show.iso))
    else:
        tell(screens.status(found, diagnosis))
    sys.exit(TROUBLE if diagnosis.level == "trouble" else 0)


@click.command(
    epilog=example(
        "recrawl doctor",
        notes="The exit code is 0 if all checks are well, 2 if there is trouble, 3 if there is a warning, and 1 if the "
        "database does not answer.",
    )
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per check.")
def doctor(as_json: bool) -> None:
    """Check everything, and show how to fix what is wrong."""
    from recrawl import store
    from recrawl.setup import embedded
    from recrawl.view import facts, screens
    from recrawl.view.verdict import checks

    with database() as url, store.connect(url) as connection:
        found = checks(facts.read(connection, embedded.is_on_our_server(url)))
    if as_json:
        for check in found:
            click.echo(json.dumps(asdict(check)))
    else:
        tell(screens.doctor(found))
    levels = {check.level for check in found}
    sys.exit(TROUBLE if "trouble" in levels else WARNING if "warn" in levels else 0)


@click.command(epilog=example("recrawl jobs", "recrawl jobs allocate"))
@click.argument("job", type=click.Choice(list(JOBS)), required=False)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per run, the newest first.")
def jobs(job: str | None, as_json: bool) -> None:
    """Show the last runs of the jobs, and when each runs next.

    With the name of a job: its last runs. `recrawl run` runs a job now.
    """
    from recrawl import store
    from recrawl.view import figures, screens

    with connected() as connection:
        if as_json or job:
            runs = store.views.past_runs(connection, figures.PastRun, job)
        else:
            now = store.views.row_of(connection, figures.Now, "crawl_status")
            last = store.views.last_runs(connection, figures.LastRun, figures.ALWAYS)
            known = {each.job: each for each in store.views.schedule(connection, figures.Schedule)}
    if as_json:
        for run in runs:
            click.echo(json.dumps(asdict(run), default=show.iso))
    elif job:
        tell(screens.runs(job, runs))
    else:
        scheduled = [known.get(name) or figures.Schedule(name, entry.every, None) for name, entry in JOBS.items()]
        tell(screens.jobs(scheduled, last, now.as_of, bool(now.worker_is_running)))


def tell(lines: Iterable[str]) -> None:
    """Prints lines. On a terminal the mark at the beginning has a colour."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    for line in map(show.plain, lines):
        mark = line[:1]
        is_painted = mark in COLOURS and not is_plain
        painted = click.style(mark, fg=COLOURS[mark], bold=True) + line[1:] if is_painted else line
        click.echo(painted)
