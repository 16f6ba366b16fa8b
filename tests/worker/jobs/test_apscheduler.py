"""The features of APScheduler that the clock relies on. The clock overrides the private method `_process_jobs`.

These tests run with the installed APScheduler. `.ci/run` also runs them with the oldest one that pyproject.toml allows.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from apscheduler.executors.pool import ThreadPoolExecutor

from helpers import eventually
from recrawl.jobs.clock import SteppingClockScheduler

HOUR, TEN_YEARS = timedelta(hours=1), timedelta(days=3650)


class Watched(SteppingClockScheduler):
    """Counts the calls of the overridden method."""

    calls = 0

    def _process_jobs(self) -> Any:
        self.calls += 1
        return super()._process_jobs()


@contextmanager
def running(work: Callable[[], object], every: timedelta) -> Iterator[Watched]:
    scheduler = Watched(
        executors={"default": ThreadPoolExecutor(1)},
        job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
        timezone="UTC",
    )
    scheduler.add_job(work, "interval", seconds=every.total_seconds(), id="job")
    thread = threading.Thread(target=scheduler.start, daemon=True)
    thread.start()
    try:
        eventually(lambda: scheduler.running)
        yield scheduler
    finally:
        scheduler.is_told_to_stop = True
        thread.join(30)
        assert not thread.is_alive(), "the scheduler stops when it is told to"


def test_the_method_is_called_every_second_though_no_job_is_due(caplog: pytest.LogCaptureFixture) -> None:
    with running(lambda: None, HOUR) as scheduler:

        def three_calls() -> list[str]:
            before = scheduler.calls
            eventually(lambda: scheduler.calls >= before + 3)
            return [message for message in caplog.messages if "clock" in message]

        assert three_calls() == []
        assert scheduler.wall_clock_lead is not None
        scheduler.wall_clock_lead -= HOUR.total_seconds()
        assert three_calls() == ["this machine's clock stepped by +3600 s. The times of the jobs are adjusted"]


@pytest.mark.parametrize("stepped", [HOUR, -TEN_YEARS], ids=["an hour back", "ten years ahead"])
def test_after_a_step_of_the_clock_a_job_runs_at_once_and_only_once(stepped: timedelta) -> None:
    """The time of the next run is set as a job finds it after the step. Alone, APScheduler would wait for an hour, or
    list the 30 million runs of ten years."""
    ran: list[float] = []
    with running(lambda: ran.append(time.monotonic()), timedelta(seconds=10)) as scheduler:
        scheduler.modify_job("job", next_run_time=datetime.now(UTC) + stepped)
        at = time.monotonic()
        eventually(lambda: ran)
        time.sleep(1.5)
        assert len(ran) == 1 or ran[1] - ran[0] > 5, "the next run is an interval later"
        assert ran[0] - at < 25


def test_a_scheduler_that_is_told_to_stop_does_not_wait_for_its_job() -> None:
    may_end, has_begun = threading.Event(), threading.Event()

    def work() -> None:
        has_begun.set()
        may_end.wait(60)

    with running(work, timedelta(seconds=0.1)) as scheduler:
        assert has_begun.wait(30)
        scheduler.is_told_to_stop = True
        eventually(lambda: not scheduler.running)
        may_end.set()
