"""The server that every row needs, and databases with the standard pages on it, which are loaded once and copied."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import LiteralString

from bench import data, server
from bench.measure import Backend, progress

STANDARD_PAGES = 1_000_000


class Stage:
    def __init__(self, server_url: str, scale: float, stack: ExitStack) -> None:
        self.server_url = server_url
        self.scale = scale
        self.pages = int(STANDARD_PAGES * scale)
        self.hosts = self.pages // data.PAGES_A_HOST
        self._stack = stack
        self._standard: str | None = None

    def rounds(self, wanted: int) -> int:
        """How often to measure: no more than the pages last for."""
        return max(5, min(wanted, int(wanted * self.scale * 4)))

    @contextmanager
    def empty(self) -> Iterator[str]:
        """A migrated database with the yardstick and without pages."""
        with server.database(self.server_url) as url:
            with Backend(url) as backend:
                data.load_ref(backend.connection)
            yield url

    @contextmanager
    def loaded(self, due: LiteralString) -> Iterator[str]:
        """The standard pages, due at other times."""
        with server.database(self.server_url) as url:
            self._load(url, due)
            yield url

    @contextmanager
    def standard(self) -> Iterator[str]:
        """A copy of the standard pages: all due, fifty a host."""
        if not self._standard:
            self._standard = self._stack.enter_context(server.database(self.server_url))
            self._load(self._standard, data.DUE)
        with server.database(self.server_url, template=self._standard) as url:
            yield url

    def _load(self, url: str, due: LiteralString) -> None:
        progress(f"loading {self.pages:,} pages on {self.hosts:,} hosts")
        with Backend(url) as backend:
            data.load_pages(backend.connection, self.hosts, self.pages, due=due)
            data.load_ref(backend.connection)
