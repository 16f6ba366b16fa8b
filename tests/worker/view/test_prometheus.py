"""A real Prometheus scrapes a real worker, configured as docs/watch.md says, and runs every query that we ship."""

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb

from helpers import DAY, MINUTE, Crawl, Row, ended_run, eventually, free_port, minute, result_of
from recrawl.view.rules import MISSED, STANDSTILL

ROOT = Path(__file__).parents[3]
DASHBOARD = json.loads((ROOT / "docs/monitoring/grafana-dashboard.json").read_text())
RULES = (ROOT / "docs/monitoring/prometheus-alerts.yml").read_text()
PANELS = [(panel, target) for panel in DASHBOARD["panels"] for target in panel["targets"]]
OURS = r"\b(?:recrawl|process)_\w+"


@dataclass
class Prometheus:
    port: int
    instance: str  # the worker

    def get(self, path: str, **parameters: str) -> Any:
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}", timeout=60) as answer:
            return json.load(answer)["data"]

    def ask(self, expression: str) -> list[dict[str, Any]]:
        """The series that a panel would get now."""
        now = expression.replace("$instance", self.instance).replace("$__rate_interval", "1m")
        found: list[dict[str, Any]] = self.get("query", query=now)["result"]
        return found

    def value(self, expression: str) -> float | None:
        found = self.ask(expression)
        return float(found[0]["value"][1]) if found else None

    def firing(self) -> set[str]:
        return {alert["labels"]["alertname"] for alert in self.get("alerts")["alerts"]}


@contextmanager
def process(*command: str, **environment: str) -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


def configuration(port: int) -> str:
    (text,) = re.findall(r"^```yaml\n(.*?)^```", (ROOT / "docs/watch.md").read_text(), re.MULTILINE | re.DOTALL)
    assert text.count("127.0.0.1:9888") == text.count("scrape_interval: 15s") == 1
    # Every second, as nobody wants to wait.
    faster = text.replace("127.0.0.1:9888", f"127.0.0.1:{port}").replace("scrape_interval: 15s", "scrape_interval: 1s")
    return f"global:\n  evaluation_interval: 1s\n{faster}"


@pytest.fixture
def worker_port() -> int:
    return free_port()


@pytest.fixture
def worker(crawl: Crawl, url: str, worker_port: int) -> Iterator["subprocess.Popen[str]"]:
    """One whose crawl is well."""
    minute(crawl, 3 * MINUTE)
    command = [sys.executable, "-m", "recrawl", "worker", "--metrics", f"127.0.0.1:{worker_port}"]
    with process(*command, DATABASE_URL=url) as started:
        eventually(lambda: b"recrawl_up 1" in scraped(worker_port) or started.poll())
        eventually(lambda: crawl.value("select is_called from worker_ticked"), what="it is not at work")
        yield started
        started.terminate()
        assert started.wait(600) == 0


def scraped(port: int) -> bytes:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return bytes(answer.read())
    except OSError:
        return b""


@pytest.fixture
def lonely(worker_port: int, tmp_path: Path) -> Iterator[Prometheus]:
    """Its alerts wait for nothing."""
    program = shutil.which("prometheus") or pytest.skip("apt install prometheus")
    file, port = tmp_path / "prometheus.yml", free_port()
    file.write_text(configuration(worker_port))
    (tmp_path / "prometheus-alerts.yml").write_text(re.sub(r"^ +for: .*\n", "", RULES, flags=re.MULTILINE))
    listen = f"--web.listen-address=127.0.0.1:{port}"
    with process(program, f"--config.file={file}", f"--storage.tsdb.path={tmp_path}/data", listen, "--log.level=error"):
        asks = Prometheus(port, f"127.0.0.1:{worker_port}")

        def answers() -> bool:
            try:
                return asks.ask("vector(1)") != []
            except OSError:
                return False

        eventually(answers)
        yield asks


@pytest.fixture
def prometheus(lonely: Prometheus, worker: object) -> Prometheus:
    """With a worker to scrape, which it begins with after some 5 s."""
    eventually(lambda: lonely.value("recrawl_up") == 1)
    return lonely


STANDS = {
    "due": 6, "due_crawler": 1, "due_gap": 2, "due_blocked": 3, "new_waiting": 10, "pages": 100, "hosts": 20,
    "hosts_ready": 2, "hosts_blocked": 1, "hosts_capped": 3, "fresh": 0.7, "fresh_error": 0.01, "covered": 0.95,
    "expected": 0.72, "limit_with_gaps": 0.8, "budget": 8_640_000,
}  # fmt: skip
HAPPENS = [
    "fetches", "changed", "unchanged", "first", "missing", "failed", "throttled", "denied", "change_unknown", "stale",
    "duplicate", "refused", "handed_out", "expired", "missed", "pages_added", "late_1m", "late_10m", "late_1h",
    "late_6h", "late_1d", "late_more", "empty_calls",
]  # fmt: skip


def stands(crawl: Crawl, **otherwise: float) -> None:
    """In this minute, so that what the worker writes of those before is not the newest."""
    minute(crawl, 0 * MINUTE, None, **STANDS | otherwise)


def fetch(crawl: Crawl, **result: object) -> None:
    pages: list[Row] = []
    while not pages:  # upkeep may have the host at the moment
        pages = crawl.rows("select page_id, lease_id from recrawl.next_pages(1)")
    crawl.rows("select * from recrawl.report(%s)", Jsonb([result_of(page, **result) for page in pages]))


def test_every_query_of_the_dashboard_has_an_answer_and_every_rule_runs(crawl: Crawl, prometheus: Prometheus) -> None:
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}')")
    fetch(crawl)
    ended_run(crawl, "allocate", True, MINUTE)

    def is_counted(n: int) -> bool:
        many = {"changed": 2000 * n, "handed_out": 2000 * n, "calls": 40 * n, "skipped": n}
        stands(crawl, **dict.fromkeys(HAPPENS, 20 * n) | many)  # again: once a minute the worker deletes it
        return bool(prometheus.ask(f"sum(recrawl_fetches_total) >= {2120 * n}"))

    for n in (1, 2, 3):
        eventually(partial(is_counted, n))

    def answers() -> list[tuple[str, str, list[str]]]:
        stands(crawl)
        return [
            (panel["title"], target["expr"], [sample["value"][1] for sample in prometheus.ask(target["expr"])])
            for panel, target in PANELS
        ]

    try:
        eventually(lambda: all(values and "NaN" not in values for _, _, values in answers()))
    except AssertionError:
        pytest.fail("\n".join(f"{title:32} {' '.join(values):32} {query}" for title, query, values in answers()))
    eventually(lambda: all(rule["health"] == "ok" for rule in rules(prometheus)))
    eventually(lambda: prometheus.firing() == set())
    names = re.findall(
        OURS, " ".join([query for _, query, _ in answers()] + [rule["query"] for rule in rules(prometheus)])
    )
    no_job_runs = {"recrawl_job_running_since_timestamp_seconds"}
    assert set(names) - no_job_runs <= set(prometheus.get("label/__name__/values"))
    assert prometheus.get("label/instance/values", **{"match[]": "recrawl_up"}) == [prometheus.instance]


def rules(prometheus: Prometheus) -> list[dict[str, Any]]:
    return [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]


def test_what_goes_wrong_rings_and_stops_when_it_is_fixed(crawl: Crawl, prometheus: Prometheus) -> None:
    def rings(*alerts: str, **otherwise: float) -> None:
        def is_so() -> bool:
            stands(crawl, **otherwise)
            return prometheus.firing() == set(alerts)

        eventually(is_so)

    rings()
    crawl.connection.execute("select recrawl.pause()")
    rings("RecrawlPaused")
    crawl.connection.execute("select recrawl.resume()")
    rings("RecrawlHostsBlocked", hosts_blocked=5)
    rings("RecrawlLessFresh", fresh=0.4)
    rings()
    ended_run(crawl, "allocate", False, MINUTE)
    rings("RecrawlJobFailing")
    ended_run(crawl, "allocate", True, 0 * MINUTE)
    rings()
    crawl.connection.execute(
        "update recrawl_internal.job set started_at = started_at - %s, ended_at = ended_at - %s", [DAY, DAY]
    )
    rings("RecrawlJobLate")


def test_a_crawl_that_nobody_fetches_stands_still(crawl: Crawl, prometheus: Prometheus) -> None:
    crawl.connection.execute("select recrawl.add_pages('{http://a.test/}')")
    fetch(crawl)
    crawl.connection.execute("select recrawl.fetch_now('{1}')")
    eventually(lambda: crawl.value("select count(*) from queue where due_at <= now()") == 1)
    crawl.age(20 * MINUTE)
    crawl.connection.execute("update recrawl_internal.pulse set at = at - interval '20 minutes'")
    eventually(lambda: "RecrawlStandingStill" in prometheus.firing())
    fetch(crawl)
    eventually(lambda: "RecrawlStandingStill" not in prometheus.firing())


def test_a_transaction_that_is_left_open_is_seen(crawl: Crawl, url: str, prometheus: Prometheus) -> None:
    with psycopg.connect(url) as holder:
        holder.execute("lock table recrawl_internal.pulse in row exclusive mode")
        holder.execute("select pg_current_xact_id()")
        eventually(lambda: (prometheus.value("recrawl_longest_transaction_seconds") or 0) > 3)
    eventually(lambda: (prometheus.value("recrawl_longest_transaction_seconds") or 0) < 3)


def test_a_database_that_goes_is_missed(crawl: Crawl, server: str, prometheus: Prometheus) -> None:
    name = crawl.value("select current_database()")
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(sql.SQL("alter database {} allow_connections false").format(sql.Identifier(name)))
        admin.execute("select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name])
        gone = {"RecrawlDatabaseGone", "RecrawlWorkerGone"}
        eventually(lambda: prometheus.firing() & gone == {"RecrawlDatabaseGone"})
        admin.execute(sql.SQL("alter database {} allow_connections true").format(sql.Identifier(name)))
        eventually(lambda: "RecrawlDatabaseGone" not in prometheus.firing())


def test_a_worker_that_goes_is_missed(prometheus: Prometheus, worker: "subprocess.Popen[str]") -> None:
    worker.terminate()
    assert worker.wait(600) == 0
    eventually(lambda: prometheus.firing() == {"RecrawlWorkerGone"})


def test_what_is_scraped_is_named_as_prometheus_wants_it(crawl: Crawl, worker: object, worker_port: int) -> None:
    promtool = shutil.which("promtool") or pytest.skip("apt install prometheus")
    minute(crawl, fresh=1, budget=1)
    ended_run(crawl, "allocate", True)
    done = subprocess.run([promtool, "check", "metrics"], input=scraped(worker_port), capture_output=True)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


# -- the dashboard --

UNITS = {"bool_yes_no", "bytes", "cps", "none", "percentunit", "reqps", "s", "short"}


def test_the_panels_fill_a_grid_and_say_their_units() -> None:
    taken = [
        (x, y)
        for at in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(taken) == len(set(taken)) == 24 * (1 + max(y for _, y in taken))
    assert {x for x, _ in taken} == set(range(24))
    for panel in DASHBOARD["panels"]:
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS and panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


def test_every_query_is_of_the_crawl_that_was_chosen_and_every_line_has_a_name() -> None:
    for panel, target in PANELS:
        metrics = re.findall(rf"(?:{OURS}|ALERTS)", target["expr"])
        assert metrics and target["expr"].count('instance="$instance"') == len(metrics)
        assert "legendFormat" in target or panel["type"] == "stat"


def test_thresholds_that_stand_in_other_files_are_those_of_the_rules(url: str) -> None:
    (late,) = (target["expr"] for _, target in PANELS if target.get("legendFormat", "").endswith(" is late"))
    assert f"{MISSED} * recrawl_job_interval_seconds" in late
    with psycopg.connect(url) as connection:
        (body,) = connection.execute("select prosrc from pg_proc where proname = 'note_standstill'").fetchone() or ("",)
    assert f"patience    constant interval := '{STANDSTILL.seconds // 60} minutes'" in body


def test_every_alert_says_what_it_means_and_what_to_do_and_links_nowhere(lonely: Prometheus) -> None:
    for rule in rules(lonely):
        assert rule["labels"]["severity"] in {"trouble", "warn"}
        assert set(rule["annotations"]) | {"description"} == {"summary", "description", "fix"}
        assert "$labels.instance" in rule["annotations"]["summary"]
    assert "://" not in RULES + json.dumps(DASHBOARD)
