"""The pages in hand, lease by lease, and what becomes of them."""

import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from recrawl.client.page import Page

log = logging.getLogger("recrawl.client")

Hook = Callable[[Page, str, str | None], object]


@dataclass
class Lease:
    lease_id: int
    until: float  # by the monotonic clock
    pages: dict[int, Page]


class Leases:
    def __init__(self, on_outcome: Hook | None) -> None:
        self.counts: Counter[str] = Counter()  # what became of pages
        self._on_outcome = on_outcome
        self._leases: dict[int, Lease] = {}

    def __len__(self) -> int:
        return len(self._leases)

    def add(self, lease: Lease) -> None:
        self._leases[lease.lease_id] = lease

    def ending_by(self, moment: float) -> list[Lease]:
        return [lease for lease in self._leases.values() if lease.until < moment]

    def is_over(self, page: Page, outcome: str, detail: str | None = None) -> None:
        """Counts and tells what became of a page, once."""
        lease = self._leases.get(page.lease_id)
        if not lease or not lease.pages.pop(page.page_id, None):
            return  # lost before
        if not lease.pages:
            del self._leases[page.lease_id]
        self.counts[outcome] += 1
        if self._on_outcome:
            try:
                self._on_outcome(page, outcome, detail)
            except Exception:
                self.counts["hook raised"] += 1
                log.exception("on_outcome raised")
