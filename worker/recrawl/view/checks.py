"""What doctor goes through: of each check a sentence that all is well, or what is wrong and what mends it.

Pure: no database and no clock. The codes are a closed set.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from recrawl.view import verdict
from recrawl.view.facts import OPEN, Facts
from recrawl.view.verdict import FEW
from recrawl.view.words.numbers import count, lasting, literal, share

Level = Literal["ok", "unseen", "warn", "trouble"]

OLDEST_SERVER = 15
CLOCK = timedelta(seconds=2)  # this machine's and the server's differ
EXPIRED = 0.05  # of the pages that were handed out
STALE = 0.02  # of the reports
UNTOLD = 0.5  # of the fetches that could have told whether the page changed
OTHER_PAGES = 0.3  # taken in since the last allocation
OVERSPENT = 1.1  # times the budget
BIG_HOST = 0.5  # of all pages
MANY_PAGES = 1000  # from which a big host counts
MISSED = 3  # intervals without a run
KEPT_BYTES = 1 << 30  # of write-ahead log, for a replica that is away
BEHIND = 1_000_000  # transactions
DEAD = 2.0, 100_000  # times the rows that live, and at least so many


@dataclass(frozen=True)
class Check:
    code: str
    level: Level
    says: str
    do: str = ""  # SQL or a command, to be copied


def checks(facts: Facts) -> list[Check]:
    if facts.figures.database != "same":
        return [server_version(facts), database(facts)]
    return [check(facts) for check in CHECKS]


# -- the database --


def server_version(facts: Facts) -> Check:
    version = facts.server.version
    if version >= OLDEST_SERVER:
        return Check("server_version", "ok", f"The server is PostgreSQL {version}.")
    return Check(
        "server_version",
        "trouble",
        f"The server is PostgreSQL {version}; recrawl needs {OLDEST_SERVER} or newer.",
        "env -u DATABASE_URL recrawl up",
    )


def database(facts: Facts) -> Check:
    if facts.figures.database == "same":
        return Check("database", "ok", "The database is of this program's version.")
    said = verdict.verdict(facts.figures)
    return Check("database", "trouble", f"{said.headline} {said.detail}", said.mends[0].do)


def clocks(facts: Facts) -> Check:
    off = facts.server.clock - facts.asked_at
    if abs(off) <= CLOCK:
        return Check("clocks", "ok", "This machine's clock and the server's agree.")
    ahead = "behind" if off > timedelta(0) else "ahead of"
    return Check(
        "clocks",
        "warn",
        f"This machine's clock is {lasting(abs(off))} {ahead} the server's: crawlers here must go by wait, not by "
        "fetch_at.",
        "timedatectl status",
    )


def vacuum(facts: Facts) -> Check:
    if not facts.server.vacuums:
        return Check(
            "vacuum",
            "trouble",
            "Autovacuum is off: the tables grow without end.",
            "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf();",
        )
    times, least = DEAD
    bad = [table for table in facts.tables if table.dead > max(least, times * table.live)]
    if not bad:
        return Check("vacuum", "ok", "What was deleted is cleared away.")
    return Check(
        "vacuum",
        "warn",
        f"The table {bad[0].table} holds {count(bad[0].dead)} dead rows beside {count(bad[0].live)} that live: "
        "something keeps them from being cleared away.",
        f"VACUUM (VERBOSE) recrawl_internal.{bad[0].table};",
    )


def replicas(facts: Facts) -> Check:
    for slot in facts.slots:
        drop = f"SELECT pg_drop_replication_slot({literal(slot.name)});"
        if (slot.transactions_behind or 0) > BEHIND:
            return Check(
                "replicas",
                "warn",
                f"The replication slot {slot.name} keeps what was deleted in the last "
                f"{count(slot.transactions_behind or 0)} transactions from being cleared away. Is its replica gone?",
                drop,
            )
        if not slot.active and (slot.kept_bytes or 0) > KEPT_BYTES:
            return Check(
                "replicas",
                "warn",
                f"Nobody reads the replication slot {slot.name}, for which {count((slot.kept_bytes or 0) / 2**30)} GB "
                "of write-ahead log are kept. Is its replica gone?",
                drop,
            )
    return Check("replicas", "ok", "No replica keeps anything from being cleared away.")


def transactions(facts: Facts) -> Check:
    """What holds hosts is told before what is merely old."""
    if not facts.transactions:
        if facts.server.sees_all:
            return Check("transactions", "ok", f"No transaction has been open for {lasting(OPEN)}.")
        return Check("transactions", "unseen", "Cannot see how long the transactions of other logins have been open.")
    found = sorted(facts.transactions, key=lambda found: (not found.holds_hosts, -found.age))
    worst = found[0]
    does = "holds hosts, which nobody gets meanwhile" if worst.holds_hosts else "keeps old rows from being cleared away"
    whose = f"of {worst.login}" + (f" ({worst.program})" if worst.program else "")
    name = f"prepared transaction {worst.gid}" if worst.pid is None else f"transaction {whose}, process {worst.pid},"
    others = f" {count(len(found) - 1)} more are open for long." if len(found) > 1 else ""
    end = f"ROLLBACK PREPARED {literal(worst.gid or '')};"
    return Check(
        "transactions",
        "trouble" if worst.holds_hosts else "warn",
        f"The {name} is open for {lasting(worst.age)}, {worst.state}: it {does}.{others}",
        end if worst.pid is None else f"SELECT pg_terminate_backend({worst.pid});",
    )


def logins(facts: Facts) -> Check:
    if facts.is_embedded:
        return Check("logins", "ok", "The embedded server is reached by those who may read its files.")
    if facts.superusers:
        who = facts.superusers[0]
        return Check(
            "logins",
            "warn",
            f"Crawlers log in as {who.login}, a superuser: whoever takes over a crawler has the whole server.",
            "CREATE ROLE crawler LOGIN IN ROLE recrawl_crawler;",
        )
    if not facts.server.sees_all:
        return Check("logins", "unseen", "Cannot see what other logins do, so not whether crawlers are superusers.")
    return Check("logins", "ok", "No crawler is connected as a superuser.")


# -- the flow --


def paused(facts: Facts) -> Check:
    if not facts.figures.now.paused:
        return Check("paused", "ok", "The crawl is not paused.")
    return Check("paused", "warn", "The crawl is paused: nothing is handed out.", "SELECT recrawl.resume();")


def worker(facts: Facts) -> Check:
    if facts.figures.now.worker_runs:
        return Check("worker", "ok", "A worker runs.")
    if facts.figures.workers:
        said = verdict.worker_silent(facts.figures)
        return Check(
            "worker",
            said.level if said else "warn",
            "A worker is connected, and does nothing: perhaps it waits for a lock, or was stopped.",
            verdict.WORKERS,
        )
    return Check("worker", "warn", "No worker runs: nothing is learnt, and no budget is divided.", "recrawl worker")


def inbox(facts: Facts) -> Check:
    if (said := verdict.inbox_stuck(facts.figures)) is None:
        return Check("inbox", "ok", "What is added and reported comes into the queue at once.")
    return Check("inbox", "trouble", f"{said.headline} {said.detail}", said.mends[0].do)


def reports(facts: Facts) -> Check:
    if (said := verdict.standing_still(facts.figures)) is None:
        return Check("reports", "ok", "Crawlers report, as far as there is anything to fetch.")
    return Check("reports", "trouble", f"{said.headline} {said.detail}", said.mends[0].do)


def crawlers(facts: Facts) -> Check:
    if (said := verdict.crawlers_slow(facts.figures)) is None:
        return Check("crawlers", "ok", "No free host waits long for a crawler.")
    return Check("crawlers", "warn", f"{said.headline} {said.detail}", said.mends[0].do)


def leases(facts: Facts) -> Check:
    day = facts.figures.day
    if day.handed_out < FEW or day.expired <= EXPIRED * day.handed_out:
        return Check("leases", "ok", "Crawlers report what they take before its lease runs out.")
    return Check(
        "leases",
        "warn",
        f"{share(day.expired / day.handed_out)} of the pages that were handed out came back because their leases ran "
        f"out ({count(day.expired)} of {count(day.handed_out)} in {_since(facts)}): crawlers die, or take too many at "
        "once.",
        "SELECT * FROM recrawl.next_pages(20, lease => '30 minutes');",
    )


def stale(facts: Facts) -> Check:
    day = facts.figures.day
    late, refused = day.stale, day.refused
    reported = day.fetches + day.stale + day.refused
    if reported < FEW or late + refused <= STALE * reported:
        return Check("stale", "ok", "Reports come in time, and of pages that there are.")
    if refused > late:
        says = f"{share(refused / reported)} of the reports are refused: of pages that are not known, or not valid"
        do = 'SELECT * FROM recrawl.report(\'[{"url": "https://example.com/", "status": 200}]\');'
    else:
        says = f"{share(late / reported)} of the reports come after the lease ran out: leases are too short"
        do = "SELECT * FROM recrawl.next_pages(20, lease => '30 minutes');"
    return Check("stale", "warn", f"{says} ({count(late + refused)} in {_since(facts)}).", do)


def learning(facts: Facts) -> Check:
    day = facts.figures.day
    could = day.changed + day.unchanged
    if could < FEW or day.untold <= UNTOLD * could:
        return Check("learning", "ok", "Reports say whether pages changed.")
    return Check(
        "learning",
        "warn",
        f"{share(day.untold / could)} of the fetches taught nothing: their reports do not say whether the page "
        f"changed ({count(day.untold)} in {_since(facts)}). Let crawlers report content_hash or changed.",
        'SELECT * FROM recrawl.report(\'[{"page_id": 1, "status": 200, "content_hash": "5d41402a"}]\');',
    )


def failures(facts: Facts) -> Check:
    hour = facts.figures.hour
    if (said := verdict.failing(facts.figures)) is None:
        return Check("failures", "ok", "Most fetches succeed.")
    kinds = {
        "no answer or an error": hour.failed,
        "told to slow down": hour.throttled,
        "kept out by robots.txt": hour.denied,
        "not there": hour.missing,
    }
    told = ", ".join(f"{kind} {count(number)}" for kind, number in kinds.items() if number)
    return Check("failures", said.level, f"{said.headline} By kind: {told}.", said.mends[0].do)


def blocks(facts: Facts) -> Check:
    found = facts.checkup
    if not found.blocked_hosts:
        return Check("blocks", "ok", "No host is blocked.")
    hosts = f"{count(found.blocked_hosts)} hosts are" if found.blocked_hosts > 1 else "One host is"
    names = ", ".join(found.largest_blocked)
    some, said = facts.figures.minute, verdict.hosts_block(facts.figures)
    of = some.hosts if some and some.hosts else 0
    due = sum(host.due for host in facts.figures.late_hosts if host.waits_for == "block")
    is_much = said is not None or found.blocked_hosts >= max(5, verdict.MANY_BLOCKED * of) or due >= FEW
    which = "those with most pages: " if found.blocked_hosts > len(found.largest_blocked) else ""
    says = f"{hosts} blocked{f'; {which}{names}' if names else ''}."
    level: Level = said.level if said else "warn"
    return Check("blocks", level, says, verdict.BLOCKED_HOSTS) if is_much else Check("blocks", "ok", says)


# -- what the worker finds out --


def jobs(facts: Facts) -> Check:
    found = facts.figures
    if (said := verdict.job_failing(found)) is not None:
        says = said.headline.removeprefix("Working, but ")
        return Check("jobs", "warn", f"{says[0].upper()}{says[1:]} {said.detail}", said.mends[0].do)
    for run in found.runs if found.now.worker_runs else ():
        every, ago = (facts.every or {}).get(run.job), found.now.as_of - run.started_at
        if every and run.ok is not None and ago > MISSED * every:
            says = f"The job {run.job} is to run every {lasting(every)}, and last did {lasting(ago)} ago."
            return Check("jobs", "warn", says, f"recrawl run {run.job}")
    return Check("jobs", "ok", "No job fails.")


def allocation(facts: Facts) -> Check:
    last, found, checkup = facts.figures.allocation, facts.figures, facts.checkup
    run = "recrawl run allocate"
    if last is None:
        return Check("allocation", "ok", "Nothing was allocated yet: every page is fetched equally often.")
    wanted, budget = found.settings.get("objective"), found.set_budget
    ago, news = lasting(found.now.as_of - last.started_at), checkup.newest_page - (checkup.newest_allocated or 0)
    if wanted and wanted != last.objective:
        says = f"What is in force was allocated for {last.objective}; the setting says {wanted}."
    elif budget is not None and abs(budget - last.budget) > 0.05 * budget:
        says = (
            f"What is in force was allocated for {count(last.budget)} fetches a day; the setting says {count(budget)}."
        )
    elif checkup.newest_allocated is not None and news > max(FEW, OTHER_PAGES * checkup.newest_page):
        says = f"{share(news / checkup.newest_page)} of the pages came in after the last allocation, {ago} ago."
    elif found.budget is not None and last.unspent > verdict.UNSPENT * last.budget:
        says = f"The hosts' gaps leave no use for {count(last.unspent)} of {count(last.budget)} fetches a day."
        return Check("allocation", "ok", f"The allocation in force fits the settings and the pages. {says}")
    else:
        return Check("allocation", "ok", "The allocation in force fits the settings and the pages.")
    return Check("allocation", "warn", says, run)


def budget(facts: Facts) -> Check:
    day, wanted = facts.figures.day, facts.figures.set_budget
    now = facts.figures.now.as_of
    if wanted is None or day.since is None or now - day.since < timedelta(hours=6):
        return Check("budget", "ok", "No more is fetched than the budget allows.")
    daily = day.fetches * (timedelta(days=1) / (now - day.since))
    if daily <= OVERSPENT * wanted + FEW:
        return Check("budget", "ok", "No more is fetched than the budget allows.")
    return Check(
        "budget",
        "warn",
        f"{count(daily)} fetches a day, {share(daily / wanted)} of the budget: floors or new pages take more.",
        "recrawl run allocate",
    )


def big_host(facts: Facts) -> Check:
    found = facts.checkup
    most, pages = found.most_pages or 0, found.pages or 0
    if pages < MANY_PAGES or most <= BIG_HOST * pages or most == pages:
        return Check("big_host", "ok", "No single host has most of the pages.")
    return Check(
        "big_host",
        "warn",
        f"{found.largest_host} has {share(most / pages)} of all pages ({count(most)}). Does it make up URLs?",
        f"SELECT recrawl.set_host({literal(found.largest_host or '')}, max_pages => {most});",
    )


CHECKS: tuple[Callable[[Facts], Check], ...] = (
    server_version,
    database,
    clocks,
    vacuum,
    replicas,
    transactions,
    logins,
    paused,
    worker,
    inbox,
    reports,
    crawlers,
    leases,
    stale,
    learning,
    failures,
    blocks,
    jobs,
    allocation,
    budget,
    big_host,
)
CODES = tuple(check.__name__ for check in CHECKS)


def _since(facts: Facts) -> str:
    lasts = facts.figures.day.lasts(facts.figures.now.as_of)
    return "24 h" if lasts is None else lasting(lasts)
