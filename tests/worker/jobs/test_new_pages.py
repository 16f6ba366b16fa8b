"""A crawl with new pages makes the revisits that allocation plans."""

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, planted_allocation, result_of, run_job


@pytest.fixture
def crawl(connection: psycopg.Connection) -> Crawl:
    """At the wall clock's time: jobs ask no other."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    return crawl


def known(crawl: Crawl, host: str, pages: int, rate: float) -> None:
    """Pages that were fetched before, and whose rate is known."""
    rows = crawl.add(*(f"http://{host}/old{i}" for i in range(pages)), due=[crawl.now + 400 * DAY], rate=[rate])
    crawl.tick()
    crawl.connection.execute(
        "update page set fetched_at = now() where page_id = any (%s)", [[r["page_id"] for r in rows]]
    )
    crawl.value("select fetch_now_at(%s, %s::bigint[])", crawl.now, [r["page_id"] for r in rows])
    crawl.tick()


def day(crawl: Crawl, every: object, n: int, find: object = lambda _: None) -> tuple[int, int]:
    """Revisits and new pages of a day's crawl."""
    revisits = new = 0
    until = crawl.now + DAY
    while crawl.now < until:
        pages = crawl.next(n)
        crawl.report_ok(pages)
        new += sum("new" in page["url"] for page in pages)
        revisits += sum("old" in page["url"] for page in pages)
        crawl.wait(every)  # type: ignore[arg-type]
    return revisits, new


@pytest.mark.parametrize("discovery", ["0.3", "0.5"])
def test_a_host_at_its_cap_promises_only_the_slots_that_new_pages_leave(crawl: Crawl, url: str, discovery: str) -> None:
    settings = {"window_share": "0", "budget": "5000", "discovery": discovery, "exploration": "0", "breadth": "0"}
    for name, value in settings.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    crawl.value("select set_host('a.test', gap => '150 s')")  # 576 slots a day
    known(crawl, "a.test", 400, 5.0)
    crawl.add(*(f"http://a.test/new{i}" for i in range(2000)))
    crawl.tick()
    run_job("allocate", url)
    planned = crawl.row("select for_revisits, for_new, budget, utility, limit_with_gaps from allocation_run")
    assert planned["for_revisits"] == pytest.approx(576 * (1 - float(discovery)), rel=1e-6)
    assert planned["for_new"] == pytest.approx(576 * float(discovery), rel=1e-6)
    assert planned["utility"] <= planned["limit_with_gaps"] * (1 + 1e-9)
    crawl.wait(HOUR)
    revisits, new = day(crawl, 150 * SECOND, 1)
    assert revisits + new == 576
    assert revisits == pytest.approx(planned["for_revisits"], rel=0.02)


def test_few_new_pages_take_their_part_of_the_next_hour_from_revisits(crawl: Crawl, url: str) -> None:
    """100 fetches an hour. 100 new pages take half of them until no new page is left. The plan of the day leaves 96 to
    revisits."""
    for name, value in {"budget": "2400", "discovery": "0.5", "exploration": "0", "breadth": "0"}.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    for host in range(40):
        known(crawl, f"a{host}.test", 60, 1.0)
        crawl.add(*(f"http://a{host}.test/new{i}" for i in range(3 if host < 20 else 2)))
    crawl.tick()
    # They were promised two visits a day: 200 would be due within the hour.
    crawl.connection.execute(
        "update page p set due_at = now() + w.nth * interval '12 hours' / 2400, planned_due = null,"
        " fetched_at = now() + w.nth * interval '12 hours' / 2400 - interval '12 hours'"
        " from (select page_id, row_number() over (order by page_id) as nth from page where fetched_at is not null) w"
        " where w.page_id = p.page_id"
    )
    crawl.connection.execute("update queue q set due_at = p.due_at from page p where p.page_id = q.page_id")
    run_job("allocate", url)
    crawl.tick()
    planned = crawl.row("select for_revisits, for_new from allocation_run")
    assert (planned["for_revisits"], planned["for_new"]) == pytest.approx((2300, 100))
    put_off = crawl.value("select count(*) from page where fetched_at is not null and due_at > now() + '13 hours'")
    assert put_off == pytest.approx(200 - 50, abs=5), "with the day's plan it were 104"


@pytest.mark.soak
def test_the_budget_is_kept_while_a_crawl_grows(crawl: Crawl, url: str) -> None:
    """Sevenfold in three days, found by day and not by night; allocated every hour."""
    settings = {"budget": "4000", "shortest_interval": "1 hour", "breadth": "0", "frequency": "0.5"}
    for name, value in settings.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    for host in range(50):
        known(crawl, f"a{host}.test", 6, 2.0)
    found = 0
    fetches = []
    for hour in range(72):
        run_job("allocate", url)
        made = 0
        for minute in range(60):
            if hour % 24 < 18 and minute % 2:
                crawl.add(f"http://a{found % 50}.test/new{found}")
                found += 1
            pages = crawl.next(200, ahead=MINUTE)
            crawl.report(*({"changed": page["page_id"] % 2 == 0} | result_of(page) for page in pages))
            made += len(pages)
            crawl.wait(MINUTE)
        fetches.append(made)
        crawl.age(HOUR)
    by_day = [sum(fetches[i : i + 24]) for i in range(0, 72, 24)]
    assert by_day == pytest.approx([4000] * 3, rel=0.05)


def test_new_pages_are_those_that_wait_and_those_found_since_an_earlier_run(crawl: Crawl) -> None:
    """Pages are counted since the newest run that is at least six hours old, or else since the oldest that is at least
    an hour old."""

    def found() -> tuple[float, float]:
        row = crawl.row("select pages, waiting from new_pages_to_allocate(%s)", crawl.now)
        return row["pages"], row["waiting"]

    crawl.add(*(f"http://a.test/{i}" for i in range(5)))
    crawl.add("http://a.test/pinned", rate=[1.0])
    for token, (hours, newest_page) in enumerate([(0.5, 4), (2, 5), (3, 4), (12, 2), (24, 0)]):
        planted_allocation(crawl, token, crawl.now - hours * HOUR, newest_page=newest_page)
    assert found() == (3 / (12 / 24), 0)
    crawl.tick()
    assert found() == (5 + 3 / (12 / 24), 5)
    crawl.connection.execute("delete from allocation where started_at < %s", [crawl.now - 6 * HOUR])
    assert found() == (5 + 1 / (3 / 24), 5)
    crawl.connection.execute("delete from allocation where started_at < %s", [crawl.now - HOUR])
    assert found() == (5, 5)


def test_the_fetches_of_the_last_day_are_added_up_run_by_run(crawl: Crawl) -> None:
    fetches = "select days, to_make_up, since_last from fetches_of_last_day(%s)"
    crawl.connection.execute("select setval('handed_out_count', 110)")
    assert crawl.row(fetches, crawl.now) == {"days": 0, "to_make_up": 0, "since_last": 1 / 24}
    for token, (hours, budget, handed_out) in enumerate([(25, 1000, 0), (24, 100, 10), (6, 200, 60)]):
        planted_allocation(crawl, token, crawl.now - hours * HOUR, budget=budget, handed_out=handed_out)
    allowed = 0.75 * 100 + 0.25 * 200
    assert crawl.row(fetches, crawl.now) == {"days": 1, "to_make_up": allowed - 100, "since_last": 0.25}
    crawl.connection.execute("select setval('handed_out_count', 210)")
    assert crawl.row(fetches, crawl.now)["to_make_up"] == allowed - 200, "it fetched too much"


@pytest.mark.parametrize(("handed_out", "to_make_up"), [(20, 30), (60, 0), (125, 0), (150, -25)])
def test_what_only_a_higher_budget_allowed_is_neither_owed_nor_too_much(
    crawl: Crawl, handed_out: int, to_make_up: int
) -> None:
    """A budget of 10,000 after a day of 5,000 fetches with a budget of 20,000 gave 15,000 a day, for a day."""
    for token, (hours, budget) in enumerate([(24, 100), (6, 200)]):
        planted_allocation(crawl, token, crawl.now - hours * HOUR, budget=budget, handed_out=0)
    crawl.value("select set_setting('budget', '50')")
    crawl.connection.execute("select setval('handed_out_count', %s)", [handed_out])
    row = crawl.row("select to_make_up from fetches_of_last_day(%s)", crawl.now)
    assert row == {"to_make_up": to_make_up}
