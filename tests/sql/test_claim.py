"""The owner of a crawl."""

import threading

import psycopg
import pytest

from helpers import Crawl


def test_the_first_who_says_so_owns_the_crawl(crawl: Crawl) -> None:
    assert crawl.value("select claim('scrapy: quotes')") == "scrapy: quotes"
    assert crawl.value("select claim('scrapy: shop')") == "scrapy: quotes"
    assert crawl.value("select value from settings where name = 'claimed_by'") == "scrapy: quotes"
    crawl.value("select set_setting('claimed_by', 'none')")
    assert crawl.value("select claim('scrapy: shop')") == "scrapy: shop"


def test_of_many_at_once_one_owns_it(url: str) -> None:
    owners: list[str] = []

    def claim(who: str) -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute("select recrawl.claim(%s)", [who]).fetchone()
            owners.append(row[0] if row else "")

    threads = [threading.Thread(target=claim, args=[f"{n}"]) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(owners) == 8 and len(set(owners)) == 1


@pytest.mark.parametrize(("who", "got"), [(None, "null"), ("", "''"), ("x" * 201, f"'{'x' * 200}'")])
def test_a_name_must_be_one(crawl: Crawl, who: str | None, got: str) -> None:
    with pytest.raises(psycopg.DataError) as refused:
        crawl.value("select claim(%s)", who)
    assert refused.value.diag.message_primary == f"claim: name must be a name of 1 to 200 characters, got {got}"
