"""Everything works through a pgbouncer. If it pools transactions, nothing may rely on the state of a session."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy.engine import make_url

from crawler import Crawl, Site, add
from helpers import eventually
from recrawl import store
from recrawl.view import figures
from test_whole_crawl import WORKER
from web import Answer, Web, links
from worker.urlfrontier.client import OK, discovered
from worker.urlfrontier.conftest import Served
from worker.view.test_dashboard import Answer as Shown
from worker.view.test_dashboard import serving

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NOBODY = 65534
GAP = 0.3  # seconds
LATE = 0.1  # seconds that a busy machine may hold a request

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="apt install pgbouncer")


@pytest.fixture
def pool(url: str, open_folder: Path) -> Iterator[Callable[[str, int], str]]:
    """Puts a pool before the test's database. Takes its mode and its number of server connections."""
    processes: list[subprocess.Popen[bytes]] = []

    def make(mode: str, size: int) -> str:
        server = conninfo_to_dict(url)
        folder = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir=open_folder))
        target = " ".join(f"{key}='{server[key]}'" for key in ("host", "port", "user", "password") if server.get(key))
        user, password = server.get("user", "postgres"), server.get("password", "")
        (folder / "users").write_text(f'"{user}" "{password}"\n')
        (folder / "ini").write_text(
            f"[databases]\n* = {target}\n[pgbouncer]\npool_mode = {mode}\ndefault_pool_size = {size}\n"
            f"listen_port = 6432\nlisten_addr =\nunix_socket_dir = {folder}\n"
            f"auth_type = trust\nauth_file = {folder}/users\n"
        )
        account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
        if account:
            os.chown(folder, NOBODY, NOBODY)
        command = [str(PGBOUNCER), "--quiet", str(folder / "ini")]
        processes.append(subprocess.Popen(command, **account))  # type: ignore[call-overload]
        pooled = make_url(url).set(query={"host": str(folder), "port": "6432"}, host=None, port=None, password=None)
        there = pooled.render_as_string()

        def answers() -> bool:
            with suppress(psycopg.OperationalError):
                psycopg.connect(there).close()
                return True
            return False

        eventually(answers)
        return there

    yield make
    for process in processes:
        process.terminate()
        process.wait()


@pytest.fixture
def pooled(pool: Callable[[str, int], str]) -> str:
    return pool("transaction", 2)


def test_many_crawlers_share_two_server_connections(pooled: str) -> None:
    crawlers = [
        psycopg.connect(pooled, autocommit=True, prepare_threshold=None, row_factory=dict_row) for _ in range(6)
    ]
    try:
        crawlers[0].execute("select * from recrawl.add_pages(%s)", [[f"http://{i}.test/" for i in range(30)]])
        seen = []
        for _ in range(2):
            for crawler in crawlers:
                pages = crawler.execute("select * from recrawl.next_pages(5)").fetchall()
                seen += [page["url"] for page in pages]
                results = [{"page_id": p["page_id"], "lease_id": p["lease_id"], "status": 200} for p in pages]
                answers = crawler.execute("select * from recrawl.report(%s)", [Jsonb(results)]).fetchall()
                assert {answer["code"] for answer in answers} <= {"ok"}
        assert len(seen) == len(set(seen)) == 30
    finally:
        for crawler in crawlers:
            crawler.close()


def test_two_people_look_at_the_crawl_for_a_while_through_one_pool(pooled: str) -> None:
    with store.connect(pooled) as one, store.connect(pooled) as other:
        for _ in range(8):  # psycopg prepares a statement when it runs for the sixth time
            assert figures.read(one).now.new_waiting == figures.read(other).now.new_waiting


def test_crawlers_go_on_while_the_dashboard_is_open(pooled: str) -> None:
    """The dashboard limits its rights. A crawler that gets the same session next must not have these limits."""
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as crawler, serving(pooled) as dashboard:
        crawler.execute("select recrawl.add_pages('{http://a.test/}')")
        for path in ("/", "/find?q=a.test") * 2:
            assert Shown(dashboard, path).status == 200
            crawler.execute("select recrawl.next_pages(1)")
            crawler.execute("select recrawl.add_pages('{http://b.test/}')")


@contextmanager
def worker(url: str, log: Path) -> Iterator[None]:
    with log.open("w") as output:
        process = subprocess.Popen([sys.executable, "-c", WORKER, url], stdout=output, stderr=output)
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(60) == 0, log.read_text()


ENDED: Any = "select job from recrawl.job_run where ok"
# A job that runs when the worker is told to stop is stopped.
FAILED: Any = "select job, message from recrawl.job_run where not ok and message <> 'stopped'"


@pytest.mark.parametrize(("mode", "size"), [("session", 40), ("transaction", 3)])
def test_a_worker_a_crawler_the_urlfrontier_server_and_the_dashboard_share_a_pool(
    mode: str, size: int, pool: Callable[[str, int], str], db: psycopg.Connection[Any],
    tmp_path: Path, site: Site, web: Web,
) -> None:  # fmt: skip
    there = pool(mode, size)
    site.answers["*"] = lambda request: Answer(body=links(range(8)) + str(time.monotonic()))
    db.execute("select recrawl.set_setting('default_gap', %s)", [f"{GAP} s"])
    add(db, *(f"http://127.0.0.{host}:{web.port}/" for host in range(1, 5)))
    statuses: list[int] = []
    with worker(there, tmp_path / "worker.log"), serving(there) as dashboard:
        served = Served(there)
        try:
            frontier = served.client
            assert frontier.put(discovered("http://frontier.test/")) == [("http://frontier.test/", OK)]
            got = eventually(lambda: frontier.get(key="frontier.test", crawlID="DEFAULT"))
            assert [one.url for one in got] == ["http://frontier.test/"]
            assert frontier.stats("frontier.test")[:2] == (1, 1)
            crawl = Crawl(there)

            has_ended = threading.Event()

            def look() -> None:
                while not has_ended.wait(0.2):
                    statuses.extend(Shown(dashboard, path).status for path in ("/find?q=127.0.0.1", "/"))

            def is_done() -> bool:
                jobs = {job for (job,) in db.execute(ENDED).fetchall()}
                return len(web.log) > 25 and {"rates", "opic", "allocate"} <= jobs

            with ThreadPoolExecutor() as threads:
                looks = threads.submit(look)
                try:
                    crawl.run(0, until=is_done)
                finally:
                    has_ended.set()
                looks.result(60)
            assert is_done()
        finally:
            served.stop()
    assert db.execute(FAILED).fetchall() == []
    assert set(statuses) == {200}
    assert {outcome for _, outcome, _ in crawl.outcomes} <= {"ok", "released"}
    for host in range(1, 5):
        assert web.apart(f"127.0.0.{host}")[0] > GAP - LATE
