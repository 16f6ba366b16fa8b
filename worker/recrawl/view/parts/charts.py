"""Charts as SVG that fits any width: shapes stretch, strokes and text do not. Pure: figures in, markup out.

Each chart has its numbers as a sentence and as a table too. The script reads the text at the pointer from the table.
Places are attributes and colours are classes: a content security policy lets no style attribute through.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, floor, log10
from operator import itemgetter

from recrawl.view.parts.html import Html, el, in_markup, row, table

WIDTH = 1000  # of the plot in its own units, which stretch; its height is 100
Value = float | None

SPACINGS = [timedelta(minutes=m) for m in (1, 5, 15, 30, 60, 180, 360, 720, 1440, 2880, 4320, 10080, 20160, 43200)]
MOST_TICKS = 7
LABEL = 9  # percent of a plot's height that a line of text takes


@dataclass(frozen=True)
class Series:
    name: str
    css_class: str  # the class that colours it
    values: Sequence[Value]  # None = not known


@dataclass(frozen=True)
class Plot:
    """The time axis of a chart. A series has a value for each time in `at`, and the value holds for `step` from that
    time on. If a time is missing, the chart has a gap there. Labels are in the time zone of this machine."""

    at: Sequence[datetime]
    step: timedelta
    until: datetime
    longest: timedelta

    @property
    def start(self) -> datetime:
        """The left end: `longest` before the right end, or the first value if that is later."""
        first = self.at[0] if self.at else self.until - self.step
        return max(self.until - self.longest, min(first, self.until - self.step))

    def x(self, at: datetime) -> float:
        return round((at - self.start) / (self.until - self.start) * WIDTH, 1)


@dataclass(frozen=True)
class Scale:
    """Converts a value to its height in the plot, in percent from the top."""

    low: float
    high: float
    ticks: Sequence[float]

    @classmethod
    def of(cls, values: Sequence[float], *, from_zero: bool) -> "Scale":
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if from_zero:
            low = 0.0
        if high <= low:  # all values are equal
            high = low + (abs(low) * 0.1 or 1.0)
            low = low if from_zero else low - (high - low)
        step = _round_step((high - low) / 3)
        bottom = low if from_zero else floor(low / step) * step
        top = high + (high - low) * 0.08 if from_zero else ceil(high / step) * step
        ticks = [step * i for i in range(ceil(bottom / step - 1e-9), floor(top / step + 1e-9) + 1)]
        return cls(bottom, top, ticks)

    def y(self, value: float) -> float:
        return round(100 - (value - self.low) / (self.high - self.low) * 100, 2)


def last_known(values: Sequence[Value]) -> Value:
    return next((value for value in reversed(values) if value is not None), None)


def _round_step(least: float) -> float:
    """The next of 1, 2, 5, 10, …"""
    power = 10.0 ** floor(log10(least))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= least * (1 - 1e-9))


def lines(plot: Plot, series: Sequence[Series], error: Sequence[Value], show: Callable[[float], str]) -> Html:
    """Steps: the first series within its error, plus and minus; the others dashed. Each is named at its end."""
    first, *others = series
    around = [None if v is None or e is None else (v - e, v + e) for v, e in zip(first.values, error, strict=True)]
    known = [value for line in series for value in line.values if value is not None]
    scale = Scale.of([*known, *(edge for edges in around if edges for edge in edges)], from_zero=False)
    drawn = [_path(f"line {first.css_class}", _steps(plot, scale, first.values))]
    drawn += [_path(f"line dashed {one.css_class}", _steps(plot, scale, one.values)) for one in others]
    band = _path(f"band {first.css_class}", _band(plot, scale, around))
    return _plot(plot, scale, [band, *reversed(drawn)], show, _ends(scale, series))


def stacks(plot: Plot, series: Sequence[Series], limit: Series | None, show: Callable[[float], str]) -> Html:
    """Layers on one another, in steps; a limit is a line across."""
    count = len(plot.at)
    tops: list[list[Value]] = [[0.0] * count]
    for layer in series:
        pairs = zip(tops[-1], layer.values, strict=True)
        tops.append([None if below is None or v is None else below + v for below, v in pairs])
    most = [value for column in [tops[-1], limit.values if limit else []] for value in column if value is not None]
    scale = Scale.of(most, from_zero=True)
    drawn: list[Html | None] = []
    for layer, below, above in zip(series, tops, tops[1:], strict=False):
        between = [None if a is None or b is None else (b, a) for b, a in zip(below, above, strict=True)]
        drawn.append(_path(f"layer {layer.css_class}", _band(plot, scale, between)))
    labels: list[Html] = []
    if limit:
        drawn.append(_path(f"line {limit.css_class}", _steps(plot, scale, limit.values)))
        if (last := last_known(limit.values)) is not None:
            labels.append(el("text", limit.name, class_="limit", x="100%", y=f"{scale.y(last)}%", dy=-6))
    return _plot(plot, scale, drawn, show, labels)


def bars(rows: Sequence[tuple[str, float, str, str]]) -> Html:
    """Rows of name, value, the class that colours it, and its value in words."""
    most = max((value for _, value, _, _ in rows), default=0) or 1
    drawn = (
        row(name, (bar(value / most, css_class), "bar"), (words, "right")) for name, value, css_class, words in rows
    )
    return el("table", drawn, class_="bars")


def bar(share: float, css_class: str, marks: Sequence[tuple[float, str]] = ()) -> Html:
    """A bar that is filled up to a share, and marks on it. The text next to it says the same in words."""
    width = f"{min(max(share * 100, 0.4), 100):.1f}%"
    drawn = [el("rect", class_=f"fill {css_class}", width=width, height="100%")] if share > 0 else []
    for place, css_class in marks:
        if 0 <= place <= 1:
            x = f"{place * 100:.1f}%"
            drawn.append(el("line", class_=f"mark {css_class}", x1=x, x2=x, y1=-3, y2="100%"))
    return el("svg", drawn, class_="meter", aria_hidden="true")


def captioned(
    key: str, title: str, sentence: str, chart: Html | None, legend: Sequence[Series] = (), numbers: Html | None = None
) -> Html:
    """A chart under its title and the sentence that says what it shows. If `numbers` is given, the script shows the
    numbers at the pointer."""
    caption = el("figcaption", el("h3", title), el("p", in_markup(sentence)), id=f"{key}-says")
    if chart is None or numbers is None:
        return el("figure", caption, chart, id=key)
    names = (el("span", el("b", class_=f"key {series.css_class}"), series.name) for series in legend)
    keys = el("div", names, el("output"), class_="legend")
    plot = el("div", chart, class_="plot" if legend else "plot named", role="img", aria_labelledby=f"{key}-says")
    details = el("details", el("summary", "The numbers"), numbers, id=f"{key}-numbers")
    return el("figure", caption, keys, plot, details, id=key)


def numbers(plot: Plot, columns: Sequence[tuple[str, Sequence[Value]]], show: Callable[[Value], str]) -> Html:
    """The newest first. Each row knows its place in the plot."""
    rows = []
    for i in reversed([i for i, at in enumerate(plot.at) if at >= plot.start]):
        start = f"{plot.at[i].astimezone():%a %d %b %H:%M}"
        cells = ((show(values[i]), "right") for _, values in columns)
        rows.append(row(start, *cells, data_x=plot.x(plot.at[i] + plot.step / 2)))
    headings = [("from", None), *((name, "right") for name, _ in columns)]
    return el("div", table(headings, rows), class_="scroll", tabindex=0)


def _plot(
    plot: Plot, scale: Scale, drawn: Sequence[Html | None], show: Callable[[float], str], labels: Sequence[Html]
) -> Html:
    places = [(f"{scale.y(tick)}%", show(tick)) for tick in scale.ticks]
    return el(
        "svg",
        (el("line", class_="grid", x2="100%", y1=y, y2=y) for y, _ in places),
        el("svg", drawn, viewBox=f"0 0 {WIDTH} 100", preserveAspectRatio="none"),
        (el("text", words, class_="y", x=-8, y=y, dy=4) for y, words in places),
        (
            el("text", words, class_="x second" if i % 2 else "x", x=f"{x / WIDTH * 100:.1f}%", y="100%", dy=18)
            for i, (x, words) in enumerate(_times(plot))
        ),
        labels,
        el("line", class_="cursor", y2="100%"),
        aria_hidden="true",
    )


def _times(plot: Plot) -> Iterator[tuple[float, str]]:
    span = plot.until - plot.start
    spacing = next((s for s in SPACINGS if span / s <= MOST_TICKS), SPACINGS[-1])
    days = max(spacing.days, 1)
    at = plot.until.astimezone().replace(tzinfo=None, hour=0, minute=0, second=0, microsecond=0)
    while at.astimezone() > plot.start:  # begin at a midnight before the plot
        at -= timedelta(days=days)
    while (then := at.astimezone()) <= plot.until:  # a time without a zone is a time of this machine
        x = plot.x(then) if then >= plot.start else -1  # left of the plot
        if 0.02 * WIDTH <= x <= 0.98 * WIDTH:
            midnight = at.hour == at.minute == 0
            yield x, f"{at.day} {at:%b}" if midnight else f"{at:%H:%M}"
        at += spacing


def _path(css_class: str, d: str) -> Html | None:
    return el("path", class_=css_class, d=d) if d else None


def _runs(plot: Plot, known: Sequence[object | None]) -> Iterator[list[int]]:
    """Stretches of times without a gap, within the plot."""
    run: list[int] = []
    for i, at in enumerate(plot.at):
        if run and (known[i] is None or at - plot.at[run[-1]] > 1.5 * plot.step):
            yield run
            run = []
        if known[i] is not None and at >= plot.start:
            run.append(i)
    if run:
        yield run


def _steps(plot: Plot, scale: Scale, values: Sequence[Value]) -> str:
    drawn = ""
    for run in _runs(plot, values):
        x = plot.x(plot.at[run[0]])
        drawn += f"M{x} {scale.y(values[run[0]] or 0)}"
        for i in run:
            drawn += f"V{scale.y(values[i] or 0)}H{plot.x(plot.at[i] + plot.step)}"
    return drawn


def _band(plot: Plot, scale: Scale, between: Sequence[tuple[float, float] | None]) -> str:
    """The area between two lines of steps."""
    drawn = ""
    for run in _runs(plot, between):
        sides = [(plot.x(plot.at[i]), plot.x(plot.at[i] + plot.step), between[i] or (0, 0)) for i in run]
        drawn += f"M{sides[0][0]} {scale.y(sides[0][2][0])}"
        drawn += "".join(f"V{scale.y(high)}H{right}" for _, right, (_, high) in sides)
        drawn += "".join(f"V{scale.y(low)}H{left}" for left, _, (low, _) in reversed(sides)) + "Z"
    return drawn


def _ends(scale: Scale, series: Sequence[Series]) -> list[Html]:
    """The names next to the last values, moved apart so that they do not overlap, and upwards to stay in the plot."""
    lasts = [(last_known(one.values), one) for one in series]
    ends = sorted(((scale.y(v), one) for v, one in lasts if v is not None), key=itemgetter(0))
    places: list[float] = []
    for y, _ in ends:
        places.append(max(y, places[-1] + LABEL) if places else y)
    lowest = 100.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], lowest)
        lowest = places[i] - LABEL
    return [
        el("text", one.name, class_=f"end {one.css_class}", x="100%", dx=7, y=f"{y:.1f}%", dy=4)
        for y, (_, one) in zip(places, ends, strict=True)
    ]
