"""SQL writes numbers and times in the same words as Python."""

from datetime import timedelta
from math import inf

from helpers import Crawl
from recrawl.words import count, lasting

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 31557600


def test_a_number_is_written_as_in_python(crawl: Crawl) -> None:
    for n in (0, 7, 2.27, 9.94, 9.96, 12.3, 7718, 0.0171, 0.5, 1e14, 0.0001, 0.00009, 1e-9, inf):
        assert crawl.value("select amount(%s::float8)", n) == count(n)


def test_a_duration_is_written_as_in_python(crawl: Crawl) -> None:
    limits = [n * unit + more for unit in (MINUTE, HOUR, DAY, YEAR) for n in (1, 2) for more in (-1, 0, 1)]
    for seconds in (0, 0.8, 9.94, 9.96, 90, 5400, 200_000, 1e8, *limits):
        assert crawl.value("select in_words(make_interval(secs => %s))", seconds) == lasting(timedelta(seconds=seconds))


def test_words_for_people(crawl: Crawl) -> None:
    words = {
        "how_many(0, 10, 'page')": "no pages",
        "how_many(1, 10, 'page')": "1 page",
        "how_many(9, 10, 'fetch')": "9 fetches",
        "how_many(1000, 1000, 'page')": "at least 1,000 pages",
        "seconds_to_type('30 days')::text": "2592000",
        "seconds_to_type('500 microseconds')::text": "0.0005",
        "often_in_words(0.5)": "every 2 days",
        "often_in_words(2e-9)": "every 3,169 years",
        "often_in_words(1e-9)": "never",
        "amount(1e15)": "1.0e+15",
        "short_number(0)": "0",
        "short_number(null)": "0",
        "short_number(0.012345)": "0.0123",
        "short_number(1.2345)": "1.23",
        "short_number(123456)": "123456",
        "short_number(1234567)": "1.23e+06",
        "short_number(0.000012345)": "1.23e-05",
    }
    assert {call: crawl.value(f"select {call}") for call in words} == words
