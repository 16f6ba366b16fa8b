"""The random web of the demo: hosts of all sizes, some slow; pages that change at their own rates; and links."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

HOSTS, PAGES = 150, 10_000
SIZES = 0.9  # the number of pages of the nth host is proportional to n^(−SIZES)
# Changes per day. Deviation of its logarithm between the pages of a host, and between hosts.
TYPICAL_RATE, SPREAD, OF_HOST = 0.15, 1.2, 0.7
STATIC = 0.2  # share of the pages
LINKS = 6  # from each page, at least one of them to a page of its own host
GAP, SLOW_GAP, SLOW = 60.0, 1800.0, 0.3  # seconds, seconds, share of the hosts that are slow


@dataclass(frozen=True, eq=False)
class DrawnWeb:
    """Pages host by host. Host h has the pages first[h]:first[h + 1]. Links lead from its first page to all others."""

    rate: NDArray[np.float64]  # changes per day
    first: NDArray[np.int64]
    gap: NDArray[np.float64]  # seconds, of each host
    linked: NDArray[np.int64]  # one row for each page

    @property
    def pages(self) -> int:
        return len(self.rate)

    @cached_property
    def host(self) -> NDArray[np.int64]:
        return np.repeat(np.arange(len(self.gap)), np.diff(self.first))

    def host_name(self, host: int) -> str:
        return f"h{host}.example"

    def address(self, page: int) -> str:
        return f"https://{self.host_name(int(self.host[page]))}/{page}"

    def page_at(self, url: str) -> int:
        return int(url.rpartition("/")[2])

    def seeds(self) -> list[str]:
        return [self.address(int(page)) for page in self.first[:-1]]

    def links(self, page: int) -> list[str]:
        return [self.address(int(other)) for other in self.linked[page]]


def draw(seed: int, hosts: int = HOSTS, pages: int = PAGES) -> DrawnWeb:
    rng = np.random.default_rng(seed)
    share = np.arange(1, hosts + 1) ** -SIZES
    sizes = 1 + rng.multinomial(pages - hosts, share / share.sum())
    first = np.append(0, np.cumsum(sizes))
    host = np.repeat(np.arange(hosts), sizes)
    rate = TYPICAL_RATE * np.exp(OF_HOST * rng.normal(size=hosts)[host] + SPREAD * rng.normal(size=pages))
    return DrawnWeb(
        rate=np.where(rng.random(pages) < STATIC, 0.0, rate),
        first=first,
        gap=np.where(rng.random(hosts) < SLOW, SLOW_GAP, GAP),
        linked=_links(rng, first, host, pages),
    )


def _links(
    rng: np.random.Generator, first: NDArray[np.int64], host: NDArray[np.int64], pages: int
) -> NDArray[np.int64]:
    """Each page of a host is linked from an earlier page of this host, so that all pages are found. All other links go
    to random pages, and a few pages get most of them."""
    start = first[:-1][host]
    place = np.arange(pages) - start
    linked = np.minimum((pages * rng.random((pages, LINKS)) ** 3).astype(np.int64), pages - 1)
    linked = rng.permutation(pages)[linked]  # random pages get the most links
    children = np.minimum(2 * place[:, None] + np.array([1, 2]), np.diff(first)[host][:, None] - 1)
    linked[:, :2] = start[:, None] + children
    return linked
