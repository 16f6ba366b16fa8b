"""The rows about CPU and buffers of single calls: cycle, rollup, growth, idle, onehost."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import LiteralString

from bench import calls, data
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, at_most, note

POP_PLAN: LiteralString = "select * from recrawl.next_pages(100, ahead => %s::interval)"
WARM_UP = 20  # calls that are not counted: plans and caches of the session
# When a worker last ticked: without one nothing is written down for it to add up.
TICKED = {"with a worker": "0", "without": "2 days"}


def cycles(backend: Backend, rounds: int) -> Samples:
    """Every shape of pop with every twin of report, interleaved with the yardstick."""
    samples = Samples()
    for number in range(-WARM_UP, rounds):
        if number == 0:
            samples = Samples()
        samples.take("ref", backend, calls.ref)
        for shape, ahead in calls.SHAPES.items():
            for name, report in calls.REPORTS.items():
                pages = samples.take(f"pop {shape}", backend, calls.pop, ahead)
                outcomes = calls.fetched(pages)
                answers = samples.take(f"{name} {shape}", backend, report, outcomes)
                wrong = [answer for answer in answers if answer[2] != "ok"]
                if len(pages) != calls.BATCH or wrong:
                    raise RuntimeError(f"{len(pages)} pages were popped, {shape}; refused: {wrong[:3]}")
    return samples


def cycle(stage: Stage) -> Iterator[Line]:
    with stage.standard() as url:
        with Backend(url) as backend:
            data.warm(backend.connection, stage.hosts)
        with Backend(url) as backend:
            samples = cycles(backend, stage.rounds(300))
    ref = samples.median("ref")
    yield note("ref: CPU of one UPDATE of 100 random rows", f"{ref:.3g} ms")
    for shape, bound in (("ten a host", 3.4), ("one a host", 4.4)):
        for name in calls.REPORTS:
            pop, report = samples.median(f"pop {shape}") / ref, samples.median(f"{name} {shape}") / ref
            parts = f" ({pop:.3g} + {report:.3g})"
            yield at_most(f"CPU of next_pages(100) + {name}(100), {shape}", pop + report, bound, "× ref", parts)


def rollup(stage: Stage) -> Iterator[Line]:
    """The cost of the table pulse, which vitals are added up from: with it and without it, in turns. Reports write it
    only while a worker is alive."""
    samples = Samples()
    with stage.standard() as url, Backend(url) as backend:
        data.warm(backend.connection, stage.hosts)
        for number in range(-WARM_UP, stage.rounds(300)):
            if number == 0:
                samples = Samples()
            for name, report in calls.REPORTS.items():
                for which, ago in TICKED.items():
                    backend.run(
                        "select setval('recrawl_internal.worker_ticked',"
                        " recrawl_internal.micros(clock_timestamp() - %s::interval))",
                        [ago],
                    )
                    outcomes = calls.fetched(calls.pop(backend, calls.TEN_A_HOST))
                    samples.take(f"{name} {which}", backend, report, outcomes)
        written = backend.rows("select count(*) from recrawl_internal.pulse")[0][0]
    if not written:
        raise RuntimeError("nothing was written down to be added up")
    for name in calls.REPORTS:
        with_, without = (samples.median(f"{name} {which}") for which in TICKED)
        detail = f" ({with_:.3g} and {without:.3g} ms)"
        yield at_most(f"CPU of {name}(100) with the rollup ÷ without", with_ / without, 1.05, "×", detail)


def buffers_per_page(backend: Backend, ahead: str, calls_made: int = 20) -> float:
    """Of the pop alone; the median would hide the calls that do some upkeep, so it is the mean."""
    buffers = pages = 0
    for _ in range(3):  # plans and catalogue look-ups of the session
        backend.buffers(POP_PLAN, [ahead])
    for _ in range(calls_made):
        more_buffers, more_pages = backend.buffers(POP_PLAN, [ahead])
        buffers, pages = buffers + more_buffers, pages + more_pages
    return buffers / max(pages, 1)


def growth(stage: Stage) -> Iterator[Line]:
    rounds = stage.rounds(150)
    hosts_warmed = (rounds + WARM_UP) * 4 * 110  # more than the cycles reach
    ratios: dict[int, dict[str, float]] = {}
    buffers: dict[int, dict[str, float]] = {}
    with stage.standard() as url:
        for factor in (1, 10):
            with Backend(url) as backend:
                if factor > 1:
                    progress(f"loading {stage.pages * factor:,} pages in all")
                    data.load_pages(
                        backend.connection, stage.hosts * factor, stage.pages * factor, first_page=stage.pages + 1
                    )
                progress("reading what will be touched")
                data.warm(backend.connection, hosts_warmed)
            with Backend(url) as backend:
                samples = cycles(backend, rounds)
                buffers[factor] = {shape: buffers_per_page(backend, ahead) for shape, ahead in calls.SHAPES.items()}
            ref = samples.median("ref")
            ratios[factor] = {
                f"{name}, {shape}": samples.sum_of_medians(f"pop {shape}", f"{name} {shape}") / ref
                for name in calls.REPORTS
                for shape in calls.SHAPES
            }
    for name in ratios[1]:
        detail = f" ({ratios[1][name]:.3g} and {ratios[10][name]:.3g} × ref)"
        yield at_most(
            f"cycle at {10 * stage.pages:,} pages ÷ at {stage.pages:,}, {name}",
            ratios[10][name] / ratios[1][name], 1.6, "×", detail,
        )  # fmt: skip
    for shape in calls.SHAPES:
        detail = f" ({buffers[1][shape]:.3g} and {buffers[10][shape]:.3g})"
        ratio = buffers[10][shape] / buffers[1][shape]
        yield at_most(f"buffers per page popped, the same, {shape}", ratio, 1.3, "×", detail)


def idle(stage: Stage) -> Iterator[Line]:
    samples = Samples()
    with stage.loaded(data.DUE_LATER) as url, Backend(url) as backend:
        for number in range(-WARM_UP, 200):
            if number == 0:
                samples = Samples()
            samples.take("ref", backend, calls.ref)
            pages = samples.take("pop", backend, calls.pop, calls.ONE_A_HOST)
            if pages:
                raise RuntimeError("pages were handed out that are not due")
        nothing, _ = backend.buffers(POP_PLAN, [calls.ONE_A_HOST])
    pop, ref = samples.median("pop"), samples.median("ref")
    detail = f" ({pop / ref:.2g} × ref, {nothing} buffers)"
    yield at_most("CPU of next_pages(100), nothing ready", pop, 0.2, "ms", detail)

    with stage.standard() as url, Backend(url) as backend:
        all_due = {shape: buffers_per_page(backend, ahead) for shape, ahead in calls.SHAPES.items()}
    kinds: dict[str, tuple[str, LiteralString]] = {
        "1 % of every host's pages due": (
            "one a host",
            "now() + interval '1 day' * (random() - 0.01)",
        ),
        "all pages of 1 % of the hosts due": (
            "ten a host",
            "now() + interval '1 hour' * random() * case when mod(host_id, 100) = 0 then -1 else 24 end",
        ),
    }
    for kind, (shape, due) in kinds.items():
        with stage.loaded(due) as url, Backend(url) as backend:
            few_due = buffers_per_page(backend, calls.SHAPES[shape], 10)
        yield at_most(
            f"buffers per page, {kind} ÷ everything due, {shape}",
            few_due / all_due[shape], 1.5, "×", f" ({few_due:.3g} and {all_due[shape]:.3g})",
        )  # fmt: skip


def onehost(stage: Stage) -> Iterator[Line]:
    """At times of its own, a hundred seconds apart: the clock would allow one such pop in a hundred seconds."""
    seconds, samples, spread = 100, Samples(), True
    with stage.standard() as many_url, stage.empty() as one_url, Backend(many_url) as many, Backend(one_url) as one:
        progress(f"loading {stage.pages:,} pages on one host")
        data.load_pages(one.connection, 1, stage.pages)
        data.warm(one.connection, 1)
        data.warm(many.connection, stage.hosts)
        one.run("select recrawl.set_setting('max_ahead', '100 seconds')")
        now: datetime = one.rows("select clock_timestamp()")[0][0]
        for number in range(-WARM_UP, stage.rounds(200)):
            if number == 0:
                samples = Samples()
            samples.take("ref", one, calls.ref)
            pages = samples.take("many", many, calls.pop, calls.TEN_A_HOST)
            calls.report_arrays(many, calls.fetched(pages))
            now += timedelta(seconds=seconds + 1)
            pages = samples.take("one", one, calls.pop_at, now, f"{seconds} s")
            calls.report_arrays_at(one, now, calls.fetched(pages))
            slots = [page[4] for page in pages]
            gaps = {after - before for before, after in pairwise(slots)}
            spread &= len(slots) == calls.BATCH and slots[0] == now and gaps == {timedelta(seconds=1)}
    found = "100 rows, a gap apart" if spread else "other rows"
    yield Line("one host with all pages, ahead 100 s", found, "100 rows, exactly a gap apart", spread)
    one_host, normal, ref = samples.median("one"), samples.median("many"), samples.median("ref")
    detail = f" ({one_host / ref:.3g} and {normal / ref:.3g} × ref)"
    yield at_most("its CPU ÷ that of the normal pop, ten a host", one_host / normal, 2, "×", detail)
