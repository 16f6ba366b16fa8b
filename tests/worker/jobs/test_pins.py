"""Pinned intervals in a crawl that is allocated: they hold, the others share what is left, and it is said."""

import re

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, misplaced, result_of, run_job
from recrawl.jobs.plan import Plan
from recrawl.model.allocation.objectives import objective_named


@pytest.fixture
def crawl(connection: psycopg.Connection) -> Crawl:
    """At the wall clock's time: jobs ask no other. Ten pages on each of three hosts, all fetched."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.add(
        *(f"http://{host}.test/{i}" for host in "abc" for i in range(10)),
        rate=[0.1 * 1.5**i for i in range(10)] * 3, value=[1.0 + i % 3 for i in range(30)],
    )  # fmt: skip
    for host in "abc":
        crawl.value("select set_host(%s, gap => '1 second')", f"{host}.test")
    crawl.tick()
    pages = crawl.next(ahead=59 * SECOND)
    assert len(pages) == 30
    crawl.report_ok(pages)
    crawl.value("select set_setting('budget', '40')")
    crawl.tick()
    return crawl


def pin(crawl: Crawl, every: str | None, *page_ids: int) -> None:
    assert set(codes(crawl.rows("select * from set_interval(%s, %s::interval)", [*page_ids], every))) == {"ok"}


def frequencies(crawl: Crawl) -> dict[int, float]:
    return {row["page_id"]: row["frequency"] for row in crawl.rows("select page_id, frequency from page_status")}


def last_run(crawl: Crawl) -> Row:
    return crawl.row("select * from allocation_run order by started_at desc limit 1")


def often(crawl: Crawl, page_id: int) -> Row:
    return crawl.row("select code, says, fix, detail from explain_page(%s) where topic = 'often'", page_id)


def test_pins_come_off_the_budget_and_the_others_share_the_rest(crawl: Crawl, url: str) -> None:
    run_job("allocate", url)
    before = frequencies(crawl)
    pin(crawl, "3 hours", 1, 12)
    assert (frequencies(crawl)[1], frequencies(crawl)[12]) == (8, 8), "at once"
    assert "pinned intervals" not in run_job("allocate", url), "they get what they need"
    after = frequencies(crawl)
    assert (after[1], after[12]) == (8, 8)
    assert sum(after.values()) == pytest.approx(40, rel=1e-6)
    assert all(after[page] < before[page] for page in after if page not in (1, 12))
    run = last_run(crawl)
    assert (run["pinned"], run["pinned_wanted"], run["for_revisits"]) == (16, 16, pytest.approx(40))
    assert max(run["residual"], run["spread"], run["duality_gap"]) < 1e-9
    assert run["utility"] < run["limit_with_gaps"], "which knows of no pins"
    assert crawl.host("a.test")["frequency"] == pytest.approx(sum(after[page] for page in range(1, 11)), rel=1e-3)
    assert crawl.host("a.test")["pins_kept"] == 1


def test_a_page_that_is_static_hopeless_or_worth_nothing_obeys_it_and_the_report_too(crawl: Crawl, url: str) -> None:
    crawl.value("select set_value(1, 0)")
    crawl.value("select set_rate(2, 0)")
    crawl.value("select set_rate(3, 1e6)")
    pin(crawl, "12 hours", 1, 2, 3)
    for _ in range(2):
        run_job("rates", url)
        run_job("allocate", url)
        assert [frequencies(crawl)[page] for page in (1, 2, 3)] == [2, 2, 2]
        assert misplaced(crawl) == []
        dues = crawl.rows("select due_at - fetched_at as wait from page where page_id < 4")
        assert [round(row["wait"] / HOUR, 3) for row in dues] == [12, 12, 12]
    crawl.wait(12 * HOUR)
    pages = [page for page in crawl.next(ahead=59 * SECOND) if page["page_id"] < 4]
    assert len(pages) == 3
    crawl.wait(MINUTE)
    answers = crawl.report(*(result_of(page, changed=True) for page in pages))
    assert [abs(row["next_fetch_at"] - crawl.now - 12 * HOUR) < 2 * MINUTE for row in answers] == [True] * 3


def test_unpinned_it_is_as_often_as_it_is_worth(crawl: Crawl, url: str) -> None:
    run_job("allocate", url)
    before = frequencies(crawl)
    pin(crawl, "1 hour", 5)
    run_job("allocate", url)
    pin(crawl, None, 5)
    run_job("allocate", url)
    assert frequencies(crawl) == pytest.approx(before, rel=1e-6)
    assert often(crawl, 5)["code"] == "price"
    assert misplaced(crawl) == []


def test_pins_beyond_a_hosts_slots_share_them_and_it_is_said(crawl: Crawl, url: str) -> None:
    crawl.value("select set_host('a.test', gap => '2 hours')")
    crawl.value("select set_setting('budget', '1000')")
    pin(crawl, "3 hours", 1, 2, 3)  # 24 fetches a day; the host has 12 slots, and exploration keeps 5 % of them
    pin(crawl, "3 hours", 11)
    said = run_job("allocate", url)
    slots = crawl.value("select cap from host_to_allocate where name = 'a.test'")
    assert "; pinned intervals need 32 fetches a day and get 19" in said
    by_host = {row["host"]: row["sum"] for row in crawl.rows("select host, sum(frequency) from page_status group by 1")}
    assert by_host["a.test"] <= slots * (1 + 1e-6)
    assert [frequencies(crawl)[page] for page in (1, 2, 3, 11)] == pytest.approx([0.95 * slots / 3] * 3 + [8])
    assert min(frequencies(crawl).values()) > 0, "no page disappears"
    assert crawl.host("a.test")["pins_kept"] == pytest.approx(0.95 * slots / 24)
    assert crawl.host("a.test")["capped"] and crawl.host("b.test")["pins_kept"] == 1
    (capped,) = crawl.rows("select host, frequency, wanted from capped_hosts")
    others = crawl.row("select array_agg(value) as value, array_agg(rate) as rate from page_status"
                       " where host = 'a.test' and page_id > 3")  # fmt: skip
    price = last_run(crawl)["price"]
    wanted = 24 + objective_named("freshness").frequency(price, others["value"], others["rate"]).sum()
    assert capped == {"host": "a.test", "frequency": pytest.approx(slots), "wanted": pytest.approx(wanted, rel=1e-4)}
    row = often(crawl, 1)
    assert row["code"] == "pinned_less" and "the slots of its host are not enough" in row["says"]
    crawl.rows(row["fix"])
    run_job("allocate", url)
    assert frequencies(crawl)[1] == pytest.approx(0.95 * 2 * slots / 3, rel=0.01), "half the gap, twice as much"
    assert often(crawl, 11)["code"] == "pinned"


def test_pins_beyond_the_budget_share_what_exploration_leaves(crawl: Crawl, url: str) -> None:
    pin(crawl, "1 hour", 1, 11, 21)
    run_job("allocate", url)
    after = frequencies(crawl)
    assert [after[page] for page in (1, 11, 21)] == pytest.approx([0.95 * 40 / 3] * 3)
    assert sum(after.values()) == pytest.approx(40, rel=1e-6) and min(after.values()) > 0
    assert (last_run(crawl)["pinned"], last_run(crawl)["pinned_wanted"]) == (pytest.approx(38), 72)
    row = often(crawl, 1)
    assert row["code"] == "pinned_less" and "the budget is not enough" in row["says"]
    assert row["fix"] == "SELECT recrawl.set_setting('budget', '80');"
    crawl.value("select set_setting('budget', 'none')")
    assert often(crawl, 1)["fix"] == "recrawl run allocate", "no budget limits it any more"
    crawl.rows(row["fix"])
    run_job("allocate", url)
    assert often(crawl, 1)["code"] == "pinned"


def test_without_a_budget_pins_cost_nobody_anything(crawl: Crawl, url: str) -> None:
    crawl.value("select set_setting('budget', 'none')")
    run_job("allocate", url)
    assert sum(frequencies(crawl).values()) == pytest.approx(30, rel=1e-6)
    pin(crawl, "10 minutes", 1)
    run_job("allocate", url)
    after = frequencies(crawl)
    assert after.pop(1) == 144
    assert sum(after.values()) == pytest.approx(29, rel=1e-6)
    crawl.value("select set_setting('frequency', '0.01')")
    run_job("allocate", url)
    assert frequencies(crawl)[1] == pytest.approx(144), "exploration gets its share in addition"


def test_new_pages_have_what_pins_leave(crawl: Crawl, url: str) -> None:
    crawl.add(*(f"http://new{i}.test/" for i in range(100)))
    crawl.tick()
    run_job("allocate", url)
    assert last_run(crawl)["for_new"] == pytest.approx(20)
    pin(crawl, "2 hours", 1, 11)
    run_job("allocate", url)
    run = last_run(crawl)
    assert run["pinned"] == pytest.approx(0.95 * 20, rel=1e-6), "the half of the budget that revisits are sure of"
    assert run["for_new"] == pytest.approx(20) and run["for_revisits"] == pytest.approx(20)


def test_dead_pages_give_back_what_they_had(crawl: Crawl, url: str) -> None:
    pin(crawl, "3 hours", 1)
    crawl.value("select exclude('/0$')")
    run_job("allocate", url)
    assert (last_run(crawl)["pinned"], last_run(crawl)["pinned_wanted"]) == (0, 0)
    assert sum(value for value in frequencies(crawl).values() if value) == pytest.approx(40, rel=1e-6)


def test_a_hint_keeps_no_page_from_coming_forward(crawl: Crawl, url: str) -> None:
    """Hinted pages kept their due times, however often they were worth a fetch: for years after best_first."""
    crawl.value("select set_setting('policy', 'best_first')")
    run_job("allocate", url)
    hinted, pinned = 9, 19
    crawl.value("select fetch_now(%s)", [hinted, pinned])
    crawl.now = crawl.value("select clock_timestamp()") + MINUTE
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.tick()
    first_due = crawl.value("select min(due_at) from page where page_id = any(%s)", [hinted, pinned])
    assert first_due > crawl.now + 9000 * DAY
    assert crawl.value("select hint_change(%s, 0.9, 0.1)", [hinted, pinned]) == 2
    crawl.tick()
    pin(crawl, "1 day", pinned)
    crawl.value("select set_setting('policy', 'opt_polite')")
    moved = int(re.findall(r"; (\d+) of 30 pages are due earlier", run_job("allocate", url))[0])
    due = {row["page_id"]: row for row in crawl.rows("select page_id, due_at, planned_due from page")}
    assert due[pinned]["due_at"] <= crawl.now + DAY
    assert due[hinted]["due_at"] <= crawl.now + 1.5 * DAY / frequencies(crawl)[hinted]
    assert due[hinted]["planned_due"] is None, "it is due by its frequency alone"
    assert 0 < moved < 30, "the pinned page was moved before"
    crawl.tick()
    assert misplaced(crawl) == []


def test_a_new_page_that_is_pinned_is_told_how_often_it_will_be_fetched(crawl: Crawl, url: str) -> None:
    run_job("allocate", url)
    crawl.add("http://a.test/new")
    crawl.tick()
    pin(crawl, "6 hours", 31)
    assert often(crawl, 31)["says"] == "It is fetched every 6 h: this interval was set with set_interval."


def test_a_crawl_of_nothing_but_pins(crawl: Crawl, url: str) -> None:
    pin(crawl, "1 day", *range(1, 11))
    assert "longest_interval" not in run_job("allocate", url), "a host of nothing but pins needs no floor"
    pin(crawl, "1 day", *range(11, 31))
    assert "longest_interval" not in run_job("allocate", url)
    assert set(frequencies(crawl).values()) == {1}
    run = last_run(crawl)
    assert (run["for_revisits"], run["unused"], run["pinned"]) == (30, 10, 30)


def test_fetches_that_nothing_can_use_are_said_to_be_unused(crawl: Crawl, url: str) -> None:
    pin(crawl, "1 day", *range(1, 31))
    crawl.add("http://new.test/")
    crawl.tick()
    run_job("allocate", url)
    run = last_run(crawl)
    assert run["for_new"] > 0 and run["unused"] == pytest.approx(10 - run["for_new"])


def test_the_plan_reckons_with_them(crawl: Crawl, url: str) -> None:
    alone = Plan(url).curve([40, 80])
    pin(crawl, "3 hours", 1, 12)
    points = Plan(url).curve([40, 80])
    assert [point.pinned for point in points] == [16, 16] and [point.pinned for point in alone] == [0, 0]
    for now, before in zip(points, alone, strict=True):
        assert now.utility and before.utility and now.utility < before.utility
        assert now.for_revisits == pytest.approx(before.for_revisits)
    run_job("allocate", url)
    assert points[0].utility == pytest.approx(last_run(crawl)["utility"], rel=1e-9)
    needed = Plan(url).budget_for(0.6)
    assert needed > 16 and Plan(url).curve([needed])[0].utility == pytest.approx(0.6, abs=1e-3)


def test_somebody_pinned_and_the_worker_plans_anew_soon(crawl: Crawl, url: str) -> None:
    run_job("allocate", url)
    crawl.connection.execute("update job set started_at = started_at - interval '5 minutes', "
                             "ended_at = ended_at - interval '5 minutes'")  # fmt: skip
    crawl.connection.execute("update allocation set started_at = started_at - interval '5 minutes'")
    pin(crawl, "3 hours", 1)
    soon = crawl.value("select clock_timestamp() + interval '6 seconds'")
    assert (
        crawl.value("select why_allocate_early(%s, ran_at, seconds) from job_schedule where job = 'allocate'", soon)
        == "settings or hosts were changed"
    )
    assert crawl.page("http://a.test/0")["due_at"] - crawl.page("http://a.test/0")["fetched_at"] == DAY / 8
