"""robots.txt of every kind, and clocks and links of every kind: every request in a slot, judged by the web's log."""

import asyncio
import contextlib
import gzip
import itertools
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from crawler import GAP, LATE, Crawl, Site, add, leases, state
from recrawl.client import Page
from recrawl.client.clock import Clock
from recrawl.client.database import Database
from recrawl.client.sitemap_pages import take_sitemap
from web import Answer, Request, Web, links
from worker.clock import LIBRARY, remove_remains

DENY = "User-agent: *\nDisallow: /private\n"


def paths(web: Web, host: str) -> list[str]:
    return [entry.path for entry in web.of(host)]


# ------------------------------------------------------------------------------------------------- robots.txt


def test_every_kind_of_robots_txt(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    kinds: dict[str, Answer] = {
        "127.0.0.10": Answer(404, "nothing here"),
        "127.0.0.11": Answer(body="User-agent: *\nDisallow: /"),
        "127.0.0.12": Answer(500),
        "127.0.0.13": Answer(301, headers={"Location": "/rules.txt"}),
        "127.0.0.14": Answer(302, headers={"Location": "/robots.txt"}),
        "127.0.0.15": Answer(body=DENY + "#" * 600_000),
        "127.0.0.16": Answer(body=f"{DENY}Crawl-delay: 2"),
        "127.0.0.17": Answer(308, headers={"Location": f"http://127.0.0.10:{web.port}/rules.txt"}),
        "127.0.0.18": Answer(hangs=True),
        "127.0.0.19": Answer(body=DENY.encode("utf-8-sig")),
        "127.0.0.20": Answer(301, headers={"Location": "http://a..b/robots.txt"}),
    }
    site.answers |= {host + "/robots.txt": answer for host, answer in kinds.items()}
    site.answers |= {"/rules.txt": Answer(body=DENY), "/": Answer(body=links(["/a", "/private", "/b"]))}
    site.answers |= {"/a": Answer(), "/b": Answer(), "/private": Answer()}
    at = {host: f"http://{host}:{web.port}" for host in kinds}
    db.execute("select recrawl.set_setting('window_share', '0.5')")  # this machine may be busy
    add(db, *(f"{site}/" for site in at.values()))
    crawl = Crawl(url, timeout=3)
    pages = {"/", "/a", "/b"}
    expected = {host: pages for host in kinds if host[-2:] not in ("11", "12", "18")}
    expected |= {f"127.0.0.{n}": {*pages, "/private"} for n in (10, 14, 20)}
    crawl.run(30, until=lambda: (
        all(found <= set(paths(web, host)) for host, found in expected.items())
        and "ok" in crawl.of(f"{at['127.0.0.12']}/") and "ok" in crawl.of(f"{at['127.0.0.18']}/")
    ))  # fmt: skip

    assert set(paths(web, "127.0.0.10")) == {"/robots.txt", "/rules.txt", "/private", *pages}
    assert paths(web, "127.0.0.11") == ["/robots.txt"] and state(db, at["127.0.0.11"] + "/").state == "denied"
    for host, status in [("127.0.0.12", 500), ("127.0.0.18", 0)]:
        assert set(paths(web, host)) == {"/robots.txt"}, "what cannot be had forbids"
        assert state(db, f"{at[host]}/").last_status == status
    # On a busy machine a request may miss its slot: then the client begins again with robots.txt.
    before_pages = list(itertools.takewhile(lambda path: path not in pages, paths(web, "127.0.0.13")))
    assert set(before_pages) == {"/robots.txt", "/rules.txt"}
    assert paths(web, "127.0.0.14")[:6] == ["/robots.txt"] * 6 and "/private" in paths(web, "127.0.0.14")
    assert paths(web, "127.0.0.20").count("/robots.txt") == 1 and "/private" in paths(web, "127.0.0.20")
    for host in ("127.0.0.13", "127.0.0.15", "127.0.0.16", "127.0.0.17", "127.0.0.19"):
        assert "/private" not in paths(web, host)
    assert web.apart("127.0.0.16")[0] > 2 - LATE, "from the first page on"
    for host in kinds:
        if len(web.of(host)) > 1:
            assert web.apart(host)[0] > GAP - LATE, host


def test_ports_have_rules_of_their_own_and_share_the_gap(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    host = "127.0.0.20"
    site.answers["*"] = Answer(body=links(f"/{n}" for n in range(8)))
    other = Site()
    other.answers |= {"/robots.txt": Answer(body="User-agent: *\nDisallow: /"), "*": Answer()}
    with Web(other) as denied:
        add(db, f"http://{host}:{denied.port}/", f"http://{host}:{web.port}/", f"http://{host}:{denied.port}/x")
        crawl = Crawl(url)
        crawl.run(30, until=lambda: len(web.log) == 10 and denied.log)
        assert paths(denied, host) == ["/robots.txt"]
        web.log += denied.log
    assert web.apart(host)[0] > GAP - LATE


def test_a_request_of_which_nothing_is_reported_uses_its_slot(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    site.answers["*"] = Answer()
    add(db, f"http://127.0.0.2:{web.port}/")
    crawl = Crawl(url, robots=False)

    async def forgetful(page: Page) -> None:
        await crawl.web.get(page.url, headers={"X-Began": str(time.monotonic())})

    db.execute("select recrawl.set_host('127.0.0.2', gap => '1 second')")
    crawl.run(30, forgetful, until=lambda: len(web.log) == 3)
    assert len(web.log) == 3 and web.apart("127.0.0.2")[0] > 1 - LATE


def test_what_one_process_reads_all_know(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    at = f"http://127.0.0.2:{web.port}"
    site.answers["/robots.txt"] = Answer(body=f"{DENY}Sitemap: {at}/map.xml")
    add(db, f"{at}/")
    first, second = Crawl(url), Crawl(url)
    first.run(30, until=lambda: first.outcomes and first.outcomes[-1][1] == "ok")
    add(db, f"{at}/private", f"{at}/open")
    second.run(30, until=lambda: second.client.counts["ok"] == 2)
    assert sorted(paths(web, "127.0.0.2")) == ["/", "/open", "/robots.txt"]
    assert state(db, f"{at}/map.xml") is None, "sitemaps are read only if the crawler asks for it"
    assert "without its body" not in caplog.text


def test_rules_that_are_a_day_old_are_fetched_again_and_kept_where_that_fails(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    at = f"http://127.0.0.2:{web.port}"
    db.execute("select recrawl.set_robots(%s, 200, %s)", [at, DENY])
    db.execute("update recrawl_internal.robots set good_until = now() - interval '1 hour'")
    site.answers |= {"/robots.txt": Answer(500), "/": Answer(), "/private": Answer()}
    add(db, f"{at}/", f"{at}/private")
    crawl = Crawl(url)
    crawl.run(30, until=lambda: crawl.client.counts["ok"] == 2)
    assert paths(web, "127.0.0.2") == ["/robots.txt", "/"]


def test_a_robots_txt_that_redirects_is_read_although_the_gap_is_longer_than_any_look_ahead(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Its redirect got no slot, so the site gave no page."""
    add(db, f"http://127.0.0.2:{web.port}/")
    db.execute("select recrawl.set_setting('max_ahead', '1 s'), recrawl.set_host('127.0.0.2', gap => '5 s')")
    site.answers |= {"/robots.txt": Answer(301, headers={"Location": "/rules.txt"}), "/rules.txt": Answer(body=DENY)}
    site.answers["/"] = Answer()
    Crawl(url, ahead=0.5).run(30, until=lambda: "/" in paths(web, "127.0.0.2"))
    assert web.apart("127.0.0.2")[0] > 5 - LATE


def test_a_host_that_throttles_a_redirected_robots_txt_is_blocked_too(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Only the host that had redirected was blocked."""
    target = f"http://127.0.0.3:{web.port}/rules.txt"
    site.answers |= {
        "127.0.0.2/robots.txt": Answer(302, headers={"Location": target}),
        "/rules.txt": Answer(429, headers={"Retry-After": "600"}),
    }
    add(db, f"http://127.0.0.2:{web.port}/")

    def blocks() -> list[float]:
        rows = db.execute(
            "select extract(epoch from blocked_until - clock_timestamp())::float8 from recrawl.host_status"
            " where blocked_until is not null"
        )
        return [left for (left,) in rows]

    Crawl(url).run(30, until=lambda: len(blocks()) == 2)
    assert [500 < left <= 600 for left in blocks()] == [True, True]


def test_a_robots_txt_whose_body_is_not_reported_forbids_its_site(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    site.answers["*"] = Answer()
    add(db, f"http://127.0.0.2:{web.port}/")
    crawl = Crawl(url)

    async def visit(page: Page) -> None:
        page.report(200)

    with caplog.at_level("WARNING", "recrawl.client"):
        crawl.run(30, visit, until=lambda: crawl.client.counts["robots"] and "body" in caplog.text)
    assert f"http://127.0.0.2:{web.port}/robots.txt was reported without its body" in caplog.text
    assert db.execute("select count(*) from recrawl_internal.robots where rules is not null").fetchone() == (0,)


def test_a_robots_txt_that_is_refused_is_asked_ever_less_often_whoever_needs_it(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    hosts = [f"127.0.0.{n}" for n in (2, 3, 4)]
    page, extra, other = (f"http://{host}:{web.port}" for host in hosts)
    site.answers |= {f"{host}/robots.txt": Answer(429, headers={"Retry-After": "1"}) for host in hosts[:2]}
    site.answers["*"] = Answer()
    add(db, f"{page}/1", f"{page}/2", *(f"{other}/{n}" for n in range(5)))
    crawl = Crawl(url)

    async def visit(page: Page) -> None:
        if page.kind == "page":
            for n in range(3):
                crawl.client.extra_request(f"{extra}/{n}")
        await crawl.visit(page)

    crawl.run(240, visit, until=lambda: crawl.client.counts["ok"] >= 6)  # pages of the third host
    for host in hosts[:2]:
        assert set(paths(web, host)) == {"/robots.txt"}
        first, *later = (entry.at for entry in web.of(host))
        # A second request comes at once if another call of next_pages came before the block. On a busy machine one may
        # come after the block.
        assert not [at for at in later if 5 < at - first < 30]
    assert len(paths(web, hosts[2])) == 6, "others are not disturbed"
    assert state(db, f"{page}/1").successes == state(db, f"{page}/2").successes == 0
    left = db.execute(
        "select host, extract(epoch from blocked_until - clock_timestamp())::float8 as seconds from recrawl.host_status"
        " where host = any (%s)", [hosts[:2]]
    ).fetchall()  # fmt: skip
    now = time.monotonic()
    assert len(left) == 2 and all(row.seconds + now - web.of(row.host)[-1].at > 30 for row in left)


@pytest.mark.parametrize("asked_as", [None, "shops.example"])
def test_sitemaps_are_pages_whose_urls_become_pages(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, asked_as: str | None
) -> None:
    at = f"http://127.0.0.2:{web.port}"

    def urlset(*names: str) -> str:
        return f"<urlset>{''.join(f'<url><loc>{at}{name}</loc></url>' for name in names)}</urlset>"

    index = "".join(f"<sitemap><loc>{at}/{name}</loc></sitemap>" for name in ("1.xml.gz", "lost.xml"))
    site.answers |= {
        "/robots.txt": Answer(body=f"{DENY}Sitemap: {at}/index.xml"),
        "/index.xml": Answer(body=f"<sitemapindex>{index}</sitemapindex>"),
        "/lost.xml": Answer(404, body=urlset("/b")),
        "/1.xml.gz": Answer(body=gzip.compress((urlset("/a", "/private") + "x").encode())),
        "/": Answer(), "/a": Answer(),
    }  # fmt: skip
    db.execute("select recrawl.add_pages(%s, host => %s::text[])", [[f"{at}/"], [asked_as]])
    crawl = Crawl(url, sitemaps=True)
    wanted = {"/robots.txt", "/", "/index.xml", "/1.xml.gz", "/lost.xml", "/a"}
    crawl.run(30, until=lambda: set(paths(web, "127.0.0.2")) >= wanted and crawl.client.counts["denied"])
    assert set(paths(web, "127.0.0.2")) == wanted and state(db, f"{at}/b") is None
    assert web.apart("127.0.0.2")[0] > GAP - LATE


def test_a_site_that_redirects_to_its_www_name_has_sitemaps(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Its pages were on another host than the one that was asked for robots.txt."""
    bare, www, other = (f"http://127.0.0.{n}:{web.port}" for n in (2, 3, 4))
    listed = "".join(f"<url><loc>{at}/listed</loc></url>" for at in (bare, www, other))
    site.answers |= {
        "127.0.0.2/robots.txt": Answer(301, headers={"Location": f"{www}/robots.txt"}),
        "127.0.0.2/": Answer(301, headers={"Location": f"{www}/"}),
        "127.0.0.3/robots.txt": Answer(body=f"Sitemap: {www}/sitemap.xml"),
        "/sitemap.xml": Answer(body=f"<urlset>{listed}</urlset>"),
    }
    add(db, f"{bare}/")
    crawl = Crawl(url, sitemaps=True)
    crawl.run(30, until=lambda: crawl.client.counts["from_sitemaps"])
    known = [state(db, f"{at}/listed") is not None for at in (bare, www, other)]
    assert known == [True, True, False], "no sitemap fills the crawl with pages of a third host"


def test_a_sitemap_is_reported_when_its_urls_are_stored(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """A client that ended between the two lost the URLs: the next answer was 304."""
    at = f"http://127.0.0.2:{web.port}"
    sitemap = Answer(body=f"<urlset><url><loc>{at}/a</loc></url></urlset>", headers={"ETag": '"1"'})
    site.answers |= {
        "/robots.txt": Answer(body=f"Sitemap: {at}/1.xml"), "/": Answer(), "/a": Answer(),
        "/1.xml": lambda request: Answer(304) if "if-none-match" in request.headers else sitemap,
    }  # fmt: skip
    add(db, f"{at}/")
    with psycopg.connect(url) as holder:  # it has locked the new URL
        holder.execute("select recrawl.add_pages(%s)", [[f"{at}/a"]])
        Crawl(url, sitemaps=True, grace=1).run(30, until=lambda: "/1.xml" in paths(web, "127.0.0.2"))
        assert state(db, f"{at}/1.xml").last_status is None and leases(db) == []
        holder.rollback()
    Crawl(url, sitemaps=True).run(30, until=lambda: "/a" in paths(web, "127.0.0.2"))
    assert state(db, f"{at}/1.xml").last_status == 200


def test_a_page_that_changed_after_its_fetch_as_its_sitemap_says_is_due_earlier(
    url: str, db: psycopg.Connection[Any]
) -> None:
    names = ["changed", "same", "undated"]
    add(db, *(f"http://a.example/{name}" for name in names))
    db.execute(
        "select recrawl.report(jsonb_agg(jsonb_build_object('page_id', page_id, 'lease_id', lease_id, 'status', 200)))"
        " from recrawl.next_pages(3, ahead => '5 s')"
    )

    def due() -> list[Any]:
        return [state(db, f"http://a.example/{name}").due_at for name in names]

    times = {"changed": "2100-01-01", "same": "2000-01-01", "undated": "", "new": "2100-01-01"}
    items = (f"<url><loc>http://a.example/{name}</loc><lastmod>{at}</lastmod></url>" for name, at in times.items())

    async def take() -> int:
        database = Database(url, Clock())
        await database.open()
        try:
            sitemap = "http://a.example/map.xml", {"sitemap": "a.example"}
            return await take_sitemap(database, *sitemap, f"<urlset>{''.join(items)}</urlset>")
        finally:
            await database.close()

    before = due()
    assert asyncio.run(take()) == 1, "one is new"
    assert [after < at for after, at in zip(due(), before, strict=True)] == [True, False, False]


def test_hosts_that_are_asked_as_one_are_requested_a_gap_apart(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site
) -> None:
    """Each has its own robots.txt, and other hosts continue at the same time."""
    site.answers |= {"/robots.txt": Answer(body=DENY), "/": Answer(body=links(["/a", "/private"])), "/a": Answer()}
    together, alone = [f"127.0.0.{n}" for n in (30, 31, 32)], ["127.0.0.33", "127.0.0.34"]
    pages = [f"http://{host}:{web.port}/" for host in together]
    db.execute("select recrawl.add_pages(%s, host => '{shops.example}')", [pages])
    add(db, *(f"http://{host}:{web.port}/" for host in alone))
    Crawl(url).run(30, until=lambda: all("/a" in paths(web, host) for host in together + alone))
    starts = sorted(entry.at for host in together for entry in web.of(host))
    assert len(starts) >= 9
    assert min(b - a for a, b in pairwise(starts)) > GAP - LATE
    assert all(web.apart(host)[0] > GAP - LATE for host in alone)


# --------------------------------------------------------------------------------------------- clocks and links


@contextmanager
def slow_link(dsn: str, there: float, back: float) -> Iterator[str]:
    """A way to the database that takes its time in either direction, in a thread of its own."""
    server = conninfo_to_dict(dsn)
    folder, port = server.get("host"), server.get("port", "5432")
    loop = asyncio.new_event_loop()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(1 << 16):
                loop.call_later(delay, writer.write, data)
            await asyncio.sleep(delay)
            writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if str(folder).startswith("/"):
            far = await asyncio.open_unix_connection(f"{folder}/.s.PGSQL.{port}")
        else:
            far = await asyncio.open_connection(str(folder), int(str(port)))
        await asyncio.gather(carry(reader, far[1], there), carry(far[0], writer, back))

    async def end() -> None:
        listening.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)

    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(connected, "127.0.0.1", 0), loop).result()
    try:
        yield make_conninfo(dsn, host="127.0.0.1", port=listening.sockets[0].getsockname()[1], sslmode="disable")
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("there", "back"),
    [pytest.param(0.25, 0.25, id="both ways", marks=pytest.mark.soak), pytest.param(0.3, 0.02, id="one way")],
)
def test_a_slow_link_brings_no_two_requests_closer_and_stops_nothing(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, there: float, back: float
) -> None:
    site.answers["*"] = Answer()
    hosts = [f"127.0.0.{n}" for n in range(2, 6)]
    # Of some hosts there is but one page at a time: it must come in time, too.
    add(db, *(f"http://{host}:{web.port}/{n}" for host in hosts for n in range(5 if host < "127.0.0.4" else 1)))
    with slow_link(url, there, back) as slow:
        crawl = Crawl(slow, grace=15)
        crawl.run(30, until=lambda: crawl.client.counts["ok"] == 12)
    assert crawl.client.counts["ok"] == 12
    for host in hosts:
        assert web.apart(host)[0] > GAP - 2 * LATE


@pytest.mark.skipif(LIBRARY is None, reason="apt install faketime")
@pytest.mark.parametrize("wrong_by", ["-7m", "+7m"])
def test_a_wall_clock_that_is_minutes_wrong_changes_nothing(
    url: str, db: psycopg.Connection[Any], web: Web, site: Site, wrong_by: str, tmp_path: Path
) -> None:
    site.answers["*"] = Answer()
    add(db, *(f"http://127.0.0.2:{web.port}/{n}" for n in range(6)))
    (tmp_path / "crawler.py").write_text("""
import asyncio, sys, time
import httpx
from recrawl.client import Client

async def main():
    async with httpx.AsyncClient(timeout=60, trust_env=False) as web, Client(sys.argv[1], user_agent="me") as crawl:
        async def visit(page):
            answer = await web.get(page.url, headers={"X-Began": str(time.monotonic())})
            page.report(answer.status_code, answer.headers, body=answer.content)
            if crawl.counts["requests"] == 7:
                crawl.stop()

        async for page in crawl:
            crawl.spawn(visit, page)
    print(dict(crawl.counts))

print(time.time())
asyncio.run(main())
""")
    remove_remains()
    environment = os.environ | {
        "LD_PRELOAD": str(LIBRARY), "FAKETIME": wrong_by, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "no_proxy": "*"
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, tmp_path / "crawler.py", url], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert abs(float(done.stdout.split()[0]) - time.time()) > 300, "its clock is wrong"
    assert len(web.log) == 7 and web.apart("127.0.0.2")[0] > GAP - LATE, done.stdout
    assert state(db, f"http://127.0.0.2:{web.port}/0").successes == 1


def test_a_request_begins_soon_after_its_time(url: str, db: psycopg.Connection[Any], web: Web, site: Site) -> None:
    def page(request: Request) -> Answer:
        return Answer()

    site.answers["*"] = page
    add(db, *(f"http://127.0.0.{host}:{web.port}/{n}" for host in range(2, 22) for n in range(8)))
    crawl = Crawl(url)
    crawl.run(5, until=lambda: len(crawl.client.lag) > 50)
    lag = sorted(crawl.client.lag)
    # A quarter of them: a busy machine holds up the others.
    assert len(lag) > 50 and lag[0] >= 0 and lag[len(lag) // 4] < 0.02
