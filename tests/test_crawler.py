"""The README's crawler against a real web server, whose log is the judge."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from recrawl.setup import embedded, migrate

README = Path(__file__).parents[1] / "README.md"
HOSTS = [f"127.0.0.{n}" for n in (2, 3, 4, 5)]
GAP = 0.3  # seconds
PAGES = 12  # a host
HELD = 3  # seconds, as 429 asks


class Web:
    """Hosts on loopback addresses, whose pages link to the next four.

    Page 1 changes all the time, 2 has an etag and stays, 3 redirects for now to 10, 4 for good to 11, 5 is gone, 6 is
    slow, 7 of one host is throttled once.
    """

    def __init__(self) -> None:
        self.log: list[tuple[float, str, str, int]] = []  # when it began, host, path, status
        self.under_way = self.most_under_way = 0
        self.throttled: set[str] = set()
        self.lock = threading.Lock()
        self.server = ThreadingHTTPServer(("0.0.0.0", 0), self.handler())
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, host: str, path: str, if_none_match: str | None) -> tuple[int, dict[str, str], str]:
        page = int(path.strip("/") or 0)
        body = "".join(f'<a href="/{to}">{to}</a>' for to in range(page + 1, min(page + 5, PAGES)))
        if page == 1:
            return 200, {"ETag": f'"{time.monotonic_ns()}"'}, body + str(time.monotonic_ns())
        if page == 2:
            return (304, {"ETag": '"2"'}, "") if if_none_match == '"2"' else (200, {"ETag": '"2"'}, body)
        if page == 3:
            return 302, {"Location": "/10"}, ""
        if page == 4:
            return 301, {"Location": "/11"}, ""
        if page == 5:
            return 410, {}, ""
        if page == 6:
            time.sleep(0.5)
        if page == 7 and host == HOSTS[0] and host not in self.throttled:
            self.throttled.add(host)
            return 429, {"Retry-After": str(HELD)}, ""
        return 200, {}, body

    def handler(web) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                began, host = time.monotonic(), self.headers["Host"].split(":")[0]
                with web.lock:
                    web.under_way += 1
                    web.most_under_way = max(web.most_under_way, web.under_way)
                status, headers, body = web.answer(host, self.path, self.headers["If-None-Match"])
                with web.lock:
                    web.under_way -= 1
                    web.log.append((began, host, self.path, status))
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None: ...

        return Handler

    def of(self, host: str, path: str | None = None) -> list[tuple[float, str, str, int]]:
        return sorted(entry for entry in self.log if entry[1] == host and path in (None, entry[2]))


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.server.shutdown()


def wait_until(is_so: Callable[[], object], seconds: float, what: str) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def test_the_readmes_crawler_keeps_what_the_readme_promises(open_folder: Path, tmp_path: Path, web: Web) -> None:
    (text,) = re.findall(r"^```py\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(text.splitlines()) <= 90, "short enough to be read"
    (tmp_path / "crawler.py").write_text(text)
    folder = open_folder / "crawled"
    with embedded.server(folder) as url:
        migrate.upgrade(url)
        with psycopg.connect(url, autocommit=True) as db:
            for name, value in {"default_gap": f"{GAP} s", "frequency": 20000, "shortest_interval": "1 s"}.items():
                db.execute("select recrawl.set_setting(%s, %s)", [name, str(value)])
            db.execute("select recrawl.add_pages(%s)", [[f"http://{host}:{web.port}/" for host in HOSTS]])
        crawler = subprocess.Popen(
            [sys.executable, tmp_path / "crawler.py"],
            env=os.environ | {"DATABASE_URL": url, "NO_PROXY": "*"},
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            found = [f"/{page}" for page in range(1, PAGES)]
            wait_until(
                lambda: {path for _, host, path, _ in web.log if host == HOSTS[1]} >= set(found), 90, "all found"
            )
            wait_until(lambda: web.throttled, 90, "429")
        except BaseException:
            crawler.kill()
            raise
    away = time.monotonic()
    time.sleep(1)
    with embedded.server(folder) as again:
        assert again == url
        try:
            back = time.monotonic()
            wait_until(lambda: sum(entry[0] > back for entry in web.log) > 60, 90, "goes on after a restart")
            wait_until(
                lambda: [status for *_, status in web.of(HOSTS[1], "/2")].count(304) > 2, 90, "304 for what stays"
            )
        finally:
            crawler.send_signal(signal.SIGTERM)
        assert crawler.wait(timeout=60) == 0
        with psycopg.connect(url, row_factory=dict_row) as db:
            leases = db.execute("select * from recrawl.lease_status").fetchall()
            known = {row["url"]: row for row in db.execute("select * from recrawl.page_status").fetchall()}
            links = db.execute(
                "select url from recrawl.successors(%s)", [known[f"http://{HOSTS[1]}:{web.port}/3"]["page_id"]]
            ).fetchall()
    assert "the database is away" in (crawler.stdout.read() if crawler.stdout else "")
    assert leases == [], "what it had in hand was reported or given back"

    for host in HOSTS:
        starts = [began for began, *_ in web.of(host)]
        # The log is of what arrives, and a loaded machine keeps some on the way: so it is asked of many, not of each.
        assert median(b - a for a, b in pairwise(starts)) > GAP - 0.03, "closer than the gap"
        assert all(b - a > 8 * GAP - 1 for a, b in zip(starts, starts[8:], strict=False)), "many at once"
        at = f"http://{host}:{web.port}"
        assert {path for _, _, path, _ in web.of(host)} == {"/", *found}
        assert known[f"{at}/1"]["changes"] >= known[f"{at}/1"]["fetches"] - 2 > 0
        assert known[f"{at}/2"]["changes"] == 0 < known[f"{at}/2"]["fetches"] - 2
        assert (known[f"{at}/4"]["state"], known[f"{at}/5"]["state"]) == ("moved", "gone")
        assert len(web.of(host, "/5")) == 1, "what is gone is left alone"
    assert [row["url"] for row in links] == [f"http://{HOSTS[1]}:{web.port}/10"]
    (throttled,) = [began for began, _, _, status in web.of(HOSTS[0]) if status == 429]
    after = [began - throttled for began, *_ in web.of(HOSTS[0]) if began > throttled]
    assert [delay for delay in after if 1 < delay < HELD] == [], "a held host is left alone within a second"
    assert web.most_under_way > 1
    assert away < back
