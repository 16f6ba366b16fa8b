"""The function that judges a result, called with literals."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Row

NOW = datetime(2030, 1, 2, 12, tzinfo=UTC)
SLOT = NOW - MINUTE
DUE = SLOT - HOUR
HELD_DUE = NOW + DAY
# A page that is fetched once a day, fetched a day ago.
PAGE: Row = {
    "page_id": 7, "host_id": 3, "state": "live", "value": 1, "due_at": DUE, "frequency": 1, "last_lease": 40,
    "fetched_at": NOW - DAY, "reported_at": NOW - DAY, "last_status": 200, "successes": 4, "changes": 2, "attempts": 0,
    "seen_changes": 0, "seen_days": 0, "content_hash": "old", "etag": '"old"',
}  # fmt: skip
LEASE: Row = {
    "round": 1, "handed_out_at": NOW - 2 * MINUTE, "slot": SLOT, "start_by": SLOT + SECOND, "due": DUE,
    "held_due": HELD_DUE,
}  # fmt: skip
RESULT: Row = {"ord": 1, "page_id": 7, "lease_id": 50, "status": 200, "content_hash": "old", "etag": '"old"'}
JUDGE = """
    select to_jsonb(j)
    from recrawl_internal.judge(
        %(t)s, jsonb_populate_record(null::recrawl_internal.result, %(result)s),
        jsonb_populate_record(null::recrawl_internal.page, %(page)s),
        jsonb_populate_record(null::recrawl_internal.lease_place, %(lease)s), null, %(moved_to)s, %(turn)s,
        (select (s, h, 60)::recrawl_internal.judging_rules
         from recrawl_internal.setting s, recrawl_internal.host_terms h where h.host_id = 0)
    ) j
"""


class Judge:
    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.connection = connection

    def __call__(
        self, result: Row, page: Row | None = PAGE, lease: Row | None = LEASE, moved_to: int | None = None,
        turn: str = "first",
    ) -> Row:  # fmt: skip
        values = {"result": RESULT | result, "page": page, "lease": lease}
        arguments: Row = {name: json.dumps(value, default=str) for name, value in values.items() if value is not None}
        arguments = {"page": None, "lease": None} | arguments | {"t": NOW, "moved_to": moved_to, "turn": turn}
        (row,) = self.connection.execute(JUDGE, arguments).fetchall()
        judgement: Row = row["to_jsonb"]
        return judgement


@pytest.fixture
def judge(catalogue: psycopg.Connection[Any]) -> Judge:
    catalogue.execute("set timezone = 'UTC'")
    return Judge(catalogue)


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_page_that_came_is_due_on_its_grid_and_enters_the_inbox_only_if_that_is_news(judge: Judge) -> None:
    found = judge({})
    assert found["answer"]["code"] == "ok"
    assert time(found["page_after"]["due_at"]) == DUE + DAY == time(found["answer"]["next_fetch_at"])
    assert time(found["move"].pop("old_due")) == HELD_DUE
    assert found["move"] == {"host_id": 3, "page_id": 7, "old_rank": None, "failed": False}
    assert judge({}, lease=LEASE | {"held_due": DUE + DAY})["move"] is None


def test_without_a_lease_only_a_stated_due_time_moves_a_page(judge: Judge) -> None:
    without: Row = {"lease_id": None, "extras": {"meta": {"a": 1}}}
    found = judge(without, lease=None)
    assert (time(found["page_after"]["due_at"]), found["move"], found["meta"]) == (DUE, None, {"a": 1})
    found = judge(without | {"extras": {"due": NOW + DAY}}, lease=None)
    assert time(found["page_after"]["due_at"]) - (NOW + DAY) < SECOND / 1000
    assert (found["page_after"]["due_is"], time(found["move"]["old_due"])) == ("set", DUE)


@pytest.mark.parametrize(("content_hash", "changes", "letter"), [("old", 2, "u"), ("new", 3, "c")])
def test_a_fetch_is_compared_with_the_one_before(judge: Judge, content_hash: str, changes: int, letter: str) -> None:
    found = judge({"content_hash": content_hash, "etag": None})
    after = found["fetches_after"]
    assert (after["successes"], after["changes"], after["content_hash"]) == (5, changes, content_hash)
    assert time(after["fetched_at"]) == SLOT
    assert after["etag"] == ('"old"' if content_hash == "old" else None), "the same version has the same etag"
    assert found["pulse"]["letters"] == letter


def test_the_evidence_is_that_of_the_fetch_and_fades(judge: Judge) -> None:
    """Nothing changed for about a day: the days are added, and old evidence keeps exp(-1/100) of itself."""
    days = (DAY - MINUTE) / DAY
    after = judge({}, PAGE | {"seen_changes": 3, "seen_days": 10})["fetches_after"]
    kept = 2.718281828459045 ** (-days / 100)
    assert after["seen_changes"] == pytest.approx(3 * kept, rel=1e-6)
    assert after["seen_days"] == pytest.approx(10 * kept + days, rel=1e-6)


@pytest.mark.parametrize(("attempts", "wait"), [(0, MINUTE), (1, DAY / 4), (3, DAY)])
def test_a_failure_waits_and_teaches_nothing(judge: Judge, attempts: int, wait: timedelta) -> None:
    found = judge({"status": 500}, PAGE | {"attempts": attempts})
    assert 0.9 * wait <= time(found["page_after"]["due_at"]) - NOW <= 1.1 * wait
    assert (found["page_after"]["attempts"], found["page_after"]["last_status"]) == (attempts + 1, 500)
    assert (found["move"]["failed"], found["is_observed"]) == (True, False)
    assert (found["fetches_after"]["successes"], found["fetches_after"]["content_hash"]) == (4, "old")
    assert found["pulse"]["letters"] == ("E" if attempts else "e")


@pytest.mark.parametrize(("days", "skipped"), [(0.5, None), (1.5, 1), (2.5, 2)])
def test_whole_intervals_that_passed_before_the_slot_were_skipped(
    judge: Judge, days: float, skipped: int | None
) -> None:
    assert judge({}, lease=LEASE | {"due": SLOT - days * DAY})["pulse"]["skipped"] == skipped


def test_a_throttled_request_says_what_its_host_asked_for(judge: Judge) -> None:
    found = judge({"status": 429, "extras": {"retry_after": "120"}})
    update = found["host_update"]
    assert (update["host_id"], update["throttled"], update["status"]) == (3, True, 429)
    assert update["retry_after"] == "00:02:00"
    assert time(found["page_after"]["due_at"]) >= NOW + 2 * MINUTE


def test_a_host_is_told_nothing_of_an_ordinary_result(judge: Judge) -> None:
    assert judge({"fetched_at": SLOT})["host_update"] is None


def test_a_late_request_and_the_end_of_a_wait_are_for_the_host(judge: Judge) -> None:
    update = judge({"fetched_at": SLOT + MINUTE}, lease=LEASE | {"is_busy": True})["host_update"]
    assert (time(update["late_start"]), update["freed_by"], update["throttled"]) == (NOW, 50, False)


def test_a_page_that_is_gone_leaves_the_queue(judge: Judge) -> None:
    found = judge({"status": 410})
    assert found["page_after"]["state"] == "gone"
    assert time(found["move"]["old_due"]) == HELD_DUE
    assert found["answer"]["next_fetch_at"] is None


@pytest.mark.parametrize(("moved_to", "state"), [(9, "moved"), (None, "live"), (7, "live")])
def test_a_permanent_redirect_needs_a_target(judge: Judge, moved_to: int | None, state: str) -> None:
    after = judge({"status": 301}, moved_to=moved_to)["page_after"]
    assert (after["state"], after["moved_to"]) == (state, 9 if state == "moved" else None)


def test_a_declined_page_keeps_its_last_request(judge: Judge) -> None:
    found = judge({"status": None, "extras": {"declined": True}})
    assert (found["page_after"]["last_status"], found["page_after"]["due_is"]) == (200, "declined")
    assert time(found["page_after"]["reported_at"]) == NOW - DAY
    assert time(found["page_after"]["due_at"]).year == 9999
    assert found["answer"]["next_fetch_at"] is None


@pytest.mark.parametrize(
    ("result", "page", "lease", "turn", "code", "is_observed"),
    [
        ({}, PAGE, LEASE, "first", "ok", True),
        ({}, PAGE, None, "first", "stale_lease", True),
        ({}, PAGE, None, "outranked", "stale_lease", False),
        ({"lease_id": 61}, PAGE, None, "first", "stale_lease", False),  # it was never given out
        ({"lease_id": 39}, PAGE, None, "first", "stale_lease", False),  # a newer report came first
        ({"lease_id": 60}, PAGE, None, "first", "stale_lease", True),  # it is the newest
        ({"fetched_at": NOW - DAY}, PAGE, None, "first", "stale_lease", False),  # no fetch after the last one
        ({"lease_id": 40}, PAGE, LEASE, "first", "duplicate", False),
        ({}, PAGE, LEASE, "repeated", "duplicate", False),
        ({"lease_id": None}, PAGE, None, "first", "ok", True),
        ({"lease_id": None}, PAGE, None, "outranked", "duplicate", False),
        ({"lease_id": None, "fetched_at": NOW - 2 * DAY}, PAGE, None, "first", "duplicate", False),
        ({"lease_id": None, "fetched_at": NOW - DAY}, PAGE, None, "first", "duplicate", False),
        ({}, None, None, "first", "unknown_page", False),
        ({"problem": "no"}, PAGE, LEASE, "first", "invalid", False),
    ],
)  # fmt: skip
def test_which_results_count(
    judge: Judge, result: Row, page: Row | None, lease: Row | None, turn: str, code: str, is_observed: bool
) -> None:
    found = judge(result, page, lease, turn=turn)
    assert (found["answer"]["code"], bool(found["is_observed"])) == (code, is_observed)
    assert (found["page_after"] is not None) == (code == "ok" or is_observed)
    assert (found["move"] is not None) == (code == "ok" and lease is not None)


def test_judging_reads_no_table(catalogue: psycopg.Connection[Any]) -> None:
    readers = r"""
        with recursive called (id) as (
            select %s::regproc::oid
            union
            select d.refobjid from called join pg_depend d on d.objid = called.id
            where d.classid = 'pg_proc'::regclass and d.refclassid = 'pg_proc'::regclass
        )
        select p.proname as name
        from called join pg_proc p on p.oid = called.id
        where coalesce(p.prosqlbody::text ~ ':rtekind 0 ', p.prosrc ~ '\mfrom\M')  -- 0 = a table or a view
    """
    assert catalogue.execute(readers, ["recrawl_internal.judge"]).fetchall() == []
    assert {"name": "judged_results"} in catalogue.execute(readers, ["recrawl_internal.judged_results"]).fetchall()
