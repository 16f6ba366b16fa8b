"""The public functions, called through their inner functions `…_at(t, …)` with a time that the test sets."""

import random
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.jobs.registry import JOBS
from recrawl.setup.programs import program

Row = dict[str, Any]
Found = TypeVar("Found")
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def eventually(happens: Callable[[], Found], seconds: float = 120, what: str = "it never happened") -> Found:
    """Calls it until its result is true, and returns that. The limit is for a machine that is busy with other work."""
    end = time.monotonic() + seconds
    while not (found := happens()):
        assert time.monotonic() < end, what
        time.sleep(0.05)
    return found


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
        given = {
            name: list(columns[name]) if name in columns else None for name in ("value", "rate", "due", "meta", "host")
        }
        if given["meta"]:
            given["meta"] = [Jsonb(m) for m in given["meta"]]
        return self.rows(
            "select * from add_pages_at("
            "%s, %s::text[], %s::float8[], %s::float8[], %s::timestamptz[], %s::jsonb[], %s::text[])",
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

    def age(self, by: timedelta) -> None:
        """Moves all stored times back, as if everything had happened earlier. Jobs read the wall clock, which a test
        cannot move. No lease may be open."""
        for table, columns in {
            "queue": ["due_at"], "page": ["due_at", "fetched_at", "reported_at"], "allocation": ["started_at"],
            "budget_step": ["at"],
            "host": ["ready_at", "new_ready_at", "last_start_by", "head_due", "blocked_until"],
            "inbox": ["old_due"],
        }.items():  # fmt: skip
            moved = ", ".join(f"{column} = {column} - %(by)s::interval" for column in columns)
            self.connection.execute(f"update {table} set {moved}", {"by": by})
        self.connection.execute(
            """
            select setval('fetch_count', f.last_value - fetches_by('epoch'::timestamptz + %(by)s, budget)),
                   setval('new_count', n.last_value - fetches_by('epoch'::timestamptz + %(by)s, budget * discovery))
            from fetch_count f, new_count n, setting
            """,
            {"by": by},
        )
        self.connection.execute(
            "select setval(s::regclass, 1) "
            "from unnest(array['host_horizon', 'lease_horizon', 'horizon_recheck', 'latest_tick']) s "
            "union all select setval(new_horizon(class), 1) from generate_series(0, 32) class"
        )
        self.now -= by

    def page(self, url: str) -> Row:
        return self.row("select * from page_status where url = %s", url)

    def host(self, name: str) -> Row:
        return self.row("select * from host_status where host = %s", name)


def five_seconds_go_by(crawl: Crawl) -> None:
    """After a tick: for that long a worker seems to run, also after a migration."""
    for name in ("latest_tick", "worker_ticked"):
        crawl.value("select setval(%s, micros(clock_timestamp() - '6 s'::interval))", name)


def run_job(name: str, url: str) -> str:
    return JOBS[name].load()(url).run()


def minute(crawl: Crawl, ago: timedelta = 2 * MINUTE, now: datetime | None = None, **figures: float) -> None:
    """A row of vitals as the worker writes it. A second call with the same `now` adds figures to the same minute."""
    names = [sql.Identifier(name) for name in ("at", *figures)]
    at = sql.SQL("date_trunc('minute', coalesce({}, now()) - {})").format(now, ago)
    crawl.connection.execute(
        sql.SQL(
            """
            insert into recrawl_internal.vital ({}) select {}
            on conflict (at) do update set {}
            """
        ).format(
            sql.SQL(", ").join(names),
            sql.SQL(", ").join([at, *map(sql.Literal, figures.values())]),
            sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in names),
        )
    )


def ended_run(crawl: Crawl, job: str, ok: bool, ago: timedelta = HOUR) -> None:
    """A run of a job that took three seconds."""
    crawl.connection.execute(
        """
        insert into recrawl_internal.job (token, job, started_at, alive_until, ended_at, ok, message)
        select nextval('recrawl_internal.job_token'), %(job)s, at, at, at + interval '3 s', %(ok)s, ''
        from (select now() - %(ago)s as at) a
        """,
        {"job": job, "ok": ok, "ago": ago},
    )


def planted_allocation(crawl: Crawl, token: int, at: datetime, **columns: object) -> None:
    """Adds a row of the job allocate: policy opt_polite, objective freshness. Other columns that must have a value
    are 0."""
    zero = dict.fromkeys(("seconds", "for_revisits", "pages", "hosts", "capped_hosts", "residual", "spread"), 0)
    row: dict[str, object] = {
        "token": token, "started_at": at, "policy": "opt_polite", "objective": "freshness", "budget": 0,
        "duality_gap": 0, **zero, **columns,
    }  # fmt: skip
    names = sql.SQL(", ").join(map(sql.Identifier, row))
    values = sql.SQL(", ").join(sql.Placeholder() * len(row))
    crawl.connection.execute(
        sql.SQL("insert into recrawl_internal.allocation ({}) values ({})").format(names, values), list(row.values())
    )


_reserved: list[socket.socket] = []


def free_port() -> int:
    """A port below those that the system gives to connections. The caller may listen on it seconds later: a UDP socket
    reserves it, so that free_port() returns it to no other process on this machine."""
    while True:
        at = ("127.0.0.1", random.randrange(11_000, 30_000))
        reserving = socket.socket(type=socket.SOCK_DGRAM)
        try:
            reserving.bind(at)
            with socket.socket() as probe:
                probe.bind(at)
        except OSError:
            reserving.close()
        else:
            _reserved.append(reserving)
            return at[1]


def run_program(name: str, *arguments: str, text: str | None = None) -> str:
    """Runs one of PostgreSQL's programs. Raises with its errors, also with errors that pg_restore only prints."""
    done = subprocess.run([program(name), *arguments], input=text, capture_output=True, text=True)
    assert name == "pg_restore" or done.returncode == 0, done.stderr
    return done.stderr


def result_of(page: Row, **more: object) -> Row:
    return {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200} | more


def declined(page: Row) -> Row:
    return {"page_id": page["page_id"], "lease_id": page["lease_id"], "declined": True}


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
