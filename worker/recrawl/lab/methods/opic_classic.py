"""OPIC-HITS one page at a time, as first published: choose pages, let them spend their cash, add it to their history.

It follows Abiteboul, Preda & Cobena (Adaptive on-line page importance computation, 2003), applied to hubs and
authorities. Scores are histories. Their error falls as 1 / cash spent in any order, so this method checks the batch
iteration and does not compete with it. With a window, a history is the cash that was spent in the window, so that it
follows a graph that changes.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recrawl.model.graph.graph import Graph, Positions

Amounts = NDArray[np.float64]


@dataclass
class Account:
    """All pages as hubs, or all as authorities."""

    cash: Amounts
    history: Amounts
    last: Amounts  # the clock when the page last spent
    virtual: float = 1.0  # the virtual page's cash
    clock: float = 0.0  # cash that all pages have spent so far: about one unit per page in each pass

    def spend(self, page: int, window: float) -> float:
        cash = float(self.cash[page])
        self.cash[page] = 0
        self.clock += cash
        since = self.clock - self.last[page]
        if since < window:
            self.history[page] = self.history[page] * (1 - since / window) + cash
        else:
            self.history[page] = cash * window / since
        self.last[page] = self.clock
        return cash

    def spend_virtual(self) -> float:
        cash, self.virtual = self.virtual, 0.0
        self.clock += cash
        return cash


@dataclass
class Books:
    """Every page and the virtual page start with a unit of cash as a hub and one as an authority."""

    hub: Account
    authority: Account
    turn: int = field(default=0)  # the page that spends next

    @classmethod
    def opened(cls, pages: int) -> "Books":
        hub, authority = (Account(np.ones(pages), np.zeros(pages), np.zeros(pages)) for _ in range(2))
        return cls(hub, authority)

    @property
    def total(self) -> float:
        return float(sum(account.cash.sum() + account.virtual for account in (self.hub, self.authority)))

    def scores(self) -> tuple[Amounts, Amounts]:
        """Hub and authority scores, each adding up to 1. Call it after the first step."""
        hub, authority = (account.history / account.history.sum() for account in (self.hub, self.authority))
        return hub, authority


Order = Callable[[Books, int], Iterable[int]]


def in_turn(books: Books, count: int) -> Iterable[int]:
    """Round robin."""
    pages = len(books.hub.cash)
    first, books.turn = books.turn, (books.turn + count) % pages
    return ((first + i) % pages for i in range(min(count, pages)))


def highest_cash(books: Books, count: int) -> Iterable[int]:
    """The pages with the most cash, as hubs or as authorities. Slower than round robin, because the same few pages are
    rich each time."""
    cash = np.maximum(books.hub.cash, books.authority.cash)
    count = min(count, len(cash))
    return [int(page) for page in np.argpartition(-cash, count - 1)[:count]]


def marked_first(marked: list[int], others: Order) -> Order:
    """Chooses the marked pages first, and removes them from the list. Further pages come in the other order."""

    def order(books: Books, count: int) -> Iterable[int]:
        chosen = list(dict.fromkeys(marked[:count]))
        del marked[:count]
        return chosen + [page for page in others(books, count - len(chosen)) if page not in chosen]

    return order


def step(
    books: Books,
    graph: Graph,
    relevance: NDArray[np.float32] | None,
    order: Order,
    count: int,
    window: float = math.inf,
) -> None:
    """`count` pages spend their cash, and then the virtual page. The window is in units of cash: with N pages, N + 1 is
    one pass over all pages. A shorter window gives only noise."""
    if not window > 0:
        raise ValueError(f"window must be positive, got {window}")
    if count < 1:
        raise ValueError(f"count must be positive, got {count}")
    if graph.pages == 0:
        return
    hub, authority = books.hub, books.authority
    for page in order(books, count):
        linked = _row(graph.out_starts, graph.out, page)
        share = hub.spend(page, window) / (len(linked) + 1)
        authority.cash[linked] += share
        authority.virtual += share

        linking = _row(graph.into_starts, graph.into, page)
        cash = authority.spend(page, window)
        r = 0.5 if relevance is None or np.isnan(relevance[page]) else float(relevance[page])
        share = r / (len(linking) * r + 1 - r) * cash if len(linking) else 0.0
        hub.cash[linking] += share
        hub.virtual += cash - len(linking) * share
    authority.cash += hub.spend_virtual() / graph.pages
    hub.cash += authority.spend_virtual() / graph.pages


def _row(first: NDArray[np.int64], links: Positions, page: int) -> Positions:
    return links[first[page] : first[page + 1]]
