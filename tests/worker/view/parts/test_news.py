"""Events and the last runs of the jobs are told with how they ended."""

import re
from dataclasses import replace

from recrawl.view.figures import LastRun
from recrawl.view.history import Event, History
from recrawl.view.parts import news
from worker.view.reports import FIGURES, HISTORY, MINUTE, NOW, report


def test_a_run_that_failed_stands_out() -> None:
    ends = ((None, "is running"), (True, None), (False, "disk full"), (False, "stopped"))
    runs = tuple(LastRun("rates", NOW - MINUTE, 60, ok, message, None, 0) for ok, message in ends)
    rows = re.findall(
        r'class="when">15:03</td><td( class="worse")?>([^<]*)</td><td class="right">1 min</td><td class="wide">([^<]*)',
        news.jobs(report(replace(FIGURES, runs=runs))),
    )
    worse = ' class="worse"'
    assert rows == [
        ("", "is running", "is running"), ("", "ran", ""), (worse, "failed", "disk full"), ("", "stopped", "stopped")
    ]  # fmt: skip


def test_days_of_which_too_little_is_known_are_not_compared() -> None:
    assert "<table" in news.changes(report())
    assert "Too little is known of the day before." in news.changes(report(FIGURES, History()))


def test_an_event_of_the_crawl_stands_out_and_one_of_a_person_has_a_name() -> None:
    events = (Event(NOW, "setting", "budget", "1 → 2", "anna"), Event(NOW, "crawl", "crawlers", "back", None))
    rows = re.findall(
        r'class="pill (\w*)">(\w+)</span></td><td class="wide"><b>(\w+)</b>: ([^<]*)<',
        news.events(report(FIGURES, replace(HISTORY, events=events))),
    )
    assert rows == [("", "setting", "budget", "1 → 2 (anna)"), ("crawl", "crawl", "crawlers", "back")]
