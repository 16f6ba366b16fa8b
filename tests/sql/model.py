"""DELAYED in plain Python, and what must hold between the tables whatever happened.

Each host has one queue in order of due times. A request goes out at max(due, last slot + gap); the page is due again
k / f later, on its own grid, with k = max(1, ceil((slot − due) · f)). The model is told what was handed out and checks
that it was allowed; what came of it, it works out for itself.
"""

import math
import re
import struct
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
SLOW_START = timedelta(minutes=10)  # how much further than its lease a page that is out is kept away
TINY = timedelta(microseconds=2)

# One row for every statement about the world that is false at the time %(t)s.
BROKEN: LiteralString = """
    with place as (
        select host_id, page_id, due_at, null::real as rank from queue
        union all select host_id, page_id, null, rank from new_page
    ),
    held as (
        select l.lease_id, l.round, l.lease_until, l.unreported, i.page_id, i.held_due,
               coalesce(p.last_lease, 0) < l.lease_id as is_held
        from lease l
        cross join lateral unnest(l.page_ids, l.held_dues) as i (page_id, held_due)
        join page p using (page_id)
    ),
    counted as (
        select h.host_id, h.pages, (select count(*) from place p where p.host_id = h.host_id) as places from host h
    )
    select 'a page is in two running leases' as what, page_id as id, array_agg(lease_id)::text as detail
    from held where is_held and lease_until > %(t)s group by page_id having count(*) > 1
    union all
    select 'head_due is past a page that is queued', h.host_id, format('%%s > %%s', h.head_due, min(q.due_at))
    from host h join queue q using (host_id) group by h.host_id, h.head_due having h.head_due > min(q.due_at)
    union all
    select 'head_new is past a new page', h.host_id,
           format('%%s: %%s', (h.head_new_rank, h.head_new_id), (n.rank, n.page_id))
    from host h join new_page n using (host_id)
    where ((h.head_new_rank, h.head_new_id) <= (n.rank, n.page_id)) is not true
    union all
    select 'a host is not in the line of its new pages', host_id,
           format('%%s, %%s, %%s due %%s', new_class, head_new_rank, new_credit, head_due)
    from host
    where new_class is distinct from value_class(head_new_rank)
      and (new_class = 32 and head_due <= %(t)s and new_credit < 1) is not true
    union all
    select 'a page has more than one place', page_id, count(*)::text from place group by page_id having count(*) > 1
    union all
    select 'a page has a place and is about to get another', page_id, null
    from inbox
    where old_due is null and old_rank is null and not revived and page_id in (select page_id from place)
    union all
    select 'a live page has no place', page_id, p.url
    from page p
    where state = 'live' and page_id not in (select page_id from place)
      and not exists (select from inbox i where i.page_id = p.page_id and old_due is null and old_rank is null)
    union all
    select 'host.pages is not its pages', host_id, format('%%s, not %%s', pages, places)
    from counted where pages <> places
    union all
    select 'a page is queued under another host', p.page_id, null
    from place join page p using (page_id) where place.host_id <> p.host_id
    union all
    select 'lease.unreported is not its unreported pages', lease_id,
           format('%%s, not %%s', unreported, count(*) filter (where is_held))
    from held group by lease_id, round, unreported having unreported <> count(*) filter (where is_held)
    union all
    select 'a page that is out can be reached', h.page_id, format('%%s, held until %%s', q.due_at, h.held_due)
    from held h join page p using (page_id) left join queue q using (page_id)
    where h.is_held and p.state = 'live'
      and (q.due_at = h.held_due and h.held_due >= h.lease_until + interval '10 minutes') is not true
    union all
    select 'page.due_at is not its place', p.page_id, format('%%s, not %%s', p.due_at, place.due_at)
    from page p join place using (page_id)
    where p.state = 'live' and p.due_at is distinct from place.due_at
      and p.page_id not in (select page_id from inbox) and p.page_id not in (select page_id from held where is_held)
"""


def next_due(due: datetime, slot: datetime, per_day: float) -> datetime:
    period = 86400 / per_day
    return due + timedelta(seconds=max(1, math.ceil((slot - due).total_seconds() / period)) * period)


def single(number: float) -> float:
    """As a column of type real holds it."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    return min(first * float(2**times), longest)


@dataclass
class Host:
    gap: timedelta | None = None
    crawl_delay: timedelta | None = None
    last_start: datetime = NEVER  # the last request starts no later
    patience: timedelta = timedelta(0)  # a shorter default_gap is noticed when the gap it replaces is over
    one_at_a_time: bool = False
    busy_lease: int | None = None
    busy_until: datetime = NEVER
    blocked_until: datetime = NEVER


@dataclass
class Page:
    page_id: int
    url: str
    host: str
    due: datetime | None = None  # none: never handed out
    rate: float | None = None
    value: float = 1
    state: str = "live"
    attempts: int = 0
    last_lease: int = 0
    stale_lease: int = 0
    fetched_at: datetime | None = None


@dataclass
class Hold:
    """A page that is out on a lease."""

    lease_id: int
    page: Page
    popped_at: datetime
    slot: datetime
    start_by: datetime
    due: datetime  # what the slot serves
    until: datetime
    held_due: datetime


@dataclass
class Model:
    default_gap: timedelta = timedelta(seconds=1)
    start_within: float = 0.1
    frequency: float = 1
    patterns: set[str] = field(default_factory=set)
    hosts: dict[str, Host] = field(default_factory=dict)
    pages: dict[int, Page] = field(default_factory=dict)
    holds: dict[tuple[int, int], Hold] = field(default_factory=dict)  # by lease and page

    def per_day(self, page: Page) -> float:
        return max(min(self.frequency if page.rate is None else single(page.rate), 86400), single(1e-4))

    def gap(self, host: str) -> timedelta:
        h = self.hosts[host]
        return h.gap or max(h.crawl_delay or self.default_gap, self.default_gap)

    def window(self, host: str) -> timedelta:
        """How long after its slot a request may start."""
        return min(self.gap(host) * single(self.start_within), timedelta(seconds=2))

    def hold(self, lease_id: int | None, page_id: int, t: datetime) -> Hold | None:
        hold = self.holds.get((lease_id or 0, page_id))
        return hold if hold and hold.until > t else None

    def is_out(self, page: Page) -> bool:
        return any(h.page is page for h in self.holds.values())

    def waiting(self, host: str, t: datetime) -> list[Page]:
        """What the host could be asked for, were it free."""
        pages = [p for p in self.pages.values() if p.host == host and p.state == "live" and not self.is_out(p)]
        return [page for page in pages if page.due is None or page.due <= t]

    def is_ready(self, host: str, t: datetime) -> bool:
        h = self.hosts[host]
        free = max(h.last_start + max(self.gap(host), h.patience), h.busy_until, h.blocked_until)
        return free <= t and self.waiting(host, t) != []

    def is_excluded(self, url: str) -> bool:
        return any(re.search(pattern, url) for pattern in self.patterns)

    @staticmethod
    def new_host() -> Host:
        return Host()

    # ------------------------------------------------------------------------------------------- what happens

    def added(self, page: Page) -> None:
        self.pages[page.page_id] = page
        self.hosts.setdefault(page.host, Host())

    def handed_out(self, row: dict[str, Any], served: datetime, t: datetime, ahead: timedelta, waits: bool) -> None:
        """A row of next_pages; `served` is the due time that it serves according to the database, `waits` whether the
        page's due time is still on its way through the inbox."""
        page, slot, host = self.pages[row["page_id"]], row["fetch_at"], self.hosts[row["host"]]
        assert page.state == "live", "a dead page is handed out"
        assert not any(h.page is page and h.until > t for h in self.holds.values()), "it is out"
        assert host.blocked_until <= t and host.busy_until <= t, "the host is blocked or busy"
        assert slot >= host.last_start + self.gap(row["host"]), "two requests may start closer than the gap"
        start_by = slot + self.window(row["host"])
        assert row["start_by"] == min(start_by, row["lease_until"])
        assert t <= slot <= t + ahead and served <= slot
        assert waits or served == (page.due or slot)
        host.last_start, host.patience = start_by, timedelta(0)
        until = row["lease_until"]
        held = max(next_due(served, slot, self.per_day(page)), until + SLOW_START)
        self.holds[row["lease_id"], page.page_id] = Hold(row["lease_id"], page, t, slot, start_by, served, until, held)

    def released(self, lease_id: int, page_ids: list[int] | None, t: datetime) -> int:
        held = [hold for of, page_id in self.holds if of == lease_id and (hold := self.hold(of, page_id, t))]
        going = [hold for hold in held if page_ids is None or hold.page.page_id in page_ids]
        for hold in going:
            hold.page.due = hold.due
            del self.holds[lease_id, hold.page.page_id]
            self.freed(hold)
        return len(going)

    def freed(self, hold: Hold) -> None:
        host = self.hosts[hold.page.host]
        if host.busy_lease == hold.lease_id:
            host.busy_lease, host.busy_until = None, NEVER

    def extended(self, lease_id: int, by: timedelta, t: datetime) -> datetime | None:
        holds = [h for h in self.holds.values() if h.lease_id == lease_id and h.until > t]
        for hold in holds:
            hold.until += by
            hold.held_due = max(hold.held_due, hold.until + SLOW_START)
            host = self.hosts[hold.page.host]
            if host.busy_lease == lease_id:
                host.busy_until = hold.until
        return holds[0].until if holds else None

    def reaped(self, hold: Hold, t: datetime, due_now: datetime | None) -> None:
        """A lease that ended gave its page back, which now has the due time that the database says."""
        page = hold.page
        assert hold.until <= t, "a running lease is gone"
        del self.holds[hold.lease_id, page.page_id]
        if page.fetched_at is not None and page.fetched_at >= hold.popped_at:
            page.due = hold.held_due
            return
        if page.attempts == 0:
            page.due = hold.due
        else:
            page.due = self.about(t, doubled(timedelta(minutes=1), page.attempts - 1, timedelta(days=1)), due_now)
        page.attempts += 1

    @staticmethod
    def about(t: datetime, pause: timedelta, due: datetime | None) -> datetime:
        assert due is not None and t + 0.9 * pause - TINY <= due <= t + 1.1 * pause + TINY, (
            f"{due} is not {pause} after {t}"
        )
        return due

    def reported(self, result: dict[str, Any], outcome: str, code: str, t: datetime, due_now: datetime | None) -> None:
        """Takes in a result that was answered with `code`. `due_now` is when the page is due next, according to the
        database: within 10 % after a failure, exactly after a fetch."""
        page, lease_id = self.pages[result["page_id"]], int(result.get("lease_id") or 0)
        host, hold = self.hosts[page.host], self.hold(lease_id, page.page_id, t)
        said = datetime.fromisoformat(result["fetched_at"]) if "fetched_at" in result else None
        if lease_id:
            assert (code == "ok") == (hold is not None), f"{code}, but it is {'' if hold else 'not '}held"
        if code == "duplicate":
            return
        if said and (hold is None or said > hold.start_by):
            host.last_start = max(host.last_start, min(said, t))
        if "crawl_delay" in result:
            host.crawl_delay = timedelta(seconds=result["crawl_delay"])
        is_news = lease_id > max(page.last_lease, page.stale_lease) and not (
            said and page.fetched_at and said <= page.fetched_at
        )
        attempts = page.attempts
        if outcome == "fetched" and (code == "ok" or is_news):
            seen_at = min(said or (hold.slot if hold else t), t)
            if hold:
                seen_at = max(seen_at, hold.popped_at, page.fetched_at or seen_at)
            page.fetched_at, page.attempts = seen_at, 0
            page.stale_lease = page.stale_lease if code == "ok" else lease_id
        if code == "ok" and outcome == "denied":
            page.attempts = 0
        if code == "ok" and page.state == "live" and outcome in ("gone", "moved"):
            page.state = outcome
        if hold is None:
            return
        page.last_lease = lease_id
        del self.holds[lease_id, page.page_id]
        self.freed(hold)
        page.attempts += outcome in ("missing", "failed")
        if outcome == "fetched":
            page.due = next_due(hold.due, hold.slot, self.per_day(page))
        elif outcome == "throttled":
            page.due = hold.due
        elif page.state == "live":
            pause = {
                "missing": doubled(timedelta(days=1), attempts, timedelta(days=90)),
                "failed": doubled(timedelta(minutes=1), attempts, timedelta(days=1 if attempts < 4 else 30)),
                "denied": timedelta(days=7),
            }[outcome]
            page.due = self.about(t, timedelta(days=30) if outcome == "failed" and attempts >= 4 else pause, due_now)
