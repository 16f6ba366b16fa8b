"""The row about the cost of a pop and its report, compared with earlier revisions of this repository, in turns."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import LiteralString

from bench import calls, data, server
from bench.line_rows import RANKS, make_new
from bench.measure import Backend, Samples, progress
from bench.stage import Stage
from bench.table import Line, note

# The last before a pop chose across hosts, and the one that first did.
REVISIONS = ("b4954c0", "f66ff5d")
SHAPES = {"one a host": "0", "ten a host": "0.09 s"}
# Run by the revision's own code, as its tables and the rooms of its house are others.
MAKE: LiteralString = """
import sys
import psycopg
from bench import data
try:
    from recrawl.setup import migrate
except ImportError:
    from recrawl import migrate
url, hosts, pages = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
migrate.upgrade(url)
with psycopg.connect(url, autocommit=True) as connection:
    data.load_pages(connection, hosts, pages)
    data.load_ref(connection)
"""


def before(stage: Stage) -> Iterator[Line]:
    with ExitStack() as stack:
        engines = {revision: stack.enter_context(_engine_of(revision, stage)) for revision in REVISIONS}
        for kind, rank in RANKS.items():
            with ExitStack() as kept:
                backends = {
                    revision: kept.enter_context(Backend(kept.enter_context(_ready(stage, url, kind, rank))))
                    for revision, url in (engines | {"now": None}).items()
                }
                samples = _in_turns(backends, stage.rounds(100))
            for shape in SHAPES:
                for revision in REVISIONS:
                    pop, report, both = (
                        samples.sum_of_medians(*(f"{call} {shape}, now" for call in which))
                        / samples.sum_of_medians(*(f"{call} {shape}, {revision}" for call in which))
                        for which in (("pop",), ("report",), ("pop", "report"))
                    )
                    yield note(
                        f"CPU of next_pages(100) + report_pages(100), {kind}, {shape}, ÷ that of {revision}",
                        f"{both:.3g} × (pop {pop:.3g}, report {report:.3g})",
                    )
            for n in (1, 10):
                ratios = (samples.median(f"pop {n}, now") / samples.median(f"pop {n}, {then}") for then in REVISIONS)
                yield note(
                    f"CPU of next_pages({n}), {kind}, ÷ that of {', '.join(REVISIONS)}",
                    ", ".join(f"{ratio:.3g} ×" for ratio in ratios),
                )


@contextmanager
def _engine_of(revision: str, stage: Stage) -> Iterator[str]:
    """A database of that revision with the standard pages."""
    repository = Path(__file__).parents[2]
    with tempfile.TemporaryDirectory(prefix="recrawl-before-") as folder:
        archive = subprocess.run(["git", "archive", revision], cwd=repository, check=True, stdout=subprocess.PIPE)
        subprocess.run(["tar", "--extract", "--directory", folder], input=archive.stdout, check=True)

        def make(url: str) -> None:
            progress(f"loading {stage.pages:,} pages as of {revision}")
            subprocess.run(
                [sys.executable, "-c", MAKE, url, str(stage.hosts), str(stage.pages)], cwd=folder, check=True,
                env=os.environ | {"PYTHONPATH": f"{folder}/worker:{folder}/tests"},
            )  # fmt: skip

        with server.database(stage.server_url, upgrade=make) as url:
            yield url


@contextmanager
def _ready(stage: Stage, template: str | None, kind: str, rank: LiteralString | None) -> Iterator[str]:
    with stage.standard() if template is None else server.database(stage.server_url, template) as url:
        with Backend(url) as backend:
            backend.run("select recrawl.set_setting('default_gap', '10 milliseconds')")
            if rank:
                progress(f"{kind}: turning pages into new ones")
                make_new(backend, rank, 2 if kind == "both" else 1)
            data.warm(backend.connection, stage.hosts)
        yield url


def _in_turns(backends: dict[str, Backend], rounds: int) -> Samples:
    samples = Samples()
    for number in range(-20, rounds):
        if number == 0:
            samples = Samples()
        for revision, backend in backends.items():
            for n in (1, 10):
                samples.take(f"pop {n}, {revision}", backend, calls.pop, calls.ONE_A_HOST, n)
            for shape, ahead in SHAPES.items():
                pages = samples.take(f"pop {shape}, {revision}", backend, calls.pop, ahead)
                if len(pages) != calls.BATCH:
                    raise RuntimeError(f"{len(pages)} pages were popped of {revision}, {shape}")
                samples.take(f"report {shape}, {revision}", backend, calls.report_arrays, calls.fetched(pages))
    return samples
