"""The line at the bottom of a terminal that says how the crawl stands, for as long as a worker works there."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.text import Text

    from recrawl import store

EVERY = 2.0  # seconds


@contextmanager
def line(url: str) -> Iterator[None]:
    """What is printed meanwhile scrolls by above it. Off a terminal there is none."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    look = Look(url)
    try:
        with Live(get_renderable=look, console=Console(stderr=True), refresh_per_second=1 / EVERY, transient=True):
            yield
    finally:
        look.close()


class Look:
    """One line, as of now."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.connection: store.Connection | None = None

    def __call__(self) -> "Text":
        import psycopg
        from rich.text import Text

        from recrawl import store
        from recrawl.view import figures, screens

        try:
            self.connection = self.connection or store.connect(self.url, "recrawl up", connect_timeout=2)
            now = store.crawl_status(self.connection, figures.Now)
            runs, schedules = store.last_runs(self.connection, figures.LastRun), store.schedules(self.connection)
            said = screens.line(now, runs, {job: due_at for job, (_, due_at) in schedules.items() if due_at})
        except psycopg.Error:
            self.close()
            said = "the database does not answer"
        return Text(said, no_wrap=True, overflow="ellipsis")

    def close(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None
