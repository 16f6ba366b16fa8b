"""The command `recrawl simulate`: runs policies on simulated or recorded webs."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from recrawl.cli import show
from recrawl.cli.common import example, mistyped
from recrawl.cli.database import database_url
from recrawl.lab.commands.throwaway import throwaway_database
from recrawl.words import count, measured, percent

if TYPE_CHECKING:
    from recrawl.lab.outcome import Outcome
    from recrawl.lab.world import World


@click.command(
    epilog=example(
        "recrawl simulate --recorded sample --per-page 0.1",
        "recrawl simulate --web drift --per-page 0.2 --policy opt_polite --policy uniform",
        notes='A file for --recorded has one page per line, as a JSON array: ["host", "page", born, died, '
        "[change, …]]. born, died and the changes are times in days. died is null if the page still exists. A page "
        "can also be [[days, changed], …]: for each fetch the days since the last fetch, and whether the "
        "page had changed. The file may be gzipped. recrawl contains one such file, with the name `sample`. It has the "
        "histories of 5,950 text files of seven public repositories.",
    )
)
@click.option("--recorded", "file", metavar="FILE", help="Use this file of recorded histories as the web.")
@click.option(
    "--web",
    "kind",
    metavar="KIND",
    help="Use a simulated web: steady, drift, turnover, values, outages, noise or content.",
)
@click.option("--from", "begin", type=float, metavar="DAY", help="First day. Default: the first day of the web.")
@click.option("--to", "end", type=float, metavar="DAY", help="Last day. Default: the last day of the web.")
@click.option(
    "--policy",
    "names",
    multiple=True,
    metavar="NAME",
    help="The policy that divides the fetches. Default: opt_polite. The policies oracle and foresight know the future.",
)
@click.option("--per-page", "budget", type=float, required=True, metavar="FETCHES", help="Fetches per page and day.")
@click.option("--seed", type=click.IntRange(min=0), metavar="NUMBER", default=0, show_default=True, help="Random seed.")
@click.option(
    "--sql",
    "through_sql",
    is_flag=True,
    help="Call the SQL functions and jobs, in a PostgreSQL that is deleted afterwards.",
)
@click.option(
    "--database",
    "url",
    metavar="URL",
    callback=database_url,
    help="Like --sql, in this empty database, which is kept.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per policy.")
def simulate(
    file: str | None, kind: str | None, begin: float | None, end: float | None, names: tuple[str, ...], budget: float,
    seed: int, through_sql: bool, url: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Run a policy on a web whose changes are all known.

    The simulation runs the code of production: it learns change rates, divides the budget every day, and schedules each
    page. Hosts have no gap: a request may follow another immediately. Freshness is the share of time that pages were
    fresh, weighted by value. The delay is the time from a change to the next fetch. Use --policy several times to
    compare policies.

    \b
    The simulated webs:
      steady     each page changes at its own constant rate
      drift      rates change, by 15 % a day
      turnover   pages appear and disappear
      values     like steady, and pages have different values
      outages    like steady, and sometimes a host is down for a day
      noise      like steady, and a tenth of the pages look changed at every fetch
      content    like steady, with small and large changes

    Without --sql no database is needed, and a run takes seconds instead of minutes. After the first days the results
    with and without --sql differ by less than one percent. On the web `outages` they differ by up to three percent.
    Two things are different with --sql: at the start no page was fetched before, and requests to a host that is down
    use a part of the budget.
    """
    from recrawl.cli.progress import steps

    with mistyped():
        names = tuple(map(_checked, names)) or ("opt_polite",)
    if url and len(names) > 1:
        raise click.UsageError("--database accepts one policy: a second one would find the pages of the first")
    world = _world(file, kind, end, seed)
    first, last = world.days
    begin, end = first if begin is None else begin, last if end is None else end
    outcomes = []
    for name in names:
        with steps() as tell:
            watch = partial(tell, name, of=end - begin)
            outcomes.append(_simulated(world, name, budget, begin, end, seed, through_sql, url, watch))
        if as_json:
            figures = asdict(outcomes[-1])
            del figures["hosts"]
            click.echo(json.dumps(figures))
    if not as_json:
        click.echo(f"day {begin:g} to day {end:g}, {budget:g} fetches per page and day\n")
        _show(outcomes)


def _world(file: str | None, kind: str | None, end: float | None, seed: int) -> "World":
    from recrawl.lab import recorded, worlds

    if (file is None) == (kind is None):
        raise click.UsageError("choose a web: --recorded FILE, or --web KIND")
    if kind is not None and end is not None and end > worlds.DAYS:
        raise click.UsageError(f"a simulated web lasts {worlds.DAYS} days, got --to {end:g}")
    if kind is None:
        return recorded.read(str(file))
    with mistyped():
        return worlds.draw(kind, seed)


def _simulated(
    world: "World", name: str, budget: float, begin: float, end: float, seed: int, through_sql: bool,
    url: str | None, watch: Callable[[float], None],
) -> "Outcome":  # fmt: skip
    from recrawl.lab import replay
    from recrawl.lab import through_sql as sql
    from recrawl.lab.oracle import ORACLES, oracle
    from recrawl.lab.outcome import outcome_of_fetches
    from recrawl.lab.policies.registry import ONLY_SIMULATED, SIMULATED
    from recrawl.setup import migrate

    with mistyped():
        replay.check(world, budget, begin, end)
    if not (through_sql or url):
        if name in ORACLES:
            return oracle(world, name, budget, begin, end, seed, watch)
        return replay.replay(world, SIMULATED[name], budget, begin, end, seed, watch)
    if name in {*ONLY_SIMULATED, *ORACLES}:
        raise click.UsageError(f"{name} does not work with --sql or --database")
    world = world.between(begin, end)
    with nullcontext(url) if url else throwaway_database() as used:
        sql.refuse_pages(used)
        migrate.upgrade(used)
        sql.take(used)
        fetches = sql.crawl(used, world, name, budget, begin, end, watch)
    return outcome_of_fetches(world, name, budget, begin, end, fetches)


def _checked(name: str) -> str:
    from recrawl.lab.oracle import ORACLES
    from recrawl.lab.policies.registry import SIMULATED

    if name not in {*SIMULATED, *ORACLES}:
        raise ValueError(f"policy must be one of {', '.join([*SIMULATED, *ORACLES])}, got {name!r}")
    return name


def _show(outcomes: "list[Outcome]") -> None:
    rows = [
        {
            "policy": found.policy,
            "fetches": count(found.fetches),
            "fresh": percent(found.freshness, 2),
            "changes": count(found.changes),
            "seen": count(found.changes_seen),
            "mean delay, days": measured(found.mean_delay_days),
            "worst host": min(found.hosts, key=lambda host: host.freshness).host,
            "fresh there": percent(min(host.freshness for host in found.hosts), 2),
        }
        for found in outcomes
    ]
    show.table(rows)
