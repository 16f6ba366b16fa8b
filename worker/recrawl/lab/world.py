"""A web whose every change is known: recorded from a real one, or drawn at random. Times are in days."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Days = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class World:
    """Pages, host by host: those of host h are first_page[h]:first_page[h + 1], and so their changes."""

    hosts: list[str]
    first_page: NDArray[np.int64]
    born: Days
    died: Days  # infinite: it lives on
    first_change: NDArray[np.int64]
    changed_at: Days  # in order, page by page; after the page's birth and not after its death

    @property
    def pages(self) -> int:
        return len(self.born)

    @cached_property
    def host_of_page(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.hosts)), np.diff(self.first_page))

    @cached_property
    def days(self) -> tuple[float, float]:
        """From when to when anything happens in it."""
        known = np.concatenate((self.born, self.died[self.died < np.inf], self.changed_at))
        return float(known.min()), float(known.max())

    def between(self, begin: float, end: float) -> "World":
        """The pages that live at any time between two days, and what happens to them meanwhile."""
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
        )
