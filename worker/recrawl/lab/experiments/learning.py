"""The cost of learning rates while crawling: when to stop exploring, and what is lost (Upadhyay et al., 2020).

The histories of the paper come from Bing and are not public. Here rates are log-uniform, and values log-normal.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from recrawl.lab.experiments.findings import Findings, Panel, PlotSeries, ResultTable, Row
from recrawl.lab.learners import Explored, PagesToLearn, explore, greedy
from recrawl.lab.methods import estimators
from recrawl.lab.methods.likelihood import VisitLog, full_mle
from recrawl.lab.policies import explore_then_commit
from recrawl.lab.policies.regret import Exploration
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import Floats
from recrawl.model.policies.epsilon_greedy import until_steady
from recrawl.model.policies.policy import Question
from recrawl.words import count

LEAST, MOST, SPREAD = 0.05, 5.0, 1.5  # changes per day; deviation of the logarithm of values
INTERVALS = (0.5, 1.0, 2.0)  # days between two fetches of a page while all pages are fetched equally often
HORIZONS = np.geomspace(300, 300_000, 7)  # days
SHOWN = 10_000.0  # days: the horizon whose regrets are drawn
# PHASE: the days until the utility of a policy is within 5 % of its utility in the long run. CRAWL: days. FLOORS: the
# shares ε of the budget that are spent on exploring.
PHASE, PHASES = until_steady(1.0, 0.05, LEAST), 16
CRAWL, FLOORS = PHASE * PHASES, (0.0, 0.05, 0.2)
OBSERVATIONS, RATE, KNOWN_BELOW = (10, 30, 100, 300, 1000), 0.5, 2.0  # RATE: changes per day of the page

COMMITS, GREEDY = "explore for the best time, commit", "ε-greedy, ε = {:g}"
ERRORS: dict[str, Literal["line", "dotted"]] = {
    "error of the likeliest rate": "line",
    "error of moment matching": "line",
    "radius by Lemma 3": "dotted",
    "error where changes are counted": "line",
    "radius by Lemma 8": "dotted",
}
Course = tuple[Floats, Floats]  # days; regret until then, in days


@dataclass(frozen=True)
class Size:
    pages: int
    runs: int
    greedy_pages: int
    greedy_runs: int
    pages_looked_at: int


FULL, QUICK = Size(1000, 20, 300, 4, 500), Size(200, 4, 60, 1, 100)


def run(seed: int, quick: bool) -> Findings:
    size, rng = QUICK if quick else FULL, np.random.default_rng(seed)
    explored = [explore(draw(size.pages, interval, seed), 0.2 * HORIZONS[-1], size.runs, rng) for interval in INTERVALS]
    growth = [Growth(found) for found in explored]
    crawls = _crawls(draw(size.greedy_pages, 1.0, seed), size.greedy_runs, rng)
    estimates = [_estimates(visits, size.pages_looked_at, rng) for visits in OBSERVATIONS]
    return Findings(
        tables=[
            ResultTable("exploring for the best time, then committing", [row for of in growth for row in of.rows()]),
            ResultTable("how that grows", [of.row() for of in growth]),
            ResultTable(
                f"lost in a crawl of {count(CRAWL)} days; a fetch a day while exploring",
                [{"policy": name, "regret, days": float(regret[-1])} for name, (_, regret) in crawls.items()],
            ),
            ResultTable(
                f"estimates of a rate of {RATE:g} changes a day, known to be below {KNOWN_BELOW:g}, in changes a day; "
                "fetches at random moments, one a day on average",
                estimates,
            ),
        ],
        figure=[[_regrets(explored), _best_days(growth)], [_courses(crawls), _errors(estimates)]],
        says=_says(growth, crawls, estimates),
    )


def draw(pages: int, interval: float, seed: int) -> PagesToLearn:
    rng = np.random.default_rng(seed)
    rate = np.exp(rng.uniform(math.log(LEAST), math.log(MOST), pages))
    return PagesToLearn(rng.lognormal(0, SPREAD, pages), rate, LEAST, MOST, interval)


class Growth:
    """How the best time to explore, and the regret, grow with the horizon."""

    def __init__(self, explored: Explored) -> None:
        self.explored, self.interval = explored, explored.pages.interval
        self.days = np.array([explored.best_days(horizon) for horizon in HORIZONS])
        self.regret = np.array([explored.regret(horizon).min() for horizon in HORIZONS])
        self.power_of_days, self.power_of_regret = (
            float(np.polyfit(np.log(HORIZONS), np.log(grows), 1)[0]) for grows in (self.days, self.regret / HORIZONS)
        )

    def row(self) -> Row:
        return {
            "fetched every, days": self.interval,
            "best time to explore: as the horizon to the power of": self.power_of_days,
            "regret per day: to the power of": self.power_of_regret,
        }

    def rows(self) -> list[Row]:
        bound = Exploration(self.interval, len(self.explored.pages.rate), LEAST, MOST)
        return [
            {
                "fetched every, days": self.interval,
                "horizon, days": round(horizon),
                "best time to explore, days": float(days),
                "regret, days": float(regret),
                "regret, % of the horizon": 100 * float(regret) / horizon,
                "time that Theorem 1 asks for, days": bound.best_days(horizon),
            }
            for horizon, days, regret in list(zip(HORIZONS.tolist(), self.days, self.regret, strict=True))[::2]
        ]


def _crawls(pages: PagesToLearn, runs: int, rng: np.random.Generator) -> dict[str, Course]:
    """The policy explore_then_commit explores as long as Theorem 1 asks for, at most a tenth of the horizon."""
    explored = explore(pages, CRAWL, 5 * runs, rng)
    asked = Question(pages.web(pages.rate), pages.budget, "poisson_freshness", Limits(), horizon=CRAWL)
    crawls = {
        COMMITS: explored.course(explored.best_days(CRAWL), CRAWL),
        "explore as long as recrawl's policy, commit": explored.course(explore_then_commit.explores_for(asked), CRAWL),
    }
    for floor in FLOORS:
        courses = [greedy(pages, floor, PHASE, PHASES, rng) for _ in range(runs)]
        crawls[GREEDY.format(floor)] = courses[0][0], np.mean([regret for _, regret in courses], axis=0)
    return crawls


def _estimates(visits: int, pages: int, rng: np.random.Generator) -> Row:
    """The estimates for many pages with the same rate."""
    interval = rng.exponential(1.0, pages * visits)
    changes = rng.poisson(RATE * interval)
    log = VisitLog(np.arange(pages + 1) * visits, interval, changes > 0)
    likeliest = np.abs(full_mle(log) - RATE)
    matched = np.abs(estimators.moment_matching(log, most=KNOWN_BELOW) - RATE)
    counted = np.abs(np.minimum(estimators.fully_observed(log, changes), KNOWN_BELOW) - RATE)
    radius = estimators.moment_matching_radius(log, KNOWN_BELOW)
    counted_radius = estimators.fully_observed_radius(log, KNOWN_BELOW)
    means = [float(found.mean()) for found in (likeliest, matched, radius, counted, counted_radius)]
    return {
        "fetches": visits,
        **dict(zip(ERRORS, means, strict=True)),
        "within Lemma 3's, %": 100 * float((matched <= radius).mean()),
        "within Lemma 8's, %": 100 * float((counted <= counted_radius).mean()),
    }


# --------------------------------------------------------------------------------------------------- what is shown


def _name(pages: PagesToLearn) -> str:
    return f"fetches a day: {1 / pages.interval:g}"


def _regrets(explored: list[Explored]) -> Panel:
    series = []
    for found in explored:
        shown = found.days <= SHOWN
        series.append(PlotSeries(_name(found.pages), found.days[shown], found.regret(SHOWN)[shown]))
    return Panel(f"regret until day {count(SHOWN)}", "exploring, days", "regret, days", series, log="xy")


def _best_days(growth: list[Growth]) -> Panel:
    series = [PlotSeries(_name(of.explored.pages), HORIZONS, of.days) for of in growth]
    root = PlotSeries("√horizon", HORIZONS, np.sqrt(HORIZONS), "dotted")
    return Panel("best time to explore", "horizon, days", "exploring, days", [*series, root], log="xy")


def _courses(crawls: dict[str, Course]) -> Panel:
    series = [
        PlotSeries(name, days, regret, "dashed" if name.startswith("explore") else "line")
        for name, (days, regret) in crawls.items()
    ]
    return Panel("regret of exploring first, and of exploring all the time", "days", "regret so far, days", series)


def _errors(estimates: list[Row]) -> Panel:
    visits = np.array([float(row["fetches"]) for row in estimates])
    series = [
        PlotSeries(name, visits, np.array([float(row[name]) for row in estimates]), ERRORS[name]) for name in ERRORS
    ]
    return Panel("errors of the estimates, and their limits", "fetches", "changes a day", series, log="xy")


def _says(growth: list[Growth], crawls: dict[str, Course], estimates: list[Row]) -> str:
    days = ", ".join(f"{of.power_of_days:.2f}" for of in growth)
    regret = ", ".join(f"{of.power_of_regret:.2f}" for of in growth)
    committed, exploring = (float(crawls[name][1][-1]) for name in (COMMITS, GREEDY.format(0.05)))
    wide = float(estimates[-1]["radius by Lemma 3"]) / float(estimates[-1]["error of moment matching"])
    return (
        f"There are three cases: while the policy explores, it fetches each page every 0.5, 1 or 2 days. The best "
        f"number of days to explore grows like the length of the crawl to the power of {days}, in this order. The "
        f"regret per day changes like the length to the power of {regret}. In a crawl of {count(CRAWL)} days the "
        f"policy that explores for the best time and then commits loses {committed:.1f} days. The policy ε-greedy "
        f"always spends a share ε of the fetches on exploring. With ε = 0.05 it loses {exploring:.1f} days. Lemma 3 "
        f"of the paper gives a limit for the error of learned rates. This limit is {wide:.0f} times as large as the "
        f"measured error."
    )
