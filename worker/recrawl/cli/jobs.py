"""Commands that run a job (run), and compute the results of other budgets (plan)."""

import signal
from datetime import timedelta

import click

from recrawl.cli import show
from recrawl.cli.common import example, mistyped, needs
from recrawl.cli.database import same_version
from recrawl.jobs.registry import JOBS
from recrawl.words import count, gain, lasting, things, utility

BUDGETS = "0.5x,1x,2x,5x"  # the default of `plan`


@click.command(
    "run",
    epilog=example(
        "recrawl run allocate",
        notes="Views show the results: job_run for rates, opic_run for opic, allocation_run for allocate.",
    ),
)
@click.argument("job", type=click.Choice(list(JOBS)))
def run_command(job: str) -> None:
    from recrawl.cli.progress import steps

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run is stored as stopped
    with same_version() as url, steps() as tell:
        message = JOBS[job].load()(url).run(tell)
    click.echo(message)


described = [f"{entry.name}: {entry.does}." for entry in JOBS.values()]
run_command.help = "\n\n".join(["Run a job once, now. A worker runs all jobs regularly.", *described])


@click.command(epilog=example("recrawl plan", "recrawl plan --budget 10000,50000 --freshness 0.9"))
@click.option("--budget", "budgets", help=f"Fetches per day, or multiples of the present budget. Default: {BUDGETS}.")
@click.option(
    "--freshness",
    type=float,
    metavar="SHARE",
    help="Also find the smallest budget with this freshness. Example: 0.95 is 95 percent.",
)
@click.option("--png", type=click.Path(dir_okay=False), help="Also draw the results into this file (needs matplotlib).")
def plan(budgets: str | None, freshness: float | None, png: str | None) -> None:
    """Compute the result of other budgets. Changes nothing.

    The figures are computed from the rates and values of your pages. The first table shows the result of each budget.
    By default the result is the freshness: the share of copies that are up to date, weighted by value. The setting
    objective can choose another result. The gap of a host is the minimum time between two requests to it. The table
    also shows the best possible result with these gaps, and without them. A second table shows the hosts where a
    shorter gap would help most.
    """
    from recrawl.jobs.allocation_input import NOBODY_TAKES_PART
    from recrawl.jobs.plan import Plan
    from recrawl.model.allocation.objectives import objective_named

    with same_version() as url:
        plan = Plan(url)
        if not plan.crawl.pages:
            raise click.ClickException(NOBODY_TAKES_PART)
        with mistyped():
            wanted = list[float]()
            if budgets or freshness is None:
                wanted += [multiple_of(plan.present.budget, text) for text in (budgets or BUDGETS).split(",")]
            if freshness is not None:
                wanted.append(plan.budget_for(freshness))
        points, capped_hosts = plan.curve(wanted), plan.capped_hosts(5)
        pages, present, objective = plan.crawl.pages, plan.present.budget, plan.crawl.objective
    is_share = objective_named(objective).is_share
    click.echo(f"{things(pages, 'page')}; the budget is {count(present)} fetches a day\n")
    rows = [
        {
            "budget, fetches a day": count(point.budget),
            "of the present": f"{count(point.budget / present)} x" if present else None,
            "revisits a day": count(point.for_revisits),
            "new pages a day": count(point.for_new),
            "pinned, of the revisits a day": count(point.pinned) if point.pinned else None,
            objective: utility(point.utility, is_share),
            "limit with gaps": utility(point.limit_with_gaps, is_share),
            "limit without gaps": utility(point.limit_without_gaps, is_share),
            "hosts limited by gap": count(point.capped_hosts),
        }
        for point in points
    ]
    show.table(rows)
    for point in points:
        if point.not_kept:
            click.echo(f"\nAt {count(point.budget)} fetches a day {point.not_kept}.")
    if capped_hosts:
        click.echo("\nHosts where half the gap would gain most, at the present budget:\n")
        hosts = [
            {
                "host": host.host,
                "pages": count(host.pages),
                "a slot every": lasting(timedelta(seconds=host.slot_every)),
                f"gain of {objective} with half the gap": gain(host.half_gap_gain, is_share),
            }
            for host in capped_hosts
        ]
        show.table(hosts)
    if png:
        with needs("png"):
            from recrawl.cli.png import draw_budgets
        draw_budgets(points, present, objective, png)


def multiple_of(present: float, text: str) -> float:
    is_multiple = text.strip().endswith("x")
    if is_multiple and not present:
        raise ValueError("the present budget is 0 fetches a day, so --budget must name numbers, for example 1000,10000")
    try:
        budget = float(text.strip().removesuffix("x")) * (present if is_multiple else 1)
    except ValueError:
        budget = -1.0
    if not 1e-6 <= budget <= 1e12:  # the limits of the setting budget
        raise ValueError(
            f"--budget must be numbers of fetches a day from 1e-6 to 1e12, or multiples like 2x, got {text.strip()!r}"
        )
    return budget
