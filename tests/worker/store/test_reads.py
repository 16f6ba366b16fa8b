"""The reads of the jobs, in the units that the jobs use."""

from helpers import Crawl
from recrawl import store


def test_the_memory_of_a_job_is_set_in_megabytes_and_read_in_bytes(crawl: Crawl, url: str) -> None:
    crawl.value("select set_setting('memory', '3')")
    assert store.reads.memory(url) == 3e6


def test_intervals_of_pages_are_in_days(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[4])
    crawl.report_ok(crawl.next())
    assert crawl.value("select planned_interval from page_to_allocate") == 0.25
