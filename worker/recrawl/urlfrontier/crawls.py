"""The crawls of a service. Each has a database of its own. The service was given the database of the crawl DEFAULT."""

import asyncio
import logging
import re
from collections.abc import Callable
from functools import partial

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.conninfo import make_conninfo

from recrawl.client import Error
from recrawl.client.database import one_line
from recrawl.urlfrontier.crawl_database import CrawlDatabase
from recrawl.urlfrontier.puts import Puts

log = logging.getLogger("recrawl.urlfrontier")

DEFAULT = "DEFAULT"
AGAIN = 1.0  # seconds until the next try to make a crawl, after a failure
NAMED = re.compile(r"[A-Za-z0-9_.-]{1,30}")
LONGEST_NAME = 63  # bytes: PostgreSQL cuts longer names of databases


class UnknownCrawl(Exception):
    """The message is one line that says what is wrong with the crawlID."""


class Crawls:
    def __init__(self, url: str, migrate: Callable[[str], None]) -> None:
        self._url = url
        self._migrate = migrate  # brings an empty database to the newest version; takes its URL
        self._migrating = asyncio.Lock()  # Alembic's state is global in a process
        self._open: dict[str, asyncio.Task[tuple[CrawlDatabase, Puts]]] = {}  # or opening

    async def open(self) -> None:
        default = (await self._opened(DEFAULT, make=False))[0]
        self._database = await default.database_name()  # asked, because a DATABASE_URL may leave the name out

    async def close_puts(self) -> None:
        for _, puts in self._opened_so_far():
            await puts.close()

    async def close(self) -> None:
        """No call may run any more: it would connect again."""
        await self.close_puts()
        for crawl, _ in self._opened_so_far():
            await crawl.close()

    def _opened_so_far(self) -> list[tuple[CrawlDatabase, Puts]]:
        tasks = self._open.values()
        return [task.result() for task in tasks if task.done() and not task.cancelled() and not task.exception()]

    async def crawl(self, name: str) -> CrawlDatabase:
        return (await self._opened(name, make=False))[0]

    async def puts(self, name: str) -> Puts:
        """The puts of a crawl. The crawl is made if it does not exist."""
        if not NAMED.fullmatch(name or DEFAULT):
            raise UnknownCrawl(f"a crawlID is 1 to 30 letters, digits, and _.-, got {name[:40]!r}")
        if (name or DEFAULT) != DEFAULT and len(self._name_of(name).encode()) > LONGEST_NAME:
            raise UnknownCrawl(f"the name of its database, {self._name_of(name)}, is longer than {LONGEST_NAME} bytes")
        return (await self._opened(name, make=True))[1]

    async def names(self) -> list[str]:
        default = await self.crawl(DEFAULT)
        return [DEFAULT, *filter(NAMED.fullmatch, await default.beside())]

    async def all(self) -> list[CrawlDatabase]:
        """All crawls that can be opened. A crawl that cannot (no permission, not migrated) is logged and left out."""
        crawls = []
        for name in await self.names():
            try:
                crawls.append(await self.crawl(name))
            except (Error, UnknownCrawl, psycopg.Error) as error:
                log.warning("the crawl %s is left out: %s", name, one_line(error))
        return crawls

    async def _opened(self, name: str, make: bool) -> tuple[CrawlDatabase, Puts]:
        name = name or DEFAULT
        # This check comes before the task is made. Otherwise a call that only reads would make a task that fails, and a
        # put at the same moment would wait for that task and get its failure.
        if name not in self._open and not make and name != DEFAULT and name not in await self.names():
            raise UnknownCrawl(f"there is no crawl {name[:40]}")
        if name not in self._open:
            self._open[name] = asyncio.create_task(self._opening(name, make))
            self._open[name].add_done_callback(partial(self._forget_if_failed, name, make))
        opening = self._open[name]
        try:
            return opening.result() if opening.done() else await asyncio.shield(opening)
        except Exception as error:
            # Thousands of callers may get this error: with a traceback it would keep the frames of each.
            raise error.with_traceback(None) from None

    def _forget_if_failed(self, name: str, make: bool, opening: asyncio.Task[tuple[CrawlDatabase, Puts]]) -> None:
        """After a failure the next call tries again. If the crawl must be made, the next try waits a second, because
        thousands of puts may be asking for it."""
        if opening.cancelled() or not (error := opening.exception()):
            return
        if make:
            log.warning("crawl %s: %s", name, one_line(error))
            asyncio.get_running_loop().call_later(AGAIN, self._open.pop, name, None)
        else:
            del self._open[name]

    async def _opening(self, name: str, make: bool) -> tuple[CrawlDatabase, Puts]:
        url = self._url if name == DEFAULT else make_conninfo(self._url, dbname=self._name_of(name))
        is_new = make and await self._make(name, url)
        crawl = CrawlDatabase(url, name)
        try:
            await crawl.open()
            if is_new and await (await self.crawl(DEFAULT)).is_paused():
                await crawl.pause(True)  # because SetActive has paused all crawls
        except BaseException:
            await crawl.close()
            raise
        return crawl, Puts(crawl)

    def _name_of(self, name: str) -> str:
        return f"{self._database}~{name}"

    async def _make(self, name: str, url: str) -> bool:
        """Creates the database and migrates it, each if necessary: an earlier process may have been killed between the
        two. Returns whether it migrated the database."""
        if name not in await self.names():
            database = sql.Identifier(self._name_of(name))
            made = sql.SQL("create database {} template template0 encoding 'UTF8'").format(database)
            async with await AsyncConnection.connect(self._url, autocommit=True) as connection:
                await connection.execute(made)
        async with await AsyncConnection.connect(url, autocommit=True) as connection:
            is_empty = (await connection.execute("select where to_regnamespace('recrawl') is null")).rowcount == 1
        if is_empty:
            try:
                async with self._migrating:
                    await asyncio.to_thread(self._migrate, url)
            except SystemExit as error:
                raise Error(str(error)) from None
        return is_empty
