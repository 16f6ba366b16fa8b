"""Random worlds. Times are in days.

The rates of pages stay (`steady`) or change slowly (`drift`), or pages appear and disappear all the time (`turnover`).
The other kinds are steady webs with one thing more: `values` that differ, `outages` of hosts, `noise` that looks like
changes, or `content`, whose updates are the changes.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recrawl.lab import content
from recrawl.lab.drawn import OF_HOST, SPREAD, STATIC, TYPICAL_RATE
from recrawl.lab.world import Days, Outages, World

HOSTS, PAGES, DAYS = 20, 2000, 90
FOUND_WITHIN = 10.0  # days: pages that live until the end are born within this time
DRIFT = 0.15  # deviation of the step that the logarithm of a rate takes every day
LIFE = 30.0  # days: the mean life of pages that appear and disappear
VALUES = 1.0  # deviation of the logarithm of a value
UP, DOWN = 9.0, 1.0  # days: the mean time that a host answers, and the mean length of an outage
NOISY = 0.1  # share of the pages

Rng = np.random.Generator


def draw(kind: str, seed: int, hosts: int = HOSTS, pages: int = PAGES, days: int = DAYS) -> World:
    if kind not in KINDS:
        raise ValueError(f"there is no kind of web {kind!r}; there are {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    host = np.sort(rng.integers(hosts, size=pages))
    rate = TYPICAL_RATE * np.exp(OF_HOST * rng.normal(size=hosts)[host] + SPREAD * rng.normal(size=pages))
    rate[rng.random(pages) < STATIC] = 0.0
    born, died, times = LIVES.get(kind, _steady)(rng, pages, days)
    page, day = np.nonzero(changes := rng.poisson(rate[:, None] * times))
    changes = changes[page, day]
    page_of_change = np.repeat(page, changes)
    at = np.repeat(day, changes) + rng.random(len(page_of_change))
    lives = (at > born[page_of_change]) & (at <= died[page_of_change])
    order = np.lexsort((at[lives], page_of_change[lives]))
    world = World(
        hosts=[f"h{number}" for number in range(hosts)],
        first_page=np.searchsorted(host, np.arange(hosts + 1)),
        born=born,
        died=died,
        first_change=np.append(0, np.cumsum(np.bincount(page_of_change[lives], minlength=pages))),
        changed_at=at[lives][order],
    )
    return MORE[kind](rng, world, days) if kind in MORE else world


Drawn = tuple[Days, Days, NDArray[np.float64]]  # births, deaths, and the factors of the rates on each day


def _steady(rng: Rng, pages: int, days: int, drift: float = 0.0) -> Drawn:
    steps = rng.normal(-drift * drift / 2, drift, (pages, days)) if drift else np.zeros((1, days))
    return FOUND_WITHIN * rng.random(pages), np.full(pages, np.inf), np.exp(np.cumsum(steps, axis=1))


def _turnover(rng: Rng, pages: int, days: int) -> Drawn:
    born = days * rng.random(pages)
    return born, born + rng.exponential(LIFE, pages), np.ones((1, days))


def _values(rng: Rng, world: World, days: int) -> World:
    return replace(world, values=np.exp(VALUES * rng.normal(size=world.pages)))


def _outages(rng: Rng, world: World, days: int) -> World:
    """Outages begin when all pages are there."""
    phases = rng.exponential((UP, DOWN), (len(world.hosts), days, 2)).reshape(len(world.hosts), -1)
    turns = FOUND_WITHIN + np.cumsum(phases, axis=1)
    begin, end = turns[:, ::2], turns[:, 1::2]
    is_here = begin < days
    first = np.append(0, np.cumsum(is_here.sum(axis=1)))
    return replace(world, outages=Outages(first, begin[is_here], end[is_here]))


def _noise(rng: Rng, world: World, days: int) -> World:
    return replace(world, noisy=rng.random(world.pages) < NOISY)


def _content(rng: Rng, world: World, days: int) -> World:
    pages = content.draw(rng, world.pages, days)
    changes = [page.updates[page.updates > born] for page, born in zip(pages, world.born.tolist(), strict=True)]
    versions = zip(pages, world.born.tolist(), changes, strict=True)
    sketches = [page.sketch(day) for page, born, updates in versions for day in (born, *updates.tolist())]
    return replace(
        world,
        first_change=np.append(0, np.cumsum([len(updates) for updates in changes])),
        changed_at=np.concatenate(changes),
        sketches=np.array(sketches, np.float32).view(np.int32),  # sketches are integers: here the bits of floats
    )


LIVES: dict[str, Callable[[Rng, int, int], Drawn]] = {
    "steady": _steady,
    "drift": partial(_steady, drift=DRIFT),
    "turnover": _turnover,
}
MORE: dict[str, Callable[[Rng, World, int], World]] = {
    "values": _values,
    "outages": _outages,
    "noise": _noise,
    "content": _content,
}
KINDS = (*LIVES, *MORE)
