"""The charts, and the figures that each is drawn from."""

from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta

from recrawl.view.figures import DAY, HOUR, Period
from recrawl.view.history import TEN_MINUTES
from recrawl.view.parts import sentences
from recrawl.view.parts.charts import Plot, Series, bars, captioned, last_known, lines, numbers, stacks
from recrawl.view.parts.hosts import late_hosts
from recrawl.view.parts.html import Html, el
from recrawl.view.parts.page import Report, part
from recrawl.words import count, percent, percent_of_axis, short


def over(report: Report, periods: Sequence[Period], step: timedelta, longest: timedelta) -> Plot:
    """A plot that ends at the start of the present step, or at the end of the last period if that is later. In UTC, in
    which every day has 24 hours."""
    at = [period.at.astimezone(UTC) for period in periods]
    step_now = sentences.step_begin(report.now, step)
    return Plot(at, step, max(step_now, at[-1] + step) if at else step_now, longest)


def column(periods: Iterable[Period], *names: str) -> list[float | None]:
    """The sum of the columns; None if none of them is known."""
    found = []
    for period in periods:
        known = [value for name in names if (value := getattr(period, name)) is not None]
        found.append(sum(known) if known else None)
    return found


def freshness_and_budget(report: Report) -> Html:
    return part("budget", "Freshness and budget", el("div", freshness(report), fetches(report), class_="two"))


def freshness(report: Report) -> Html:
    periods = report.history.periods
    shown = over(report, periods, report.history.step, 14 * DAY)
    series = [
        Series("fresh", "changed", column(periods, "fresh")),
        Series("expected", "first", column(periods, "expected")),
        Series("limit", "soft", column(periods, "limit_with_gaps")),
    ]
    errors = [2 * period.fresh_error if period.fresh_error is not None else None for period in periods]
    sentence = sentences.freshness(periods, report.figures.minute, report.now, report.figures.allocation)
    title = "How fresh is it, and how fresh could it be?"
    if all(value is None for value in series[0].values):
        return captioned("freshness", title, sentence, None)
    columns = [*((one.name, one.values) for one in series), ("error, ±", errors)]
    chart = lines(shown, series, errors, percent_of_axis)
    return captioned("freshness", title, sentence, chart, (), numbers(shown, columns, percent))


def fetches(report: Report) -> Html:
    step = report.history.step
    # Without the present step, which is not over yet.
    periods = sentences.whole(report.history.periods, report.now, 7 * DAY, step) or report.history.periods
    shown = over(report, periods, step, 7 * DAY)
    layers = [
        Series("found a change", "changed", column(periods, "changed")),
        Series("unchanged", "unchanged", column(periods, "unchanged")),
        Series("first fetch", "first", column(periods, "first")),
        Series("not found", "missing", column(periods, "missing")),
        Series("failed, throttled, forbidden", "failed", column(periods, "failed", "throttled", "denied")),
    ]
    budget: list[float | None] = [None if period.budget is None else period.budget * (step / DAY) for period in periods]
    last = last_known(budget)
    a_step = "an hour" if step == HOUR else "in ten minutes"
    limit = Series(f"budget: {count(last)} {a_step}", "ink", budget) if last is not None else None
    columns = [
        *((layer.name, layer.values) for layer in layers[:4]),
        *((name, column(periods, name)) for name in ("failed", "throttled", "denied")),
        ("all", column(periods, "fetches")),
        ("budget", budget),
    ]
    sentence = sentences.fetches(report.history.hours, report.figures.day, report.figures.budget, report.now)
    title = "What do the fetches find, and is the budget used?"
    if not any(period.fetches for period in periods):
        return captioned("fetches", title, sentence, None)
    chart = stacks(shown, layers, limit, short)
    return captioned("fetches", title, sentence, chart, layers, numbers(shown, columns, count))


def lateness(report: Report) -> Html:
    return part(
        "late",
        "Which pages are late, and why?",
        el("div", waiting(report), visits(report), class_="two"),
        late_hosts(report) if report.figures.late_hosts else None,
    )


def waiting(report: Report) -> Html:
    tens = report.history.tens
    shown = over(report, tens, TEN_MINUTES, DAY)
    layers = [
        Series("the gap of their host", "unchanged", column(tens, "due_gap")),
        Series("a blocked host", "first", column(tens, "due_blocked")),
        Series("a crawler", "failed", column(tens, "due_crawler")),
    ]
    columns = [*((layer.name, layer.values) for layer in layers), ("all", column(tens, "due"))]
    sentence, title = sentences.waiting(tens, report.figures.minute, report.now), "What do late pages wait for?"
    if all(ten.due is None for ten in tens):
        return captioned("waiting", title, sentence, None)
    chart = stacks(shown, layers, None, short)
    return captioned("waiting", title, sentence, chart, layers, numbers(shown, columns, count))


def visits(report: Report) -> Html:
    day = report.figures.day
    rows = []
    for name, words, colour in (
        ("late_1m", "within a minute", "changed"),
        ("late_10m", "1 to 10 min", "changed"),
        ("late_1h", "10 min to 1 h", "first"),
        ("late_6h", "1 to 6 h", "first"),
        ("late_1d", "6 h to a day", "failed"),
        ("late_more", "more than a day", "failed"),
    ):
        visits = getattr(day, name)
        rows.append((words, visits, colour, f"{count(visits)} · {percent(visits / (day.revisits or 1))}"))
    sentence = sentences.lateness(day, report.figures.minute, report.now)
    return captioned("visits", "How late are revisits?", sentence, bars(rows) if day.revisits else None)
