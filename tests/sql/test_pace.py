"""The budget is all fetches: new pages are paced to what revisits leave of it."""

import math
import threading
import time
from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl
from sql.test_lines import add_due, add_new, is_new


def set_budget(crawl: Crawl, per_second: float, **settings: object) -> None:
    for name, value in {"budget": per_second * 86400, "breadth": 0, "frequency": 0.003, **settings}.items():
        crawl.value("select set_setting(%s, %s)", name, str(value))


def fetched(crawl: Crawl, duration: timedelta, every: timedelta, n: int, ahead: timedelta = 0 * SECOND) -> list[bool]:
    """A crawl that asks at a regular interval: for each of its pages, True if the page is new."""
    kinds, until = [], crawl.now + duration
    while crawl.now < until:
        pages = crawl.next(n, ahead=ahead)
        crawl.report_ok(pages)
        kinds += [is_new(page) for page in pages]
        crawl.wait(every)
    return kinds


@pytest.mark.parametrize("per_second", [0.5, 20, 100])
def test_new_pages_come_at_the_pace_of_the_budget(crawl: Crawl, per_second: float) -> None:
    add_new(crawl, range(300), 30)
    crawl.tick()
    set_budget(crawl, per_second)
    crawl.next(1)
    crawl.wait(SECOND)
    kinds = fetched(crawl, 60 * SECOND, SECOND / 4, 100)
    assert abs(len(kinds) - 60 * per_second) <= max(0.02 * 60 * per_second, 1)


def test_revisits_take_theirs_and_new_pages_what_is_left(crawl: Crawl) -> None:
    """Thirty revisits a second are due."""
    set_budget(crawl, 50, discovery=0.2)
    for host in range(60):
        crawl.add(f"http://h{host}.test/old", rate=[43200.0], due=[crawl.now + host * SECOND / 30])
    add_new(crawl, range(100, 600), 10)
    crawl.tick()
    crawl.connection.execute("update setting set shortest_interval = null")
    revisits = new = 0
    for _ in range(60):
        pages = crawl.next(100)
        crawl.report_ok(pages)
        revisits += sum(not is_new(page) for page in pages)
        new += sum(map(is_new, pages))
        crawl.wait(SECOND)
    assert abs(revisits - 60 * 30) <= 60
    assert abs(new - 60 * 20) <= 60


def test_while_revisits_want_everything_new_pages_have_their_share_of_the_budget(crawl: Crawl) -> None:
    set_budget(crawl, 20, discovery=0.25)
    add_due(crawl, range(100), 60)
    add_new(crawl, range(200, 300), 10)
    crawl.tick()
    kinds = fetched(crawl, 30 * SECOND, SECOND, 1000)
    assert abs(sum(kinds) - 30 * 5) <= 8
    assert kinds.count(False) == 30 * 100 - sum(kinds) or kinds.count(False) > 30 * 60


@pytest.mark.parametrize("pause", [5 * SECOND, HOUR, 3 * DAY])
def test_a_pause_is_not_made_up_for(crawl: Crawl, pause: timedelta) -> None:
    add_new(crawl, range(500), 4)
    crawl.tick()
    set_budget(crawl, 20)
    fetched(crawl, 5 * SECOND, SECOND, 100)
    crawl.wait(pause)
    assert len(crawl.next(500)) <= 21
    assert crawl.next(500) == []


def test_a_caller_that_looks_ahead_has_the_pages_of_that_time(crawl: Crawl) -> None:
    add_new(crawl, range(100), 40)
    crawl.tick()
    set_budget(crawl, 10)
    crawl.next(1)
    kinds = fetched(crawl, 100 * SECOND, 10 * SECOND, 500, ahead=10 * SECOND)
    assert abs(len(kinds) - 1000) <= 20


@pytest.mark.parametrize(("ahead", "used"), [(0, 1 / 3), (3, 1)])
def test_who_asks_every_three_seconds_must_look_ahead_as_far(crawl: Crawl, ahead: int, used: float) -> None:
    """New pages that no caller asked for within a second are not added to later seconds."""
    add_new(crawl, range(300), 10)
    crawl.tick()
    set_budget(crawl, 10)
    crawl.next(1)
    kinds = fetched(crawl, 90 * SECOND, 3 * SECOND, 100, ahead=ahead * SECOND)
    assert abs(len(kinds) - 900 * used) <= 20


def test_a_budget_far_below_what_is_due_leaves_new_pages_their_share_of_it(crawl: Crawl) -> None:
    """Half a fetch per day: revisits come when they are due anyway."""
    set_budget(crawl, 0.5 / 86400)
    add_due(crawl, range(20), 2)
    add_new(crawl, range(100, 120), 2)
    crawl.tick()
    kinds = fetched(crawl, MINUTE, SECOND, 5)
    assert (kinds.count(False), sum(kinds)) == (40, 1)
    assert crawl.value("select next_ready_time(%s)", crawl.now) > crawl.now + HOUR
    kinds = fetched(crawl, 40 * DAY, 6 * HOUR, 100)
    assert abs(sum(kinds) - 10) <= 1


def test_next_ready_at_knows_the_pace(crawl: Crawl) -> None:
    add_new(crawl, range(10), 1)
    crawl.tick()
    set_budget(crawl, 0.1)
    assert len(crawl.next()) == 1
    asked = []
    for _ in range(5):
        assert crawl.next() == []
        ready = crawl.value("select next_ready_time(%s)", crawl.now)
        asked.append(ready - crawl.now)
        crawl.now = ready
        assert len(crawl.next()) == 1
    assert all(timedelta(0) < wait <= 10 * SECOND for wait in asked)
    assert asked[1:] == [10 * SECOND] * 4


def test_next_ready_at_knows_the_share_that_new_pages_have_while_revisits_take_the_budget(crawl: Crawl) -> None:
    add_due(crawl, range(50), 1)
    add_new(crawl, range(100, 110), 1)
    crawl.tick()
    set_budget(crawl, 0.1, discovery=0.5)
    crawl.next()
    waits = []
    for _ in range(4):
        ready = crawl.value("select next_ready_time(%s)", crawl.now)
        waits.append(ready - crawl.now)
        crawl.now = ready
        (page,) = crawl.next()
        assert is_new(page)
    assert waits[1:] == [20 * SECOND] * 3


@pytest.mark.parametrize("step", [-DAY, -2 * HOUR, 400 * DAY])
def test_a_clock_that_steps_does_not_stop_new_pages(crawl: Crawl, step: timedelta) -> None:
    crawl.now += 1000 * DAY
    add_new(crawl, range(800), 4)
    crawl.tick()
    set_budget(crawl, 10)
    fetched(crawl, 20 * SECOND, SECOND, 100)
    crawl.wait(step)
    # Other things that wait because of such a clock are not tested here.
    crawl.connection.execute("update host set new_ready_at = %s - interval '1 day'", [crawl.now])
    crawl.connection.execute("select setval(new_horizon(class), 1) from generate_series(0, 32) class")
    fetched(crawl, MINUTE + 2 * SECOND, SECOND, 100)
    crawl.wait(SECOND)
    assert abs(len(fetched(crawl, 20 * SECOND, SECOND, 100)) - 200) <= 20


def test_without_a_budget_there_is_no_pace(crawl: Crawl) -> None:
    add_new(crawl, range(200), 1)
    crawl.tick()
    set_budget(crawl, 0.1)
    crawl.value("select set_setting('budget', null)")
    assert len(crawl.next(200)) == 200


@pytest.mark.parametrize("share", ["0", "1"])
def test_the_ends_of_discovery(crawl: Crawl, share: str) -> None:
    set_budget(crawl, 10, discovery=share)
    add_due(crawl, range(100), 20)
    add_new(crawl, range(200, 300), 10)
    crawl.tick()
    kinds = fetched(crawl, 30 * SECOND, SECOND, 40)
    if share == "0":
        assert not any(kinds)
    else:
        assert abs(sum(kinds) - 300) <= 15


@pytest.mark.parametrize(("callers", "per_second"), [(1, 50), (4, 200), (8, 400)])
def test_several_callers_keep_it_together(crawl: Crawl, url: str, callers: int, per_second: float) -> None:
    """By the real clock: they never ask when, they just pop."""
    crawl.connection.execute("select set_setting('default_gap', '1 ms')")
    crawl.rows(
        "select count(*) from recrawl.add_pages(array(select format('http://h%%s.test/%%s', i %% 2000, i) "
        "from generate_series(1, %s) i))", int(per_second * 8),
    )  # fmt: skip
    while crawl.value("select tick(100, 10000)"):
        pass
    set_budget(crawl, per_second)
    popped: list[tuple[float, int]] = []
    end = math.inf

    def begin() -> None:
        nonlocal end
        end = time.monotonic() + 5

    all_ready = threading.Barrier(callers, begin)

    def pop() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("select from recrawl.next_pages(20)")  # the first call of a session takes its time
            all_ready.wait(120)
            while time.monotonic() < end:
                pages = len(connection.execute("select page_id from recrawl.next_pages(20)").fetchall())
                popped.append((time.monotonic(), pages))
                time.sleep(0.01)

    threads = [threading.Thread(target=pop) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    since = end - 4
    given = sum(pages for at, pages in popped if at > since)
    seconds = max(at for at, _ in popped) - since
    # At most the budget of these seconds and of one more second, and one call of each caller. `bench pace` measures how
    # near they come on an idle machine.
    assert per_second / 2 <= given <= 1.02 * (seconds + 1) * per_second + 20 * callers
