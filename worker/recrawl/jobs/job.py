"""What every job is: a class that is made once, keeps its own memory, and runs again and again."""

from abc import ABC, abstractmethod
from collections.abc import Callable

Tell = Callable[[str], None]


class Job(ABC):
    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def run(self, tell: Tell = lambda _: None) -> str:
        """Does it once, now. `tell` hears of each step; what came of it is returned, in a line."""
