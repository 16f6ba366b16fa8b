"""The base class of all jobs."""

from abc import ABC, abstractmethod
from datetime import datetime
from typing import Protocol

from recrawl import store


class Tell(Protocol):
    """Is called at each step, and repeatedly during a long step. `done` says how much is done, and `of` how much there
    is, if that is known."""

    def __call__(self, step: str, done: float | None = None, of: float | None = None) -> None: ...


def silent(step: str, done: float | None = None, of: float | None = None) -> None:
    pass


class Job(ABC):
    connection: store.Connection | None = None  # set by jobs that can be stopped in the middle of a step
    as_of: datetime | None = None  # the time of a simulation; None = the time of the clock
    is_stopped = False

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def run(self, tell: Tell = silent) -> str:
        """Runs the job once, now. Calls `tell` at each step. Returns the result in one line."""

    def stop(self) -> None:
        """Cancels the statement that runs now. It may be waiting for a lock. Its transaction is undone as a whole, and
        the next run does it again."""
        self.is_stopped = True
        store.cancel(self.connection)
