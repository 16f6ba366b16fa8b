"""A crawl on one page of HTML: reads the figures, and puts the parts together."""

from recrawl import store
from recrawl.view import figures as present
from recrawl.view import history
from recrawl.view.parts.hosts import blocked, capped_hosts
from recrawl.view.parts.html import Html, el
from recrawl.view.parts.news import machinery, news
from recrawl.view.parts.page import Report, document, verdict_box
from recrawl.view.parts.pictures import freshness_and_budget, lateness
from recrawl.view.parts.tiles import tiles
from recrawl.view.verdict import verdict
from recrawl.words import moment, things

SECTIONS = (freshness_and_budget, lateness, capped_hosts, blocked, news, machinery)
FOOTER = el(
    "footer",
    "A worker estimates freshness, coverage and what pages wait for, every minute. "
    "This screen changes nothing: copy the SQL or the command of a fix and run it yourself.",
)


def read(connection: store.Connection, *, live: bool = False) -> Report:
    figures = present.read(connection)
    past = history.read(connection) if figures.database == "same" else history.History()
    return Report(figures, verdict(figures), past, live)


def html(report: Report, more: Html | None = None) -> str:
    """`more` stands before the charts."""
    minute = report.figures.minute
    is_known = minute.pages is not None and minute.hosts is not None
    about = f"{things(minute.pages, 'page')} on {things(minute.hosts, 'host')}" if is_known else ""
    judged = verdict_box(report.verdict.level, report.verdict.headline, report.verdict.detail, report.verdict.fixes)
    body = Html.of(judged, tiles(report), more, (make(report) for make in SECTIONS), FOOTER)
    title = f"recrawl: {report.verdict.headline}"
    return document(title, body, live=report.live, about=about, as_of=moment(report.now))
