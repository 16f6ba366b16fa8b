"""How many seconds a visit needs from getting its page to making the request. A browser that opens a tab needs some.

The client yields each page that much before its slot, so that the request starts in the slot.
"""

from collections import deque

REMEMBERED = 100  # visits
SHARE = 0.95  # of the remembered visits are ready when their slots begin


class Preparation:
    def __init__(self, expected: float, longest: float) -> None:
        """expected: what the caller says, until visits show it. longest: no page is yielded earlier than that."""
        self.longest = longest
        self.seconds = self._median = expected  # what nearly all visits need, and what half of them need
        self._took = deque([expected], maxlen=REMEMBERED)

    def took(self, seconds: float) -> None:
        """One visit was ready after that time."""
        self._took.append(seconds)
        ordered = sorted(self._took)
        self.seconds, self._median = ordered[int(SHARE * len(ordered))], ordered[len(ordered) // 2]

    @property
    def lead(self) -> float:
        """How many seconds before its slot a page is yielded."""
        return min(self.seconds, self.longest)

    @property
    def least(self) -> float:
        """A page that is yielded later than this before the end of its slot would probably be too late."""
        return min(self._median, self.longest)
