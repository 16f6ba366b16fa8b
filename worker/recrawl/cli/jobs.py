"""Commands about the jobs, and what they would find: run, plan, audit."""

import signal

import click

from recrawl.cli import show
from recrawl.cli.database import database
from recrawl.cli.mistyped import mistyped
from recrawl.jobs.registry import JOBS
from recrawl.view.words.numbers import count

BUDGETS = "0.5x,1x,2x,5x"  # what `plan` tells, unless somebody says otherwise


@click.command(
    "run", epilog="The views job_run, opic_run and allocation_run keep what came of rates, opic and allocate."
)
@click.argument("job", type=click.Choice(list(JOBS)))
def run_command(job: str) -> None:
    from recrawl.cli.progress import steps

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run is ended
    with database() as url, steps() as tell:
        message = JOBS[job].load()(url).run(tell)
    click.echo(message)


run_command.help = "\n\n".join(
    [
        "Run a job once, now. A worker runs each by itself now and then.",
        *(f"{entry.name}: {entry.does}." for entry in JOBS.values()),
    ]
)


@click.command()
@click.option("--budget", "budgets", help=f"Fetches per day, or multiples of the present budget; else {BUDGETS}.")
@click.option("--freshness", type=float, help="Also the budget that reaches this share (as 0.95) of what could be.")
@click.option("--png", type=click.Path(dir_okay=False), help="Also draw the curve into this file (needs matplotlib).")
def plan(budgets: str | None, freshness: float | None, png: str | None) -> None:
    """What other budgets would bring. Changes nothing.

    Worked out from what is known of your pages. The objective is told per unit of value (freshness: the share of the
    value that is fresh), beside what it could be at most within the hosts' gaps (polite bound) and without them
    (unpolite bound). Below stand the hosts whose gaps cost most.
    """
    from recrawl.jobs.allocation_input import NOBODY_TAKES_PART
    from recrawl.jobs.plan import Plan

    with database() as url:
        plan = Plan(url)
        if not plan.crawl.pages:
            raise click.ClickException(NOBODY_TAKES_PART)
        with mistyped():
            wanted = list[float]()
            if budgets or freshness is None:
                wanted += [multiple_of(plan.present.budget, text) for text in (budgets or BUDGETS).split(",")]
            if freshness is not None:
                wanted.append(plan.budget_for(freshness))
        points, held_back = plan.curve(wanted), plan.held_back(5)
        pages, present, objective = plan.crawl.pages, plan.present.budget, plan.crawl.objective
    click.echo(f"{pages:,} pages; the budget is {count(present)} fetches a day\n")
    show.curve(points, present, objective)
    for point in points:
        if point.not_kept:
            click.echo(f"\nAt {count(point.budget)} fetches a day {point.not_kept}.")
    if held_back:
        click.echo("\nHosts of which half the gap would bring most at the present budget:\n")
        show.held_back(held_back, objective)
    if png:
        with show.drawn("--png"):
            from recrawl.cli.figure import draw_budgets

            draw_budgets(points, present, objective, png)


@click.command("audit")
def audit_command() -> None:
    """Check the learnt change rates against the fetch log.

    The log is kept while the setting keep_log says so. The rate of each page whose visits are all in it is estimated
    anew, by maximum likelihood from all of them; what is learnt keeps two numbers a page.
    """
    from recrawl import store
    from recrawl.jobs.audit import audit

    with database() as url:
        lines = audit(url)
        with store.connect(url) as connection:
            is_kept = store.looks.shown_settings(connection)["keep_log"] is not None
    if not lines:
        raise click.ClickException(
            "no page has all its visits in the fetch log yet: those will that are first fetched while it is kept, from "
            "their second visit on"
            if is_kept
            else "no fetch log is kept: say SELECT recrawl.set_setting('keep_log', '90 days') first"
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
