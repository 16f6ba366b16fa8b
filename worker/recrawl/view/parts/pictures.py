"""The charts, and the figures that each is drawn from."""

from collections.abc import Iterable, Sequence
from datetime import UTC, timedelta

from recrawl.view.figures import DAY, HOUR
from recrawl.view.history import TEN_MINUTES, Span
from recrawl.view.parts import sentences
from recrawl.view.parts.charts import Plot, Series, bars, figure, last_known, lines, numbers, stacks
from recrawl.view.parts.hosts import late_hosts
from recrawl.view.parts.html import Html, el
from recrawl.view.parts.page import Look, part
from recrawl.words import count, percent, percent_of_axis, short


def over(look: Look, spans: Sequence[Span], step: timedelta, longest: timedelta) -> Plot:
    """Until now, or until the end of the last step. In UTC, in which every day has 24 hours."""
    at = [span.at.astimezone(UTC) for span in spans]
    now = look.now.astimezone(UTC)
    step_now = sentences.step_begin(now, step)
    return Plot(at, step, max(step_now, at[-1] + step) if at else step_now, longest, look.now.tzinfo)


def column(spans: Iterable[Span], *names: str) -> list[float | None]:
    """The sum of the columns; None if none of them is known."""
    found = []
    for span in spans:
        known = [value for name in names if (value := getattr(span, name)) is not None]
        found.append(sum(known) if known else None)
    return found


def freshness_and_budget(look: Look) -> Html:
    return part("budget", "Freshness and budget", el("div", freshness(look), fetches(look), class_="two"))


def freshness(look: Look) -> Html:
    spans = look.history.spans
    shown = over(look, spans, look.history.step, 14 * DAY)
    series = [
        Series("fresh", "changed", column(spans, "fresh")),
        Series("expected", "first", column(spans, "expected")),
        Series("limit", "soft", column(spans, "limit_with_gaps")),
    ]
    errors = [2 * span.fresh_error if span.fresh_error is not None else None for span in spans]
    sentence = sentences.freshness(spans, look.figures.minute, look.now)
    title = "How fresh is it, and how fresh could it be?"
    if all(value is None for value in series[0].values):
        return figure("freshness", title, sentence, None)
    columns = [*((one.name, one.values) for one in series), ("error, ±", errors)]
    chart = lines(shown, series, errors, percent_of_axis)
    return figure("freshness", title, sentence, chart, (), numbers(shown, columns, percent))


def fetches(look: Look) -> Html:
    step = look.history.step
    # Without the present step, which is not over yet.
    spans = sentences.whole(look.history.spans, look.now, 7 * DAY, step) or look.history.spans
    shown = over(look, spans, step, 7 * DAY)
    layers = [
        Series("found a change", "changed", column(spans, "changed")),
        Series("unchanged", "unchanged", column(spans, "unchanged")),
        Series("first fetch", "first", column(spans, "first")),
        Series("not found", "missing", column(spans, "missing")),
        Series("failed, throttled, forbidden", "failed", column(spans, "failed", "throttled", "denied")),
    ]
    budget: list[float | None] = [None if span.budget is None else span.budget * (step / DAY) for span in spans]
    last = last_known(budget)
    a_step = "an hour" if step == HOUR else "in ten minutes"
    limit = Series(f"budget: {count(last)} {a_step}", "ink", budget) if last is not None else None
    columns = [
        *((layer.name, layer.values) for layer in layers[:4]),
        *((name, column(spans, name)) for name in ("failed", "throttled", "denied")),
        ("all", column(spans, "fetches")),
        ("budget", budget),
    ]
    sentence = sentences.fetches(look.history.hours, look.figures.day, look.figures.budget, look.now)
    title = "What do the fetches find, and is the budget used?"
    if not any(span.fetches for span in spans):
        return figure("fetches", title, sentence, None)
    chart = stacks(shown, layers, limit, short)
    return figure("fetches", title, sentence, chart, layers, numbers(shown, columns, count))


def lateness(look: Look) -> Html:
    return part(
        "late",
        "Which pages are late, and why?",
        el("div", waiting(look), visits(look), class_="two"),
        late_hosts(look) if look.figures.late_hosts else None,
    )


def waiting(look: Look) -> Html:
    tens = look.history.tens
    shown = over(look, tens, TEN_MINUTES, DAY)
    layers = [
        Series("the gap of their host", "unchanged", column(tens, "due_gap")),
        Series("a blocked host", "first", column(tens, "due_blocked")),
        Series("a crawler", "failed", column(tens, "due_crawler")),
    ]
    columns = [*((layer.name, layer.values) for layer in layers), ("all", column(tens, "due"))]
    sentence, title = sentences.waiting(tens, look.figures.minute, look.now), "What do late pages wait for?"
    if all(ten.due is None for ten in tens):
        return figure("waiting", title, sentence, None)
    chart = stacks(shown, layers, None, short)
    return figure("waiting", title, sentence, chart, layers, numbers(shown, columns, count))


def visits(look: Look) -> Html:
    day = look.figures.day
    looks = ("changed", "changed", "first", "first", "failed", "failed")
    rows = []
    for (name, words), colour in zip(sentences.BINS, looks, strict=True):
        visits = getattr(day, name)
        rows.append((words, visits, colour, f"{count(visits)} · {percent(visits / (day.revisits or 1))}"))
    sentence = sentences.lateness(day, look.figures.minute, look.now)
    return figure("visits", "How late are revisits?", sentence, bars(rows) if day.revisits else None)
