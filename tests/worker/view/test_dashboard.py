"""The dashboard as anything that speaks HTTP sees it: what it answers, to whom, and what it refuses."""

import http.client
import os
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from html import unescape
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from sqlalchemy.engine import make_url

from command import Running
from helpers import Crawl, eventually
from recrawl import store
from recrawl.view.dashboard import LONGEST_TARGET, MOST_CONNECTIONS, Dashboard, listening
from recrawl.view.serving import Server
from worker.cli.test_cli import environment, error, output


@contextmanager
def serving(url: str, *names: str, restart: Callable[[], None] = lambda: None) -> Iterator[Dashboard]:
    with Dashboard(url, ("127.0.0.1", 0), names, restart) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def dashboard(url: str) -> Iterator[Dashboard]:
    with serving(url) as server:
        yield server


class Answer:
    def __init__(self, server: Dashboard, path: str, method: str = "GET", **headers: str) -> None:
        connection = http.client.HTTPConnection(str(server.server_address[0]), server.server_port, timeout=30)
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        self.status, self.headers, self.text = answer.status, answer.headers, answer.read().decode()
        connection.close()


# -- what it answers --


def test_it_shows_the_report_with_a_search(dashboard: Dashboard) -> None:
    answer = Answer(dashboard, "/")
    assert answer.status == 200
    assert answer.text.startswith("<!doctype html>")
    assert 'data-live="5"' in answer.text and 'role="search"' in answer.text


def test_a_browser_may_do_little_with_it(dashboard: Dashboard) -> None:
    for path in ("/", "/find?q=a.test", "/nothing"):
        headers = Answer(dashboard, path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'") and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert "Access-Control-Allow-Origin" not in headers


def test_head_is_get_without_its_body(dashboard: Dashboard) -> None:
    answer = Answer(dashboard, "/", "HEAD")
    assert (answer.status, answer.text) == (200, "")
    assert int(answer.headers["Content-Length"]) > 1000


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_there_is_nothing_to_write(dashboard: Dashboard, method: str) -> None:
    answer = Answer(dashboard, "/", method)
    assert answer.status == 405
    assert "GET and HEAD only" in answer.text


def test_a_page_is_found_by_its_url_in_any_spelling_and_by_its_id(dashboard: Dashboard, crawl: Crawl) -> None:
    (page,) = crawl.add("http://a.test/x")
    crawl.tick()
    for asked in ("http%3A%2F%2FA.test%3A80%2Fx%23top", str(page["page_id"])):
        answer = Answer(dashboard, f"/find?q={asked}")
        assert answer.status == 200
        assert "Why is it not fetched now?" in answer.text


@pytest.mark.parametrize("until", ["1 hour", "infinity"])
def test_a_host_is_found_by_its_name(dashboard: Dashboard, crawl: Crawl, until: str) -> None:
    crawl.add("http://a.test/x", "http://a.test/y")
    crawl.tick()
    end = "infinity" if until == "infinity" else crawl.value("select clock_timestamp() + %s::interval", until)
    crawl.value("select block_host('a.test', %s, '<i>because</i>')", end)
    text = Answer(dashboard, "/find?q=A.test").text
    assert "&lt;i&gt;because&lt;/i&gt;" in text
    assert "unblock_host(&#x27;a.test&#x27;)" in text


def test_a_host_is_found_by_the_name_of_one_that_is_asked_as_it(dashboard: Dashboard, crawl: Crawl) -> None:
    crawl.add("http://ann.blogs.test/", host=["blogs.test"])
    crawl.tick()
    text = Answer(dashboard, "/find?q=Ann.blogs.test").text
    assert "set_host(&#x27;blogs.test&#x27;" in text
    assert "also known as" in text and "ann.blogs.test" in text
    assert "also known as" not in Answer(dashboard, "/find?q=blogs.test").text


@pytest.mark.parametrize("asked", ["münchen.test", "http://münchen.test/", "münchen.test/"])
def test_a_host_that_is_not_ascii_is_found(dashboard: Dashboard, crawl: Crawl, asked: str) -> None:
    crawl.add("https://xn--mnchen-3ya.test/", "http://xn--mnchen-3ya.test/")
    crawl.tick()
    assert Answer(dashboard, f"/find?q={quote(asked)}").status == 200


@pytest.mark.parametrize("gap", ["30 days", "1 ms"])
def test_the_gaps_that_it_offers_are_valid(dashboard: Dashboard, crawl: Crawl, gap: str) -> None:
    crawl.add("http://a.test/")
    crawl.tick()
    crawl.value("select set_host('a.test', gap => %s::interval)", gap)
    offered = re.findall(r"SELECT (recrawl.set_host\(.*?\));", unescape(Answer(dashboard, "/find?q=a.test").text))
    assert len(offered) >= 2
    for call in offered:
        crawl.value(f"select {call}")


@pytest.mark.parametrize("asked", ["nowhere.test", "", "%00", "%FF%FE", "a%27%3B--"])
def test_what_is_not_known_is_said_in_words(dashboard: Dashboard, asked: str) -> None:
    answer = Answer(dashboard, f"/find?q={asked}")
    assert answer.status == 404
    assert "This page or host is not in the crawl." in answer.text


@pytest.mark.parametrize("asked", ["77", "9" * 30, "http%3A%2F%2Fnowhere.test%2F", "x%3A%2F%2F", "nowhere.test%2Fa"])
def test_of_what_is_no_page_it_says_why(dashboard: Dashboard, asked: str) -> None:
    answer = Answer(dashboard, f"/find?q={asked}")
    assert answer.status == 404
    assert "Why is it not fetched now?" in answer.text


def test_other_paths_lead_back(dashboard: Dashboard) -> None:
    for path in ("/favicon.ico", "/../../etc/passwd", "//evil.test/"):
        assert Answer(dashboard, path).status == 404


# -- whom it answers --


@pytest.mark.parametrize("host", ["evil.test", "evil.test:{port}", "localhost.evil.test:{port}", ""])
def test_a_name_that_merely_leads_here_reads_nothing(dashboard: Dashboard, host: str) -> None:
    answer = Answer(dashboard, "/", Host=host.format(port=dashboard.server_port))
    assert answer.status == 421
    assert 'data-part="tiles"' not in answer.text


@pytest.mark.parametrize("host", ["localhost:{port}", "127.0.0.1:1", "127.0.0.1", "[::1]:{port}", "LOCALHOST:{port}"])
def test_loopback_has_several_names_with_any_port(dashboard: Dashboard, host: str) -> None:
    assert Answer(dashboard, "/", Host=host.format(port=dashboard.server_port)).status == 200


def test_the_address_that_it_announces_is_one_of_its_names(url: str) -> None:
    with Dashboard(url, ("127.0.0.2", 0), (), lambda: None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert Answer(server, "/", Host=server.address.removeprefix("http://").rstrip("/")).status == 200
        assert Answer(server, "http://[", Host=f"127.0.0.2:{server.server_port}").status == 400
        server.shutdown()


def test_an_ipv6_address_is_announced_in_brackets(url: str) -> None:
    with Dashboard(url, ("::1", 0), (), lambda: None) as server:
        assert server.address == f"http://[::1]:{server.server_port}/"


def test_other_names_must_be_given(url: str) -> None:
    with serving(url, "crawl.test", "CRAWL.example:444") as server:
        for host in ("crawl.test", "crawl.test:444", f"crawl.example:{server.server_port}"):
            assert Answer(server, "/", Host=host).status == 200
        assert Answer(server, "/", Host="other.test").status == 421


def test_it_listens_elsewhere_only_when_that_is_asked_for() -> None:
    assert listening(("127.0.0.1", 8035), ()) == ("127.0.0.1", 8035)
    assert listening(("localhost", 0), ()) == ("127.0.0.1", 0)
    assert listening(("::1", 8035), ()) == ("::1", 8035)
    assert listening(("0.0.0.0", 80), ("crawl.test",)) == ("0.0.0.0", 80)
    for host in ("0.0.0.0", "192.0.2.1", "::"):
        with pytest.raises(ValueError, match=r"no login.*--name HOST"):
            listening((host, 80), ())
    with pytest.raises(ValueError, match="--listen must"):
        listening(("example.com", 80), ())


# -- what it bears --


def test_what_is_too_long_is_refused(dashboard: Dashboard) -> None:
    assert Answer(dashboard, "/find?q=" + "a" * LONGEST_TARGET).status == 414
    assert Answer(dashboard, "/", Cookie="a" * 70_000).status == 431
    assert Answer(dashboard, "/", **{f"X-{i}": "a" for i in range(200)}).status == 431


def test_only_so_many_connections_are_open_at_a_time(dashboard: Dashboard) -> None:
    with ExitStack() as stack:
        first, *_, late = (
            stack.enter_context(socket.create_connection(("127.0.0.1", dashboard.server_port), timeout=10))
            for _ in range(MOST_CONNECTIONS + 1)
        )
        with suppress(ConnectionError):  # closed before it could be read
            late.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert late.recv(1000) == b""
        first.sendall(b"nonsense\r\n\r\n")
        assert first.recv(1000).startswith(b"HTTP/1.0 400")

    def answers() -> bool:
        with suppress(OSError, http.client.HTTPException):
            return Answer(dashboard, "/").status == 200
        return False

    eventually(answers)


def test_many_windows_cost_the_database_one_look(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.view.dashboard.REMEMBERED_SECONDS", 60)  # this machine may be busy
    connect, made = Dashboard.connect, []

    def counted(server: Dashboard) -> AbstractContextManager[store.Connection]:
        made.append(server)
        return connect(server)

    monkeypatch.setattr(Dashboard, "connect", counted)
    threads = [threading.Thread(target=Answer, args=(dashboard, "/")) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1


def test_a_later_window_gets_new_figures(dashboard: Dashboard, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recrawl.view.dashboard.REMEMBERED_SECONDS", 0)
    crawl.add("http://a.test/")
    assert "The crawl is paused" not in Answer(dashboard, "/").text
    crawl.value("select pause()")
    assert "The crawl is paused" in Answer(dashboard, "/").text


# -- the database --


def test_it_reads_with_a_readers_rights_and_changes_nothing(dashboard: Dashboard) -> None:
    with dashboard.connect() as connection:
        assert connection.execute("select current_user").fetchone() == ("recrawl_reader",)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction), connection.transaction():
            connection.execute("create temp table t ()")
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("select * from recrawl_internal.page")


def test_a_login_that_may_not_read_is_told_what_to_do(url: str, on_server: Callable[..., None]) -> None:
    login = "recrawl_test_nobody"
    on_server("drop role if exists {}", login)
    on_server("create role {} login noinherit", login)
    try:
        theirs = make_url(url).set(username=login, password=None).render_as_string(hide_password=False)
        try:
            psycopg.connect(theirs).close()
        except psycopg.OperationalError:
            pytest.skip("this server lets no new login in without a password")
        said = error(theirs, "dashboard", "--listen", "127.0.0.1:0")
        assert "needs the role recrawl_reader" in said
        with serving(theirs) as server_of_theirs:
            answer = Answer(server_of_theirs, "/")
            assert answer.status == 503 and "The dashboard may not read this database." in answer.text
            on_server("grant recrawl_reader to {}", login)
            assert Answer(server_of_theirs, "/").status == 200
    finally:
        on_server("drop role {}", login)


def test_a_database_that_is_away_is_said_and_restarted_and_comes_back(url: str, on_server: Callable[..., None]) -> None:
    name = make_url(url).database or ""
    on_server("alter database {} with allow_connections false", name)
    with serving(url, restart=lambda: on_server("alter database {} with allow_connections true", name)) as dashboard:
        answer = Answer(dashboard, "/")
        assert answer.status == 503
        assert "The database does not answer." in answer.text and 'data-live="5"' in answer.text
        assert "Traceback" not in answer.text
        assert Answer(dashboard, "/").status == 200


def test_a_database_without_a_crawl_says_so(new_database: Callable[..., str]) -> None:
    with serving(new_database()) as server:
        answer = Answer(server, "/")
        assert answer.status == 200
        assert "recrawl migrate" in answer.text


# -- the commands --


def test_the_file_is_a_page_that_stands_alone(url: str, tmp_path: Path) -> None:
    file = tmp_path / "crawl.html"
    assert "crawl.html" in output(url, "dashboard", "--file", str(file))
    assert file.read_text().startswith("<!doctype html>")
    assert file.stat().st_mode & 0o777 == 0o666 & ~current_umask()
    assert list(tmp_path.iterdir()) == [file]
    text = output(url, "dashboard", "--file", "-")
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "No such file" in error(url, "dashboard", "--file", str(tmp_path / "none" / "x.html"))


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_dashboard_serves_until_it_is_stopped(url: str, stop: signal.Signals) -> None:
    with Running("recrawl", "dashboard", "--listen", "127.0.0.1:0", environment=environment(url)) as process:
        line = process.stdout.readline()
        (port,) = re.findall(r"http://127\.0\.0\.1:(\d+)/", line)
        connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=30)
        connection.request("GET", "/")
        assert connection.getresponse().status == 200
        process.send_signal(stop)
        assert process.wait(timeout=600) == 0
        assert "stopped" in process.stdout.read()


def test_a_signal_stops_the_server_also_while_it_starts_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_and_be_interrupted(thread: threading.Thread) -> None:
        start(thread)
        thread.join()
        signal.raise_signal(signal.SIGINT)

    with Server(("127.0.0.1", 0), BaseHTTPRequestHandler, MOST_CONNECTIONS) as server:
        socket.create_connection(("127.0.0.1", server.server_port)).close()
        monkeypatch.setattr(threading.Thread, "start", start_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.handle_request()


def test_dashboard_says_why_it_cannot_listen(url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = error(url, "dashboard", "--listen", f"127.0.0.1:{taken.getsockname()[1]}")
    assert re.search(r"cannot listen on 127\.0\.0\.1:\d+: Address already in use", said)
    assert "no login" in error(url, "dashboard", "--listen", "0.0.0.0:0")
