"""Multiplying what pages are worth, by pattern. The worker's part is done by hand here, a chunk at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from helpers import Crawl, eventually, misplaced, result_of, urls


def boost(crawl: Crawl, pattern: str | None, times: float | None) -> int | None:
    live: int | None = crawl.value("select boost_at(%s, %s, %s::float8)", crawl.now, pattern, times)
    return live


def follow(crawl: Crawl, most: int = 1000) -> None:
    while crawl.value("select follow_boosts(%s)", most):
        pass


def values(crawl: Crawl) -> dict[str, float]:
    return {
        row["url"].removeprefix("http://"): row["value"]
        for row in crawl.rows("select url, value from page_status order by page_id")
    }


def boosts(crawl: Crawl) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in crawl.rows("select pattern, factor, pages, progress from boosts")]


def test_pages_that_match_are_worth_more_whatever_their_value_comes_from(crawl: Crawl) -> None:
    crawl.add("http://a.test/news/1", "http://a.test/2")
    crawl.add("http://a.test/news/3", value=[2.0])
    crawl.connection.execute("insert into page_score values (1, 0.5, 4, null, 1), (2, 0.5, 4, null, 1)")
    crawl.value("select follow_scores(array(select s from page_score s))")
    assert boost(crawl, "/news/", 3) == 2
    assert values(crawl) == {"a.test/news/1": 12, "a.test/2": 4, "a.test/news/3": 6}
    row = crawl.page("http://a.test/news/3")
    assert (row["value"], row["pinned_value"], row["boost"]) == (6, 2, 3)
    assert crawl.page("http://a.test/2")["boost"] is None
    follow(crawl)
    assert boosts(crawl) == [("/news/", 3, 2, 1)]
    assert misplaced(crawl) == []


def test_new_pages_are_worth_more_from_the_beginning(crawl: Crawl) -> None:
    assert boost(crawl, "/news/", 4) == 0, "a pattern that matches nothing yet"
    crawl.add("http://a.test/")
    crawl.add("HTTP://A.test/%6eews/x", value=[0.5])
    (page,) = crawl.next(1)
    assert page["value"] == 2, "the canonical URL counts; it goes first"
    crawl.report(result_of(page, links=["http://a.test/news/2", "http://a.test/other"]))
    found = values(crawl)
    assert found["a.test/news/2"] == pytest.approx(4 * found["a.test/other"])
    assert found["a.test/other"] == pytest.approx(0.5 * crawl.value("select first_share from graph_state")), (
        "what it links to gets a share of what it is worth by itself"
    )


def test_boosts_multiply_change_and_end(crawl: Crawl) -> None:
    crawl.add("http://a.test/news/1", "http://a.test/news/2", "http://b.test/news/3")
    boost(crawl, "/news/", 3)
    boost(crawl, "^http://a", 0.5)
    assert list(values(crawl).values()) == [1.5, 1.5, 3]
    boost(crawl, "/news/", 10)
    assert list(values(crawl).values()) == [5, 5, 10]
    assert boost(crawl, "/news/", None) == 3
    assert list(values(crawl).values()) == [0.5, 0.5, 1]
    follow(crawl)
    assert boosts(crawl) == [("^http://a", 0.5, 2, 1)], "what was ended is gone once every page follows"
    assert boost(crawl, "^http://a", 1) == 2
    follow(crawl)
    assert list(values(crawl).values()) == [1, 1, 1] and boosts(crawl) == []
    assert [row["boost"] for row in crawl.rows("select boost from page")] == [None] * 3


def test_a_value_that_is_pinned_or_found_later_is_multiplied_too(crawl: Crawl) -> None:
    crawl.add("http://a.test/news/1", "http://a.test/news/2")
    boost(crawl, "/news/", 3)
    crawl.value("select set_value(1, 7)")
    crawl.connection.execute("insert into page_score values (2, 0.5, 4, null, 1)")
    assert crawl.value("select follow_scores(array(select s from page_score s))") == 1
    assert list(values(crawl).values()) == [21, 12]
    assert crawl.value("select follow_scores(array(select s from page_score s))") == 0, "nothing moves by itself"
    crawl.connection.execute("insert into page_score values (1, 0.5, 2, null, 1)")
    crawl.value("select set_value(1, null)")
    assert list(values(crawl).values()) == [6, 12]
    assert misplaced(crawl) == []


def test_a_worthless_page_stays_so_and_no_value_leaves_its_bounds(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(3)), value=[0.0, 1e30, 1e-30])
    boost(crawl, "a.test", 1e6)
    assert list(values(crawl).values()) == pytest.approx([0, 1e30, 1e-24])
    boost(crawl, "a.test", 1e-6)
    assert list(values(crawl).values()) == pytest.approx([0, 1e24, 1e-30])
    boost(crawl, "a.test", None)
    assert list(values(crawl).values()) == pytest.approx([0, 1e30, 1e-30])


@pytest.mark.parametrize(("factor", "product"), [(1e6, 9.25e29), (1e-6, 1.08e-30)])
def test_the_product_of_very_many_has_an_end(crawl: Crawl, factor: float, product: float) -> None:
    crawl.add("http://a.test/")
    for i in range(60):
        boost(crawl, f"a.test.{{{i % 2},{i}}}" if i % 2 == 0 else f"a.test.{{1,{i}}}", factor)
    assert values(crawl) == {"a.test/": pytest.approx(product, rel=0.01)}


def test_the_line_of_new_pages_follows(crawl: Crawl) -> None:
    crawl.add(*(f"http://a.test/{i}" for i in range(4)))
    crawl.add("http://a.test/news", value=[0.5])
    crawl.tick()
    boost(crawl, "news$", 3)
    crawl.tick()
    assert urls(crawl.next(1)) == ["http://a.test/news"]
    assert misplaced(crawl) == []


def test_dead_pages_are_not_counted_and_come_back_boosted(crawl: Crawl) -> None:
    crawl.add("http://a.test/news/1", "http://a.test/news/2")
    crawl.value("select exclude('1$')")
    assert boost(crawl, "/news/", 3) == 1
    crawl.value("select unexclude_at(%s, '1$')", crawl.now)
    assert list(values(crawl).values()) == [3, 3]
    assert misplaced(crawl) == []


def test_explain_says_so(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    boost(crawl, "a.test", 2.5)
    row = crawl.row("select * from explain_page_at(%s, 1) where topic = 'value'", crawl.now)
    assert row["code"] == "value_guessed" and row["detail"]["boost"] == 2.5
    assert row["says"].startswith("Its value is 2.5 (the average is 1)")
    assert row["says"].endswith(" Boosts of its URL multiplied the value by 2.5.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'x', 0", "boost: factor must lie between 1e-6 and 1e6, or be null, got 0"),
        ("'x', -2", "boost: factor must lie between 1e-6 and 1e6, or be null, got -2"),
        ("'x', 'infinity'", "boost: factor must lie between 1e-6 and 1e6, or be null, got Infinity"),
        ("'x', 'nan'", "boost: factor must lie between 1e-6 and 1e6, or be null, got NaN"),
        ("'', 2", "boost: pattern must not be empty"),
        ("null, 2", "boost: pattern must not be empty"),
        ("'(', 2", "boost: pattern must be a regular expression, got '(': invalid regular expression: "
                   "parentheses () not balanced"),
        ("'x', null", "boost: 'x' is not boosted"),
        ("'x', 1", "boost: 'x' is not boosted"),
    ],
)  # fmt: skip
def test_misuse_is_refused(crawl: Crawl, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(f"select boost({arguments})")
    assert error.value.diag.message_primary == message
    assert boosts(crawl) == []


# -- a crawl too large for one transaction --


@pytest.fixture
def large(crawl: Crawl) -> Crawl:
    """A small one that thinks it is: 40 pages, with ids beyond ten thousand."""
    crawl.value("select setval('page_id', 10000)")
    crawl.add(*(f"http://a.test/{'news' if i % 2 else 'other'}/{i}" for i in range(40)))
    crawl.tick()
    return crawl


def test_the_worker_does_it_in_chunks(large: Crawl) -> None:
    assert boost(large, "/news/", 3) is None
    assert large.value("select says from events where subject = '/news/'") == "boosted: worth 3 times as much"
    assert boosts(large) == [("/news/", 3, 0, 0)] and set(values(large).values()) == {1}
    large.add("http://a.test/news/new")
    assert values(large)["a.test/news/new"] == 3, "while the others are waiting"
    assert large.value("select follow_boosts(10020)") == 10020
    assert boosts(large) == [("/news/", 3, 10, pytest.approx(10020 / 10041))]
    assert sorted(values(large).values()) == [1] * 30 + [3] * 11
    assert large.value("select in_force_at from boosts") is None
    assert large.value("select follow_boosts(10020)") == 21
    assert boosts(large) == [("/news/", 3, 21, 1)] and sorted(values(large).values()) == [1] * 20 + [3] * 21
    assert large.value("select in_force_at from boosts") is not None
    assert large.value("select follow_boosts(10020)") == 0
    assert misplaced(large) == []


def test_a_boost_that_changes_halfway_begins_anew(large: Crawl) -> None:
    boost(large, "/news/", 3)
    large.value("select follow_boosts(10020)")
    boost(large, "/news/", None)
    follow(large)
    assert boosts(large) == [] and set(values(large).values()) == {1}


def test_pages_that_somebody_was_just_adding_are_not_missed(large: Crawl, url: str) -> None:
    with psycopg.connect(url) as adding:
        adding.execute("select recrawl.add_pages('{http://a.test/news/late}')")  # not committed
        assert boost(large, "/news/", 3) is None
        assert large.value("select follow_boosts(100000)") == 0, "it waits for those who knew nothing of it"
        adding.commit()
    follow(large, 100000)
    assert values(large)["a.test/news/late"] == 3


def test_a_page_that_somebody_holds_is_done_later(large: Crawl, url: str) -> None:
    boost(large, "/news/", 3)
    with psycopg.connect(url) as holding:
        holding.execute("select from recrawl_internal.page where page_id = 10002 for update")
        assert large.value("select follow_boosts(100000)") == 0
        assert set(values(large).values()) == {1}, "and locks no other pages while it waits"
    follow(large)
    assert sorted(values(large).values()) == [1] * 20 + [3] * 20


def test_several_workers_at_once_do_it_once(large: Crawl, url: str) -> None:
    boost(large, "/news/", 3)
    boost(large, "a.test", 2)
    stop = threading.Event()

    def work() -> int:
        with psycopg.connect(url, autocommit=True) as worker:
            done = 0
            while not stop.is_set():
                ((step,),) = worker.execute("select recrawl_internal.follow_boosts(3)").fetchall()
                done += step
            return done

    large.connection.execute("update boost set done_to = 10000, last_page = 10040")
    with ThreadPoolExecutor(3) as pool:
        workers = [pool.submit(work) for _ in range(3)]
        try:
            eventually(lambda: large.value("select bool_and(in_force_at is not null) from boosts"))
        finally:
            stop.set()
        assert sum(worker.result() for worker in workers) == 80
    assert sorted(values(large).values()) == [2] * 20 + [6] * 20
    assert [row[2] for row in boosts(large)] == [20, 40]
