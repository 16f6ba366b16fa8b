"""Runs a policy in a real database, on a web whose every change is known: with the functions of recrawl and the jobs of
a worker.

The functions in SQL do here what replay computes. Pages that live at the beginning are known then. They are fetched
when their turn comes, like new pages. A host that is down gives no answer.
"""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import numpy as np

from recrawl import store
from recrawl.lab import verbs_at
from recrawl.lab.driver import STEPS, Driver, FetchResult, KnownPage
from recrawl.lab.outcome import Fetches
from recrawl.lab.replay import ALLOCATES_EVERY, LEARNS_EVERY
from recrawl.lab.world import World

BEGIN = datetime(2001, 1, 1, tzinfo=UTC)
WHO = "recrawl simulate"  # the name that claims the crawl
OK, GONE, DOWN = 200, 410, 0


def refuse_pages(url: str) -> None:
    """Raises an error if the database already has pages, because a simulation would spoil a real crawl."""
    with store.connect(url, WHO) as connection:
        if verbs_at.has_pages(connection):
            raise ValueError("that database has pages already: a simulation wants one that has none")


def take(url: str) -> None:
    refuse_pages(url)
    with store.connect(url, WHO) as connection:
        if (owner := verbs_at.claim(connection, WHO)) != WHO:
            raise ValueError(f"that database holds the crawl {owner}. A simulation needs a database of its own")


def crawl(
    url: str,
    world: World,
    policy: str,
    budget: float,
    begin: float,
    end: float,
    watch: Callable[[float], None] = lambda days: None,
) -> Fetches:
    """budget: fetches per known page and day. begin and end are days of the world. Its pages live at some time between
    them."""
    web = _Web(world, begin)
    with store.connect(url, WHO) as connection:
        driver = Driver(url, connection, web, BEGIN)
        for name, value in {"policy": policy, "frequency": budget, "default_gap": "10 milliseconds"}.items():
            driver.set(name, value)
        for step in range(round((end - begin) * STEPS)):
            if step % (ALLOCATES_EVERY * STEPS) == 0:
                if pages := web.known(driver.today):
                    driver.set("budget", budget * pages)
                if step and step % (LEARNS_EVERY * STEPS) == 0:
                    driver.work("rates")
                driver.work("allocate")
            driver.step()
            watch(driver.today)
    return Fetches(np.array(web.page, np.int64), begin + np.array(web.day))


def _as_in_a_url(host: str, number: int) -> str:
    """A name that is valid in a URL, and different for each host: the names in a world may be any text."""
    return re.sub("[^a-z0-9]+", "-", f"{host.lower()[:40]} {number}").strip("-")


class _Web:
    def __init__(self, world: World, begin: float) -> None:
        self.world, self.begin = world, begin
        self.names = [_as_in_a_url(host, number) for number, host in enumerate(world.hosts)]
        self.seen = world.first_change[:-1].copy()  # the first change of each page that no fetch has seen
        self.is_fetched, self.is_gone = (np.zeros(world.pages, bool) for _ in range(2))
        self.page, self.day = list[int](), list[float]()  # of all fetches that were answered

    def known(self, day: float) -> int:
        """The number of pages that can be fetched, as far as the crawl knows."""
        return int(np.count_nonzero((self.world.born <= self.begin + day) & ~self.is_gone))

    def new_pages(self, begin: float, end: float) -> Sequence[KnownPage]:
        born = self.world.born - self.begin
        pages = np.flatnonzero((born > begin) & (born <= end)).tolist()
        return [KnownPage(self._address(page), float(self.world.value[page])) for page in pages]

    def _address(self, page: int) -> str:
        return f"https://{self.names[self.world.host_of_page[page]]}.example/{page}"

    def answer(self, url: str, page_id: int, day: float) -> FetchResult:
        world, page = self.world, int(url.rpartition("/")[2])
        today = self.begin + day
        if world.down.over(int(world.host_of_page[page]), today) > today:
            return FetchResult(DOWN)
        self.page.append(page)
        self.day.append(day)
        if today >= world.died[page]:
            self.is_gone[page] = True
            return FetchResult(GONE)
        first, last = self.seen[page], world.first_change[page + 1]
        self.seen[page] = first + np.searchsorted(world.changed_at[first:last], today, "right")
        sketch = None if world.sketches is None else world.sketches[page + self.seen[page]].tolist()
        says_changed = self.is_fetched[page] and (sketch is None or world.is_noisy[page])
        self.is_fetched[page] = True
        changed = bool(world.is_noisy[page] or self.seen[page] > first)
        return FetchResult(OK, changed if says_changed else None, sketch=sketch)
