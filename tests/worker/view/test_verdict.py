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
from recrawl.view.rules import RULES, job_failing
from recrawl.view.verdict import checks, verdict
from worker.view import alerts

GOLDEN = Path(__file__).parents[2] / "golden"
NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))


@pytest.fixture(autouse=True)
def in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """Screens show times in this machine's zone."""
    import time

    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


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


SERVER_ONLY = {"server_version", "clocks_differ", "dead_rows", "replica_behind", "crawler_is_superuser"}
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
    for line in (lines, screens.top(STATES[code], said, "news")):
        assert all(len(text) <= 80 for text in line)


@pytest.mark.parametrize("height", [8, 24, 40])
def test_the_full_screen_fills_the_terminal(height: int) -> None:
    figures = replace(WORKING, late_hosts=WORKING.late_hosts * 50)
    least = len(screens.top(WORKING, verdict(WORKING), "news", height=0))
    assert len(screens.top(figures, verdict(figures), "news", height)) == max(height, least)


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


def test_one_number_tells_crawlers_from_gaps() -> None:
    assert verdict(now(WORKING, ready_wait=59 * SECOND)).code == "gaps_set_pace"
    assert verdict(now(WORKING, ready_wait=61 * SECOND)).code == "crawlers_slow"
    assert verdict(now(WORKING, ready_wait=None, hosts_ready=0)).code == "gaps_set_pace"


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
    server=ServerFacts(18, NOON, vacuums=True, sees_all=True),
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
    "server_version": replace(HEALTHY, server=replace(HEALTHY.server, version=14)),
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
    "over_budget": with_day(fetches=900000),
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


def test_a_job_that_runs_all_the_time_has_nothing_in_force() -> None:
    assert {name for name, entry in JOBS.items() if not entry.is_batch} == set(figures.ALWAYS)
    fails = LastRun("vitals", NOON - 7 * MINUTE, 0, False, "No space left on device", None, 1)
    said = job_failing(Facts(replace(WORKING, runs=(*WORKING.runs, fails))))
    assert said and said.headline == "The job vitals failed."
    assert said.detail == "No space left on device. It has failed for 7 min. The worker tries it again and again."


@pytest.mark.parametrize(("failures", "is_found"), [(2, True), (0, False)])
def test_a_job_whose_last_run_was_stopped_fails_if_it_failed_before(failures: int, is_found: bool) -> None:
    stopped = LastRun("opic", NOON - 7 * MINUTE, 0, False, "stopped", None, failures)
    assert bool(job_failing(Facts(replace(WORKING, runs=(stopped,))))) == is_found


# -- alerts --


def test_the_alert_rules_are_written_from_the_list() -> None:
    path = Path(__file__).parents[3] / "docs/monitoring/prometheus-alerts.yml"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(alerts.written())
    assert path.read_text() == alerts.written(), "the rules changed: if that is meant, say `make golden`"


# -- jobs and top --


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


@pytest.mark.parametrize("code", ["gaps_set_pace", "standing_still", "empty", "nothing_due"])
def test_top_fills_a_terminal_of_80_by_24(code: str) -> None:
    lines = screens.top(STATES[code], verdict(STATES[code]), "news", 24)
    assert len(lines) == 24 and max(map(len, lines)) <= 80
    assert_golden("top", code, lines)


def test_a_figure_of_top_that_does_not_fit_is_left_out_and_not_cut() -> None:
    state = STATES["gaps_set_pace"]
    minute = replace(state.minutes[-1], due_gap=5_244_000, due_blocked=2_402_000, due_crawler=1_234_567)
    (line,) = [
        line
        for line in screens.top(replace(state, minutes=(minute,)), verdict(state), "news")
        if line.startswith("late")
    ]
    assert line.endswith("gap 5,244,000  block 2,402,000")


def test_bars_and_lines_of_blocks() -> None:
    assert (screens.bar(0.5, 4), screens.bar(1.7, 4), screens.bar(0, 4)) == ("██", "████", "")
    assert screens.sparkline([0, 1, 2], 2) == "▅█"
    assert screens.sparkline([0, 0], 5) == "▁▁" and screens.sparkline([], 5) == ""


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
