"""The dashboard of the demo's crawl, with a chart of what other policies would reach. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from recrawl.view import overview
from recrawl.view.parts.charts import Plot, Series, captioned, lines, numbers
from recrawl.view.parts.page import Report, part
from recrawl.words import percent, percent_of_axis

LOOKS = ("first", "soft", "unchanged", "missing")  # of the lines that freshness is compared with


def html(
    look: Report,
    at: Sequence[datetime],
    every: timedelta,
    fresh: Sequence[float],
    compared: Mapping[str, float],
    said: str,
) -> str:
    plot = Plot(at, every, until=at[-1] + every, longest=at[-1] + every - at[0])
    series = [
        Series("recrawl", "changed", fresh),
        *(Series(name, look, [share] * len(at)) for (name, share), look in zip(compared.items(), LOOKS, strict=True)),
    ]
    chart = captioned(
        "compared",
        "How fresh is it, compared with other policies?",
        said,
        lines(plot, series, [None] * len(at), percent_of_axis),
        (),
        numbers(plot, [(one.name, one.values) for one in series], percent),
    )
    return overview.html(look, more=part("worth", "What is it worth?", chart))
