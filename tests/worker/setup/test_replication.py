"""A crawl whose tables are all published: it goes on, and a subscriber on another server gets what it finds out."""

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from helpers import DAY, Crawl, eventually, misplaced, run_job, run_program
from recrawl.setup import embedded

HERE = "-c search_path=recrawl,recrawl_internal"
COPIED = ["page", "page_score", "link", "host", "host_name", "queue", "new_page", "inbox", "lease",
          "setting", "exclusion", "job", "opic"]  # fmt: skip


@pytest.fixture(scope="module")
def publisher(home_of_a_crawl: Callable[[str], Path]) -> Iterator[str]:
    home = home_of_a_crawl("publisher")
    with embedded.server(home) as url, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter system set wal_level = logical")
    with embedded.server(home) as url:
        yield url


@pytest.fixture(scope="module")
def other_server(home_of_a_crawl: Callable[[str], Path]) -> Iterator[str]:
    with embedded.server(home_of_a_crawl("subscriber")) as url:
        yield url


@pytest.fixture
def subscriber(publisher: str, other_server: str, tmp_path: Path) -> Iterator[str]:
    """A database with the tables. A publication of all tables is copied into it and kept up to date."""
    schema = tmp_path / "schema.sql"
    run_program("pg_dump", "--schema-only", f"--file={schema}", publisher)
    with psycopg.connect(publisher, autocommit=True) as connection:
        connection.execute("create publication everything for all tables")
    with psycopg.connect(other_server, autocommit=True) as connection:
        connection.execute("create database copy")
    url = make_conninfo(other_server, dbname="copy")
    run_program("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", f"--file={schema}", f"--dbname={url}")
    with psycopg.connect(url, autocommit=True) as connection:
        source = make_conninfo("", **conninfo_to_dict(publisher))
        connection.execute(f"create subscription copy connection $${source}$$ publication everything".encode())
        yield url
        connection.execute("drop subscription copy")


def content(url: str) -> dict[str, list[str]]:
    with psycopg.connect(url, autocommit=True, options=HERE) as connection:
        return {
            table: sorted(row for (row,) in connection.execute(f"select t::text from {table} t".encode()))
            for table in COPIED
        }


def test_a_published_crawl_goes_on_and_a_subscriber_receives_pages_and_scores(publisher: str, subscriber: str) -> None:
    with psycopg.connect(publisher, autocommit=True, options=HERE) as connection:
        crawl = Crawl(connection)
        added = crawl.add(*(f"http://{host}.test/{n}" for host in "abc" for n in range(3)))
        for status in (200, 200, 503, 404):
            crawl.report_ok(crawl.next(), status=status, links=["http://a.test/0", "http://new.test/"])
            crawl.tick()
            crawl.wait(DAY)
        assert crawl.next()
        connection.execute("select block_host('a.test'), unblock_host('a.test'), set_host('b.test', gap => '2 s')")
        connection.execute("select fetch_now(%s)", [[page["page_id"] for page in added[:4]]])
        connection.execute("select keep_out(%s), exclude('c.test/2')", [[added[0]["page_id"]]])
        crawl.wait(DAY)
        assert misplaced(crawl) == []
        run_job("opic", publisher)
        assert crawl.value("select count(*) from page_score") > 5
    eventually(lambda: content(subscriber) == content(publisher))
    with psycopg.connect(subscriber, autocommit=True) as connection:
        scored = connection.execute("select count(*) from recrawl.page_status where authority > 0").fetchone()
        assert scored and scored[0] > 0
