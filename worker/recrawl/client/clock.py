"""The database's clock, calculated from the monotonic clock of this machine. No wall clock has to be right.

A call that returns the database's time also says how exact that time is: the database looked at its clock after the
call was sent and before the answer came. So the fastest call is the most exact. This call counts until a later call is
more exact: the two clocks may drift, so a call becomes less exact with its age. A slow call changes nothing, unless its
time is impossible by the call that counts: then a clock was set, and the slow call counts from now on.
"""

import math
from datetime import UTC, datetime

DRIFT = 1e-4  # seconds by which two clocks may drift apart per second; the clocks of computers drift by half of it


class Clock:
    def __init__(self) -> None:
        self._ahead = 0.0  # the database's clock, in seconds since 1970, minus the monotonic clock
        self._max_error = math.inf  # the largest error of _ahead when it was measured, in seconds
        self._found_at = 0.0  # the monotonic time when it was measured

    def max_error(self, now: float) -> float:
        """The largest error now, in seconds."""
        return self._max_error + DRIFT * max(0.0, now - self._found_at)

    def learn(self, sent: float, answered: float, time: datetime) -> None:
        """`time` is the database's time. `sent` and `answered` are the monotonic times of the call."""
        max_error = (answered - sent) / 2
        ahead = time.timestamp() - (sent + answered) / 2
        known = self.max_error(answered)
        was_set = abs(ahead - self._ahead) > max_error + known  # both cannot be right: a clock was set
        if max_error <= known or was_set:
            self._ahead, self._max_error, self._found_at = ahead, max_error, answered

    def to_monotonic(self, time: datetime) -> float:
        """The monotonic time of a time of the database."""
        return time.timestamp() - self._ahead

    def to_datetime(self, moment: float) -> datetime:
        """The database's time at a monotonic time."""
        return datetime.fromtimestamp(moment + self._ahead, UTC)

    def window(self, fetch_at: datetime, start_by: datetime, now: float) -> tuple[float, float]:
        """The monotonic times between which a request may begin.

        This is the time from fetch_at to start_by, shorter at each end by the largest error of this clock, but at most
        by a quarter of that time. So over a slow link the middle half remains.
        """
        first, last = self.to_monotonic(fetch_at), self.to_monotonic(start_by)
        margin = min(self.max_error(now), (last - first) / 4)
        return first + margin, last - margin
