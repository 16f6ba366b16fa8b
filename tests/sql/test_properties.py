"""Random crawls compared with the plain model of DELAYED: it holds for any calls of people and crawlers in any order.

RECRAWL_EXAMPLES is the number of crawls (the default is a short run), RECRAWL_STEPS the length of each.
"""

import math
import os
from collections import Counter
from datetime import datetime, timedelta
from typing import LiteralString

import hypothesis.strategies as st
import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row
from sql.model import BROKEN, NEVER, SHORTEST_INTERVAL, TINY, Model, Page, value_class

HOSTS = ("a.test", "b.test", "c.test")
URLS = [f"http://{host}/{path}" for host in HOSTS for path in range(1, 7)]
CROWD = [f"{name}.test" for name in "defghijklm"]  # more hosts, so that there is a choice
RATES = [0.0, 1.0, 7.3, 24.0, 1440.0, 86400.0]
GAPS = [SECOND / 50, SECOND, 10 * SECOND, 5 * MINUTE]
# The results that a crawler may report, and their meanings.
OUTCOMES: list[tuple[Row, str]] = [
    ({"status": 200, "changed": True}, "fetched"),
    ({"status": 200, "changed": False}, "fetched"),
    ({"status": 200, "links": URLS[1:9]}, "fetched"),
    ({"status": 200, "crawl_delay": 7}, "fetched"),
    ({"status": 304}, "fetched"),
    ({"status": 404}, "missing"),
    ({"status": 410}, "gone"),
    ({"status": 429}, "throttled"),
    ({"status": 429, "retry_after": "5"}, "throttled"),
    ({"status": 503, "retry_after": "100000"}, "throttled"),
    ({"status": 500}, "failed"),
    ({"status": -1}, "failed"),
    ({"status": 301, "redirect_to": URLS[0]}, "moved"),
    ({"robots_denied": True}, "denied"),
    ({"status": 200, "due": "2030-01-02T00:00:00+00:00"}, "fetched"),
    ({"status": 500, "due": "2030-03-01T00:00:00+00:00"}, "failed"),
    ({"status": 404, "due": "infinity"}, "missing"),
    ({"declined": True}, "declined"),
]
RESET: LiteralString = """
    delete from host; delete from host_name; delete from page; delete from queue; delete from new_page;
    delete from inbox; delete from lease; delete from link; delete from link_later; delete from exclusion;
    delete from setting; delete from pulling_in; delete from moved_back;
    insert into setting default values; insert into pulling_in default values;
    select setval(s::regclass, 1, s = 'next_tick')
    from unnest(array['host_horizon', 'inbox_horizon', 'lease_horizon', 'horizon_recheck', 'next_tick', 'latest_tick',
                      'page_id', 'lease_id', 'host_id', 'new_classes']) as s;
    select setval(new_horizon(class), 1, false) from generate_series(0, 32) as class;
    select setseed(0.5);
"""
any_number = st.integers(0, 10**6)
moments = st.sampled_from([timedelta(microseconds=1), SECOND / 50, SECOND, 2.5 * SECOND])
whiles = st.sampled_from([11 * SECOND, MINUTE, 11 * MINUTE, HOUR, DAY, 40 * DAY])
waits = st.sampled_from([timedelta(0), timedelta(0), SECOND, 10 * SECOND, HOUR])
aheads = st.sampled_from([timedelta(0), timedelta(0), SECOND, 10 * SECOND, MINUTE])
leases = st.sampled_from([SECOND, 10 * SECOND, 10 * MINUTE, DAY])
some_urls = st.lists(st.sampled_from(URLS), min_size=1, max_size=8)


class Crawling(RuleBasedStateMachine):
    """One crawl by several crawlers and an operator, at a time that jumps; `model` is told the same."""

    crawl: Crawl
    model: Model

    @initialize(urls=st.lists(st.sampled_from(URLS), min_size=1, max_size=12))
    def start(self, urls: list[str]) -> None:
        self.crawl.connection.execute(RESET)
        self.crawl.now = datetime.fromisoformat("2030-01-01T00:00:00Z")
        self.model = Model()
        self.out: list[Row] = []  # the pages that were handed out recently
        self.moved_to: dict[str, str] = {}  # by URL, of the pages that moved
        self.moved_back: set[str] = set()  # URLs of pages that moved, and may come back
        self.ready: dict[str, tuple[datetime, int | None, datetime]] = {}
        self.max_ahead = MINUTE
        self.discovery = 0.5
        self.set_breadth(0.0)
        self.add(urls, None, None, None)

    # ------------------------------------------------------------------------------------- time and upkeep

    @rule(duration=moments)
    def a_moment_passes(self, duration: timedelta) -> None:
        self.crawl.wait(duration)

    @rule(duration=whiles)
    def a_while_passes(self, duration: timedelta) -> None:
        self.crawl.wait(duration)

    @rule(leases=st.integers(1, 3), entries=st.integers(1, 5))
    def upkeep_by_a_little(self, leases: int, entries: int) -> None:
        self.crawl.value("select tick_at(%s, %s, %s)", self.crawl.now, leases, entries)

    @rule()
    def upkeep(self) -> None:
        told = self.told()
        self.crawl.value("select drain_up_to(%s, 10000) + bring_back(%s, 10000)", self.crawl.now, self.crawl.now)
        self.crawl.tick()
        self.notice()
        assert self.crawl.value("select count(*) from moved_back") == 0
        self.model.note(self.crawl.now, told)
        assert self.crawl.value("select count(*) from inbox") == 0
        assert not any(hold.until <= self.crawl.now for hold in self.model.holds.values())
        placed = self.crawl.rows("select page_id, due_at from queue union all select page_id, null from new_page")
        due = {row["page_id"]: row["due_at"] for row in placed}
        for page in self.model.pages.values():
            if page.state == "live" and not self.model.is_out(page):
                where = due[page.page_id]
                assert where == page.due or abs(where - page.due) <= TINY, f"{page} is queued at {where}"

    # --------------------------------------------------------------------------------------------- crawlers

    @rule(
        urls=some_urls,
        value=st.sampled_from([None, 0.0, 0.5, 7.0]),
        rate=st.sampled_from([None, *RATES]),
        due=st.sampled_from([None, -HOUR, timedelta(0), MINUTE, 3 * DAY]),
    )
    def add(self, urls: list[str], value: float | None, rate: float | None, due: timedelta | None) -> None:
        when = None if due is None else self.crawl.now + due
        rows = self.crawl.add(*urls, value=[value], rate=[rate], due=[when])
        new = {row["page_id"] for row in rows if row["code"] == "new"}
        for row in rows:
            assert (row["code"] == "excluded") == self.keeps_out(row["url"])
            page = self.model.pages.get(row["page_id"])
            if when and page and page.state == "live" and page.due and page.due.year == 9999:
                page.due = self.due_near(page.page_id, when)  # it is wanted again
        self.meet(dict.fromkeys(urls, 1 if value is None else value), when, rate, new)

    def keeps_out(self, url: str) -> bool:
        page = next((page for page in self.model.pages.values() if page.url == url), None)
        return page.state in ("excluded", "kept_out") if page else self.model.is_excluded(url)

    def meet(
        self, values: dict[str, float], due: datetime | None, rate: float | None, new: set[int] | None = None
    ) -> None:
        """Adds pages. New ones must be exactly the URLs that are not in the crawl yet and not excluded."""
        unknown = set(values) - {page.url for page in self.model.pages.values()}
        expected = {url for url in unknown if not self.model.is_excluded(url)}
        rows = self.crawl.rows("select page_id, url from page where page_id <> all (%s)", list(self.model.pages))
        assert {row["url"] for row in rows} == expected
        assert new is None or {row["page_id"] for row in rows} == new
        for row in rows:
            host = row["url"].split("/")[2]
            exact = due and self.due_near(row["page_id"], due)
            self.model.added(Page(row["page_id"], row["url"], host, exact, rate, values[row["url"]]))

    def due_near(self, page_id: int, due: datetime) -> datetime:
        """The due time of one of several pages that were given the same: a microsecond apart, none is late."""
        exact: datetime = self.crawl.value("select due_at from page where page_id = %s", page_id)
        assert due - timedelta(milliseconds=1) < exact <= due  # fewer than a thousand of them
        return exact

    @rule(wait=waits, n=st.integers(1, 12), ahead=aheads, lease=leases, per_host=st.sampled_from([None, None, 1, 3]))
    def pop(self, wait: timedelta, n: int, ahead: timedelta, lease: timedelta, per_host: int | None) -> None:
        self.crawl.wait(wait)
        self.hand_out(n, ahead, lease, per_host)

    @rule(wait=st.sampled_from([MINUTE, HOUR, 30 * DAY]), n=st.integers(1, 12), lease=leases)
    def pop_without_upkeep(self, wait: timedelta, n: int, lease: timedelta) -> None:
        """In a transaction that has written, a call takes back no leases: it meets those that ended long ago."""
        self.crawl.wait(wait)
        told = self.told()
        self.crawl.value("select drain_up_to(%s, 10000)", self.crawl.now)
        self.model.note(self.crawl.now, told)
        with self.crawl.connection.transaction():
            self.crawl.connection.execute("select pg_current_xact_id()")
            self.hand_out(n, timedelta(0), lease, None)

    def hand_out(self, n: int, ahead: timedelta, lease: timedelta, per_host: int | None) -> list[Row]:
        crawl, model, ahead = self.crawl, self.model, min(ahead, self.max_ahead)
        waits = {row["page_id"] for row in crawl.rows("select page_id from inbox")}
        unsure = self.unsure()
        model.note(crawl.now, self.told())
        last = {row["name"] for row in crawl.rows("select name from host where new_class = 32")}
        # The share `breadth` of the calls begins with another class than the best.
        goes_round = crawl.value(
            "select (ask_of(%s, %s, %s, null, '0', null, s)).first_class > 0 from setting s", crawl.now, ahead, lease
        )
        rows = crawl.next(n, ahead, lease, per_host)
        self.judge_choice(rows, last, unsure, goes_round)
        self.notice(rows)
        lease_rows = crawl.rows(
            "select i.* from lease l, unnest(l.page_ids, l.dues, l.held_dues) as i (page_id, due, held) "
            "where l.lease_id = any (%s)",
            [row["lease_id"] for row in rows],
        )
        served = {row["page_id"]: row["due"] for row in lease_rows}
        assert len(rows) == len(served) <= n
        for row in rows:
            assert row["attempt"] == model.pages[row["page_id"]].attempts + 1
            assert row["lease_until"] == crawl.now + ahead + lease
            model.handed_out(row, served[row["page_id"]], crawl.now, ahead, row["page_id"] in waits)
            hold = model.holds[row["lease_id"], row["page_id"]]
            (held,) = [found["held"] for found in lease_rows if found["page_id"] == row["page_id"]]
            assert abs(held - hold.held_due) <= TINY
            hold.held_due = held
        for name, host in model.hosts.items():
            of_host = [row for row in rows if row["host"] == name]
            assert len(of_host) <= (1 if ahead == timedelta(0) or host.one_at_a_time else per_host or n)
            if of_host and host.one_at_a_time:
                host.busy_lease, host.busy_until = of_host[0]["lease_id"], of_host[0]["lease_until"]
        if len(rows) < n:
            for name in {row["host"] for row in rows} - unsure:
                host = model.hosts[name]
                until = crawl.now + ahead
                if per_host:
                    step = model.gap(name) + model.window(name)
                    until = min(until, crawl.now + per_host * step - timedelta(microseconds=1))
                assert host.one_at_a_time or not model.could_give(name, crawl.now, until), f"{name} has more"
        self.out = [*self.out[-20:], *rows]
        return rows

    def told(self) -> dict[str, datetime | None]:
        """The hosts of pages that are on their way to the queue, or come back to it, with the first due time."""
        coming = self.crawl.rows(
            "select h.name, min(p.due_at) as due from inbox join page p using (page_id)"
            " join host h on h.host_id = p.host_id group by h.name"
        )
        back = {hold.page.host: hold.due for hold in self.model.holds.values() if hold.until <= self.crawl.now}
        return back | {row["name"]: row["due"] for row in coming}

    def unsure(self) -> set[str]:
        """Hosts for which the queue lacks some news, or still has pages that are not live."""
        dead = self.crawl.rows(
            "with place as (select host_id, page_id from queue union all select host_id, page_id from new_page) "
            "select h.name from place join page p using (page_id) join host h on h.host_id = place.host_id "
            "where p.state <> 'live'"
        )
        return self.told().keys() | {row["name"] for row in dead}

    def judge_choice(self, rows: list[Row], last: set[str], unsure: set[str], goes_round: bool) -> None:
        pages = [self.model.pages[row["page_id"]] for row in rows]
        new: dict[str, int] = {}
        for page in pages:
            if page.due is None:
                new[page.host] = max(new.get(page.host, 0), value_class(page.value))
        revisited = {page.host for page in pages if page.due is not None}
        best_first = self.model.chosen(new, revisited, self.crawl.now, last, unsure)
        assert best_first or goes_round, "a better class waited"

    @rule(
        values=st.lists(st.sampled_from([0.0, 0.3, 1.0, 1.5, 2.0, 1000.0]), min_size=len(CROWD), max_size=len(CROWD)),
        rate=st.sampled_from([None, 86400.0]),
        due=st.sampled_from([None, None, -HOUR, timedelta(0)]),
    )
    def a_crowd_comes(self, values: list[float], rate: float | None, due: timedelta | None) -> None:
        """A page on each host, so that a call must choose."""
        pages = Counter(page.host for page in self.model.pages.values())
        urls = [f"http://{host}/{pages[host]}" for host in CROWD]
        when = None if due is None else self.crawl.now + due
        if len(self.model.pages) < 100:
            rows = self.crawl.add(*urls, value=values, rate=[rate], due=[when])
            new = {row["page_id"] for row in rows if row["code"] == "new"}
            self.meet(dict(zip(urls, values, strict=True)), when, rate, new)

    @rule(n=st.integers(1, 4), times=st.integers(2, 12))
    def pop_in_a_row(self, n: int, times: int) -> None:
        """While more hosts than a call wants have either kind, new pages have their share, however many n are."""
        model = self.model
        new = calls = 0
        for _ in range(times):
            self.crawl.wait(2 * max(model.gap(host) for host in model.hosts))
            self.upkeep()
            t = self.crawl.now
            free = [host for host in model.hosts.keys() - self.unsure() if model.is_ready(host, t)]
            with_new = [host for host in free if model.best_class(host, t) is not None and model.is_sure(host, t)]
            with_due = [host for host in free if model.first_due(host, t) and model.is_sure(host, t)]
            if min(len(with_new), len(with_due)) < n:
                break
            are_new = {page.page_id for page in model.pages.values() if page.due is None}
            rows = self.hand_out(n, timedelta(0), HOUR, None)
            assert len(rows) == n
            got = sum(row["page_id"] in are_new for row in rows)
            assert abs(got - n * self.discovery) < 1
            new, calls = new + got, calls + 1
            self.reports(
                [({"page_id": p["page_id"], "lease_id": p["lease_id"], "status": 200}, "fetched") for p in rows]
            )
            self.nothing_is_broken()
        assert abs(new - calls * n * self.discovery) <= 1.5, "new pages had another share"

    @rule(wait=waits, n=st.integers(1, 12), ahead=aheads, lease=leases, per_host=st.sampled_from([None, None, 1, 3]))
    def pop_exactly(self, wait: timedelta, n: int, ahead: timedelta, lease: timedelta, per_host: int | None) -> None:
        """With all upkeep done it is known what comes: from every ready host, the first in order, as soon as it may."""
        self.crawl.wait(wait)
        self.upkeep()
        crawl, model, t = self.crawl, self.model, self.crawl.now
        of_dead = "select p.url from page p join queue using (page_id) where p.state <> 'live'"
        dead = {row["url"].split("/")[2] for row in crawl.rows(of_dead)}
        ready = {host for host in model.hosts if model.is_ready(host, t)}
        before = {host: (h.last_start + model.gap(host)) for host, h in model.hosts.items()}
        queued = [page for page in model.pages.values() if page.state == "live" and not model.is_out(page)]
        dues = {page.page_id: page.due for page in queued}
        rows = self.hand_out(n, ahead, lease, per_host)
        if len(rows) < n:
            assert ready <= {row["host"] for row in rows}, "a ready host gave nothing"
        for host in {row["host"] for row in rows}:
            of_host = [row for row in rows if row["host"] == host]
            free, taken = before[host], {row["page_id"] for row in of_host}
            for row in of_host:
                exact = max(t, free, dues[row["page_id"]] or t)
                assert row["fetch_at"] == exact or (host in dead and row["fetch_at"] > exact), "not as soon as it may"
                free = row["fetch_at"] + model.window(host) + model.gap(host)
            left = [page for page in queued if page.host == host and page.page_id not in taken]
            revisits = [due for page_id in taken if (due := dues[page_id])]
            assert max(revisits, default=NEVER) <= min((page.due for page in left if page.due), default=t + 999 * DAY)
            new = [(-page.value, page.page_id) for page in queued if page.page_id in taken and not dues[page.page_id]]
            late = [(-page.value, page.page_id) for page in left if not page.due]
            assert max(new, default=(-math.inf, 0)) < min(late, default=(math.inf, 0)), (
                "a less valuable new page came first"
            )

    def notice(self, rows: list[Row] | None = None) -> None:
        """Notes the pages that upkeep brought back, or took back from ended leases, also inside of another call."""
        there = {(row["lease_id"], row["page_id"]) for row in self.crawl.rows(
            "select lease_id, unnest(page_ids) as page_id from lease")}  # fmt: skip
        gone = [hold for key, hold in self.model.holds.items() if key not in there]
        moved = [page for page in self.model.pages.values() if page.state == "moved"]
        back = self.crawl.rows(
            "select page_id, due_at from page where state = 'live' and page_id = any (%s)",
            [page.page_id for page in moved],
        )
        for row in back:
            page = self.model.pages[row["page_id"]]
            assert not self.model.is_excluded(page.url)
            self.moved_back.remove(page.url)
            page.state = "live"
            if self.is_due_again(page):
                # A lease that ends gives it another due time, unless it has lost its place in the queue.
                ends_too = any(hold.page is page for hold in gone)
                if not ends_too or abs(row["due_at"] - self.crawl.now) < SECOND / 1000:
                    page.due = self.due_near(page.page_id, self.crawl.now)
        for hold in sorted(gone, key=lambda hold: hold.lease_id):
            row = self.crawl.row("select due_at, attempts from page where page_id = %s", hold.page.page_id)
            self.model.reaped(hold, self.crawl.now, row["due_at"], row["attempts"])

    @staticmethod
    def is_due_again(page: Page) -> bool:
        """Whether a page that is live again is due now: it is neither unwanted nor new."""
        return page.due.year < 9999 if page.due else page.fetched_at is not None

    def from_out(self, which: int) -> Row | None:
        return self.out[which % len(self.out)] if self.out else None

    @rule(
        picks=st.lists(st.tuples(any_number, st.sampled_from(OUTCOMES)), min_size=1, max_size=4),
        late=st.sampled_from([None, None, None, -HOUR, timedelta(0), 3 * SECOND, HOUR]),
        with_lease=st.sampled_from([True, True, True, True, False]),
    )
    def report(self, picks: list[tuple[int, tuple[Row, str]]], late: timedelta | None, with_lease: bool) -> None:
        results: list[tuple[Row, str]] = []
        for which, (found, outcome) in picks if self.out else []:
            page = self.out[-1 - which % len(self.out)]
            result = {"page_id": page["page_id"]} | found
            if with_lease:
                result["lease_id"] = page["lease_id"]
            if late is not None:
                result["fetched_at"] = (page["fetch_at"] + late).isoformat()
            results.append((result, outcome))
        self.reports(results)

    @rule()
    def report_everything(self) -> None:
        self.reports(
            [({"page_id": p["page_id"], "lease_id": p["lease_id"], "status": 200}, "fetched") for p in self.out]
        )
        self.out = []

    def reports(self, results: list[tuple[Row, str]]) -> None:
        crawl, model = self.crawl, self.model
        answers = crawl.report(*(result for result, _ in results))
        found: dict[str, float] = {}  # who links to it first says what it is worth
        for result, _ in results:
            value = model.pages[result["page_id"]].value
            found |= {url: value / 2 for url in result.get("links", ()) if url not in found}
        moved = {result["redirect_to"]: model.pages[result["page_id"]].value
                 for result, _ in reversed(results) if "redirect_to" in result}  # fmt: skip
        self.meet(found | moved, None, None)
        blocked = {row["name"]: row["blocked_until"] for row in crawl.rows("select name, blocked_until from host")}
        targets = dict(enumerate(self.targets([result for result, _ in results]), 1))
        seen: set[tuple[int, int | None]] = set()
        that_may_count = model.that_may_count((result for result, _ in results), crawl.now)
        for (result, outcome), answer in zip(results, answers, strict=True):
            page = model.pages[result["page_id"]]
            if (page.page_id, result.get("lease_id")) in seen:
                assert answer["code"] == "duplicate"
                continue
            seen.add((page.page_id, result.get("lease_id")))
            if outcome == "moved" and targets[answer["ord"]] in (None, page.url):
                outcome = "missing"
            if answer["code"] == "ok" and outcome == "moved":
                self.moved_to[page.url] = str(targets[answer["ord"]])
            if answer["code"] == "ok" and outcome == "missing" and self.state(result.get("redirect_to")) == "moved":
                self.moved_back.add(result["redirect_to"])
            if outcome == "throttled" and answer["code"] != "duplicate":
                assert blocked[page.host] >= crawl.now + 5 * SECOND or model.hosts[page.host].blocked_until > crawl.now
            due = crawl.value("select due_at from page where page_id = %s", page.page_id)
            may_count = that_may_count[page.page_id] == result.get("lease_id", 0)
            model.reported(result, outcome, answer["code"], crawl.now, due, may_count)
            if answer["code"] == "ok" and page.state == "live" and "lease_id" in result:
                assert page.due and abs(due - page.due) <= TINY
                blocked_until = blocked[page.host] or NEVER
                assert answer["blocked_until"] == (blocked_until if blocked_until > crawl.now else None)
                wanted = None if due.year == 9999 else max(due, crawl.now, blocked_until)
                assert answer["next_fetch_at"] == wanted
                page.due = due
        model.hosts_change(crawl.now)

    def state(self, url: str | None) -> str | None:
        return next((page.state for page in self.model.pages.values() if page.url == url), None)

    def targets(self, results: list[Row]) -> list[str | None]:
        """For each result the page that its redirect leads to. It is the page itself if the redirect closes a circle,
        also with other results of the call. None: a dead end."""
        moving: dict[str, str] = {}
        targets: list[str | None] = []
        for result in results:
            source, target = self.model.pages[result["page_id"]].url, result.get("redirect_to")
            while target and target != source and (target in moving or self.state(target) != "live"):
                target = moving.get(target) or (self.moved_to[target] if self.state(target) == "moved" else None)
            if target and target != source:
                moving[source] = target
            targets.append(target)
        return targets

    @rule(which=any_number, everything=st.booleans(), others=st.booleans())
    def release(self, which: int, everything: bool, others: bool) -> None:
        page = self.from_out(which) or {"page_id": -1, "lease_id": -1}
        pages = None if everything else [page["page_id"], *([-1, *self.model.pages] if others else [])]
        released = self.crawl.release(page["lease_id"], pages)
        assert (released or 0) == self.model.released(page["lease_id"], pages, self.crawl.now)

    @rule(which=any_number, by=leases)
    def extend(self, which: int, by: timedelta) -> None:
        lease_id = (self.from_out(which) or {"lease_id": -1})["lease_id"]
        until = self.crawl.extend(lease_id, by)
        assert until == self.model.extended(lease_id, by, self.crawl.now, self.crawl.now + DAY + self.max_ahead)

    # ----------------------------------------------------------------------------------------- the operator

    @rule(urls=some_urls)
    def fetch_now(self, urls: list[str]) -> None:
        pages = [page for page in self.model.pages.values() if page.url in urls]
        live = [page for page in pages if page.state == "live"]
        ids = [page.page_id for page in pages]
        assert self.crawl.value("select fetch_now_at(%s, %s::bigint[])", self.crawl.now, ids) == len(live)
        for page in live:
            page.due = self.due_near(page.page_id, self.crawl.now)

    @rule(urls=some_urls, every=st.sampled_from([None, 5 * MINUTE, HOUR, 6 * HOUR, 4 * DAY]))
    def set_interval(self, urls: list[str], every: timedelta | None) -> None:
        crawl, model = self.crawl, self.model
        pages = [page for page in model.pages.values() if page.url in urls]
        ids = [page.page_id for page in pages]
        rows = """
            select due_at, fetched_at, due_follows_frequency(p) as due_follows_frequency
            from page p join unnest(%s::bigint[]) with ordinality as w (page_id, place) using (page_id) order by place
        """
        before = crawl.rows(rows, ids)
        answers = crawl.rows("select code from set_interval_at(%s, %s::bigint[], %s::interval)", crawl.now, ids, every)
        for page, was, now, answer in zip(pages, before, crawl.rows(rows, ids), answers, strict=True):
            if every is not None and every < model.gap(page.host) + model.window(page.host):
                assert (answer["code"], now) == ("invalid", was)
                continue
            page.pinned = None if every is None else DAY / every
            assert answer["code"] == ("ok" if page.state == "live" else "not_live")
            is_waiting = was["due_at"] is None or was["due_at"].year == 9999
            if page.state == "live" and is_waiting and every is not None:
                assert crawl.now - SECOND / 1000 < now["due_at"] <= crawl.now
            elif page.state == "live" and was["due_follows_frequency"] and was["due_at"] > crawl.now:
                due = was["fetched_at"] + max(timedelta(days=1 / model.per_day(page)), SHORTEST_INTERVAL)
                assert abs(now["due_at"] - due) <= TINY if due > crawl.now else now["due_at"] <= crawl.now + SECOND
            else:
                assert now["due_at"] == was["due_at"]
                continue
            page.due = now["due_at"]

    @rule(url=st.sampled_from(URLS), value=st.sampled_from([0.0, 0.25, 3.0, 50.0]))
    def set_value(self, url: str, value: float) -> None:
        for page in self.model.pages.values():
            if page.url == url:
                self.crawl.value("select set_value(%s, %s)", page.page_id, value)
                page.value = value

    @rule(urls=st.lists(st.sampled_from(URLS), min_size=1, max_size=2))
    def keep_out(self, urls: list[str]) -> None:
        pages = [page for page in self.model.pages.values() if page.url in urls and page.state != "kept_out"]
        assert self.crawl.value("select keep_out(%s::bigint[])", [page.page_id for page in pages]) == len(pages)
        for page in pages:
            page.state = "kept_out"

    @rule(pattern=st.sampled_from(["a.test", "b.test/[1-4]", "/2", "/[2-5]"]))
    def exclude_or_take_it_back(self, pattern: str) -> None:
        model = self.model
        if pattern not in model.patterns:
            self.crawl.value("select exclude(%s)", pattern)
            model.patterns.add(pattern)
            for page in model.pages.values():
                if page.state == "live" and model.is_excluded(page.url):
                    page.state = "excluded"
            return
        self.crawl.value("select unexclude_at(%s, %s)", self.crawl.now, pattern)
        model.patterns.remove(pattern)
        for page in model.pages.values():
            if page.state == "excluded" and not model.is_excluded(page.url):
                page.state = "live"
                if self.is_due_again(page):
                    page.due = self.due_near(page.page_id, self.crawl.now)

    @rule(host=st.sampled_from(HOSTS), gap=st.sampled_from([None, *GAPS]), alone=st.sampled_from([None, True, False]))
    def set_host(self, host: str, gap: timedelta | None, alone: bool | None) -> None:
        reset = ["gap"] if gap is None else []
        self.crawl.value("select set_host_at(%s, %s, %s, null, %s, %s)", self.crawl.now, host, gap, alone, reset)
        h = self.model.hosts.setdefault(host, self.model.new_host())
        h.gap = gap
        h.put = self.crawl.now  # it stands in line anew
        h.patience = timedelta(0)
        h.one_at_a_time = h.one_at_a_time if alone is None else alone
        if not h.one_at_a_time:
            h.busy_lease, h.busy_until = None, NEVER

    @rule(host=st.sampled_from(HOSTS), duration=st.sampled_from([None, SECOND, HOUR, DAY]))
    def block_or_unblock(self, host: str, duration: timedelta | None) -> None:
        if duration is None and host not in self.model.hosts:
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="must be one that is known"):
                self.crawl.value("select unblock_host_at(%s, %s)", self.crawl.now, host)
            return
        h = self.model.hosts.setdefault(host, self.model.new_host())
        h.patience = timedelta(0)
        if duration is None:
            self.crawl.value("select unblock_host_at(%s, %s)", self.crawl.now, host)
            h.blocked_until, h.put = NEVER, self.crawl.now
        else:
            h.blocked_until = self.crawl.now + duration
            self.crawl.value("select block_host_at(%s, %s, %s, null)", self.crawl.now, host, h.blocked_until)

    @rule()
    def pause(self) -> None:
        self.crawl.value("select pause()")
        assert self.crawl.next() == []
        self.crawl.value("select resume()")

    @rule(gap=st.sampled_from(GAPS))
    def set_default_gap(self, gap: timedelta) -> None:
        for name, host in self.model.hosts.items():
            host.patience = max(host.patience, self.model.gap(name))
        self.set("default_gap", gap)
        self.model.default_gap = gap

    @rule(share=st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]))
    def set_discovery(self, share: float) -> None:
        self.set("discovery", share)
        self.discovery = share

    @rule(share=st.sampled_from([0.0, 0.0, 0.1, 1.0]))
    def set_breadth(self, share: float) -> None:
        self.set("breadth", share)

    @rule(most=st.sampled_from([timedelta(0), MINUTE, 10 * MINUTE]))
    def set_max_ahead(self, most: timedelta) -> None:
        self.set("max_ahead", most)
        self.max_ahead = most

    @rule(within=st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    def set_start_within(self, within: float) -> None:
        self.set("window_share", within)
        self.model.window_share = within

    @rule(per_day=st.sampled_from([1.0, 24.0, 86400.0]))
    def set_frequency(self, per_day: float) -> None:
        moved = self.model.follows(per_day, self.crawl.now)
        self.set("frequency", per_day)
        for row in self.crawl.rows("select page_id, due_at, due_is from page where page_id = any (%s)", list(moved)):
            page = self.model.pages[row["page_id"]]
            due = moved[page.page_id] if row["due_is"] is None else page.due  # a crawler said when
            assert due and abs(row["due_at"] - due) <= timedelta(milliseconds=1)
            page.due = row["due_at"]

    def set(self, name: str, value: object) -> None:
        text = f"{value.total_seconds()} s" if isinstance(value, timedelta) else str(value)
        self.crawl.value("select set_setting_at(%s, %s, %s)", self.crawl.now, name, text)

    # ------------------------------------------------------------------------------------ what always holds

    @invariant()
    def nothing_is_broken(self) -> None:
        crawl, model = self.crawl, self.model
        self.notice()
        model.note(crawl.now, self.told())
        broken = crawl.connection.execute(BROKEN, {"t": crawl.now}).fetchall()
        assert broken == []
        gone = {row["page_id"]: row["state"] for row in crawl.rows("select page_id, state::text from page")}
        assert gone == {page.page_id: page.state for page in model.pages.values()}
        ready = self.ready
        self.ready = {}
        for row in crawl.rows(
            "select name, least(ready_at, '9000-01-01') as ready_at, greatest(last_start_by, 'epoch') as last_start, "
            "new_class, least(new_ready_at, '9000-01-01') as new_ready_at, "
            "busy_until, blocked_until, gap_of(host, setting) as gap_now from host, setting"
        ):
            name, host = row["name"], model.hosts[row["name"]]
            self.ready[name] = row["ready_at"], row["new_class"], row["new_ready_at"]
            if name in ready and ready[name][0] != row["ready_at"]:
                assert row["ready_at"] >= crawl.now, "ready_at is written below now"
            if name in ready and row["new_class"] is not None and ready[name][1:] != self.ready[name][1:]:
                assert row["new_ready_at"] >= crawl.now, "new_ready_at is written below now"
            assert row["last_start"] == host.last_start
            assert row["gap_now"] == model.gap(name)
            until = row["blocked_until"] or NEVER
            assert until >= host.blocked_until, "a block is over too early"
            host.blocked_until = until
            if host.busy_until > crawl.now:
                assert row["busy_until"] == host.busy_until

    def teardown(self) -> None:
        """In the end every live page is handed out, and when all are forgotten nothing is left."""
        if not hasattr(self, "model"):
            return
        crawl, model = self.crawl, self.model
        self.set_discovery(0.5)
        for name in list(model.hosts):
            self.block_or_unblock(name, None)
            self.set_host(name, SECOND, False)
        self.nothing_is_broken()
        self.fetch_now([page.url for page in model.pages.values()])  # also what is not wanted any more
        for _ in range(2):  # pages that come back after failures wait once more
            crawl.wait(10_001 * DAY)  # a page that never changes is fetched anyway
            self.upkeep()
            self.nothing_is_broken()
        waiting = {page.page_id for page in model.pages.values() if page.state == "live"}
        for _ in range(5 * len(waiting) + 20):
            rows = self.hand_out(100, timedelta(0), SECOND, None)
            self.reports(
                [({"page_id": p["page_id"], "lease_id": p["lease_id"], "status": 200}, "fetched") for p in rows]
            )
            self.nothing_is_broken()
            waiting -= {row["page_id"] for row in rows}
            if not waiting:
                break
            crawl.wait(SECOND)
        assert not waiting, f"never handed out: {[model.pages[page_id] for page_id in waiting]}"

        crawl.value("select keep_out(%s::bigint[])", list(model.pages))
        for page in model.pages.values():
            page.state = "kept_out"
        for _ in range(10):
            crawl.wait(400 * DAY)
            crawl.tick()
            assert self.hand_out(100, timedelta(0), SECOND, None) == []
        left = "select (select count(*) from queue) + (select count(*) from new_page) + (select count(*) from lease) + "
        assert crawl.value(left + "(select count(*) from inbox) + (select sum(pages) from host)") == 0


@pytest.mark.properties
def test_whatever_happens_the_queue_does_what_the_model_says(crawl: Crawl) -> None:
    crawl.connection.execute("set synchronous_commit = off")
    examples, steps = (int(os.environ.get(f"RECRAWL_{name}", n)) for name, n in (("EXAMPLES", 30), ("STEPS", 40)))
    done = 0

    class ThisCrawl(Crawling):
        def __init__(self) -> None:
            nonlocal done
            super().__init__()
            self.crawl = crawl
            crawl.connection.execute("select setseed(0.5)")  # for the back-offs
            done += 1
            if done % 100 == 0:
                crawl.connection.execute("vacuum")

    run_state_machine_as_test(
        ThisCrawl,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            database=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
