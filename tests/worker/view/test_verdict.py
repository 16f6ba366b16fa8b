"""The verdict on a crawl in each state, from made-up figures: every code, every screen, no contradiction."""

import itertools
import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest

from recrawl.jobs.registry import JOBS
from recrawl.view import figures, screens
from recrawl.view.facts import Checkup, Facts, ServerFacts, Slot, Table, Transaction
from recrawl.view.figures import (
    CappedHost,
    Figures,
    HasEver,
    LastAllocation,
    LastRun,
    LateHost,
    Minute,
    Now,
    Schedule,
    Total,
)
from recrawl.view.rules import RULES, allocation_outdated, job_failing
from recrawl.view.verdict import checks, verdict
from worker.view import alerts

GOLDEN = Path(__file__).parents[2] / "golden"
NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


def minutes(*, every: bool = False, **last: float | timedelta | None) -> tuple[Minute, ...]:
    """The last hour, whose last minute is as given. Or `every` minute."""
    usual = {
        "fetches": 330, "changed": 78, "unchanged": 204, "first": 36, "failed": 9, "throttled": 3,
        "due": 7718, "due_gap": 5244, "due_blocked": 2402, "due_crawler": 72, "new_waiting": 180176, "leased": 3600,
        "pages": 1210571, "hosts": 20412, "hosts_ready": 41, "hosts_blocked": 203, "hosts_capped": 214,
        "ready_wait": 0.8 * SECOND, "calls": 30, "fresh": 0.72, "fresh_error": 0.004, "covered": 0.85,
        "expected": 0.734, "limit_with_gaps": 0.739, "limit_without_gaps": 0.812, "budget": 500000,
    }  # fmt: skip
    usual |= last if every else {}
    rows = [Minute(NOON - place * MINUTE, **usual) for place in range(60, 1, -1)]  # type: ignore[arg-type]
    rows = [replace(row, fetches=300 + 40 * (row.at.minute % 7)) for row in rows]
    return (*rows, Minute(NOON - MINUTE, **usual | last))  # type: ignore[arg-type]


WORKING = Figures(
    now=Now(
        as_of=NOON,
        last_report_at=NOON - 2 * SECOND,
        fetches_per_second=5.5,
        ready_wait=0.8 * SECOND,
        hosts_ready=41,
        due=7718,
        new_waiting=180176,
        is_estimate=True,
        leased=3600,
        leases=36,
        oldest_lease_at=NOON - 4 * MINUTE,
        next_ready_at=NOON,
        upkeep_at=NOON,
        worker_is_running=True,
        vitals_at=NOON - MINUTE,
    ),
    reported_at=NOON - 2 * SECOND,
    workers=1,
    minutes=minutes(),
    hour=Total(NOON - HOUR, fetches=19314, changed=4700, unchanged=12100, first=1900, failed=500, throttled=114),
    day=Total(
        NOON - DAY, fetches=463541, changed=111000, unchanged=290000, change_unknown=900, first=47000, failed=12000,
        throttled=3541, late_1m=361900, late_10m=43200, late_1h=5600, late_6h=2700, late_1d=1010, late_more=391,
        skipped=1204, handed_out=470000, expired=2100, calls=40000, stale=400, duplicate=12,
        budget_minutes=1440, budget_fetches=463541, mean_budget=500000,
    ),
    allocation=LastAllocation(
        NOON - 40 * MINUTE, "freshness", 500000, 441300, 30000, 28700, 1030395, 214, 0.734, 0.739, 0.812
    ),
    runs=(
        LastRun("allocate", NOON - 40 * MINUTE, 31, True, "freshness 0.734 (at most 0.739)", NOON - 40 * MINUTE, 0),
        LastRun("opic", NOON - 3 * HOUR, 212, True, "1,210,571 pages, 9,310,022 links", NOON - 3 * HOUR, 0),
        LastRun("rates", NOON - 3 * HOUR, 12, True, "1,030,395 pages on 20,412 hosts", NOON - 3 * HOUR, 0),
    ),
    schedule=(
        Schedule("allocate", HOUR, NOON + 20 * MINUTE), Schedule("opic", 6 * HOUR, NOON + 3 * HOUR),
        Schedule("rates", 6 * HOUR, NOON + 3 * HOUR),
    ),
    late_hosts=(
        LateHost("news.harbour-post.example", 5100, 41 * MINUTE, "gap", 2 * SECOND),
        LateHost(
            "www.gazette-nord.example", 1310, 16 * HOUR, "block", SECOND, NOON + 37 * MINUTE, "it answered 429"
        ),
        LateHost("img.portal-8.example", 12, 2 * MINUTE, "crawler", SECOND),
    ),
    capped_hosts=(CappedHost("news.harbour-post.example", 48210, 2 * SECOND, 51900, 43200, 0.006),),
    settings={"budget": "500000", "objective": "freshness", "frequency": "1"},
)  # fmt: skip

SMALL = Figures(
    now=Now(
        as_of=NOON, last_report_at=NOON - 40 * SECOND, fetches_per_second=0.02, next_ready_at=NOON + 20 * MINUTE,
        upkeep_at=NOON, worker_is_running=True, vitals_at=NOON - MINUTE,
    ),
    reported_at=NOON - 40 * SECOND,
    workers=1,
    minutes=(Minute(NOON - MINUTE, fetches=1, unchanged=1, due=0, pages=12, hosts=3, fresh=0.91, covered=1),),
    hour=Total(NOON - 30 * MINUTE, fetches=14, first=12, unchanged=2, late_1m=2),
    day=Total(NOON - 30 * MINUTE, fetches=14, first=12, unchanged=2, late_1m=2, handed_out=14),
    settings={"budget": None, "objective": "freshness", "frequency": "1"},
)  # fmt: skip


def now(figures: Figures, **changes: object) -> Figures:
    return replace(figures, now=replace(figures.now, **changes))  # type: ignore[arg-type]


STILL = replace(
    now(
        WORKING, last_report_at=NOON - 12 * MINUTE, fetches_per_second=0.0, ready_wait=12 * MINUTE + 4 * SECOND,
        hosts_ready=1000, leased=0, leases=0, oldest_lease_at=None,
    ),
    reported_at=NOON - 12 * MINUTE,
    minutes=tuple(replace(row, calls=0) for row in minutes()),
)  # fmt: skip
STATES = {
    "database": Figures(Now(NOON), database="none"),
    "empty": Figures(Now(NOON, worker_is_running=True), ever=HasEver(False, False), workers=1),
    "paused": now(WORKING, paused=True, ready_wait=HOUR, leased=12),
    "inbox_stuck": now(WORKING, inbox_wait=8 * MINUTE, longest_transaction=9 * MINUTE),
    "worker_silent": now(WORKING, worker_is_running=False, upkeep_at=NOON - 90 * SECOND),
    "never_fetched": replace(
        now(SMALL, last_report_at=None, fetches_per_second=0, new_waiting=12),
        reported_at=None, ever=HasEver(True, False), minutes=(), hour=Total(), day=Total(),
    ),
    "standing_still": STILL,
    "fetches_fail": replace(WORKING, hour=replace(WORKING.hour, failed=9000, throttled=1200)),
    "crawlers_slow": now(WORKING, ready_wait=3 * MINUTE, hosts_ready=812),
    "no_worker": replace(now(WORKING, worker_is_running=False), workers=0),
    "transaction_open": now(WORKING, longest_transaction=95 * MINUTE),
    "job_failing": replace(
        WORKING,
        runs=(
            LastRun("allocate", NOON - 5 * MINUTE, 3, False, "out of memory", NOON - 5 * HOUR, 4), *WORKING.runs[1:]
        ),
    ),
    "job_late": replace(
        WORKING, schedule=(Schedule("allocate", HOUR, NOON - 12 * MINUTE), *WORKING.schedule[1:])
    ),
    "hosts_blocked": replace(WORKING, minutes=minutes(hosts_blocked=4100.0, due_blocked=90210.0)),
    "slots_missed": replace(WORKING, hour=replace(WORKING.hour, handed_out=24000, missed=3000)),
    "nothing_due": SMALL,
    "no_allocation": now(SMALL, due=3),
    "budget_unused": replace(
        WORKING, allocation=replace(WORKING.allocation, for_revisits=270000, unused=200000)  # type: ignore[type-var]
    ),
    "budget_sets_pace": replace(
        WORKING, allocation=replace(WORKING.allocation, for_revisits=470000, unused=0)  # type: ignore[type-var]
    ),
    "gaps_set_pace": WORKING,
}  # fmt: skip


SERVER_ONLY = {"clocks_differ", "dead_rows", "replica_behind", "crawler_is_superuser"}
ADDS_A_FIX = {"gap_too_short"}  # to another verdict
CODES = [rule.code for rule in RULES if rule.find and rule.in_status and rule.code not in SERVER_ONLY | ADDS_A_FIX]
ALONE = {rule.code for rule in RULES if rule.is_alone}


@pytest.mark.parametrize("code", CODES)
def test_every_state_has_its_code_and_its_screen(code: str) -> None:
    figures = STATES[code]
    said = verdict(figures)
    assert said.code == code
    assert_golden("status", code, screens.status(figures, said))


def test_the_states_are_those_that_can_be_said_and_no_other() -> None:
    assert list(STATES) == CODES


@pytest.mark.parametrize(("database", "says"), [("older", "recrawl migrate"), ("newer", "pip install")])
def test_a_database_of_another_version_has_its_own_fix(database: str, says: str) -> None:
    said = verdict(Figures(Now(NOON), database=database))
    assert said.code == "database" and database in said.headline and says in said.fixes[0].do


@pytest.mark.parametrize("code", CODES)
def test_a_screen_is_of_80_columns_and_at_most_three_fixes(code: str) -> None:
    said = verdict(STATES[code])
    assert len(said.fixes) <= 3
    assert len({fix.topic for fix in said.fixes}) == len(said.fixes)
    lines = screens.status(STATES[code], said)
    assert [line for line in lines if len(line) > 80] == []
    assert len(lines) <= 26


def test_a_verdict_fits_whatever_else_holds() -> None:
    """Troubles come together: of each two, one is said, and nothing that contradicts it."""
    changes = {
        code: {name: getattr(state, name) for name in vars(state) if getattr(state, name) != getattr(WORKING, name)}
        for code, state in STATES.items()
        if code not in ("empty", "never_fetched", "nothing_due", "no_allocation", *ALONE - {"paused"})
    }
    order = {code: place for place, code in enumerate(CODES)}
    for first, second in itertools.combinations(changes, 2):
        both = replace(WORKING, **changes[second] | changes[first])
        said = verdict(both)
        assert order[said.code] <= max(order[first], order[second])
        if said.level == "trouble":
            assert "keeps up" not in said.headline and "works" not in said.headline
        if said.code == "paused":
            assert [fix.topic for fix in said.fixes] == ["paused"]


@pytest.mark.parametrize("code", ["empty", "never_fetched", "nothing_due", "no_allocation", "gaps_set_pace"])
def test_a_healthy_crawl_is_not_alarmed(code: str) -> None:
    assert verdict(STATES[code]).level == "ok"


def test_a_new_crawl_without_a_network_is_told_so_after_its_second_fetch() -> None:
    def after(fetches: int, failed: int) -> Figures:
        total = Total(NOON - 2 * MINUTE, fetches=fetches, failed=failed, handed_out=fetches)
        return replace(SMALL, hour=total, day=total)

    assert verdict(after(1, 1)).level == verdict(after(3, 2)).level == "ok"
    said = verdict(after(2, 2))
    assert (said.code, said.level) == ("fetches_fail", "trouble")
    assert said.detail.startswith("Of 2 fetches: 2 had no answer or an error. Does the network of the crawlers work?")


def test_a_small_crawl_that_waits_for_its_next_due_page_does_not_stand_still() -> None:
    figures = replace(
        now(SMALL, last_report_at=None, ready_wait=None, next_ready_at=NOON + 5 * HOUR), reported_at=NOON - 9 * HOUR
    )
    assert verdict(figures).code == "nothing_due"
    just_due = now(figures, due=1, hosts_ready=1, ready_wait=20 * SECOND)
    assert verdict(just_due).level == "ok"
    assert verdict(now(just_due, ready_wait=6 * MINUTE)).code == "standing_still"


def test_a_crawl_is_not_said_to_work_while_nobody_reports_and_free_hosts_wait() -> None:
    said = verdict(replace(now(WORKING, ready_wait=3 * MINUTE), reported_at=NOON - 8 * MINUTE))
    assert (said.code, said.headline) == ("crawlers_slow", "The crawlers are too slow, or away.")


def test_pages_that_were_taken_and_never_reported_are_no_crawl_that_works() -> None:
    taken = replace(STATES["never_fetched"], ever=replace(WORKING.ever, has_handed_out=True))
    assert verdict(now(taken, ready_wait=10 * SECOND)).code == "never_fetched"
    assert verdict(now(taken, ready_wait=6 * MINUTE)).code == "standing_still"
    assert verdict(now(STATES["never_fetched"], ready_wait=6 * MINUTE)).code == "never_fetched", "none was taken"
    assert verdict(now(STATES["never_fetched"], due=3)).detail == "15 pages wait for a crawler."


def test_crawlers_that_report_nothing_are_told_from_crawlers_that_are_away() -> None:
    def says(*, last_call: timedelta) -> str:
        rows = (replace(row, calls=int(row.at == NOON - last_call)) for row in STILL.minutes)
        return verdict(replace(STILL, minutes=tuple(rows))).detail

    assert "Crawlers call next_pages and report nothing" in says(last_call=4 * MINUTE)
    assert "No crawler calls next_pages" in says(last_call=5 * MINUTE)
    assert "Crawlers call next_pages and report nothing" in verdict(now(STILL, leased=1)).detail


def test_a_verdict_has_the_fixes_of_its_first_three_troubles_and_of_nothing_else() -> None:
    two = replace(now(WORKING, worker_is_running=False, longest_transaction=HOUR), workers=0)
    assert [fix.topic for fix in verdict(two).fixes] == ["worker", "transaction"]
    many = replace(now(two, ready_wait=3 * MINUTE), hour=STATES["fetches_fail"].hour)
    assert [fix.topic for fix in verdict(many).fixes] == ["failures", "crawlers", "worker"]


def test_one_number_tells_crawlers_from_gaps() -> None:
    assert verdict(now(WORKING, ready_wait=59 * SECOND)).code == "gaps_set_pace"
    assert verdict(now(WORKING, ready_wait=61 * SECOND)).code == "crawlers_slow"
    assert verdict(now(WORKING, ready_wait=None, hosts_ready=0)).code == "gaps_set_pace"


@pytest.mark.parametrize(
    ("hosts", "says"),
    [(1, "One host is ready, and has"), (2, "2 hosts are ready, and the first"), (1000, "At least 1,000 hosts")],
)
def test_ready_hosts_are_counted_up_to_a_thousand(hosts: int, says: str) -> None:
    assert says in verdict(now(WORKING, ready_wait=3 * MINUTE, hosts_ready=hosts)).detail


@pytest.mark.parametrize(
    ("unused", "code"),
    [(0, "budget_sets_pace"), (5000, "budget_sets_pace"), (5001, "gaps_set_pace"), (50000, "gaps_set_pace"),
     (50001, "budget_unused")],
)  # fmt: skip
def test_the_unused_part_of_the_budget_tells_the_budget_from_gaps(unused: float, code: str) -> None:
    allocation = replace(WORKING.allocation, unused=unused)  # type: ignore[type-var]
    assert verdict(replace(WORKING, allocation=allocation)).code == code


@pytest.mark.parametrize(("frequency", "often"), [("1", "once a day"), ("2.5", "2.5 times a day")])
def test_without_an_allocation_new_pages_come_as_often_as_the_setting_says(frequency: str, often: str) -> None:
    said = verdict(replace(now(SMALL, new_waiting=3), settings={"frequency": frequency}))
    assert said.code == "no_allocation" and f"every page is fetched {often}." in said.detail


def test_without_a_budget_pages_that_their_hosts_have_room_for_wait_for_the_shortest_interval() -> None:
    free = replace(
        now(WORKING, new_waiting=0), settings=WORKING.settings | {"budget": None},
        minutes=(replace(WORKING.minutes[-1], budget=None, due_gap=0),),
        allocation=replace(WORKING.allocation, budget=float("inf"), capped_hosts=0),  # type: ignore[type-var]
    )  # fmt: skip
    assert "the shortest interval sets the pace" in verdict(free).headline
    full = replace(free, allocation=replace(free.allocation, capped_hosts=1))  # type: ignore[type-var]
    assert "The gaps of the hosts set the pace" in verdict(full).headline
    assert "The gaps of the hosts set the pace" in verdict(now(free, new_waiting=10)).headline


def test_a_crawl_whose_only_host_is_blocked_is_not_called_working() -> None:
    shut_out = replace(SMALL.minutes[0], hosts=1, hosts_blocked=1, due=12, due_blocked=12)
    figures = replace(now(SMALL, due=12, ready_wait=None, hosts_ready=0), minutes=(shut_out,))
    assert [verdict(figures).code, verdict(figures).level] == ["hosts_blocked", "warn"], "it reported just now"
    quiet = replace(figures, reported_at=NOON - 10 * MINUTE)
    said = verdict(quiet)
    assert [said.level, said.headline] == ["trouble", "Hardly anything can be fetched: the only host is blocked."]
    checkup = Checkup(None, 12, 12, "a.test", 1, ["a.test"])
    assert found(replace(HEALTHY, figures=quiet, checkup=checkup))["hosts_blocked"] == "trouble"
    assert verdict(now(quiet, due=0)).code == "nothing_due", "nothing waits for it"


def test_what_blocks_us_gets_a_longer_gap_as_a_hint() -> None:
    (fix,) = [fix for fix in verdict(WORKING).fixes if fix.topic == "host"]
    assert fix.do == "SELECT recrawl.set_host('www.gazette-nord.example', gap => '2 seconds');"


@pytest.mark.parametrize(
    ("due", "gap", "reason", "wanted"),
    [
        (20, 3 * SECOND, "it answered 503", ["6 seconds"]),
        (20, None, "it answered 429", ["2 seconds"]),
        (19, SECOND, "it answered 429", []),
        (20, SECOND, None, []),
    ],
)
def test_a_longer_gap_is_twice_the_gap_of_a_host_that_blocks_us_and_has_late_pages(
    due: int, gap: timedelta | None, reason: str | None, wanted: list[str]
) -> None:
    host = LateHost("a.test", due, HOUR, "block", gap, NOON + HOUR, reason)
    fixes = [fix.do for fix in verdict(replace(WORKING, late_hosts=(host,))).fixes]
    assert fixes == [f"SELECT recrawl.set_host('a.test', gap => '{gap}');" for gap in wanted]


# Actions that a test must not do to the server that it shares.
NOT_HERE = ("SELECT pg_drop", "SELECT pg_term", "ROLLBACK", "VACUUM", "CREATE ROLE", "ALTER SYSTEM")


def test_every_fix_in_sql_can_be_pasted(connection: psycopg.Connection) -> None:
    connection.execute("select recrawl.add_pages('{http://www.gazette-nord.example/}')")
    connection.execute("set search_path = public")
    said = {fix.do for state in STATES.values() for fix in verdict(state).fixes}
    said |= {fix.do for facts in (HEALTHY, *PLANTED.values()) for check in checks(facts) for fix in check.fixes}
    tried = 0
    for statement in sorted(said):
        if statement.endswith(";") and not statement.startswith(NOT_HERE):
            connection.execute(statement)
            tried += 1
    assert tried >= 8


# -- doctor --

HEALTHY = Facts(
    figures=WORKING,
    server=ServerFacts(NOON, vacuums=True, sees_all=True),
    asked_at=NOON,
    is_checkup=True,
    checkup=Checkup(571, 1210571, 48210, "news.harbour-post.example", 203, ["a.test", "b.test"]),
    slots=(Slot("replica", True, 1e6, 10),),
    tables=(Table("host", 20412, 9000),),
)
HELD = Transaction(4711, "anna", "psql", "idle in transaction", 12 * MINUTE, None, holds_hosts=True)


def with_day(**counts: float) -> Facts:
    return replace(HEALTHY, figures=replace(WORKING, day=replace(WORKING.day, **counts)))  # type: ignore[arg-type]


def state(code: str) -> Facts:
    return replace(HEALTHY, figures=STATES[code])


PLANTED = {
    "database": replace(HEALTHY, figures=Figures(Now(NOON), database="older")),
    "paused": state("paused"),
    "inbox_stuck": state("inbox_stuck"),
    "worker_silent": state("worker_silent"),
    "standing_still": state("standing_still"),
    "fetches_fail": state("fetches_fail"),
    "crawlers_slow": state("crawlers_slow"),
    "no_worker": state("no_worker"),
    "transaction_open": replace(HEALTHY, transactions=(HELD,)),
    "job_failing": state("job_failing"),
    "job_late": state("job_late"),
    "hosts_blocked": replace(HEALTHY, checkup=replace(HEALTHY.checkup, blocked_hosts=4100)),
    "leases_end": with_day(expired=40000),
    "slots_missed": state("slots_missed"),
    "reports_rejected": with_day(stale=30000),
    "changes_not_reported": with_day(change_unknown=280000),
    "revisits_skipped": with_day(skipped=30000),
    "less_fresh": replace(HEALTHY, figures=replace(WORKING, minutes=minutes(fresh=0.4, covered=0.99, every=True))),
    "allocation_outdated": replace(
        HEALTHY, figures=replace(WORKING, settings=WORKING.settings | {"objective": "harmonic"})
    ),
    "over_budget": with_day(budget_fetches=900000),
    "big_host": replace(HEALTHY, checkup=replace(HEALTHY.checkup, most_pages=900000)),
    "clocks_differ": replace(HEALTHY, asked_at=NOON - 40 * SECOND),
    "dead_rows": replace(HEALTHY, tables=(Table("queue", 1000, 900000),)),
    "server_settings": replace(
        HEALTHY,
        server=replace(
            HEALTHY.server, naptime=MINUTE, wal_compression="pglz", wal_bytes=1, buffer_bytes=1, syncs=False
        ),
    ),
    "replica_behind": replace(HEALTHY, slots=(Slot("gone", False, 9e9, None),)),
    "crawler_is_superuser": replace(HEALTHY, superusers=("postgres",)),
}  # fmt: skip


def found(facts: Facts) -> dict[str, str]:
    return {check.code: check.level for check in checks(facts) if check.level not in ("ok", "unseen")}


def server(**values: object) -> Facts:
    return replace(HEALTHY, server=replace(HEALTHY.server, **values))  # type: ignore[arg-type]


def checkup(**values: object) -> Facts:
    return replace(HEALTHY, checkup=replace(HEALTHY.checkup, **values))  # type: ignore[arg-type]


def crawl(**values: object) -> Facts:
    return replace(HEALTHY, figures=replace(WORKING, **values))  # type: ignore[arg-type]


def of_hour(**counts: float) -> Facts:
    return crawl(hour=Total(NOON - HOUR, **counts))


def of_day(since: datetime = NOON - DAY, **counts: float) -> Facts:
    return crawl(day=Total(since, **counts))


def blocked(hosts: int, due: int = 0, quiet: timedelta = SECOND) -> Facts:
    """Of 50 hosts."""
    late = (LateHost("a.test", due, HOUR, "block"),)
    figures = replace(WORKING, minutes=minutes(hosts=50), late_hosts=late, reported_at=NOON - quiet)
    return replace(checkup(blocked_hosts=hosts), figures=now(figures, due=0))


def unwatched(figures: Figures, **values: object) -> Facts:
    """Without a worker."""
    changes = {"workers": 0} | values
    return replace(HEALTHY, figures=replace(now(figures, worker_is_running=False), **changes))  # type: ignore[arg-type]


FRESH, STALE = (minutes(covered=0.91, fresh=fresh, every=True) for fresh in (0.623, 0.621))
LATE, RUNS = Schedule("allocate", HOUR, NOON - 5 * MINUTE - SECOND), Schedule("opic", 6 * HOUR, None, NOON - 3 * HOUR)
TWO_FAILED = Total(NOON - HOUR, fetches=2, failed=1, throttled=1)
# The level of a rule, the last crawl that does not have it, and the first that has it.
EDGES: list[tuple[str, str, Facts, Facts]] = [
    ("inbox_stuck", "trouble", unwatched(STATES["inbox_stuck"], reported_at=NOON - 5 * MINUTE),
        unwatched(STATES["inbox_stuck"], reported_at=NOON - 5 * MINUTE + SECOND)),
    ("inbox_stuck", "trouble", crawl(now=replace(WORKING.now, inbox_wait=MINUTE - SECOND)),
        crawl(now=replace(WORKING.now, inbox_wait=MINUTE))),
    ("inbox_stuck", "trouble", unwatched(now(WORKING, inbox_wait=5 * MINUTE - SECOND)),
        unwatched(now(WORKING, inbox_wait=5 * MINUTE))),
    ("standing_still", "trouble", unwatched(STILL, reported_at=NOON - DAY),
        unwatched(STILL, reported_at=NOON - DAY + SECOND)),
    ("standing_still", "trouble", crawl(now=STILL.now, reported_at=None, ever=HasEver(True, False)),
        crawl(now=STILL.now, reported_at=NOON - 12 * MINUTE, ever=HasEver(True, False))),
    ("standing_still", "trouble", unwatched(STILL, reported_at=None), crawl(now=STILL.now, reported_at=None)),
    ("fetches_fail", "trouble", crawl(hour=TWO_FAILED, day=replace(TWO_FAILED, fetches=3)),
        crawl(hour=TWO_FAILED, day=TWO_FAILED)),
    ("fetches_fail", "warn", of_hour(fetches=19, failed=19), of_hour(fetches=20, failed=4)),
    ("fetches_fail", "trouble", of_hour(fetches=20, failed=9), of_hour(fetches=20, failed=10)),
    ("crawlers_slow", "warn", crawl(now=replace(WORKING.now, ready_wait=59 * SECOND)),
        crawl(now=replace(WORKING.now, ready_wait=MINUTE))),
    ("job_late", "warn", crawl(schedule=(replace(LATE, due_at=NOON - 5 * MINUTE),)), crawl(schedule=(LATE,))),
    ("job_late", "warn", crawl(schedule=(replace(LATE, due_at=NOON - 3 * HOUR), RUNS)),
        crawl(schedule=(replace(LATE, due_at=NOON - 3 * HOUR - SECOND), RUNS))),
    ("job_late", "warn", crawl(schedule=(LATE,), minutes=minutes()[-8:-3]),
        crawl(schedule=(LATE,), minutes=minutes()[-7:-2])),
    ("no_worker", "warn", crawl(workers=0), unwatched(WORKING)),
    ("hosts_blocked", "warn", blocked(4), blocked(5)),
    ("hosts_blocked", "trouble", blocked(44, quiet=HOUR), blocked(45, quiet=HOUR)),
    ("hosts_blocked", "warn", blocked(1, due=19), blocked(1, due=20)),
    ("leases_end", "warn", of_day(handed_out=19, expired=19), of_day(handed_out=20, expired=2)),
    ("leases_end", "warn", of_day(handed_out=1000, expired=50), of_day(handed_out=1000, expired=51)),
    ("slots_missed", "warn", of_hour(handed_out=20, missed=19), of_hour(handed_out=20, missed=20)),
    ("slots_missed", "warn", of_hour(handed_out=1000, missed=50), of_hour(handed_out=1000, missed=51)),
    ("reports_rejected", "warn", of_day(refused=19), of_day(refused=20)),
    ("reports_rejected", "warn", of_day(fetches=980, stale=20), of_day(fetches=979, stale=21)),
    ("changes_not_reported", "warn", of_day(changed=19, change_unknown=19), of_day(unchanged=20, change_unknown=19)),
    ("changes_not_reported", "warn", of_day(unchanged=20, change_unknown=10), of_day(unchanged=20, change_unknown=11)),
    ("revisits_skipped", "warn", of_day(late_1m=19, skipped=19), of_day(late_1m=20, skipped=19)),
    ("revisits_skipped", "warn", of_day(late_more=20, skipped=1), of_day(late_more=20, skipped=2)),
    ("less_fresh", "warn", crawl(minutes=STALE[-29:]), crawl(minutes=STALE[-30:])),
    ("less_fresh", "warn", crawl(minutes=minutes(fresh=0.4, covered=None, every=True)),
        crawl(minutes=minutes(fresh=0.4, covered=0.99, fresh_error=None, every=True))),
    ("less_fresh", "warn", crawl(minutes=FRESH), crawl(minutes=STALE)),
    ("less_fresh", "warn", crawl(minutes=(*STALE[:-1], FRESH[-1])), crawl(minutes=STALE)),
    ("less_fresh", "warn", crawl(minutes=minutes(covered=0.9, fresh=0.4, every=True)), crawl(minutes=STALE)),
    ("allocation_outdated", "warn", crawl(settings=WORKING.settings | {"budget": "476500"}),
        crawl(settings=WORKING.settings | {"budget": "476000"})),
    ("allocation_outdated", "warn", crawl(settings=WORKING.settings | {"budget": None}),
        crawl(settings=WORKING.settings | {"budget": "500"})),
    ("allocation_outdated", "warn", checkup(pages=100, added_since_allocation=None),
        checkup(pages=100, added_since_allocation=100)),
    ("allocation_outdated", "warn", checkup(pages=100, added_since_allocation=30),
        checkup(pages=100, added_since_allocation=31)),
    ("over_budget", "warn", with_day(budget_minutes=359), with_day(budget_minutes=360)),
    ("over_budget", "warn", with_day(budget_fetches=550020), with_day(budget_fetches=550021)),
    ("over_budget", "warn", with_day(budget_fetches=900000, mean_budget=900000), with_day(budget_fetches=900000)),
    ("big_host", "warn", checkup(pages=None, most_pages=None, added_since_allocation=None), PLANTED["big_host"]),
    ("big_host", "warn", checkup(pages=999, most_pages=998), checkup(pages=1000, most_pages=998)),
    ("big_host", "warn", checkup(pages=1000, most_pages=500), checkup(pages=1000, most_pages=501)),
    ("big_host", "warn", checkup(pages=1000, most_pages=1000), checkup(pages=1000, most_pages=999)),
    ("clocks_differ", "warn", server(clock=NOON - 2 * SECOND), server(clock=NOON - 2.1 * SECOND)),
    ("dead_rows", "trouble", HEALTHY, server(vacuums=False)),
    ("dead_rows", "warn", replace(HEALTHY, tables=(Table("page", 10, 100_000),)),
        replace(HEALTHY, tables=(Table("page", 10, 100_001),))),
    ("dead_rows", "warn", replace(HEALTHY, tables=(Table("page", 60_000, 120_000),)),
        replace(HEALTHY, tables=(Table("page", 60_000, 120_001),))),
    ("server_settings", "warn", server(naptime=20 * SECOND), server(naptime=21 * SECOND)),
    ("server_settings", "warn", server(wal_bytes=2 * 1024**3), server(wal_bytes=2 * 1024**3 - 1)),
    ("server_settings", "warn", server(buffer_bytes=256 * 1024**2), server(buffer_bytes=256 * 1024**2 - 1)),
    ("replica_behind", "warn", replace(HEALTHY, slots=(Slot("b", False, None, None), Slot("a", True, 9e9, 1_000_000))),
        replace(HEALTHY, slots=(Slot("a", True, 9e9, 1_000_001),))),
    ("replica_behind", "warn", replace(HEALTHY, slots=(Slot("a", False, 1024**3, None),)),
        replace(HEALTHY, slots=(Slot("a", False, 1024**3 + 1, None),))),
    ("crawler_is_superuser", "warn", replace(HEALTHY, superusers=("postgres",), is_embedded=True),
        replace(HEALTHY, superusers=("postgres",))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "level", "well", "ill"), EDGES)
def test_a_rule_begins_at_its_limit(code: str, level: str, well: Facts, ill: Facts) -> None:
    assert found(well).get(code) != level
    assert found(ill)[code] == level


def test_doctor_is_silent_on_a_healthy_crawl() -> None:
    quiet = replace(HEALTHY, figures=replace(WORKING, late_hosts=()))
    assert found(quiet) == {}
    assert found(replace(HEALTHY, figures=SMALL, checkup=Checkup(None, 12, 6, "a.test"))) == {}


def test_the_planted_troubles_are_those_that_doctor_knows_and_no_other() -> None:
    assert list(PLANTED) == LISTED


LISTED = [rule.code for rule in RULES if rule.ok_line]


@pytest.mark.parametrize("code", LISTED)
def test_doctor_finds_the_planted_trouble_and_says_what_mends_it(code: str) -> None:
    assert code in found(PLANTED[code])
    (check,) = [check for check in checks(PLANTED[code]) if check.code == code]
    assert check.fixes[0].do
    assert_golden("doctor", code, screens.doctor(checks(PLANTED[code])))


def test_a_paused_crawl_needs_no_crawlers() -> None:
    for crawl in (STILL, STATES["crawlers_slow"]):
        assert "paused" in found(replace(HEALTHY, figures=now(crawl, paused=True)))
        assert not {"standing_still", "crawlers_slow"} & found(replace(HEALTHY, figures=now(crawl, paused=True))).keys()


def test_what_a_login_may_not_see_is_said_and_not_cried_about() -> None:
    facts = replace(HEALTHY, server=replace(HEALTHY.server, sees_all=False), figures=replace(WORKING, late_hosts=()))
    assert found(facts) == {}
    assert [check.code for check in checks(facts) if check.level == "unseen"] == [
        "transaction_open",
        "crawler_is_superuser",
    ]
    assert_golden("doctor", "unseen", screens.doctor(checks(facts)))


def test_doctor_tells_allocations_of_another_budget_or_of_far_fewer_pages() -> None:
    other = replace(HEALTHY, figures=replace(WORKING, settings=WORKING.settings | {"budget": "900000"}))
    fewer = replace(HEALTHY, checkup=replace(HEALTHY.checkup, added_since_allocation=800000))
    assert "allocation_outdated" in found(other) and "allocation_outdated" in found(fewer)
    for facts, share in ((fewer, "66 %"), (checkup(pages=100, added_since_allocation=150), "100 %")):
        said = allocation_outdated(facts)
        assert said and said.headline == f"{share} of the pages were added after the last allocation, 40 min ago."


def test_a_job_that_runs_all_the_time_has_nothing_in_force() -> None:
    assert {name for name, entry in JOBS.items() if not entry.is_batch} == set(figures.ALWAYS)
    fails = LastRun("vitals", NOON - 7 * MINUTE, 0, False, "No space left on device", None, 1)
    said = job_failing(Facts(replace(WORKING, runs=(*WORKING.runs, fails))))
    assert said and said.headline == "The job vitals failed."
    assert said.detail == "No space left on device. It has failed for 7 min. The worker tries it again and again."


@pytest.mark.parametrize(("ok", "failures", "is_found"), [(False, 2, True), (False, 0, False), (None, 2, False)])
def test_a_job_whose_last_run_was_stopped_fails_if_it_failed_before(
    ok: bool | None, failures: int, is_found: bool
) -> None:
    stopped = LastRun("opic", NOON - 7 * MINUTE, 0, ok, "stopped", None, failures)
    assert bool(job_failing(Facts(replace(WORKING, runs=(stopped,))))) == is_found


def test_a_job_that_failed_without_a_word_is_said_to_have_done_so() -> None:
    said = job_failing(Facts(replace(WORKING, runs=(LastRun("opic", NOON - HOUR, 0, False, None, None, 1),))))
    assert said and said.detail == "It did not say why. It never succeeded."


def test_a_late_job_names_the_job_that_it_waits_for() -> None:
    late = replace(LATE, due_at=NOON - 4 * HOUR)
    assert verdict(replace(WORKING, schedule=(late, RUNS))).detail.startswith(
        "It waits for the job opic, which has run for 3 h."
    )


def test_of_open_transactions_the_one_that_holds_hosts_is_told_of_first_and_then_the_oldest() -> None:
    prepared = Transaction(None, None, None, "prepared", HOUR, "it's", holds_hosts=False)
    young = Transaction(7, "bob", None, "active", 2 * MINUTE, None, holds_hosts=False)

    def said(*transactions: Transaction) -> tuple[str, str]:
        (check,) = [each for each in checks(replace(HEALTHY, transactions=transactions)) if "trans" in each.code]
        return f"{check.headline} {check.detail}", check.fixes[0].do

    text, do = said(young, prepared)
    assert text == (
        "The prepared transaction it's has been open for 1 h, prepared. 1 more has been open for long. "
        + next(rule.means for rule in RULES if rule.code == "transaction_open")
    )
    assert do == "ROLLBACK PREPARED 'it''s';"
    text, do = said(young, HELD, prepared)
    assert "process 4711" in text and "2 more have been open" in text and do == "SELECT pg_terminate_backend(4711);"


# -- alerts --


def test_the_alert_rules_are_written_from_the_list() -> None:
    path = Path(__file__).parents[3] / "docs/monitoring/prometheus-alerts.yml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(alerts.written())
    assert path.read_text() == alerts.written(), "the rules changed: if that is meant, say `make golden`"


# -- jobs --


def test_jobs_says_what_ran_what_runs_and_what_comes_next() -> None:
    scheduled = [
        figures.Schedule("upkeep", 0.4 * SECOND, None),
        figures.Schedule("vitals", MINUTE, None),
        figures.Schedule("rates", 6 * HOUR, NOON + 20 * HOUR),
        figures.Schedule("opic", None, None),
        figures.Schedule("allocate", HOUR, NOON + 12 * MINUTE),
        figures.Schedule("retention", HOUR, None),
    ]
    runs = [
        LastRun("rates", NOON - 2 * HOUR, 12, True, "1,030,395 pages on 20,412 hosts", NOON - 2 * HOUR, 0),
        LastRun("opic", NOON - 12 * SECOND, 12, None, "is running", None, 0),
        LastRun("allocate", NOON - 5 * MINUTE, 3, False, "out of memory", NOON - 5 * HOUR, 4),
        LastRun("vitals", NOON - 7 * MINUTE, 0, False, "No space left on device", None, 1),
        LastRun("retention", NOON - 3 * HOUR, 0, True, None, NOON - 3 * HOUR, 0),
    ]
    shown = screens.jobs(scheduled, runs, NOON, worker_is_running=True)
    assert max(map(len, shown)) <= 80
    assert_golden("jobs", "worker", shown)
    assert_golden("jobs", "no_worker", screens.jobs(scheduled, runs, NOON, worker_is_running=False))
    assert_golden("jobs", "of_one", screens.runs("allocate", runs[2:3]))


@pytest.mark.parametrize(
    ("message", "failures", "says"),
    [
        ("disk full", 1, "✕ rates      failed 5 min ago, took 3 s"),
        ("disk full", 2, "✕ rates      failed 5 min ago (2 in a row)"),
        ("stopped", 2, "· rates      stopped 5 min ago, took 3 s"),
    ],
)
def test_a_failure_is_counted_if_it_is_not_the_first(message: str, failures: int, says: str) -> None:
    run = LastRun("rates", NOON - 5 * MINUTE, 3, False, message, None, failures)
    assert screens.jobs([Schedule("rates", None, None)], [run], NOON, True)[0].startswith(says)


def test_the_first_fetches_are_shown_before_their_minute_is_counted() -> None:
    first = now(STATES["never_fetched"], fetches_per_second=2.0)
    assert "  fetches     2 a second" in screens.status(first, verdict(first))


def test_a_long_message_of_a_run_has_three_lines_or_all() -> None:
    run = LastRun("rates", NOON - MINUTE, 3, False, "ab " * 100, None, 1)
    jobs, runs = screens.jobs([Schedule("rates", None, None)], [run], NOON, True), screens.runs("rates", [run])
    assert len([line for line in jobs if line.startswith("    ab")]) == 3 and jobs[3].endswith(" …")
    assert " ".join(runs[1:]).split() == ["ab"] * 100
    assert max(map(len, (*jobs, *runs))) <= 80


def test_what_does_not_fit_into_a_row_is_left_out_and_one_skipped_revisit_is_told() -> None:
    minute = replace(WORKING.minutes[-1], due_gap=1e12, due_blocked=1e12)
    figures = replace(WORKING, minutes=(minute,), day=replace(WORKING.day, skipped=1))
    lines = screens.status(figures, verdict(figures))
    assert "  late pages  about 7,718    waiting for: gap 1,000,000,000,000" in lines
    assert any(line.endswith("within 10 min; 1 skipped in 24 h") for line in lines)


def test_if_no_page_is_late_any_more_none_waits_for_anything() -> None:
    none = now(WORKING, due=0)
    assert "  late pages  about 0" in screens.status(none, verdict(none))


def test_bars_of_blocks() -> None:
    assert (screens.bar(0.5, 4), screens.bar(1.7, 4), screens.bar(0, 4)) == ("██", "████", "")


def test_a_verdict_is_not_changed_by_asking() -> None:
    assert verdict(WORKING) == verdict(WORKING)


def assert_golden(screen: str, name: str, lines: list[str]) -> None:
    """Of each screen all states in one file; `make golden` writes it."""
    path = GOLDEN / f"{screen}.txt"
    text = path.read_text() if path.exists() else ""
    blocks = dict(part.split("\n", 1) for part in text.split("==== ")[1:])
    shown = "\n".join(line.rstrip() for line in lines) + "\n\n"
    if os.environ.get("UPDATE_GOLDEN"):
        blocks[name] = shown
        path.write_text("".join(f"==== {key}\n{blocks[key]}" for key in sorted(blocks)))
    assert blocks.get(name) == shown, f"the screen {screen} changed: if that is meant, say `make golden`"
