"""The verbs with a clock in the test's hand, through the explicit-time twins."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.jobs.registry import JOBS

Row = dict[str, Any]
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


class Crawl:
    """One crawl, at `now`, which only moves when the test says so."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def wait(self, duration: timedelta) -> None:
        self.now += duration

    def rows(self, query: str, *arguments: object) -> list[Row]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, arguments).fetchall()

    def row(self, query: str, *arguments: object) -> Row:
        (row,) = self.rows(query, *arguments)
        return row

    def value(self, query: str, *arguments: object) -> Any:
        with self.connection.cursor(row_factory=scalar_row) as cursor:
            return cursor.execute(query, arguments).fetchone()

    # ---------------------------------------------------------------------------------------------- verbs

    def add(self, *urls: str | None, **columns: Sequence[object]) -> list[Row]:
        given = {name: list(columns[name]) if name in columns else None for name in ("value", "rate", "due", "meta")}
        if given["meta"]:
            given["meta"] = [Jsonb(m) for m in given["meta"]]
        return self.rows(
            "select * from add_pages_at(%s, %s::text[], %s::float8[], %s::float8[], %s::timestamptz[], %s::jsonb[])",
            self.now, list(urls), *given.values(),
        )  # fmt: skip

    def next(
        self,
        n: int = 100,
        ahead: timedelta = timedelta(0),
        lease: timedelta = 10 * MINUTE,
        per_host: int | None = None,
    ) -> list[Row]:
        return self.rows("select * from next_pages_at(%s, %s, %s, %s, %s)", self.now, n, ahead, lease, per_host)

    def report(self, *results: object) -> list[Row]:
        return self.rows("select * from report_at(%s, %s)", self.now, Jsonb(list(results)))

    def report_ok(self, pages: Sequence[Row], **more: object) -> list[Row]:
        return self.report(*(result_of(page, **more) for page in pages))

    def release(self, lease_id: int, page_ids: list[int] | None = None) -> int:
        return int(self.value("select release_at(%s, %s, %s)", self.now, lease_id, page_ids))

    def extend(self, lease_id: int, by: timedelta) -> datetime | None:
        ends: datetime | None = self.value("select extend_lease_at(%s, %s, %s)", self.now, lease_id, by)
        return ends

    def tick(self) -> int:
        """Upkeep until there is nothing to do."""
        total = 0
        while moved := int(self.value("select tick_at(%s, 1000, 10000)", self.now)):
            total += moved
        return total

    def page(self, url: str) -> Row:
        return self.row("select * from page_status where url = %s", url)

    def host(self, name: str) -> Row:
        return self.row("select * from host_status where host = %s", name)


def run_job(name: str, url: str) -> str:
    return JOBS[name].load()(url).run()


def result_of(page: Row, **more: object) -> Row:
    return {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200} | more


def urls(rows: Sequence[Row]) -> list[str]:
    return [row["url"] for row in rows]


def codes(rows: Sequence[Row]) -> list[str]:
    return [row["code"] for row in rows]


def misplaced(crawl: Crawl) -> list[Row]:
    """Live pages that are not leased and have no place, more than one, or another than their page row says."""
    crawl.tick()
    return crawl.rows(
        """
        select p.page_id, p.due_at, array_agg(q.due_at) as places
        from page p
        left join (select page_id, due_at from queue union all select page_id, null from new_page) q using (page_id)
        where p.state = 'live' and not exists (select from lease l where p.page_id = any (l.page_ids))
        group by p.page_id
        having count(*) <> 1 or p.due_at is distinct from min(q.due_at) or not bool_or(q.page_id is not null)
        """
    )
