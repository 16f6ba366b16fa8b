"""Pages with content: parts that stay, parts that each update replaces (churn), and items that new items push out
(scroll).

This is the generative model of Olston & Pandey (Recrawl Scheduling Based on Information Longevity, 2008). The model has
no text: only shares of the content, and which shares are still there. If each of two versions has a share x that the
other one lacks, they diverge by 2x / (1 + x), like two sets of phrases. A crawler estimates this from sketches of eight
numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SKETCH = 8  # numbers, as crawlers report them
STATIC, CHURN, SCROLL, MIXED = "static", "churn", "scroll", "mixed"
MIX = {STATIC: 0.4, CHURN: 0.25, SCROLL: 0.25, MIXED: 0.1}  # shares of the pages
RATES = (0.02, 5.0)  # updates per day of a region, evenly on a logarithmic scale
CHURNING, SCROLLING = (0.05, 0.5), (0.3, 0.9)  # shares of a page: its churn, its scroll
ITEMS = (5, 10, 20)  # numbers of items of a scroll


@dataclass(frozen=True)
class Region:
    """Each update replaces the oldest item of the region. All items are equally large. A region with one item is
    replaced completely."""

    share: float  # of the page
    items: int
    rate: float  # updates per day


@dataclass(frozen=True, eq=False)
class ContentPage:
    """Regions of a page. Content outside of all regions never changes. Times are in days."""

    regions: tuple[Region, ...]
    updated_at: tuple[Floats, ...]  # the times of the updates of each region
    # For sketch(): first the least hashes of the part that never changes. Then, for each region, the least hashes of
    # each item that it ever has.
    least: tuple[NDArray[np.float64], ...]
    sketches: dict[float, Floats] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Updates per day of all regions, also small ones."""
        return sum(region.rate for region in self.regions)

    @property
    def updates(self) -> Floats:
        """The times of all updates, in order."""
        return np.sort(np.concatenate((*self.updated_at, np.empty(0))))

    def diverged(self, then: Floats, now: Floats) -> Floats:
        """The true divergence of the versions of two days."""
        lacking = np.zeros(np.broadcast(then, now).shape)
        for region, at in zip(self.regions, self.updated_at, strict=True):
            updates = np.searchsorted(at, now, "right") - np.searchsorted(at, then, "right")
            lacking += region.share * np.minimum(updates, region.items) / region.items
        return of_sets(lacking)

    def seems_diverged(self, then: float, now: float) -> float:
        """The divergence of the versions of two days, as a crawler estimates it from sketches."""
        return float((self.sketch(then) != self.sketch(now)).mean())

    def sketch(self, day: float) -> Floats:
        """Eight numbers: the least values of eight hashes over all content."""
        if day not in self.sketches:
            found = self.least[0]
            for region, at, least in zip(self.regions, self.updated_at, self.least[1:], strict=True):
                updates = int(np.searchsorted(at, day, "right"))
                found = np.minimum(found, least[updates : updates + region.items].min(axis=0))
            self.sketches[day] = found
        return self.sketches[day]

    def staleness(self, visits: Sequence[float], begin: float, end: float) -> float:
        """The mean divergence of the page from its version at the last fetch. The first fetch is at the beginning or
        earlier."""
        seen = np.asarray(visits)
        moments = np.unique(np.concatenate((seen, *self.updated_at)))
        moments = np.concatenate(([begin], moments[(moments > begin) & (moments < end)]))
        last = seen[np.searchsorted(seen, moments, "right") - 1]
        return float(self.diverged(last, moments) @ np.diff(moments, append=end)) / (end - begin)

    def expected_divergence(self, days: Floats) -> Floats:
        """D(t): the mean over all possible histories, computed region by region."""
        chances, lacking = np.ones((len(days), 1)), np.zeros(1)
        for region in self.regions:
            gone = region.share * np.arange(region.items + 1) / region.items
            chances = (chances[:, :, None] * _updates(region, days)[:, None, :]).reshape(len(days), -1)
            lacking = (lacking[:, None] + gone).ravel()
        return chances @ of_sets(lacking)


def of_sets(lacking: Floats) -> Floats:
    """The divergence of two equally large sets, by the share of each that the other lacks."""
    return 2 * lacking / (1 + lacking)


def _updates(region: Region, days: Floats) -> Floats:
    """The probabilities of 0, 1, … updates, one row for each time. The last column is for as many updates as there are
    items, or more."""
    expected = np.minimum(region.rate * days, 700.0)  # above 700, e^−x is too small for a normal float
    chances = np.empty((len(days), region.items + 1))
    chances[:, 0] = np.exp(-expected)
    for count in range(1, region.items):
        chances[:, count] = chances[:, count - 1] * expected / count
    chances[:, -1] = np.maximum(0, 1 - chances[:, :-1].sum(axis=1))
    return chances


def draw(rng: np.random.Generator, pages: int, days: float) -> list[ContentPage]:
    """Draws pages of all kinds, each with its history over the given number of days."""
    kinds = rng.choice(list(MIX), pages, p=list(MIX.values()))
    return [page(rng, _regions(rng, kind), days) for kind in kinds]


def page(rng: np.random.Generator, regions: Sequence[Region], days: float) -> ContentPage:
    updated_at = [np.sort(rng.uniform(0, days, rng.poisson(region.rate * days))) for region in regions]
    # The least hash of much content is exponentially distributed. Its mean is smaller if there is more content.
    stays = rng.exponential(size=SKETCH) / (1 - sum(region.share for region in regions))
    least = [
        rng.exponential(size=(region.items + len(at), SKETCH)) * region.items / region.share
        for region, at in zip(regions, updated_at, strict=True)
    ]
    return ContentPage(tuple(regions), tuple(updated_at), (stays, *least))


def _regions(rng: np.random.Generator, kind: str) -> list[Region]:
    def drawn(shares: tuple[float, float], items: int, left: float = 1.0) -> Region:
        return Region(left * rng.uniform(*shares), items, float(np.exp(rng.uniform(*np.log(RATES)))))

    churn = [drawn(CHURNING, 1)] if kind in (CHURN, MIXED) else []
    if kind not in (SCROLL, MIXED):
        return churn
    return [*churn, drawn(SCROLLING, int(rng.choice(ITEMS)), 1 - sum(region.share for region in churn))]
