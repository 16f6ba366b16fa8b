"""The database's clock, read off this machine's monotonic one: nobody's wall clock has to be right.

An answer that brings the database's time was made between the moment that the call left and the moment that its answer
came. Of all calls the fastest one says most, and counts until its age, by which the two clocks may have drifted apart,
makes another one better. One slow call therefore moves nothing.
"""

from datetime import UTC, datetime, timedelta

DRIFT = 1e-4  # how far two clocks come apart in a second; computers' are within half of that
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self._ahead: float | None = None  # seconds since 1970 by the database, less the monotonic clock
        self._doubt = 0.0  # either way, when that was found
        self._found_at = 0.0

    def doubt(self, now: float) -> float:
        """How many seconds it may be wrong, either way."""
        return self._doubt + DRIFT * max(0.0, now - self._found_at)

    def learn(self, sent: float, answered: float, said: datetime) -> None:
        """The database's time, and the monotonic clock before and after the call."""
        doubt = (answered - sent) / 2
        ahead = said.timestamp() - (sent + answered) / 2
        known = self.doubt(answered)
        has_stepped = self._ahead is not None and abs(ahead - self._ahead) > doubt + known
        if self._ahead is None or doubt <= known or has_stepped:
            self._ahead, self._doubt, self._found_at = ahead, doubt, answered

    def moment(self, said: datetime) -> float:
        """When that is, by the monotonic clock."""
        if self._ahead is None:
            raise RuntimeError("the database has not said what time it is")
        return said.timestamp() - self._ahead

    def said(self, moment: float) -> datetime:
        """What the database's clock says at a moment."""
        if self._ahead is None:
            raise RuntimeError("the database has not said what time it is")
        return EPOCH + timedelta(seconds=moment + self._ahead)

    def window(self, fetch_at: datetime, start_by: datetime, now: float) -> tuple[float, float]:
        """From when to when a request may begin: inside both bounds, however wrong this clock is, as long as that is
        less than a quarter of the time between them. Over a slower link half of that time stays, around its middle.
        """
        first, last = self.moment(fetch_at), self.moment(start_by)
        margin = min(self.doubt(now), (last - first) / 4)
        return first + margin, last - margin
