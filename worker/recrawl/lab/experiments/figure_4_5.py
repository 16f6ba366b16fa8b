"""Freshness with and without gaps between requests to a host, over years of a crawl (Souza, 2010, figure 4.5).

The web of the thesis was recorded and is not public. Two random webs that are similar to it replace it. All pages have
the same value. At first the copies of all pages that change are outdated. One more policy is shown: the allocation of
recrawl with its default settings, which fetches every page sometimes, because rates are learned and not known.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultShare, ResultTable, Row
from recrawl.lab.methods import delayed
from recrawl.lab.replay import PRODUCTION
from recrawl.model.allocation.objectives import Floats
from recrawl.model.allocation.solve import Web, allocate, unconstrained
from recrawl.model.policies.outlook import as_hosts_can

GAP = 15 / 86400  # days
# Days of a run, by the share of the slots of all hosts that the budget uses.
DAYS = {0.01: 1500.0, 0.1: 250.0, 0.9: 60.0}
HOSTS, FEW_HOSTS = 200, 8
LOOKS, FEW_LOOKS = 30, 10

OPT_POLITE, CHO, OURS = "DELAYED + OPT_POLITE", "DELAYED + CHO", "DELAYED + recrawl's"


@dataclass(frozen=True, eq=False)
class Drawn:
    web: Web
    phase: Floats  # the part of its first interval after which each page is due


@dataclass(frozen=True, eq=False)
class PoliteRun:
    """Freshness in %, of all pages."""

    drawn: str
    share: float
    unpolite: float
    polite: float
    late: dict[str, float]  # by policy: the expected freshness, as the mean of the second half
    days: Floats
    fresh: dict[str, Floats]  # the expected freshness on those days
    row: Row


def run(seed: int, quick: bool) -> Findings:
    hosts, looks = (FEW_HOSTS, FEW_LOOKS) if quick else (HOSTS, LOOKS)
    runs = [_run(name, draw(name, seed, hosts), share, looks) for name in "AB" for share in DAYS]
    gap = max(run.polite - run.late[OPT_POLITE] for run in runs)
    worse = max(run.late[OPT_POLITE] - run.late[CHO] for run in runs)
    price = max(run.unpolite - run.polite for run in runs)
    floors = max(run.late[OPT_POLITE] - run.late[OURS] for run in runs)
    return Findings(
        tables=[ResultTable(f"expected freshness, mean of the second half; {hosts} hosts", [run.row for run in runs])],
        figure=[[_panel(run) for run in runs if run.drawn == name] for name in "AB"],
        says=(
            f"Gaps cost up to {price:.1f} points of freshness. With OPT_POLITE the freshness is at most {gap:.3f} "
            f"points below the limit POLITE. With CHO it is up to {worse:.1f} points lower than with OPT_POLITE. The "
            f"minimum of fetches, which recrawl gives to each page, costs up to {floors:.1f} points."
        ),
    )


def draw(name: str, seed: int = 0, hosts: int = HOSTS) -> Drawn:
    """The order of the random numbers is part of the experiment: another order moves results by .02 to .07 points."""
    seed += {"A": 7, "B": 11}[name]
    rng = np.random.default_rng(seed)
    if name == "A":  # sizes follow a power law, rates span decades
        pages = np.minimum(np.floor(100 * rng.random(hosts) ** (-1 / 0.8)), 60_000).astype(np.int64)
        rate, static = rng.lognormal(np.log(1 / 5), 1.5, pages.sum()), 0.2
    else:  # sizes follow Zipf's law, half of the pages never change
        pages = 60_000 // np.arange(1, hosts + 1)
        rate, static = rng.exponential(1 / 3, pages.sum()), 0.5
    rate[rng.random(rate.size) < static] = 0
    web = Web(np.ones_like(rate), rate, np.append(0, np.cumsum(pages)), np.full(hosts, 1 / GAP))
    return Drawn(web, np.random.default_rng(seed + 100).random(rate.size))


def _run(name: str, drawn: Drawn, share: float, count: int) -> PoliteRun:
    web, pages, days = drawn.web, len(drawn.web.rate), DAYS[share]
    budget = share * float(web.cap.sum())
    polite, unpolite = allocate(web, budget), unconstrained(web.value, web.rate, budget)
    allocated = {OPT_POLITE: polite, CHO: unpolite, OURS: allocate(web, budget, limits=PRODUCTION)}
    looks = np.geomspace(days / 500, days, count)
    late, fresh = dict[str, float](), dict[str, Floats]()
    for policy, allocation in allocated.items():
        late[policy], fresh[policy] = simulate(drawn, allocation.frequency, days, looks)
    bounds = {"UNPOLITE": 100 * unpolite.utility / pages, "POLITE": 100 * polite.utility / pages}
    return PoliteRun(
        name,
        share,
        bounds["UNPOLITE"],
        bounds["POLITE"],
        late,
        looks,
        fresh,
        {
            "web": name,
            "pages": pages,
            "budget, % of what hosts take": 100 * share,
            "days": days,
            **{name: ResultShare(fresh / 100) for name, fresh in [*bounds.items(), *late.items()]},
            "CHO can spend, %": 100 * float(as_hosts_can(web, unpolite.frequency).sum()) / budget,
        },
    )


def simulate(drawn: Drawn, frequency: Floats, days: float, looks: Floats) -> tuple[float, Floats]:
    """Expected freshness in % with DELAYED: the mean of the second half of the days, and the values on some days."""
    late, fresh = 0.0, np.zeros(looks.size)
    for first, end in pairwise(drawn.web.starts):
        rate = drawn.web.rate[first:end].astype(np.float64)
        start, page = delayed.requests(frequency[first:end], drawn.phase[first:end], GAP, days)
        late += float(delayed.good_between(rate, start, page, days / 2, days).sum())
        fresh += delayed.good_at(rate, start, page, looks)
    pages = len(frequency)
    return 100 * late / pages, 100 * fresh / pages


def _panel(run: PoliteRun) -> Panel:
    ends = run.days[[0, -1]]
    return Panel(
        f"web {run.drawn}, budget {100 * run.share:g} % of what hosts can take",
        "days",
        "fresh, % of the pages",
        [
            PlotSeries("limit without gaps (UNPOLITE)", ends, np.full(2, run.unpolite), "dotted"),
            PlotSeries("limit with gaps (POLITE)", ends, np.full(2, run.polite), "dashed"),
            *(PlotSeries(policy, run.days, fresh) for policy, fresh in run.fresh.items()),
        ],
        log="x",
    )
