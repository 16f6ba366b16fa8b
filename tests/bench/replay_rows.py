"""The row about the laboratory's replay: allocations included, on one core."""

import time
from collections.abc import Iterator

from bench.measure import progress
from bench.table import Line, at_least
from recrawl.lab import worlds
from recrawl.lab.replay import replay
from recrawl.model.policies.registry import POLICIES

PAGES, DAYS = 100_000, 60
BUDGET = 2.0  # fetches per page and day


def visits() -> Iterator[Line]:
    progress(f"a web of {PAGES:,} pages")
    world = worlds.draw("drift", seed=1, hosts=PAGES // 100, pages=PAGES, days=DAYS)
    replay(world, POLICIES["opt_polite"], BUDGET, 0.0, 2.0)  # compiles
    began = time.process_time()
    made = replay(world, POLICIES["opt_polite"], BUDGET, 0.0, DAYS).fetches
    rate = made / (time.process_time() - began) / 1e6
    yield at_least(f"visits a second, of {PAGES:,} pages over {DAYS} days", rate, 5, "M", f" ({made:,} visits)")
