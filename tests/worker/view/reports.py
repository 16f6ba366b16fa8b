"""Crawls to look at, made up: one in health with two weeks of history, and variations of it."""

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from recrawl.view.figures import (
    DAY,
    HOUR,
    CappedHost,
    Figures,
    HasEver,
    LastAllocation,
    LastRun,
    LateHost,
    Minute,
    Now,
    Period,
    Total,
)
from recrawl.view.history import TEN_MINUTES, Event, History
from recrawl.view.parts.page import Report
from recrawl.view.rule import Diagnosis
from recrawl.view.verdict import verdict

NOW = datetime(2026, 11, 21, 15, 4, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
BUDGET = 500_000.0


def hours(n: int = 336) -> list[Period]:
    """Up to the hour that goes on."""
    rng, top = Random(7), NOW.replace(minute=0, second=0)
    found = []
    for i in range(n - 1, -1, -1):
        at, age = top - i * HOUR, i / 24
        fetches = 19_600 * (1 + 0.05 * math.sin((at.hour - 8) / 24 * 2 * math.pi)) * rng.uniform(0.985, 1.015)
        if i == 12:
            fetches *= 0.3
        if i == 0:
            fetches *= 0.07
        changed = fetches * (0.235 + 0.07 * math.sin((at.hour - 9) / 24 * 2 * math.pi))
        first, missing, failed = fetches * 0.1, fetches * 0.012, fetches * rng.uniform(0.015, 0.025)
        expected = 0.712 if age > 9 else 0.726 if age > 2.6 else 0.734
        fresh = expected - 0.011 - 0.004 * rng.random() - (0.012 * math.exp(-((i - 11) ** 2) / 18) if i < 22 else 0)
        found.append(
            Period(
                at=at,
                fetches=fetches,
                changed=changed,
                unchanged=fetches - changed - first - missing - failed,
                first=first,
                missing=missing,
                failed=failed * 0.8,
                throttled=failed * 0.2,
                skipped=rng.randrange(30, 70),
                pages_added=rng.randrange(100, 700),
                due=7_700 + 300 * math.sin(i / 5),
                due_crawler=70,
                due_gap=5_244 + 200 * math.sin(i / 5),
                due_blocked=2_386 + 100 * math.sin(i / 5),
                pages=1_210_571 - i * 340,
                fresh=fresh,
                fresh_error=0.002,
                expected=expected,
                limit_with_gaps=expected + 0.005,
                budget=480_000 if age > 5 else BUDGET,
            )
        )
    return found


def tens(n: int = 144) -> list[Period]:
    rng, top = Random(8), NOW.replace(minute=0, second=0)
    by_hour = {hour.at.replace(microsecond=0): hour for hour in hours(n // 6 + 1)}
    counts = ("fetches", "changed", "unchanged", "first", "missing", "failed", "throttled")
    found = []
    for i in range(n - 1, -1, -1):
        outage = 15_000 * math.exp(-((i - 70) ** 2) / 20)
        gap, blocked, crawler = 5_200 + 500 * math.sin(i / 22), 2_100 + 300 * math.sin(i / 40), 60 + 40 * rng.random()
        due = {"due_gap": gap, "due_blocked": blocked, "due_crawler": crawler + outage}
        at = top - i * TEN_MINUTES
        hour = by_hour[at.replace(minute=0, microsecond=0)]
        sixth = {name: getattr(hour, name) / 6 for name in counts}
        found.append(replace(hour, at=at, due=sum(due.values()), **due, **sixth))
    return found


DAY_TOTAL = Total(
    since=NOW - DAY,
    fetches=463_541,
    changed=111_250,
    unchanged=290_000,
    first=46_300,
    missing=5_500,
    failed=8_400,
    throttled=2_000,
    denied=91,
    late_1m=361_900,
    late_10m=43_200,
    late_1h=5_600,
    late_6h=2_700,
    late_1d=1_010,
    late_more=391,
    skipped=1_204,
    handed_out=465_000,
    calls=9_000,
    empty_calls=1_200,
    pages_added=8_214,
)

LAST_MINUTE = Minute(
    at=NOW - MINUTE,
    fetches=322,
    due=7_718,
    due_crawler=72,
    due_gap=5_244,
    due_blocked=2_402,
    new_waiting=180_176,
    leased=3_600,
    pages=1_210_571,
    hosts=20_412,
    hosts_ready=12,
    hosts_blocked=203,
    hosts_capped=214,
    fresh=0.72,
    fresh_error=0.002,
    covered=0.851,
    expected=0.734,
    limit_with_gaps=0.739,
    limit_without_gaps=0.812,
    budget=BUDGET,
)

NOW_ROW = Now(
    as_of=NOW,
    last_report_at=NOW - 2 * SECOND,
    fetches_per_second=5.5,
    ready_wait=timedelta(seconds=0.8),
    hosts_ready=12,
    due=7_718,
    new_waiting=180_176,
    is_estimate=True,
    leased=3_600,
    leases=36,
    oldest_lease_at=NOW - 4 * MINUTE,
    upkeep_at=NOW - timedelta(seconds=0.4),
    worker_is_running=True,
    vitals_at=NOW - MINUTE,
    longest_transaction=timedelta(seconds=0.1),
    inbox_wait=timedelta(seconds=0.2),
)

FIGURES = Figures(
    now=NOW_ROW,
    reported_at=NOW_ROW.last_report_at,
    workers=1,
    minutes=tuple(replace(LAST_MINUTE, at=NOW - i * MINUTE) for i in range(60, 0, -1)),
    hour=Total(since=NOW - HOUR, fetches=19_300, changed=4_600, unchanged=12_000, first=1_900, missing=230, failed=350),
    day=DAY_TOTAL,
    allocation=LastAllocation(
        started_at=NOW - 11 * HOUR,
        objective="freshness",
        budget=BUDGET,
        for_revisits=425_000,
        for_new=46_300,
        unused=28_700,
        pages=1_030_395,
        capped_hosts=214,
        utility=0.734,
        limit_with_gaps=0.739,
        limit_without_gaps=0.812,
    ),
    runs=(
        LastRun("allocate", NOW - 11 * HOUR, 12.4, True, "2,310 pages are due earlier than before", NOW - 11 * HOUR, 0),
        LastRun("opic", NOW - 12 * HOUR, 96.0, True, "1,210,571 pages", NOW - 12 * HOUR, 0),
        LastRun("rates", NOW - 12 * HOUR, 41.0, True, "20,412 hosts", NOW - 12 * HOUR, 0),
    ),
    late_hosts=(
        LateHost("www.gazette-nord.example", 1_310, 41 * MINUTE, "block", SECOND, NOW + 37 * MINUTE, "it answered 429"),
        LateHost("forum.tidewatch.example", 902, 9 * MINUTE, "gap", 10 * SECOND),
        LateHost("news.harbour-post.example", 611, 2 * MINUTE, "gap", 2 * SECOND),
    ),
    capped_hosts=(
        CappedHost("news.harbour-post.example", 48_210, 2 * SECOND, 51_900, 39_270, 0.0061),
        CappedHost("forum.tidewatch.example", 35_778, 10 * SECOND, 13_120, 7_854, 0.0042),
        CappedHost("www.gazette-nord.example", 26_988, SECOND, 91_620, 78_540, 0.0018),
    ),
    settings={"budget": str(BUDGET), "objective": "freshness"},
)  # fmt: skip


def blocked(host: str, due: int, until: datetime, reason: str | None) -> LateHost:
    return LateHost(host, due, None, "block", blocked_until=until, blocked_reason=reason)


HISTORY = History(
    hours=tuple(hours()),
    tens=tuple(tens()),
    blocked=(
        blocked("www.gazette-nord.example", 1_310, NOW + 37 * MINUTE, "it answered 429"),
        blocked("img.portal-8.example", 940, NOW + DAY, "10 of its last 12 fetches failed"),
        blocked("old.example.org", 12, datetime.max.replace(tzinfo=UTC), "asked by mail"),
    ),
    events=(
        Event(NOW - 52 * MINUTE, "setting", "longest_interval", "none → 30 days", "anna"),
        Event(NOW - 11 * HOUR, "job", "allocate", "freshness 0.734 with 471,300 of 500,000 fetches a day", None),
        Event(NOW - 11.2 * HOUR, "crawl", "crawlers", "crawlers report again, after 45 min without a report", None),
        Event(NOW - 12 * HOUR, "crawl", "crawlers", "no crawler has reported for 5 min", None),
        Event(NOW - 22 * HOUR, "setting", "budget", "480,000 → 500,000", "anna"),
    ),
)  # fmt: skip


def report(figures: Figures = FIGURES, history: History = HISTORY, **more: Any) -> Report:
    said: Diagnosis = more.pop("verdict", None) or verdict(figures)
    return Report(figures, said, history, **more)


EMPTY = Figures(now=Now(as_of=NOW), ever=HasEver(has_pages=False))
