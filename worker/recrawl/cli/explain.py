"""The command `recrawl explain`: a page or a host in plain words."""

import json
import textwrap
from typing import Any

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.cli.database import connected

WIDTH = 80  # columns
UNKNOWN = 4  # the exit code if the crawl has no such page or host
INDENT = len("changes") + 2  # the longest topic


@click.command(
    epilog=example(
        "recrawl explain https://example.com/news",
        "recrawl explain example.com",
        notes="The exit code is 4 if the crawl has no such page or host.",
    )
)
@click.argument("what", metavar="URL|ID|HOST")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print one JSON object for each line of the answer, with all figures. Times are in UTC.",
)
def explain(what: str, as_json: bool) -> None:
    """Explain why a page is not fetched now, when it will be fetched, and how often.

    The argument is a URL, a page_id or the name of a host. For a host the answer says whether it is blocked, and until
    when. If the page can be fetched earlier, the line below the explanation says how: it is SQL for `recrawl psql`, or
    a command.
    """
    from recrawl import store
    from recrawl.intake.urls import as_stored

    with connected() as connection:
        rows = store.calls.explain_page(connection, as_stored(what))
    for row in rows:
        if as_json:
            click.echo(json.dumps(row))
        else:
            tell(row)
    if rows[0]["topic"] != "page" and rows[0]["code"] != "is_host":
        raise click.exceptions.Exit(UNKNOWN)


def tell(row: dict[str, Any]) -> None:
    """A row in 80 columns. Statements and other long words are not broken, so that they can be pasted."""
    heading = f"{'and' if row['topic'] == 'also' else row['topic']:{INDENT}}"
    wrapper = textwrap.TextWrapper(WIDTH, heading, " " * INDENT, break_long_words=False, break_on_hyphens=False)
    click.echo(wrapper.fill(show.plain(row["says"])))
    if row["fix"]:
        click.echo(" " * INDENT + show.plain(row["fix"]))
