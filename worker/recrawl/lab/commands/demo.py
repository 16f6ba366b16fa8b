"""The command `recrawl demo`: shows within a minute what recrawl does, and compares it with other policies."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli import show
from recrawl.cli.common import example
from recrawl.lab.commands.throwaway import throwaway_database
from recrawl.words import count, percent

if TYPE_CHECKING:
    from recrawl.lab.demo_crawl import DemoCrawl, Reachable

BUDGET, DAYS = 4000.0, 14  # fetches per day
FILES = "recrawl-demo"  # .html and .png
NEXT = """
Next:
  recrawl up                          start a crawl of your own: PostgreSQL and a worker, until Ctrl-C
  recrawl add https://example.com/    add the URLs to start from
  recrawl status                      see whether it works, and what to fix
"""


@click.command(epilog=example("recrawl demo"))
@click.option("--seed", type=click.IntRange(min=0), metavar="NUMBER", default=1, show_default=True, help="Random seed.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    default=".",
    help="Folder for the dashboard and the picture.",
)
def demo(seed: int, folder: Path) -> None:
    """Show two weeks of a simulated crawl, within a minute.

    The web is simulated: 150 hosts and 10,000 pages, which change and link to each other. The crawlers are simulated
    too, and the clock is virtual. But the database is a real PostgreSQL. Three jobs run every simulated day. They learn
    how often pages change, compute how much each page is worth, and divide the budget (the fetches per day) between
    the pages. The demo writes its dashboard and a picture. Then it deletes the database.
    """
    from recrawl import store
    from recrawl.cli.progress import steps
    from recrawl.lab import drawn
    from recrawl.lab.commands import demo_report
    from recrawl.lab.demo_crawl import DemoCrawl
    from recrawl.view import overview

    web = drawn.draw(seed)
    click.echo(
        f"A simulated web of {count(len(web.gap))} hosts and {count(web.pages)} pages, which change and link to each "
        f"other.\nCrawlers start from one page per host and fetch {count(BUDGET)} pages a day, for {DAYS} days."
    )
    with steps() as tell:
        tell("starting a PostgreSQL for the demo")
        with throwaway_database() as url:
            crawl = DemoCrawl(url, web, BUDGET, DAYS, seed)
            figures = crawl.run(partial(tell, f"crawling {DAYS} days; jobs learn and divide the budget", of=DAYS))
            tell("reading the figures")
            with store.connect(url) as connection:
                look = overview.read(connection)
        tell("computing what other policies would reach")
        compared = crawl.compared()
    _tell(crawl, compared)
    for file in _draw(crawl, compared, partial(demo_report.html, look), folder / FILES):
        click.echo(file)
    click.echo(NEXT.rstrip())
    if figures.too_close:
        raise click.ClickException(f"{figures.too_close} requests came too close: this is a bug of recrawl")


def _tell(crawl: "DemoCrawl", compared: "Reachable") -> None:
    rows = {
        "recrawl, learning the rates as it goes": crawl.late(),
        "every page equally often": compared.uniform,
        "each page in proportion to its changes": compared.proportional,
        "the best possible with the gaps of the hosts": compared.polite,
        "the best possible without gaps": compared.unpolite,
    }
    click.echo()
    show.table([{"policy": name, "fresh pages": percent(share)} for name, share in rows.items()])
    click.echo(
        "\nMean of the second week, weighted by value. The other four policies know the true change rates; recrawl\n"
        "must learn them."
    )
    figures = crawl.figures
    click.echo(
        f"recrawl found {count(figures.pages[-1])} pages with {count(figures.fetches)} requests. Requests closer than "
        f"the gap of their host: {count(figures.too_close)}.\n"
    )


def _draw(crawl: "DemoCrawl", compared: "Reachable", report: Callable[..., str], file: Path) -> Iterator[str]:
    from recrawl.lab.demo_crawl import LOOKS

    figures = crawl.figures
    lines = {
        "limit": compared.polite,
        "limit, no gaps": compared.unpolite,
        "equally often": compared.uniform,
        "by changes": compared.proportional,
    }
    said = (
        f"In the second week **{percent(crawl.late())}** of the value of all pages was fresh. Policies that know all "
        f"change rates would reach {percent(compared.uniform)} if they fetch every page equally often, "
        f"{percent(compared.proportional)} if they fetch each page in proportion to its changes, and at most "
        f"{percent(compared.polite)} within the gaps of the hosts ({percent(compared.unpolite)} without gaps)."
    )
    at = [crawl.begin + timedelta(days=day) for day in figures.day]
    html = file.with_suffix(".html")
    html.write_text(report(at, timedelta(days=1) / LOOKS, figures.fresh, lines, said), encoding="utf-8")
    yield f"{html}  the dashboard of this crawl"
    png = file.with_suffix(".png")
    try:
        from recrawl.lab.commands.figure import draw_freshness

        draw_freshness(figures.day, figures.fresh, lines, str(png))
        yield f"{png}   its freshness, as a picture"
    except ImportError:
        yield "(the picture needs matplotlib: pip install 'recrawl[png]')"
