"""recrawl demo: what it does and is worth, within a minute."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from recrawl.cli import show
from recrawl.cli.database import throwaway_database
from recrawl.cli.example import example

if TYPE_CHECKING:
    from recrawl.lab.crawl import Compared, Crawl

BUDGET, DAYS = 4000.0, 14  # fetches per day
FILES = "recrawl-demo"  # and what they are
NEXT = """
Next:
  recrawl up                          a crawl of your own: PostgreSQL and a worker, until Ctrl-C
  recrawl add https://example.com/    where to begin
  recrawl status                      does it work, and what is to be done
"""


@click.command(epilog=example("recrawl demo"))
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of the web, and of chance.")
@click.option(
    "--folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".", help="For the pictures."
)
def demo(seed: int, folder: Path) -> None:
    """Show it working: two weeks of a crawl within a minute.

    A web of 150 hosts and 10,000 pages is drawn at random. Simulated crawlers ask next_pages and report, in an
    embedded PostgreSQL of its own, on a virtual clock; the jobs rates, opic and allocate run every day. Nothing of it
    is kept but its pictures.
    """
    from recrawl.cli.progress import steps
    from recrawl.lab import drawn
    from recrawl.lab.crawl import Crawl

    web = drawn.draw(seed)
    click.echo(
        f"A web of {len(web.gap)} hosts and {web.pages:,} pages, which change and link to each other.\n"
        f"Crawlers find it from {len(web.gap)} of them, and fetch {BUDGET:,.0f} a day, for {DAYS} days."
    )
    with throwaway_database() as url, steps() as tell:
        crawl = Crawl(url, web, BUDGET, DAYS, seed)
        figures = crawl.run(partial(tell, "crawling", of=DAYS))
    compared = crawl.compared()
    _tell(crawl, compared)
    for file in _draw(crawl, compared, folder / FILES):
        click.echo(file)
    click.echo(NEXT.rstrip())
    if figures.too_close:
        raise click.ClickException(f"{figures.too_close} requests came too close: this must not be")


def _tell(crawl: "Crawl", compared: "Compared") -> None:
    rows = [
        ("reached, by what was learnt on the way", crawl.late()),
        ("all pages equally often, at best (uniform)", compared.uniform),
        ("as often as they change, at best (proportional)", compared.proportional),
        ("nobody can within the hosts' gaps (POLITE)", compared.polite),
        ("nobody can without them (UNPOLITE)", compared.unpolite),
    ]
    click.echo()
    what = "in the second week, of the pages found"
    show.table([{what: name, "fresh, by value": _percent(share)} for name, share in rows], "")
    figures = crawl.figures
    click.echo(
        f"\n{figures.pages[-1]:,} pages found, {figures.fetches:,} requests, "
        f"closer than the gap of their host: {figures.too_close}\n"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _draw(crawl: "Crawl", compared: "Compared", file: Path) -> Iterator[str]:
    from recrawl.lab.crawl import LOOKS
    from recrawl.view import demo as view

    figures = crawl.figures
    lines = {
        "within gaps": compared.polite,
        "without gaps": compared.unpolite,
        "uniform": compared.uniform,
        "proportional": compared.proportional,
    }
    said = (
        f"In the second week **{_percent(crawl.late())}** of the pages' value was fresh. With all rates known it would "
        f"be {_percent(compared.polite)} at best within the hosts' gaps, {_percent(compared.unpolite)} without them; "
        f"{_percent(compared.uniform)} if all pages were fetched equally often, {_percent(compared.proportional)} if "
        f"as often as they change."
    )
    at = [crawl.begin + timedelta(days=day) for day in figures.day]
    page = file.with_suffix(".html")
    page.write_text(view.page(at, timedelta(days=1) / LOOKS, figures.fresh, lines, said), encoding="utf-8")
    try:
        from recrawl.cli.figure import draw_freshness

        draw_freshness(figures.day, figures.fresh, lines, str(file.with_suffix(".png")))
        yield str(file.with_suffix(".png"))
    except ImportError:
        yield "(a PNG needs matplotlib: pip install 'recrawl[png]')"
    yield str(page)
