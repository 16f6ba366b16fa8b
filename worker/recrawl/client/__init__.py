"""The clients for crawlers: `Client` for asyncio, `ThreadedClient` for threads.

They need psycopg, protego and xxhash. Only the worker needs numpy, SQLAlchemy and other packages.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.client.crawl import Client
    from recrawl.client.database import Error
    from recrawl.client.page import Page
    from recrawl.client.threads import ThreadedClient

__all__ = ["Client", "Error", "Page", "ThreadedClient"]


_FILES = {"Client": "crawl", "Error": "database", "Page": "page", "ThreadedClient": "threads"}


def __getattr__(name: str) -> Any:
    """Loads a name when it is used. So `from recrawl.client import fingerprint` loads no database driver."""
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"recrawl.client.{_FILES[name]}"), name)
