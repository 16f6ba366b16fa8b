"""Random crawls, explained: the answers of explain_page are compared with the model, and with the pages that
next_pages then hands out. These calls are rolled back.

RECRAWL_EXAMPLES says how many crawls, RECRAWL_STEPS how long each is.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import rule, run_state_machine_as_test

from helpers import Crawl, Row
from sql.test_explain import EXAMPLES
from sql.test_properties import Crawling, any_number

DEAD = {"excluded", "kept_out", "gone", "moved"}
WAITS = {
    "declined", "done", "denied", "unreported", "missing", "given_up", "backing_off", "set_due", "brought_forward",
    "not_due",
}  # fmt: skip
UNTIL = WAITS | {"host_blocked", "host_busy"}  # `until` is exact if nothing else happens before
# Nothing that next_pages could do without looking ahead brings such a page.
NOT_NOW = UNTIL | DEAD | {"paused", "leased", "host_gap", "new_place", "new_gap"}
TINY = timedelta(microseconds=1)


class Explained(Crawling):
    @contextmanager
    def taken_back(self) -> Iterator[None]:
        """Horizons and counts live in sequences, which no transaction takes back."""
        names = [
            row["name"]
            for row in self.crawl.rows(
                "select c.oid::regclass::text as name from pg_class c "
                "where c.relkind = 'S' and c.relnamespace = 'recrawl_internal'::regnamespace"
            )
        ]
        kept = self.crawl.row("select " + ", ".join(f"(select array[last_value, is_called::int] from {n}) as {n}"
                                                    for n in names))  # fmt: skip
        now = self.crawl.now
        try:
            with self.crawl.connection.transaction(force_rollback=True):
                yield
        finally:
            self.crawl.now = now
            self.crawl.row(
                "select " + ", ".join(f"setval('{name}', {value}, {bool(called)})"
                                      for name, (value, called) in kept.items())
            )  # fmt: skip

    def explained(self, page_id: int) -> list[Row]:
        return self.crawl.rows("select * from explain_page_at(%s, %s::bigint)", self.crawl.now, page_id)

    def now(self, page_id: int) -> Row:
        (row,) = [row for row in self.explained(page_id) if row["topic"] == "now"]
        return row

    def handed_out_at(self, t: datetime) -> dict[int, str]:
        """By page, its host."""
        with self.taken_back():
            self.crawl.now = t
            return {row["page_id"]: row["host"] for row in self.crawl.next(1000)}

    @rule(which=any_number)
    def explain(self, which: int) -> None:
        crawl, model, t = self.crawl, self.model, self.crawl.now
        self.notice()
        unsure = self.unsure()
        said: dict[int, Row] = {}
        for page_id, page in model.pages.items():
            rows = self.explained(page_id)
            assert {("now" if row["topic"] == "also" else row["topic"], row["code"]) for row in rows} <= set(EXAMPLES)
            assert [row["topic"] for row in rows][:2] == ["page", "now"]
            said[page_id] = row = rows[1]
            reasons = {row["code"] for row in rows if row["topic"] in ("now", "also")}
            host = model.hosts[page.host]
            assert (row["code"] if row["code"] in DEAD else "live") == page.state
            runs = any(hold.page is page and hold.until > t for hold in model.holds.values())
            assert ("leased" in reasons) == runs, (row, page)
            if page.state == "live" and not runs:
                assert ("host_blocked" in reasons) == (host.blocked_until > t)
                assert ("host_busy" in reasons) == (host.busy_until > t)
                if all(hold.is_newest and hold.held_due > t for hold in model.holds.values() if hold.page is page):
                    assert ("lease_expired" in reasons) == model.is_out(page)
                if page.host not in unsure and not model.is_out(page):
                    assert bool(WAITS & reasons) == (page.due is not None and page.due > t), (row, page)
                    assert any(code.startswith("new_") for code in reasons) <= (page.due is None)
                waits = crawl.value("select count(*) from inbox where page_id = %s", page_id)
                assert ("inbox" in reasons) <= (waits > 0), (row, page)

        handed = self.handed_out_at(t)
        gave = set(handed.values())
        for page_id, row in said.items():
            host_name = model.pages[page_id].host
            if row["code"] in NOT_NOW and (host_name not in unsure or row["code"] in ("leased", "host_blocked")):
                assert page_id not in handed, row
            if row["code"] in ("crawlers", "new_crawlers") and host_name not in unsure:
                assert host_name in gave, row
                same_kind = {
                    i for i in handed
                    if handed[i] == host_name and (model.pages[i].due is None) == (row["code"] == "new_crawlers")
                }  # fmt: skip
                twins = [page.due for page in model.pages.values() if page.host == host_name and page.due]
                if twins.count(model.pages[page_id].due or t) < 2:  # which of these comes first nobody knows
                    assert (page_id in handed) == (row["detail"]["pages_before"] == 0) or not same_kind, row

        # One of those that it says until when: not before, and from then on for another reason.
        later = [page_id for page_id, row in said.items() if row["code"] in UNTIL and row["detail"]["until"]]
        if later:
            page_id = later[which % len(later)]
            until = datetime.fromisoformat(said[page_id]["detail"]["until"])
            assert until > t
            if model.pages[page_id].host not in unsure:
                assert page_id not in self.handed_out_at(until - TINY), said[page_id]
            crawl.now = until
            assert self.now(page_id)["code"] != said[page_id]["code"], said[page_id]
            crawl.now = t


@pytest.mark.properties
def test_whatever_happens_the_explanation_is_what_then_comes(crawl: Crawl) -> None:
    crawl.connection.execute("set synchronous_commit = off")
    examples, steps = (int(os.environ.get(f"RECRAWL_{name}", n)) for name, n in (("EXAMPLES", 15), ("STEPS", 40)))

    class ThisCrawl(Explained):
        def __init__(self) -> None:
            super().__init__()
            self.crawl = crawl
            crawl.connection.execute("select setseed(0.5)")  # for the back-offs
            crawl.connection.execute("select setval('latest_tick', 1, false)")

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
