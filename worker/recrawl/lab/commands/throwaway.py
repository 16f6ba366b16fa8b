"""A database for one simulated crawl."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def throwaway_database() -> Iterator[str]:
    """The URL of a migrated database in an embedded PostgreSQL that is deleted at the end."""
    from recrawl.setup import embedded, migrate

    with tempfile.TemporaryDirectory(prefix="recrawl-laboratory-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with embedded.server(Path(folder) / "data") as url:
            migrate.upgrade(url)
            yield url
