"""The command `recrawl explain`: a page in plain words."""

import json
import textwrap
from typing import Any

import click

from recrawl.cli import show
from recrawl.cli.database import PATIENCE, database

WIDTH = 80  # columns
NO_PAGE = 4  # the exit code when what was asked for is no page
HEADINGS = {"page": "page", "now": "now", "also": "and", "last": "last", "often": "often", "changes": "changes",
            "value": "value"}  # fmt: skip
INDENT = max(map(len, HEADINGS.values())) + 2


@click.command()
@click.argument("what", metavar="URL|ID|HOST")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line, with all figures; times in UTC.")
def explain(what: str, as_json: bool) -> None:
    """Say why a page is not fetched now, when it will be, how often.

    The URL may be in any spelling, with http:// or https://. Of a host's name it says what holds that host. Where
    something can be done about it, the line below is what does it: SQL for `recrawl psql`, or a command. The exit code
    is 4 if there is no such page.
    """
    from recrawl import store

    with database() as url, store.connect(url, connect_timeout=PATIENCE) as connection:
        rows = store.verbs.explain_page(connection, what)
    for row in rows:
        if as_json:
            click.echo(json.dumps(row))
        else:
            tell(row)
    if rows[0]["topic"] != "page":
        raise click.exceptions.Exit(NO_PAGE)


def tell(row: dict[str, Any]) -> None:
    """A row in 80 columns, but for words that are longer: what is to be pasted is not broken."""
    says, mend = show.plain(row["says"]), show.plain(row["mend"] or "")
    heading = f"{HEADINGS[row['topic']]:{INDENT}}"
    click.echo(
        textwrap.fill(
            says,
            WIDTH,
            initial_indent=heading,
            subsequent_indent=" " * INDENT,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
    if mend:
        click.echo(f"{' ' * INDENT}{mend}")
