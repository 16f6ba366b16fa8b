"""The clients for crawlers: `Client` for asyncio, `ThreadedClient` for threads.

They need psycopg, protego and xxhash. Only the worker needs numpy, SQLAlchemy and other packages.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recrawl.client.crawl import Client
    from recrawl.client.database import Error
    from recrawl.client.page import Page
    from recrawl.client.threads import ThreadedClient

__all__ = ["Client", "Error", "Page", "ThreadedClient"]


def __getattr__(name: str) -> Any:
    """Loads the classes when one is used. So `from recrawl.client import fingerprint` loads no database driver."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from recrawl.client.crawl import Client
    from recrawl.client.database import Error
    from recrawl.client.page import Page
    from recrawl.client.threads import ThreadedClient

    return next(found for found in (Client, Error, Page, ThreadedClient) if found.__name__ == name)
