"""The command `recrawl compare`: all policies on your own crawl."""

import json
from dataclasses import asdict

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.cli.database import same_version
from recrawl.words import count, percent, things


@click.command(epilog=example("recrawl compare"))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per policy.")
def compare(as_json: bool) -> None:
    """Compare all policies on your own crawl. Changes nothing.

    A policy is a way to divide the budget (the fetches per day) between the pages. The age of a page is the time since
    its copy became outdated.

    The figures are computed from the rates and values of your pages, at the present budget, as if each policy had been
    in force for a long time. Freshness and age are weighted by value. The delay is the time from a change to the next
    fetch.
    """
    from recrawl import store
    from recrawl.jobs.allocation_input import NOBODY_TAKES_PART, read
    from recrawl.jobs.compare import compare

    with same_version() as url, store.connect(url, "recrawl compare") as connection:
        crawl = read(url, connection)
    if not crawl.pages:
        raise click.ClickException(NOBODY_TAKES_PART)
    found = compare(crawl)
    if as_json:
        for one in found:
            figures = {"policy": one.policy, **asdict(one.outlook), "for_new": one.for_new, "unused": one.unused}
            known = {name: None if figure == float("inf") else figure for name, figure in figures.items()}
            click.echo(json.dumps(known))
    else:
        click.echo(f"{things(crawl.pages, 'page')}. The policy {crawl.settings.policy} is in force.\n")
        rows = [
            {
                "policy": one.policy,
                "fresh": percent(one.outlook.fresh),
                "changes seen a day": count(one.outlook.changes_seen),
                "delay, days": _days(one.outlook.delay_days),
                "age, days": _days(one.outlook.age_days),
                "revisits a day": count(one.outlook.fetches),
                "new pages a day": count(one.for_new),
                "not used a day": count(one.unused),
            }
            for one in found
        ]
        show.table(rows)


def _days(days: float) -> str:
    return "never seen" if days == float("inf") else count(days)
