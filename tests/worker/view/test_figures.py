"""Figures that are computed from the counts of a day, also of a young crawl and of a database without tables."""

from dataclasses import asdict
from datetime import datetime, timedelta

import pytest

from recrawl.view.figures import DAY, HOUR, MINUTE, Figures, LastRun, Minute, Now, Total
from recrawl.view.verdict import verdict
from worker.view.reports import NOW, SECOND


def test_of_a_database_without_tables_nothing_is_counted() -> None:
    figures = Figures(Now(NOW), database="none")
    for part in (figures.now, figures.minute, figures.hour, figures.day):
        assert not any(figure for figure in asdict(part).values() if not isinstance(figure, datetime))
    assert not figures.workers and verdict(figures).code == "database"


@pytest.mark.parametrize(
    ("since", "covers", "share"),
    [
        (NOW - 3 * DAY, "24 h", 0.5),
        (NOW - DAY, "24 h", 0.5),
        (NOW - 23 * HOUR - SECOND, "24 h", pytest.approx(0.5 * 24 / 23, rel=1e-4)),
        (NOW - 23 * HOUR, "23 h", pytest.approx(0.5 * 24 / 23)),
        (NOW - 12 * HOUR, "12 h", 1.0),
        (NOW - SECOND, "1 min", pytest.approx(0.5 * DAY / MINUTE)),
        (None, "24 h", None),
    ],
)
def test_a_young_crawl_is_compared_with_a_part_of_its_budget(
    since: datetime | None, covers: str, share: float | None
) -> None:
    day = Total(since, fetches=500)
    assert (day.covers(NOW), day.of_budget(1000, NOW)) == (covers, share)
    assert day.of_budget(None, NOW) is None


@pytest.mark.parametrize(
    ("day", "left"),
    [
        (Total(NOW - DAY, first=100), timedelta(days=2)),
        (Total(NOW - 12 * HOUR, first=100), timedelta(days=1)),
        (Total(NOW - DAY), None),
        (Total(first=100), None),
    ],
)
def test_new_pages_last_as_long_as_at_the_pace_of_the_day(day: Total, left: timedelta | None) -> None:
    assert day.left(200, NOW) == left


def test_a_time_of_ten_years_is_not_told() -> None:
    day = Total(NOW - DAY, first=1)
    assert (day.left(3649, NOW), day.left(3650, NOW)) == (timedelta(days=3649), None)


def test_a_revisit_is_in_time_within_ten_minutes() -> None:
    day = Total(late_1m=1, late_10m=2, late_1h=4, late_6h=8, late_1d=16, late_more=32)
    assert (day.revisits, day.in_time) == (63, 3 / 63)
    assert Total().in_time == 0


@pytest.mark.parametrize(
    ("ok", "message", "result"),
    [(None, "is running", "running"), (True, None, "ran"), (False, "stopped", "stopped"), (False, "full", "failed")],
)
def test_a_run_ends_in_one_word(ok: bool | None, message: str | None, result: str) -> None:
    assert LastRun("rates", NOW, 1, ok, message, None, 0).result == result


@pytest.mark.parametrize(("setting", "budget"), [("5000", 5000), (None, 700), ("", 700), ("unlimited", 700)])
def test_the_budget_is_the_setting_or_else_that_of_the_last_minute(setting: str | None, budget: float) -> None:
    figures = Figures(Now(NOW), minutes=(Minute(NOW, budget=9), Minute(NOW, budget=700)), settings={"budget": setting})
    assert figures.budget == budget
