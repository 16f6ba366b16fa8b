"""Which page to fetch first from a host that is behind: at the start, and after an outage (Souza, 2010, DELAYED).

On a host that is not behind the order makes almost no difference. Here a host has more due pages than slots: no page
was ever fetched, or no crawler came for twelve hours. The rates are known and all pages have the same value. Freshness
is an expected value, so only phases and rates are random: the results are means over several draws.
"""

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultShare, ResultTable, Row
from recrawl.lab.experiments.overtaking import overtaking
from recrawl.lab.methods import delayed
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import unconstrained
from recrawl.words import count

GAP = 15 / 86400  # days
LOAD = 0.9  # share of the slots of a host that its revisits take
PAGES = (1_000, 3_000, 10_000)
DRAWS, FEW_DRAWS = 5, 1
OUTAGE, AFTERWARDS = 0.5, 0.25  # days: the length of the outage, and the time after it that is measured
RUN = 1 / 24  # days between two allocations
START = 6.0  # days
LOOKS = 60

# The order of due pages, from their due times, the ages of their copies, and their rates.
Choice = Callable[[Floats, Floats, Floats], Floats]  # the page with the least number goes first
NOBODY = np.empty(0, np.int64)


def first_due(due: Floats, age: Floats, rate: Floats) -> Floats:
    return due


def worth_most(due: Floats, age: Floats, rate: Floats) -> Floats:
    """The gain of a fetch now compared with no fetch at all, as in the optimum: w/λ · (1 − (1 + λ·age)·e^(−λ·age))."""
    seen = rate * age
    worth: Floats = -(1 - (1 + seen) * np.exp(-seen)) / rate
    return worth


EVERY_VISIT, FIRST_DUE = "first due, every missed fetch made", "first due, as recrawl"
EVERY_HOUR, WORTH_MOST = "worth most first, once an hour", "worth most first"
# For each order: whether missed fetches are left out, and whether pages overtake others.
AFTER: dict[str, tuple[Choice, bool, bool]] = {
    EVERY_VISIT: (first_due, False, False),
    FIRST_DUE: (first_due, True, False),
    EVERY_HOUR: (first_due, True, True),
    WORTH_MOST: (worth_most, True, False),
}
NO_PASS, AS_THEY_CAME = "no first pass", "first pass as pages came, as recrawl"
STEADIEST = "first pass, the steadiest first"


def run(seed: int, quick: bool) -> Findings:
    draws = range(seed, seed + (FEW_DRAWS if quick else DRAWS))
    sizes = PAGES[:1] if quick else PAGES
    after = {pages: _means(_after_an_outage(pages, draw) for draw in draws) for pages in sizes}
    start = {pages: _means(_at_the_start(pages, draw) for draw in draws) for pages in sizes}
    hourly, known_at_once = _gain(after, EVERY_HOUR, FIRST_DUE), _gain(after, WORTH_MOST, FIRST_DUE)
    passed, known = _gain(start, AS_THEY_CAME, NO_PASS), _gain(start, STEADIEST, AS_THEY_CAME)
    return Findings(
        tables=[
            ResultTable(f"share of the pages that are fresh after {24 * OUTAGE:g} hours without a crawler, mean of "
                  f"{24 * AFTERWARDS:g} hours", [_row(pages, of) for pages, of in after.items()]),
            ResultTable(f"share of the pages that are fresh from the start, mean of {START:g} days",
                  [_row(pages, of) for pages, of in start.items()]),
        ],
        figure=[[_panel(f"{count(pages)} pages, after the outage", 24 * AFTERWARDS, "hours", after[pages])
                 for pages in sizes],
                [_panel(f"{count(pages)} pages, from the start", START, "days", start[pages]) for pages in sizes]],
        says=(
            f"At the start recrawl gives every second slot to new pages. This gains {passed} points of freshness in "
            f"the first {START:g} days. If recrawl knew the pages that change least and fetched them first, it would "
            f"gain {known} points more. After an outage recrawl fetches the late pages in the order of their due "
            f"times. If the most valuable pages moved to the front once an hour, freshness would gain {hourly} points "
            f"in {24 * AFTERWARDS:g} hours. The order «worth most first» would gain {known_at_once} points."
        ),
    )  # fmt: skip


def _host(pages: int, seed: int) -> tuple[Floats, Floats, np.random.Generator]:
    """The rates of the pages of a host, and the best frequencies for them."""
    rng = np.random.default_rng([seed, pages])
    rate = rng.lognormal(np.log(1 / 5), 1.5, pages)
    return rate, unconstrained(np.ones(pages), rate, LOAD / GAP).frequency, rng


def _after_an_outage(pages: int, seed: int) -> dict[str, Floats]:
    """The freshness of the host from the end of the outage on, for each order."""
    rate, frequency, rng = _host(pages, seed)
    visited = np.flatnonzero(frequency > 0)
    last = -rng.random(visited.size) / frequency[visited]  # when the outage began, no page was late
    found = {}
    for name, (choice, skips, overtakes) in AFTER.items():
        made = requests(rate[visited], frequency[visited], last + 1 / frequency[visited], last,
                        OUTAGE, OUTAGE + AFTERWARDS, choice, skips, overtakes)  # fmt: skip
        start, page = np.append(last, made[0]), np.append(np.arange(visited.size), made[1])
        found[name] = _fresh(rate, start, visited[page], OUTAGE, OUTAGE + AFTERWARDS)
    return found


def _at_the_start(pages: int, seed: int) -> dict[str, Floats]:
    """Without a share for new pages, each page is due for the first time within its first interval. Otherwise every
    second slot is for pages that were never fetched."""
    rate, frequency, rng = _host(pages, seed)
    phase = rng.random(pages)
    passes = {NO_PASS: NOBODY, AS_THEY_CAME: rng.permutation(pages), STEADIEST: np.argsort(rate)}
    found = {}
    for name, first_pass in passes.items():
        with np.errstate(divide="ignore"):
            due = np.where(frequency > 0, phase / frequency, np.inf)
        start, page = requests(
            rate, frequency, due, np.full(pages, -np.inf), 0, START, first_due, True, first_pass=first_pass
        )
        found[name] = _fresh(rate, start, page, 0, START)
    return found


def requests(
    rate: Floats, frequency: Floats, due: Floats, last: Floats, begin: float, end: float,
    choice: Choice, skips: bool, overtakes: bool = False, first_pass: NDArray[np.int64] = NOBODY,
) -> tuple[Floats, NDArray[np.int64]]:  # fmt: skip
    """When the host gets a request for which page, slot by slot. Of the due pages the choice puts one first. Every
    second slot is for pages of the first pass that were not requested yet, as long as there are such pages. At each
    allocation, pages may overtake others."""
    due, last = due.copy(), last.copy()
    starts, pages = [], []
    unseen = iter(first_pass)
    now, nth, next_run = begin, 0, begin if overtakes else np.inf
    while now < end:
        if now >= next_run:
            next_run = now + RUN
            _overtake(rate, frequency, due, last, now)
        nth += 1
        page = next((int(p) for p in unseen if np.isinf(last[p])), None) if nth % 2 else None
        if page is None:
            late = np.flatnonzero(due <= now)
            if not late.size:
                now = float(due.min())
                continue
            page = int(late[choice(due[late], now - last[late], rate[late]).argmin()])
        starts.append(now)
        pages.append(page)
        last[page] = now
        if frequency[page] > 0:
            late_by = max(now - due[page], 0) if due[page] < np.inf else 0.0
            missed = np.ceil(late_by * frequency[page]) if skips else 1.0
            due[page] += max(missed, 1.0) / frequency[page]
        now += GAP
    return np.array(starts), np.array(pages, np.int64)


def _overtake(rate: Floats, frequency: Floats, due: Floats, last: Floats, now: float) -> None:
    late = np.flatnonzero(due <= now)
    age = now - last[late]
    worth = -worth_most(due[late], age, rate[late])
    which, late_by = overtaking(
        np.zeros(late.size, np.intp), now - due[late], age - 1 / frequency[late], worth, np.array([RUN / GAP])
    )
    due[late[which]] = now - late_by


def _fresh(rate: Floats, start: Floats, page: NDArray[np.int64], begin: float, end: float) -> Floats:
    """Expected freshness in % of the pages: the means of equal parts of the time."""
    order = np.lexsort((start, page))
    start, page = start[order], page[order]
    edges = np.linspace(begin, end, LOOKS + 1)
    means = []
    for of, to in pairwise(edges):
        until = start < to
        means.append(100 * delayed.good_between(rate, start[until], page[until], of, to).mean())
    return np.array(means)


def _means(draws: Iterable[dict[str, Floats]]) -> dict[str, Floats]:
    every = list(draws)
    return {name: np.mean([of[name] for of in every], axis=0) for name in every[0]}


def _gain(sizes: dict[int, dict[str, Floats]], of: str, over: str) -> str:
    gains = sorted(float((fresh[of] - fresh[over]).mean()) for fresh in sizes.values())
    return f"{gains[0]:.1f} to {gains[-1]:.1f}"


def _row(pages: int, of: dict[str, Floats]) -> Row:
    return {"pages of the host": pages, **{name: ResultShare(fresh.mean() / 100) for name, fresh in of.items()}}


def _panel(title: str, length: float, unit: str, of: dict[str, Floats]) -> Panel:
    x = (np.arange(LOOKS) + 0.5) / LOOKS * length
    return Panel(title, unit, "fresh, % of the pages", [PlotSeries(name, x, fresh) for name, fresh in of.items()])
