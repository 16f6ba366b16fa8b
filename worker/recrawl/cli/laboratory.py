"""Commands that try policies: on webs whose every change is known, and on the user's own crawl."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from recrawl.cli import show
from recrawl.cli.database import database, throwaway_database
from recrawl.cli.mistyped import mistyped
from recrawl.words import count

if TYPE_CHECKING:
    from recrawl.jobs.compare import PolicyOutlook
    from recrawl.lab.outcome import Outcome
    from recrawl.lab.world import World


@click.command(
    epilog="The file: a page a line, as JSON, gzipped or not: "
    '["host", "page", born, died or null, [change, …]] with times in days, or [[days, changed], …], the visits of a '
    "crawl: days since the one before, and whether the page had changed. The name sample is that of a web that comes "
    "along: 5,950 text files of seven public repositories."
)
@click.option("--recorded", "file", metavar="FILE", help="The web: a file of recorded histories.")
@click.option(
    "--drawn",
    "kind",
    metavar="KIND",
    help="The web: drawn at random, steady, drift, turnover, values, outages, noise or content.",
)
@click.option("--from", "begin", type=float, metavar="DAY", help="Begin on that day of the web; else the first one.")
@click.option("--to", "end", type=float, metavar="DAY", help="End on that day; else the last one.")
@click.option(
    "--policy",
    "names",
    multiple=True,
    metavar="NAME",
    help="How fetches are divided; else opt_polite. Also oracle and foresight, who know how often pages change.",
)
@click.option("--budget", type=float, required=True, metavar="FETCHES", help="Fetches per page and day.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is left to chance.")
@click.option("--sql", "through_sql", is_flag=True, help="Real verbs and jobs, in a PostgreSQL that is thrown away.")
@click.option("--database", "url", metavar="URL", help="The same in that database, to look at: one that has no pages.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a policy.")
def simulate(
    file: str | None, kind: str | None, begin: float | None, end: float | None, names: tuple[str, ...], budget: float,
    seed: int, through_sql: bool, url: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Let a policy loose on a web whose every change is known.

    What is computed is what production computes: the filter that learns how often pages change, the priors of
    hosts, a daily allocation, each page's next due time. Hosts have no gaps. Freshness is the share of their lives
    that pages were fresh, by value; the delay is from a change to the fetch that came after it. Give --policy several
    times to compare.

    Pages of a steady web change at rates of their own, which stay; in drift these wander off, and in turnover pages
    come and go. Of the others each is a steady one and one thing more: in values pages are not worth the same; in
    outages every host is down for a day now and then; in noise a tenth of the pages seem to have changed at every
    visit; in content changes are updates, large and small ones, and a visit sees what a sketch of eight numbers tells.

    Without --sql it needs no database, and takes seconds where SQL takes minutes; once a crawl has settled both come to
    the same within some tenths of a percent. Pages that live at the beginning were fetched just then; with --sql they
    are new. With --sql hosts that are down are asked in vain, which takes its part of the budget, and then left alone
    for longer than they are down.
    """
    from recrawl.cli.progress import steps

    with mistyped():
        names = tuple(map(_checked, names)) or ("opt_polite",)
    if url and len(names) > 1:
        raise click.UsageError("--database takes one policy: the next one would find its pages")
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
        raise click.UsageError("which web: --recorded FILE, or --drawn KIND?")
    if kind is not None and end is not None and end > worlds.DAYS:
        raise click.UsageError(f"a drawn web lasts {worlds.DAYS} days, got --to {end:g}")
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
    from recrawl.lab.outcome import judged
    from recrawl.lab.policies.registry import ONLY_SIMULATED, SIMULATED
    from recrawl.setup import migrate

    with mistyped():
        replay.check(world, budget, begin, end)
    if not (through_sql or url):
        if name in ORACLES:
            return oracle(world, name, budget, begin, end, seed, watch)
        return replay.replay(world, SIMULATED[name], budget, begin, end, seed, watch)
    if name in {*ONLY_SIMULATED, *ORACLES}:
        raise click.UsageError(f"{name} works in the laboratory alone: leave out --sql and --database")
    world = world.between(begin, end)
    with nullcontext(url) if url else throwaway_database() as used:
        sql.refuse_pages(used)
        migrate.upgrade(used)
        sql.take(used)
        fetches = sql.crawl(used, world, name, budget, begin, end, watch)
    return judged(world, name, budget, begin, end, fetches)


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
            "fetches": f"{found.fetches:,}",
            "fresh %": f"{100 * found.freshness:.2f}",
            "changes": f"{found.changes:,}",
            "seen": f"{found.changes_seen:,}",
            "mean delay days": f"{found.mean_delay_days:.2f}",
            "worst host": min(found.hosts, key=lambda host: host.freshness).host,
            "fresh % there": f"{100 * min(host.freshness for host in found.hosts):.1f}",
        }
        for found in outcomes
    ]
    show.table(rows, "no policy")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object a policy.")
@click.option("--png", type=click.Path(dir_okay=False), help="Also draw freshness into this file (needs matplotlib).")
def compare(as_json: bool, png: str | None) -> None:
    """What every policy would make of your own crawl. Changes nothing.

    Worked out from what is known of your pages, at the present budget, as if each policy had been in force for long.
    Freshness and age are by value; the delay is from a change to the visit after it.
    """
    from recrawl.jobs.allocation_input import NOBODY_TAKES_PART
    from recrawl.jobs.compare import compare, read_crawl

    with database() as url:
        crawl = read_crawl(url)
    if not crawl.pages:
        raise click.ClickException(NOBODY_TAKES_PART)
    found = compare(crawl)
    if as_json:
        for one in found:
            figures = {"policy": one.policy, **asdict(one.outlook), "new_pages": one.new_pages, "unspent": one.unspent}
            click.echo(
                json.dumps({name: None if figure == float("inf") else figure for name, figure in figures.items()})
            )
    else:
        click.echo(f"{crawl.pages:,} pages; {crawl.policy} is in force\n")
        show.table([_row(one) for one in found], "")
    if png:
        with show.drawn("--png"):
            from recrawl.cli.figure import draw_policies

            draw_policies({one.policy: one.outlook.fresh for one in found}, png)


def _row(one: "PolicyOutlook") -> dict[str, str]:
    found = one.outlook
    return {
        "policy": one.policy,
        "fresh %": f"{100 * found.fresh:.2f}",
        "changes seen a day": count(found.changes_seen),
        "delay, days": _days(found.delay_days),
        "age, days": _days(found.age_days),
        "revisits a day": count(found.fetches),
        "new pages a day": count(one.new_pages),
        "unspent a day": count(one.unspent),
    }


def _days(days: float) -> str:
    return "never seen" if days == float("inf") else f"{days:.3g}"
