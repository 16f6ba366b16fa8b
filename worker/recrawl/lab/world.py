"""A web whose every change is known: recorded from a real one, or drawn at random. Times are in days."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Days = NDArray[np.float64]


class Outages(NamedTuple):
    """The times when hosts are down, in order. Host h has the outages first[h]:first[h + 1]."""

    first: NDArray[np.int64]
    begin: Days
    end: Days

    def over(self, host: int, day: float) -> float:
        """The day if the host answers then, otherwise the end of the outage."""
        first, last = self.first[host : host + 2]
        begun = first + np.searchsorted(self.begin[first:last], day, "right")
        return max(day, float(self.end[begun - 1])) if begun > first else day


@dataclass(frozen=True, eq=False)
class World:
    """Pages and their changes, host by host. Host h has the pages first_page[h]:first_page[h + 1]."""

    hosts: list[str]
    first_page: NDArray[np.int64]
    born: Days
    died: Days  # infinite: the page lives on
    first_change: NDArray[np.int64]
    changed_at: Days  # in order, page by page; after the page's birth and not after its death
    values: NDArray[np.float64] | None = None  # None: all values are equal
    noisy: NDArray[np.bool_] | None = None  # None: no page is noisy
    outages: Outages | None = None  # None: no outage. No page is born during an outage
    sketches: NDArray[np.int32] | None = None  # of each version of each page: the first one, then one after each change

    @property
    def pages(self) -> int:
        return len(self.born)

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """How much a fresh copy of each page is worth."""
        return np.ones(self.pages) if self.values is None else self.values

    @cached_property
    def is_noisy(self) -> NDArray[np.bool_]:
        """Whether each answer of the page is different, even if the page has not changed. Example: the page shows the
        time."""
        return np.zeros(self.pages, bool) if self.noisy is None else self.noisy

    @cached_property
    def down(self) -> Outages:
        never = Outages(np.zeros(len(self.hosts) + 1, np.int64), np.empty(0), np.empty(0))
        return never if self.outages is None else self.outages

    @cached_property
    def version_ids(self) -> NDArray[np.int64]:
        """A number for each version of each page. Versions with the same sketch have the same number. Empty: every
        change is seen."""
        if self.sketches is None:
            return np.empty(0, np.int64)
        return np.unique(self.sketches, axis=0, return_inverse=True)[1].ravel()

    @cached_property
    def host_of_page(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.hosts)), np.diff(self.first_page))

    @cached_property
    def days(self) -> tuple[float, float]:
        """The first and the last day on which anything happens."""
        known = np.concatenate((self.born, self.died[self.died < np.inf], self.changed_at))
        return float(known.min()), float(known.max())

    def between(self, begin: float, end: float) -> "World":
        """The pages that live at any time between two days, and their changes between these days."""
        lives = (self.born < end) & (self.died > begin)
        page_of_change = np.repeat(np.arange(self.pages), np.diff(self.first_change))
        kept = lives[page_of_change] & (self.changed_at > begin) & (self.changed_at < end)
        changes = np.bincount(page_of_change[kept], minlength=self.pages)[lives]
        pages = np.bincount(self.host_of_page[lives], minlength=len(self.hosts))
        return World(
            hosts=self.hosts,
            first_page=np.append(0, np.cumsum(pages)),
            born=self.born[lives],
            died=self.died[lives],
            first_change=np.append(0, np.cumsum(changes)),
            changed_at=self.changed_at[kept],
            values=self.value[lives],
            noisy=self.is_noisy[lives],
            outages=self.outages,
            sketches=self._sketches_of(lives, begin, end),
        )

    def _sketches_of(self, pages: NDArray[np.bool_], begin: float, end: float) -> NDArray[np.int32] | None:
        """The sketches of these pages between two days. For each page, the first is the sketch of its version at the
        beginning."""
        if self.sketches is None:
            return None
        since = np.insert(self.changed_at, self.first_change[:-1], -np.inf)
        until = np.insert(self.changed_at, self.first_change[1:], np.inf)
        of_pages = np.repeat(pages, np.diff(self.first_change) + 1)
        return self.sketches[of_pages & (since < end) & (until > begin)]
