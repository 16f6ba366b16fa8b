"""The rules for trouble: each has a code, a level, thresholds, a sentence and a fix.

`recrawl status` shows the first rule that finds something, so the most urgent stand first. `recrawl doctor` shows all
that have a line for the case that all is well. `make golden` writes those that Prometheus can see to
docs/monitoring/prometheus-alerts.yml. The order: what is wrong, the most urgent first; then what sets the pace of a
crawl without trouble; then two rules without a function, which only Prometheus can see.

To add a rule, write a function in its place of the order below. The code of the rule is the name of the function.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from recrawl.view.facts import OPEN, Facts
from recrawl.view.figures import ALWAYS, DAY, HOUR, MINUTE, Figures, LastRun
from recrawl.view.rule import Alert, Details, Fix, Level, Rule
from recrawl.words import count, either, interval, lasting, literal, pace, percent, size, things, when

FEW = 20  # events: fewer say nothing about shares
STANDSTILL = timedelta(minutes=5)  # without a report, while a host is ready
SLOW = timedelta(minutes=1)  # that a ready host waits for a crawler
UNWATCHED = timedelta(days=1)  # without a worker and without a report: the crawl is not in use
SILENT = timedelta(minutes=1)  # without upkeep
LONG_OPEN = timedelta(minutes=15)  # a transaction
MANY_FAIL, MOST_FAIL = 0.2, 0.5  # of the fetches
MANY_BLOCKED, MOST_BLOCKED, FEW_BLOCKED = 0.1, 0.9, 5  # two shares of the hosts; a number of hosts
UNUSED = 0.1  # of the budget
JOB_LATE = timedelta(minutes=5)  # that a job is due and no job runs
MISSED = 3  # a job that waits for another job is late after this number of its own intervals
EXPIRED = UNUSED_SLOTS = 0.05  # of the pages that were handed out
REJECTED = 0.02  # of the reports
UNTOLD = 0.5  # of the fetches that could have shown a change
SKIPPED = 0.05  # of the revisits
LESS_FRESH, COVERED = 0.1, 0.9  # of the value of all pages
OVERSPENT = 1.1  # times the budget
OTHER_PAGES = 0.3  # of all pages, added since the last allocation
BIG_HOST, MANY_PAGES = 0.5, 1000  # a share of all pages; a number of pages
CLOCK = timedelta(seconds=2)
NAPTIME = timedelta(seconds=20)  # autovacuum_naptime: the time between two runs of autovacuum
KEPT_BYTES, BEHIND = 1 << 30, 1_000_000  # of write-ahead log; transactions
DEAD, MANY_DEAD = 2.0, 100_000  # dead rows per live row; a number of rows

WORKER = Fix("worker", "Start a worker. It learns, divides the budget and keeps these figures", "recrawl worker")
SESSIONS = Fix(
    "worker",
    "See what the worker waits for, then restart it",
    "SELECT pid, state, wait_event_type, xact_start, query FROM pg_stat_activity "
    "WHERE application_name LIKE 'recrawl%' AND pid <> pg_backend_pid();",
)
TRANSACTIONS = Fix(
    "transaction",
    "See whose transaction it is. pg_terminate_backend(pid) ends it",
    "SELECT pid, usename, application_name, state, xact_start FROM pg_stat_activity "
    "WHERE datname = current_database() AND xact_start < now() - interval '1 minute' ORDER BY xact_start;",
)
ALLOCATE = Fix("allocation", "Divide the budget anew", "recrawl run allocate")
LONGER_LEASE = Fix(
    "leases",
    "Take fewer pages in one call, or take a longer lease",
    "SELECT * FROM recrawl.next_pages(20, lease => '30 minutes');",
)

REPORT = 'SELECT * FROM recrawl.report(\'[{"page_id": 0, "status": 200}]\');'
NEXT_PAGES = Fix("crawlers", "See which pages come next, without leasing them", "recrawl look 5")

_rules: list[Rule] = []
RuleFunction = Callable[[Facts], Details | None]


def rule(level: Level, means: str = "", fix: Fix | None = None, **more: Any) -> Callable[[RuleFunction], RuleFunction]:
    """Adds a rule. Its code is the name of the function that finds the trouble."""

    def add(find: RuleFunction) -> RuleFunction:
        _rules.append(Rule(find.__name__, level, find, means, fix, **more))
        return find

    return add


# ----------------------------------------------------------------------------------------------- parts of sentences


def _is_crawled(figures: Figures) -> bool:
    """Whether a crawler reported within STANDSTILL."""
    return figures.quiet is not None and figures.quiet < STANDSTILL


def _at_least(wait: timedelta | None, limit: timedelta) -> bool:
    return wait is not None and wait >= limit


def _waits_for_crawlers(figures: Figures, limit: timedelta) -> bool:
    """Whether the first ready host has waited for that long. A pause stops the wait for crawlers."""
    return _at_least(figures.now.ready_wait, limit) and not figures.now.paused


def _ready_hosts(figures: Figures) -> str:
    """Ready hosts are counted up to 1,000."""
    n, wait = figures.now.hosts_ready, lasting(figures.now.ready_wait)
    hosts = "One host is ready, and" if n == 1 else f"{count(n)} hosts are ready, and the first"
    return f"{'At least ' if n >= 1000 else ''}{hosts} has waited {wait} for a crawler."


def _pace(figures: Figures) -> str:
    rate = figures.now.fetches_per_second
    fetches = f"{pace(rate, 'fetches')} over the last five minutes." if rate else ""
    last = "" if figures.quiet is None else f"The last report came {lasting(figures.quiet)} ago."
    return f"{fetches} {last}".strip()


def _in_force(run: LastRun, as_of: datetime) -> str:
    if run.job in ALWAYS:
        return f"It has failed for {lasting(as_of - run.started_at)}. The worker tries it again and again."
    if run.succeeded_at is None:
        return "It never succeeded."
    return f"Its result of {lasting(as_of - run.succeeded_at)} ago stays in force."


def _share_of_day(facts: Facts, bad: float, total: float, says: str, fix: Fix | None = None) -> Details:
    of_all = f"{count(bad)} of {count(total)} in {facts.figures.day.covers(facts.figures.now.as_of)}."
    return Details(f"{percent(bad / total, 0)} of the {says}.", of_all, fix=fix)


# --------------------------------------------------------------------------------------------------------- the database


@rule(
    "trouble",
    fix=Fix("database", "Create the tables, or bring them to the newest version", "recrawl migrate"),
    ok_line="The database has the version of this program.",
    is_alone=True,
)
def database(facts: Facts) -> Details | None:
    upgrade = Fix("program", "Install the newest version of recrawl", "pip install --upgrade 'recrawl[server]'")
    return {
        "none": Details("This database holds no crawl yet.", "The schema recrawl is missing."),
        "older": Details("The database is older than this program.", "This program cannot read its tables."),
        "newer": Details(
            "The database is newer than this program.", "A later version of recrawl migrated it.", fix=upgrade
        ),
    }.get(facts.figures.database)


# ----------------------------------------------------------------------------------------------- no page is handed out


@rule(
    "ok",
    "Add the URLs to start from. Crawlers report the links that they find there, and recrawl adds them.",
    Fix("pages", "Add URLs, or a file with one URL per line", "recrawl add https://example.com/"),
    is_alone=True,
)
def empty(facts: Facts) -> Details | None:
    return None if facts.figures.ever.has_pages else Details("Ready. There is no page yet.")


@rule(
    "warn",
    "next_pages returns nothing while the crawl is paused. Reports are still accepted.",
    Fix("paused", "Resume the crawl", "SELECT recrawl.resume();"),
    ok_line="The crawl is not paused.",
    alert=Alert("The crawl has been paused for a day.", "recrawl_paused == 1", "1d"),
    is_alone=True,
)
def paused(facts: Facts) -> Details | None:
    now = facts.figures.now
    leased = f"{things(now.leased, 'page')} {either(now.leased, 'is', 'are')} still leased." if now.leased else ""
    return Details("The crawl is paused: no page is handed out.", leased) if now.paused else None


@rule(
    "trouble",
    "Pages that are added or reported reach the queue only through upkeep. Until then they are not handed out.",
    Fix("doctor", "Check everything", "recrawl doctor"),
    ok_line="Added and reported pages reach the queue.",
    alert=Alert(
        "New pages and due times have not reached the queue for {{ $value | humanizeDuration }}.",
        f"recrawl_inbox_wait_seconds > {SILENT.seconds}",
        "5m",
    ),
)
def inbox_stuck(facts: Facts) -> Details | None:
    now = facts.figures.now
    # Without a worker only next_pages does upkeep, and crawlers may fetch for minutes between two calls.
    limit = SILENT if now.worker_is_running else STANDSTILL
    if not _at_least(now.inbox_wait, limit) or not (now.worker_is_running or _is_crawled(facts.figures)):
        return None  # without a worker and without crawlers nobody does upkeep
    is_open = _at_least(now.longest_transaction, SILENT)
    return Details(
        f"New pages and due times have not reached the queue for {lasting(now.inbox_wait)}.",
        f"A transaction that has been open for {lasting(now.longest_transaction)} may hold their locks."
        if is_open
        else "A worker runs, but its upkeep does not succeed. Its log says why."
        if now.worker_is_running
        else "No worker runs, and the upkeep that crawlers do is not enough.",
        fix=TRANSACTIONS if is_open else None if now.worker_is_running else WORKER,
    )


@rule(
    "trouble",
    "The worker is connected to the database but does no work. It may wait for a lock, or it was stopped.",
    SESSIONS,
    ok_line="No connected worker is stuck.",
    alert=Alert(
        "The worker answers, but it has done no upkeep for five minutes, or its figures are ten minutes old.",
        "max_over_time(recrawl_worker_is_running[5m]) == 0 or time() - recrawl_vitals_timestamp_seconds > 600",
        "1m",
    ),
)
def worker_silent(facts: Facts) -> Details | None:
    now = facts.figures.now
    if now.worker_is_running or not facts.figures.workers:
        return None
    silence = None if now.upkeep_at is None else now.as_of - now.upkeep_at
    return Details(
        "The worker is silent.",
        "" if silence is None else f"The last upkeep, by it or by a crawler, was {lasting(silence)} ago.",
        level=None if _at_least(silence, SILENT) else "warn",
    )


@rule("ok")
def never_fetched(facts: Facts) -> Details | None:
    now = facts.figures.now
    if facts.figures.reported_at is not None:
        return None
    if now.leased:
        return Details(f"The first {things(now.leased, 'page')} are leased.", "No crawler has reported yet.")
    if facts.figures.ever.has_handed_out and _waits_for_crawlers(facts.figures, STANDSTILL):
        return None
    about, waiting = "About " if now.is_estimate else "", now.new_waiting + now.due
    return Details(
        "Ready. No page was fetched yet.",
        f"{about}{things(waiting, 'page')} {either(waiting, 'waits', 'wait')} for a crawler.",
        fix=NEXT_PAGES,
    )


@rule(
    "trouble",
    "No page is lost: when a lease ends, its pages are handed out again.",
    NEXT_PAGES,
    ok_line="Crawlers report, if there is anything to fetch.",
    alert=Alert(
        "Crawlers do not report, although the first ready host has waited for {{ $value | humanizeDuration }}.",
        f"recrawl_ready_wait_seconds > {STANDSTILL.seconds} "
        f"unless time() - recrawl_last_report_timestamp_seconds < {STANDSTILL.seconds} "
        "unless recrawl_paused == 1",
        "5m",
    ),
)
def standing_still(facts: Facts) -> Details | None:
    figures = facts.figures
    now, quiet = figures.now, figures.quiet
    began = figures.ever.has_handed_out or figures.reported_at is not None
    if _is_crawled(figures) or not began or not _waits_for_crawlers(figures, STANDSTILL):
        return None
    if not (now.worker_is_running or figures.workers or (quiet is not None and quiet < UNWATCHED)):
        return None
    calls = sum(minute.calls for minute in figures.minutes if minute.at > now.as_of - STANDSTILL)
    leased = f" {things(now.leased, 'page')} {either(now.leased, 'is', 'are')} leased." if now.leased else ""
    return Details(
        f"The crawl stands still: no crawler has reported for {'many hours' if quiet is None else lasting(quiet)}.",
        f"{_ready_hosts(figures)} "
        + (
            "Crawlers call next_pages and report nothing: read their logs."
            if calls or now.leased
            else "No crawler calls next_pages: start your crawlers, or read their logs."
        )
        + leased,
    )


@rule(
    "warn",
    "Hosts that answer with errors, 429 or 503 are given time, and requested again later.",
    Fix(
        "failures",
        "See which hosts fail",
        "SELECT host, failures, blocked_reason FROM recrawl.host_status ORDER BY failures DESC LIMIT 10;",
    ),
    ok_line="Most fetches succeed.",
    alert=Alert(
        f"More than {percent(MANY_FAIL, 0)} of the fetches fail.",
        'sum without (outcome) (rate(recrawl_fetches_total{outcome=~"failed|throttled"}[30m])) '
        f"> {MANY_FAIL} * sum without (outcome) (rate(recrawl_fetches_total[30m])) "
        f"and sum without (outcome) (increase(recrawl_fetches_total[30m])) > {FEW}",
        "30m",
    ),
)
def fetches_fail(facts: Facts) -> Details | None:
    hour, day = facts.figures.hour, facts.figures.day
    bad = hour.failed + hour.throttled
    # If all fetches of the last day failed, two are enough: a new crawl without a network makes only a few.
    all_failed = bad == hour.fetches and day.failed + day.throttled >= day.fetches
    if hour.fetches < (2 if all_failed else FEW) or bad < MANY_FAIL * hour.fetches:
        return None
    is_most = bad >= MOST_FAIL * hour.fetches
    kinds = {
        "had no answer or an error": hour.failed,
        "were answered with 429 or 503": hour.throttled,
        "were forbidden by robots.txt": hour.denied,
        "found no page": hour.missing,
    }
    return Details(
        f"{percent(bad / hour.fetches, 0)} of the last hour's fetches failed.",
        f"Of {things(hour.fetches, 'fetch', 'fetches')}: "
        + ", ".join(f"{count(n)} {kind}" for kind, n in kinds.items() if n)
        + "."
        + (" Does the network of the crawlers work?" if is_most else ""),
        level="trouble" if is_most else None,
    )


@rule(
    "warn",
    "The number of crawlers limits this crawl, not the gaps or the budget.",
    Fix(
        "crawlers",
        "Start more crawlers, or let each take more pages in one call",
        "SELECT * FROM recrawl.next_pages(100, ahead => '2 s');",
    ),
    ok_line="No ready host waits long for a crawler.",
    alert=Alert(
        "The crawlers are too slow: ready hosts have waited for more than a minute.",
        f"min_over_time(recrawl_ready_wait_seconds[15m]) > {SLOW.seconds} "
        f"and time() - recrawl_last_report_timestamp_seconds < {STANDSTILL.seconds} unless recrawl_paused == 1",
        "15m",
    ),
)
def crawlers_slow(facts: Facts) -> Details | None:
    figures = facts.figures
    if not _waits_for_crawlers(figures, SLOW) or standing_still(facts):
        return None
    return Details(
        "The crawlers are too slow." if _is_crawled(figures) else "The crawlers are too slow, or away.",
        f"{_pace(figures)} {_ready_hosts(figures)}",
    )


# ------------------------------------------------------------------------------------------------- worker and database


@rule(
    "warn",
    "Crawlers still get pages. But change rates are not learned, the budget is not divided anew, and the figures on "
    "this screen are not renewed.",
    WORKER,
    ok_line="A worker is connected.",
)
def no_worker(facts: Facts) -> Details | None:
    return None if facts.figures.now.worker_is_running or facts.figures.workers else Details("No worker runs.")


@rule(
    "warn",
    "Rows that it locked are not available, and PostgreSQL cannot remove rows that were deleted since it began.",
    TRANSACTIONS,
    ok_line=f"No transaction has been open for {lasting(OPEN)}.",
    alert=Alert(
        "A transaction has been open for {{ $value | humanizeDuration }}.",
        f"recrawl_longest_transaction_seconds > {LONG_OPEN.seconds}",
        "5m",
    ),
)
def transaction_open(facts: Facts) -> Details | None:
    if not facts.is_checkup:
        longest = facts.figures.now.longest_transaction
        return (
            Details(f"A transaction has been open for {lasting(longest)}.") if _at_least(longest, LONG_OPEN) else None
        )
    if not facts.transactions:
        unseen = Details(
            "This login cannot see how long the transactions of other logins have been open.", level="unseen"
        )
        return None if facts.server.sees_all else unseen
    worst = max(facts.transactions, key=lambda each: (each.holds_hosts, each.age))
    name = (
        f"prepared transaction {worst.gid}"
        if worst.pid is None
        else f"transaction of {worst.login}"
        + (f" ({worst.program})" if worst.program else "")
        + f", process {worst.pid},"
    )
    locks = "It locks hosts: no page of them is handed out until it ends." if worst.holds_hosts else ""
    others = len(facts.transactions) - 1
    more = f"{count(others)} more {either(others, 'has', 'have')} been open for long." if others else ""
    return Details(
        f"The {name} has been open for {lasting(worst.age)}, {worst.state}.",
        " ".join(sentence for sentence in (locks, more) if sentence),
        level="trouble" if worst.holds_hosts else None,
        do=f"ROLLBACK PREPARED {literal(worst.gid or '')};"
        if worst.pid is None
        else f"SELECT pg_terminate_backend({worst.pid});",
    )


@rule(
    "warn",
    fix=Fix("job", "Run it by hand and watch", "recrawl run allocate"),
    ok_line="No job fails.",
    alert=Alert(
        "The job {{ $labels.job_name }} fails. Failures in a row: {{ $value }}. The result of its last success stays "
        "in force.",
        "recrawl_job_failures_since_success > 0",
        "1h",
        do="recrawl run {{ $labels.job_name }}",
    ),
)
def job_failing(facts: Facts) -> Details | None:
    failed = [run for run in facts.figures.runs if run.result == "failed" or (run.ok is False and run.failures)]
    if not failed:
        return None
    run = max(failed, key=lambda run: run.failures)
    often = "failed" if run.failures <= 1 else f"failed {run.failures} times in a row"
    message = (run.message or "It did not say why").strip().rstrip(".")
    return Details(
        f"The job {run.job} {often}.",
        f"{message[:1].upper()}{message[1:200]}. {_in_force(run, facts.figures.now.as_of)}",
        do=f"recrawl run {run.job}",
    )


@rule(
    "warn",
    "Its last result stays in force and grows old.",
    SESSIONS,
    ok_line="Every job runs as often as it should.",
    alert=Alert(
        "The job {{ $labels.job_name }} should have started {{ $value | humanizeDuration }} ago.",
        f"time() - recrawl_job_due_timestamp_seconds > {JOB_LATE.seconds} "
        "unless on (instance) recrawl_job_running_since_timestamp_seconds "
        f"or time() - recrawl_job_due_timestamp_seconds > {MISSED} * recrawl_job_interval_seconds",
        "5m",
    ),
)
def job_late(facts: Facts) -> Details | None:
    """A worker runs one batch job at a time, and starts the first after a minute. So while a worker runs, a job is late
    only if there are figures of five of the last seven minutes."""
    figures = facts.figures
    as_of = figures.now.as_of
    watched = sum(minute.at >= as_of - JOB_LATE - 2 * MINUTE for minute in figures.minutes) * MINUTE
    if not (watched >= JOB_LATE if figures.now.worker_is_running else figures.workers):
        return None
    runs = [job for job in figures.schedule if job.running_since]
    for job in figures.schedule:
        late = as_of - job.due_at if job.due_at and job.every else timedelta(0)
        if late > JOB_LATE and (not runs or late > MISSED * (job.every or late)):
            return Details(
                f"The job {job.job} should have started {lasting(late)} ago.",
                f"It waits for the job {runs[0].job}, which has run for {lasting(as_of - runs[0].running_since)}."
                if runs and runs[0].running_since
                else "A worker is connected, but it starts no job.",
            )
    return None


@rule(
    "warn",
    "A host is blocked after 429 or 503, after many failed fetches, or by an operator. Its pages wait for the end "
    "of the block.",
    Fix(
        "blocks",
        "See which hosts are blocked, and until when. A longer gap (set_host) helps against 429 and 503",
        "SELECT host, blocked_until, blocked_reason, pages FROM recrawl.host_status "
        "WHERE blocked_until IS NOT NULL ORDER BY pages DESC LIMIT 10;",
    ),
    ok_line="No host is blocked.",
    alert=Alert(
        f"{{{{ $value }}}} hosts are blocked, more than {percent(MANY_BLOCKED, 0)} of all.",
        f"recrawl_hosts_blocked > {MANY_BLOCKED} * recrawl_hosts and "
        f"(recrawl_hosts_blocked >= {FEW_BLOCKED} or recrawl_hosts_blocked >= {MOST_BLOCKED} * recrawl_hosts)",
        "30m",
    ),
)
def hosts_blocked(facts: Facts) -> Details | None:
    figures, checkup = facts.figures, facts.checkup
    minute = figures.minute
    hosts = minute.hosts or 0
    blocked = checkup.blocked_hosts if facts.is_checkup else minute.hosts_blocked or 0
    if not blocked:
        return None
    due = minute.due_blocked or 0
    of = f" of {count(hosts)}" if hosts > blocked else ""
    which = "The only host is" if hosts == 1 else f"{count(blocked)}{of} {either(blocked, 'host is', 'hosts are')}"
    known = checkup.largest_blocked
    names = f"{':' if len(known) == blocked else ', among them'} {', '.join(known)}" if known else ""
    if hosts and blocked >= MOST_BLOCKED * hosts and (figures.now.due or figures.now.new_waiting):
        level: Level = "warn" if _is_crawled(figures) else "trouble"
        return Details(f"Hardly anything can be fetched: {which[:1].lower()}{which[1:]} blocked{names}.", level=level)
    if blocked >= max(FEW_BLOCKED, MANY_BLOCKED * hosts):
        waits = f"{things(due, 'late page')} {either(due, 'waits', 'wait')} for them."
        return Details(f"{which} blocked{names}.", waits)
    waits_long = sum(host.due for host in figures.late_hosts if host.waits_for == "block") >= FEW
    return Details(f"{which} blocked{names}.", level="warn" if waits_long else "ok") if facts.is_checkup else None


# ------------------------------------------------------------------------------------------------ what crawlers report


@rule(
    "warn",
    "The leases of these pages ended before a report came. Crawlers were killed, or they take more pages than they can "
    "fetch while the lease lasts.",
    LONGER_LEASE,
    ok_line="Crawlers report their pages before the lease ends.",
    alert=Alert(
        f"More than {percent(EXPIRED, 0)} of the pages that are handed out are never reported.",
        f"rate(recrawl_pages_expired_total[30m]) > {EXPIRED} * rate(recrawl_pages_handed_out_total[30m]) "
        f"and increase(recrawl_pages_expired_total[30m]) > {FEW}",
        "30m",
    ),
    in_status=False,
)
def leases_end(facts: Facts) -> Details | None:
    day = facts.figures.day
    if day.handed_out < FEW or day.expired <= EXPIRED * day.handed_out:
        return None
    return _share_of_day(facts, day.expired, day.handed_out, "pages that were handed out were never reported")


@rule(
    "warn",
    "The log of a crawler says why: its visits need time before the request, as with a browser, or there are more "
    "pages than it can visit at the same time.",
    Fix(
        "slots",
        "Tell the client how many seconds a visit needs before its request, or raise concurrency",
        "Client(…, preparation=0.5, ahead=5)",
    ),
    ok_line="Crawlers send their requests in time.",
    alert=Alert(
        f"More than {percent(UNUSED_SLOTS, 0)} of the pages that are handed out are released too late for a request.",
        f"rate(recrawl_slots_missed_total[30m]) > {UNUSED_SLOTS} * rate(recrawl_pages_handed_out_total[30m]) "
        f"and increase(recrawl_slots_missed_total[30m]) > {FEW}",
        "30m",
    ),
)
def slots_missed(facts: Facts) -> Details | None:
    hour = facts.figures.hour
    if hour.missed < FEW or hour.missed <= UNUSED_SLOTS * hour.handed_out:
        return None
    return Details(
        f"Crawlers miss {percent(hour.missed / max(hour.handed_out, hour.missed), 0)} of their slots.",
        f"In the last hour they released {things(hour.missed, 'page')} after the time for the request had passed.",
    )


@rule(
    "warn",
    "Such reports do not change the schedule. The column `detail` of the result of report() gives the reason.",
    Fix("reports", "Let crawlers log the code and detail that report() returns, as here for an unknown page", REPORT),
    ok_line="Reports are accepted.",
    alert=Alert(
        f"More than {percent(REJECTED, 0)} of the reports are not accepted.",
        'sum without (reason) (rate(recrawl_reports_not_accepted_total{reason=~"stale_lease|refused"}[30m])) '
        f"> {REJECTED} * sum without (outcome) (rate(recrawl_fetches_total[30m])) "
        f"and sum without (reason) (increase(recrawl_reports_not_accepted_total[30m])) > {FEW}",
        "30m",
    ),
    in_status=False,
)
def reports_rejected(facts: Facts) -> Details | None:
    day = facts.figures.day
    reports = day.fetches + day.stale + day.refused
    if reports < FEW or day.stale + day.refused <= REJECTED * reports:
        return None
    bad, why = max(
        (day.stale, "came after their lease had ended"), (day.refused, "name an unknown page or are not valid")
    )
    return _share_of_day(facts, bad, reports, f"reports {why}", LONGER_LEASE if bad == day.stale else None)


@rule(
    "warn",
    "From such a fetch recrawl cannot learn how often the page changes.",
    Fix(
        "changes",
        "Let crawlers report content_hash or changed, or the status 304",
        'SELECT * FROM recrawl.report(\'[{"page_id": 1, "status": 200, "content_hash": "5d41402a"}]\');',
    ),
    ok_line="Reports say whether pages changed.",
    alert=Alert(
        "Most reports do not say whether the page changed.",
        f"increase(recrawl_fetches_change_unknown_total[6h]) > {UNTOLD} * sum without (outcome) "
        '(increase(recrawl_fetches_total{outcome=~"changed|unchanged"}[6h])) '
        f"and increase(recrawl_fetches_change_unknown_total[6h]) > {FEW}",
        "1h",
    ),
    in_status=False,
)
def changes_not_reported(facts: Facts) -> Details | None:
    day = facts.figures.day
    could = day.changed + day.unchanged
    if could < FEW or day.change_unknown <= UNTOLD * could:
        return None
    return _share_of_day(facts, day.change_unknown, could, "reports do not say whether the page changed")


# ------------------------------------------------------------------------------------ budget, allocation and freshness


@rule(
    "warn",
    "Pages were fetched so late that the next fetch was due already. The crawl makes fewer fetches than its allocation "
    "expects.",
    Fix("revisits", "See what late pages wait for: crawlers, gaps or blocks", "recrawl status"),
    ok_line="Few revisits are skipped.",
    alert=Alert(
        f"More than {percent(SKIPPED, 0)} of the revisits are skipped.",
        f"increase(recrawl_revisits_skipped_total[1h]) > {SKIPPED} * "
        "increase(recrawl_revisit_lateness_seconds_count[1h]) "
        f"and increase(recrawl_revisit_lateness_seconds_count[1h]) > {FEW}",
        "1h",
    ),
    in_status=False,
)
def revisits_skipped(facts: Facts) -> Details | None:
    day, now = facts.figures.day, facts.figures.now.as_of
    if day.revisits < FEW or day.skipped <= SKIPPED * day.revisits:
        return None
    return Details(
        f"{count(day.skipped)} revisits were skipped in {day.covers(now)}, and {count(day.revisits)} were made."
    )


@rule(
    "warn",
    "Revisits are late or skipped, or pages change more often than was known.",
    Fix("freshness", "Learn the change rates anew. The next allocation then uses them", "recrawl run rates"),
    ok_line="The crawl is as fresh as its allocation expects.",
    alert=Alert(
        "{{ $value | humanizePercentage }} of the value is fresh, more than "
        f"{count(100 * LESS_FRESH)} points less than the allocation expects.",
        "recrawl_freshness_ratio + 3 * recrawl_freshness_error_ratio "
        f"< recrawl_freshness_expected_ratio - {LESS_FRESH} and recrawl_covered_ratio > {COVERED}",
        "6h",
    ),
    in_status=False,
)
def less_fresh(facts: Facts) -> Details | None:
    found = [
        minute.fresh + 3 * (minute.fresh_error or 0) < minute.expected - LESS_FRESH
        for minute in facts.figures.minutes
        if minute.fresh is not None and minute.expected is not None and (minute.covered or 0) > COVERED
    ]
    minute = facts.figures.minute
    if len(found) < HOUR / MINUTE / 2 or not all(found):
        return None
    return Details(
        f"{percent(minute.fresh)} of the value is fresh, but the allocation expects {percent(minute.expected)}.",
        "This was so for the whole last hour.",
    )


@rule("warn", fix=ALLOCATE, ok_line="The allocation in force fits the settings and the pages.", in_status=False)
def allocation_outdated(facts: Facts) -> Details | None:
    last, figures, checkup = facts.figures.allocation, facts.figures, facts.checkup
    if last is None:
        return Details("There is no allocation yet: every page is fetched equally often.", level="ok")
    wanted, budget = figures.settings.get("objective"), figures.set_budget
    added, pages = checkup.added_since_allocation or 0, checkup.pages
    if wanted and wanted != last.objective:
        return Details(f"The allocation in force is for the objective {last.objective}. The setting is {wanted}.")
    if budget is not None and abs(budget - last.budget) > 0.05 * budget:
        return Details(
            f"The allocation in force is for {count(last.budget)} fetches a day. The setting is {count(budget)}."
        )
    if pages and added > max(FEW, OTHER_PAGES * pages):
        ago = lasting(figures.now.as_of - last.started_at)
        share = percent(min(1, added / pages), 0)
        return Details(f"{share} of the pages were added after the last allocation, {ago} ago.")
    return None


@rule(
    "warn",
    "Minimums (longest_interval), new pages, retries, boosts or fetch_now take more than the allocation plans.",
    ALLOCATE,
    ok_line="The crawl does not fetch more than its budget.",
    alert=Alert(
        f"The crawl fetches more than {OVERSPENT} times its budget: {{{{ $value | humanize }}}} fetches a second.",
        f"sum without (outcome) (rate(recrawl_fetches_total[1d])) "
        f"> {OVERSPENT} * avg_over_time(recrawl_budget_fetches_per_second[1d]) "
        "and recrawl_budget_fetches_per_second offset 1d",
        "2h",
    ),
    in_status=False,
)
def over_budget(facts: Facts) -> Details | None:
    day, budget = facts.figures.day, facts.figures.day.mean_budget
    if facts.figures.set_budget is None or budget is None or day.budget_minutes * MINUTE < 6 * HOUR:
        return None
    daily = day.budget_fetches * (DAY / (day.budget_minutes * MINUTE))
    if daily <= OVERSPENT * budget + FEW:
        return None
    return Details(f"The crawl makes {count(daily)} fetches a day, {percent(daily / budget, 0)} of its budget.")


@rule(
    "warn",
    "Does this host make up URLs without end? A limit keeps them out.",
    Fix("host", "Limit the pages of this host", "SELECT recrawl.set_host('example.com', max_pages => 10000);"),
    ok_line="No single host has most of the pages.",
    in_status=False,
)
def big_host(facts: Facts) -> Details | None:
    found = facts.checkup
    most, pages = found.most_pages or 0, found.pages or 0
    if pages < MANY_PAGES or most <= BIG_HOST * pages or most == pages:
        return None
    return Details(
        f"{found.largest_host} has {percent(most / pages, 0)} of all pages: {count(most)} of {count(pages)}.",
        do=f"SELECT recrawl.set_host({literal(found.largest_host or '')}, max_pages => {most});",
    )


# ---------------------------------------------------------------------------------------- the server, as doctor sees it


@rule(
    "warn",
    "Crawlers on this machine must use the column wait, not fetch_at.",
    Fix("clock", "See whether this machine's clock is synchronised", "timedatectl status"),
    ok_line="The clocks of this machine and of the server agree.",
)
def clocks_differ(facts: Facts) -> Details | None:
    if facts.asked_at is None or facts.server.clock is None:
        return None
    off = facts.server.clock - facts.asked_at
    side = "behind" if off > timedelta(0) else "ahead of"
    return (
        Details(f"The clock of this machine is {lasting(abs(off))} {side} the server's.") if abs(off) > CLOCK else None
    )


@rule(
    "warn",
    "PostgreSQL could not remove them. They make every scan slower.",
    Fix("vacuum", "See what keeps them", "VACUUM (VERBOSE) recrawl_internal.queue;"),
    ok_line="PostgreSQL removes deleted rows.",
)
def dead_rows(facts: Facts) -> Details | None:
    if not facts.server.vacuums:
        do = "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();"
        return Details("Autovacuum is off: deleted rows are never removed.", level="trouble", do=do)
    for table in facts.tables:
        if table.dead > max(MANY_DEAD, DEAD * table.live):
            return Details(
                f"The table {table.table} holds {count(table.dead)} dead rows and {count(table.live)} live rows.",
                do=f"VACUUM (VERBOSE) recrawl_internal.{table.table};",
            )
    return None


@rule(
    "warn",
    "docs/in-production.md says what each setting is for. shared_buffers needs a restart of PostgreSQL.",
    Fix("settings", "Set it, as a superuser or on the settings page of a managed server", "SHOW autovacuum_naptime;"),
    ok_line="The settings of the server fit a crawl.",
    in_status=False,
)
def server_settings(facts: Facts) -> Details | None:
    server = facts.server
    wanted = {
        "autovacuum_naptime": (server.naptime <= NAPTIME, "10s"),
        "wal_compression": (server.wal_compression not in ("on", "pglz"), "off"),
        "max_wal_size": (server.wal_bytes >= 1 << 31, "2GB"),
        "shared_buffers": (server.buffer_bytes >= 1 << 28, "256MB"),
        "fsync": (server.syncs, "on"),
        "full_page_writes": (server.writes_full_pages, "on"),
    }
    wrong = {name: value for name, (is_well, value) in wanted.items() if not is_well}
    if not wrong or not facts.is_checkup:
        return None
    statements = [f"ALTER SYSTEM SET {name} = '{value}';" for name, value in wrong.items()]
    return Details(
        f"{things(len(wrong), 'setting')} of the server {either(len(wrong), 'does', 'do')} not fit a crawl: "
        f"{', '.join(wrong)}.",
        do=" ".join([*statements, "SELECT pg_reload_conf();"]),
    )


@rule(
    "warn",
    "Is the replica gone? Then drop its slot.",
    Fix("replica", "Drop the slot of a replica that is gone", "SELECT pg_drop_replication_slot('name');"),
    ok_line="No replica is far behind.",
)
def replica_behind(facts: Facts) -> Details | None:
    for slot in facts.slots:
        do = f"SELECT pg_drop_replication_slot({literal(slot.name)});"
        if (slot.transactions_behind or 0) > BEHIND:
            return Details(
                f"The replication slot {slot.name} is {count(slot.transactions_behind)} transactions behind: rows "
                "deleted since then cannot be removed.",
                do=do,
            )
        if not slot.active and (slot.kept_bytes or 0) > KEPT_BYTES:
            return Details(
                f"No replica reads the replication slot {slot.name}, and the server keeps "
                f"{size(slot.kept_bytes or 0)} of write-ahead log for it.",
                do=do,
            )
    return None


@rule(
    "warn",
    "Somebody who takes over a crawler controls the whole server.",
    Fix("login", "Give crawlers a login of their own", "CREATE ROLE crawler LOGIN IN ROLE recrawl_crawler;"),
    ok_line="No crawler is connected as a superuser.",
)
def crawler_is_superuser(facts: Facts) -> Details | None:
    if facts.is_embedded:
        return None  # only those who may read its files can connect
    if facts.superusers:
        return Details(f"Crawlers log in as {facts.superusers[0]}, a superuser.")
    unseen = Details("This login cannot see whether crawlers are superusers.", level="unseen")
    return None if facts.server.sees_all else unseen


# ------------------------------------------------------------------------------------------------- what sets the pace


@rule("ok")
def nothing_due(facts: Facts) -> Details | None:
    now = facts.figures.now
    if now.due or now.new_waiting:
        return None
    then = f" The next page is due {when(now.next_ready_at, now.as_of)}." if now.next_ready_at else ""
    return Details("The crawl keeps up: no page is late.", f"{_pace(facts.figures)}{then}")


@rule("ok", fix=Fix("allocation", "Divide the budget now, without waiting for the worker", "recrawl run allocate"))
def no_allocation(facts: Facts) -> Details | None:
    """An allocation is not needed before the first fetch, or while no page waits."""
    figures = facts.figures
    if figures.allocation or figures.reported_at is None or not (figures.now.due or figures.now.new_waiting):
        return None
    daily = float(facts.figures.settings.get("frequency") or 1)
    often = "once a day" if daily == 1 else f"{count(daily)} times a day"
    return Details(
        "The crawl works. There is no allocation yet.",
        f"{_pace(facts.figures)} Until the first allocation every page is fetched {often}.",
    )


@rule("ok")
def budget_unused(facts: Facts) -> Details | None:
    last = facts.figures.allocation
    if last is None or facts.figures.budget is None or last.unused <= UNUSED * last.budget:
        return None
    unused = count(last.unused)
    why = (
        f"The gaps of {things(last.capped_hosts, 'host')} allow no more."
        if last.capped_hosts
        else "No gap limits the pages: the policy or the setting shortest_interval gives them no more."
    )
    return Details(
        "The crawl keeps up. A part of the budget is not used.",
        f"{_pace(facts.figures)} The allocation has no use for {unused} of {count(last.budget)} fetches a day. {why}",
        fix=Fix("budget", f"{unused} fetches a day are not used. See what a lower budget costs", "recrawl plan"),
    )


@rule("ok")
def budget_sets_pace(facts: Facts) -> Details | None:
    """Pages do not wait for hosts: the whole budget is used."""
    last = facts.figures.allocation
    if facts.figures.budget is None or last is None or last.unused > 0.01 * last.budget:
        return None
    return Details("The crawl keeps up. The budget sets the pace.", _pace(facts.figures))


@rule("ok")
def gaps_set_pace(facts: Facts) -> Details:
    """If there is no budget and no page waits for a gap, the shortest interval sets the pace."""
    figures = facts.figures
    capped = figures.allocation.capped_hosts if figures.allocation else 0
    waits = figures.budget or capped or figures.now.new_waiting or figures.minute.due_gap
    limit = "The gaps of the hosts set" if waits else "No budget is set: the shortest interval sets"
    return Details(f"The crawl keeps up. {limit} the pace, not your crawlers.", _pace(figures))


@rule("ok")
def gap_too_short(facts: Facts) -> Details | None:
    """This is never the first finding: it only adds its fix to a verdict."""
    for host in facts.figures.late_hosts:
        if host.waits_for == "block" and host.due >= FEW and (host.blocked_reason or "").endswith(("429", "503")):
            gap = interval(2 * (host.gap or timedelta(seconds=1)))
            says = f"{host.host} is blocked: {host.blocked_reason}. {count(host.due)} of its pages are late."
            do = f"SELECT recrawl.set_host({literal(host.host)}, gap => {gap});"
            return Details(says, fix=Fix("host", f"{says} A longer gap may help", do))
    return None


# ---------------------------------------------------------------------------------------- what only Prometheus sees

_rules += [
    Rule(
        "worker_gone",
        "trouble",
        None,
        "Crawlers still get pages, because next_pages does the upkeep. But no job runs, and no other alert can fire.",
        Fix("worker", "Read the worker's log, and start it again", "recrawl worker"),
        alert=Alert("The worker does not answer.", 'up{job="recrawl"} == 0 or absent(up{job="recrawl"})', "2m"),
    ),
    Rule(
        "database_gone",
        "trouble",
        None,
        "The worker runs, but PostgreSQL does not answer within 1.5 s, and crawlers probably get no pages. "
        "Or the metrics cannot be made: then the log of the worker says why.",
        Fix("database", "See whether PostgreSQL runs and accepts connections", "recrawl doctor"),
        alert=Alert("The database does not answer.", "recrawl_up == 0", "2m"),
    ),
]

RULES = tuple(_rules)
