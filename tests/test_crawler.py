"""The README's crawler against a real web server, whose log is the judge."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.rows import dict_row

from crawler import with_start_times
from helpers import eventually
from recrawl.setup import embedded
from web import Answer, Request, Web, links

README = Path(__file__).parents[1] / "README.md"
HOSTS = [f"127.0.0.{n}" for n in (2, 3, 4, 5)]
GAP = 0.3  # seconds
PAGES = 12  # a host
HELD = 3  # seconds, as 429 asks


class Pages:
    """Each links to the next four, and to one that robots.txt denies. Page 1 changes all the time, 2 has an etag and
    stays, 3 redirects temporarily to 10, 4 permanently to 11, 5 is gone, 6 is slow, 7 of one host is throttled once.
    """

    def __init__(self) -> None:
        self.throttled: set[str] = set()

    def __call__(self, request: Request) -> Answer:
        if request.path == "/robots.txt":
            return Answer(body="User-agent: *\nDisallow: /private")
        page = int(request.path.strip("/") or 0) if request.path != "/private" else -1
        body = links([*(f"/{to}" for to in range(page + 1, min(page + 5, PAGES))), "/private"])
        if page == 1:
            return Answer(200, body + str(time.monotonic_ns()), {"ETag": f'"{time.monotonic_ns()}"'})
        if page == 2:
            return Answer(304 if request.headers.get("if-none-match") == '"2"' else 200, body, {"ETag": '"2"'})
        if page == 3:
            return Answer(302, headers={"Location": "/10"})
        if page == 4:
            return Answer(301, headers={"Location": "/11"})
        if page == 5:
            return Answer(410)
        if page == 7 and request.host == HOSTS[0] and request.host not in self.throttled:
            self.throttled.add(request.host)
            return Answer(429, headers={"Retry-After": str(HELD)})
        return Answer(200, body, after=0.5 if page == 6 else 0)


@pytest.fixture
def pages() -> Pages:
    return Pages()


@pytest.fixture
def web(pages: Pages) -> Iterator[Web]:
    with Web(pages) as web:
        yield web


def test_the_readmes_crawler_keeps_what_the_readme_promises(
    home_of_a_crawl: Callable[[str], Path], tmp_path: Path, web: Web, pages: Pages
) -> None:
    (text,) = re.findall(r"^```py\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert len(text.splitlines()) <= 25, "short enough to be read"
    (tmp_path / "crawler.py").write_text(with_start_times(text))
    log = tmp_path / "log"
    folder = home_of_a_crawl("crawled")
    with embedded.server(folder) as url:
        with psycopg.connect(url, autocommit=True) as db:
            for name, value in {"default_gap": f"{GAP} s", "frequency": 20000, "shortest_interval": "1 s"}.items():
                db.execute("select recrawl.set_setting(%s, %s)", [name, str(value)])
            db.execute("select recrawl.add_pages(%s)", [[f"http://{host}:{web.port}/" for host in HOSTS]])
        crawler = subprocess.Popen(
            [sys.executable, tmp_path / "crawler.py"],
            env=os.environ | {"DATABASE_URL": url, "NO_PROXY": "*"},
            stderr=log.open("w"),
        )
        try:
            found = [f"/{page}" for page in range(1, PAGES)]
            eventually(lambda: {entry.path for entry in web.of(HOSTS[1])} >= set(found), what="all found")
            eventually(lambda: pages.throttled, what="429")
            time.sleep(HELD)
        except BaseException:
            crawler.kill()
            raise
    try:
        eventually(lambda: "the database is away" in log.read_text())
    except BaseException:
        crawler.kill()
        raise
    with embedded.server(folder) as again:
        assert again == url
        try:
            back = time.monotonic()
            eventually(lambda: sum(entry.at > back for entry in web.log) > 60, what="goes on after a restart")
            eventually(
                lambda: all([entry.status for entry in web.of(host, "/2")].count(304) > 2 for host in HOSTS),
                what="304 for what stays",
            )
            eventually(lambda: all(len(web.of(host, "/1")) > 3 for host in HOSTS), what="again what changes")
        finally:
            crawler.send_signal(signal.SIGTERM)
        assert crawler.wait(timeout=60) == 0
        with psycopg.connect(url, row_factory=dict_row) as db:
            leases = db.execute("select * from recrawl.lease_status").fetchall()
            known = {row["url"]: row for row in db.execute("select * from recrawl.page_status").fetchall()}
            led_to = db.execute(
                "select url from recrawl.successors(%s)", [known[f"http://{HOSTS[1]}:{web.port}/3"]["page_id"]]
            ).fetchall()
    assert leases == [], "what it had in hand was reported or given back"

    for host in HOSTS:
        apart = web.apart(host)
        assert apart[0] > GAP - 0.1, "closer than the gap"
        at = f"http://{host}:{web.port}"
        assert {entry.path for entry in web.of(host)} == {"/", "/robots.txt", *found}
        assert known[f"{at}/private"]["state"] == "denied"
        assert known[f"{at}/1"]["changes"] >= known[f"{at}/1"]["successes"] - 2 > 0
        assert known[f"{at}/2"]["changes"] == 0 < known[f"{at}/2"]["successes"] - 2
        assert (known[f"{at}/4"]["state"], known[f"{at}/5"]["state"]) == ("moved", "gone")
        assert len(web.of(host, "/5")) == 1, "what is gone is left alone"
        assert len(web.of(host, "/robots.txt")) == 1, "a day has not passed"
    assert [row["url"] for row in led_to] == [f"http://{HOSTS[1]}:{web.port}/10"]
    (throttled,) = [entry.at for entry in web.of(HOSTS[0]) if entry.status == 429]
    after = [entry.at - throttled for entry in web.of(HOSTS[0]) if entry.at > throttled]
    assert [delay for delay in after if 1 < delay < HELD] == [], "a held host is left alone within a second"
    assert web.most_under_way > 1
