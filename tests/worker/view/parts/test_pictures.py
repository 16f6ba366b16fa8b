"""The charts of a report show enough points, also in the first hours of a crawl."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from recrawl.view.figures import HOUR
from recrawl.view.history import TEN_MINUTES, History
from recrawl.view.parts import pictures
from recrawl.view.parts.html import Html
from recrawl.view.parts.page import Report
from recrawl.words import count, percent
from worker.view.reports import FIGURES, HISTORY, report


def rows(picture: Callable[[Report], Html], history: History) -> int:
    """Of the table of a chart's numbers: one for each step, and the heading."""
    return str(picture(report(FIGURES, history))).count("<tr") - 1


@pytest.mark.parametrize("picture", [pictures.freshness, pictures.fetches, pictures.waiting])
def test_a_crawl_of_90_minutes_has_a_point_every_ten_minutes(picture: Callable[[Report], Html]) -> None:
    young = replace(HISTORY, hours=HISTORY.hours[-2:], tens=HISTORY.tens[-9:])
    assert young.step == TEN_MINUTES
    assert rows(picture, young) >= 8


def test_figures_that_came_after_the_hours_were_read_do_no_harm() -> None:
    assert History(tens=HISTORY.tens[-1:]).step == HOUR


def headings(chart: str) -> list[str]:
    return re.findall(r'scope="col"[^>]*>([^<]*)<', chart)


def newest(chart: str) -> list[str]:
    """The cells of the first row of a chart's numbers."""
    return re.findall(r'class="right">([^<]*)</td>', chart.partition("<tbody>")[2].partition("</tr>")[0])


def test_the_numbers_of_a_chart_have_the_names_of_its_parts() -> None:
    last = HISTORY.hours[-1]
    freshness = str(pictures.freshness(report()))
    assert headings(freshness) == ["from", "fresh", "expected", "limit", "error, ±"]
    assert newest(freshness) == [percent(last.fresh), "73.4 %", "73.9 %", "0.4 %"]
    fetches, last = str(pictures.fetches(report())), HISTORY.hours[-2]
    kinds = [
        "found a change",
        "unchanged",
        "first fetch",
        "not found",
        "failed",
        "throttled",
        "denied",
        "all",
        "budget",
    ]
    assert headings(fetches) == ["from", *kinds]
    counts = (last.changed, last.unchanged, last.first, last.missing, last.failed, last.throttled, 0, last.fetches)
    assert newest(fetches) == [*map(count, counts), "20,833"]
    waiting, ten = str(pictures.waiting(report())), HISTORY.tens[-1]
    assert headings(waiting) == ["from", "the gap of their host", "a blocked host", "a crawler", "all"]
    assert newest(waiting) == [count(due) for due in (ten.due_gap, ten.due_blocked, ten.due_crawler, ten.due)]


def test_the_budget_is_that_of_a_step() -> None:
    young = replace(HISTORY, hours=HISTORY.hours[-2:], tens=HISTORY.tens[-9:])
    assert ">budget: 20,833 an hour<" in pictures.fetches(report())
    assert ">budget: 3,472 in ten minutes<" in pictures.fetches(report(FIGURES, young))


def test_revisits_are_told_by_their_lateness_and_share() -> None:
    cells = re.findall(r'<th scope="row">([^<]*)</th>.*?class="right">([^<]*)<', pictures.visits(report()))
    assert cells[0] == ("within a minute", "361,900 · 87.2 %") and cells[-1] == ("more than a day", "391 · 0.1 %")


def test_a_crawl_of_two_weeks_has_a_point_every_hour() -> None:
    assert HISTORY.step == HOUR
    assert rows(pictures.freshness, HISTORY) > 300
