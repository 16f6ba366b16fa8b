"""Does it work, what sets the pace, what is to be done: a sentence from the figures, by rules that are tried in turn.

Pure: no database and no clock. The codes are a closed set, for programs; the words are for people.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from recrawl.view.figures import ALWAYS, Figures, LastRun
from recrawl.view.words.numbers import count, lasting, literal, share, when

Level = Literal["ok", "warn", "trouble"]

STANDSTILL = timedelta(minutes=5)  # no report, while hosts were free for all that time
UNWATCHED = timedelta(days=1)  # without a worker, after which reports are not remembered
SLOW = timedelta(minutes=1)  # a free host with work waits as long for a crawler
SILENT = timedelta(minutes=1)  # nobody looks after the inbox
HELD = timedelta(minutes=15)  # a transaction is open
MANY_FAIL, MOST_FAIL = 0.2, 0.5  # of the last hour's fetches
MANY_BLOCKED, MOST_BLOCKED = 0.1, 0.9  # of the hosts
FEW = 20  # fetches an hour, from which shares are told
UNSPENT = 0.1  # of the budget

MOST_MENDS = 3


@dataclass(frozen=True)
class Mend:
    """Something to do."""

    topic: str
    says: str
    do: str  # SQL or a command, to be copied


@dataclass(frozen=True)
class Verdict:
    code: str
    level: Level
    headline: str
    detail: str
    mends: tuple[Mend, ...] = ()


def verdict(figures: Figures) -> Verdict:
    """The first rule that has something to say; what later ones would mend stands behind its own mends."""
    found = [said for rule in RULES if (said := rule(figures))]
    first = found[0]
    mends = list(first.mends)
    if first.code not in ALONE:
        mends += [mend for other in found[1:] if other.level != "ok" for mend in other.mends[:1]]
        mends += hints(figures) if first.level == "ok" else ()
    topics: dict[str, Mend] = {}
    for mend in mends:
        topics.setdefault(mend.topic, mend)
    return Verdict(first.code, first.level, first.headline, first.detail, tuple(topics.values())[:MOST_MENDS])


# -- the database --


def not_migrated(figures: Figures) -> Verdict | None:
    if figures.database != "none":
        return None
    return Verdict(
        "not_migrated",
        "trouble",
        "This database holds no crawl yet.",
        "It was never migrated: the schema recrawl is missing.",
        (Mend("database", "Make the tables", "recrawl migrate"),),
    )


def database_old(figures: Figures) -> Verdict | None:
    if figures.database != "older":
        return None
    return Verdict(
        "database_old",
        "trouble",
        "The database is older than this program.",
        "Its tables are of an earlier version, so that this program cannot read it.",
        (Mend("database", "Bring it to the newest version", "recrawl migrate"),),
    )


def database_new(figures: Figures) -> Verdict | None:
    if figures.database != "newer":
        return None
    return Verdict(
        "database_new",
        "trouble",
        "The database is newer than this program.",
        "A later version of recrawl migrated it; this one cannot read it.",
        (Mend("program", "Install the newest version", "pip install --upgrade 'recrawl[server]'"),),
    )


# -- nothing is handed out --


def empty(figures: Figures) -> Verdict | None:
    if figures.ever.has_pages:
        return None
    return Verdict(
        "empty",
        "ok",
        "Ready. There is no page yet.",
        "Give it the URLs to begin with; what crawlers find there follows by itself.",
        (Mend("pages", "Add URLs, or a file with one a line", "recrawl add https://example.com/"),),
    )


def paused(figures: Figures) -> Verdict | None:
    if not figures.now.paused:
        return None
    out = f" {count(figures.now.leased)} pages are still out." if figures.now.leased else ""
    return Verdict(
        "paused",
        "warn",
        "Paused: nothing is handed out.",
        f"Somebody paused the crawl. Reports are taken in all the same.{out}",
        (Mend("paused", "Go on", "SELECT recrawl.resume();"),),
    )


def inbox_stuck(figures: Figures) -> Verdict | None:
    """What was added or reported does not come into the queue."""
    now = figures.now
    if not _longer(now.inbox_wait, SILENT) or not (now.worker_runs or _crawls(figures)):
        return None  # where nothing runs yet, nothing is to be expected
    held = _longer(now.longest_transaction, SILENT)
    return Verdict(
        "inbox_stuck",
        "trouble",
        f"New pages and due times wait: for {lasting(now.inbox_wait)} none came into the queue.",
        f"A transaction that is open for {lasting(now.longest_transaction)} holds them up."
        if held
        else "Upkeep runs, and does not get on: its log says why."
        if now.worker_runs
        else "No worker runs, and what crawlers do of it is not enough.",
        (OPEN_TRANSACTIONS if held else DOCTOR if now.worker_runs else START_WORKER,),
    )


def standing_still(figures: Figures) -> Verdict | None:
    now = figures.now
    began = figures.ever.has_handed_out or figures.reported_at is not None
    if _crawls(figures) or not began or not _longer(now.ready_wait, STANDSTILL):
        return None
    is_watched = now.worker_runs or figures.workers or (figures.quiet is not None and figures.quiet < UNWATCHED)
    if not is_watched:  # nothing is remembered of what is reported
        return None
    quiet = "many hours" if figures.quiet is None else lasting(figures.quiet)
    many = "More than " if now.hosts_ready >= 1000 else ""
    hosts = f"{many}{count(now.hosts_ready)} hosts are" if now.hosts_ready != 1 else "One host is"
    asks = sum(minute.asks for minute in figures.minutes if minute.at > now.as_of - STANDSTILL)
    cause = (
        "Crawlers ask, and report nothing: read their logs."
        if asks or now.leased
        else "The database answers, and no crawler asks: start them, or read their logs."
    )
    pages = f"{count(now.leased)} pages are" if now.leased != 1 else "One page is"
    out = f" {pages} out, and will be back when the lease has ended." if now.leased else ""
    return Verdict(
        "standing_still",
        "trouble",
        f"Standing still: no crawler has reported for {quiet}.",
        f"{hosts} free and {'have' if now.hosts_ready != 1 else 'has'} work; the first has waited "
        f"{lasting(now.ready_wait)}. {cause}{out} Nothing is lost.",
        (Mend("crawlers", "See what a crawler would get", "recrawl look 5"),),
    )


def failing(figures: Figures) -> Verdict | None:
    hour = figures.hour
    bad = hour.failed + hour.throttled
    if hour.fetches < FEW or bad < MANY_FAIL * hour.fetches:
        return None
    kind = "were told to slow down (429, 503)" if hour.throttled > hour.failed else "got no answer or an error"
    is_most = bad >= MOST_FAIL * hour.fetches
    return Verdict(
        "failing",
        "trouble" if is_most else "warn",
        f"{share(bad / hour.fetches)} of the last hour's fetches failed.",
        f"{count(bad)} of {count(hour.fetches)}: most of them {kind}. "
        + ("Does the crawlers' network work?" if is_most else "The hosts are given time, and asked again by and by."),
        (Mend("failures", "See which hosts fail", MOST_FAILURES),),
    )


def crawlers_slow(figures: Figures) -> Verdict | None:
    now = figures.now
    if not _longer(now.ready_wait, SLOW) or standing_still(figures):
        return None
    many = "more than " if now.hosts_ready >= 1000 else ""
    return Verdict(
        "crawlers_slow",
        "warn",
        "Working, but the crawlers are too slow." if _crawls(figures) else "The crawlers are too slow, or away.",
        f"{_pace(figures)} A host that is free and has work has waited {lasting(now.ready_wait)} for a crawler; "
        f"{many}{count(now.hosts_ready)} hosts are free.",
        (
            Mend(
                "crawlers",
                "Start more crawlers, or let each take more at once",
                "SELECT * FROM recrawl.next_pages(100, ahead => '10 s');",
            ),
        ),
    )


# -- what looks after it --


def worker_silent(figures: Figures) -> Verdict | None:
    now = figures.now
    if now.worker_runs or not figures.workers:
        return None
    silence = None if now.ticked_at is None else now.as_of - now.ticked_at
    since = "" if silence is None else f" The last upkeep, by it or by a crawler, was {lasting(silence)} ago."
    return Verdict(
        "worker_silent",
        "trouble" if _longer(silence, SILENT) else "warn",
        "The worker is silent.",
        f"It is connected, and does nothing: perhaps it waits for a lock, or was stopped.{since}",
        (Mend("worker", "See what it waits for", WORKERS),),
    )


def no_worker(figures: Figures) -> Verdict | None:
    if figures.now.worker_runs or figures.workers:
        return None
    return Verdict(
        "no_worker",
        "warn",
        "No worker runs.",
        "Crawlers get their pages all the same, but nothing is learnt of how often pages change, the budget is not "
        "divided anew, and these figures grow old.",
        (START_WORKER,),
    )


def transaction_held(figures: Figures) -> Verdict | None:
    held = figures.now.longest_transaction
    if not _longer(held, HELD):
        return None
    return Verdict(
        "transaction_held",
        "warn",
        f"A transaction is open for {lasting(held)}.",
        "What it has locked waits for it, and what is deleted meanwhile cannot be cleared away.",
        (OPEN_TRANSACTIONS,),
    )


def job_failing(figures: Figures) -> Verdict | None:
    failed = [run for run in figures.runs if run.fared == "failed" or (run.ok is False and run.failures)]
    if not failed:
        return None
    run = max(failed, key=lambda run: run.failures)
    often = "failed" if run.failures <= 1 else f"failed {run.failures} times in a row"
    return Verdict(
        "job_failing",
        "warn",
        f"Working, but the job {run.job} {often}.",
        f"{_sentence(run.message)} {_in_force(run, figures.now.as_of)}",
        (Mend("job", "Run it by hand and watch", f"recrawl run {run.job}"),),
    )


def hosts_block(figures: Figures) -> Verdict | None:
    minute = figures.minute
    if minute is None or not minute.hosts or not minute.hosts_blocked:
        return None
    hosts, blocked = minute.hosts, minute.hosts_blocked
    # Of a crawl of few hosts, too: where its one site shuts it out, nothing works.
    is_most = blocked >= MOST_BLOCKED * hosts and bool(figures.now.due or figures.now.new_waiting)
    if blocked < max(5, MANY_BLOCKED * hosts) and not is_most:
        return None
    which = "the only host is" if hosts == 1 else f"{share(blocked / hosts)} of the hosts are"
    return Verdict(
        "hosts_block",
        "trouble" if is_most and not _crawls(figures) else "warn",
        f"{'Hardly anything can be fetched:' if is_most else 'Working, but'} {which} blocked.",
        f"{count(blocked)} of {count(hosts)} asked to be left alone, failed too often, or are blocked by somebody; "
        f"{count(minute.due_blocked or 0)} pages that are due wait for that to end.",
        (Mend("blocks", "See which, and until when", BLOCKED_HOSTS),),
    )


# -- all is well --


def never_fetched(figures: Figures) -> Verdict | None:
    now = figures.now
    if figures.reported_at is not None:
        return None
    if now.leased:
        return Verdict(
            "never_fetched",
            "ok",
            f"{count(now.leased)} pages are out, the first that are fetched.",
            "No crawler has reported yet.",
        )
    if figures.ever.has_handed_out and _longer(now.ready_wait, STANDSTILL):
        return None
    return Verdict(
        "never_fetched",
        "ok",
        "Ready. Nothing was fetched yet.",
        f"{_about(now.is_estimate)}{count(now.new_waiting + now.due)} pages wait for a crawler to ask.",
        (Mend("crawlers", "What a crawler asks", "SELECT * FROM recrawl.next_pages(5);"),),
    )


def nothing_due(figures: Figures) -> Verdict | None:
    now = figures.now
    if now.due or now.new_waiting:
        return None
    then = f" The next is due {when(now.next_ready_at, now.as_of)}." if now.next_ready_at else ""
    return Verdict(
        "nothing_due",
        "ok",
        "Working, and keeping up. Nothing is due.",
        f"{_pace(figures)}{then}",
    )


def no_allocation(figures: Figures) -> Verdict | None:
    if figures.allocation is not None:
        return None
    daily = float(figures.settings.get("frequency") or 1)
    often = "once a day" if daily == 1 else f"{daily:,.3g} times a day"
    return Verdict(
        "no_allocation",
        "ok",
        "Working. Nothing is allocated yet.",
        f"{_pace(figures)} Until the first allocation every page is fetched {often}.",
        (Mend("allocation", "Divide the fetches now, not when the worker does", "recrawl run allocate"),),
    )


def budget_unspent(figures: Figures) -> Verdict | None:
    unspent = _unspent(figures)
    if unspent is None or figures.allocation is None:
        return None
    return Verdict(
        "budget_unspent",
        "ok",
        "Working, and keeping up. Hosts' gaps leave budget unused.",
        f"{_pace(figures)} {_free_hosts(figures)} Of {count(figures.allocation.budget)} fetches a day, "
        f"{count(unspent)} find no use within the hosts' gaps.",
    )


def budget_sets_pace(figures: Figures) -> Verdict | None:
    """Hosts are not what the pages wait for: no visit more is wanted than the budget has."""
    allocation = figures.allocation
    if figures.budget is None or allocation is None or allocation.unspent > 0.01 * allocation.budget:
        return None
    return Verdict(
        "budget_sets_pace",
        "ok",
        "Working, and keeping up. The budget sets the pace.",
        f"{_pace(figures)} {_free_hosts(figures)}",
    )


def gaps_set_pace(figures: Figures) -> Verdict:
    """Between requests to a host; or, where nobody has set a budget and no host has too many pages, to a page."""
    at_the_cap = figures.allocation.capped_hosts if figures.allocation else 0
    pace = "Hosts' gaps set" if figures.budget or at_the_cap else "No budget is set: the shortest interval sets"
    return Verdict(
        "gaps_set_pace",
        "ok",
        f"Working, and keeping up. {pace} the pace, not your crawlers.",
        f"{_pace(figures)} {_free_hosts(figures)}",
    )


RULES: tuple[Callable[[Figures], Verdict | None], ...] = (
    not_migrated,
    database_old,
    database_new,
    empty,
    paused,
    inbox_stuck,
    worker_silent,
    never_fetched,
    standing_still,
    failing,
    crawlers_slow,
    no_worker,
    transaction_held,
    job_failing,
    hosts_block,
    nothing_due,
    no_allocation,
    budget_unspent,
    budget_sets_pace,
    gaps_set_pace,
)
CODES = tuple(rule.__name__ for rule in RULES)
ALONE = {"not_migrated", "database_old", "database_new", "empty", "paused"}  # nothing else is worth saying then

DOCTOR = Mend("doctor", "Have everything checked", "recrawl doctor")
START_WORKER = Mend(
    "worker", "Start a worker: it learns, divides the budget, and keeps these figures", "recrawl worker"
)
WORKERS = (
    "SELECT pid, state, wait_event_type, xact_start, query FROM pg_stat_activity "
    "WHERE application_name LIKE 'recrawl%' AND pid <> pg_backend_pid();"
)
OPEN_TRANSACTIONS = Mend(
    "transaction",
    "See whose it is; pg_terminate_backend(pid) ends it",
    "SELECT pid, usename, application_name, state, xact_start FROM pg_stat_activity "
    "WHERE datname = current_database() AND xact_start < now() - interval '1 minute' ORDER BY xact_start;",
)
BLOCKED_HOSTS = (
    "SELECT host, blocked_until, blocked_reason, pages FROM recrawl.host_status "
    "WHERE blocked_until IS NOT NULL ORDER BY pages DESC LIMIT 10;"
)
MOST_FAILURES = "SELECT host, failures, blocked_reason FROM recrawl.host_status ORDER BY failures DESC LIMIT 10;"


def hints(figures: Figures) -> Iterator[Mend]:
    """What could be better, while nothing is wrong."""
    for host in figures.late_hosts:
        if host.waits_for == "block" and host.due >= FEW and (host.blocked_reason or "").endswith(("429", "503")):
            gap = 2 * (host.gap or timedelta(seconds=1))
            yield Mend(
                "host",
                f"{host.host}: {host.blocked_reason}; {count(host.due)} of its pages are due. A longer gap may help",
                f"SELECT recrawl.set_host({literal(host.host)}, gap => '{gap.total_seconds():g} s');",
            )
            break
    if (unspent := _unspent(figures)) is not None:
        yield Mend("budget", f"{count(unspent)} fetches a day find no use: see what less would bring", "recrawl plan")


def _unspent(figures: Figures) -> float | None:
    """Fetches per day for which the gaps left no use at the last allocation, if that is worth a word."""
    allocation = figures.allocation
    if allocation is None or figures.budget is None or allocation.unspent <= UNSPENT * allocation.budget:
        return None
    return allocation.unspent


def _crawls(figures: Figures) -> bool:
    """Whether crawlers report."""
    return figures.quiet is not None and figures.quiet < STANDSTILL


def _longer(wait: timedelta | None, limit: timedelta) -> bool:
    return wait is not None and wait >= limit


def _pace(figures: Figures) -> str:
    now = figures.now
    told = "" if figures.quiet is None else f"the last report came {lasting(figures.quiet)} ago."
    if not now.fetches_per_second:
        return told.capitalize()
    return f"{now.fetches_per_second:,.2g} fetches a second over the last five minutes; {told}"


def _free_hosts(figures: Figures) -> str:
    wait = figures.now.ready_wait
    if wait is None:
        return "No host that is free has work."
    return f"A host that is free and has work waits {lasting(wait)} for a crawler."


def _about(is_estimate: bool) -> str:
    return "About " if is_estimate else ""


def _sentence(message: str | None) -> str:
    text = (message or "It did not say why").strip().rstrip(".")
    return f"{text[:1].upper()}{text[1:200]}."


def _in_force(run: LastRun, as_of: datetime) -> str:
    if run.job in ALWAYS:
        return f"It has failed for {lasting(as_of - run.started_at)}, and is tried again all the time."
    if run.succeeded_at is None:
        return "It never succeeded."
    return f"What it found {lasting(as_of - run.succeeded_at)} ago stays in force."
