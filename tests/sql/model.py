"""DELAYED in plain Python, and the rules that the tables must always follow.

Each host has one queue in order of due times. A request goes out at max(due, last slot + gap); the page is due again
k / f later, on its own grid, with k = max(1, ceil((slot − due) · f)). The model is told which pages were handed out,
and checks that this was allowed. It computes the consequences itself.

The model also judges the choice of hosts. Among the free hosts, new pages come from hosts with the best class of value,
and revisits come from hosts that have been ready for longest. The database may deviate in three ways. A host whose
revisits wait may come last among the hosts with new pages. A host that lost pages, but not to a crawler, keeps its
class until it is visited, and then gives pages up to four times worse. A host that was ready for revisits stays so in
its gap.
"""

import math
import re
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, LiteralString

NEVER = datetime(1970, 1, 1, tzinfo=UTC)
SHORTEST_INTERVAL = timedelta(minutes=5)  # the setting's default
SLOW_START = timedelta(minutes=10)  # how much further than its lease a page that is out is kept away
TINY = timedelta(microseconds=2)
MOST_AHEAD = timedelta(minutes=1)  # of the random crawls

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
    from held where lease_until > %(t)s
    group by lease_id, round, unreported having unreported <> count(*) filter (where is_held)
    union all
    select 'a page that is out can be reached', h.page_id, format('%%s, held until %%s', q.due_at, h.held_due)
    from held h join page p using (page_id) left join queue q using (page_id)
    where h.is_held and p.state = 'live'
      and h.held_due > %(t)s + interval '10 minutes'        -- otherwise it may have been handed out again
      and (q.due_at = h.held_due and h.held_due >= h.lease_until + interval '10 minutes') is not true
    union all
    select 'page.due_at is not its place', p.page_id, format('%%s, not %%s', p.due_at, place.due_at)
    from page p join place using (page_id)
    where p.state = 'live' and p.due_at is distinct from place.due_at
      and p.page_id not in (select page_id from inbox) and p.page_id not in (select page_id from held where is_held)
"""


def next_due(due: datetime, slot: datetime, per_day: float) -> datetime:
    period = 86400 / per_day
    return max(
        due + timedelta(seconds=max(1, math.ceil((slot - due).total_seconds() / period)) * period),
        slot + SHORTEST_INTERVAL,
    )


def single(number: float) -> float:
    """As a column of type real holds it."""
    return float(struct.unpack("f", struct.pack("f", number))[0])


def value_class(value: float) -> int:
    """Values in a class are less than a factor of two apart. The best is class 0, the least and 0 itself class 31."""
    return max(0, min(31, 19 - math.floor(math.log2(max(value, 1e-30)))))


DAY = timedelta(days=1)


def seconds(said: str) -> timedelta:
    return timedelta(seconds=float(said))


def doubled(first: timedelta, times: int, longest: timedelta) -> timedelta:
    return min(first * float(2**times), longest)


@dataclass
class Host:
    gap: timedelta | None = None
    crawl_delay: timedelta | None = None
    last_start: datetime = NEVER  # the next slot is a gap later
    late_start: datetime = NEVER  # of the last request that began after its start_by
    starts: list[datetime] = field(default_factory=list)  # the latest start in each slot, and starts out of a slot
    patience: timedelta = timedelta(0)  # a shorter default_gap is noticed when the gap it replaces is over
    one_at_a_time: bool = False
    busy_lease: int | None = None
    busy_until: datetime = NEVER
    blocked_until: datetime = NEVER
    last_revisit: datetime = NEVER
    put: datetime = NEVER  # when its place in line was last written, other than by a visit: it is not ready before
    known_class: int | None = None  # the best that it had since it was last visited for new pages
    known_due: datetime | None = None  # the first since it was last visited for revisits


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
    was_missing: bool = False  # by the last result that counted; is_denied too
    is_denied: bool = False
    last_lease: int = 0
    stale_lease: int = 0
    fetched_at: datetime | None = None
    pinned: float | None = None  # fetches per day


@dataclass
class Hold:
    """A page that is out on a lease."""

    lease_id: int
    page: Page
    handed_out_at: datetime
    slot: datetime
    start_by: datetime
    due: datetime  # what the slot serves
    until: datetime
    held_due: datetime
    is_newest: bool = True  # the page was not handed out again since, after the end of this lease


@dataclass
class Model:
    default_gap: timedelta = timedelta(seconds=1)
    window_share: float = 0.1
    frequency: float = 1
    patterns: set[str] = field(default_factory=set)
    hosts: dict[str, Host] = field(default_factory=dict)
    pages: dict[int, Page] = field(default_factory=dict)
    holds: dict[tuple[int, int], Hold] = field(default_factory=dict)  # by lease and page
    # The changes of hosts in the present report:
    crawl_delays: dict[str, timedelta] = field(default_factory=dict)
    late_starts: dict[str, datetime] = field(default_factory=dict)

    def per_day(self, page: Page) -> float:
        of_rate = self.frequency if page.rate is None else single(page.rate)
        return max(min(of_rate if page.pinned is None else page.pinned, 86400), single(1e-4))

    def follows(self, per_day: float, t: datetime) -> dict[int, datetime]:
        """The new due times of fetched pages without a frequency of their own, after a new frequency for all pages."""
        moved = {}
        for page in self.pages.values():
            follows = page.state == "live" and page.attempts == 0 and page.rate is None and page.pinned is None
            if follows and page.fetched_at and not page.is_denied and page.due and page.due > t:
                sooner = page.due + timedelta(days=1 / per_day - 1 / self.frequency)
                moved[page.page_id] = max(sooner, page.fetched_at + SHORTEST_INTERVAL, t)
        self.frequency = per_day
        return moved

    def hosts_change(self, t: datetime) -> None:
        """A report sets the crawl delays of hosts after it has moved their slots by all of its results."""
        for name, began in self.late_starts.items():
            host = self.hosts[name]
            if began > host.last_start:
                host.last_start = began
                host.put = t  # it stands in line anew
            host.late_start = max(host.late_start, began)
        self.late_starts = {}
        for name, delay in self.crawl_delays.items():
            if delay != self.hosts[name].crawl_delay:
                self.hosts[name].put = t
            self.hosts[name].crawl_delay = delay
        self.crawl_delays = {}

    def gap(self, host: str) -> timedelta:
        h = self.hosts[host]
        return h.gap or max(h.crawl_delay or self.default_gap, self.default_gap)

    def window(self, host: str) -> timedelta:
        """How long after its slot a request may start."""
        return min(self.gap(host) * single(self.window_share), timedelta(seconds=2))

    def hold(self, lease_id: int | None, page_id: int, t: datetime) -> Hold | None:
        hold = self.holds.get((lease_id or 0, page_id))
        return hold if hold and hold.until > t else None

    def that_may_count(self, results: Iterable[dict[str, Any]], t: datetime) -> dict[int, int]:
        """The lease, by page, whose result may count: the one that holds the page, otherwise the newest."""
        first: dict[int, tuple[bool, int]] = {}
        for result in results:
            page_id, lease_id = result["page_id"], int(result.get("lease_id") or 0)
            rank = (self.hold(lease_id, page_id, t) is not None, lease_id)
            first[page_id] = max(rank, first.get(page_id, rank))
        return {page_id: lease_id for page_id, (_, lease_id) in first.items()}

    def is_out(self, page: Page) -> bool:
        return any(h.page is page and h.is_newest for h in self.holds.values())

    def waiting(self, host: str, t: datetime) -> list[Page]:
        """The pages that could be requested from the host if it were free."""
        pages = [p for p in self.pages.values() if p.host == host and p.state == "live" and not self.is_out(p)]
        return [page for page in pages if page.due is None or page.due <= t]

    def is_ready(self, host: str, t: datetime) -> bool:
        return self.free_from(host) <= t and self.waiting(host, t) != []

    def free_from(self, host: str) -> datetime:
        h = self.hosts[host]
        return max(h.last_start + max(self.gap(host), h.patience), h.busy_until, h.blocked_until)

    def best_class(self, host: str, t: datetime) -> int | None:
        return min((value_class(page.value) for page in self.waiting(host, t) if page.due is None), default=None)

    def first_due(self, host: str, t: datetime) -> datetime | None:
        return min((page.due for page in self.waiting(host, t) if page.due is not None), default=None)

    def note(self, t: datetime, told: dict[str, datetime | None]) -> None:
        """Notes the places of hosts. `told` has the first due times that the queue will learn about some hosts."""
        for name, host in self.hosts.items():
            classes = (host.known_class, self.best_class(name, t))
            host.known_class = min((known for known in classes if known is not None), default=None)
            dues = [p.due for p in self.pages.values() if p.host == name and p.due and p.state == "live"]
            held = [hold.held_due for hold in self.holds.values() if hold.page.host == name]
            coming = told.get(name)  # also of a page that is due otherwise when the queue hears of it
            host.known_due = min((due for due in (host.known_due, coming, *dues, *held) if due), default=None)
            if name in told:
                host.put = t

    def is_sure(self, host: str, t: datetime) -> bool:
        """Whether it is known for what it has."""
        h, first = self.hosts[host], self.first_due(host, t)
        if h.known_due and h.known_due <= t and (first is None or abs(first - h.known_due) > TINY):
            return False
        return h.known_class == self.best_class(host, t)

    def is_excluded(self, url: str) -> bool:
        return any(re.search(pattern, url) for pattern in self.patterns)

    @staticmethod
    def new_host() -> Host:
        return Host()

    # ------------------------------------------------------------------------------------------- what happens

    def added(self, page: Page) -> None:
        self.pages[page.page_id] = page
        self.hosts.setdefault(page.host, Host())

    def chosen(self, new: dict[str, int], revisited: set[str], t: datetime, last: set[str], unsure: set[str]) -> bool:
        """Judges which hosts gave new pages (with their worst class) and revisits, before it is told of them. `last`
        has the hosts whose revisits come first now, according to the database. False = a better class of new pages
        was passed over, as in a call that goes round all classes."""
        passed = self.hosts.keys() - new.keys() - revisited - unsure
        passed = {name for name in passed if self.is_ready(name, t) and self.is_sure(name, t)}
        best = {name: of for name in passed if (of := self.best_class(name, t)) is not None}
        for name in passed:
            if due := self.first_due(name, t):
                ready = max(due, self.free_from(name), self.hosts[name].put)
                for visited in revisited - unsure:
                    known = max(self.hosts[visited].known_due or NEVER, self.hosts[visited].last_revisit)
                    assert ready >= known - TINY, f"{name} has been ready for longer than {visited}"
            else:
                assert name not in last or name not in best, f"no revisits of {name} wait"
        waited = [of for name, of in best.items() if name not in last]
        for visited in new.keys() - unsure:
            # A host whose revisits come first may give them in one round of the call, and new pages in the next round.
            # So may a host that is visited for a revisit that it has lost.
            comes_last = visited in last and visited not in revisited and self.is_sure(visited, t)
            known_class = 32 if comes_last else self.hosts[visited].known_class
            assert known_class is not None
            if any(known_class > of or new[visited] > of + 2 for of in waited):
                return False
        return True

    def could_give(self, host: str, t: datetime, until: datetime) -> bool:
        """Whether a host that was visited has one more page within the look-ahead."""
        free = self.free_from(host)
        pages = [p for p in self.pages.values() if p.host == host and p.state == "live" and not self.is_out(p)]
        return any(max(free, page.due or t) <= until for page in pages)

    def handed_out(self, row: dict[str, Any], served: datetime, t: datetime, ahead: timedelta, waits: bool) -> None:
        """A row of next_pages; `served` is the due time that it serves according to the database, `waits` whether the
        page's due time is still on its way through the inbox."""
        page, slot, host = self.pages[row["page_id"]], row["fetch_at"], self.hosts[row["host"]]
        assert page.state == "live", "a dead page is handed out"
        assert not any(h.page is page and h.until > t for h in self.holds.values()), "it is out"
        assert host.blocked_until <= t and host.busy_until <= t, "the host is blocked or busy"
        gap = self.gap(row["host"])
        assert slot >= host.last_start + gap, "a slot is given twice"
        assert slot >= host.late_start + gap, "a late request is forgotten"
        assert slot >= max(host.starts, default=NEVER) + gap, "two requests may start closer than the gap"
        start_by = slot + self.window(row["host"])
        assert row["start_by"] == min(start_by, row["lease_until"])
        assert t <= slot <= t + ahead and served <= slot
        ended = [h for h in self.holds.values() if h.page is page]
        assert waits or served == (page.due or slot) or served in [h.held_due for h in ended]
        for old in ended:
            old.is_newest = False
        host.last_start, host.patience = start_by, timedelta(0)
        host.starts.append(start_by)
        if page.due is None:
            host.known_class = None
        else:
            host.last_revisit, host.known_due = start_by, None
        until = row["lease_until"]
        held = max(next_due(served, slot, self.per_day(page)), until + SLOW_START)
        self.holds[row["lease_id"], page.page_id] = Hold(row["lease_id"], page, t, slot, start_by, served, until, held)

    def released(self, lease_id: int, page_ids: list[int] | None, t: datetime) -> int:
        held = [hold for of, page_id in self.holds if of == lease_id and (hold := self.hold(of, page_id, t))]
        going = [hold for hold in held if page_ids is None or hold.page.page_id in page_ids]
        for hold in going:
            hold.page.due = hold.due
            del self.holds[lease_id, hold.page.page_id]
            self.freed(hold, t)
        return len(going)

    def freed(self, hold: Hold, t: datetime) -> None:
        host = self.hosts[hold.page.host]
        if host.busy_lease == hold.lease_id:
            host.busy_lease, host.busy_until, host.put = None, NEVER, t

    def extended(self, lease_id: int, by: timedelta, t: datetime, latest: datetime) -> datetime | None:
        holds = [h for h in self.holds.values() if h.lease_id == lease_id and h.until > t]
        for hold in holds:
            hold.until = max(hold.until, min(hold.until + by, latest))
            hold.held_due = max(hold.held_due, hold.until + SLOW_START)
            host = self.hosts[hold.page.host]
            if host.busy_lease == lease_id:
                host.busy_until = hold.until
        return holds[0].until if holds else None

    def reaped(self, hold: Hold, t: datetime, due_now: datetime | None, attempts: int) -> None:
        """A lease that ended gave its page back, which now has the due time and the attempts that the database says.
        If its held due time has come, it may give nothing back: the page was handed out again, or was dead and left."""
        page = hold.page
        assert hold.until <= t, "a running lease is gone"
        del self.holds[hold.lease_id, page.page_id]
        is_same = page.due is due_now is None or (page.due and due_now and abs(due_now - page.due) <= TINY)
        if hold.held_due <= t + MOST_AHEAD and (self.is_out(page) or (is_same and page.attempts == attempts)):
            return
        if hold.held_due <= t + MOST_AHEAD and page.state != "live" and page.attempts == attempts:
            page.due = due_now  # it left the queue; what a report without a lease decided stays
            return
        if page.fetched_at is not None and page.fetched_at >= hold.handed_out_at:
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

    @staticmethod
    def said(result: dict[str, Any], due: datetime | None) -> datetime:
        assert due is not None
        if result.get("due", "infinity") == "infinity":
            assert due.year == 9999
        else:
            wanted = datetime.fromisoformat(result["due"])
            assert wanted <= due <= wanted + timedelta(milliseconds=1)
        return due

    def reported(
        self, result: dict[str, Any], outcome: str, code: str, t: datetime, due_now: datetime | None, may_count: bool
    ) -> None:
        """Takes in a result that was answered with `code`. `due_now` is when the page is due next, according to the
        database: within 10 % after a failure, exactly after a fetch. `may_count` is false if another result of the page
        in the same call goes first."""
        page, lease_id = self.pages[result["page_id"]], int(result.get("lease_id") or 0)
        host, hold = self.hosts[page.host], self.hold(lease_id, page.page_id, t)
        said = datetime.fromisoformat(result["fetched_at"]) if "fetched_at" in result else None
        if lease_id:
            assert (code == "ok") == (hold is not None), f"{code}, but it is {'' if hold else 'not '}held"
        if code == "duplicate":
            return
        if said and (hold is None or said > hold.start_by):
            self.late_starts[page.host] = max(self.late_starts.get(page.host, NEVER), min(said, t))
            host.starts.append(min(said, t))
        if "crawl_delay" in result:
            self.crawl_delays[page.host] = timedelta(seconds=result["crawl_delay"])
        is_news = (
            may_count
            and lease_id > max(page.last_lease, page.stale_lease)
            and not (said and page.fetched_at and said <= page.fetched_at)
        )
        attempts, was_missing = page.attempts, page.was_missing
        if (code == "ok" and outcome != "declined") or (outcome == "fetched" and is_news):
            page.was_missing, page.is_denied = outcome in ("missing", "moved"), outcome == "denied"
        if outcome == "fetched" and (code == "ok" or is_news):
            seen_at = min(said or (hold.slot if hold else t), t)
            if hold:
                seen_at = max(seen_at, hold.handed_out_at, page.fetched_at or seen_at)
            page.fetched_at, page.attempts = seen_at, 0
            page.stale_lease = page.stale_lease if code == "ok" else lease_id
        if code == "ok" and outcome == "denied":
            page.attempts = 0
        if code == "ok" and page.state == "live" and outcome in ("gone", "moved"):
            page.state = outcome
        decides = code == "ok" and ("due" in result or outcome == "declined")  # of a page that is out, till that ends
        if decides:
            page.due = self.said(result, due_now)
        if hold is None:
            return
        page.last_lease = lease_id
        self.holds = {key: h for key, h in self.holds.items() if h.page is not page or h.lease_id > lease_id}
        self.freed(hold, t)
        page.attempts += outcome in ("missing", "failed", "throttled")
        if decides:
            pass
        elif outcome == "fetched":
            page.due = next_due(hold.due, hold.slot, self.per_day(page))
        elif outcome in ("gone", "moved"):
            page.due = None
        else:
            again = min(max(DAY / self.per_day(page) / 4, timedelta(minutes=1)), DAY)
            failed = doubled(again, attempts - 1, timedelta(days=30)) if attempts else timedelta(minutes=1)
            pause = {
                "missing": doubled(DAY, attempts if was_missing else 0, timedelta(days=90)),
                "failed": failed,
                "throttled": failed,
                "denied": timedelta(days=7),
            }[outcome]
            if outcome == "throttled" and (wanted := min(seconds(result.get("retry_after", "0")), DAY)) > 0.9 * pause:
                assert due_now is not None
                page.due = max(t + wanted, due_now)
                assert page.due <= t + max(wanted, 1.1 * pause)
            else:
                page.due = self.about(t, pause, due_now)
