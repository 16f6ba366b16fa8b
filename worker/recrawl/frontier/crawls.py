"""The crawls of a service: each has a database of its own. The one that it was given is DEFAULT."""

import asyncio
import re
from collections.abc import Callable

from psycopg import AsyncConnection, sql
from sqlalchemy.engine import make_url

from recrawl.frontier.crawl import Crawl
from recrawl.frontier.puts import Puts

DEFAULT = "DEFAULT"
NAMED = re.compile(r"[A-Za-z0-9_.-]{1,30}")  # with the name of the database before it, a name that PostgreSQL takes


class UnknownCrawl(Exception):
    """In a line, what is wrong with it."""


class Crawls:
    def __init__(self, url: str, migrate: Callable[[str], None]) -> None:
        self._url = url
        self._migrate = migrate  # brings an empty database to the newest version; takes its URL
        self._open: dict[str, asyncio.Task[tuple[Crawl, Puts]]] = {}  # or opening

    async def open(self) -> None:
        await self.crawl(DEFAULT)

    async def close(self) -> None:
        for task in self._open.values():
            if task.done() and not task.cancelled() and not task.exception():
                crawl, puts = task.result()
                await puts.close()
                await crawl.close()

    async def crawl(self, name: str) -> Crawl:
        return (await self._opened(name, make=False))[0]

    async def puts(self, name: str) -> Puts:
        """Of a crawl that is made where there is none."""
        return (await self._opened(name, make=True))[1]

    async def names(self) -> list[str]:
        async with await AsyncConnection.connect(self._url, autocommit=True) as connection:
            base = connection.info.dbname
            cursor = await connection.execute("select datname from pg_database where datname ~ %s", [f"^{base}~"])
            return [DEFAULT, *sorted(name.removeprefix(f"{base}~") for (name,) in await cursor.fetchall())]

    async def _opened(self, name: str, make: bool) -> tuple[Crawl, Puts]:
        name = name or DEFAULT
        if name not in self._open:
            self._open[name] = asyncio.create_task(self._opening(name, make))
        opening = self._open[name]
        try:
            return opening.result() if opening.done() else await asyncio.shield(opening)
        except BaseException:
            if opening.done() and self._open.get(name) is opening:
                del self._open[name]  # the next one tries again
            raise

    async def _opening(self, name: str, make: bool) -> tuple[Crawl, Puts]:
        crawl = Crawl(await self._place(name, make), name)
        await crawl.open()
        return crawl, Puts(crawl)

    async def _place(self, name: str, make: bool) -> str:
        if name == DEFAULT:
            return self._url
        if not NAMED.fullmatch(name):
            raise UnknownCrawl(f"a crawlID is 1 to 30 letters, digits, and _.-, got {name[:40]!r}")
        if name not in await self.names():
            if not make:
                raise UnknownCrawl(f"there is no crawl {name}")
            await self._make(name)
        return self._of(name)

    def _of(self, name: str) -> str:
        url = make_url(self._url)
        return url.set(database=f"{url.database}~{name}").render_as_string(hide_password=False)

    async def _make(self, name: str) -> None:
        url = self._of(name)
        database = sql.Identifier(make_url(url).database or "")
        async with await AsyncConnection.connect(self._url, autocommit=True) as connection:
            await connection.execute(sql.SQL("create database {} template template0 encoding 'UTF8'").format(database))
        await asyncio.to_thread(self._migrate, url)
