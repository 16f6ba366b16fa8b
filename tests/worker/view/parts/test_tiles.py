"""The tiles say the figures that matter, also if some of them are not known or not large."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import pytest

from recrawl.view.figures import DAY, HOUR, Total
from recrawl.view.parts.tiles import TILES
from worker.view.reports import BUDGET, DAY_TOTAL, FIGURES, LAST_MINUTE, NOW, report

FRESH, FETCHED, IN_TIME, COVERED = range(4)


def said(tile: int, *, minute: object = LAST_MINUTE, day: Total = DAY_TOTAL, **more: object) -> str:
    figures = replace(FIGURES, minutes=(minute,), day=day, **more)  # type: ignore[arg-type]
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", TILES[tile](report(figures)))).split())


def test_a_crawl_in_health() -> None:
    assert said(FRESH) == "Fresh now 72.0 % ± 0.4 % expected 73.4 %, limit 73.9 %, without gaps 81.2 %"
    assert said(FETCHED) == ("Fetched in 24 hours 464 k of 500 k 93 % of the budget; the allocation has a use for 94 %")
    assert said(IN_TIME) == "Revisits on time 97.7 % within 10 min of the due time; 1,204 revisits skipped"
    assert said(COVERED).endswith("85.1 % by value 180,176 new pages wait, 4 days at today's pace")


def test_marks_stand_at_what_is_expected_possible_and_planned() -> None:
    marks = re.compile(r'class="mark (\w+)" x1="([\d.]+)%" x2="([\d.]+)%"')
    assert marks.findall(TILES[FRESH](report())) == [("first", "73.4", "73.4"), ("ink", "73.9", "73.9")]
    assert marks.findall(TILES[FETCHED](report())) == [("first", "94.3", "94.3")]
    assert 'width="92.7%"' in TILES[FETCHED](report())


@pytest.mark.parametrize(
    ("waiting", "ends"),
    [(0.0, "no new page waits"), (1.0, "1 new page waits, 1.9 s at today's pace"), (2.0, "2 new pages wait, 3.7 s at")],
)
def test_new_pages_that_wait_are_counted(waiting: float, ends: str) -> None:
    assert ends in said(COVERED, minute=replace(LAST_MINUTE, new_waiting=waiting))


@pytest.mark.parametrize(("unused", "is_told"), [(5_000, False), (5_001, True)])
def test_a_hundredth_of_the_budget_that_has_no_use_is_not_told(unused: float, is_told: bool) -> None:
    allocation = replace(FIGURES.allocation, unused=unused)  # type: ignore[type-var]
    assert ("has a use" in said(FETCHED, allocation=allocation)) == is_told
    tile = TILES[FETCHED](report(replace(FIGURES, allocation=allocation)))
    assert ('class="mark' in tile) == is_told


def test_little_is_known_of_a_young_crawl() -> None:
    young = Total(NOW - 6 * HOUR, fetches=BUDGET / 8, late_1m=1)
    assert "50 % of the budget for the first 6 h" in said(FETCHED, day=young)
    assert said(IN_TIME, day=young) == "Revisits on time 100 % within 10 min of the due time; none skipped"
    assert said(FETCHED, day=Total(), allocation=None).endswith("of 500 k nothing in the last 24 hours")
    assert said(IN_TIME, day=Total(NOW - DAY)).endswith("– no page was fetched again in the last 24 hours")
    late = replace(LAST_MINUTE, at=NOW - timedelta(minutes=1), covered=None, fresh_error=None, new_waiting=None)
    alone = replace(late, expected=None, limit_with_gaps=None, limit_without_gaps=None)
    assert said(FRESH, minute=alone).endswith("72.0 % of the value of all pages"), "of the minute before the first one"
    assert "±" not in said(FRESH, minute=late) and "not known yet" in said(COVERED, minute=late)
    assert said(COVERED, minute=replace(late, covered=0.5)).endswith("50.0 % by value no new page waits")
