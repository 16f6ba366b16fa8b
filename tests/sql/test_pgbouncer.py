"""The verbs keep no session state: they work through a pgbouncer that pools transactions."""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from recrawl import store
from recrawl.view import figures
from worker.view.test_dashboard import Answer, serving

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
NOBODY = 65534

pytestmark = pytest.mark.skipif(PGBOUNCER is None, reason="apt install pgbouncer")


@pytest.fixture
def pooled(url: str, open_folder: Path) -> Iterator[str]:
    """The test's database behind a pool of two server connections."""
    server = conninfo_to_dict(url)
    folder = Path(tempfile.mkdtemp(prefix="pgbouncer-", dir=open_folder))
    target = " ".join(
        f"{key}='{server[key]}'" for key in ("host", "port", "dbname", "user", "password") if server.get(key)
    )
    user, password = server.get("user", "postgres"), server.get("password", "")
    (folder / "users").write_text(f'"{user}" "{password}"\n')
    (folder / "ini").write_text(
        f"[databases]\ncrawl = {target}\n[pgbouncer]\npool_mode = transaction\ndefault_pool_size = 2\n"
        f"listen_port = 6432\nlisten_addr =\nunix_socket_dir = {folder}\n"
        f"auth_type = trust\nauth_file = {folder}/users\n"
    )
    account = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.getuid() == 0 else {}
    if account:
        os.chown(folder, NOBODY, NOBODY)
    process = subprocess.Popen([str(PGBOUNCER), str(folder / "ini")], **account)  # type: ignore[call-overload]
    try:
        pooled = f"host={folder} port=6432 dbname=crawl user={user}"
        for _ in range(100):
            try:
                psycopg.connect(pooled).close()
                break
            except psycopg.OperationalError:
                time.sleep(0.05)
        yield pooled
    finally:
        process.terminate()
        process.wait()


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
    user, folder = conninfo_to_dict(pooled)["user"], conninfo_to_dict(pooled)["host"]
    dashboard_url = f"postgresql://{user}@/crawl?host={folder}&port=6432"
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as crawler, serving(dashboard_url) as server:
        crawler.execute("select recrawl.add_pages('{http://a.test/}')")
        for path in ("/", "/find?q=a.test") * 2:
            assert Answer(server, path).status == 200
            crawler.execute("select recrawl.next_pages(1)")
            crawler.execute("select recrawl.add_pages('{http://b.test/}')")
