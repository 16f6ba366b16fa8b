"""The life of pages in hand, without a database and without a loop: events in any order, and what they lead to."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from recrawl.client.answers import Result
from recrawl.client.clock import Clock
from recrawl.client.database import Reported
from recrawl.client.in_hand import Answered, InHand, PageState, TellOutcome
from recrawl.client.page import Kind, Page, is_request, request_row
from recrawl.client.preparation import Preparation
from recrawl.client.robots import Access, site_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)  # by the database, when the monotonic clock says 0
CONCURRENCY = 3
HOSTS = ["a.example", "b.example", "c.example"]


class Hands:
    """InHand, and a runner that does everything at once. It notes what became of each page."""

    def __init__(self, preparation: float = 0) -> None:
        self.now = 0.0
        self.ahead = 0.0  # seconds by which the database's clock has stepped
        self.clock = Clock()
        self.step_clock(0)
        self.rules: dict[str, Access] = {}
        self.in_hand = InHand(self.clock, Preparation(preparation, longest=4), CONCURRENCY, self.verdict)
        self.pages: list[Page] = []
        self.outcomes: dict[Page, list[str]] = {}
        self.answers: Counter[Page] = Counter()
        self.reported: Counter[Page] = Counter()
        self.released: Counter[Page] = Counter()
        self.on_their_way: list[tuple[Page, Result | None]] = []  # ended by threads, and not heard of yet
        self.from_thread = False
        self.ids = count(1)

    def verdict(self, url: str) -> Access:
        return self.rules.get(site_of(url), Access.UNKNOWN)

    def step_clock(self, seconds: float) -> None:
        self.ahead += seconds
        self.clock.learn(self.now, self.now, self.time(0))

    def time(self, seconds: float) -> datetime:
        """By the database, that many seconds from now."""
        return NOON + timedelta(seconds=self.now + self.ahead + seconds)

    def page(self, row: Any, kind: Kind) -> Page:
        page = Page(row, "bot", kind, self.end)
        self.pages.append(page)
        self.outcomes[page] = []
        return page

    def lease(
        self, *slots: tuple[str, float], window: float = 0.5, kind: Kind = "page", ends: float = 60
    ) -> list[Page]:
        """Pages of these hosts, whose slots begin after these seconds."""
        lease_id = next(self.ids)
        pages = [
            self.page(
                SimpleNamespace(
                    page_id=next(self.ids), url=f"http://{host}/", host=host, fetch_at=self.time(after),
                    start_by=self.time(after + window), lease_id=lease_id, lease_until=self.time(ends), attempt=1,
                    value=1.0, etag=None, last_modified=None, content_hash=None, meta=None,
                ),
                kind,
            )
            for host, after in slots
        ]  # fmt: skip
        self.in_hand.received(pages)
        return pages

    def start_waiting(self, pages: list[Page]) -> list[Page]:
        self.in_hand.start_waiting(pages, self.now)
        self.catch_up()
        return pages

    def add(self, host: str, after: float, window: float, kind: Kind) -> Page:
        slot = self.time(after), self.time(after + window)
        request = self.page(request_row(f"http://{host}/x", host, slot), kind)
        self.in_hand.add(request, self.now)
        self.catch_up()
        return request

    def end(self, page: Page, result: Result | None, body: object, slot_used: bool) -> bool:
        if not self.in_hand.try_settle(page, slot_used):
            return False
        self.on_their_way.append((page, result))
        if not self.from_thread:
            self.hear()
        return True

    def hear(self) -> None:
        """The ends that pages met in threads."""
        while self.on_their_way:
            self.in_hand.end_settled(*self.on_their_way.pop(0))
            self.catch_up()

    def catch_up(self) -> None:
        while self.in_hand.to_do:
            effect = self.in_hand.to_do.popleft()
            if isinstance(effect, TellOutcome):
                self.outcomes[effect.page].append(effect.code)
            elif isinstance(effect, Answered) and is_request(effect.page):
                self.answers[effect.page] += 1

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.in_hand.due(self.now)

    def next(self) -> Page | None:
        page = self.in_hand.next(self.now)
        self.catch_up()
        if page and page not in self.outcomes:
            self.pages.append(page)
            self.outcomes[page] = []
        return page

    def is_in_window(self, page: Page) -> bool:
        first, last = self.clock.window(page.fetch_at, page.start_by, self.now)
        return first <= self.now <= last

    def report(self, most: int, code: str = "ok", is_blocked: bool = False) -> None:
        results = [page for page, _ in list(self.in_hand.results)[:most]]
        assert [element["page_id"] for element in self.in_hand.batch(most)] == [page.page_id for page in results]
        self.reported.update(results)
        self.in_hand.reported([Reported(code, None, is_blocked) for _ in results])
        self.catch_up()

    def release(self) -> None:
        for (lease_id, slot_used), pages in list(self.in_hand.releases.items()):
            self.released.update(pages)
            self.in_hand.released(lease_id, slot_used, len(pages))

    def state(self, page: Page) -> PageState:
        return self.in_hand.state(page)


# ---- one life after another


def test_a_page_waits_for_its_slot_is_visited_and_reported() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 1)))
    assert hands.next() is None and hands.state(page) is PageState.WAITING
    assert hands.in_hand.next_due == pytest.approx(1, abs=0.01)
    hands.pass_time(1.01)
    assert hands.state(page) is PageState.READY
    assert hands.next() is page and hands.state(page) is PageState.RUNNING
    assert page.report(200) and not page.report(200) and not page.release()
    assert hands.state(page) is PageState.UNSENT and hands.outcomes[page] == []
    hands.report(10)
    assert hands.state(page) is PageState.OVER and hands.outcomes[page] == ["ok"]
    assert not hands.in_hand.has_leases


def test_the_first_page_of_a_site_gives_its_slot_to_robots_txt_and_others_wait_for_it() -> None:
    hands = Hands()
    first, second, third = hands.start_waiting(hands.lease(*[("a.example", 0)] * 3, window=5))
    hands.pass_time(0.1)
    request = hands.next()
    assert request and (request.kind, request.url) == ("robots", "http://a.example/robots.txt")
    assert hands.next() is None, "the others wait"
    assert [hands.state(page) for page in (second, third)] == [PageState.BEHIND_ROBOTS] * 2
    assert request.report(200)
    assert hands.answers[request] == 1 and hands.state(request) is PageState.OVER
    hands.rules["http://a.example"] = Access.ALLOWED
    hands.in_hand.robots_came(request)
    hands.catch_up()
    assert hands.outcomes[first] == ["released"] and first.slot_used
    assert hands.next() is second and hands.next() is third


@pytest.mark.parametrize("taken_by", ["extra", "page"])
def test_the_target_of_a_redirected_robots_txt_takes_any_place(taken_by: Kind) -> None:
    hands = Hands()
    for n in range(CONCURRENCY + 1):
        hands.rules[f"http://{n}.example"] = Access.ALLOWED
        if taken_by == "extra":
            hands.add(f"{n}.example", 0, 5, "extra")
        else:
            hands.start_waiting(hands.lease((f"{n}.example", 0), window=5))
    hands.pass_time(1)
    assert len([page for _ in range(CONCURRENCY + 1) if (page := hands.next())]) == CONCURRENCY
    target = hands.add("www.example", 0, 5, "robots")
    hands.pass_time(1)
    assert hands.next() is target and hands.next() is None


def test_extra_requests_on_new_sites_keep_to_their_places() -> None:
    """The requests for their robots.txt were not counted, so all of them went out at once."""
    hands = Hands()
    for n in range(2 * CONCURRENCY):
        hands.add(f"{n}.example", 0, 5, "extra")
    (page,) = hands.start_waiting(hands.lease(("a.example", 0), window=5))
    hands.pass_time(0.1)
    requests = list(iter(hands.next, None))
    assert [request.kind for request in requests] == ["robots"] * (CONCURRENCY + 1)
    assert hands.state(page) is PageState.RUNNING, "its robots.txt takes one of the other places"
    requests[0].report(200)
    assert hands.next() and hands.next() is None


def test_a_page_that_waits_too_long_for_robots_txt_goes_back_alone() -> None:
    hands = Hands()
    _, short, long = hands.start_waiting(hands.lease(*[("a.example", 0)] * 3))
    long.start_by = hands.time(9)
    hands.pass_time(0.1)
    request = hands.next()
    assert request and hands.next() is None
    hands.pass_time(1)
    hands.in_hand.drop_late(hands.now)
    hands.catch_up()
    assert hands.outcomes[short] == ["missed"] and hands.outcomes[long] == []
    request.report(404)
    hands.rules["http://a.example"] = Access.ALLOWED
    hands.in_hand.robots_came(request)
    hands.catch_up()
    assert hands.next() is long


def test_pages_whose_rules_cannot_be_read_have_failed_when_robots_txt_was_requested() -> None:
    hands = Hands()
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(0.2)
    request = hands.next()
    assert request
    request.report(500)
    hands.in_hand.robots_came(request, {"status": 500})
    hands.catch_up()
    (element,) = hands.in_hand.batch(10)
    assert (element["page_id"], element["status"]) == (page.page_id, 500)
    assert datetime.fromisoformat(element["fetched_at"]) == pytest.approx(hands.time(0), abs=timedelta(seconds=0.01))


def test_a_page_that_its_robots_txt_denies_never_waits() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.DENIED
    (page,) = hands.start_waiting(hands.lease(("a.example", 1)))
    assert hands.in_hand.batch(10) == [{"page_id": page.page_id, "lease_id": page.lease_id, "robots_denied": True}]


def test_the_pages_of_a_lost_lease_are_over_and_what_was_reported_is_still_sent() -> None:
    hands = Hands()
    hands.rules |= {f"http://{host}": Access.ALLOWED for host in HOSTS}
    waiting, running, reported = hands.start_waiting(
        hands.lease(("a.example", 9), ("b.example", 0), ("c.example", 0))
    )  # fmt: skip
    hands.pass_time(0.1)
    assert {hands.next(), hands.next()} == {running, reported}
    reported.report(200)
    hands.in_hand.extended(waiting.lease_id, None)
    hands.catch_up()
    assert [hands.outcomes[page] for page in (waiting, running, reported)] == [["expired"], ["expired"], []]
    assert not running.report(200), "its answer counts no more"
    hands.report(10, "stale_lease")
    assert hands.outcomes[reported] == ["stale_lease"] and not hands.in_hand.has_leases


def test_a_page_that_is_lost_before_it_waits_or_while_its_robots_txt_is_requested_ends_once() -> None:
    hands = Hands()
    (early,) = hands.lease(("b.example", 0))
    hands.in_hand.extended(early.lease_id, None)
    hands.catch_up()
    hands.rules["http://b.example"] = Access.DENIED
    hands.start_waiting([early])
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(0.1)
    request = hands.next()
    assert request
    hands.in_hand.extended(page.lease_id, None)
    hands.catch_up()
    request.report(500)
    hands.in_hand.robots_came(request, {"status": 500})
    hands.catch_up()
    assert hands.outcomes[early] == hands.outcomes[page] == ["expired"] and not hands.in_hand.results


def test_a_page_of_a_blocked_host_is_not_yielded() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(0.1)
    hands.in_hand.give_back("blocked", hosts={"a.example"})
    hands.catch_up()
    assert hands.next() is None and hands.outcomes[page] == ["blocked"]


def test_a_page_that_is_given_back_while_others_are_sent_is_sent_later() -> None:
    hands = Hands()
    first, second = hands.start_waiting(hands.lease(("a.example", 1), ("b.example", 1)))
    for page in (first, second):
        hands.in_hand.give_back("blocked", hosts={page.host})
        hands.catch_up()
    hands.in_hand.released(first.lease_id, False, 1)
    assert [hands.state(page) for page in (first, second)] == [PageState.OVER, PageState.UNSENT]
    hands.release()
    assert hands.state(second) is PageState.OVER


def test_a_visit_has_its_place_until_its_task_ends() -> None:
    hands = Hands()
    hands.rules |= {f"http://{host}": Access.ALLOWED for host in HOSTS}
    hands.start_waiting(hands.lease(*[(host, 0) for host in HOSTS * 2], window=9))
    hands.pass_time(0.2)
    pages = [page for _ in range(6) if (page := hands.next())]
    assert len(pages) == CONCURRENCY
    hands.in_hand.spawned(pages[0])
    pages[0].report(200)
    assert hands.next() is None
    hands.in_hand.visit_over(pages[0])
    hands.catch_up()
    assert hands.next() is not None


def test_each_request_has_one_number_in_lag() -> None:
    """The first visits that call begins had two numbers: until then pages were yielded without a lead time."""
    hands = Hands()
    hands.rules |= {f"http://{host}": Access.ALLOWED for host in HOSTS}
    hands.start_waiting(hands.lease(*[(host, 0) for host in HOSTS], window=5))
    hands.pass_time(1)
    begins, never_calls_begins, too_late = [page for _ in HOSTS if (page := hands.next())]
    hands.pass_time(1)
    hands.in_hand.prepared(begins, hands.now)
    assert hands.in_hand.try_begin(begins, hands.now) == 0 and never_calls_begins.report(200)
    hands.pass_time(5)
    hands.in_hand.prepared(too_late, hands.now)
    assert hands.in_hand.try_begin(too_late, hands.now) == 0 and too_late.is_settled
    assert list(hands.in_hand.lag) == pytest.approx([1, 2])


def test_a_page_for_which_no_visit_was_free_was_missed() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(1)
    assert hands.next() is None and hands.outcomes[page] == ["missed"]


def test_a_page_whose_slot_moved_into_the_future_waits_again() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(0.1)
    hands.step_clock(-3)
    assert hands.next() is None and hands.state(page) is PageState.WAITING
    hands.pass_time(3)
    assert hands.next() is page and hands.is_in_window(page)


def test_a_page_comes_early_for_a_visit_that_needs_time_and_begins_in_its_slot() -> None:
    hands = Hands(preparation=1)
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 2)))
    hands.pass_time(1.1)
    assert hands.next() is page and not hands.is_in_window(page)
    assert hands.in_hand.try_begin(page, hands.now) == pytest.approx(0.9, abs=0.01) and not page.is_settled
    hands.pass_time(2)
    assert hands.in_hand.try_begin(page, hands.now) == 0 and page.is_settled
    assert hands.in_hand.counts["unready"] == 1 and hands.in_hand.counts["requests"] == 0


def test_a_visit_that_prepares_learns_that_its_host_is_blocked() -> None:
    hands = Hands(preparation=1)
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 2)))
    hands.pass_time(1.1)
    assert hands.next() is page and hands.in_hand.leases_and_hosts_before_requests() == ([page.lease_id], [])
    hands.in_hand.give_back("blocked", hosts={"a.example"})
    assert not page.is_settled and hands.in_hand.try_begin(page, hands.now) == 0
    hands.catch_up()
    assert page.is_settled and hands.outcomes[page] == ["blocked"]
    assert hands.in_hand.counts["requests"] == 0


def test_a_page_cannot_go_back() -> None:
    hands = Hands()
    hands.rules["http://a.example"] = Access.ALLOWED
    (page,) = hands.start_waiting(hands.lease(("a.example", 0)))
    hands.pass_time(0.1)
    assert hands.next() is page
    page.report(200)
    hands.report(1)
    with pytest.raises(RuntimeError, match="cannot go from OVER to UNSENT"):
        hands.in_hand.end_settled(page, {"status": 200})


# ---- any sequence of events

SECONDS = st.floats(0, 3)
WINDOWS = st.floats(0.05, 1)
HOST = st.sampled_from(HOSTS)
SLOTS = st.lists(st.tuples(HOST, SECONDS), min_size=1, max_size=4)


class AnyLife(RuleBasedStateMachine):
    """Each page ends once: reported, released or lost. No request begins outside its window, or after the end."""

    def __init__(self) -> None:
        super().__init__()
        self.hands = Hands()
        self.hands.rules["http://a.example"] = Access.ALLOWED
        self.new: list[list[Page]] = []  # answers of next_pages whose robots.txt are being looked up
        self.yielded: list[Page] = []
        self.spawned: set[Page] = set()
        self.first_requests: list[Page] = []  # of robots.txt, whose rules nobody has read yet
        self.needs_time = False

    def pages(self) -> list[Page]:
        return [page for page in self.hands.pages if not is_request(page)]

    # ---- pages come

    @precondition(lambda self: not self.hands.pages)
    @rule()
    def visits_need_time(self) -> None:
        self.hands, self.needs_time = Hands(preparation=0.5), True
        self.hands.rules["http://a.example"] = Access.ALLOWED

    @rule(slots=SLOTS, window=WINDOWS, is_sitemap=st.booleans(), at_once=st.booleans())
    def come(self, slots: list[tuple[str, float]], window: float, is_sitemap: bool, at_once: bool) -> None:
        self.new.append(self.hands.lease(*slots, window=window, kind="sitemap" if is_sitemap else "page"))
        if at_once:
            self.start_waiting()

    @precondition(lambda self: self.new)
    @rule()
    def start_waiting(self) -> None:
        self.hands.start_waiting(self.new.pop())

    @rule(host=HOST, after=SECONDS, window=WINDOWS, kind=st.sampled_from(["extra", "robots"]))
    def add(self, host: str, after: float, window: float, kind: Kind) -> None:
        self.hands.add(host, after, window, kind)

    @rule(host=HOST, access=st.sampled_from(list(Access)))
    def rules_change(self, host: str, access: Access) -> None:
        self.hands.rules[f"http://{host}"] = access

    @rule(seconds=st.floats(0.01, 1))
    def time_passes(self, seconds: float) -> None:
        self.hands.pass_time(seconds)

    @rule(seconds=st.floats(-1, 1))
    def clock_steps(self, seconds: float) -> None:
        self.hands.step_clock(seconds)

    # ---- visits

    @rule()
    def ask_for_a_page(self) -> None:
        for _ in range(CONCURRENCY):
            is_closed = self.hands.in_hand.is_closed
            if not (page := self.hands.next()):
                break
            assert not is_closed and not page.is_settled and page not in self.yielded
            _, last = self.hands.clock.window(page.fetch_at, page.start_by, self.hands.now)
            assert self.hands.is_in_window(page) or (self.needs_time and self.hands.now < last)
            self.yielded.append(page)
            is_first = page.kind == "robots" and page.url.endswith("/robots.txt")
            self.first_requests += [page] if is_first else []

    @precondition(lambda self: self.yielded)
    @rule(data=st.data())
    def spawn(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.yielded))
        if page not in self.spawned and not page.is_settled:
            self.spawned.add(page)
            self.hands.in_hand.spawned(page)
            self.hands.in_hand.give_back_if_late(page, self.hands.now, "missed")
            self.hands.catch_up()
            _, last = self.hands.clock.window(page.fetch_at, page.start_by, self.hands.now)
            assert page.is_settled or self.hands.now <= last

    @precondition(lambda self: self.yielded)
    @rule(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.yielded))
        if not page.is_settled:
            self.needs_time = True
            self.hands.in_hand.prepared(page, self.hands.now)
            wait = self.hands.in_hand.try_begin(page, self.hands.now)
            self.hands.catch_up()
            assert page.is_settled or wait > 0 or self.hands.is_in_window(page)

    @precondition(lambda self: self.yielded)
    @rule(data=st.data(), how=st.sampled_from(["report", "release", "slot_used", "decline"]), thread=st.booleans())
    def end(self, data: st.DataObject, how: str, thread: bool) -> None:
        page = data.draw(st.sampled_from(self.yielded))
        was_settled, self.hands.from_thread = page.is_settled, thread
        ends = {"report": lambda: page.report(200), "decline": page.decline}
        ended = ends[how]() if how in ends else page.release(slot_used=how == "slot_used")
        assert ended is not was_settled

    @rule()
    def threads_are_heard(self) -> None:
        self.hands.hear()

    @precondition(lambda self: self.spawned)
    @rule(data=st.data())
    def task_ends(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(sorted(self.spawned, key=self.hands.pages.index)))
        self.spawned.discard(page)
        self.hands.in_hand.visit_over(page)
        self.hands.catch_up()

    @precondition(lambda self: any(page.is_settled for page in self.first_requests))
    @rule(fails=st.booleans())
    def robots_come(self, fails: bool) -> None:
        first = next(page for page in self.first_requests if page.is_settled)
        self.first_requests.remove(first)
        self.hands.in_hand.robots_came(first, {"status": 500} if fails else None)
        self.hands.catch_up()

    # ---- pages go back

    @rule(host=HOST)
    def a_host_is_blocked(self, host: str) -> None:
        self.hands.in_hand.give_back("blocked", hosts={host})
        self.hands.catch_up()
        assert not any(
            self.hands.state(page) in (PageState.READY, PageState.BEHIND_ROBOTS) and page.host == host
            for page in self.hands.pages
        )

    @precondition(lambda self: self.pages())
    @rule(data=st.data())
    def a_page_is_blocked(self, data: st.DataObject) -> None:
        page = data.draw(st.sampled_from(self.pages()))
        self.hands.in_hand.give_back("blocked", pages={(page.lease_id, page.page_id)})
        self.hands.catch_up()

    @rule()
    def late_pages_are_dropped(self) -> None:
        self.hands.in_hand.drop_late(self.hands.now)
        self.hands.catch_up()

    @precondition(lambda self: self.pages())
    @rule(data=st.data(), is_lost=st.booleans())
    def extend(self, data: st.DataObject, is_lost: bool) -> None:
        page = data.draw(st.sampled_from(self.pages()))
        until = None if is_lost else self.hands.time(60)
        self.hands.in_hand.extended(page.lease_id, until)
        self.hands.catch_up()

    @rule(most=st.integers(1, 3), is_blocked=st.booleans())
    def results_are_sent(self, most: int, is_blocked: bool) -> None:
        self.hands.report(most, is_blocked=is_blocked)

    @rule()
    def releases_are_sent(self) -> None:
        self.hands.release()

    @precondition(lambda self: len(self.hands.pages) > 5)
    @rule()
    def close(self) -> None:
        self.hands.in_hand.close()
        self.hands.catch_up()

    # ---- what always holds

    @invariant()
    def no_page_ends_twice(self) -> None:
        for page in self.hands.pages:
            assert len(self.hands.outcomes[page]) <= 1 and self.hands.answers[page] <= 1
            assert self.hands.reported[page] + self.hands.released[page] <= 1
            assert page.is_settled or self.hands.state(page) not in (PageState.UNSENT, PageState.OVER)

    @invariant()
    def there_are_no_more_visits_than_places(self) -> None:
        """Extra requests have as many places of their own. A robots.txt takes a place of the one kind or the other."""
        running = {page for page in self.yielded if self.hands.state(page) is PageState.RUNNING} | set(self.spawned)
        extras = sum(page.kind == "extra" for page in running)
        robots = sum(page.kind == "robots" for page in running)
        assert len(running) <= 2 * CONCURRENCY
        assert extras <= CONCURRENCY and len(running) - extras - robots <= CONCURRENCY

    def teardown(self) -> None:
        """The client ends."""
        hands, in_hand = self.hands, self.hands.in_hand
        if not in_hand.is_closed:
            in_hand.close()
            hands.catch_up()
        while self.new:
            self.start_waiting()
        hands.hear()
        in_hand.abandon()
        hands.catch_up()
        for first in self.first_requests:
            in_hand.robots_came(first)
            hands.catch_up()
        hands.report(10_000)
        hands.release()
        assert not in_hand.has_leases and in_hand.unsent == in_hand.pages_and_visits == 0
        for page in hands.pages:
            assert hands.state(page) is PageState.OVER and page.is_settled
            if is_request(page):
                assert hands.answers[page] == 1 and hands.outcomes[page] == []
            else:
                (outcome,) = hands.outcomes[page]
                assert hands.reported[page] == (outcome == "ok")
                assert hands.released[page] == (outcome not in ("ok", "expired"))


AnyLife.TestCase.settings = settings(max_examples=200, stateful_step_count=60)
test_any_sequence_of_events_ends_each_page_once = AnyLife.TestCase
