"""The SQL functions that a client calls. If a connection breaks, it is made again.

A call whose connection broke is made again, although the first call may have arrived. A second report is a duplicate,
and a second release finds nothing. If the answer of next_pages is lost, its lease ends and the pages come back; if the
answer of take_slot is lost, the slot passes. A second hint_change makes its pages due still earlier. A second
extend_lease adds its time again.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, LiteralString, NamedTuple, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import namedtuple_row

from recrawl.client.clock import Clock

log = logging.getLogger("recrawl.client")

Arguments = Sequence[object] | Mapping[str, object]
Element = TypeVar("Element")
Answer = TypeVar("Answer")

NAME = "recrawl client"  # the application_name of its connections
# A connection without answers ends after about half a minute, unless the DSN says otherwise.
TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
ENCODING = {"client_encoding": "UTF8"}  # also if the database has another default: URLs may have any character
# psycopg reads times only in these styles. A database or a login may have other defaults.
STYLES = {"DateStyle": "ISO", "IntervalStyle": "postgres"}
LIMIT = "54"  # the class of errors for a call that is too large for the server. A second try would fail too
# The database is away. After a failover the old primary may still answer, but it refuses to write.
AWAY = (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction)
# These errors end the call, but not the connection. They are no fault of the call, so it is made again. They are
# OperationalErrors, so AWAY contains them.
IN_THE_WAY = (
    psycopg.errors.DeadlockDetected,
    psycopg.errors.LockNotAvailable,
    psycopg.errors.QueryCanceled,
    psycopg.errors.SerializationFailure,
)
# `recrawl migrate` replaces functions and types while calls run. Such a call fails, the next one finds the new ones.
REPLACED = (
    psycopg.errors.UndefinedFunction,
    psycopg.errors.UndefinedColumn,
    psycopg.errors.UndefinedObject,
    psycopg.errors.UndefinedTable,
    psycopg.errors.InternalError_,
)
MOST_REPLACED = 5  # more failures of one call have another reason
PATIENCE = 2.0  # seconds
MOST_CUT = 5  # a call that was cut short this number of times is too long
LOOKS_AHEAD = (60, 10, 1)  # seconds ahead in which to look for a slot; the setting max_ahead may refuse the longer ones
LONGEST_REPORT = 8_000_000  # characters of a call
FUNCTIONS = {
    "add_pages": "text[], float8[], float8[], timestamptz[], jsonb[], text[]",
    "claim": "text",
    "extend_lease": "bigint, interval",
    "blocked_hosts": "text[]",
    "blocked_pages": "bigint[]",
    "hint_change": "bigint[], float8, float8, timestamptz[]",
    "next_pages": "int, interval, interval, int, interval, text",
    "next_ready_at": "",
    "release": "bigint, bigint[], boolean",
    "report": "jsonb",
    "robots": "text[]",
    "set_robots": "text, int, text, float8, text",
    "take_slot": "text, interval, interval",
}


class Error(Exception):
    """An error that stops a client. Its message is one line."""


class NoHost(Exception):
    """No host can have this name."""


class TooLong(Error):
    """A call is too long: it was cut short too often, for example by the login's statement_timeout, or it is a report
    with more than LONGEST_REPORT characters."""


class GaveUp(Exception):
    """The database did not answer until the time `give_up_at`."""


class Reported(NamedTuple):
    code: str
    detail: str | None
    is_blocked: bool


def with_timeouts(dsn: str, **options: str) -> str:
    """The connection string with these options and with timeouts. A value in the string counts instead of a
    timeout or an option. Only the encoding is always UTF-8."""
    return make_conninfo(dsn, **options | TIMEOUTS | conninfo_to_dict(dsn) | ENCODING)


def styles_to_set(info: psycopg.ConnectionInfo) -> list[tuple[str, str]]:
    """The settings in which a new connection differs from STYLES. Usually it differs in none."""
    present = {name: info.parameter_status(name) for name in STYLES}
    return [(name, style) for name, style in STYLES.items() if not (present[name] or style).startswith(style)]


class Connection:
    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.AsyncConnection[Any] | None = None
        self._lock = asyncio.Lock()
        self.give_up_at: float | None = None  # when to give up on a database that is away, by the monotonic clock

    async def open(self) -> None:
        """Connects. Raises an Error if the schema or a right that the client needs is missing."""
        try:
            self._dsn = with_timeouts(self._dsn, application_name=NAME)
        except psycopg.ProgrammingError as error:
            raise Error(f"the connection string is not valid: {one_line(error)}") from None
        try:
            await self._connect()
            await self._check()
        except psycopg.OperationalError as error:
            raise Error(f"cannot connect to the database: {no_connection(error)}") from None

    async def close(self) -> None:
        if self._connection:
            await self._connection.close()

    async def _connect(self) -> None:
        # No statement is prepared, because a connection pooler may give each transaction another session.
        connection = await psycopg.AsyncConnection.connect(
            self._dsn, autocommit=True, prepare_threshold=None, row_factory=namedtuple_row
        )
        try:
            for name, style in styles_to_set(connection.info):
                await connection.execute("select pg_catalog.set_config(%s, %s, false)", [name, style])
        except BaseException:
            await connection.close()
            raise
        self._connection = connection

    async def _check(self) -> None:
        (is_there,) = await self._execute("select to_regnamespace('recrawl') is not null as is_there", [])
        name = self._connection.info.dbname if self._connection else ""
        if not is_there.is_there:
            raise Error(
                f"the database {name} has no tables of recrawl yet. Run `recrawl migrate` with its URL as DATABASE_URL"
            )
        rows = await self._execute(
            """
            select v.name, f.oid is not null as is_there,
                   has_function_privilege(f.oid, 'execute') is true as may_call
            from unnest(%s::text[], %s::text[]) as v (name, arguments)
            cross join has_schema_privilege('recrawl', 'usage') as u (may_use)
            cross join lateral (select case when u.may_use then to_regprocedure(
                format('recrawl.%%s(%%s)', v.name, v.arguments)) end) as f (oid)
            """,
            [list(FUNCTIONS), list(FUNCTIONS.values())],
        )
        if any(not row.may_call for row in rows if row.is_there) or not any(row.is_there for row in rows):
            raise Error(
                f"this login may not crawl the database {name}. The owner can allow it: "
                "GRANT recrawl_crawler TO the login"
            )
        if missing := [row.name for row in rows if not row.is_there]:
            raise Error(
                f"the database {name} has another version of recrawl than this client. These functions are missing:"
                f" {', '.join(missing)}. Run `recrawl migrate`, or update the client"
            )

    async def _execute(self, query: LiteralString, arguments: Arguments) -> list[Any]:
        assert self._connection
        cursor = await self._connection.execute(query, arguments)
        return await cursor.fetchall()

    async def call(self, query: LiteralString, arguments: Arguments = (), most_cut: int = MOST_CUT) -> list[Any]:
        """The rows of a query. If the database is away, or another session is in the way, it is made again, over a new
        connection if the old one broke. Errors of the call itself are raised.

        It fails with TooLong if it was cut short `most_cut` times, and with GaveUp after the time `give_up_at`. But if
        another session is in its way, it is made again for PATIENCE at least.
        """
        pause, cut, replaced = 0.1, 0, 0
        began = time.monotonic()
        async with self._lock:
            while True:
                is_new = not self._connection or self._connection.closed
                try:
                    if is_new:
                        await self._connect()
                        log.info("the database is back")
                    return await self._execute(query, arguments)
                except (*AWAY, *REPLACED) as error:
                    replaced += isinstance(error, REPLACED)
                    if (error.sqlstate or "").startswith(LIMIT) or replaced > MOST_REPLACED:
                        raise
                    cut += isinstance(error, psycopg.errors.QueryCanceled)
                    if cut >= most_cut:
                        raise TooLong(f"a call takes longer than this login is given: {one_line(error)}") from None
                    what, give_up_at = "a call is made again", self.give_up_at
                    if isinstance(error, (*IN_THE_WAY, *REPLACED)):
                        give_up_at = None if give_up_at is None else max(give_up_at, began + PATIENCE)
                    else:
                        what = "the database is away"
                        await self.close()
                        # An old connection may have broken long ago. A new one shows whether the database is away.
                        if not is_new:
                            log.warning("the connection is lost: %s", one_line(error))
                            continue
                    if give_up_at is not None and time.monotonic() + pause > give_up_at:
                        raise GaveUp from None
                    log.warning("%s: %s", what, no_connection(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, 5)


class Database:
    def __init__(self, dsn: str, clock: Clock) -> None:
        self._clock = clock
        self._slow = Connection(dsn)  # for reports and other writes, which may take long
        self._quick = Connection(dsn)  # for calls that must not wait for these: pages and slots have to come in time

    async def open(self) -> None:
        """Connects, and asks the time."""
        await self._slow.open()
        await self._quick.open()
        for _ in range(5):  # the fastest one is the most exact
            sent = time.monotonic()
            (row,) = await self._quick.call("select clock_timestamp() as now")
            self._clock.learn(sent, time.monotonic(), row.now)

    async def close(self) -> None:
        await self._quick.close()
        await self._slow.close()

    def set_give_up_at(self, moment: float) -> None:
        """Both connections give up at this monotonic time on a database that is away."""
        self._slow.give_up_at = self._quick.give_up_at = moment

    async def next_pages(self, n: int, ahead: float, lease: float, per_host: int | None, notice: float) -> list[Any]:
        sent = time.monotonic()
        rows = await self._quick.call(
            "select page_id, url, host, fetch_at, start_by, wait, lease_id, lease_until, attempt, value, etag,"
            " last_modified, content_hash, meta from recrawl.next_pages(%s, %s, %s, %s, %s)",
            [n, timedelta(seconds=ahead), timedelta(seconds=lease), per_host, timedelta(seconds=notice)],
        )
        answered = time.monotonic()
        if rows:
            self._clock.learn(sent, answered, rows[0].fetch_at - rows[0].wait)
        return rows

    async def ready_in(self, longest: float) -> float:
        """Seconds until a page may be ready, at most `longest`."""
        sent = time.monotonic()
        (row,) = await self._quick.call("select recrawl.next_ready_at() as ready_at, clock_timestamp() as now")
        self._clock.learn(sent, time.monotonic(), row.now)
        if row.ready_at is None:
            return longest
        return max(0.0, min(longest, float((row.ready_at - row.now).total_seconds())))

    async def report(self, results: Sequence[dict[str, Any]]) -> list[Reported]:
        """The answer to each result. A result that the database cannot read does not harm the others."""

        async def report(part: Sequence[dict[str, Any]]) -> list[Reported]:
            text = json.dumps(part, default=str)
            if len(text) > LONGEST_REPORT and len(part) > 1:
                raise TooLong(f"a report of {len(text)} characters")
            rows = await self._slow.call(
                "select code, detail, blocked_until is not null as is_blocked from recrawl.report(%s::jsonb)"
                " order by ord",
                [text],
                MOST_CUT if len(part) == 1 else 1,
            )
            return [Reported(*row) for row in rows]

        return await in_halves(report, results, lambda _, error: Reported("invalid", one_line(error), False))

    async def release(self, lease_id: int, page_ids: list[int], slot_used: bool) -> None:
        await self._slow.call("select recrawl.release(%s, %s::bigint[], %s)", [lease_id, page_ids, slot_used])

    async def extend_lease(self, lease_id: int, by: float) -> datetime | None:
        (row,) = await self._slow.call(
            "select recrawl.extend_lease(%s, %s) as until", [lease_id, timedelta(seconds=by)]
        )
        until: datetime | None = row.until
        return until

    async def blocked_pages(self, lease_ids: list[int]) -> set[tuple[int, int]]:
        rows = await self._quick.call("select lease_id, page_id from recrawl.blocked_pages(%s::bigint[])", [lease_ids])
        return {(row.lease_id, row.page_id) for row in rows}

    async def blocked_hosts(self, hosts: list[str]) -> set[str]:
        return {row.host for row in await self._quick.call("select * from recrawl.blocked_hosts(%s) host", [hosts])}

    async def robots(self, urls: list[str]) -> list[Any]:
        return await self._quick.call(
            "select ord, rules, extract(epoch from good_for)::float8 as good_for from recrawl.robots(%s::text[])",
            [urls],
        )

    async def set_robots(
        self, url: str, status: int, rules: str | None, crawl_delay: float | None, retry_after: str | None
    ) -> bool:
        (row,) = await self._slow.call(
            "select recrawl.set_robots(%s, %s, %s, %s, %s) as is_known",
            [url, status, rules, crawl_delay, retry_after],
        )
        return bool(row.is_known)

    async def take_slot(self, host: str, notice: float) -> tuple[datetime, datetime] | None:
        """The fetch_at and start_by of a slot. None: the host gives none, or none that is near enough."""
        for ahead in LOOKS_AHEAD:
            try:
                rows = await self._quick.call(
                    "select fetch_at, start_by from recrawl.take_slot(%s, %s, %s)",
                    [host, timedelta(seconds=ahead), timedelta(seconds=min(notice, ahead / 2))],
                )
            except psycopg.DataError as error:
                if "host must" in str(error):
                    raise NoHost from None
            else:
                return (rows[0].fetch_at, rows[0].start_by) if rows else None
        return None

    async def add_pages(self, pages: Sequence[tuple[str, object]]) -> list[Any]:
        """Adds URLs, each with the meta of its page. Returns the page_id of each, and whether it is new. A URL that the
        database cannot read does not harm the others."""

        async def add(part: Sequence[tuple[str, object]]) -> list[Any]:
            return await self._slow.call(
                "select page_id, code from recrawl.add_pages(%s::text[], meta => %s::jsonb[]) order by ord",
                [[url for url, _ in part], [None if meta is None else json.dumps(meta) for _, meta in part]],
                MOST_CUT if len(part) == 1 else 1,
            )

        def refused(page: tuple[str, object], error: Exception) -> Any:
            log.warning("%.200r cannot be added: %s", page[0], one_line(error))
            return SimpleNamespace(page_id=None, code="invalid")

        return await in_halves(add, pages, refused)

    async def claim(self, name: str) -> str:
        (row,) = await self._slow.call("select recrawl.claim(%s) as owner", [name])
        return str(row.owner)

    async def hint_change(self, page_ids: list[int], changed_at: list[datetime]) -> None:
        await self._slow.call(
            "select recrawl.hint_change(%s::bigint[], changed_at => %s::timestamptz[])", [page_ids, changed_at]
        )


async def in_halves(
    call: Callable[[Sequence[Element]], Awaitable[list[Answer]]],
    elements: Sequence[Element],
    refused: Callable[[Element, Exception], Answer],
) -> list[Answer]:
    """The answer to each element. If a call with several elements fails, each half is tried alone. If the database
    cannot read an element, `refused` makes its answer."""
    try:
        return await call(elements)
    except TooLong:
        if len(elements) == 1:
            raise
    except (psycopg.DataError, psycopg.OperationalError, TypeError, ValueError, RecursionError) as error:
        if len(elements) == 1:
            return [refused(elements[0], error)]
    half = len(elements) // 2
    return await in_halves(call, elements[:half], refused) + await in_halves(call, elements[half:], refused)


def no_connection(error: psycopg.Error) -> str:
    """Why a connection cannot be made, in one line."""
    if re.search(r'on socket "\S*/recrawl-\d+-.*failed: (No such file|Connection refused)', str(error)):
        # If DATABASE_URL names another database of the embedded server, `recrawl up` does not start that server.
        return "the embedded PostgreSQL does not run: start `env -u DATABASE_URL recrawl up` and leave it running"
    return re.sub(r"\s+Is the server running .*?\?", "", one_line(error))


def one_line(error: BaseException) -> str:
    """The message in one line, without the context in PostgreSQL's functions."""
    first = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return " ".join((first or str(error)).split())
