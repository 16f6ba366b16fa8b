"""The status line at the bottom of a terminal while a worker runs there."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from recrawl import store

EVERY = 2.0  # seconds


@contextmanager
def line(url: str) -> Iterator[None]:
    """Shows the line while the block runs; other output scrolls above it. Without a terminal nothing is shown."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    line = StatusLine(url)
    line.start()
    try:
        with Live(get_renderable=line.shown, console=Console(stderr=True), refresh_per_second=1, transient=True):
            yield
    finally:
        line.ended.set()


class StatusLine(threading.Thread):
    """The present line. It is read in a thread, because log output waits for the screen, and the database may hang."""

    def __init__(self, url: str) -> None:
        super().__init__(name="status line", daemon=True)
        self.url = url
        self.text = ""
        self.ended = threading.Event()
        self.connection: store.Connection | None = None

    def shown(self) -> "Text":
        from rich.text import Text

        return Text(self.text, no_wrap=True, overflow="ellipsis")

    def run(self) -> None:
        while not self.ended.is_set():
            self.text = self.look()
            self.ended.wait(EVERY)
        self.close()

    def look(self) -> str:
        import psycopg

        from recrawl import store
        from recrawl.view import figures, screens

        try:
            self.connection = self.connection or store.connect(self.url, "recrawl up", connect_timeout=2)
            now = store.looks.crawl_status(self.connection, figures.Now)
            runs = store.looks.last_runs(self.connection, figures.LastRun, figures.ALWAYS)
            jobs = store.looks.schedule(self.connection, figures.Schedule)
            return screens.line(now, runs, {each.job: each.due_at for each in jobs if each.due_at})
        except psycopg.Error:
            self.close()
            return "the database does not answer"

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None
