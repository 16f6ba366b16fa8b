"""A budget that is measured: how it is set, shown and moved, step by step."""

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
