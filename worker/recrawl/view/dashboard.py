"""The live report: an HTTP server that reads as recrawl_reader and changes nothing.

It has no login, so by default it listens on loopback. It answers only to its own address, the names of loopback and the
names of --name. So a web site whose name points to this machine (DNS rebinding) gets no figures.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

import psycopg

from recrawl import store
from recrawl.view import overview, search
from recrawl.view.parts import page
from recrawl.view.parts.page import Report
from recrawl.view.serving import LOOPBACK, Server, host_name
from recrawl.words import in_url, lasting

REMEMBERED_SECONDS = 2.0  # many windows cause one read
LONGEST_READ = timedelta(seconds=10)
LONGEST_CONNECT = 5  # seconds
MOST_CONNECTIONS = 32
LONGEST_TARGET = 8192  # bytes: a URL in ASCII has up to 2048 characters, each up to 3 bytes when quoted
SLOWEST_REQUEST = 10.0  # seconds


class Dashboard(Server):
    def __init__(self, url: str, address: tuple[str, int], names: tuple[str, ...], restart: Callable[[], None]) -> None:
        super().__init__(address, DashboardHandler, MOST_CONNECTIONS)
        self.url, self.restart = url, restart
        self.names = set(map(host_name, (*LOOPBACK, in_url(str(self.server_address[0])), *names)))
        self.reading = threading.Lock()
        self.last: tuple[float, Report] | None = None

    @property
    def address(self) -> str:
        return f"http://{in_url(str(self.server_address[0]))}:{self.server_port}/"

    def report(self) -> Report:
        with self.reading:
            if self.last is None or time.monotonic() - self.last[0] > REMEMBERED_SECONDS:
                with self.connect() as connection:
                    self.last = time.monotonic(), overview.read(connection, live=True)
            return self.last[1]

    @contextmanager
    def connect(self) -> Iterator[store.Connection]:
        """A new connection for each read, so that a restart of the database does no harm."""
        with (
            store.connect(self.url, "recrawl dashboard", connect_timeout=LONGEST_CONNECT) as connection,
            store.only_read(connection, LONGEST_READ),
        ):
            yield connection


class DashboardHandler(BaseHTTPRequestHandler):
    server: Dashboard
    server_version, sys_version = "recrawl", ""
    timeout = SLOWEST_REQUEST

    def do_GET(self) -> None:
        try:
            status, html = self.answer()
        except psycopg.Error as error:
            status, html = HTTPStatus.SERVICE_UNAVAILABLE, self.away(error)
            with suppress(Exception):
                self.server.restart()
        except Exception as error:
            self.log_message("%s", repr(error))
            details = f"{type(error).__name__}. The log of recrawl dashboard has the details."
            status, html = HTTPStatus.INTERNAL_SERVER_ERROR, trouble("The dashboard cannot show this.", details)
        self.send(status, html)

    do_HEAD = do_GET

    def answer(self) -> tuple[HTTPStatus, str]:
        here = self.server.address
        if host_name(self.headers.get("Host", "")) not in self.server.names:
            what, do = "The dashboard does not answer to this host name.", "start the dashboard with --name."
            return HTTPStatus.MISDIRECTED_REQUEST, refusal(what, f"Open {here}, or {do}")
        if len(self.path) > LONGEST_TARGET:
            html = refusal("This address is too long.", "A URL has at most 2048 characters.")
            return HTTPStatus.REQUEST_URI_TOO_LONG, html
        try:
            target = urlsplit(self.path)
        except ValueError:
            return HTTPStatus.BAD_REQUEST, refusal("This is not an address.", f"Open {here}")
        if target.path == "/":
            return HTTPStatus.OK, overview.html(self.server.report())
        if target.path == "/find":
            asked = parse_qs(target.query).get("q", [""])[0].strip()
            with self.server.connect() as connection:
                found = search.find(connection, asked)
            return HTTPStatus.OK if found.ok else HTTPStatus.NOT_FOUND, search.shown(found)
        return HTTPStatus.NOT_FOUND, refusal("There is nothing at this address.", f"The dashboard is at {here}")

    def away(self, error: psycopg.Error) -> str:
        line = " ".join(str(error).split())
        self.log_message("%s", line)
        again = "The dashboard tries again automatically."
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return trouble("The dashboard may not read this database.", line[:300])
        if isinstance(error, psycopg.errors.QueryCanceled):
            details = f"It did not answer within {lasting(LONGEST_READ)}. {again}"
            return trouble("The database is too slow to answer.", details)
        details = f"{again} Crawlers that use this database wait, too. The error is: {line[:300]}"
        return trouble("The database does not answer.", details)

    def send(self, status: HTTPStatus, html: str) -> None:
        body = html.encode()
        self.send_response(status)
        for name, value in {
            "Content-Type": "text/html; charset=utf-8",
            "Content-Length": len(body),
            "Cache-Control": "no-store",
            "Content-Security-Policy": f"{page.policy(live=True)}; frame-ancestors 'none'",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Requests that http.server refuses: other methods, broken or too large requests. The connection is closed."""
        status = HTTPStatus(code)
        self.close_connection = True
        if status == HTTPStatus.NOT_IMPLEMENTED:
            status = HTTPStatus.METHOD_NOT_ALLOWED
        self.command = getattr(self, "command", None) or "GET"
        self.requestline, self.request_version = "", self.protocol_version  # http.server may have read neither of them
        self.send(status, refusal(f"{status.phrase}.", "The dashboard answers GET and HEAD only."))

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Logs nothing: the browser asks for the page again every few seconds, and would fill the log."""


def trouble(headline: str, detail: str, *, live: bool = True) -> str:
    """A document that says what is wrong, and tries again."""
    return page.document(f"recrawl: {headline}", page.verdict_box("trouble", headline, detail), live=live)


refusal = partial(trouble, live=False)


def listening(address: tuple[str, int], names: tuple[str, ...]) -> tuple[str, int]:
    """The address, if the server may listen on it. Outside of loopback anybody can read the crawl, so a --name must be
    given."""
    host, port = address
    try:
        is_loopback = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        raise ValueError(f"--listen must begin with an address like 127.0.0.1 or localhost, got {host!r}") from None
    if not is_loopback and not names:
        raise ValueError(
            f"{host} is not loopback, and the dashboard has no login: everybody who reaches it can read the crawl. "
            "If you want that, give the host name that browsers use: --name HOST"
        )
    return ("127.0.0.1" if host == "localhost" else host), port
