"""Boosts and the jobs: upkeep applies boosts to known pages, and opic and allocate use them."""

import numpy as np
import psycopg
import pytest

from helpers import SECOND, Crawl, misplaced, run_job


@pytest.fixture
def crawl(connection: psycopg.Connection) -> Crawl:
    """At the wall clock's time: jobs ask no other. Thirty pages that link to each other in a ring, all fetched."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.value("select setval('page_id', 20000)")  # too many to be done at once
    names = [f"http://a.test/{'news' if i % 3 == 0 else 'other'}/{i}" for i in range(30)]
    crawl.add(*names, rate=[0.5] * 30)
    crawl.value("select set_setting('window_share', '0')")
    crawl.tick()
    pages = {page["url"]: page for page in crawl.next(ahead=59 * SECOND)}
    for i, name in enumerate(names):
        crawl.report_ok([pages[name]], links=[names[(i + 1) % 30], names[(i + 2) % 30]])
    crawl.tick()
    return crawl


def values(crawl: Crawl, pattern: str) -> set[float]:
    return {row["value"] for row in crawl.rows("select value from page_status where url ~ %s", pattern)}


def test_upkeep_brings_a_boost_to_the_pages_there_are(crawl: Crawl, url: str) -> None:
    assert crawl.value("select boost('/news/', 3)") is None
    assert values(crawl, "") == {1}
    run_job("upkeep", url)
    assert (values(crawl, "/news/"), values(crawl, "/other/")) == ({3}, {1})
    row = crawl.row("select pages, progress, in_force_at is not null as is_in_force from boosts")
    assert row == {"pages": 10, "progress": 1, "is_in_force": True}
    crawl.value("select boost('/news/', null)")
    run_job("upkeep", url)
    assert values(crawl, "") == {1} and crawl.rows("select from boosts") == []


def test_what_opic_finds_is_multiplied_once(crawl: Crawl, url: str) -> None:
    run_job("opic", url)
    (plain,) = values(crawl, "")  # a ring has no better pages
    crawl.value("select boost('/news/', 4)")
    run_job("upkeep", url)
    for _ in range(2):
        run_job("opic", url)
        assert (values(crawl, "/news/"), values(crawl, "/other/")) == ({4 * plain}, {plain})
    crawl.value("select set_setting('relevance_weight', '1')")
    crawl.value("select set_relevance(page_id, 1) from page_status where url ~ '/news/'")
    run_job("opic", url)
    assert min(values(crawl, "/news/")) > 4 * 1.1 * max(values(crawl, "/other/")), "on top of what they are worth"
    assert misplaced(crawl) == []


def test_more_fetches_go_where_more_is_to_be_had(crawl: Crawl, url: str) -> None:
    def frequencies(pattern: str) -> float:
        rows = crawl.rows("select frequency from page_status where url ~ %s", pattern)
        return float(np.mean([row["frequency"] for row in rows]))

    crawl.value("select set_setting('budget', '20')")
    run_job("allocate", url)
    assert frequencies("/news/") == pytest.approx(frequencies("/other/"))
    crawl.value("select boost('/news/', 2)")
    run_job("upkeep", url)
    run_job("allocate", url)
    assert frequencies("/news/") > 1.5 * frequencies("/other/")
    assert frequencies("") == pytest.approx(20 / 30, rel=1e-6)
