"""The rows about throughput, by the clock on the wall: clients, add, links."""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from bench import calls, data, server
from bench.crew import Crew, Work
from bench.measure import Backend
from bench.stage import Stage
from bench.table import Line, at_least

SECONDS = 4.0  # of one measurement
TURNS = 5


def with_ref(crew: Crew, measure: Callable[[], float]) -> tuple[float, float]:
    """Medians of a rate and of the yardstick's, taken in turn with as many clients."""
    rates, refs = [], []
    crew.rate(calls.ref, 1)
    for _ in range(TURNS):
        refs.append(crew.rate(calls.ref, SECONDS / 2))
        rates.append(measure())
    return statistics.median(rates), statistics.median(refs)


# ------------------------------------------------------------------------------------------------------------ clients


def clients(stage: Stage) -> Iterator[Line]:
    for shape, ahead in calls.SHAPES_OF_SHORT_GAP.items():
        for size in (4, 8):
            with stage.standard() as url, server.worker(url), Backend(url) as backend, Crew(url, size) as crew:
                backend.run("select recrawl.set_setting('default_gap', %s)", [calls.SHORT_GAP])
                data.warm(backend.connection, stage.hosts)
                work = partial(calls.cycle, ahead=ahead)
                crew.rate(work, 1)
                rate, ref = with_ref(crew, partial(crew.rate, work, SECONDS))
            detail = f" ({rate:,.0f} pages/s, ref {ref:,.0f} rows/s)"
            yield at_least(f"pages/s with report, {size} clients, {shape}", rate / ref, 0.27, "× ref", detail)


# ---------------------------------------------------------------------------------------------------------------- add


def add_new(backend: Backend, hosts: int) -> int:
    urls = [new_url(random.randint(1, hosts)) for _ in range(500)]
    added = backend.rows("select code from recrawl.add_pages(%s::text[])", [urls])
    if any(code != "new" for (code,) in added):
        raise RuntimeError(f"not all were new: {added}")
    return len(urls)


def new_url(host: int) -> str:
    return f"https://host{host}.example.com/section-{host % 10}/{uuid.UUID(int=random.getrandbits(128)).hex}.html"


def add(stage: Stage) -> Iterator[Line]:
    for size, bound in ((1, 20_000), (4, 40_000)):
        for drained in (False, True):
            with ExitStack() as stack:
                url = stack.enter_context(stage.standard())
                if drained:
                    stack.enter_context(server.worker(url))
                with Backend(url) as backend:
                    data.warm(backend.connection, stage.hosts)
                crew = stack.enter_context(Crew(url, size))
                work = partial(add_new, hosts=stage.hosts)
                crew.rate(work, 1)
                rate, ref = with_ref(crew, partial(crew.rate, work, SECONDS))
                with Backend(url) as backend:
                    ((waiting,),) = backend.rows("select count(*) from recrawl_internal.inbox")
            how = "a worker draining" if drained else "no worker"
            detail = f" ({rate / ref:.2g} × ref, {waiting:,} left in the inbox)"
            yield at_least(f"add_pages by 500, connections: {size}, {how}", rate, bound, "URLs/s", detail)
    yield from add_command(stage)


def add_command(stage: Stage) -> Iterator[Line]:
    with stage.empty() as url, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "urls.txt"
        with file.open("w") as lines:
            for page in range(1, stage.pages + 1):
                print(data.url_of(page, stage.hosts), file=lines)
        command = [sys.executable, "-m", "recrawl", "add", str(file)]
        start = time.monotonic()
        subprocess.run(command, env=os.environ | {"DATABASE_URL": url}, check=True, capture_output=True)
        seconds = time.monotonic() - start
        with Backend(url) as backend:
            ((pages, waiting),) = backend.rows(
                "select (select count(*) from recrawl_internal.page), (select count(*) from recrawl_internal.inbox)"
            )
            if pages != stage.pages or waiting:
                raise RuntimeError(f"{pages} pages came of {stage.pages} URLs, {waiting} still wait in the inbox")
            with Crew(url, 4) as crew:
                ref = crew.rate(calls.ref, SECONDS)
        detail = f" ({stage.pages / seconds / ref:.2g} × ref of 4 clients; {seconds:.3g} s until all are queued)"
        yield at_least(f"recrawl add FILE, {stage.pages:,} URLs", stage.pages / seconds, 50_000, "URLs/s", detail)


# -------------------------------------------------------------------------------------------------------------- links

LINKS = 30
UNKNOWN = 0.05
POPULAR = 20
REPORTS = 60  # of each connection and turn


def links_of_page(pages: int, hosts: int) -> list[str]:
    """Some lead to unknown pages, and half of those are on a few popular hosts."""
    links = []
    for _ in range(LINKS):
        if random.random() >= UNKNOWN:
            links.append(data.url_of(random.randint(1, pages), hosts))
        else:
            links.append(new_url(random.randint(1, POPULAR if random.random() < 0.5 else hosts)))
    return links


def reports_with_links(backend: Backend, pages: int, hosts: int) -> list[Work]:
    prepared: list[Work] = []
    for _ in range(REPORTS):
        outcomes = calls.fetched(calls.pop(backend, calls.TEN_A_HOST))
        for outcome in outcomes:
            outcome["links"] = links_of_page(pages, hosts)
        prepared.append(partial(report_body, body=json.dumps(outcomes)))
    return prepared


def report_body(backend: Backend, body: str) -> int:
    answers = backend.rows("select code, detail from recrawl.report(%s::jsonb)", [body])
    wrong = [answer for answer in answers if answer[0] != "ok"]
    if wrong:
        raise RuntimeError(f"refused: {wrong[:3]}")
    return len(answers)


@contextmanager
def looking_at_popular_hosts(url: str) -> Iterator[list[int]]:
    """While it lasts, notes again and again how many of the popular hosts a pop could take."""
    seen: list[int] = []
    done = threading.Event()

    def look() -> None:
        with Backend(url) as backend:
            while not done.wait(0.003):
                seen.append(
                    len(
                        backend.rows(
                            "select from recrawl_internal.host where host_id between 1 and %s for update skip locked",
                            [POPULAR],
                        )
                    )
                )

    with ThreadPoolExecutor(1) as pool:
        looker = pool.submit(look)
        try:
            yield seen
        finally:
            done.set()
            looker.result()


def links(stage: Stage) -> Iterator[Line]:
    for size, bound in ((1, 1_500), (4, 4_000)):
        seen: list[int] = []
        with stage.standard() as url, server.worker(url), Crew(url, size) as crew:
            with Backend(url) as backend:
                data.warm(backend.connection, stage.hosts)

            def measure(url: str = url, crew: Crew = crew, seen: list[int] = seen) -> float:
                crew.prepare(partial(reports_with_links, pages=stage.pages, hosts=stage.hosts))
                with looking_at_popular_hosts(url) as looks:
                    rate = crew.rate_of_prepared()
                seen += looks
                return rate

            rate, ref = with_ref(crew, measure)
        detail = f" ({rate / ref:.2g} × ref)"
        yield at_least(f"report(100), {LINKS} links a page, connections: {size}", rate, bound, "pages/s", detail)
        visible = 100 * statistics.mean(seen) / POPULAR
        worst = 100 * sum(look < POPULAR / 2 for look in seen) / len(seen)
        detail = f" ({len(seen)} looks, {worst:.2g} % of them saw less than half)"
        yield at_least("popular hosts visible to pops meanwhile", visible, 90, "%", detail)
