"""Runs a policy on a recorded web whose every change is known. The code is the code of production, but there is no
database. (setup/replay.py brings sql/ into a database.)

A page is known from its birth, which is its first fetch. Pages that live at the beginning were fetched at that moment;
nothing else is known of them. There is one allocation per day. Fetches that new pages took recently are not available
for revisits. Hosts have no gaps. A page that was found gone is not fetched again.

A fetch that is due during an outage happens after the outage, and costs nothing before. Through SQL it is tried
sometimes during the outage, and each failure blocks the host for longer. So the host comes back later, by at most the
length of the outage.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.outcome import Outcome, outcome
from recrawl.lab.visits import Events, Pages, VisitTerms, visit
from recrawl.lab.world import World
from recrawl.model import limits
from recrawl.model.allocation import due_moves
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import Floats, objective_named
from recrawl.model.allocation.solve import Allocation, Web
from recrawl.model.change import prior
from recrawl.model.policies.policy import Policy, Question
from recrawl.words import count

ALLOCATES_EVERY = 1.0  # days
LEARNS_EVERY = 7.0  # days between two fits of the hosts' priors
RECENT_DAYS = 30  # days: new pages of this time are counted
FURTHEST = 1e6  # days from day 0. _put_dues() uses it for infinity, because infinity − infinity is not a number
PRODUCTION = Limits(exploration=0.05, longest_interval=60.0, shortest_interval=5 / 1440)  # as settings are at first
OBJECTIVE, DISCOVERY = "freshness", 0.5


def replay(
    world: World,
    policy: Policy,
    budget: float,
    begin: float,
    end: float,
    seed: int = 0,
    watch: Callable[[float], None] = lambda days: None,
) -> Outcome:
    """budget: fetches per known page and day. `watch` is called with the number of simulated days."""
    check(world, budget, begin, end)
    return run(Replay(world.between(begin, end), policy, budget, begin, end, np.random.default_rng(seed)), watch)


def run(crawl: "Replay", watch: Callable[[float], None]) -> Outcome:
    today = crawl.begin
    while today < crawl.end:
        crawl.day(today, min(today + ALLOCATES_EVERY, crawl.end))
        today += ALLOCATES_EVERY
        watch(today - crawl.begin)
    return crawl.outcome()


def check(world: World, budget: float, begin: float, end: float) -> None:
    if not 0 < budget < math.inf:
        raise ValueError(f"budget must be a positive number of fetches per page and day, got {budget:g}")
    if not (abs(begin) <= FURTHEST and abs(end) <= FURTHEST):
        raise ValueError(f"days must lie between -{count(FURTHEST)} and {count(FURTHEST)}, got {begin:g} to {end:g}")
    if not begin < end:
        raise ValueError(f"the end must come after the beginning, day {begin:g}; got {end:g}")
    if not np.any((world.born < end) & (world.died > begin)):
        raise ValueError(f"no page lives between day {begin:g} and day {end:g}")


class Replay:
    learns_rates = True  # from what fetches see
    limits = PRODUCTION

    def __init__(
        self, world: World, policy: Policy, budget: float, begin: float, end: float, rng: np.random.Generator
    ) -> None:
        self.world, self.policy, self.budget = world, policy, budget
        self.begin, self.end = begin, end
        self.rng = rng
        pages, hosts = world.pages, len(world.hosts)
        self.pages = Pages(
            host=world.host_of_page,
            born=world.born,
            died=world.died,
            next_change=world.first_change[:-1].copy(),
            last_change=world.first_change[1:],
            value=world.value,
            is_noisy=world.is_noisy,
            seen_at=np.full(pages, np.nan),
            is_gone=np.zeros(pages, bool),
            due_at=np.full(pages, np.inf),
            planned_interval=np.full(pages, np.nan),
            seen_changes=np.zeros(pages),
            seen_days=np.zeros(pages),
            frequency=np.zeros(pages),
            stale_days=np.zeros(pages),
            missed_days=np.zeros(pages),
            changes_seen=np.zeros(pages, np.int64),
        )
        self.events = Events(world.changed_at, world.version_ids, *world.down)
        self.prior_changes = np.full(hosts, limits.FIRST_CHANGES)
        self.prior_days = np.full(hosts, limits.FIRST_DAYS)
        self.learnt_at = begin
        self.answer: Allocation | None = None
        self.learns = True
        self.first_fetches = list[int]()  # first fetches of each day
        self.revisits = 0

    # ---------------------------------------------------------------------------------------------------- a day

    def day(self, today: float, tomorrow: float) -> None:
        if today - self.learnt_at >= LEARNS_EVERY and self.learns and self.learns_rates:
            self._learn()
            self.learnt_at = today
        if today == self.begin:
            self._begin(today)
        terms = self._allocate(today)
        self._find(today, tomorrow, terms)
        self.revisits += visit(today, tomorrow, self.pages, self.events, terms)

    def _begin(self, today: float) -> None:
        """All pages that live on the first day are known."""
        here = np.flatnonzero(self.pages.born <= today)
        self.pages.seen_at[here] = today
        self.pages.due_at[here] = today  # until the first allocation
        self.first_fetches.append(len(here))

    def _find(self, today: float, tomorrow: float, terms: VisitTerms) -> None:
        """Pages are fetched for the first time when they are born."""
        pages = self.pages
        new = np.flatnonzero((pages.born > today) & (pages.born <= tomorrow) & (pages.born < self.end))
        new = new[np.isnan(pages.seen_at[new])]
        frequency = self._frequency(new, today, terms)
        pages.frequency[new] = frequency
        pages.seen_at[new] = pages.born[new]
        pages.planned_interval[new] = due_moves.intervals(frequency)
        pages.due_at[new] = pages.born[new] + pages.planned_interval[new]
        self.first_fetches.append(len(new))

    # ----------------------------------------------------------------------------------------- learning, deciding

    def _learn(self) -> None:
        found = prior.fit(self.world.first_page, self.pages.seen_changes, self.pages.seen_days)
        self.prior_changes, self.prior_days = found.a, found.b

    def _rate(self, today: float) -> Floats:
        host = self.pages.host
        return (self.prior_changes[host] + self.pages.seen_changes) / (self.prior_days[host] + self.pages.seen_days)

    def _allocate(self, today: float) -> VisitTerms:
        pages, world = self.pages, self.world
        known = np.flatnonzero(pages.is_known())
        rate = self._rate(today)[known]
        if not rate.any():
            return self._without_prices()
        of_host = np.bincount(pages.host[known], minlength=len(world.hosts))
        web = Web(
            pages.value[known],
            rate,
            np.append(0, np.cumsum(of_host)),
            np.full(len(world.hosts), np.inf),
        )
        all_fetches = self.budget * len(known)
        recent = self.first_fetches[1:][-RECENT_DAYS:]
        for_revisits = all_fetches - min(sum(recent) / RECENT_DAYS, DISCOVERY * all_fetches)
        if self.learns:
            before, days = self.answer.price_to_try if self.answer else None, today - self.begin
            asked = Question(web, for_revisits, OBJECTIVE, self.limits, before, days, self.end - self.begin)
            self.answer, self.learns = self.policy.answer(asked), self.policy.learns(asked)
            pages.frequency[known] = self.answer.frequency
            self._put_dues(known, today, for_revisits)
        assert self.answer
        found, is_planned = self.answer, of_host > 0  # other hosts have the common terms
        return VisitTerms(
            prior_changes=self.prior_changes,
            prior_days=self.prior_days,
            price=np.where(is_planned, found.host_price, found.price),
            floor=np.where(is_planned, found.host_floor, found.host_floor.max(initial=0.0)),
            ceiling=self.limits.ceiling,
            objective=found.objective,
            learns=self.learns and self.learns_rates,
        )

    def _without_prices(self) -> VisitTerms:
        """Before the first allocation there is no price. All pages are fetched equally often, as the setting frequency
        says."""
        hosts = len(self.world.hosts)
        return VisitTerms(
            prior_changes=self.prior_changes,
            prior_days=self.prior_days,
            price=np.full(hosts, np.inf),
            floor=np.full(hosts, self.budget),
            ceiling=PRODUCTION.ceiling,
            objective=OBJECTIVE,
            learns=True,
        )

    def _put_dues(self, known: NDArray[np.intp], today: float, for_revisits: float) -> None:
        """Moves due times that follow from old prices. The job allocate chooses the pages with the same functions, and
        the SQL functions bring_forward and put_dues give them the same due times."""
        pages = self.pages
        frequency = pages.frequency[known]
        every = due_moves.intervals(frequency)
        if today == self.begin:
            pages.due_at[known] = today + self.rng.random(len(known)) * every
            return
        due = np.minimum(pages.due_at[known], FURTHEST)
        late = np.flatnonzero(due_moves.too_late(due - today, frequency))
        due[late] -= np.floor((due[late] - today) / every[late]) * every[late]
        pages.due_at[known] = due
        planned_interval = pages.planned_interval[known]
        moved = due_moves.to_move(
            due - today,
            np.where(planned_interval < math.inf, planned_interval, math.nan),
            frequency,
            np.zeros(len(known), bool),
            ALLOCATES_EVERY,
            for_revisits * ALLOCATES_EVERY,
        )
        own = pages.seen_at[known[moved]] + every[moved]
        own = np.where(own > today, own, today + self.rng.random(len(moved)) * ALLOCATES_EVERY)
        pages.due_at[known[moved]] = own
        pages.planned_interval[known[moved]] = own - pages.seen_at[known[moved]]

    def _frequency(self, some: NDArray[np.intp], today: float, terms: VisitTerms) -> Floats:
        host, rate = self.pages.host[some], self._rate(today)[some]
        price = terms.price[host]
        found = objective_named(terms.objective).frequency(np.minimum(price, 1e100), self.pages.value[some], rate)
        return np.clip(np.where(price < math.inf, found, 0.0), terms.floor[host], terms.ceiling)

    # --------------------------------------------------------------------------------------------------- in the end

    def stale_days_until(self, day: float) -> Floats:
        """For each page: the days in which its copy was outdated, until this day. Fetches have ended some of these
        times; the last one may still last."""
        pages = self.pages
        stale = pages.stale_days.copy()
        missed = np.flatnonzero(pages.next_change < pages.last_change)
        stale[missed] += np.maximum(
            0, np.minimum(pages.died[missed], day) - self.world.changed_at[pages.next_change[missed]]
        )
        return stale

    def outcome(self) -> Outcome:
        pages, world = self.pages, self.world
        ends = np.minimum(pages.died, self.end)
        page_of_change = np.repeat(np.arange(world.pages), np.diff(world.first_change))
        unseen = np.arange(len(world.changed_at)) >= pages.next_change[page_of_change]
        never = (ends[page_of_change] - world.changed_at)[unseen].sum()
        return outcome(
            world,
            self.policy.name,
            self.budget,
            days_lived=ends - np.maximum(pages.born, self.begin),
            days_stale=self.stale_days_until(self.end),
            fetches=self.revisits + sum(self.first_fetches[1:]),
            changes_seen=int(pages.changes_seen.sum()),
            missed_days=float(pages.missed_days.sum() + never),
        )
