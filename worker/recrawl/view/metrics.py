"""Metrics for Prometheus. A worker with --metrics serves them at /metrics.

A scrape waits for a read of the database, for at most SCRAPE_TIMEOUT seconds. A read is one short transaction that
writes nothing. Each read has its own thread and its own connection. Scrapes at the same time wait for the same read: if
the database hangs, one thread and one connection hang, and recrawl_up is 0.

Counters begin at 0 when the process starts, and never fall. A read adds the growth of the rows of `vitals` and
`job_run` since the last read. The first read adds nothing.
"""

import logging
import threading
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from http import HTTPStatus
from importlib.metadata import version
from ipaddress import ip_address
from itertools import accumulate
from typing import Any

import psycopg
from prometheus_client import CollectorRegistry, MetricsHandler, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from recrawl import store
from recrawl.store.scrape import Row, Scrape, scrape
from recrawl.view.figures import ALWAYS
from recrawl.view.serving import LOOPBACK, Server, host_name
from recrawl.words import in_url

log = logging.getLogger(__name__)

SCRAPE_TIMEOUT = 1.5  # seconds that a scrape waits for the database
CLIENT_TIMEOUT = 5  # seconds that a client has to send its request
CLIENTS = 8  # served in parallel; one is usual
REMEMBERED = 1_000  # rows. A minute can grow for half an hour, a run until it ends

Samples = Mapping[str, float | None]  # times in seconds; None = unknown: no sample

Behind = str | Mapping[str, str]  # the column of a metric, or of each value of its label


def by_label(behind: Behind) -> Mapping[str, str]:
    return {"": behind} if isinstance(behind, str) else behind


OUTCOMES = ("changed", "unchanged", "first", "missing", "failed", "throttled", "denied")
# The name, its help, and the columns behind it.
COUNTERS: dict[str, tuple[str, Behind]] = {
    "recrawl_fetches{outcome}": (
        "Reported fetches by outcome: changed, unchanged, first = the first success of the page, missing = 404, 410, "
        "other 4xx or moved permanently, failed = no answer, 408, 425, or 5xx except 503, throttled = 429 or 503, "
        "denied = forbidden by robots.txt.",
        {outcome: outcome for outcome in OUTCOMES},
    ),
    "recrawl_fetches_change_unknown": (
        "Fetches whose report did not say whether the page changed. Nothing is learned from them.",
        "change_unknown",
    ),
    "recrawl_reports_not_accepted{reason}": (
        "Reports that were not accepted, by reason: stale_lease = the lease had ended, duplicate, refused = "
        "unknown_page or invalid.",
        {"stale_lease": "stale", "duplicate": "duplicate", "refused": "refused"},
    ),
    "recrawl_next_pages_calls{answer}": (
        "Calls of next_pages, by whether they returned pages.",
        {"pages": "calls_answered", "nothing": "empty_calls"},
    ),
    "recrawl_pages_handed_out": ("Pages that were handed out to crawlers.", "handed_out"),
    "recrawl_pages_expired": ("Pages whose lease ended before they were reported.", "expired"),
    "recrawl_slots_missed": ("Pages that crawlers released after their slot had passed.", "missed"),
    "recrawl_pages_added": ("Pages that were added, from links or by add_pages.", "pages_added"),
    "recrawl_revisits_skipped": ("Revisits that were skipped because the next one was due already.", "skipped"),
}
LATENESS = {
    "60": "late_1m", "600": "late_10m", "3600": "late_1h", "21600": "late_6h", "86400": "late_1d", "+Inf": "late_more",
}  # fmt: skip
GAUGES: dict[str, tuple[str, Behind]] = {
    # of the last minute
    "recrawl_late_pages{waits_for}": (
        "Late pages, by what they wait for: crawler = their host is ready, gap = the next slot of their host is in "
        "the future, block = their host is blocked.",
        {"crawler": "due_crawler", "gap": "due_gap", "block": "due_blocked"},
    ),
    "recrawl_pages": ("Pages in the crawl.", "pages"),
    "recrawl_hosts": ("Hosts in the crawl.", "hosts"),
    "recrawl_hosts_blocked": ("Hosts that are blocked.", "hosts_blocked"),
    "recrawl_hosts_capped": (
        "Hosts whose gap, not the budget, limits how often their pages are fetched.",
        "hosts_capped",
    ),
    "recrawl_freshness_ratio": ("Share of the value of all pages that is fresh, estimated (0 to 1).", "fresh"),
    "recrawl_freshness_error_ratio": ("Standard error of recrawl_freshness_ratio (0 to 1).", "fresh_error"),
    "recrawl_freshness_expected_ratio": ("Freshness that the allocation expects (0 to 1).", "expected"),
    "recrawl_freshness_limit_with_gaps_ratio": (
        "Limit of the freshness with this budget and these gaps (0 to 1).",
        "limit_with_gaps",
    ),
    "recrawl_covered_ratio": ("Share of the value of all pages that was fetched at least once (0 to 1).", "covered"),
    "recrawl_budget_fetches_per_second": ("Fetches per second that the budget allows.", "budget_per_second"),
    # live
    "recrawl_new_waiting_pages": ("New pages: they were never handed out.", "new_waiting"),
    "recrawl_hosts_ready": ("Ready hosts: a request may start now, and they have a page to fetch.", "hosts_ready"),
    "recrawl_paused": ("1 while the crawl is paused, otherwise 0.", "paused"),
    "recrawl_worker_is_running": (
        "1 if a worker did upkeep within the last five seconds, otherwise 0.",
        "worker_is_running",
    ),
    "recrawl_leased_pages": ("Pages that are leased to crawlers.", "leased"),
    "recrawl_ready_wait_seconds": (
        "Time that the first ready host has waited for a crawler, in seconds; 0 = no host waits.",
        "ready_wait",
    ),
    "recrawl_inbox_wait_seconds": (
        "Time that the oldest entry of the inbox has waited for upkeep, in seconds; 0 = no entry waits.",
        "inbox_wait",
    ),
    "recrawl_longest_transaction_seconds": (
        "Age of the oldest open transaction that locks rows of the crawl or keeps deleted rows, in seconds; 0 = none.",
        "longest_transaction",
    ),
    "recrawl_last_report_timestamp_seconds": ("Time of the last report, in Unix time (seconds).", "last_report_at"),
    "recrawl_upkeep_timestamp_seconds": ("Time of the last upkeep, in Unix time (seconds).", "upkeep_at"),
    "recrawl_vitals_timestamp_seconds": ("Start of the newest minute of figures, in Unix time (seconds).", "vitals_at"),
}
COUNTED = {figure for _, behind in COUNTERS.values() for figure in by_label(behind).values()}
COUNTED |= {*LATENESS.values(), "late_seconds"}
ZERO_IF_NONE = ("ready_wait", "inbox_wait", "longest_transaction")
JOB_GAUGES = {
    "recrawl_job_last_success_timestamp_seconds": (
        "Time of the last success of the job, in Unix time (seconds).",
        "succeeded_at",
    ),
    "recrawl_job_failures_since_success": (
        "Failed runs of the job since its last success, up to 20. For upkeep, vitals and retention: 1 while it fails.",
        "failures",
    ),
    "recrawl_job_due_timestamp_seconds": (
        "Time when the job should start, in Unix time (seconds). Absent while it runs.",
        "due_at",
    ),
    "recrawl_job_running_since_timestamp_seconds": (
        "Time when the present run of the job began, in Unix time (seconds). Absent while it does not run.",
        "running_since",
    ),
    "recrawl_job_interval_seconds": ("Interval at which the job should run, in seconds.", "every"),
}


@contextmanager
def served(url: str, host: str, port: int) -> Iterator[int]:
    """Serves the metrics of a crawl on threads of its own. Yields the port, which is a free one if `port` is 0."""
    collector = Collector(url)
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    try:
        server = Metrics(host, port, registry)
    except OSError as error:
        raise OSError(f"metrics cannot be served on {in_url(host)}:{port}: {error.strerror}") from None
    collector.begin()  # counts from now on, not from the first scrape
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Counts:
    """Sums that never fall, over rows that grow for a while and are deleted later."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = defaultdict(float)
        self.seen: dict[Hashable, dict[str, float]] = {}
        self.has_begun = False

    def add(self, rows: Mapping[Hashable, Mapping[str, float]]) -> None:
        for key, figures in rows.items():
            had = self.seen.setdefault(key, {} if self.has_begun else dict(figures))
            for name, figure in figures.items():
                if (more := figure - had.get(name, 0)) > 0:
                    had[name] = figure
                    self.totals[name] += more
        self.has_begun = True
        while len(self.seen) > REMEMBERED:
            del self.seen[next(iter(self.seen))]


class Collector:
    """Reads the database, and answers Prometheus."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.counts = Counts()
        self.minutes_since: datetime | None = None
        self.runs_since: datetime | None = None  # all runs that began before this time have ended, and are counted
        self.found: list[Metric] = []  # by the last read; empty until it has succeeded
        self.complaint = ""
        self.thread: threading.Thread | None = None
        self.starting = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Called by the library at every scrape."""
        reading = self.begin()
        reading.join(SCRAPE_TIMEOUT)
        found = [] if reading.is_alive() else self.found
        yield GaugeMetricFamily(
            "recrawl_up", "1 if the last read of the database succeeded in time, otherwise 0.", bool(found)
        )
        about = "Always 1. The label is the version of recrawl."
        yield family(GaugeMetricFamily, "recrawl_build_info{version}", about, {version("recrawl"): 1})
        yield from found

    def begin(self) -> threading.Thread:
        """Starts a read, or returns the one that is running."""
        with self.starting:
            if not self.thread or not self.thread.is_alive():
                self.thread = threading.Thread(target=self.read, name="metrics read", daemon=True)
                self.thread.start()
            return self.thread

    def read(self) -> None:
        self.found = []  # after an error no old figures are shown
        try:
            # A new connection for each read, so that a restart of the database does no harm.
            with store.connect(self.url, "recrawl metrics", connect_timeout=2, tcp_user_timeout=2000) as connection:
                seen = scrape(connection, ALWAYS, self.minutes_since, self.runs_since)
            self.count(seen)
            self.found = list(metrics(seen, self.counts.totals))
            self.complaint = ""
        except Exception as error:  # after any error recrawl_up is 0 until a read succeeds
            complaint = str(error).partition("\n")[0] if isinstance(error, psycopg.Error) else repr(error)
            if complaint != self.complaint:
                log.warning("metrics: %s", complaint)
            self.complaint = complaint

    def count(self, seen: Scrape) -> None:
        minutes = {row["at"]: {name: row[name] for name in COUNTED} for row in seen.minutes}
        self.counts.add(minutes | {(run["job"], run["started_at"]): counts_of_run(run) for run in seen.runs})
        self.minutes_since = max(minutes, default=self.minutes_since)
        self.runs_since = min(
            (run["started_at"] for run in seen.runs if run["ok"] is None), default=seen.status["as_of"]
        )


def counts_of_run(run: Row) -> dict[str, float]:
    job, ok = run["job"], run["ok"]
    if ok is None:
        return {}
    return {f"{job} {'ok' if ok else 'failed'}": 1, f"{job} seconds": run["seconds"]}


def seconds(value: Any) -> float | None:
    """Times in seconds, and numbers unchanged."""
    if isinstance(value, datetime):
        return value.timestamp()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return None if value is None else float(value)


def metrics(seen: Scrape, counts: Mapping[str, float]) -> Iterator[Metric]:
    for name, (says, behind) in COUNTERS.items():
        counted = {label: counts.get(column, 0) for label, column in by_label(behind).items()}
        yield family(CounterMetricFamily, name, says, counted)
    bins = accumulate(counts.get(name, 0) for name in LATENESS.values())
    lateness = HistogramMetricFamily(
        "recrawl_revisit_lateness_seconds", "Time from the due time of a revisit to its slot, in seconds."
    )
    lateness.add_metric([], list(zip(LATENESS, bins, strict=True)), counts.get("late_seconds", 0))
    yield lateness
    minute = seen.minutes[-1] if seen.minutes else {}
    gauges = {name: seconds(value) for name, value in (minute | seen.status).items()}
    gauges |= {name: gauges[name] or 0 for name in ZERO_IF_NONE}
    if budget := gauges.get("budget"):
        gauges["budget_per_second"] = budget / 86400
    for name, (says, behind) in GAUGES.items():
        known = {label: gauges.get(column) for label, column in by_label(behind).items()}
        yield family(GaugeMetricFamily, name, says, known)
    runs = CounterMetricFamily("recrawl_job_runs", "Runs of jobs, by result.", labels=["job_name", "result"])
    jobs = [row["job"] for row in seen.schedule]
    for job in jobs:
        for result in ("ok", "failed"):
            runs.add_metric([job, result], counts.get(f"{job} {result}", 0))
    yield runs
    took = {job: counts.get(f"{job} seconds", 0) for job in jobs}
    yield family(CounterMetricFamily, "recrawl_job_run_seconds{job_name}", "Duration of these runs, in seconds.", took)
    for name, (says, column) in JOB_GAUGES.items():
        known = {row["job"]: seconds(row.get(column)) for row in (*seen.schedule, *seen.always)}
        yield family(GaugeMetricFamily, f"{name}{{job_name}}", says, known)


def family(kind: type[CounterMetricFamily] | type[GaugeMetricFamily], name: str, says: str, samples: Samples) -> Metric:
    """One metric. A name that ends in {label} has a sample for each value. Otherwise the key of its sample is empty."""
    name, _, label = name.rstrip("}").partition("{")
    made = kind(name, says, labels=[label] if label else [])
    for value, figure in samples.items():
        if figure is not None:
            made.add_metric([value] if label else [], figure)
    return made


class Metrics(Server):
    def __init__(self, host: str, port: int, registry: CollectorRegistry) -> None:
        self.registry = registry
        super().__init__((host, port), Handler, CLIENTS)
        address = str(self.server_address[0])
        names = set(map(host_name, (*LOOPBACK, in_url(host), in_url(address))))
        self.names = names if ip_address(address).is_loopback else None  # None = all


class Handler(MetricsHandler):
    server: Metrics
    timeout = CLIENT_TIMEOUT

    def do_GET(self) -> None:
        if self.server.names and host_name(self.headers.get("Host", LOOPBACK[0])) not in self.server.names:
            self.send_error(
                HTTPStatus.MISDIRECTED_REQUEST, "This host name is not served: use the address of --metrics"
            )
            return
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "Only /metrics is served")
            return
        self.registry = self.server.registry
        super().do_GET()
