"""What the worker does with a run that fails."""

from datetime import timedelta

import pytest

from helpers import Crawl
from recrawl.jobs.registry import JobEntry
from recrawl.jobs.running import IntervalRunner
from recrawl.jobs.vitals import Vitals
from recrawl.view import facts
from recrawl.view.verdict import checks


@pytest.mark.parametrize(("error", "says"), [(KeyError("missing"), "missing"), (IndexError(), "IndexError")])
def test_doctor_names_an_interval_job_that_fails_with_any_error(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch, error: Exception, says: str
) -> None:
    runner = IntervalRunner(JobEntry("vitals", "", timedelta(minutes=1)), url)

    def fail(_: Vitals) -> None:
        raise error

    monkeypatch.setattr(Vitals, "run", fail)
    runner()
    (check,) = [check for check in checks(facts.read(crawl.connection, False)) if check.code == "job_failing"]
    assert check.headline == "The job vitals failed."
    assert says in check.detail
