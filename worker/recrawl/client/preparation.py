"""How many seconds a visit needs from getting its page to its request. A browser, for example, must open a tab.

The client yields each page that much before its slot, so that the request starts in the slot.
"""

from collections import deque

REMEMBERED = 100  # visits
SHARE = 0.95  # of the remembered visits are ready when their slots begin


class Preparation:
    def __init__(self, expected: float, longest: float) -> None:
        """`expected` counts as the first measured visit. No page is yielded earlier than `longest` before its slot."""
        self.longest = longest
        self.seconds = self._median = expected  # nearly all visits need at most `seconds`, and half of them `_median`
        self._took = deque([expected], maxlen=REMEMBERED)

    def took(self, seconds: float) -> None:
        """One visit was ready after these seconds."""
        self._took.append(seconds)
        ordered = sorted(self._took)
        self.seconds, self._median = ordered[int(SHARE * len(ordered))], ordered[len(ordered) // 2]

    @property
    def lead_time(self) -> float:
        """How many seconds before its slot a page is yielded."""
        return min(self.seconds, self.longest)

    @property
    def least_time(self) -> float:
        """A page that is yielded less than this time before its slot ends would probably be too late."""
        return min(self._median, self.longest)
