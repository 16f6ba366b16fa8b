"""A crawl as the service needs it: the queries to its database. If the database is away, a call fails at once.

Three connections, so that none of them keeps the others waiting: `_puts` for puts, `_quick` for next_pages, settings
and the steering of hosts, and `_slow` for queries over all pages and for deleting pages.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString, NamedTuple

from psycopg.conninfo import make_conninfo

from recrawl.client.database import Connection
from recrawl.urlfrontier.items import Put

AT_ONCE = 5000  # pages that one query reads or deletes: a crawl may have millions
SHORTEST_DELAY = 0.001  # seconds
AT_LIMIT = "by SetCrawlLimit"  # the reason of a block
# The pages of a host, or of all hosts if no host is named. Excluded and kept-out pages are left out.
PAGES: LiteralString = """
    from (select *, state in ('done', 'declined', 'gone', 'moved') as is_done from recrawl.page_status) p
    where state not in ('excluded', 'kept_out') and (%(host)s = '' or host = lower(%(host)s))
"""
MATCHING: LiteralString = """
    and (%(filter)s = '' or position(%(filter)s in url) > 0
         or %(ignores_case)s and position(lower(%(filter)s) in lower(url)) > 0)
"""


class CrawlLimit(NamedTuple):
    """The limit of a queue, and the ids of its completed pages. When the limit is set, at most `most` ids are read."""

    most: int
    done: set[int]


class CrawlDatabase:
    def __init__(self, dsn: str, name: str) -> None:
        self.name = name
        self.has_too_few = False  # the last GetURLs found fewer queues than it asked for
        self._limits: dict[str, CrawlLimit] = {}  # by host. As in URLFrontier, a restart of the server forgets them
        self._puts, self._quick, self._slow = self._connections = [
            Connection(make_conninfo(dsn, application_name="recrawl urlfrontier")) for _ in range(3)
        ]

    async def open(self) -> None:
        """Raises recrawl.client.Error if the database cannot be reached, or is no crawl."""
        for connection in self._connections:
            await connection.open()
            connection.give_up_at = 0.0  # from now on GaveUp is raised at once, if the database is away

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()

    # ------------------------------------------------------------------------------------------------- puts

    async def add(self, puts: Sequence[Put]) -> list[Any]:
        """Adds pages. Returns the rows of add_pages, with page_id and code, once they are committed."""
        # Binary, because psycopg would otherwise search the metadata for characters to escape. That search takes a
        # tenth of the time that a put costs the service.
        return await self._puts.call(
            "select page_id, code from recrawl.add_pages("
            "%s::text[], due => %s::timestamptz[], meta => %b::text[]::jsonb[], host => %s::text[]) order by ord",
            [[getattr(put, field) for put in puts] for field in ("url", "due", "meta", "host")],
            most_cut=1,
        )

    async def report(self, page_ids: Sequence[int], puts: Sequence[Put]) -> list[str]:
        """Reports known pages on their present leases. Returns the codes of report."""
        leases = await self._puts.call("select * from recrawl.leases_of(%s::bigint[])", [page_ids], most_cut=1)
        lease_of = {row.page_id: row.lease_id for row in leases}
        rows = await self._puts.call(
            """
            select code
            from recrawl.report_pages(%(pages)s::bigint[], %(leases)s::bigint[], %(statuses)s::int[],
                content_hash => %(hashes)s::text[], meta => %(metas)b::text[]::jsonb[], due => %(dues)s::timestamptz[])
            order by ord
            """,
            {
                "pages": page_ids, "leases": [lease_of.get(page_id) for page_id in page_ids],
                "statuses": [put.status for put in puts], "metas": [put.meta for put in puts],
                "hashes": [put.content_hash for put in puts], "dues": [put.due for put in puts],
            },
            most_cut=1,
        )  # fmt: skip
        return [row.code for row in rows]

    # ------------------------------------------------------------------------------ next_pages and settings

    async def database_name(self) -> str:
        (row,) = await self._quick.call("select current_database() as name")
        return str(row.name)

    async def beside(self) -> list[str]:
        """The IDs of crawls with a database of their own: NAME~ID, where this one is called NAME."""
        rows = await self._quick.call(
            """
            select substr(datname, length(base) + 1) as name
            from pg_database cross join concat(current_database(), '~') as base
            where starts_with(datname, base)
            order by 1
            """
        )
        return [row.name for row in rows]

    async def next_pages(self, hosts: int, per_host: int, held: float, host: str) -> list[Any]:
        """Pages of hosts that may be requested now: at most `per_host` of a host, and only as many as have slots within
        max_ahead and within `held` seconds. Each page has a slot of its own, which no other call gets."""
        return await self._quick.call(
            """
            with
            s as materialized (
                select least(%(held)s, min(value::interval) filter (where name = 'longest_lease')) as held,
                       min(value::interval) filter (where name = 'max_ahead') as max_ahead,
                       min(value::int) filter (where name = 'max_per_call') as most
                from recrawl.settings where name in ('longest_lease', 'max_ahead', 'max_per_call')
            ),
            -- One page of each host.
            first as materialized (
                select p.*
                from s
                cross join lateral recrawl.next_pages(least(%(hosts)s, s.most), lease => s.held, host => %(host)s) p
            )
            select url, host, meta from first
            union all
            select p.url, p.host, p.meta
            from s
            cross join lateral (select least(s.max_ahead, s.held - interval '1 second') as ahead) a
            cross join first
            cross join lateral recrawl.next_pages(
                least(%(per_host)s - 1, s.most), ahead => a.ahead, lease => s.held - a.ahead,
                per_host => %(per_host)s, host => first.host) p
            where %(per_host)s > 1
            """,
            {"hosts": hosts, "per_host": per_host, "held": timedelta(seconds=held), "host": host or None},
        )

    # -------------------------------------------------------------------------------- queries over all pages

    async def page(self, url: str) -> Any | None:
        rows = await self._slow.call(
            f"select url, host, meta, due_at, added_at, is_done {PAGES} and page_id = recrawl.page_of(%(url)s)",
            {"url": url, "host": ""},
        )
        return rows[0] if rows else None

    async def pages(self, host: str, start: int, size: int, filter: str, ignores_case: bool) -> AsyncIterator[Any]:
        """Reads on as fast as the caller takes the pages."""
        last = 0
        while size > 0:
            rows = await self._slow.call(
                f"select page_id, url, host, meta, due_at, added_at, is_done {PAGES} {MATCHING} and page_id > %(last)s"
                " order by page_id offset %(start)s limit %(size)s",
                {
                    "host": host, "filter": filter, "ignores_case": ignores_case,
                    "last": last, "start": start, "size": min(size, AT_ONCE),
                },
            )  # fmt: skip
            for row in rows:
                yield row
            if len(rows) < AT_ONCE:
                return
            last, start, size = rows[-1].page_id, 0, size - len(rows)

    async def count(self, host: str, filter: str, ignores_case: bool) -> int:
        (row,) = await self._slow.call(
            f"select count(*) as pages {PAGES} {MATCHING}",
            {"host": host, "filter": filter, "ignores_case": ignores_case},
        )
        return int(row.pages)

    async def stats(self, host: str) -> Any:
        """Exact counts of everything that is committed."""
        (row,) = await self._slow.call(
            f"""
            select count(*) filter (where not is_done) as waiting, count(*) filter (where is_done) as done,
                   count(distinct host) filter (where not is_done) as active_hosts, count(distinct host) as hosts,
                   (select count(*) from recrawl.leases_of() l
                    where %(host)s = '' or lower(%(host)s) =
                          (select p.host from recrawl.page_status p where p.page_id = l.page_id)) as leased
            {PAGES}
            """,
            {"host": host},
        )
        return row

    async def hosts(self, start: int, size: int, also_inactive: bool) -> list[str]:
        """The hosts that have pages to fetch and are not blocked; with `also_inactive` all hosts."""
        rows = await self._slow.call(
            f"""
            select p.host
            from (select host, bool_or(not is_done) as is_active {PAGES} group by host) p
            join recrawl.host_status h using (host)
            where %(also)s or p.is_active and h.blocked_until is null
            order by p.host offset %(start)s limit %(size)s
            """,
            {"host": "", "also": also_inactive, "start": start, "size": size},
        )
        return [row.host for row in rows]

    async def is_paused(self) -> bool:
        (row,) = await self._quick.call("select value::boolean as yes from recrawl.settings where name = 'paused'")
        return bool(row.yes)

    # ---------------------------------------------------------------------------------------------- steering

    async def pause(self, paused: bool) -> None:
        await self._quick.call("select recrawl.pause()" if paused else "select recrawl.resume()")

    async def knows(self, host: str) -> bool:
        """Whether there is such a host. Ask first: the functions that steer a host add an unknown host."""
        return bool(await self._quick.call("select from recrawl.host_status where host = lower(%s)", [host]))

    async def set_default_delay(self, seconds: float) -> None:
        await self._quick.call("select recrawl.set_setting('default_gap', %s)", [f"{max(seconds, SHORTEST_DELAY)} s"])

    async def set_delay(self, host: str, seconds: float) -> None:
        gap = timedelta(seconds=max(seconds, SHORTEST_DELAY))
        await self._quick.call("select recrawl.set_host(%s, gap => %s)", [host, gap])

    async def block(self, host: str, until: int) -> None:
        """`until` is in seconds since 1970. A time in the past ends the block."""
        if until <= datetime.now(UTC).timestamp():
            await self._quick.call("select recrawl.unblock_host(%s)", [host])
        else:
            await self._quick.call(
                "select recrawl.block_host(%s, to_timestamp(%s), 'by BlockQueueUntil')", [host, min(until, 1e11)]
            )
        await self._keep_limit(host.lower())

    async def limit(self, host: str, most: int) -> None:
        """A host with `most` completed pages is blocked. 0 = no limit."""
        host = host.lower()
        self._limits.pop(host, None)
        await self._keep_limit(host)  # ends the block of the old limit
        if most:
            rows = await self._slow.call(
                f"select page_id {PAGES} and is_done limit %(most)s", {"host": host, "most": most}
            )
            self._limits[host] = CrawlLimit(most, {row.page_id for row in rows})
            await self._keep_limit(host)

    async def note_completed(self, page_ids: Sequence[int]) -> None:
        """Blocks the hosts that reached their limits with these pages, which clients have just put."""
        if not self._limits:
            return
        rows = await self._puts.call(
            f"select page_id, host, is_done {PAGES} and page_id = any (%(pages)s::bigint[])",
            {"host": "", "pages": page_ids},
        )
        for row in rows:
            if limit := self._limits.get(row.host):
                (limit.done.add if row.is_done else limit.done.discard)(row.page_id)
        for host in {row.host for row in rows}.intersection(self._limits):
            await self._keep_limit(host)

    async def _keep_limit(self, host: str) -> None:
        limit = self._limits.get(host)
        query: LiteralString = "unblock_host(host) from recrawl.host_status where blocked_reason = %(reason)s"
        if limit is not None and len(limit.done) >= limit.most:
            query = (
                "block_host(host, reason => %(reason)s) from recrawl.host_status"
                " where blocked_reason is distinct from %(reason)s"
            )
        await self._quick.call(f"select recrawl.{query} and host = %(host)s", {"host": host, "reason": AT_LIMIT})

    async def reset(self, host: str) -> None:
        """Ends the block, the delay and the limit of a host; of all hosts if none is named."""
        for limited in [host.lower()] if host else list(self._limits):
            self._limits.pop(limited, None)
        await self._quick.call(
            """
            select recrawl.set_host(host, reset => '{gap}'),
                   case when blocked_until is not null then recrawl.unblock_host(host) end
            from recrawl.host_status
            where (%(host)s = '' or host = lower(%(host)s))
              and (blocked_until is not null
                   or gap <> (select value::interval from recrawl.settings where name = 'default_gap'))
            """,
            {"host": host},
        )

    async def purge(self, host: str, older_than: timedelta) -> int:
        """Returns the number of deleted pages."""
        deleted, _ = await self._delete(host, older_than)
        for limited, limit in list(self._limits.items()):
            await self.limit(limited, limit.most)
        return deleted

    async def delete(self, host: str) -> int:
        """Deletes the pages of a host, or of all hosts, and what was set for it. Returns how many were not done."""
        _, waited = await self._delete(host, None)
        await self.reset(host)
        return waited

    async def _delete(self, host: str, older_than: timedelta | None) -> tuple[int, int]:
        """Returns the number of deleted pages, and how many of them were not done."""
        deleted = waited = last = 0
        while rows := await self._slow.call(
            f"select page_id, is_done {PAGES} and (%(age)s::interval is null or added_at < now() - %(age)s)"
            " and page_id > %(last)s order by page_id limit %(most)s",
            {"host": host, "age": older_than, "last": last, "most": AT_ONCE},
        ):
            await self._slow.call("select recrawl.delete_pages(%s::bigint[])", [[row.page_id for row in rows]])
            deleted, waited, last = deleted + len(rows), waited + sum(not row.is_done for row in rows), rows[-1].page_id
        return deleted, waited
