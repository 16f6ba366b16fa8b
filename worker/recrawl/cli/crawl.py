"""Commands that a crawler's owner looks through: add, next, status, demo."""

import json
import sys
import zlib
from datetime import timedelta
from gzip import BadGzipFile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from recrawl.cli import show
from recrawl.cli.database import database

if TYPE_CHECKING:
    from recrawl.intake import bulk

EXAMPLES = [
    "https://en.wikipedia.org/wiki/Web_crawler",
    "https://en.wikipedia.org/wiki/PostgreSQL",
    "https://www.postgresql.org/docs/current/",
    "https://www.iana.org/domains/reserved",
    "https://example.com/",
    "https://example.org/",
    "https://www.python.org/about/",
]


@click.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL…")
def add(sources: tuple[str, ...]) -> None:
    """Add URLs: given as such, or from files, or from standard input (-).

    A file holds one URL a line, or is a CSV with a header (url and, if you like, value and rate, the changes
    per day), or a dump of URLFrontier in JSON lines. Any of them may be gzipped (.gz).
    """
    from recrawl.intake import bulk
    from recrawl.intake.importers import ImportFileError
    from recrawl.store import Page

    urls = [source for source in sources if "://" in source]
    files = [source for source in sources if "://" not in source]
    progress = bulk.Progress()
    with database() as url:
        try:
            if urls:
                bulk.add(url, [Page(u) for u in urls], progress=progress)
            for name in files:
                try:
                    add_file(url, name, progress)
                # Click would take an EOFError, which is what a truncated .gz raises, for the user's Ctrl-D.
                except (ImportFileError, EOFError, zlib.error, BadGzipFile) as error:
                    raise ImportFileError(f"{name}: {error}") from None
        finally:
            if progress.counts:
                click.echo(", ".join(f"{count:,} {code}" for code, count in sorted(progress.counts.items())))
            for bad, reason in progress.invalid[:5]:
                click.echo(f"  invalid: {bad[:200]!r}: {reason}", err=True)
    if not progress.counts:
        click.echo("no URLs")
    elif set(progress.counts) == {"invalid"}:
        raise click.exceptions.Exit(1)


def add_file(url: str, name: str, progress: "bulk.Progress") -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from recrawl.intake import bulk
    from recrawl.intake.importers import open_text, reader_for

    with open_text(name) as text:
        head = []
        for line in text:
            head.append(line)
            if line.strip():
                break
        pages = reader_for(name, head[-1] if head else "")(chain(head, text))
        size = Path(name).stat().st_size if name != "-" else None
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[done]}"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(name, total=size, done="")

            before = progress.counts.total()

            def watch(progress: bulk.Progress) -> None:
                total = progress.counts.total() - before
                seconds = bar.tasks[task].elapsed or 1
                bar.update(
                    task,
                    completed=position(text) if size else 0,
                    done=f"{total:,} URLs, {total / seconds:,.0f}/s",
                )

            bulk.add(url, pages, watch, progress)


def position(text: TextIO) -> int:
    """How many bytes of the file have been read; of the packed ones, if it is."""
    source: Any = text.buffer
    return int((source.fileobj if hasattr(source, "fileobj") else source.raw).tell())


class Seconds(click.ParamType[timedelta]):
    """A duration in seconds."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        try:
            return timedelta(seconds=float(value))
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a number of seconds", param, ctx)


@click.command("next")
@click.argument("n", type=click.IntRange(max=2**31 - 1), default=100)
@click.option("--ahead", type=Seconds(), default="0", show_default=True, help="Look this far ahead for slots.")
@click.option("--lease", type=Seconds(), default="600", show_default=True, help="How long the pages are yours.")
@click.option("--per-host", type=int, help="At most this many pages of one host.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def next_command(n: int, ahead: timedelta, lease: timedelta, per_host: int | None, as_json: bool) -> None:
    """Take the next N pages to fetch, as a crawler would: they are leased to you."""
    from recrawl import store

    with database() as url, store.connect(url) as connection:
        pages = store.next_pages(connection, n, ahead, lease, per_host)
    if as_json:
        for page in pages:
            click.echo(json.dumps(page, default=str))
    else:
        show.table(pages, "nothing may be fetched now")


@click.command()
def status() -> None:
    """The queue at a glance."""
    from recrawl import store

    with database() as url, store.connect(url) as connection:
        for name, value in store.queue_status(connection).items():
            click.echo(f"{name:14} {show.readable(value)}")


@click.command()
def demo() -> None:
    """Show it working: adds a few URLs, asks for pages, and takes it all back."""
    from recrawl import store
    from recrawl.setup import migrate

    with database() as url:
        migrate.upgrade(url)
        with store.connect(url) as connection, connection.transaction(force_rollback=True):
            added = store.add_pages(connection, [store.Page(example) for example in EXAMPLES])
            click.echo(f"Added {added.counts.get('new', 0)} URLs of {len(EXAMPLES)}.\n\nSELECT * FROM next_pages(5);\n")
            pages = store.next_pages(connection, 5, timedelta(0), timedelta(minutes=10), None)
            show.table(pages, "nothing may be fetched now")
            click.echo("\nOne page a host: the second page of a host has to wait for the host's gap.")
