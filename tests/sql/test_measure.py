"""A budget that is measured: how it is set, shown and moved, step by step."""

from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, run_job
from sql.test_lines import add_new


def measure(crawl: Crawl) -> None:
    crawl.value("select set_setting_at(%s, 'budget', 'measured')", crawl.now)


def shown(crawl: Crawl) -> tuple[str, str]:
    row = crawl.row("select value, meaning from settings where name = 'budget'")
    return row["value"], row["meaning"]


def test_it_is_a_setting_like_others(crawl: Crawl) -> None:
    crawl.value("select set_setting('budget', '500')")
    measure(crawl)
    value, meaning = shown(crawl)
    assert value == "measured"
    assert meaning.endswith("Measured: 500 at present.")
    assert crawl.value("select budget from setting") == 500
    for plain in ("700", None):
        measure(crawl)
        crawl.value("select set_setting('budget', %s)", plain)
        assert shown(crawl)[0] == plain
        assert crawl.value("select count(*) from budget_step") == 0
    with pytest.raises(Exception, match="there is no setting 'budget_is_measured'"):
        crawl.value("select set_setting('budget_is_measured', 'true')")


def work(crawl: Crawl, hours: float, pages_a_minute: int) -> float:
    """The budget after crawlers with a fixed capacity worked for a while."""
    until = crawl.now + hours * HOUR
    while crawl.now < until:
        crawl.report_ok(crawl.next(pages_a_minute, ahead=MINUTE) if pages_a_minute else [])
        crawl.wait(MINUTE)
        crawl.value("select tick_at(%s, 100, 1000)", crawl.now)
    return float(crawl.value("select budget from setting"))


def measured_from_5000(crawl: Crawl) -> None:
    """A measured budget that begins with 5,000 fetches a day, and 6,000 new pages on 60 hosts."""
    add_new(crawl, range(60), 100)
    crawl.tick()
    crawl.value("select set_setting('budget', '5000')")
    crawl.value("select set_setting('discovery', '1')")
    measure(crawl)


def test_it_rises_to_what_crawlers_can_do_and_falls_with_them(crawl: Crawl) -> None:
    measured_from_5000(crawl)
    assert work(crawl, 3, 10) == pytest.approx(14400, rel=0.1)
    assert work(crawl, 3, 5) == pytest.approx(7200, rel=0.1)
    before = work(crawl, 0.2, 0)
    assert work(crawl, 30, 0) == before, "nobody asks"


def test_calls_that_name_a_host_do_not_count(crawl: Crawl) -> None:
    """The server for URLFrontier makes one such call for each host of an answer, and nearly all of them find too few
    pages. So the budget did not fall with slow crawlers."""
    measured_from_5000(crawl)
    crawl.value("select set_setting('budget', '15000')")
    measure(crawl)
    for _ in range(180):
        pages = crawl.next(5, ahead=MINUTE)
        for page in pages:
            assert not crawl.rows("select next_pages_at(%s, 9, '0', '1 min', 9, host => %s)", crawl.now, page["host"])
        crawl.report_ok(pages)
        crawl.wait(MINUTE)
        crawl.value("select tick_at(%s, 100, 1000)", crawl.now)
    assert crawl.value("select budget from setting") == pytest.approx(7200, rel=0.1)


def test_crawlers_that_always_name_a_host_do_not_move_it(crawl: Crawl) -> None:
    measured_from_5000(crawl)
    for host in ["h1.test", "a b"] * 30:
        with suppress(psycopg.Error):
            crawl.rows("select next_pages_at(%s, 9, '0', '1 min', 9, host => %s)", crawl.now, host)
        crawl.wait(MINUTE)
        crawl.value("select tick_at(%s, 100, 1000)", crawl.now)
    assert crawl.value("select budget from setting") == 5000


def test_a_clock_that_was_set_back_does_not_stop_it(crawl: Crawl) -> None:
    """A tick deleted its only step before a crawler had called, and no other step ever followed."""
    measured_from_5000(crawl)
    crawl.wait(-2 * DAY)
    crawl.tick()
    assert work(crawl, 6, 10) == pytest.approx(14400, rel=0.1)


def test_gaps_are_no_reason_to_raise_it(crawl: Crawl) -> None:
    crawl.value("select set_setting('default_gap', '2 minutes')")
    add_new(crawl, range(20), 200)
    crawl.tick()
    crawl.value("select set_setting('budget', '10000')")
    measure(crawl)
    most = 20 * 720  # fetches a day that the gaps allow
    assert most <= work(crawl, 4, 50) <= most / 0.9, "a budget is not lowered if 90 % of it are spent"


def test_a_pause_between_steps_is_no_burst(crawl: Crawl) -> None:
    """A count that is ahead of the budget, or behind it, stays so when the budget changes."""
    add_new(crawl, range(60), 100)
    crawl.tick()
    crawl.value("select set_setting('budget', '86400')")
    measure(crawl)
    crawl.next(1)
    crawl.wait(SECOND)
    crawl.next(1)
    before = crawl.value("select last_value - fetches_by(%s, budget) from fetch_count, setting", crawl.now)
    crawl.value("select follow_budget(%s, 86400, 172800, 0.5)", crawl.now)
    after = crawl.value("select last_value - fetches_by(%s, 172800) from fetch_count", crawl.now)
    assert abs(after - before) <= 1


def test_a_step_of_the_budget_is_no_burst(crawl: Crawl) -> None:
    measured_from_5000(crawl)
    lead = "select last_value - fetches_by(%s, budget) from fetch_count, setting"
    for _ in range(60):
        crawl.report_ok(crawl.next(10, ahead=MINUTE))
        crawl.wait(MINUTE)
        before = crawl.value(lead, crawl.now)
        crawl.value("select tick_at(%s, 100, 1000)", crawl.now)
        assert abs(crawl.value(lead, crawl.now) - before) <= 1
    assert crawl.value("select budget from setting") > 5000


def test_due_times_that_were_promised_other_frequencies_follow(crawl: Crawl, url: str) -> None:
    crawl.add(*(f"http://h{i}.test/" for i in range(8)))
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.tick()
    page, other = crawl.rows("select page_id, due_at, fetched_at from page order by page_id limit 2")
    crawl.value("select put_dues_at(%s, %s::bigint[], %s::real[], 0.1)", crawl.now, [page["page_id"]], [0.5])
    moved = crawl.row("select due_at, fetched_at from page where page_id = %s", page["page_id"])
    assert moved["due_at"] == moved["fetched_at"] + 2 * DAY
    crawl.wait(12 * HOUR)
    crawl.value("select put_dues_at(%s, %s::bigint[], %s::real[], 0.1)", crawl.now, [other["page_id"]], [24.0])
    moved = crawl.row("select due_at from page where page_id = %s", other["page_id"])
    assert crawl.now <= moved["due_at"] <= crawl.now + 0.1 * DAY
    crawl.tick()
    assert crawl.value("select count(*) from page join queue using (page_id, due_at)") == 8
    crawl.wait(2 * DAY)
    pages = crawl.next()
    crawl.value(
        "select put_dues_at(%s, %s::bigint[], %s::real[], 0.1)",
        crawl.now,
        [p["page_id"] for p in pages],
        [0.1] * len(pages),
    )
    assert crawl.value("select count(*) from inbox") == 0, "they are out"
    run_job("allocate", url)


def test_a_budget_of_1000_becomes_what_the_measurements_say(crawl: Crawl) -> None:
    becomes = {  # short_share, now, hour, most, in_a_day: the budget
        # Half of the calls are short and the budget is not used up: it falls slowly.
        (0.5, 800, 850, 850, 850): 995,
        (0.5, 900, 900, 900, 900): 1000,
        (0.5, 950, 800, 800, 800): 1000,
        # The budget is used up: it rises, but not above the speed of the crawlers.
        (0.5, 929, 929, 2000, 2000): 1000,
        (0.5, 1000, 930, 1000, 1000): 1005,
        (0.5, 960, 980, 940, 940): 1005,
        (0.5, 956, 956, 956, 956): 1003.8,
        (0.5, 940, 940, 950, 950): 1000,
        (0.5, 1000, 1000, 2000, 2000): 1030,
        # In each step of the day too many calls were short: it rises faster.
        (0.5, 970, 970, None, None): 1050,
        (0.5, 960, 960, None, None): 1005,
        # Few calls are short: it falls to the speed of the crawlers.
        (0.1, 500, 500, 500, 500): 970,
        (0.1, 500, 500, 500, 990): 990,
        # Neither many nor few are short.
        (0.3, 500, 500, 500, 500): 1000,
    }
    after = "select budget_after(1000, row(%s, %s, %s, %s, %s)::measured)"
    assert {measured: crawl.value(after, *measured) for measured in becomes} == pytest.approx(becomes)


def test_a_measured_budget_stays_between_1_and_1e12(crawl: Crawl) -> None:
    after = "select budget_after(%s, row(%s, %s, %s, %s, %s)::measured)"
    assert crawl.value(after, 1, 0, *[0.5] * 4) == 1
    assert crawl.value(after, 1e12, 1, *[2e12] * 4) == 1e12


def plant_steps(crawl: Crawl, steps: list[tuple[timedelta, int, int]]) -> None:
    """Steps of 10 calls, the oldest first: how long each took, its short calls and its pages."""
    at = crawl.now - sum((lasts for lasts, *_ in steps), timedelta())
    calls = short = pages = 0
    crawl.connection.execute("delete from budget_step")
    for lasts, short_calls, handed_out in [(timedelta(), 0, 0), *steps]:
        at, calls, short, pages = at + lasts, calls + 10, short + short_calls, pages + handed_out
        crawl.connection.execute("insert into budget_step values (%s, %s, %s, %s)", [at, calls, short, pages])


@pytest.mark.parametrize(("revisit_waits", "share_of_day"), [(59 * MINUTE, 1), (61 * MINUTE, 75 / (75 + 17))])
def test_crawlers_are_measured_by_their_last_steps(crawl: Crawl, revisit_waits: timedelta, share_of_day: float) -> None:
    crawl.add("http://a.test/", due=[crawl.now])
    crawl.tick()
    crawl.wait(revisit_waits)
    short = {1: 1, 3: 5, 4: 9}  # the last step is 1, the one before is 2
    work = [(5 * MINUTE, short.get(back, 0), 10 * back) for back in range(15, 0, -1)]
    plant_steps(crawl, [(13 * HOUR, 0, 0), (17 * MINUTE, 0, 1000), *work])
    found = crawl.row("select (recent_measurements(%s)).*", crawl.now)
    a_day = DAY / (5 * MINUTE)
    most = 10 * (1 + 2 + sum(range(5, 15))) / 12 * a_day  # in the last 12 steps with at most one short call of ten
    assert found == {
        "short_share": pytest.approx(6 / 30),
        "now": pytest.approx(10 * a_day),
        "hour": pytest.approx(10 * sum(range(1, 13)) / 12 * a_day),
        "most": pytest.approx(most),
        "in_a_day": pytest.approx(most * share_of_day),
    }


def test_the_steps_of_a_day_are_kept_and_always_thirteen(crawl: Crawl) -> None:
    measure(crawl)
    plant_steps(crawl, [(5 * MINUTE, 0, 10)] * 20)
    for wait, kept in (5 * MINUTE, 22), (30 * HOUR, 13):
        crawl.wait(wait)
        crawl.next(1)
        crawl.value("select measure_budget(%s)", crawl.now)
        assert crawl.value("select count(*) from budget_step") == kept
