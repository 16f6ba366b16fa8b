"""Logs that slots passed without a request, the reason, and the remedy.

A page whose slot has passed goes back to the database. Nothing is lost, but the host could have been requested.
"""

import logging
import time
from collections import Counter
from datetime import timedelta

from recrawl.client.preparation import Preparation
from recrawl.words import count, lasting

log = logging.getLogger("recrawl.client")

EVERY = 60.0  # seconds
# A line is logged if the misses are at least this number and this share of the pages since the last call of tell().
FEWEST, SHARE = 5, 0.05


class MissedSlots:
    def __init__(self, counts: Counter[str], preparation: Preparation, concurrency: int) -> None:
        self._counts = counts
        self._preparation = preparation
        self._concurrency = concurrency
        self._before: Counter[str] = Counter()
        self._next_at = time.monotonic() + EVERY

    def tell_sometimes(self) -> None:
        if time.monotonic() >= self._next_at:
            self.tell()

    def tell(self) -> None:
        """Logs a line if many slots passed since the last call."""
        since = self._counts - self._before
        self._before, self._next_at = self._counts.copy(), time.monotonic() + EVERY
        pages = since["requests"] + since["missed"] + since["unready"]
        if since["unready"] >= max(FEWEST, SHARE * pages):
            log.warning(
                "%s of %s visits were not ready in their slots. %s",
                count(since["unready"]), count(pages), self._advice(),
            )  # fmt: skip
        if since["missed"] >= max(FEWEST, SHARE * pages):
            log.warning(
                "%s of %s pages missed their slots, because all visits were busy or robots.txt came too late. Raise "
                "concurrency, which is %s, or run the crawler on a faster machine",
                count(since["missed"]), count(pages), self._concurrency,
            )  # fmt: skip

    def _advice(self) -> str:
        needed, longest = self._preparation.seconds, self._preparation.longest
        needs = f"They need {lasting(timedelta(seconds=needed))} before the request"
        if needed > longest:
            return (
                f"{needs}, and pages come at most {lasting(timedelta(seconds=longest))} before their slots: set ahead"
                f" to {needed:.1f}"
            )
        return (
            f"{needs}: pass preparation={needed:.2g} to the client, so that the"
            f" first ones are in time too. If this goes on, raise concurrency, which is {self._concurrency}"
        )
