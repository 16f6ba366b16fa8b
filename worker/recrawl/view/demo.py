"""What the demonstration showed, as a page to keep. Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from recrawl.view.parts.charts import Plot, Series, figure, lines, numbers
from recrawl.view.parts.page import document, header, part
from recrawl.words import percent


def page(
    at: Sequence[datetime], every: timedelta, fresh: Sequence[float], compared: Mapping[str, float], said: str
) -> str:
    """Freshness over time, beside what it is compared with: names and shares."""
    plot = Plot(at, every, until=at[-1] + every, longest=at[-1] + every - at[0])
    looks = ("first", "soft", "unchanged", "missing")
    series = [
        Series("reached", "changed", fresh),
        *(Series(name, look, [share] * len(at)) for (name, share), look in zip(compared.items(), looks, strict=True)),
    ]
    chart = figure(
        "freshness",
        "How fresh is it, beside what could be?",
        said,
        lines(plot, series, [None] * len(at), lambda share: f"{share * 100:.3g} %"),
        (),
        numbers(plot, [(one.name, one.values) for one in series], percent),
    )
    head = header("the demonstration", "", live=False)
    return document("recrawl: the demonstration", head, part("fresh", None, chart))
