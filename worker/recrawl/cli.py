"""recrawl … on the command line: arguments in, words out. Errors are one line and the exit code is not 0."""

import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from gzip import BadGzipFile
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click
import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from recrawl import show
from recrawl.embedded import EmbeddedError
from recrawl.importers import ImportFileError, Page

if TYPE_CHECKING:
    from recrawl import bulk

EXAMPLES = [
    "https://en.wikipedia.org/wiki/Web_crawler",
    "https://en.wikipedia.org/wiki/PostgreSQL",
    "https://www.postgresql.org/docs/current/",
    "https://www.iana.org/domains/reserved",
    "https://example.com/",
    "https://example.org/",
    "https://www.python.org/about/",
]

EPILOG = (
    "DATABASE_URL says which database: postgresql://user@host/name. Without it, recrawl runs an embedded PostgreSQL "
    "of its own while the command does; RECRAWL_DATA_DIR says where that keeps its data."
)


@contextmanager
def database() -> Iterator[str]:
    """The URL of the migrated database to use: DATABASE_URL's, else the embedded one."""
    from recrawl import embedded, migrate, store

    if url := given_url():
        yield url
        return
    with embedded.server() as url:
        migrate.upgrade(url)
        with store.connect(url) as connection:
            store.put_on_search_path(connection)
        yield url


def given_url() -> str | None:
    """DATABASE_URL, if it is set. What is wrong with it is told without quoting it: it may hold a password."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        return None
    try:
        parts = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg.ProgrammingError:
        parts = {}
    if not parts or "@" in str(parts.get("host", "")) or not re.fullmatch(r"[0-9,]*", str(parts.get("port", ""))):
        raise click.ClickException(
            "DATABASE_URL is not a URL like postgresql://user:password@host:port/database (in a password, @ is %40)"
        )
    return url


@click.group(epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="recrawl")
def cli() -> None:
    """A crawl scheduler embedded in Postgres.

    A crawler needs nothing of this: it says SELECT * FROM next_pages(100), fetches, and says report(…).
    These commands set the database up, look after it, and look at it.
    """


@cli.command()
def up() -> None:
    """Bring everything up: the database, its newest version, a worker. Ctrl-C stops."""
    from recrawl import migrate

    with database() as url:
        migrate.upgrade(url)
        click.echo(f"The database is at {without_password(url)}")
        click.echo("Try `recrawl psql`, then: SELECT * FROM next_pages(5)")
        work(url)


@cli.command("migrate")
@click.option("--search-path", is_flag=True, help="Also put the schema recrawl on this database's search_path.")
def migrate_command(search_path: bool) -> None:
    """Bring the database to the newest version (also: alembic upgrade head)."""
    from recrawl import migrate, store

    with database() as url:
        migrate.upgrade(url)
        if search_path:
            with store.connect(url) as connection:
                store.put_on_search_path(connection)
        click.echo(f"{without_password(url)} is at the newest version")


@cli.command()
def worker() -> None:
    """Look after the queue until Ctrl-C: leases that ran out go back, new pages come in, all within half a second.

    Without a worker the same happens inside next_pages, only less promptly.
    """
    with database() as url:
        work(url)


@cli.command("run")
@click.argument("job", type=click.Choice(["opic", "rates", "allocate"]))
def run_command(job: str) -> None:
    """Run a batch job once, now.

    opic: find out from the links how good each page is as a hub and as an authority, and what it is worth.
    rates: learn how often the pages of each host tend to change.
    allocate: divide the budget of fetches between all pages, so that the objective is served best within every
    host's gap.

    The views job_run, opic_run and allocation_run keep what came of it. The settings authority_weight, hub_weight,
    importance_weight and relevance_weight say what makes up a value; budget, objective, exploration, longest_interval
    and shortest_interval say what is wanted of the allocation.
    """
    from rich.console import Console

    with database() as url, Console(stderr=True).status("") as status:
        from recrawl import jobs

        said = jobs.JOBS[job](url, tell_and(status.update))
    click.echo(said)


@cli.command()
@click.option("--budget", "budgets", help="Fetches per day, or multiples of the present budget, as 0.5x,1x,2x.")
@click.option("--freshness", type=float, help="The budget that reaches this share (0.95) of what could be reached.")
@click.option("--png", type=click.Path(dir_okay=False), help="Also draw the curve into this file (needs matplotlib).")
def plan(budgets: str | None, freshness: float | None, png: str | None) -> None:
    """What other budgets would bring, from what is known of your pages. Changes nothing.

    The objective is told per unit of value (freshness: the share of the value that is fresh), beside what it could be
    at most within the hosts' gaps (polite bound) and without them (unpolite bound).
    """
    from recrawl.plan import Plan

    with database() as url:
        plan = Plan(url)
        if not plan.crawl.pages:
            raise click.ClickException("no page takes part yet: a page does from its first report on")
        try:
            wanted = [multiple_of(plan.crawl.budget, text) for text in (budgets or "0.5x,1x,2x,5x").split(",")]
            if freshness is not None:
                wanted = [plan.budget_for(freshness)]
        except ValueError as error:
            raise click.ClickException(str(error)) from None
        points, held_back = plan.curve(wanted), plan.held_back(5)
        pages, present, objective = plan.crawl.pages, plan.crawl.budget, plan.crawl.objective
    click.echo(f"{pages:,} pages; the budget is {present:,.6g} fetches a day\n")
    show.curve(points, present, objective)
    if held_back:
        click.echo("\nHosts whose gap costs most at the present budget:\n")
        show.held_back(held_back, objective)
    if png:
        try:
            show.draw(points, present, objective, png)
        except ImportError:
            raise click.ClickException("--png needs matplotlib: pip install recrawl[png]") from None


@cli.command()
def audit() -> None:
    """Hold the rates that are learnt two numbers a page against all that the fetch log knows (the setting keep_log).

    The change rate of every page whose visits are all in the log is estimated anew by maximum likelihood.
    """
    from recrawl import jobs

    with database() as url:
        lines = jobs.audit(url)
    if not lines:
        raise click.ClickException(
            "the fetch log is empty: say SELECT recrawl.set_setting('keep_log', '90 days') first"
        )
    show.agreement(lines)


def multiple_of(present: float, text: str) -> float:
    try:
        budget = float(text.strip().removesuffix("x")) * (present if text.strip().endswith("x") else 1)
    except ValueError:
        budget = -1.0
    if not 0 < budget < float("inf"):
        raise ValueError(f"--budget must be numbers of fetches a day, or multiples like 2x, got {text.strip()!r}")
    return budget


def tell_and(update: Callable[[str], None]) -> Callable[[str], None]:
    """Shows each step; where nobody watches, prints the first line of each kind."""
    told: set[str] = set()

    def tell(step: str) -> None:
        update(step)
        if not sys.stderr.isatty() and step.split(":")[0] not in told:
            told.add(step.split(":")[0])
            click.echo(step.split(":")[0], err=True)

    return tell


@cli.command()
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL…")
def add(sources: tuple[str, ...]) -> None:
    """Add URLs: given as such, or from files, or from standard input (-).

    A file holds one URL a line, or is a CSV with a header (url and, if you like, value and rate, the changes
    per day), or a dump of URLFrontier in JSON lines. Any of them may be gzipped (.gz).
    """
    from recrawl import bulk

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

    from recrawl import bulk
    from recrawl.importers import open_text, reader_for

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


@cli.command("next")
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


@cli.command()
def status() -> None:
    """The queue at a glance."""
    from recrawl import store

    with database() as url, store.connect(url) as connection:
        for name, value in store.queue_status(connection).items():
            click.echo(f"{name:14} {show.readable(value)}")


@cli.command()
def demo() -> None:
    """Show it working: adds a few URLs, asks for pages, and takes it all back."""
    from recrawl import migrate, store

    with database() as url:
        migrate.upgrade(url)
        with store.connect(url) as connection, connection.transaction(force_rollback=True):
            added = store.add_pages(connection, [Page(example) for example in EXAMPLES])
            click.echo(f"Added {added.counts.get('new', 0)} URLs of {len(EXAMPLES)}.\n\nSELECT * FROM next_pages(5);\n")
            pages = store.next_pages(connection, 5, timedelta(0), timedelta(minutes=10), None)
            show.table(pages, "nothing may be fetched now")
            click.echo("\nOne page a host: the second page of a host has to wait for the host's gap.")


@cli.command(context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def psql(arguments: tuple[str, ...]) -> None:
    """Open psql on the database, with the schema recrawl on its search_path."""
    from recrawl import embedded

    with database() as url:
        program = shutil.which("psql") or str(embedded.program("psql"))
        target = conninfo_to_dict(url)
        secret = {"PGPASSWORD": str(target.pop("password"))} if "password" in target else {}
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is psql's: it cancels a query
        options = f'{os.environ.get("PGOPTIONS", "")} -c search_path="$user",public,recrawl'.strip()
        code = subprocess.run(
            [program, make_conninfo("", **target), *arguments],
            env=os.environ | {"PGOPTIONS": options} | secret,  # a command line is everybody's to read
            check=False,
        ).returncode
    sys.exit(code)


def work(url: str) -> None:
    from recrawl import schedule

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    schedule.run(url, ready=lambda: click.echo("The worker is at work; Ctrl-C stops it."))


def without_password(url: str) -> str:
    from sqlalchemy.engine import make_url

    return make_url(url).difference_update_query(["password"]).render_as_string(hide_password=True)


def main() -> None:
    """Runs a command; whatever goes wrong becomes one line on standard error."""
    try:
        sys.exit(cli(standalone_mode=False))
    except click.Abort:
        sys.exit(130)
    except click.UsageError as error:
        if error.ctx is None or len(sys.argv) == 1:  # bare `recrawl`: the error is the help
            error.show()
            sys.exit(error.exit_code)
        fail(f"{error.format_message()} Try: {error.ctx.command_path} --help", error.exit_code)
    except click.ClickException as error:
        fail(error.format_message())
    except psycopg.Error as error:
        message, hint = str(error.diag.message_primary or error), error.diag.message_hint or ""
        if re.search(r"recrawl.*does not exist", message) and sys.argv[1:2] != ["migrate"]:
            hint = "Perhaps this database was not migrated: say `recrawl migrate`."
        fail(f"{message}: {hint}" if hint else message)
    except (EmbeddedError, ValueError, OSError) as error:  # an ImportFileError is a ValueError
        fail(str(error))


def fail(message: str, code: int = 1) -> None:
    click.echo(f"recrawl: {' '.join(message.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
