"""The screens of status, doctor and jobs: lines of at most 80 columns, made from figures alone.

A terminal colours the mark (✓ ▲ ✕) at the beginning of a line.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from textwrap import wrap

from recrawl.view.figures import ALWAYS, Figures, LastRun, Minute, Now, PastRun, Schedule
from recrawl.view.rule import MARKS, Diagnosis
from recrawl.words import count, either, lasting, moment, pace, percent, things, when

WIDTH = 80
RUN_MARKS = {"ran": MARKS["ok"], "failed": MARKS["trouble"], "stopped": "·", "running": "▶"}
# Verdicts whose detail is not printed, because the rows below say the same.
DETAIL_LEFT_OUT = {"gaps_set_pace", "budget_sets_pace", "budget_unused", "nothing_due"}


def status(figures: Figures, verdict: Diagnosis) -> list[str]:
    lines = _marked(MARKS[verdict.level], verdict.headline)
    lines += ["", *_marked(" ", verdict.detail)] if verdict.code not in DETAIL_LEFT_OUT else []
    if figures.database == "same" and figures.ever.has_pages:
        lines += ["", *_figures(figures)]
    for fix in verdict.fixes:
        lines += ["", *_marked("▲", fix.says), *_commands(fix.do)]
    if figures.database == "same":
        at = f"{figures.now.as_of.astimezone():%H:%M:%S}"
        lines += ["", f"as of {at} · recrawl doctor checks everything · recrawl explain URL says why"]
    return lines


def _figures(figures: Figures) -> Iterator[str]:
    now, day, minute = figures.now, figures.day, figures.minute
    if day.fetches or now.fetches_per_second:
        of_budget = day.of_budget(figures.budget, now.as_of)
        spent = "" if of_budget is None else f" {bar(of_budget, 16)} {percent(of_budget, 0)} of budget"
        yield _row(
            "fetches",
            pace(now.fetches_per_second or 0),
            f"{count(day.fetches)} in {day.covers(now.as_of)}{spent}" if day.fetches else "",
        )
    if minute.fresh is not None:
        yield _row("fresh", percent(minute.fresh), limits(minute) or "of the value of all pages, estimated")
    if day.revisits:
        skipped = f"; {count(day.skipped)} skipped in {day.covers(now.as_of)}" if day.skipped >= 1 else ""
        yield _row("on time", percent(day.in_time), f"of revisits within 10 min{skipped}")
    parts = [f"{word} {count(pages)}" for word, pages in _waits_for(minute).items() if pages]
    more = f"waiting for: {', '.join(parts)}" if now.due and parts else ""
    if now.next_ready_at and not now.due and not now.new_waiting:
        more = f"next page {when(now.next_ready_at, now.as_of)}"
    yield _row("late pages", _estimated(now.due, now), more)
    if now.ready_wait is not None:
        hosts = f"{_thousand(now.hosts_ready)} {either(now.hosts_ready, 'host', 'hosts')}"
        yield _row("ready", hosts, f"the first has waited {lasting(now.ready_wait)} for a crawler")
    if now.new_waiting:
        left = day.left(now.new_waiting, now.as_of)
        more = f"enough for {lasting(left)} at today's pace" if left else ""
        yield _row("new pages", _estimated(now.new_waiting, now), more)
    if now.leased:
        age = "" if now.oldest_lease_at is None else f", the oldest is {lasting(now.as_of - now.oldest_lease_at)} old"
        yield _row("leased", things(now.leased, "page"), f"in {things(now.leases, 'lease')}{age}")
    if minute.pages:
        capped = f"{count(minute.hosts_capped)} limited by gap" if minute.hosts_capped else ""
        blocked = f"{count(minute.hosts_blocked)} blocked" if minute.hosts_blocked else ""
        more = ", ".join(filter(None, (capped, blocked)))
        hosts = things(minute.hosts or 0, "host")
        yield _row("pages", count(minute.pages), f"on {hosts}" + (f": {more}" if more else ""))


def limits(minute: Minute) -> str:
    """The figures that the freshness is compared with."""
    bounds = {"expected": minute.expected, "limit": minute.limit_with_gaps, "without gaps": minute.limit_without_gaps}
    return ", ".join(f"{word} {percent(bound)}" for word, bound in bounds.items() if bound is not None)


def doctor(checks: Sequence[Diagnosis]) -> list[str]:
    lines = []
    for check in checks:
        lines += _marked(MARKS[check.level], f"{check.headline} {check.detail}")
        for fix in check.fixes:
            lines += [*_marked(" ", f"{fix.says}:"), *_commands(fix.do)]
    levels = [check.level for check in checks]
    bad, unseen = levels.count("warn") + levels.count("trouble"), levels.count("unseen")
    ill = f", {bad} {either(bad, 'is', 'are')} not" if bad else ""
    hidden = f", {unseen} {either(unseen, 'needs', 'need')} a login with more rights" if unseen else ""
    lines += ["", f"{levels.count('ok')} of {len(levels)} checks are well{ill}{hidden}"]
    return lines


def jobs(scheduled: Iterable[Schedule], runs: Sequence[LastRun], as_of: datetime, worker_is_running: bool) -> list[str]:
    last = {run.job: run for run in runs}
    lines = []
    for job in scheduled:
        run = last.get(job.job)
        every = f"every {lasting(job.every)}" if job.every else "by hand"
        mark = RUN_MARKS[run.result] if run else "·"
        comes = f"next {when(job.due_at, as_of)}" if job.due_at and worker_is_running else ""
        lines.append(f"{mark} {job.job:<10} {_ran(job.job, run, as_of):<33} {every:<13} {comes}".rstrip())
        if run and run.message and run.ok is not None:
            lines += [f"    {line}" for line in wrap(run.message, WIDTH - 4, max_lines=3, placeholder=" …")]
    if not worker_is_running:
        lines += ["", "▲ No worker runs, so no job starts automatically: recrawl worker"]
    return [*lines, "", "Run a job now: recrawl run JOB"]


def runs(name: str, past: Sequence[PastRun]) -> list[str]:
    """The runs of one job, the newest first."""
    if not past:
        return [f"{name} had no failure" if name in ALWAYS else f"{name} never ran: recrawl run {name}"]
    lines = []
    for run in past:
        mark = RUN_MARKS[run.result]
        at = moment(run.started_at)
        lines.append(f"{mark} {at}  took {lasting(timedelta(seconds=run.seconds))}")
        lines += [f"    {line}" for line in wrap(run.message or "", WIDTH - 4)]
    return lines


def _ran(job: str, run: LastRun | None, as_of: datetime) -> str:
    if job in ALWAYS:
        if run is None:
            return "no failure"
        return f"{'no failure' if run.ok else 'has failed'} for {lasting(as_of - run.started_at)}"
    if run is None:
        return "never ran"
    if run.ok is None:
        return f"has run for {lasting(as_of - run.started_at)}"
    fails_again = run.failures > 1 and run.result == "failed"
    more = f" ({run.failures} in a row)" if fails_again else f", took {lasting(timedelta(seconds=run.seconds))}"
    return f"{run.result} {lasting(as_of - run.started_at)} ago{more}"


def _estimated(pages: float, now: Now) -> str:
    return f"{'about ' if now.is_estimate else ''}{count(pages)}"


def _waits_for(minute: Minute) -> dict[str, float | None]:
    return {"gap": minute.due_gap, "block": minute.due_blocked, "crawler": minute.due_crawler}


def _thousand(number: int) -> str:
    return "1,000+" if number >= 1000 else count(number)


def _row(name: str, figure: str, more: str = "") -> str:
    """Leaves out the last parts of `more` if they do not fit."""
    while len(line := f"  {name:<10}  {figure:<14} {more}".rstrip()) > WIDTH and more:
        more = more.rpartition(", ")[0] or more.rpartition(" ")[0]
    return line[:WIDTH]


def _commands(text: str) -> list[str]:
    """Lines to be copied. SQL is broken between words, never within a text, so that its meaning stays."""
    lines = [""]
    for word in re.findall(r"(?:'[^']*'|[^\s'])+", text) if text.endswith(";") else [text]:
        if lines[-1] and len(lines[-1]) + 1 + len(word) > WIDTH - 4:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return [f"    {line}" for line in lines]


def _marked(mark: str, text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent=f"{mark} ", subsequent_indent="  ")


EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(part: float, width: int) -> str:
    """A share between 0 and 1 as a bar of at most `width` columns."""
    eighths = round(min(max(part, 0), 1) * width * 8)
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")
