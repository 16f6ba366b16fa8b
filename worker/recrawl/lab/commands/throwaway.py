"""A database for one simulated crawl."""

import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def throwaway_database() -> Iterator[str]:
    """The URL of a migrated database in an embedded PostgreSQL that is deleted at the end, also if a signal ends the
    command."""
    from recrawl.setup import embedded, migrate

    with tempfile.TemporaryDirectory(prefix="recrawl-laboratory-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        if sys.platform != "win32":  # embedded.server() refuses it
            for number in (signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is signal.SIG_DFL:  # under nohup the command goes on after SIGHUP
                    signal.signal(number, signal.default_int_handler)
        with embedded.server(Path(folder) / "data") as url:
            migrate.upgrade(url)
            yield url
