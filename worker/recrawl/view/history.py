"""The past on the dashboard: two weeks hour by hour, one day in steps of ten minutes, and events."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from recrawl import store
from recrawl.view.figures import DAY, HOUR, LateHost, Period

TEN_MINUTES = timedelta(minutes=10)


@dataclass(frozen=True)
class Event:
    at: datetime
    kind: str
    subject: str
    says: str
    by: str | None


@dataclass(frozen=True)
class History:
    hours: tuple[Period, ...] = ()  # of the last 14 days
    tens: tuple[Period, ...] = ()  # of the last 24 hours
    blocked: tuple[LateHost, ...] = ()  # the blocked hosts with most due pages
    events: tuple[Event, ...] = ()  # the newest first

    @property
    def step(self) -> timedelta:
        """The time between two points of the charts of freshness and fetches. In the first day of a crawl, hours would
        be too few points."""
        is_young = self.hours and self.tens and self.tens[0].at < self.hours[0].at + HOUR
        return TEN_MINUTES if is_young else HOUR

    @property
    def periods(self) -> tuple[Period, ...]:
        return self.hours if self.step == HOUR else self.tens


def read(connection: store.Connection) -> History:
    return History(
        hours=tuple(store.views.recent(connection, Period, "vitals_by_hour", 14 * DAY)),
        tens=tuple(store.views.vitals_by_ten_minutes(connection, Period, DAY)),
        blocked=tuple(store.views.blocked_hosts(connection, LateHost, 10)),
        events=tuple(store.views.events(connection, Event, 2 * DAY, 12)),
    )
