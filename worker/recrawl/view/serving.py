"""An HTTP server for few clients. Each connection has a thread, and the number of connections is limited."""

import logging
import re
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

log = logging.getLogger(__name__)

# The names of this machine. A web site whose name leads here (DNS rebinding) sends another name.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def host_name(header: str) -> str:
    """The host name in the header Host of a request, without the port: a tunnel or a proxy may have another port."""
    return re.sub(r":\d*$", "", header).lower()


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], most: int) -> None:
        self.request_queue_size = most
        self.room = threading.BoundedSemaphore(most)
        ((self.address_family, *_), *_) = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)  # IPv4 or IPv6
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accepts at most `most` connections. A further one is closed."""
        if not self.room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except Exception:  # no thread was started. After a KeyboardInterrupt the thread may run, and releases it
            self.room.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Logs what a handler raised in one line. A client that went away is no error."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            log.error("cannot answer %s: %s", client_address[0], " ".join(repr(error).split()))
