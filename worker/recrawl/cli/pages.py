"""Commands to add URLs, and to do by hand what a crawler does: add, next, look, release."""

import json
import os
import re
import signal
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from gzip import BadGzipFile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.cli.database import connected, database
from recrawl.words import count, things

if TYPE_CHECKING:
    from recrawl.store.calls import AddedPages

BIGINT = click.IntRange(-(2**63), 2**63 - 1)
SOME_INVALID = 3  # the exit code if all lines were read and some were invalid


@click.command(
    epilog=example(
        "recrawl add https://example.com/",
        "recrawl add urls.txt",
        "recrawl add --only-these-hosts https://www.example.net/",
        notes="The exit code is 3 if some URLs were invalid and all others were added, 1 after an error, 130 after "
        "Ctrl-C.",
    )
)
@click.argument("sources", nargs=-1, required=True, metavar="FILE|URL…")
@click.option(
    "--only-these-hosts",
    is_flag=True,
    help="Crawl only the hosts of these URLs: exclude the URLs of all other hosts. Name all hosts in one command: a "
    "second command cannot add a host that the first one excluded.",
)
def add(sources: tuple[str, ...], only_these_hosts: bool) -> None:
    """Add URLs from the command line, from files, or from standard input (-).

    A file has one URL per line. It can also be a CSV file with the column url. Its optional columns are value (how much
    the page is worth), rate (changes per day) and due (the time of the next fetch). Dumps of URLFrontier (JSON lines)
    and of Nutch's CrawlDb (CSV) can be read too. Files may be gzipped.

    URLs that were added stay in the crawl, also after an error or Ctrl-C. You can add the same file again.
    """
    from recrawl.intake import bulk
    from recrawl.intake.importers import ImportFileError
    from recrawl.store.calls import AddedPages, PageToAdd

    urls = [source for source in sources if "://" in source]
    files = [source for source in sources if "://" not in source]
    progress = AddedPages()
    others = all_but_hosts_of(urls, files) if only_these_hosts else None
    with database(makes=True) as url, one_interrupt("stopping, after the current batch of URLs"):
        try:
            if others:
                exclude(url, others)
            if urls:
                bulk.add(url, [PageToAdd(u) for u in urls], progress=progress)
            for name in files:
                try:
                    add_file(url, name, progress)
                # Click would take an EOFError, which is what a truncated .gz raises, for the user's Ctrl-D.
                except (ImportFileError, EOFError, zlib.error, BadGzipFile) as error:
                    raise ImportFileError(f"{name}: {error}") from None
                except FileNotFoundError:
                    raise ImportFileError(f"{name}: no such file. A URL begins with http:// or https://") from None
        except BaseException:
            tell_counts(progress)
            if progress.counts:
                click.echo("Not all URLs were added. You can add the same URLs again.")
            raise
        tell_counts(progress)
    if not progress.counts:
        click.echo("no URLs")
    if progress.counts["invalid"]:
        raise click.exceptions.Exit(SOME_INVALID)


def all_but_hosts_of(urls: list[str], files: list[str]) -> str:
    """The pattern that matches the canonical URLs of all other hosts."""
    from recrawl.intake.urls import clean

    hosts = {url: urlsplit(clean(url)).netloc.rpartition("@")[2].lower() for url in urls}
    names = {url: re.sub(r":\d*$", "", host).removesuffix(".") for url, host in hosts.items()}
    if files or not any(names.values()):
        raise click.UsageError("--only-these-hosts needs URLs and no files: they name the hosts")
    # A pattern with a name that no host can have would exclude all URLs.
    for url, name in names.items():
        if not re.fullmatch(r"[a-z0-9_.-]+|\[[0-9a-f:.]+\]", name):
            raise click.UsageError(f"--only-these-hosts: {url} names no host")
    return rf"^https?://(?!({'|'.join(map(re.escape, sorted({*names.values()})))})(:\d+)?/)"


def exclude(url: str, pattern: str) -> None:
    from recrawl import store

    with store.connect(url) as connection:
        pages = store.calls.exclude(connection, pattern)
    left = f" {things(pages, 'page')} on other hosts left the crawl." if pages else ""
    click.echo(f"From now on URLs of other hosts are excluded.{left}")


def tell_counts(progress: "AddedPages") -> None:
    if progress.counts:
        click.echo(", ".join(f"{count(number)} {code}" for code, number in sorted(progress.counts.items())))
    if progress.counts["unanswered"]:
        click.echo(
            "  unanswered: the connection broke. These URLs may be in the crawl or not; add them again", err=True
        )
    for bad, reason in progress.invalid:
        click.echo(f"  invalid: {bad[:200]!r}: {show.plain(reason)}", err=True)
    if unsaid := progress.counts["invalid"] - len(progress.invalid):
        click.echo(f"  invalid: {count(unsaid)} more", err=True)


@contextmanager
def one_interrupt(words: str) -> Iterator[None]:
    """The first Ctrl-C prints a message and stops the command. Later ones do not interrupt the stop."""

    def stop(*_: object) -> None:
        signal.signal(signal.SIGINT, lambda *_: click.echo("still stopping", err=True))
        click.echo(f"recrawl: {words}", err=True)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def add_file(url: str, name: str, progress: "AddedPages") -> None:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from recrawl.intake import bulk
    from recrawl.intake.importers import open_text, pages_in

    with open_text(name) as text:
        pages = pages_in(name, text)
        size = Path(name).stat().st_size if name != "-" else None
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[done]}", markup=False),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty()) as bar:
            task = bar.add_task(name, total=size, done="")
            before = progress.counts.total()

            def watch(progress: "AddedPages") -> None:
                total = progress.counts.total() - before
                seconds = bar.tasks[task].elapsed or 1
                bar.update(
                    task,
                    # bytes that were read, compressed bytes if the file is gzipped
                    completed=os.lseek(text.fileno(), 0, os.SEEK_CUR) if size else 0,
                    done=f"{things(total, 'URL')}, {count(round(total / seconds))}/s",
                )

            bulk.add(url, pages, watch, progress)


def seconds(text: str) -> timedelta:
    try:
        return timedelta(seconds=float(text))
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{text!r} is not a number of seconds") from None


@click.command("next", epilog=example("recrawl next 5", "recrawl next 100 --ahead 10 --json"))
@click.argument("n", type=click.IntRange(max=2**31 - 1), default=100)
@click.option(
    "--ahead",
    type=seconds,
    default="0",
    show_default=True,
    help="Also take pages whose request must wait, at most this number of seconds.",
)
@click.option("--lease", type=seconds, default="600", show_default=True, help="Seconds until the lease ends.")
@click.option(
    "--per-host", type=click.IntRange(max=2**31 - 1), metavar="N", help="Maximum number of pages of one host."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per page.")
def next_command(n: int, ahead: timedelta, lease: timedelta, per_host: int | None, as_json: bool) -> None:
    """Take the next N pages (default 100), as a crawler does. Until the lease ends, nobody else gets them.

    `recrawl look` shows pages and takes none. `recrawl release` releases the pages of a lease.
    """
    from recrawl import store

    with connected() as connection:
        pages = store.calls.next_pages(connection, n, ahead, lease, per_host)
    show_pages(pages, as_json)
    if pages and not as_json:
        lease_id, until = pages[0]["lease_id"], show.readable(pages[0]["lease_until"])
        click.echo(f"\nLeased to you until {until}. To release them: recrawl release {lease_id}")


@click.command(epilog=example("recrawl look 10"))
@click.argument("n", type=click.IntRange(1, 2**31 - 1), default=100)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per page.")
def look(n: int, as_json: bool) -> None:
    """Show N pages (default 100) that crawlers will get soon. Takes none of them.

    The result is roughly what `recrawl next --ahead 60` takes. It has at most two pages of each host: one new page, and
    one page that was fetched before. A host is missing if no request to it may start within the next minute (the
    setting max_ahead). Pages that were added in the last second may be missing.
    """
    from recrawl import store

    with connected() as connection:
        show_pages(store.calls.coming(connection, n), as_json)


@click.command(epilog=example("recrawl release 17", "recrawl release 17 4 5"))
@click.argument("lease_id", type=BIGINT)
@click.argument("page_ids", type=BIGINT, nargs=-1, metavar="[PAGE_ID…]")
def release(lease_id: int, page_ids: tuple[int, ...]) -> None:
    """Release pages that `recrawl next` leased to you and that you did not fetch.

    Without PAGE_ID all pages of the lease are released.
    """
    from recrawl import store

    with connected() as connection:
        released = store.calls.release(connection, lease_id, page_ids or None)
    if not released:
        raise click.ClickException(
            f"lease {lease_id} has no such page: the lease ended, or the page was released or reported"
        )
    click.echo(f"{things(released, 'page')} released")


def show_pages(pages: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for page in pages:
            click.echo(json.dumps(page, default=show.iso))
    elif not pages:
        click.echo("no page can be fetched now; recrawl status says why")
    else:
        columns = ("page_id", "url", "is_new", "fetch_at", "start_by", "due_at", "attempt", "value")
        rows = [{name: page[name] for name in columns if name in page} for page in pages]
        show.table(rows)
