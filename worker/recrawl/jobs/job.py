"""What every job is: a class that is made once, keeps its own memory, and runs again and again."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Protocol

from recrawl import store


class Tell(Protocol):
    """Hears of each step, and of a long one again and again: how much is done, of how much if that is known."""

    def __call__(self, step: str, done: float | None = None, of: float | None = None) -> None: ...


def nobody(step: str, done: float | None = None, of: float | None = None) -> None:
    pass


class Job(ABC):
    connection: store.Connection | None = None  # of a job that is to be stopped in the middle of a step
    as_of: datetime | None = None  # what time it is, in a simulation; else what the clock says

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def run(self, tell: Tell = nobody) -> str:
        """Does it once, now. `tell` hears of each step; what came of it is returned, in a line."""

    def stop(self) -> None:
        """Takes back the step it is at, which may be waiting for a lock; it is a transaction, and not missed."""
        store.cancel(self.connection)

    def remembers(self) -> int:
        """Bytes that are worth keeping until the next run."""
        return 0
