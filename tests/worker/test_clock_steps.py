"""The clock steps an hour under a worker: its machine's, the database's, or both, which may be one machine."""

import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import psycopg
import pytest

from helpers import Crawl, eventually, misplaced
from recrawl.setup import embedded, migrate
from worker.clock import LIBRARY, Clock
from worker.jobs.test_clock import BATCH, runs, worker

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="apt install faketime")

STANDSTILL = 600  # seconds. Without the repair, work stands still as long as the step: an hour.
EVERY = 10  # seconds, of each batch job: more often is no schedule


@pytest.fixture
def clock(open_folder: Path) -> Iterator[Clock]:
    with Clock(open_folder / "clock") as clock:
        yield clock


def look_after_a_step(crawl: Crawl, step: Callable[[], None]) -> None:
    """All kinds of work go on soon, and none of it is done again and again."""
    for job in BATCH:
        crawl.value("select set_setting(%s, %s)", f"{job}_every", f"{EVERY} s")
    eventually(lambda: {job for job, ok in runs(crawl) if ok} >= set(BATCH), 180)
    taken = len(crawl.rows("select * from next_pages(2)"))
    assert taken == 2

    newest = crawl.value("select last_value from job_token")
    step()
    stepped = time.monotonic()
    ended = "select job from job where token > %s and ok"
    crawl.connection.execute("select add_pages('{http://later.test/}')")
    eventually(lambda: crawl.value("select count(*) from inbox") == 0, STANDSTILL)
    eventually(lambda: crawl.rows("select * from next_pages(1)"), STANDSTILL)
    eventually(lambda: {row["job"] for row in crawl.rows(ended, newest)} >= set(BATCH), STANDSTILL + 3 * EVERY)
    time.sleep(max(0.0, stepped + 30 - time.monotonic()))
    since = time.monotonic() - stepped
    often = crawl.rows("select job, count(*) as runs from job where token > %s group by job", newest)
    assert max(row["runs"] for row in often) <= since / EVERY + 3, often
    assert crawl.value("select count(*) from vital where at > clock_timestamp()") == 0


def fill(crawl: Crawl) -> None:
    crawl.connection.execute("select set_setting('rates_every', 'none')")
    urls = [f"http://h{host}.test/{page}" for host in range(20) for page in range(5)]
    crawl.connection.execute("select add_pages(%s, rate => array[1.0])", [urls])


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [3600, -3600, 10 * 365 * 86400], ids=["forward", "back", "ten years forward"])
def test_when_the_workers_clock_steps_all_goes_on(crawl: Crawl, url: str, clock: Clock, seconds: int) -> None:
    fill(crawl)
    with worker(url, **clock.environment) as process:
        look_after_a_step(crawl, lambda: clock.step(seconds))
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=60)
    # More than once at times: for a moment libfaketime shows a thread the true time, while it reads the file anew.
    assert f"clock stepped by {seconds:+d} s" in said
    last: datetime = crawl.value("select max(started_at) from allocation_run")
    assert abs((crawl.value("select clock_timestamp()") - last).total_seconds()) < 600, "by the database's clock"


@pytest.mark.soak
@pytest.mark.parametrize("whose", ["the database's", "both"])
@pytest.mark.parametrize("seconds", [3600, -3600], ids=["forward", "back"])
def test_when_the_databases_clock_steps_all_goes_on(open_folder: Path, clock: Clock, seconds: int, whose: str) -> None:
    with clock.started(embedded.server(open_folder / "stepping")) as url:
        migrate.upgrade(url)
        with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
            crawl = Crawl(connection)
            connection.execute("truncate job")
            fill(crawl)
            with worker(url, **(clock.environment if whose == "both" else {})) as process:
                look_after_a_step(crawl, lambda: clock.step(seconds))
                assert process.poll() is None
            crawl.now = crawl.value("select clock_timestamp()")
            assert misplaced(crawl) == []
