"""What the worker does with a run that fails."""

from datetime import timedelta
from pathlib import Path

import pytest

from helpers import Crawl
from recrawl.jobs import running
from recrawl.jobs.clock import BatchStarter
from recrawl.jobs.registry import JOBS, JobEntry
from recrawl.jobs.running import BatchRunner, IntervalRunner
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


def test_a_question_that_fails_again_and_again_is_logged_once(
    crawl: Crawl, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    starter = BatchStarter(url, [], lambda *_: None)
    for _ in ("first", "again"):
        crawl.connection.execute("alter function leads rename to renamed")
        for _ in range(3):
            starter()
        crawl.connection.execute("alter function renamed rename to leads")
        starter()
    starter.close()
    said = "cannot read which jobs are due, trying again: function recrawl_internal.leads("
    assert [message[: len(said)] for message in caplog.messages] == [said] * 2


def test_a_job_imports_nothing_from_the_folder_where_the_worker_was_started(
    crawl: Crawl, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A crawler may have a file queue.py. And a folder may belong to somebody else."""
    (tmp_path / "queue.py").write_text("raise SystemExit('somebody else')")
    monkeypatch.chdir(tmp_path)
    with caplog.at_level("INFO", "recrawl"):
        BatchRunner(JOBS["rates"], url)("a test", 0)
    (line,) = (message for message in caplog.messages if message.startswith("job=rates"))
    assert "ok=true" in line


def test_a_job_that_waits_for_another_is_not_taken_for_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "KILL_AFTER_DUE", timedelta(0))
    runner = BatchRunner(JOBS["opic"], "")
    for _ in range(2):
        runner.kill_if_frozen(is_due=True)
        assert runner.given_up == ""
    runner.is_running = True
    for _ in range(2):
        runner.kill_if_frozen(is_due=True)
    assert runner.given_up == "it gave no sign of life"
