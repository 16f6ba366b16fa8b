"""The pages that a client has in hand. `InHand` makes every transition of a page. `to_do` says what must be done next.

     next_pages
         │ received
         ▼         its slot is near             next
      WAITING ───────────────────────▶ READY ───────────▶ RUNNING
         ▲                             │ │ ▲                 │
         └── its slot is not near yet ─┘ │ │                 │
                  robots.txt was already │ │ its request     │
                  requested              ▼ │ has ended       │
                                     BEHIND_ROBOTS           │ reported, declined, released,
                                                             │ blocked, or too late for its slot
     in line (WAITING, READY, BEHIND_ROBOTS):                ▼        sent
     missed, unready, blocked, released, denied ──────────▶ UNSENT ─────────────▶ OVER

     in line, or RUNNING:
     lost: the lease has ended, or a thread still runs the visit ─────────────▶ OVER

READY goes back to WAITING if the clock or the time for preparation has changed.

InHand calls no database, starts no task and waits for nothing: the runner (runner.py) does what is in `to_do`. A page
ends once, with a result or an outcome, in two steps. First it is settled: visits may run in other threads, so
`try_settle` returns True to only one caller. Then this caller ends it (`end_settled`; a lost page goes to OVER
directly). Until then the page keeps its state.

The client's own requests (robots.txt and extras) take the same way, but nothing of them is sent: they go to OVER
instead of UNSENT. The first page of a site that needs its robots.txt gives its slot to this request, which begins at
once. Such a page is RUNNING, and ends with the request.
"""

import heapq
import math
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum
from itertools import count, islice
from typing import NamedTuple

from recrawl.client.answers import Result
from recrawl.client.clock import Clock
from recrawl.client.database import Reported
from recrawl.client.page import Page, is_request, robots_request
from recrawl.client.preparation import Preparation
from recrawl.client.robots import Access, site_of


class PageState(IntEnum):
    WAITING = 1  # for its slot
    READY = 2  # for a free visit
    BEHIND_ROBOTS = 3  # for the robots.txt of its site, which was requested
    RUNNING = 4  # its visit runs: it prepares its request or made it. Or its robots.txt is requested in its slot
    UNSENT = 5  # it has ended, and the database does not know it yet
    OVER = 6  # nothing is left to do for it


WAITING, READY, BEHIND_ROBOTS, RUNNING, UNSENT, OVER = PageState
ROBOTS_FAILED: Result = {"robots_failed": True}  # ends a request of the client: the rules of its site cannot be known
IN_LINE = (WAITING, READY, BEHIND_ROBOTS)  # its visit has not begun
AFTER = {
    WAITING: {READY, UNSENT, OVER},
    READY: {WAITING, BEHIND_ROBOTS, RUNNING, UNSENT, OVER},
    BEHIND_ROBOTS: {READY, UNSENT, OVER},
    RUNNING: {UNSENT, OVER},
    UNSENT: {OVER},
}


class TellOutcome(NamedTuple):
    """To do: tell the outcome of a page to the caller's hook."""

    page: Page
    code: str
    detail: str | None


class CancelVisit(NamedTuple):
    """To do: cancel the task of this page's visit."""

    page: Page


class Answered(NamedTuple):
    """To do: hand this answer to the part of the client that waits for it. Without a result the page was given
    back."""

    page: Page
    result: Result | None
    body: bytes | str | None


@dataclass
class Lease:
    until: float  # the monotonic time
    pages: dict[int, Page] = field(default_factory=dict)  # those whose outcome is not known yet, by page_id


class RobotsRequest(NamedTuple):
    """A robots.txt that was requested, and has no answer yet."""

    slot_of: Page  # the page that gave its slot to this request
    waiting: list[Page]  # other pages of the site


class InHand:
    def __init__(
        self, clock: Clock, preparation: Preparation, concurrency: int, access_to: Callable[[str], Access]
    ) -> None:
        """`access_to` says whether robots.txt allows a URL."""
        self.to_do: deque[TellOutcome | CancelVisit | Answered] = deque()  # the runner empties it after transitions
        self.counts: Counter[str] = Counter()  # of outcomes, requests and the like
        self.lag: deque[float] = deque(maxlen=1000)  # seconds from fetch_at to the start, of the last requests
        self._lag_of: dict[Page, float] = {}  # the numbers in `lag` of pages whose visits may still call begins
        self.answer_time = 0.3  # seconds from calling next_pages to having its pages; a guess until the first answer
        self.is_closed = False
        self.visits_ended = 0
        self.results: deque[tuple[Page, Result]] = deque()  # to report
        self.releases: defaultdict[tuple[int, bool], list[Page]] = defaultdict(list)  # by lease, and whether slot_used
        self._clock = clock
        self._preparation = preparation
        self._concurrency = concurrency
        self._access_to = access_to
        self._leases: dict[int, Lease] = {}
        self._states: dict[Page, PageState] = {}  # a page that is over is not here
        self._number_in = dict.fromkeys(PageState, 0)  # of pages, by state
        self._due: list[tuple[float, int, Page]] = []  # WAITING pages, in a heap, by the time when each becomes READY
        self._tickets = count()
        self._ready: deque[Page] = deque()
        self._ready_extras: deque[Page] = deque()  # extra requests, and targets of redirects of a robots.txt
        self._robots_requests: dict[str, RobotsRequest] = {}  # by site
        self._visits: set[Page] = set()  # each takes a place, see _line_with_a_place()
        self._extra_visits: set[Page] = set()  # _visits that take a place of extra requests
        self._spawned: set[Page] = set()  # pages whose visits are tasks of the runner
        self._blocked: set[Page] = set()  # RUNNING pages whose requests must not begin any more
        self._settling = threading.Lock()

    # ---- questions

    def state(self, page: Page) -> PageState:
        return self._states.get(page, OVER)

    @property
    def has_leases(self) -> bool:
        return bool(self._leases)

    @property
    def unsent(self) -> int:
        return self._number_in[UNSENT]

    @property
    def pages_and_visits(self) -> int:
        """The visits that run, and the pages in line for one."""
        return len(self._visits) + sum(self._number_in[state] for state in IN_LINE)

    @property
    def notice(self) -> float:
        """The least number of seconds from now to a slot, so that a visit can be ready for it."""
        return self.answer_time + self._preparation.lead_time

    @property
    def can_yield(self) -> bool:
        return bool(self._line_with_a_place())

    @property
    def has_place_for_extra(self) -> bool:
        return len(self._extra_visits) < self._concurrency

    def _line_with_a_place(self) -> deque[Page] | None:
        """The ready pages whose turn it is. None: no ready page has a place. There are `concurrency` places for pages,
        and as many again for extra requests, because a visit that waits for its extra request keeps its own place:

            a page                                         takes a place of pages
            an extra request                               takes a place of extra requests
            a robots.txt in the slot of one of these       takes the same place as that one would
            the target of a redirect of a robots.txt       takes a place of extra requests, otherwise one of pages
        """
        has_place = len(self._visits) - len(self._extra_visits) < self._concurrency
        extras = self._ready_extras
        if extras and (self.has_place_for_extra or (has_place and extras[0].kind == "robots")):
            return extras
        return self._ready if self._ready and has_place else None

    @property
    def next_due(self) -> float | None:
        """The monotonic time at which `due` must be called."""
        return self._due[0][0] if self._due else None

    def leases_and_hosts_before_requests(self) -> tuple[list[int], list[str]]:
        """The leases of pages, and the hosts of the client's own requests, that were not requested yet: they are in
        line, or their visits may still prepare the request."""
        pages = [*self._in_line(), *(self._visits if self._preparation.lead_time else ())]
        leases = {page.lease_id for page in pages if not is_request(page)}
        return list(leases), list({page.host for page in pages if is_request(page)})

    def leases_ending_by(self, moment: float) -> dict[int, float]:
        """The leases that end before `moment`: for each id the monotonic time of its end."""
        return {lease_id: lease.until for lease_id, lease in self._leases.items() if lease.until < moment}

    # ---- a page comes, and waits for its slot

    def received(self, pages: list[Page]) -> None:
        """The pages of one answer of next_pages. Call start_waiting when their robots.txt were looked up."""
        lease = self._leases[pages[0].lease_id] = Lease(self._clock.to_monotonic(pages[0].lease_until))
        for page in pages:
            lease.pages[page.page_id] = page
            self._enter(page, WAITING)
        self.counts["handed_out"] += len(pages)

    def start_waiting(self, pages: list[Page], now: float) -> None:
        for page in pages:
            if self.is_closed:
                self.end(page)
            elif not is_request(page) and self._access_to(page.url) is Access.DENIED:
                self._deny(page)
            else:
                self._wait_for_slot(page, now)

    def add(self, request: Page, now: float) -> None:
        """A request of the client, with a slot of its own."""
        self._enter(request, WAITING)
        self.counts["robots"] += request.kind == "robots"
        self.start_waiting([request], now)

    def due(self, now: float) -> None:
        """Pages whose slot is near become READY."""
        while self._due and self._due[0][0] <= now:
            _, _, page = heapq.heappop(self._due)
            if self.state(page) is WAITING:
                self._make_ready(page)

    def next(self, now: float) -> Page | None:
        """The page or robots.txt to request now. Gives back pages that are too late, ends pages that robots.txt
        denies."""
        while line := self._line_with_a_place():
            takes_extra_place = line is self._ready_extras and self.has_place_for_extra
            page = line.popleft()
            if self.state(page) is not READY:
                continue  # it was given back
            first, last = self._window(page, now)
            if now < first - self._preparation.lead_time:  # the clock or the lead time has changed
                self._move(page, WAITING)
                self._wait_for_slot(page, now)
            elif now > last:
                self.end(page, outcome="missed")
            elif now > last - self._preparation.least_time:
                self.end(page, outcome="unready")
            else:
                access = Access.ALLOWED if page.kind == "robots" else self._access_to(page.url)
                if access is Access.DENIED:
                    self._deny(page)
                elif access is Access.ALLOWED:
                    return self._run(page, now, takes_extra_place)
                elif robots := self._robots_requests.get(site_of(page.url)):
                    self._move(page, BEHIND_ROBOTS)
                    robots.waiting.append(page)
                else:
                    return self._run(self._ask_robots(page), now, takes_extra_place)
        return None

    def _wait_for_slot(self, page: Page, now: float) -> None:
        first, _ = self._window(page, now)
        heapq.heappush(self._due, (first - self._preparation.lead_time, next(self._tickets), page))

    def _make_ready(self, page: Page) -> None:
        self._move(page, READY)
        if page.kind == "robots":  # the target of a redirect: it may also take the place of a page
            self._ready_extras.appendleft(page)
        else:
            (self._ready_extras if page.kind == "extra" else self._ready).append(page)

    # ---- robots.txt

    def _ask_robots(self, page: Page) -> Page:
        self._move(page, RUNNING)
        self._robots_requests[site_of(page.url)] = RobotsRequest(page, [])
        request = robots_request(page)
        self._enter(request, READY)
        self.counts["robots"] += 1
        return request

    def robots_came(self, request: Page, failed: Result | None = None) -> None:
        """The request for a robots.txt has ended, or it was not made. `request`: the first request for it. Redirects
        may have led to another site, but the rules belong to the site of `request`.

        The pages that wait for the rules become ready. If the rules are still unknown, the next page asks again.

        The page that gave its slot to the request is released, so it gets another slot later. `failed`: the rules
        cannot be known. Then the page is reported with this result instead. If it is an extra request, it is dropped.
        """
        robots = self._robots_requests.pop(site_of(request.url))
        for page in robots.waiting:
            if self.state(page) is BEHIND_ROBOTS:
                self._make_ready(page)
        page = robots.slot_of
        if self.try_settle(page, slot_used=True):
            if failed and not is_request(page):
                page.began = request.began
            self.end_settled(page, ROBOTS_FAILED if failed and is_request(page) else failed)

    def _deny(self, page: Page) -> None:
        self.counts["denied"] += self.end(page, {"robots_denied": True})

    # ---- a visit, from its begin to its end

    def _run(self, page: Page, now: float, takes_extra_place: bool) -> Page:
        self._move(page, RUNNING)
        self._visits.add(page)
        if takes_extra_place:
            self._extra_visits.add(page)
        page.began = now
        if not self._preparation.lead_time:
            self._lag_of[page] = now - self._clock.to_monotonic(page.fetch_at)
            self.lag.append(self._lag_of[page])
        self.counts["requests"] += 1
        return page

    def spawned(self, page: Page) -> None:
        """The visit of the page is a task. So its place becomes free when the task has ended."""
        self._spawned.add(page)

    def give_back_if_late(self, page: Page, now: float, outcome: str) -> None:
        """Gives a running page back, if its slot has passed before its request began."""
        if now > self._window(page, now)[1]:
            self._give_back_yielded(page, outcome)

    def prepared(self, page: Page, now: float) -> None:
        """A visit is ready for its request. If visits need more time than before, pages come earlier from now on."""
        self._take_back_lag(page)
        before = self._preparation.lead_time
        self._preparation.took(now - page.began)
        if self._preparation.lead_time > before:
            waiting, self._due = self._due, []
            for _, _, page in waiting:
                self._wait_for_slot(page, now)

    def try_begin(self, page: Page, now: float) -> float:
        """How many seconds its request must wait for its slot. At 0 it may begin, if the page was not given back."""
        first, _ = self._window(page, now)
        if page in self._blocked:
            self._give_back_yielded(page, "blocked")
        elif now < first:
            return first - now
        else:
            self.give_back_if_late(page, now, "unready")
        if not page.is_settled:
            page.began = now
            self.lag.append(now - self._clock.to_monotonic(page.fetch_at))
        return 0.0

    def _give_back_yielded(self, page: Page, outcome: str) -> None:
        """Gives back a page that was yielded, and whose request did not begin."""
        self._take_back_lag(page)
        self.counts["requests"] -= self.end(page, outcome=outcome)

    def _take_back_lag(self, page: Page) -> None:
        """Removes the number of a page whose request did not start when it was yielded."""
        with suppress(KeyError, ValueError):  # it has no number, or a thousand others have followed
            self.lag.remove(self._lag_of.pop(page))

    def end(self, page: Page, result: Result | None = None, outcome: str = "released", slot_used: bool = False) -> bool:
        """Settles a page and ends it. Returns False if it was settled before."""
        if is_first := self.try_settle(page, slot_used):
            self.end_settled(page, result, outcome=outcome)
        return is_first

    def try_settle(self, page: Page, slot_used: bool = False) -> bool:
        """Whether the caller ends the page: True for the first caller, from any thread."""
        with self._settling:
            if page.is_settled:
                return False
            page.is_settled, page.slot_used = True, slot_used
            return True

    def end_settled(
        self, page: Page, result: Result | None = None, body: bytes | str | None = None, outcome: str = "released"
    ) -> None:
        """Ends a page that the caller has settled, with a result to report. Without a result the page is given back,
        with this outcome."""
        self._move_to_end(page, OVER if is_request(page) else UNSENT, result, body)
        if is_request(page):
            return
        if result is not None:
            self.counts["declined"] += "declined" in result
            self.results.append((page, result))
        else:
            self.releases[page.lease_id, page.slot_used].append(page)
            self._leave_lease(page, outcome)

    def visit_over(self, page: Page) -> None:
        """The task of the page's visit has ended. If the visit did not settle the page, the page is given back, as one
        that may have been requested."""
        self._spawned.discard(page)
        self.end(page, slot_used=True)
        self._free(page)

    def abandon(self) -> None:
        """Call it after the visits were cancelled. Gives back the pages that were yielded and not settled."""
        for page in list(self._visits):
            self.visit_over(page)

    # ---- pages are given back, or lost

    def give_back(self, outcome: str, hosts: Collection[str] = (), pages: Collection[tuple[int, int]] = ()) -> None:
        """Gives back the pages in line of these hosts, or with these leases and page_ids. If a visit still prepares the
        request of a blocked page, its begins() will return False."""

        def stops(page: Page) -> bool:
            return page.host in hosts or (page.lease_id, page.page_id) in pages

        if outcome == "blocked":
            self._blocked |= set(filter(stops, self._visits))
        self._give_all_back(filter(stops, self._in_line()), outcome)

    def drop_late(self, now: float) -> None:
        """Gives back pages whose slot has passed while no visit was free, or while their robots.txt did not come."""
        late = [p for p in self._in_line() if self.state(p) is not WAITING and now > self._window(p, now)[1]]
        self._give_all_back(late, "missed")

    def close(self) -> None:
        """No page is yielded any more. Visits go on."""
        self.is_closed = True
        self._give_all_back(self._in_line(), "released")

    def extended(self, lease_id: int, until: datetime | None) -> None:
        """The lease has a new end. None: it has ended, and other crawlers may have its pages. Pages that are settled
        are still reported or released. The others are lost, and their visits are cancelled."""
        if not (lease := self._leases.get(lease_id)):
            return
        if until is not None:
            lease.until = self._clock.to_monotonic(until)
            return
        lease.until = math.inf  # it is not extended again
        for page in list(lease.pages.values()):
            if self.lose(page):
                self.to_do.append(CancelVisit(page))

    def lose(self, page: Page) -> bool:
        """Ends a page, and tells the database nothing: the lease has ended, or will end by itself. Returns False if the
        page was settled before."""
        if is_first := self.try_settle(page):
            self._move_to_end(page, OVER)
            if not is_request(page):
                self._leave_lease(page, "expired")
        return is_first

    # ---- the database learns what became of pages

    def batch(self, most: int) -> list[Result]:
        """The first results, as report takes them."""
        return [self._element(page, result) for page, result in islice(self.results, most)]

    def reported(self, answers: list[Reported]) -> None:
        """The answers to the first results."""
        blocked = set()
        for answer in answers:
            page, _ = self.results.popleft()
            self._move(page, OVER)
            self._leave_lease(page, answer.code, answer.detail)
            if answer.is_blocked:
                blocked.add(page.host)
        if blocked:
            self.give_back("blocked", blocked)

    def released(self, lease_id: int, slot_used: bool, number: int) -> None:
        """The database has taken back the first pages of this part of `releases`."""
        pages = self.releases[lease_id, slot_used]
        for page in pages[:number]:
            self._move(page, OVER)
        del pages[:number]
        if not pages:
            del self.releases[lease_id, slot_used]

    def _element(self, page: Page, result: Result) -> Result:
        ids: Result = {"page_id": page.page_id, "lease_id": page.lease_id}
        if page.began:
            ids["fetched_at"] = self._clock.to_datetime(page.began).isoformat()
        return ids | result

    # ---- the parts of all transitions
    #
    # end ──┬─▶ try_settle
    #       └─▶ end_settled ──┬─▶ _move_to_end ──▶ _move, _free    the page has ended
    #                         └─▶ _leave_lease                     if nothing will be reported

    def _window(self, page: Page, now: float) -> tuple[float, float]:
        return self._clock.window(page.fetch_at, page.start_by, now)

    def _in_line(self) -> list[Page]:
        return [page for page, state in self._states.items() if state in IN_LINE]

    def _enter(self, page: Page, state: PageState) -> None:
        self._states[page] = state
        self._number_in[state] += 1

    def _move(self, page: Page, to: PageState) -> None:
        """Every change of a state is here."""
        state = self.state(page)
        if to not in AFTER.get(state, ()):
            raise RuntimeError(f"{page!r} cannot go from {state.name} to {to.name}")
        self._number_in[state] -= 1
        if to is OVER:
            del self._states[page]
        else:
            self._enter(page, to)

    def _give_all_back(self, pages: Iterable[Page], outcome: str) -> None:
        for page in pages:
            self.end(page, outcome=outcome)

    def _move_to_end(
        self, page: Page, to: PageState, result: Result | None = None, body: bytes | str | None = None
    ) -> None:
        self._move(page, to)
        self._free(page)
        if page.kind != "page":
            self.to_do.append(Answered(page, result, body))

    def _free(self, page: Page) -> None:
        """Frees the place of a page that has ended, unless the task of its visit still runs."""
        self._blocked.discard(page)
        self._lag_of.pop(page, None)
        if page in self._visits and page not in self._spawned:
            self._visits.discard(page)
            self._extra_visits.discard(page)
            self.visits_ended += 1

    def _leave_lease(self, page: Page, outcome: str, detail: str | None = None) -> None:
        lease = self._leases[page.lease_id]
        del lease.pages[page.page_id]
        if not lease.pages:
            del self._leases[page.lease_id]
        self.counts[outcome] += 1
        self.to_do.append(TellOutcome(page, outcome, detail))
