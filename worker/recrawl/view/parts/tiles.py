"""The four figures that matter, each with the figure to compare it with."""

from recrawl.view.parts.charts import bar
from recrawl.view.parts.html import Html, el
from recrawl.view.parts.page import Report, part
from recrawl.view.screens import limits
from recrawl.words import lasting, percent, short, things


def tiles(report: Report) -> Html:
    return part("tiles", None, el("div", (tile(report) for tile in TILES), class_="tiles"))


def tile(name: str, value: str, compared: str, meter: Html | None, note: str) -> Html:
    figure = el("strong", value, (" ", el("small", compared)) if compared else None)
    return el("div", el("h3", name), figure, meter, el("p", note), class_="tile")


def fresh_tile(report: Report) -> Html:
    minute, name = report.figures.minute, "Fresh now"
    if minute.fresh is None:
        return tile(name, "–", "", None, "not known yet; a worker estimates it every minute")
    bounds = (minute.expected, "first"), (minute.limit_with_gaps, "ink")
    marks = [(share, kind) for share, kind in bounds if share is not None]
    error = f"± {percent(2 * minute.fresh_error)}" if minute.fresh_error else ""
    note = limits(minute) or "of the value of all pages"
    return tile(name, percent(minute.fresh), error, bar(minute.fresh, "changed", marks), note)


def fetched_tile(report: Report) -> Html:
    day, budget = report.figures.day, report.figures.budget
    share = day.of_budget(budget, report.now)
    name = "Fetched in 24 hours"
    if budget is None:
        return tile(name, short(day.fetches), "", None, "no budget is set: as fast as hosts and crawlers allow")
    last = report.figures.allocation
    planned = 1 - last.unused / last.budget if last and last.budget else 1.0  # the share that has a use
    note = f"{percent(share, 0)} of the budget" if share is not None else "nothing in the last 24 hours"
    if not day.is_whole(report.now):
        note += f" for the first {day.covers(report.now)}"
    if planned < 0.99:
        note += f"; the allocation has a use for {percent(planned, 0)}"
    meter = bar(share or 0, "changed", [(planned, "first")] if planned < 0.99 else [])
    return tile(name, short(day.fetches), f"of {short(budget)}", meter, note)


def in_time_tile(report: Report) -> Html:
    day, name = report.figures.day, "Revisits on time"
    if not day.revisits:
        return tile(name, "–", "", None, "no page was fetched again in the last 24 hours")
    skipped = f"{things(day.skipped, 'revisit')} skipped" if round(day.skipped) else "none skipped"
    note = f"within 10 min of the due time; {skipped}"
    return tile(name, percent(day.in_time), "", bar(day.in_time, "changed"), note)


def covered_tile(report: Report) -> Html:
    minute, name = report.figures.minute, "Pages fetched at least once"
    if minute.covered is None:
        return tile(name, "–", "", None, "not known yet; a worker estimates it every minute")
    waiting = minute.new_waiting or 0
    note = "no new page waits"
    if round(waiting):
        note = f"{things(waiting, 'new page')} wait{'s' if round(waiting) == 1 else ''}"
        if left := report.figures.day.left(waiting, report.now):
            note += f", {lasting(left)} at today's pace"
    return tile(name, percent(minute.covered), "by value", bar(minute.covered, "changed"), note)


TILES = (fresh_tile, fetched_tile, in_time_tile, covered_tile)
