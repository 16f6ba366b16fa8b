"""Worlds drawn at random: pages whose rates stay, or drift, or that come and go all the time. Times are in days."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from recrawl.lab.drawn import OF_HOST, SPREAD, STATIC, TYPICAL_RATE
from recrawl.lab.world import Days, World

HOSTS, PAGES, DAYS = 20, 2000, 90
FOUND_WITHIN = 10.0  # days, in which the pages that do not come and go are born
DRIFT = 0.15  # deviation of the step that the logarithm of a rate takes every day
LIFE = 30.0  # days that pages live which come and go, on average

Rng = np.random.Generator


def draw(kind: str, seed: int, hosts: int = HOSTS, pages: int = PAGES, days: int = DAYS) -> World:
    if kind not in KINDS:
        raise ValueError(f"there is no kind of web {kind!r}; there are {', '.join(KINDS)}")
    rng = np.random.default_rng(seed)
    host = np.sort(rng.integers(hosts, size=pages))
    rate = TYPICAL_RATE * np.exp(OF_HOST * rng.normal(size=hosts)[host] + SPREAD * rng.normal(size=pages))
    rate[rng.random(pages) < STATIC] = 0.0
    born, died, times = KINDS[kind](rng, pages, days)
    page, day = np.nonzero(changes := rng.poisson(rate[:, None] * times))
    changes = changes[page, day]
    page_of_change = np.repeat(page, changes)
    at = np.repeat(day, changes) + rng.random(len(page_of_change))
    lives = (at > born[page_of_change]) & (at <= died[page_of_change])
    order = np.lexsort((at[lives], page_of_change[lives]))
    return World(
        hosts=[f"h{number}" for number in range(hosts)],
        first_page=np.searchsorted(host, np.arange(hosts + 1)),
        born=born,
        died=died,
        first_change=np.append(0, np.cumsum(np.bincount(page_of_change[lives], minlength=pages))),
        changed_at=at[lives][order],
    )


Drawn = tuple[Days, Days, NDArray[np.float64]]  # births, deaths, and by how much rates are multiplied on each day


def _steady(rng: Rng, pages: int, days: int, drift: float = 0.0) -> Drawn:
    steps = rng.normal(-drift * drift / 2, drift, (pages, days)) if drift else np.zeros((1, days))
    return FOUND_WITHIN * rng.random(pages), np.full(pages, np.inf), np.exp(np.cumsum(steps, axis=1))


def _turnover(rng: Rng, pages: int, days: int) -> Drawn:
    born = days * rng.random(pages)
    return born, born + rng.exponential(LIFE, pages), np.ones((1, days))


KINDS: dict[str, Callable[[Rng, int, int], Drawn]] = {
    "steady": _steady,
    "drift": partial(_steady, drift=DRIFT),
    "turnover": _turnover,
}
