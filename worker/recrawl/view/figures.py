"""The present figures, for status, the dashboard and the rules for trouble. `read` reads all of them."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from recrawl import store
from recrawl.setup import project
from recrawl.words import lasting

# Jobs that run all the time. job_run has a row only if they begin to fail or work again.
ALWAYS = ["upkeep", "vitals", "retention"]
SHARES = {"freshness", "poisson_freshness"}  # objectives that are a share of the time
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


@dataclass(frozen=True)
class Now:
    """The row of crawl_status, as of this moment."""

    as_of: datetime
    paused: bool = False
    last_report_at: datetime | None = None  # within the last quarter of an hour
    fetches_per_second: float | None = None  # over the last five minutes
    ready_wait: timedelta | None = None  # of the first ready host; None = no host is ready
    hosts_ready: int = 0  # counted up to 1,000
    due: int = 0
    new_waiting: int = 0
    is_estimate: bool = False
    leased: int = 0
    leases: int = 0
    oldest_lease_at: datetime | None = None
    next_ready_at: datetime | None = None
    upkeep_at: datetime | None = None
    worker_is_running: bool | None = None
    vitals_at: datetime | None = None
    longest_transaction: timedelta | None = None
    inbox_wait: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class EventCounts:
    """Counts of events in a span of time."""

    fetches: float = 0
    changed: float = 0
    unchanged: float = 0
    first: float = 0
    missing: float = 0
    failed: float = 0
    throttled: float = 0
    denied: float = 0
    skipped: float = 0
    handed_out: float = 0
    calls: float = 0
    empty_calls: float = 0
    pages_added: float = 0


@dataclass(frozen=True)
class Period(EventCounts):
    """A minute, ten minutes or an hour: counts of events, and means of states. None = not known."""

    at: datetime
    due: float | None = None
    due_crawler: float | None = None
    due_gap: float | None = None
    due_blocked: float | None = None
    pages: float | None = None
    fresh: float | None = None
    fresh_error: float | None = None
    expected: float | None = None
    limit_with_gaps: float | None = None
    budget: float | None = None  # fetches per day


@dataclass(frozen=True)
class Minute(Period):
    """A row of the view vitals."""

    new_waiting: float | None = None
    leased: float | None = None
    hosts: float | None = None
    hosts_ready: float | None = None
    hosts_blocked: float | None = None
    hosts_capped: float | None = None
    ready_wait: timedelta | None = None
    covered: float | None = None
    limit_without_gaps: float | None = None


@dataclass(frozen=True)
class Total(EventCounts):
    """The counts of many minutes, added up."""

    since: datetime | None = None  # the start of the first minute; None = there are no minutes
    change_unknown: float = 0  # the part of `unchanged` whose report did not say whether the page changed
    stale: float = 0
    duplicate: float = 0
    refused: float = 0
    late_1m: float = 0
    late_10m: float = 0
    late_1h: float = 0
    late_6h: float = 0
    late_1d: float = 0
    late_more: float = 0
    expired: float = 0
    missed: float = 0
    # Of the minutes whose budget is known. The budget may have been set or changed within the day.
    budget_minutes: float = 0
    budget_fetches: float = 0
    mean_budget: float | None = None  # fetches per day

    @property
    def revisits(self) -> float:
        return self.late_1m + self.late_10m + self.late_1h + self.late_6h + self.late_1d + self.late_more

    @property
    def in_time(self) -> float:
        """The share of the revisits that began within ten minutes of their due time."""
        return (self.late_1m + self.late_10m) / self.revisits if self.revisits else 0.0

    def lasts(self, now: datetime) -> timedelta | None:
        """The time that the counts cover, a day at most; None = nothing is known."""
        return None if self.since is None else min(DAY, max(now - self.since, MINUTE))

    def is_whole(self, now: datetime) -> bool:
        """Whether the counts cover a day, or nothing is known. In a young crawl they cover less."""
        lasts = self.lasts(now)
        return lasts is None or lasts > 23 * HOUR

    def covers(self, now: datetime) -> str:
        """The time that the counts cover, in words."""
        return "24 h" if self.is_whole(now) else lasting(self.lasts(now))

    def left(self, new_pages: float, now: datetime) -> timedelta | None:
        """How long new pages last if as many are fetched as on this day. None = not known, or ten years and more."""
        lasts = self.lasts(now)
        days = new_pages / self.first * (lasts / DAY) if lasts and self.first else 3650
        return timedelta(days=days) if days < 3650 else None

    def of_budget(self, budget: float | None, now: datetime) -> float | None:
        """The fetches as a share of the budget (fetches per day) for the same time."""
        lasts = self.lasts(now)
        return self.fetches / (budget * (lasts / DAY)) if budget and lasts else None


@dataclass(frozen=True)
class LastAllocation:
    """The allocation in force. Fetches per day; utility and bounds per unit of value."""

    started_at: datetime
    objective: str
    budget: float
    for_revisits: float
    for_new: float
    unused: float
    pages: int
    capped_hosts: int
    utility: float | None = None
    limit_with_gaps: float | None = None
    limit_without_gaps: float | None = None


@dataclass(frozen=True)
class PastRun:
    job: str
    started_at: datetime
    seconds: float
    ok: bool | None  # None = it is running
    message: str | None

    @property
    def result(self) -> str:
        """In one word. A run that was told to stop has not failed."""
        if self.ok is None:
            return "running"
        return "ran" if self.ok else "stopped" if self.message == "stopped" else "failed"


@dataclass(frozen=True)
class LastRun(PastRun):
    succeeded_at: datetime | None
    failures: int  # since it last succeeded


@dataclass(frozen=True)
class Schedule:
    """When a batch job runs."""

    job: str
    every: timedelta | None  # None = never by itself
    due_at: datetime | None  # None = it is running now, or it never runs by itself
    running_since: datetime | None = None


@dataclass(frozen=True)
class LateHost:
    host: str
    due: int
    late: timedelta | None
    waits_for: str  # crawler, gap or block
    gap: timedelta | None = None
    blocked_until: datetime | None = None
    blocked_reason: str | None = None


@dataclass(frozen=True)
class CappedHost:
    host: str
    pages: int
    gap: timedelta
    wanted: float | None  # fetches per day that its pages would get if the host had no gap; None = without limit
    frequency: float  # fetches per day that it was given
    half_gap_gain: float | None = None


@dataclass(frozen=True)
class HasEver:
    """Whether the crawl has ever had a page, and whether a page was handed out: two columns of the view checkup."""

    has_pages: bool = True
    has_handed_out: bool = True


@dataclass(frozen=True)
class Figures:
    """If the database has no tables or another version, only `database` is known."""

    now: Now
    database: str = "same"  # compared with this program: same, none, older or newer
    ever: HasEver = field(default_factory=HasEver)
    reported_at: datetime | None = None  # the last report, at most an hour off; None = not in the kept figures
    workers: int = 0  # connected, working or not
    minutes: tuple[Minute, ...] = ()  # of the last hour
    hour: Total = field(default_factory=Total)
    day: Total = field(default_factory=Total)
    allocation: LastAllocation | None = None
    runs: tuple[LastRun, ...] = ()
    schedule: tuple[Schedule, ...] = ()
    late_hosts: tuple[LateHost, ...] = ()  # the host that is most late comes first
    capped_hosts: tuple[CappedHost, ...] = ()
    settings: dict[str, str | None] = field(default_factory=dict)

    @property
    def minute(self) -> Minute:
        """The newest minute. Nothing of it is known if there are no minutes."""
        return self.minutes[-1] if self.minutes else Minute(self.now.as_of)

    @property
    def set_budget(self) -> float | None:
        """Fetches per day, if the setting is a number."""
        try:
            return float(self.settings.get("budget") or "")
        except ValueError:
            return None

    @property
    def budget(self) -> float | None:
        """The budget in force, in fetches per day. None = there is no budget."""
        return self.set_budget or self.minute.budget

    @property
    def quiet(self) -> timedelta | None:
        """The time since the last report; None = the figures that are kept have no report."""
        return None if self.reported_at is None else self.now.as_of - self.reported_at

    @property
    def allocates_share(self) -> bool:
        return self.allocation is not None and self.allocation.objective in SHARES


def compared(version: str | None, known: list[str]) -> str:
    """Compares the version of a database with the versions that this program knows."""
    if version is None:
        return "none"
    return "same" if version == known[-1] else "newer" if version > known[-1] else "older"


def read(connection: store.Connection) -> Figures:
    database = compared(store.views.version(connection), project.versions())
    if database != "same":
        return Figures(Now(datetime.now(UTC)), database=database)
    now = store.views.row_of(connection, Now, "crawl_status")
    return Figures(
        now=now,
        ever=store.views.row_of(connection, HasEver, "checkup"),
        reported_at=now.last_report_at or store.views.last_report(connection),
        workers=store.calls.workers(connection),
        minutes=tuple(store.views.recent(connection, Minute, "vitals", HOUR)),
        hour=store.views.vitals_total(connection, Total, HOUR),
        day=store.views.vitals_total(connection, Total, DAY),
        allocation=store.views.last_allocation(connection, LastAllocation),
        runs=tuple(store.views.last_runs(connection, LastRun, ALWAYS)),
        schedule=tuple(store.views.schedule(connection, Schedule)),
        late_hosts=tuple(store.views.late_hosts(connection, LateHost, 20)),
        capped_hosts=tuple(store.views.capped_hosts(connection, CappedHost, 20)),
        settings=store.views.shown_settings(connection),
    )
