"""A transaction is left open. The tests move a clock forward, because they would have to wait for minutes."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from helpers import Crawl, eventually
from recrawl import store
from recrawl.setup import embedded, migrate
from recrawl.view import facts, figures
from recrawl.view.verdict import checks, verdict
from worker.clock import LIBRARY, Clock
from worker.jobs.test_clock import worker

pytestmark = pytest.mark.skipif(LIBRARY is None, reason="apt install faketime")


class Watched(Crawl):
    """A crawl at which somebody looks, on a server whose clock a test moves on."""

    def __init__(self, url: str, clock: Clock, connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        super().__init__(connection)
        self.url, self.clock = url, clock

    def says(self) -> str:
        with store.connect(self.url) as connection:
            return verdict(figures.read(connection)).code

    def troubles(self) -> dict[str, str]:
        with store.connect(self.url) as connection:
            return {
                check.code: check.headline
                for check in checks(facts.read(connection, is_embedded=True))
                if check.level != "ok"
            }

    def goes_on(self, minutes: int) -> None:
        self.clock.step(60 * minutes)
        eventually(lambda: self.value("select worker_is_running from crawl_status"))
        self.fetch()

    def fetch(self) -> None:
        # next_pages skips hosts that the worker has locked for its upkeep.
        (page,) = eventually(lambda: self.rows("select page_id, lease_id from next_pages(1)"))
        self.connection.execute(
            "select report_pages(array[%s::bigint], array[%s::bigint], array[200])", [page["page_id"], page["lease_id"]]
        )


@pytest.fixture
def crawl(open_folder: Path, request: pytest.FixtureRequest) -> Iterator[Watched]:
    with (
        Clock(open_folder / "clock") as clock,
        clock.started(embedded.server(open_folder / request.node.name[:30])) as url,
    ):
        migrate.upgrade(url)
        with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
            crawl = Watched(url, clock, connection)
            connection.execute(
                "select add_pages(array(select format('http://h%s.test/', i) from generate_series(1, 3) i))"
            )
            with worker(url, **clock.environment):
                eventually(lambda: crawl.value("select worker_is_running from crawl_status"))
                eventually(lambda: crawl.value("select count(*) from new_page") == 3)
                crawl.fetch()
                yield crawl


def test_a_transaction_that_is_left_open_is_told_of_with_its_process(crawl: Watched) -> None:
    with psycopg.connect(crawl.url) as left_open:
        left_open.execute("select pg_current_xact_id()")
        assert "transaction_open" not in crawl.troubles()
        crawl.goes_on(minutes=4)
        said = f"process {left_open.info.backend_pid}, has been open for [4-9] min"
        assert re.search(said, crawl.troubles()["transaction_open"])
        assert crawl.says() != "transaction_open", "that is for the doctor to say"
        crawl.goes_on(minutes=12)
        assert crawl.says() == "transaction_open"
    eventually(lambda: "transaction_open" not in crawl.troubles())
    assert crawl.says() != "transaction_open"


def test_what_such_a_one_holds_up_is_told_of_first(crawl: Watched) -> None:
    with psycopg.connect(crawl.url) as left_open:
        ((url,),) = left_open.execute("select url from recrawl.next_pages(1)").fetchall()
        crawl.connection.execute("select add_pages(array[%s || 'later'])", [url])
        crawl.goes_on(minutes=8)
        assert crawl.says() == "inbox_stuck"
        assert {"inbox_stuck", "transaction_open"} <= set(crawl.troubles())
    eventually(lambda: not {"inbox_stuck", "transaction_open"} & set(crawl.troubles()))
    assert crawl.says() not in {"inbox_stuck", "transaction_open"}
