"""The reads of the jobs, in the units that the jobs use."""

from helpers import Crawl


def test_intervals_of_pages_are_in_days(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[4])
    crawl.report_ok(crawl.next())
    assert crawl.value("select planned_interval from page_to_allocate") == 0.25
