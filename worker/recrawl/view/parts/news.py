"""Changes since yesterday, events, and the last runs of the jobs."""

from datetime import timedelta

from recrawl.view.parts import sentences
from recrawl.view.parts.charts import captioned
from recrawl.view.parts.html import Html, el, row, table
from recrawl.view.parts.page import Report, part, terms
from recrawl.words import clock, count, lasting, things, utility


def news(report: Report) -> Html:
    return part("news", "What changed since yesterday?", el("div", changes(report), events(report), class_="two"))


def changes(report: Report) -> Html:
    found = sentences.changes(report.history.hours, report.now)
    css_classes: dict[bool | None, str] = {True: "better", False: "worse", None: ""}
    rows = (row(c.name, (c.now, "right"), (c.difference, f"right {css_classes[c.better]}")) for c in found)
    if not found:
        return captioned("changes", "The figures", "Too little is known of the day before.", None)
    headings = (("", None), ("24 hours", "right"), ("compared with the 24 before", "right"))
    note = "The last 24 whole hours, compared with the 24 before."
    return captioned("changes", "The figures", note, table(headings, rows))


def events(report: Report) -> Html:
    shown = report.history.events
    rows = (
        el(
            "tr",
            el("td", clock(event.at, report.now), class_="when"),
            el("td", el("span", event.kind, class_=f"pill {'crawl' if event.kind == 'crawl' else ''}")),
            el("td", el("b", event.subject), ": ", event.says, f" ({event.by})" if event.by else None, class_="wide"),
        )
        for event in shown
    )
    note = "The newest first." if shown else "No setting was changed and nothing stood still in the last two days."
    return captioned(
        "events", "What happened", note, el("table", el("tbody", rows), class_="events") if shown else None
    )


def machinery(report: Report) -> Html:
    return part("machinery", None, jobs(report), allocation(report))


def jobs(report: Report) -> Html:
    runs = report.figures.runs
    rows = []
    for run in runs:
        result = "is running" if run.result == "running" else run.result
        ended = result, "worse" if run.result == "failed" else None
        took = lasting(timedelta(seconds=run.seconds))
        when = clock(run.started_at, report.now)
        rows.append(row(run.job, (when, "when"), ended, (took, "right"), (run.message or "", "wide")))
    headings = ((name, None) for name in ("job", "started", "ended", "took", "message"))
    no_run = el("p", "No job has run yet. Start a worker: recrawl worker", class_="note")
    body = table(headings, rows) if runs else no_run
    return el("details", el("summary", "Jobs"), el("div", body, class_="scroll", tabindex=0), class_="card", id="jobs")


def allocation(report: Report) -> Html | None:
    last = report.figures.allocation
    if last is None:
        return None
    is_share = report.figures.allocates_share
    rows = [
        ("came into force", f"{clock(last.started_at, report.now)}, {lasting(report.now - last.started_at)} ago"),
        ("objective", last.objective),
        ("expected", utility(last.utility, is_share)),
        ("limit with gaps", utility(last.limit_with_gaps, is_share)),
        ("limit without gaps", utility(last.limit_without_gaps, is_share)),
        ("fetches a day", count(last.budget)),
        ("for revisits", f"{count(last.for_revisits)}, for {things(last.pages, 'page')}"),
        ("for new pages", count(last.for_new)),
        ("not used", count(last.unused)),
        ("hosts limited by their gap", count(last.capped_hosts)),
    ]
    return el("details", el("summary", "The last allocation"), terms(rows), class_="card", id="allocation")
