"""The row about reports that move their page in the queue: moves. Each costs an entry of the inbox, and its drain."""

import random
from collections.abc import Iterator
from typing import LiteralString

from bench import calls, data
from bench.measure import Backend, Samples
from bench.stage import Stage
from bench.table import Line, note

FETCHES = 30  # of each page so far
PRICED: LiteralString = """
    update recrawl_internal.host_terms set price = 1, min_frequency = 1 / 60.0, objective = 'freshness'
    where host_id = 0
"""
# Changes per day: half of the pages have less than 0.1, a quarter has more than 0.3, the most 10.
RATES: LiteralString = """
    update recrawl_internal.page
    set seen_days = 100, seen_changes = 100 * 0.1 / (1 / greatest(random(), 0.01) - 1 + 0.01)
"""
FREQUENCIES: LiteralString = """
    update recrawl_internal.page p set frequency = f.frequency
    from recrawl_internal.setting s, recrawl_internal.host_terms c, recrawl_internal.page q
    cross join lateral recrawl_internal.belief(null, q.seen_changes, q.seen_days, null, c) b
    cross join lateral recrawl_internal.frequency_of(
        null, null, c, recrawl_internal.highest_frequency(s), q.value, b.rate) f
    where c.host_id = 0 and p.page_id = q.page_id
"""
EVIDENCE: LiteralString = """
    update recrawl_internal.page
    set seen_changes = seen_changes / seen_days * %s / frequency, seen_days = %s / frequency,
        fetched_at = now() - interval '1 day' / frequency::float8
"""
CHANCES: LiteralString = """
    select page_id, 1 - exp(-seen_changes / seen_days / frequency) from recrawl_internal.page where page_id = any (%s)
"""


def moves(stage: Stage) -> Iterator[Line]:
    """A crawl with prices that has run for long: pages are fetched at their intervals, and change at their rates."""
    with stage.standard() as url, Backend(url) as backend:
        backend.run(PRICED)
        backend.run(RATES)
        for _ in range(2):  # the evidence changes the rates a little
            backend.run(FREQUENCIES)
            backend.run(EVIDENCE, [FETCHES, FETCHES])
        backend.run("vacuum (analyze) recrawl_internal.page")
        data.warm(backend.connection, stage.hosts)
        backend.run("delete from recrawl_internal.inbox")
        samples, reports = Samples(), 0
        for _ in range(stage.rounds(80)):
            # Upkeep, which drains the inbox, is put off.
            backend.run("select setval('recrawl_internal.next_tick',"
                        " recrawl_internal.micros(clock_timestamp() + interval '50 s'))")  # fmt: skip
            pages = samples.take("pop", backend, calls.pop, calls.TEN_A_HOST)
            chances: dict[int, float] = dict(backend.rows(CHANCES, [[page[0] for page in pages]]))
            samples.take("report", backend, _report, pages, [random.random() < chances[page[0]] for page in pages])
            reports += len(pages)
        moved = backend.rows("select count(*) from recrawl_internal.inbox")[0][0]
        samples.take("drain", backend, Backend.run, "select recrawl_internal.drain_up_to(now(), 1000000)")
    yield note(f"reports that move their page, after {FETCHES} fetches of each", f"{100 * moved / reports:.3g} %")
    drain = 100 * samples.median("drain") / reports
    cost = f"pop {samples.median('pop'):.3g} ms, report {samples.median('report'):.3g} ms, their moves {drain:.3g} ms"
    yield note("CPU of 100 such pages", cost)


def _report(backend: Backend, pages: list[tuple[object, ...]], changed: list[bool]) -> None:
    backend.run(
        "select * from recrawl.report_pages(%s::bigint[], %s::bigint[], %s::int[], changed => %s::boolean[])",
        [[page[0] for page in pages], [page[1] for page in pages], [200] * len(pages), changed],
    )
