"""The result of a policy on a web whose changes are all known."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.world import Days, World


@dataclass(frozen=True)
class HostOutcome:
    host: str
    pages: int
    freshness: float


@dataclass(frozen=True)
class Outcome:
    """Freshness is a share of the time that pages lived, by value. A change counts as missed until a fetch came after
    it, until its page died or until the end."""

    policy: str
    budget: float  # fetches per page and day
    fetches: int
    freshness: float
    changes: int
    changes_seen: int
    mean_delay_days: float
    hosts: tuple[HostOutcome, ...]


def outcome(
    world: World,
    policy: str,
    budget: float,
    days_lived: Days,
    days_stale: Days,
    fetches: int,
    changes_seen: int,
    missed_days: float,
) -> Outcome:
    """The result from the days that each page lived, the days in which its copy was outdated, and the days from all
    changes to their fetches (missed_days)."""
    days_lived, days_stale = world.value * days_lived, world.value * days_stale
    of_hosts = [np.bincount(world.host_of_page, days, minlength=len(world.hosts)) for days in (days_lived, days_stale)]
    changes = len(world.changed_at)
    return Outcome(
        policy=policy,
        budget=budget,
        fetches=fetches,
        freshness=1 - float(days_stale.sum() / days_lived.sum()),
        changes=changes,
        changes_seen=changes_seen,
        mean_delay_days=missed_days / changes if changes else 0.0,
        hosts=tuple(
            HostOutcome(host, int(pages), 1 - float(not_fresh / of_host) if of_host else 1.0)
            for host, pages, of_host, not_fresh in zip(world.hosts, np.diff(world.first_page), *of_hosts, strict=True)
        ),
    )


class Fetches(NamedTuple):
    """Fetches in any order. A fetch that found the page gone comes after the death of the page."""

    page: NDArray[np.int64]
    day: Days

    def before(self, end: float) -> "Fetches":
        return Fetches(self.page[self.day < end], self.day[self.day < end])


def outcome_of_fetches(world: World, policy: str, budget: float, begin: float, end: float, fetches: Fetches) -> Outcome:
    """The result of these fetches between two days. A page that was not fetched yet is not fresh."""
    lived_on = np.flatnonzero(fetches.day < world.died[fetches.page])
    order = lived_on[np.lexsort((fetches.day[lived_on], fetches.page[lived_on]))]
    page, day = fetches.page[order], fetches.day[order]
    ends = np.minimum(world.died, end)
    days_lived = ends - np.maximum(world.born, begin)

    # All pages stand one after the other on one axis of time. So one search finds the fetch after each change.
    long = end - begin + 2.0

    def place(page: NDArray[np.int64], day: Days) -> Days:
        return page * long + (day - begin)

    page_of_change = np.repeat(np.arange(world.pages), np.diff(world.first_change))
    following = np.searchsorted(place(page, day), place(page_of_change, world.changed_at))
    is_seen = _is_of(page, following, page_of_change)
    is_after_one = _is_of(page, following - 1, page_of_change)
    until = np.where(is_seen, day[np.minimum(following, len(day) - 1)] if len(day) else 0.0, ends[page_of_change])
    delay = until - world.changed_at

    # The first change after a fetch makes the copy stale. Changes before the first fetch make nothing stale.
    is_first = np.append(True, (np.diff(following) > 0) | (np.diff(page_of_change) > 0))[: len(following)]
    made_stale = np.where(is_first & is_after_one, delay, 0.0)
    days_stale = np.bincount(page_of_change, made_stale, minlength=world.pages).astype(np.float64)
    fetched = np.searchsorted(page, np.arange(world.pages))
    first = np.where(_is_of(page, fetched, np.arange(world.pages)), day[np.minimum(fetched, len(day) - 1)], ends)
    days_stale += np.maximum(0.0, np.minimum(first, ends) - np.maximum(world.born, begin))
    return outcome(
        world, policy, budget, days_lived, days_stale, len(fetches.day), int(is_seen.sum()), float(delay.sum())
    )


def _is_of(page: NDArray[np.int64], at: NDArray[np.intp], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether there is a fetch at each of these places, and whether it is a fetch of the wanted page."""
    is_there = (at >= 0) & (at < len(page))
    is_there[is_there] = page[at[is_there]] == wanted[is_there]
    return is_there
