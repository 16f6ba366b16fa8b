"""The large database: ten times the standard pages on the embedded server, as `recrawl up` runs it. Made once, then
kept for all rows that want it."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import data, line_rows
from bench.measure import Backend, progress
from recrawl import store
from recrawl.setup import embedded, migrate

TIMES = 10  # the standard pages
NEW_EVERY = 21  # one page in this number was never fetched


class Large:
    def __init__(self, pages: int, folder: Path) -> None:
        self.pages = pages  # that were fetched before
        self.hosts = pages // data.PAGES_A_HOST
        self.folder = folder / "postgres"

    @property
    def environment(self) -> dict[str, str]:
        """In which a command works on it."""
        return {name: value for name, value in os.environ.items() if name != "DATABASE_URL"} | {
            "RECRAWL_DATA_DIR": str(self.folder)
        }

    @contextmanager
    def server(self) -> Iterator[str]:
        with embedded.server(self.folder) as url:
            self._make(url)
            yield url

    def _make(self, url: str) -> None:
        migrate.upgrade(url)
        with Backend(url) as backend:
            backend.connection.execute(store.SEARCH_PATH)
            backend.run("create table if not exists public.loaded (pages bigint)")
            loaded = [pages for (pages,) in backend.rows("select pages from public.loaded")]
            if loaded == [self.pages]:
                return
            if loaded or backend.rows("select from recrawl_internal.page limit 1"):
                raise SystemExit(f"bench: {self.folder} holds {loaded or 'a part of'} pages: name another folder")
            everything = self.pages + self.pages // (NEW_EVERY - 1)
            progress(f"loading {everything:,} pages on {self.hosts:,} hosts")
            data.load_pages(
                backend.connection, self.hosts, everything, due=data.A_TENTH_DUE, host=data.AN_ELEVENTH_OF_ONE_HOST
            )
            progress("making new ones of some")
            line_rows.make_new(backend, line_rows.RANKS["new pages of diverse values"] or "", NEW_EVERY)
            progress("and a past")
            data.load_past(backend.connection)
            backend.run("checkpoint")
            backend.run("insert into public.loaded values (%s)", [self.pages])


@contextmanager
def large(pages: int, keep: Path | None) -> Iterator[Large]:
    """In the folder where it is kept, else in a temporary one."""
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as temporary:
        folder = keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)  # the server's account must be able to enter it
        yield Large(pages, folder)
