"""The rows about choosing across hosts: lines (what it costs), shares (who gets what), pace (new pages in a budget)."""

import bisect
import math
import random
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import LiteralString

from bench import calls, data
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, at_least, at_most, note

# The waiting pages: only revisits, only new pages (of one value, or log-normal with σ 2), or half and half.
RANKS: dict[str, LiteralString | None] = {
    "revisits": None,
    "new pages of one value": "-1",
    "new pages of diverse values": "-exp(2 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))",
    "both": "-1",
}


def make_new(backend: Backend, rank: LiteralString, every: int) -> None:
    """Turns one page in `every` into a new one, also in older tables in which hosts had one queue."""
    backend.connection.execute("set search_path = recrawl_internal, pg_temp")
    for statement in (
        "insert into new_page (host_id, page_id, rank) "
        f"select host_id, page_id, {rank} from page where page_id %% %s = 0",
        "delete from queue where page_id %% %s = 0",
        "update page p set due_at = null, fetched_at = null, value = -n.rank "
        "from new_page n where n.page_id = p.page_id and p.page_id %% %s = 0",
    ):
        backend.connection.execute(statement, [every])
    has_lines = backend.rows(
        "select from information_schema.columns "
        "where table_schema = 'recrawl_internal' and table_name = 'host' and column_name = 'new_class'"
    )
    heads: LiteralString = "head_new_rank = n.rank, head_new_id = n.id"
    lines: LiteralString = ", new_class = value_class(n.rank), new_ready_at = h.ready_at" if has_lines else ""
    backend.connection.execute(
        f"update host h set {heads}{lines} "
        "from (select host_id, min(rank) as rank, min(page_id) as id from new_page group by host_id) n "
        "where n.host_id = h.host_id"
    )
    if every == 1:
        ready: LiteralString = "ready_at = 'infinity', " if has_lines else ""
        backend.connection.execute(f"update host set {ready}head_due = 'infinity'")
    if has_lines:
        backend.connection.execute("select setval('new_classes', (select bit_or(1::bigint << new_class) from host))")
    for table in ("page", "queue", "new_page", "host"):
        backend.connection.execute(f"vacuum (analyze) {table}")
    backend.connection.execute("select count(*) from new_page")


def lines(stage: Stage) -> Iterator[Line]:
    for kind, rank in RANKS.items():
        with stage.standard() as url:
            with Backend(url) as backend:
                backend.run("select recrawl.set_setting('default_gap', '10 milliseconds')")
                if rank:
                    progress(f"{kind}: turning pages into new ones")
                    make_new(backend, rank, 2 if kind == "both" else 1)
                data.warm(backend.connection, stage.hosts)
            with Backend(url) as backend:
                samples = Samples()
                for number in range(-20, stage.rounds(100)):
                    if number == 0:
                        samples = Samples()
                    samples.take("ref", backend, calls.ref)
                    for n in (1, 10):
                        samples.take(f"pop {n}", backend, calls.pop, calls.ONE_A_HOST, n)
                    for shape, ahead in (("one a host", "0"), ("ten a host", "0.09 s")):
                        pages = samples.take(f"pop {shape}", backend, calls.pop, ahead)
                        if len(pages) != calls.BATCH:
                            raise RuntimeError(f"{len(pages)} pages were popped, {kind}, {shape}")
                        samples.take(f"report {shape}", backend, calls.report_arrays, calls.fetched(pages))
        ref = samples.median("ref")
        for shape, bound in (("ten a host", 4.4), ("one a host", 5.6)):
            cost = samples.sum_of_medians(f"pop {shape}", f"report {shape}") / ref
            yield at_most(f"CPU of next_pages(100) + report_pages(100), {kind}, {shape}", cost, bound, "× ref")
        alone = ", ".join(f"{samples.median(f'pop {n}') / ref:.2g}" for n in (1, 10))
        yield note(f"CPU of next_pages(1), next_pages(10), {kind}", f"{alone} × ref")


def shares(stage: Stage) -> Iterator[Line]:
    """At times of its own: a hundred hosts with late revisits next to six thousand with new pages, and so on."""
    for name, due_hosts, new_hosts in (
        ("100 due hosts beside 6,000 new ones", range(100), range(1000, 7000)),
        ("1,000 hosts with both", range(1000), range(1000)),
    ):
        for share in (0.2, 0.5, 0.8):
            worst = 0.0
            for n, rounds in ((1, 500), (10, 100), (100, 40), (1000, 10)):
                with stage.empty() as url, Backend(url) as backend:
                    now = _filled(backend, due_hosts, new_hosts, share)
                    new = popped = 0
                    for _ in range(rounds):
                        # A thousand at once need ten gaps of a hundred hosts.
                        ahead = "10 s" if n == 1000 else "0"
                        rows = backend.rows(
                            "select url like '%%new%%' from recrawl_internal.next_pages_at(%s, %s, %s, '1 day', null)",
                            [now, n, ahead],
                        )
                        new, popped = new + sum(is_new for (is_new,) in rows), popped + len(rows)
                        now += timedelta(seconds=11 if n == 1000 else 1)
                    worst = max(worst, abs(new / popped - share))
                    progress(f"{name}, {share}, n = {n}: {new / popped:.3f} of {popped:,}")
            yield at_most(f"share of new pages, off by at most, {name}, discovery {share}", worst, 0.02, "")


def values(stage: Stage) -> Iterator[Line]:
    """At times of its own: new pages of log-normal values on two thousand hosts, one or ten of a host at a time."""
    for sigma in (1.0, 2.0):
        for shape, ahead in (("one a host", "0"), ("ten a host", "10 s")):
            chance = random.Random(1)
            with stage.empty() as url, Backend(url) as backend:
                backend.run("select recrawl.set_setting('window_share', '0')")
                now: datetime = backend.rows("select clock_timestamp()")[0][0]
                waiting = [math.exp(sigma * chance.gauss(0, 1)) for _ in range(40_000)]
                backend.run(
                    "select count(*) from recrawl.add_pages(array(select format('http://h%%s.test/%%s', i %% 2000, i) "
                    "from generate_series(1, 40000) i), value => %s)",
                    [waiting],
                )
                while backend.rows("select recrawl_internal.tick_at(%s, 100, 20000)", [now])[0][0]:
                    pass
                waiting.sort()
                worth_half = given = best = got = 0.0
                for _ in range(20):
                    rows = backend.rows(
                        "select value::float8 from recrawl_internal.next_pages_at(%s, 100, %s, '1 day', null)",
                        [now, ahead],
                    )
                    best += sum(waiting[-100:])
                    worth_half += sum(value >= waiting[-100] / 2 for (value,) in rows)
                    for (value,) in rows:
                        got, given = got + value, given + 1
                        waiting.pop(min(bisect.bisect_left(waiting, value * (1 - 1e-6)), len(waiting) - 1))
                    now += timedelta(seconds=11)
            what = f"σ {sigma:g}, {shape}"
            half, whole = worth_half / given, got / best
            if ahead == "0":
                yield at_least(f"new pages worth half of the best hundred that waited, {what}", half, 0.9, "")
                yield at_least(f"their value ÷ that of the best that waited, {what}", whole, 0.78, "")
            else:
                yield note(f"the same two, {what}", f"{half:.2g}, {whole:.2g}")


def _filled(backend: Backend, due_hosts: range, new_hosts: range, share: float) -> datetime:
    backend.run("select recrawl.set_setting('discovery', %s)", [str(share)])
    backend.run("select recrawl.set_setting('window_share', '0')")
    now: datetime = backend.rows("select clock_timestamp()")[0][0]
    for hosts, name, due in ((due_hosts, "old", now - timedelta(days=30)), (new_hosts, "new", None)):
        urls = [
            f"http://h{host}.test/{name}{page}" for host in hosts for page in range(150 if len(hosts) < 500 else 12)
        ]
        for first in range(0, len(urls), 20_000):
            batch = urls[first : first + 20_000]
            backend.run(
                "select count(*) from recrawl.add_pages(%s, due => %s::timestamptz[], rate => array[0.001])",
                [batch, None if due is None else [due]],
            )
    while backend.rows("select recrawl_internal.tick_at(%s, 100, 20000)", [now])[0][0]:
        pass
    return now


def pace(stage: Stage) -> Iterator[Line]:
    """By the real clock: callers that pop all the time, and new pages on two thousand hosts."""
    seconds = max(5.0, 60 * min(stage.scale, 1))
    for per_second, callers in ((50, 1), (200, 4), (1000, 4), (5000, 8)):
        with stage.empty() as url, Backend(url) as backend:
            backend.run("select recrawl.set_setting('default_gap', '1 millisecond')")
            wanted = int(per_second * (seconds + 3))
            for first in range(1, wanted, 50_000):
                backend.run(
                    "select count(*) from recrawl.add_pages(array(select format('http://h%%s.test/%%s', i %% 2000, i) "
                    "from generate_series(%s::int, %s::int) i))",
                    [first, min(first + 49_999, wanted)],
                )
            while backend.rows("select recrawl_internal.tick(100, 20000)")[0][0]:
                pass
            backend.run("select recrawl.set_setting('budget', %s)", [str(per_second * 86400)])
            given = _popped(url, callers, seconds)
        off = given / (per_second * seconds) - 1
        what = f"new pages handed out, {per_second:,} a second wanted, {callers} callers, {seconds:.0f} s"
        yield at_most(what, abs(off), 0.02, "", f" off ({off:+.2%})")


def _popped(url: str, callers: int, seconds: float) -> int:
    """After a second to begin with."""
    given: list[int] = []
    start = time.monotonic() + 1

    def caller() -> None:
        with Backend(url) as backend:
            while time.monotonic() < start + seconds:
                pages = len(calls.pop(backend, calls.ONE_A_HOST))
                if time.monotonic() >= start:
                    given.append(pages)
                time.sleep(0.005)

    threads = [threading.Thread(target=caller) for _ in range(callers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(given)
