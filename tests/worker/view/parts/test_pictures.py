"""The charts of a report show enough points, also in the first hours of a crawl."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from recrawl.view.figures import HOUR
from recrawl.view.history import TEN_MINUTES, History
from recrawl.view.parts import pictures
from recrawl.view.parts.html import Html
from recrawl.view.parts.page import Report
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


def test_a_crawl_of_two_weeks_has_a_point_every_hour() -> None:
    assert HISTORY.step == HOUR
    assert rows(pictures.freshness, HISTORY) > 300
