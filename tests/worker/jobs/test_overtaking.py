"""A host that is behind: what is worth most goes first, and nothing is lost by it."""

from datetime import timedelta

import numpy as np
import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, Crawl, misplaced, run_job

SLOTS = 29  # of two minutes and two seconds, in an hour


@pytest.fixture
def crawl(connection: psycopg.Connection, url: str) -> Crawl:
    """Two days after its crawlers stopped: 300 pages of a slow host are due, and 20 of a quick one. The last
    run put them in order by values that have changed since."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    for host, pages in {"slow.test": 300, "quick.test": 20}.items():
        crawl.add(
            *(f"http://{host}/{i}" for i in range(pages)),
            value=[1.0 + i % 3 for i in range(pages)],
        )
    crawl.tick()
    while crawl.value("select count(*) from new_page"):
        fetched = crawl.next(ahead=MINUTE)
        crawl.wait(MINUTE)
        crawl.report_ok(fetched)
    crawl.rows("select set_rate(page_id, 0.1 * 1.5 ^ mod(page_id, 10)) from page")
    crawl.tick()
    crawl.age(2 * DAY + (crawl.now - crawl.value("select clock_timestamp()")))
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.value("select set_setting('frequency', '2')")
    crawl.value("select set_host('slow.test', gap => '2 minutes')")
    run_job("allocate", url)
    crawl.tick()
    crawl.age(HOUR)
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.rows("select set_value(page_id, 1 + mod(page_id * page_id, 7)) from page")
    return crawl


def due(crawl: Crawl, host: str) -> list[tuple[int, float]]:
    """Pages in the order in which they are due, and what a visit of each is worth now."""
    rows = crawl.rows(
        """
        select p.page_id, p.value, b.rate, date_part('epoch', %s - p.fetched_at) / 86400 as age
        from page p
        join page_status b using (page_id)
        where b.host = %s and p.due_at <= %s
        order by p.due_at
        """,
        crawl.now, host, crawl.now,
    )  # fmt: skip
    seen = np.array([row["rate"] * row["age"] for row in rows])
    worth = [row["value"] / row["rate"] for row in rows] * (1 - (1 + seen) * np.exp(-seen))
    return [(row["page_id"], float(w)) for row, w in zip(rows, worth, strict=True)]


def test_what_is_asked_for_next_is_worth_most_but_for_one_in_eight(crawl: Crawl, url: str) -> None:
    was = due(crawl, "slow.test")
    dues = "select array_agg(due_at order by due_at) from page"
    due_at, quick = crawl.value(dues), due(crawl, "quick.test")
    assert len(was) == 300
    # As if the last run had just ended.
    crawl.connection.execute("update allocation set started_at = clock_timestamp()")
    senior = crawl.value(
        "select page_id from page_status where host = 'slow.test' "
        "order by fetched_at + interval '24 hours' / frequency limit 1"
    )
    run_job("allocate", url)
    assert misplaced(crawl) == []
    off = np.subtract(crawl.value(dues), due_at) / timedelta(seconds=1)
    assert np.abs(off).max() < 0.1, "they changed places with each other"
    assert [page for page, _ in due(crawl, "quick.test")] == [page for page, _ in quick], "it has slots for all"

    asked = []
    for _ in range(SLOTS):
        pages = crawl.next(per_host=1)
        asked += [page["page_id"] for page in pages if "slow" in page["url"]]
        crawl.report_ok(pages)
        crawl.wait(2 * MINUTE + timedelta(seconds=2))
    worth = dict(was)
    best = sorted(worth.values(), reverse=True)
    assert len(asked) == SLOTS
    assert sum(worth[page] >= best[SLOTS] * (1 - 1e-3) for page in asked) >= SLOTS * 7 // 8 - 1
    assert senior in asked, "for any value of a fetch of it"
    assert sum(worth[page] for page in asked) / SLOTS > 1.2 * sum(worth.values()) / len(worth)


def test_a_second_run_changes_no_more_places(crawl: Crawl, url: str) -> None:
    run_job("allocate", url)
    crawl.tick()
    crawl.age(HOUR)
    crawl.now = crawl.value("select clock_timestamp()")
    first = due(crawl, "slow.test")
    # A run without a schedule plans for the time since the last run, here an hour.
    crawl.value("select set_setting('allocate_every', 'none')")
    run_job("allocate", url)
    crawl.tick()
    again = due(crawl, "slow.test")
    assert sum(a != b for (a, _), (b, _) in zip(first, again, strict=True)) <= 6


@pytest.mark.parametrize("policy", ["uniform", "best_first", "proportional"])
def test_a_policy_that_does_not_look_at_what_a_visit_brings_keeps_the_order(
    crawl: Crawl, url: str, policy: str
) -> None:
    crawl.value("select set_setting('policy', %s)", policy)
    was = due(crawl, "slow.test")
    run_job("allocate", url)
    crawl.tick()
    assert [page for page, _ in due(crawl, "slow.test")] == [page for page, _ in was]


def test_a_page_that_is_out_or_was_fetched_meanwhile_goes_where_its_report_says(crawl: Crawl, url: str) -> None:
    (out,) = (page for page in crawl.next(per_host=1) if "slow" in page["url"])
    held = crawl.value(
        "select array_agg(page_id) from page where host_id = (select host_id from page_of(%s))", out["url"]
    )
    today = crawl.now.timestamp() / 86400
    crawl.value("select overtake_at(%s, %s, %s)", crawl.now, held, [today - i / 1000 for i in range(len(held))])
    crawl.tick()
    (answer,) = crawl.report_ok([out])
    assert answer["code"] == "ok" and answer["next_fetch_at"] > crawl.now
    assert crawl.value("select overtake_at(%s, %s, %s)", crawl.now, [out["page_id"]], [today]) == 0
    assert misplaced(crawl) == []
