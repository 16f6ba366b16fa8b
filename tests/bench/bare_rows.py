"""The row about the cost of a pop and its report, as a multiple of the writes that they cannot do without.

The bare writes are three UPDATEs by hand: 100 rows of the queue, the rows of their hosts, and 100 pages. They write
copies of the three tables, with the same indexes, in the same database. They write the pages that were just popped.
The calls and the writes take turns.
"""

from collections.abc import Iterator, Sequence
from itertools import product

from bench import calls, data
from bench.measure import Backend, Row, Samples
from bench.stage import Stage
from bench.table import Line, at_most

TABLES = ("queue", "host", "page")
BOUNDS = {"ten a host": 2.8, "one a host": 2.5}
WRITES = ("bare queue", "bare hosts", "bare pages")


def bare(stage: Stage) -> Iterator[Line]:
    with stage.standard() as url:
        with Backend(url) as backend:
            _copy_tables(backend)
            data.warm(backend.connection, stage.hosts)
        with Backend(url) as backend:
            samples = _in_turns(backend, stage.rounds(200))
            if backend.rows("select from bare.queue q join bare.page p using (page_id) where q.due_at <> p.due_at"):
                raise RuntimeError("the bare writes of the queue and of the pages differ")
    for shape, name in product(calls.SHAPES, calls.REPORTS):
        writes = samples.sum_of_medians(*(f"{write} {shape}" for write in WRITES))
        pop, report = samples.median(f"pop {shape}"), samples.median(f"{name} {shape}")
        parts = f" ({pop / writes:.3g} + {report / writes:.3g}; the writes take {writes:.3g} ms)"
        what = f"CPU of next_pages(100) + {name}(100), {shape}"
        yield at_most(what, (pop + report) / writes, BOUNDS[shape], "× its bare writes", parts)


def _copy_tables(backend: Backend) -> None:
    backend.connection.execute("create schema bare")
    for table in TABLES:
        (options,) = backend.rows(
            "select array_to_string(reloptions, ', ') from pg_class where oid = %s::regclass",
            [f"recrawl_internal.{table}"],
        )[0]
        for statement in (
            f"create table bare.{table} (like recrawl_internal.{table} including all)",
            f"alter table bare.{table} set ({options})",
            f"insert into bare.{table} select * from recrawl_internal.{table}",
            f"vacuum (analyze) bare.{table}",
        ):
            backend.connection.execute(statement.encode())


def _in_turns(backend: Backend, rounds: int) -> Samples:
    samples = Samples()
    for number in range(-20, rounds):
        if number == 0:
            samples = Samples()
        for (shape, ahead), (name, report) in product(calls.SHAPES.items(), calls.REPORTS.items()):
            pages = samples.take(f"pop {shape}", backend, calls.pop, ahead)
            outcomes = calls.fetched(pages)
            answers = samples.take(f"{name} {shape}", backend, report, outcomes)
            if len(pages) != calls.BATCH or any(answer[2] != "ok" for answer in answers):
                raise RuntimeError(f"{len(pages)} pages were popped, {shape}, or reports were refused")
            places = backend.rows(
                "select page_id, host_id, due_at from bare.page where page_id = any (%s) order by page_id",
                [[page[0] for page in pages]],
            )
            for write, call in zip(WRITES, (_write_queue, _write_hosts, _write_pages), strict=True):
                samples.take(f"{write} {shape}", backend, call, places)
    return samples


def _write_queue(backend: Backend, places: Sequence[Row]) -> None:
    backend.run(
        "update bare.queue q set due_at = u.due_at + interval '1 day' "
        "from unnest(%s::bigint[], %s::bigint[], %s::timestamptz[]) as u (page_id, host_id, due_at) "
        "where (q.host_id, q.due_at, q.page_id) = (u.host_id, u.due_at, u.page_id)",
        [list(column) for column in zip(*places, strict=True)],
    )


def _write_hosts(backend: Backend, places: Sequence[Row]) -> None:
    backend.run(
        "update bare.host h set last_start_by = clock_timestamp(), handed_out = h.handed_out + 1, "
        "head_due = h.head_due + interval '1 second', ready_at = clock_timestamp() + interval '1 second' "
        "from unnest(%s::bigint[]) as u (host_id) where h.host_id = u.host_id",
        [sorted({host for _, host, _ in places})],
    )


def _write_pages(backend: Backend, places: Sequence[Row]) -> None:
    backend.run(
        "update bare.page p set due_at = p.due_at + interval '1 day', reported_at = clock_timestamp(), "
        "fetched_at = clock_timestamp(), last_status = 200, successes = p.successes + 1, changes = p.changes + 1, "
        "seen_changes = p.seen_changes + 1, seen_days = p.seen_days + 1, frequency = 1, last_lease = p.page_id, "
        "etag = p.content_hash, content_hash = p.etag "
        "from unnest(%s::bigint[]) as u (page_id) where p.page_id = u.page_id",
        [[page for page, _, _ in places]],
    )
