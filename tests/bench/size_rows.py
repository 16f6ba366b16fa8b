"""The row sizes: crawls of 10⁶, 10⁷ and 3·10⁷ pages next to each other on one embedded server.

It needs 12 to 20 minutes, 45 GB of disk and 8 GB of memory, so it runs only if it is named."""

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean, median
from typing import Concatenate, LiteralString, ParamSpec, TypeVar

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from bench import calls, data
from bench.crawler import Pop, crawling
from bench.job_rows import Run
from bench.large import NEW_EVERY
from bench.measure import Backend, progress
from bench.table import Line, at_most, note
from recrawl.setup import embedded, migrate

SIZES = (1_000_000, 10_000_000, 30_000_000)
# Indexes that are slow to fill row by row: they are made after the rows.
MADE_LATER: tuple[tuple[LiteralString, LiteralString], ...] = (
    ("alter table page drop constraint page_key_key", "alter table page add constraint page_key_key unique (key)"),
    ("drop index queue_due", "create index queue_due on queue (host_id, due_at)"),
)
# A page is fetched once a day, as by the default setting, so a tenth is late by up to 2.4 hours. One page in 21 was
# never fetched; its value is log-normal.
PAGES: LiteralString = f"""
    insert into page (page_id, key, host_id, added_at, due_at, fetched_at, reported_at, last_status, successes, changes,
                      value, seen_changes, seen_days, url, content_hash, etag)
    select page_id, url_key(url), host_id, now() - interval '30 days', fetched_at + interval '1 day', fetched_at,
           fetched_at, case when not is_new then 200 end, case when is_new then 0 else 5 end,
           case when is_new then 0 else 1 end,
           case when is_new then exp(2 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))
                else 0.1 + random() end,
           case when is_new then 0 else 5 * random() end, case when is_new then 0 else 5 end, url,
           case when not is_new then md5(url) end, case when not is_new then '"' || md5(url || 'e') || '"' end
    from (select page_id, is_new, case when not is_new then now() - random() * interval '1.1 days' end as fetched_at,
                 {data.AN_ELEVENTH_OF_ONE_HOST} as host_id
          from (select page_id, random() < 1.0 / {NEW_EVERY} as is_new
                from generate_series(%(first)s::bigint, %(last)s) as page_id offset 0) p offset 0) p
    cross join lateral (
        select format('https://host%%s.example.com/section-%%s/the-article-of-the-day-%%s.html',
                      host_id, page_id %% 10, page_id) as url offset 0
    ) u
"""
REST: tuple[LiteralString, ...] = (
    "insert into queue (host_id, due_at, page_id) select host_id, due_at, page_id from page where due_at is not null",
    "insert into new_page (host_id, page_id, rank) select host_id, page_id, -value from page where due_at is null",
    "insert into host_name (name, host_id)"
    " select 'host' || h || '.example.com', h from generate_series(1, %(hosts)s::bigint) h",
    """
    insert into host (host_id, name, pages, head_due, ready_at, head_new_rank, head_new_id, new_class, new_ready_at)
    select h.host_id, 'host' || h.host_id || '.example.com', coalesce(q.pages, 0) + coalesce(n.pages, 0),
           coalesce(q.due_at, 'infinity'), coalesce(greatest(q.due_at, h.free_at), 'infinity'),
           n.rank, n.page_id, value_class(n.rank), case when n.rank is null then 'infinity' else h.free_at end
    from (select host_id, now() - random() * interval '1 minute' as free_at
          from generate_series(1, %(hosts)s::bigint) host_id) h
    left join (select host_id, min(due_at) as due_at, count(*) as pages from queue group by host_id) q using (host_id)
    left join (select host_id, count(*) over host as pages, rank, page_id, row_number() over host_order as place
               from new_page
               window host as (partition by host_id), host_order as (partition by host_id order by rank, page_id)) n
           on n.host_id = h.host_id and n.place = 1
    """,
    "select setval('page_id', %(pages)s), setval('host_id', %(hosts)s),"
    " setval('new_classes', (select bit_or(1::bigint << new_class) from host))",
)
CHUNK = 500_000  # pages

ROUNDS, WARM_UP = 80, 20  # pops of 100 pages in each crawl
TICK_EVERY = 5  # rounds
BLOCK_ROUNDS = 20
AT_REST = 60.0  # seconds of pops before an allocation
MOST_MEMORY = 4.0  # GB
# Without links, opic would write a score for every page, which takes hours and is not what the row is about.
JOBS = {"rates": None, "opic": "writing scores and values"}  # the step at which the job is stopped
Result = TypeVar("Result")
Given = ParamSpec("Given")


@dataclass(frozen=True)
class Crawl:
    pages: int
    url: str
    seconds: float  # until it was loaded
    bytes: int  # of its database then

    @property
    def hosts(self) -> int:
        return self.pages // data.PAGES_A_HOST

    @property
    def environment(self) -> dict[str, str]:
        """In which a command works on it."""
        return dict(os.environ) | {"DATABASE_URL": self.url}

    def __str__(self) -> str:
        return f"{self.pages / 1e6:g} million pages"


def sizes() -> Iterator[Line]:
    with tempfile.TemporaryDirectory(prefix="recrawl-bench-") as folder:
        Path(folder).chmod(0o755)  # the server's account must be able to enter it
        with embedded.server(Path(folder) / "postgres") as server_url:
            crawls = [loaded(server_url, pages) for pages in SIZES]
            for measured in (room, hot_calls, vacuums, allocations, jobs):
                yield from measured(crawls)


# --------------------------------------------------------------------------------------------------------------- load


def loaded(server_url: str, pages: int) -> Crawl:
    """Loads a crawl of this size into a new database."""
    name = f"pages_{pages}"
    url = make_url(server_url).set(database=name).render_as_string(hide_password=False)
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
    migrate.upgrade(url)
    progress(f"loading {pages:,} pages")
    with Backend(url) as backend:
        started = time.monotonic()
        _load(backend.connection, pages)
        seconds = time.monotonic() - started
        ((size,),) = backend.rows("select pg_database_size(current_database())")
    return Crawl(pages, url, seconds, size)


def _load(connection: data.Connection, pages: int) -> None:
    arguments = {"pages": pages, "hosts": pages // data.PAGES_A_HOST}
    connection.execute("set search_path = recrawl_internal, pg_temp; set maintenance_work_mem = '1GB'")
    connection.execute("set work_mem = '256MB'")
    for drop, _ in MADE_LATER:
        connection.execute(drop)
    for first in range(1, pages + 1, CHUNK):
        connection.execute(PAGES, arguments | {"first": first, "last": min(first + CHUNK - 1, pages)})
        progress(f"{first + CHUNK - 1:,} of {pages:,} pages")
    for statement in REST:
        progress(" ".join(statement.split())[:60])
        connection.execute(statement, arguments)
    for _, make in MADE_LATER:
        progress(make)
        connection.execute(make)
    for table in ("page", "queue", "new_page", "host", "host_name"):
        progress(f"vacuum {table}")
        connection.execute(sql.SQL("vacuum (analyze) {}").format(sql.Identifier(table)))


def room(crawls: Sequence[Crawl]) -> Iterator[Line]:
    for crawl in crawls:
        with Backend(crawl.url) as backend:
            parts = backend.rows(
                """
                select relname, pg_table_size(oid), pg_indexes_size(oid) from pg_class
                where relnamespace = 'recrawl_internal'::regnamespace and relname in ('page', 'queue', 'host')
                order by 2 desc
                """
            )
        of_tables = ", ".join(
            f"{name} {table / crawl.pages:.0f} + {indexes / crawl.pages:.0f}" for name, table, indexes in parts
        )
        yield note(f"loading {crawl}", f"{crawl.seconds:,.0f} s, {crawl.seconds / crawl.pages * 1e6:.3g} µs a page")
        yield note(
            f"size of {crawl}",
            f"{crawl.bytes / 1e9:.3g} GB, {crawl.bytes / crawl.pages:.0f} bytes a page (tables + indexes: {of_tables})",
        )


# -------------------------------------------------------------------------------------------------------------- calls


POP: LiteralString = "select * from recrawl.next_pages(100, ahead => '0')"
ADD: LiteralString = "select count(*) from recrawl.add_pages(%s)"
TICK: LiteralString = "select recrawl_internal.tick(200, 2000)"


class Costs:
    """Milliseconds, and CPU milliseconds of the server process, of each call in each crawl."""

    def __init__(self) -> None:
        self.seconds: defaultdict[tuple[str, int], list[float]] = defaultdict(list)
        self.cpu: defaultdict[tuple[str, int], list[float]] = defaultdict(list)

    def take(
        self, name: str, crawl: Crawl, backend: Backend, call: Callable[Concatenate[Backend, Given], Result],
        *arguments: Given.args, **options: Given.kwargs,
    ) -> Result:  # fmt: skip
        cpu, started = backend.cpu(), time.monotonic()
        result = call(backend, *arguments, **options)
        self.seconds[name, crawl.pages].append(1e3 * (time.monotonic() - started))
        self.cpu[name, crawl.pages].append(backend.cpu() - cpu)
        return result


def hot_calls(crawls: Sequence[Crawl]) -> Iterator[Line]:
    """In turns in all crawls, so that noise of the machine meets each of them."""
    costs, wal = Costs(), defaultdict[int, list[float]](list)
    added = {crawl: crawl.pages for crawl in crawls}
    with ExitStack() as stack:
        backends = {crawl: stack.enter_context(Backend(crawl.url)) for crawl in crawls}
        for number in range(-WARM_UP, ROUNDS):
            if number == 0:
                costs = Costs()
            for crawl, backend in backends.items():
                before = _wal(backend)
                pages = costs.take("pop", crawl, backend, calls.pop, calls.ONE_A_HOST)
                if len(pages) < calls.BATCH:
                    raise RuntimeError(f"a pop got {len(pages)} pages of {crawl}")
                costs.take("report", crawl, backend, calls.report_arrays, calls.fetched(pages))
                if number >= 0:
                    wal[crawl.pages].append(_wal(backend) - before)
                if number % TICK_EVERY == 0:
                    first = added[crawl] = added[crawl] + calls.BATCH
                    urls = [data.url_of(page, crawl.hosts) for page in range(first, first + calls.BATCH)]
                    costs.take("add", crawl, backend, Backend.rows, ADD, [urls])
                    costs.take("tick", crawl, backend, Backend.rows, TICK)
    yield from _costs_of_calls(crawls, costs)
    yield from _blocks(crawls)
    for crawl in crawls:
        kb = [written / 1e3 for written in wal[crawl.pages]]
        yield note(
            f"WAL of 100 pages popped and reported, {crawl}", f"median {median(kb):,.0f} kB, mean {mean(kb):,.0f}"
        )


def _costs_of_calls(crawls: Sequence[Crawl], costs: Costs) -> Iterator[Line]:
    names = {
        "pop": "next_pages(100)",
        "report": "report_pages of 100",
        "add": "add_pages of 100 new URLs",
        "tick": f"a tick of upkeep after {TICK_EVERY} of both",
    }
    for name, what in names.items():
        for crawl in crawls:
            seconds, cpu = costs.seconds[name, crawl.pages], costs.cpu[name, crawl.pages]
            yield note(f"{what}, {crawl}", f"median {median(seconds):.3g} ms, {median(cpu):.3g} ms of CPU")
    for kind, taken in (("time", costs.seconds), ("CPU", costs.cpu)):
        both = {
            crawl.pages: median(map(sum, zip(taken["pop", crawl.pages], taken["report", crawl.pages], strict=True)))
            for crawl in crawls
        }
        for smaller in crawls[:-1]:
            for larger in crawls[crawls.index(smaller) + 1 :]:
                what = f"{kind} of pop + report, {larger} ÷ {smaller}"
                yield at_most(what, both[larger.pages] / both[smaller.pages], 1.2, "×")


def _blocks(crawls: Sequence[Crawl]) -> Iterator[Line]:
    """How many blocks a pop reads from memory or disk does not depend on the load of the machine."""
    touched = {}
    for crawl in crawls:
        with Backend(crawl.url) as backend:
            touched[crawl.pages] = median(backend.buffers(POP)[0] for _ in range(BLOCK_ROUNDS))
        yield note(f"blocks that next_pages(100) touches, {crawl}", f"median {touched[crawl.pages]:,.0f}")
    for smaller, larger in pairwise(crawls):
        ratio = touched[larger.pages] / touched[smaller.pages]
        yield at_most(f"blocks that next_pages(100) touches, {larger} ÷ {smaller}", ratio, 1.2, "×")


def _wal(backend: Backend) -> float:
    """Bytes of write-ahead log so far."""
    return float(backend.rows("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8")[0][0])


# ------------------------------------------------------------------------------------------------------------- vacuum


def vacuums(crawls: Sequence[Crawl]) -> Iterator[Line]:
    """After the pops and reports."""
    for table in ("page", "queue"):
        for crawl in crawls:
            with Backend(crawl.url) as backend:
                started = time.monotonic()
                backend.connection.execute(sql.SQL("vacuum recrawl_internal.{}").format(sql.Identifier(table)))
                yield note(f"vacuum of {table}, {crawl}", f"{time.monotonic() - started:.3g} s")


# --------------------------------------------------------------------------------------------------------------- jobs


def allocations(crawls: Sequence[Crawl]) -> Iterator[Line]:
    """The first allocation of each crawl, while a crawler pops and reports."""
    for crawl in crawls:
        with Backend(crawl.url) as backend:
            backend.run("select recrawl.set_setting('budget', %s)", [str(crawl.pages)])
        with crawling(crawl.url) as crawler:
            progress(f"pops of {crawl}")
            otherwise = crawler.pops_while(lambda: time.sleep(AT_REST))
            progress(f"the first allocation of {crawl}")
            before = len(crawler.pops)
            first = Run(crawl.environment, "allocate")
            during = crawler.pops[before:]
        yield at_most(f"first allocation, {crawl}", first.seconds / 60, 4, "minutes", first.steps)
        yield at_most(f"memory of this job, {crawl}", first.memory, MOST_MEMORY, "GB")
        yield note(f"pops during the allocation, {crawl}", _slower(during, otherwise))


def _slower(during: Sequence[Pop], otherwise: Sequence[Pop]) -> str:
    now, usual = (median(pop.seconds for pop in pops) * 1e3 for pops in (during, otherwise))
    cpu, usual_cpu = (median(pop.cpu for pop in pops) * 1e3 for pops in (during, otherwise))
    worst = max(pop.seconds for pop in during) * 1e3
    return (
        f"{now / usual:.2f} × of before (median {now:.3g} and {usual:.3g} ms; CPU {cpu:.3g} and {usual_cpu:.3g} ms; "
        f"longest {worst:,.0f} ms of {len(during):,})"
    )


def jobs(crawls: Sequence[Crawl]) -> Iterator[Line]:
    for job, stop_at in JOBS.items():
        for crawl in crawls:
            progress(f"the job {job} of {crawl}")
            run = Run(crawl.environment, job, stop_at)
            yield at_most(f"memory of the job {job}, {crawl}", run.memory, MOST_MEMORY, "GB")
            yield note(f"time of the job {job}, {crawl}", f"{run.seconds:.3g} s{run.steps}")
