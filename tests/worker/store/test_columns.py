"""Reading columns, over a connection that does not wait for ever."""

import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from recrawl import store
from recrawl.store.columns import Columns, message_of

KEPT_ALIVE = ("SO_KEEPALIVE", "TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_KEEPCNT", "TCP_USER_TIMEOUT")


def pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)


@pytest.fixture
def by_tcp(url: str) -> Iterator[tuple[str, int]]:
    """The database's address on a port of this machine, wherever it listens itself."""
    with psycopg.connect(url) as connection:
        host, port = connection.info.host, connection.info.port

    def to_the_server() -> socket.socket:
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{host}/.s.PGSQL.{port}")
        return server

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, server = listener.accept()[0], to_the_server()
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=pump, args=ends, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        here = listener.getsockname()[1]
        yield make_conninfo(url, host="127.0.0.1", port=here), here
        listener.shutdown(socket.SHUT_RDWR)


def options(port: int) -> list[int]:
    """Of this process' only connection to a port."""
    (found,) = [
        [end.getsockopt(socket.SOL_SOCKET if name[0] == "S" else socket.IPPROTO_TCP, getattr(socket, name))
         for name in KEPT_ALIVE]
        for end in sockets()
        if end.getpeername()[1] == port
    ]  # fmt: skip
    return found


def sockets() -> Iterator[socket.socket]:
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError), closing(socket.socket(fileno=os.dup(int(path.name)))) as end:
            if end.family == socket.AF_INET and end.getpeername():
                yield end


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc for the sockets of libraries")
def test_nobody_waits_for_ever_for_a_server_that_went_away(by_tcp: tuple[str, int]) -> None:
    url, port = by_tcp
    ways: tuple[Callable[[str], AbstractContextManager[object]], ...] = (store.connect, Columns)
    for way in ways:
        with way(url):
            assert options(port) == [1, 10, 5, 3, 30_000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[libpq] ERROR:  no such table\nLINE 1: select", "no such table"),
        ("[libpq] ERROR: ", "[libpq] ERROR:"),
        ("", "Exception"),
    ],
)
def test_an_error_without_a_message_is_still_an_error(text: str, message: str) -> None:
    assert message_of(Exception(text)) == message
