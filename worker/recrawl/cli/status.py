"""Commands that show how the crawl is doing: status, top, doctor, jobs. They change nothing."""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.cli.database import connected, database
from recrawl.jobs.registry import JOBS

TROUBLE, WARNING = 2, 3  # exit codes; 1 is an error, such as no connection
EVERY = 2.0  # seconds between two screens of `recrawl top`
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


@click.command(epilog=example("recrawl top"))
def top() -> None:
    """Show how the crawl is doing. The figures are updated every two seconds. Press q to quit."""
    if not sys.stdin.isatty() or not sys.stdout.isatty():
        raise click.ClickException("top needs a terminal. Without a terminal, use: recrawl status")
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    from recrawl.view import figures, screens
    from recrawl.view.verdict import verdict

    console = Console(highlight=False)
    if console.is_dumb_terminal:
        raise click.ClickException("top needs a terminal that can move its cursor. Otherwise use: recrawl status")
    for number in (signal.SIGTERM, signal.SIGHUP):  # so that the terminal is put back
        signal.signal(number, signal.default_int_handler)
    with connected() as connection:
        name = connection.info.dbname
        with Live(console=console, screen=True, auto_refresh=False) as live, _keys() as pressed:
            while True:
                found = figures.read(connection)
                lines = screens.top(found, verdict(found), name, console.height)
                painted = (Text(line, COLOURS.get(line[:1], ""), no_wrap=True, overflow="crop") for line in lines)
                live.update(Group(*painted), refresh=True)
                if pressed(EVERY):
                    break


@contextmanager
def _keys() -> Iterator[Callable[[float], bool]]:
    """The keyboard without Enter and without echo. Yields a function that waits some seconds for the key to quit."""
    import select
    import termios
    import time
    import tty

    def quits(seconds: float) -> bool:
        until = time.monotonic() + seconds
        while select.select([sys.stdin], [], [], max(0.0, until - time.monotonic()))[0]:
            key = os.read(sys.stdin.fileno(), 64)  # an arrow is several bytes, and begins as Escape does
            if key in (b"q", b"Q", b"\x1b", b"\x04", b""):
                return True
        return False

    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield quits
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)


def tell(lines: Iterable[str]) -> None:
    """Prints lines. On a terminal the mark at the beginning has a colour."""
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    for line in map(show.plain, lines):
        mark = line[:1]
        is_painted = mark in COLOURS and not is_plain
        painted = click.style(mark, fg=COLOURS[mark], bold=True) + line[1:] if is_painted else line
        click.echo(painted)
