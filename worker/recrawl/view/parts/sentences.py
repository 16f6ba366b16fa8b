"""The sentence above each picture, also if little is known. Pure: the same figures give the same sentence.

Text between two pairs of stars, like **this**, stands out.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recrawl.view.figures import DAY, HOUR, SHARES, CappedHost, LastAllocation, LateHost, Minute, Period, Total
from recrawl.view.rules import MANY_FAIL
from recrawl.words import clock, count, either, percent, points, things

SAME = 0.005  # of the value: half a point of freshness is no difference
ENOUGH = 20  # hours of a day: if fewer are known, days are not compared


def join(*parts: str | None) -> str:
    return " ".join(part for part in parts if part)


def freshness(hours: Sequence[Period], minute: Minute, now: datetime, allocation: LastAllocation | None = None) -> str:
    known: list[Period] = [hour for hour in hours if hour.fresh is not None]
    if not known:
        return "Not known yet. When pages have been fetched, a worker estimates it every minute."
    last = minute if minute.fresh is not None else known[-1]
    fresh = last.fresh or 0.0
    then = now - last.at > 2 * HOUR
    how = f"was fresh at the last estimate, {clock(last.at, now)}" if then else "is fresh (estimated)"
    share_now = f"**{percent(fresh)}** of the value of all pages {how}."
    return join(share_now, _compared(fresh, last, allocation), _trend(known, last))


def _compared(fresh: float, last: Period, allocation: LastAllocation | None) -> str | None:
    if last.expected is None:
        if allocation is None:
            return "No allocation has said what to expect."
        if allocation.objective not in SHARES:
            return f"The allocation has the objective {allocation.objective}: it expects no freshness."
        return None  # the next row of vitals will have it
    same = max(SAME, 2 * (last.fresh_error or 0))
    difference = fresh - last.expected
    comparison = (
        f"what the allocation expects ({percent(last.expected)})"
        if abs(difference) <= same
        else f"{points(abs(difference))[1:]} points {'less' if difference < 0 else 'more'} than the allocation expects"
        f" ({percent(last.expected)})"
    )
    limit = last.limit_with_gaps
    with_limit = "" if limit is None else f". The limit with this budget and these gaps is {percent(limit)}"
    return f"That is {comparison}{with_limit}."


def _trend(known: Sequence[Period], last: Period) -> str | None:
    before = [hour for hour in known if last.at - 7 * DAY <= hour.at <= last.at - 6 * DAY]
    if not before:
        return None
    mean = sum(hour.fresh or 0 for hour in before) / len(before)
    difference = (last.fresh or 0) - mean
    if abs(difference) <= SAME:
        return "A week ago the freshness was the same."
    return f"A week ago the freshness was {percent(mean)}."


def fetches(hours: Sequence[Period], day: Total, budget: float | None, now: datetime) -> str:
    if day.since is None or not day.fetches:
        last = next((hour for hour in reversed(hours) if hour.fetches), None)
        if last is None:
            return "No page was fetched yet."
        return f"No page was fetched in the last 24 hours. The last fetches are from {clock(last.at, now)}."
    failing = day.failed + day.throttled + day.denied
    return join(
        f"**{count(day.fetches)}** {either(day.fetches, 'fetch', 'fetches')} in {day.covers(now)}"
        + (f", {percent(day.of_budget(budget, now), 0)} of the budget;" if budget else "; no budget is set;"),
        f"{percent(day.changed / day.fetches, 0)} found a change.",
        f"**{percent(failing / day.fetches, 0)} failed**, were throttled (429, 503) or forbidden by robots.txt."
        if failing > MANY_FAIL * day.fetches
        else None,
        _idle(hours, now),
    )


def step_begin(now: datetime, step: timedelta) -> datetime:
    """The start of the present step."""
    return now - (now - datetime.min.replace(tzinfo=UTC)) % step


def whole(periods: Sequence[Period], now: datetime, last: timedelta, step: timedelta) -> list[Period]:
    """The whole periods of one step within `last` before the present step."""
    end = step_begin(now, step)
    return [period for period in periods if end - last <= period.at < end]


def _idle(hours: Sequence[Period], now: datetime) -> str | None:
    """Whole hours of the last week without a fetch or without figures."""
    week = whole(hours, now, 7 * DAY, HOUR)
    idle = sum(not hour.fetches for hour in week)
    missing = round((week[-1].at - week[0].at) / HOUR) + 1 - len(week) if week else 0
    gaps = [
        f"in {things(idle, 'hour')} no page was fetched" if idle else None,
        f"of {things(missing, 'hour')} no figures are known" if missing > 0 else None,
    ]
    both = " and ".join(part for part in gaps if part)
    return f"This week, {both}." if both else None


CAUSES = {
    "due_gap": ("the gap of their host", "more crawlers would not help"),
    "due_blocked": ("a blocked host", "they are handed out when the block ends"),
    "due_crawler": ("a crawler", "their hosts are ready"),
}


def waiting(tens: Sequence[Period], minute: Minute, now: datetime) -> str:
    known = [ten for ten in tens if ten.due is not None]
    if not known:
        return "Not known yet. A worker counts late pages every minute."
    last = minute if minute.due is not None else known[-1]
    due = last.due or 0.0
    at = "" if now - last.at <= HOUR else f" (as of {clock(last.at, now)})"
    if round(due) == 0:
        most = max(known, key=lambda ten: ten.due or 0)
        peak = f" The maximum of the last day was {count(most.due)}, {clock(most.at, now)}."
        return f"**No page** is late{at}.{peak if round(most.due or 0) else ''}"
    share = f", {percent(due / minute.pages)} of all" if minute.pages else ""
    return join(f"**{things(due, 'page')}** {either(due, 'is', 'are')} late{share}{at}.", _cause(last))


def _cause(last: Period) -> str | None:
    shares = {name: getattr(last, name) for name in CAUSES}
    total = sum(share for share in shares.values() if share)
    if not total:
        return None
    name = max(shares, key=lambda name: shares[name] or 0)
    waits_for, so = CAUSES[name]
    part = shares[name] / total
    how_many = "All" if part > 0.995 else "Nearly all" if part > 0.9 else "Most" if part > 0.5 else "The largest part"
    return f"{how_many} wait{'s' if how_many == 'The largest part' else ''} for {waits_for}: {so}."


def lateness(day: Total, minute: Minute, now: datetime) -> str:
    if not day.revisits:
        return "No page was fetched again in the last 24 hours."
    skipped, due = things(day.skipped, "revisit"), minute.due or 0.0
    return join(
        f"Of {things(day.revisits, 'revisit')} in {day.covers(now)} **{percent(day.in_time)}** began",
        "within 10 minutes of the due time.",
        f"{skipped} {either(day.skipped, 'was', 'were')} skipped, because the next one was due already."
        if round(day.skipped)
        else "None was skipped.",
        f"{things(due, 'late page')} will count when {either(due, 'it is', 'they are')} fetched."
        if round(due)
        else None,
    )


def capped_hosts(hosts: Sequence[CappedHost], capped: float | None, all_hosts: float | None) -> str:
    if not hosts and capped is None:
        return "Not known yet. The job allocate finds them."
    if not hosts and not round(capped or 0):
        return "None. Every page can be fetched as often as the budget allows."
    if capped is None or not all_hosts:
        return "The gap, not the budget, limits how often their pages are fetched. The most costly host is first."
    return (
        f"**{count(capped)}** of {things(all_hosts, 'host')} {either(capped, 'is', 'are')} limited by the gap, "
        "not by the budget." + (" The most costly host is first." if hosts else "")
    )


def blocked_hosts(hosts: Sequence[LateHost], blocked: float | None, all_hosts: float | None) -> str:
    if not hosts and blocked is None:
        return "Not known yet. A worker counts them every five minutes."
    if not hosts and not blocked:
        return "None. Every host may be requested."
    if blocked is None or not all_hosts:
        return "The host with the most late pages is first."
    blocked = max(blocked, len(hosts))  # the count may be five minutes old
    share = f", {percent(blocked / all_hosts)} of all" if blocked <= all_hosts else ""
    none = "None of them is in the list of hosts with late pages (at most 200)."
    rest = "The host with the most late pages is first." if hosts else none
    return f"**{things(blocked, 'host')}**{share}. {rest}"


@dataclass(frozen=True)
class Change:
    """A figure of the last day compared with the day before. `better`: None = neither better nor worse."""

    name: str
    now: str
    difference: str
    better: bool | None


def changes(hours: Sequence[Period], now: datetime) -> list[Change]:
    """The last 24 whole hours compared with the 24 before: the figures that are known of both."""
    day, before = whole(hours, now, DAY, HOUR), whole(hours, now - DAY, DAY, HOUR)
    if min(len(day), len(before)) < ENOUGH:
        return []
    fresh, fresh_before = _mean(day, "fresh"), _mean(before, "fresh")
    bad, bad_before = (_share(hours, "failed", "throttled", "denied") for hours in (day, before))
    found = [
        _of_shares("Fresh, mean of the day", fresh, fresh_before, more_is_better=True),
        _of_counts("Fetches", _sum(day, "fetches"), _sum(before, "fetches")),
        _of_shares("Found a change", _share(day, "changed"), _share(before, "changed"), more_is_better=None),
        _of_shares("Failed, throttled or forbidden", bad, bad_before, more_is_better=False),
        _of_counts("Revisits skipped", _sum(day, "skipped"), _sum(before, "skipped")),
        _of_counts("Pages added", _sum(day, "pages_added"), _sum(before, "pages_added")),
        _of_counts("Late pages, mean", _mean(day, "due"), _mean(before, "due")),
    ]
    return [change for change in found if change]


def _mean(hours: Sequence[Period], name: str) -> float | None:
    known = [value for hour in hours if (value := getattr(hour, name)) is not None]
    return sum(known) / len(known) if known else None


def _sum(hours: Sequence[Period], *names: str) -> float:
    return float(sum(getattr(hour, name) for hour in hours for name in names))


def _share(hours: Sequence[Period], *names: str) -> float | None:
    total = _sum(hours, "fetches")
    return _sum(hours, *names) / total if total else None


def _of_shares(name: str, now: float | None, before: float | None, *, more_is_better: bool | None) -> Change | None:
    if now is None or before is None:
        return None
    difference = now - before
    if abs(difference) < 0.0005:
        return Change(name, percent(now), "the same", None)
    better = None if more_is_better is None else (difference > 0) == more_is_better
    return Change(name, percent(now), f"{points(difference)} points", better)


def _of_counts(name: str, now: float | None, before: float | None) -> Change | None:
    if now is None or before is None:
        return None
    difference = round(now) - round(before)
    if not difference:
        return Change(name, count(now), "the same", None)
    return Change(name, count(now), f"{difference:+,}".replace("-", "−"), None)
