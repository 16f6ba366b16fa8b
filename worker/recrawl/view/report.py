"""The report of a crawl: reads all of it, and puts its parts together."""

from recrawl import store
from recrawl.view import figures as present
from recrawl.view import history
from recrawl.view.parts.hosts import blocked, held_back
from recrawl.view.parts.html import Html, el
from recrawl.view.parts.news import machinery, news
from recrawl.view.parts.page import Look, document, header, verdict_box
from recrawl.view.parts.pictures import freshness_and_budget, lateness
from recrawl.view.parts.tiles import tiles
from recrawl.view.verdict import verdict
from recrawl.words import HERE, moment, things


def read(connection: store.Connection, *, live: bool = False) -> Look:
    """With times in the zone of this machine."""
    figures = present.read(connection)
    past = history.read(connection) if figures.database == "same" else history.History()
    return Look(figures, verdict(figures), past, figures.now.as_of.astimezone(HERE), live)


def html(look: Look, live_seconds: float | None = None) -> str:
    minute = look.figures.minute
    about = (
        f"{things(minute.pages, 'page')} on {things(minute.hosts, 'host')}"
        if minute and minute.pages is not None and minute.hosts is not None
        else ""
    )
    head = header(about, moment(look.now), live=look.live)
    sections = [section for make in SECTIONS if (section := make(look))]
    return document(f"recrawl: {look.verdict.headline}", head, Html.of(sections, footer()), live_seconds=live_seconds)


def judged(look: Look) -> Html:
    return verdict_box(look.verdict.level, look.verdict.headline, look.verdict.detail, look.verdict.fixes)


def footer() -> Html:
    return el(
        "footer",
        "Freshness, coverage and what pages wait for are estimates, made by a worker every minute. ",
        "What to do stands there as SQL or as a command, to copy: nothing here changes anything.",
    )


SECTIONS = (judged, tiles, freshness_and_budget, lateness, held_back, blocked, news, machinery)
