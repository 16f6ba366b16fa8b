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
    """Loads a name when it is used. So `from recrawl.client import fingerprint` loads no database driver."""
    if name == "ThreadedClient":
        from recrawl.client.threads import ThreadedClient as found
    elif name == "Client":
        from recrawl.client.crawl import Client as found  # type: ignore[assignment]
    elif name == "Page":
        from recrawl.client.page import Page as found  # type: ignore[assignment]
    elif name == "Error":
        from recrawl.client.database import Error as found  # type: ignore[assignment]
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found
