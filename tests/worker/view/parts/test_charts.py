"""Charts say no more than their figures: what is missing is a gap, and nothing leaves the plot."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from recrawl.view.figures import DAY, HOUR
from recrawl.view.parts.charts import Plot, Scale, Series, bar, bars, lines, numbers, stacks
from worker.view.reports import NOW

END = NOW.replace(minute=0, second=0)


def over(*hours_ago: int, longest: timedelta = DAY) -> Plot:
    return Plot([END - ago * HOUR for ago in hours_ago], HOUR, END, longest)


def paths(svg: str, css_class: str) -> list[str]:
    return re.findall(rf'<path class="{css_class}[^"]*" d="([^"]*)"', svg)


def places(svg: str) -> list[tuple[float, float]]:
    """The right ends of the steps of lines."""
    return [(float(x), float(y)) for d in paths(svg, "line") for y, x in re.findall(r"V([\d.-]+)H([\d.-]+)", d)]


def show(value: float) -> str:
    return f"{value:g}"


def test_a_line_has_a_step_for_each_value_and_ends_in_the_plot() -> None:
    svg = lines(over(3, 2, 1), [Series("a", "changed", [1.0, 3.0, 2.0])], [0.1, 0.1, 0.1], show)
    assert [x for x, _ in places(svg)] == [333.3, 666.7, 1000.0]
    low, high, middle = (y for _, y in places(svg))
    assert 0 <= high < middle < low <= 100


def test_what_is_missing_or_not_known_breaks_the_line() -> None:
    missing = lines(over(9, 8, 4, 3), [Series("a", "changed", [1.0, 2.0, 2.0, 1.0])], [None] * 4, show)
    unknown = lines(over(4, 3, 2, 1), [Series("a", "changed", [1.0, 2.0, None, 1.0])], [None] * 4, show)
    assert [d.count("M") for d in paths(missing, "line")] == [2]
    assert [d.count("M") for d in paths(unknown, "line")] == [2]
    one = lines(over(4, 3, 1), [Series("a", "changed", [1.0, 2.0, 2.0])], [None] * 3, show)
    assert [d.count("M") for d in paths(one, "line")] == [2]
    assert paths(unknown, "line")[0].endswith("H1000.0"), "a value alone is a step"


def test_layers_stand_on_one_another_and_end_at_a_gap() -> None:
    layers = [Series("a", "changed", [1.0, 1.0, 2.0]), Series("b", "failed", [1.0, 1.0, 0.0])]
    svg = stacks(over(5, 4, 1), layers, None, show)
    (first,), (second,) = paths(svg, "layer changed"), paths(svg, "layer failed")
    assert first.count("Z") == second.count("Z") == 2
    bottom = re.findall(r"M[\d.]+ ([\d.]+)", first)
    assert set(bottom) == {"100.0"}
    top_of_first, bottom_of_second = re.search(r"V([\d.]+)H", first), re.search(r"M[\d.]+ ([\d.]+)", second)
    assert top_of_first and bottom_of_second and top_of_first[1] == bottom_of_second[1]


def test_layers_and_their_limit_are_steps_at_their_heights() -> None:
    """The plot is 8 percent higher than the largest value, which is 5: a value of 1 is 18.52 percent high."""
    layers = [Series("a", "changed", [1.0, 2.0, None, 1.0]), Series("b", "failed", [1.0, 1.0, 1.0, 3.0])]
    svg = stacks(over(4, 3, 2, 1), layers, Series("budget", "ink", [3.0, 3.0, 3.0, 5.0]), show)
    assert paths(svg, "layer changed") == [
        "M0.0 100.0V81.48H250.0V62.96H500.0V100.0H250.0V100.0H0.0ZM750.0 100.0V81.48H1000.0V100.0H750.0Z"
    ]
    assert paths(svg, "layer failed") == [
        "M0.0 81.48V62.96H250.0V44.44H500.0V62.96H250.0V81.48H0.0ZM750.0 81.48V25.93H1000.0V81.48H750.0Z"
    ]
    assert paths(svg, "line ink") == ["M0.0 44.44V44.44H250.0V44.44H500.0V44.44H750.0V7.41H1000.0"]
    assert re.findall(r'class="y"[^>]* y="([\d.]+)%"[^>]*>(\d+)<', svg) == [
        ("100.0", "0"),
        ("62.96", "2"),
        ("25.93", "4"),
    ]
    assert '<text class="limit" x="100%" y="7.41%"' in svg
    hours = re.findall(r'class="(x[ a-z]*)" x="([\d.]+)%"[^>]*>([\d:]+)<', svg)
    assert hours == [("x", "25.0", "12:00"), ("x second", "50.0", "13:00"), ("x", "75.0", "14:00")]


def test_a_line_stands_in_the_middle_of_its_error() -> None:
    series = [Series("fresh", "changed", [0.5, 0.6, 0.6, 0.7]), Series("expected", "first", [0.7] * 4)]
    svg = lines(over(4, 3, 2, 1), [*series, Series("limit", "soft", [None] * 4)], [0.1] * 4, show)
    assert paths(svg, "line changed") == ["M0.0 75.0V75.0H250.0V50.0H500.0V50.0H750.0V25.0H1000.0"]
    assert paths(svg, "line dashed first") == ["M0.0 25.0V25.0H250.0V25.0H500.0V25.0H750.0V25.0H1000.0"]
    assert paths(svg, "band changed") == [
        "M0.0 100.0V50.0H250.0V25.0H500.0V25.0H750.0V0.0H1000.0V50.0H750.0V75.0H500.0V75.0H250.0V100.0H0.0Z"
    ]
    assert re.findall(r'class="y"[^>]* y="([\d.]+)%"[^>]*>([\d.]+)<', svg) == [
        ("100.0", "0.4"), ("50.0", "0.6"), ("0.0", "0.8")
    ]  # fmt: skip
    names = re.findall(r'class="end \w+"[^>]* y="([\d.]+)%"[^>]*>(\w+)<', svg)
    assert names == [("25.0", "fresh"), ("34.0", "expected")], "both end there"


def test_names_at_the_lower_end_stay_in_the_plot_and_move_no_others() -> None:
    ends = {"a": 0.4, "b": 0.4, "c": 0.8}
    svg = lines(over(2, 1), [Series(name, "changed", [0.8, end]) for name, end in ends.items()], [None] * 2, show)
    assert re.findall(r'class="end \w+"[^>]* y="([\d.]+)%"[^>]*>(\w+)<', svg) == [
        ("0.0", "c"), ("91.0", "a"), ("100.0", "b")
    ]  # fmt: skip


def test_a_limit_is_seen_above_low_layers() -> None:
    svg = stacks(over(2, 1), [Series("a", "changed", [1.0, 1.0])], Series("budget", "ink", [50.0, 50.0]), show)
    (line,) = paths(svg, "line ink")
    assert all(0 < float(y) < 50 for y in re.findall(r"V([\d.]+)", line))
    assert ">budget<" in svg


@pytest.mark.parametrize("hours", [(), (1,), (1000,)])
def test_no_point_one_point_and_old_points_can_be_drawn(hours: tuple[int, ...]) -> None:
    figures = over(*hours)
    values = [5.0 for _ in hours]
    for svg in (
        lines(figures, [Series("a", "changed", values)], values, show),
        stacks(figures, [Series("a", "changed", values)], None, show),
    ):
        assert "nan" not in svg and "inf" not in svg
        assert all(0 <= x <= 1000 and 0 <= y <= 100 for x, y in places(svg))


def test_a_young_crawl_fills_its_chart() -> None:
    assert over(3, 2, 1).start == END - 3 * HOUR
    assert over(100, 50).start == END - DAY
    assert over().start == END - HOUR


@pytest.mark.parametrize(
    ("values", "from_zero"),
    [([], True), ([0.0], True), ([0.0, 0.0], False), ([0.72, 0.72], False), ([1e-9, 2e-9], False), ([3.0, 7e9], True)],
)
def test_a_scale_holds_its_values_between_round_ticks(values: list[float], from_zero: bool) -> None:
    scale = Scale.of(values, from_zero=from_zero)
    assert all(0 <= scale.y(value) <= 100 for value in values)
    assert 2 <= len(scale.ticks) <= 6
    assert all(-1e-6 <= scale.y(tick) <= 100 + 1e-6 for tick in scale.ticks)
    if from_zero:
        assert scale.low == 0


@pytest.mark.parametrize("span", [HOUR, 5 * HOUR, DAY, 3 * DAY, 14 * DAY, 45 * DAY, 90 * DAY])
def test_there_are_some_times_below_but_not_too_many(span: timedelta) -> None:
    figures = Plot([NOW - span], HOUR, NOW, span)
    svg = stacks(figures, [Series("a", "changed", [1.0])], None, show)
    assert 4 <= len(re.findall(r'class="x', svg)) <= 8


def test_the_table_has_every_number_and_the_newest_first() -> None:
    table = numbers(over(3, 2, 1), [("a", [1.0, None, 3.0])], lambda v: "–" if v is None else f"{v:g}")
    assert re.findall(r'class="right">([^<]+)</td>', table) == ["3", "–", "1"]
    assert re.findall(r'data-x="([\d.]+)"', table) == ["833.3", "500.0", "166.7"]


def test_a_bar_stays_within_its_track() -> None:
    assert 'width="100.0%"' in bar(1.7, "changed")
    assert "rect" not in bar(0.0, "changed")
    assert "mark" not in bar(0.5, "changed", [(1.2, "first")])
    assert 'width="0.4%"' in bar(1e-6, "changed"), "it is seen"
    longest_first = bars([("a", 2.0, "changed", "two"), ("b", 1.0, "first", "one"), ("c", 0.0, "first", "none")])
    longest_last = bars([("b", 1.0, "changed", "one"), ("a", 2.0, "first", "two")])
    for drawn in (longest_first, longest_last):
        assert (drawn.count('width="100.0%"'), drawn.count('width="50.0%"')) == (1, 1)


@pytest.mark.usefixtures("in_berlin")
def test_a_day_of_25_hours_has_25_and_is_told_as_clocks_showed_it() -> None:
    end = datetime(2026, 10, 25, 23, tzinfo=UTC)
    plot = Plot([end - ago * HOUR for ago in range(25, 0, -1)], HOUR, end, 25 * HOUR)
    table = numbers(plot, [("a", [1.0] * 25)], lambda value: f"{value}")
    told = re.findall(r'<th scope="row">Sun 25 Oct (\d\d:\d\d)</th>', table)
    assert told[::-1] == ["00:00", "01:00", "02:00", *(f"{hour:02}:00" for hour in range(2, 24))]
    places = [float(x) for x in re.findall(r'data-x="([\d.]+)"', table)]
    assert {round(right - left) for left, right in zip(places[1:], places, strict=False)} == {40}
    labels = re.findall(
        r'<text class="x[^"]*" x="([\d.]+)%"[^>]*>([^<]+)</text>',
        stacks(plot, [Series("a", "changed", [1.0] * 25)], None, show),
    )
    assert ("52.0", "12:00") in labels
