"""The alert rules: each fires on what it is for, and none on a crawl that is well. By promtool, on made-up series."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

RULES = Path(__file__).parents[3] / "docs/monitoring/prometheus-alerts.yml"
HOURS = 8  # of series, at whose end it is asked what fires
HOURS_OF_SLOW = 26  # of those that wait for a day, or look a day back
SLOW = {"RecrawlPaused", "RecrawlOverBudget", "a healthy crawl", "a budget is set", "the budget is lowered"}
STEPS = HOURS_OF_SLOW * 12  # of five minutes
Series = dict[str, str]  # each with its values as promtool has them


def steady(value: float) -> str:
    return f"{value}+0x{STEPS}"


def counting(per_minute: float) -> str:
    return f"0+{5 * per_minute}x{STEPS}"


AS_TIME_GOES = counting(60)
GONE = ""  # no such series

# A thousand fetches a minute; a few go wrong, a few come late, and sometimes a host is blocked.
HEALTHY: Series = {
    'up{job="recrawl"}': steady(1),
    "recrawl_up": steady(1),
    "recrawl_worker_is_running": steady(1),
    "recrawl_vitals_timestamp_seconds": AS_TIME_GOES,
    "recrawl_last_report_timestamp_seconds": AS_TIME_GOES,
    "recrawl_ready_wait_seconds": "0 2 70 5 " * (STEPS // 4),
    "recrawl_paused": steady(0),
    'recrawl_fetches_total{outcome="changed"}': counting(300),
    'recrawl_fetches_total{outcome="unchanged"}': counting(550),
    'recrawl_fetches_total{outcome="first"}': counting(80),
    'recrawl_fetches_total{outcome="missing"}': counting(20),
    'recrawl_fetches_total{outcome="failed"}': counting(40),
    'recrawl_fetches_total{outcome="throttled"}': counting(5),
    'recrawl_fetches_total{outcome="denied"}': counting(5),
    "recrawl_fetches_change_unknown_total": counting(100),
    'recrawl_reports_not_accepted_total{reason="stale_lease"}': counting(5),
    'recrawl_reports_not_accepted_total{reason="duplicate"}': counting(5),
    'recrawl_reports_not_accepted_total{reason="refused"}': counting(1),
    "recrawl_hosts": steady(5000),
    "recrawl_hosts_blocked": steady(40),
    "recrawl_pages_handed_out_total": counting(1010),
    "recrawl_pages_expired_total": counting(10),
    "recrawl_slots_missed_total": counting(10),
    "recrawl_revisits_skipped_total": counting(2),
    "recrawl_revisit_lateness_seconds_count": counting(850),
    "recrawl_freshness_ratio": steady(0.70),
    "recrawl_freshness_error_ratio": steady(0.01),
    "recrawl_freshness_expected_ratio": steady(0.74),
    "recrawl_covered_ratio": steady(0.99),
    "recrawl_budget_fetches_per_second": steady(1000 / 60),
    'recrawl_job_failures_since_success{job_name="allocate"}': steady(0),
    'recrawl_job_last_success_timestamp_seconds{job_name="allocate"}': f"_x12 0+300x{STEPS}",
    'recrawl_job_interval_seconds{job_name="allocate"}': steady(3600),
    'recrawl_job_due_timestamp_seconds{job_name="allocate"}': AS_TIME_GOES,
    "recrawl_longest_transaction_seconds": steady(4),
    "recrawl_inbox_wait_seconds": steady(0.4),
    'recrawl_job_running_since_timestamp_seconds{job_name="opic"}': GONE,  # no job runs
}
EMPTY: Series = {series: steady(0) for series in HEALTHY if "_total" in series or "_count" in series}

FIRES: dict[str, Series] = {
    "RecrawlWorkerGone": dict.fromkeys(HEALTHY, GONE) | {'up{job="recrawl"}': steady(0)},
    "RecrawlDatabaseGone": {series: GONE for series in HEALTHY if "up" not in series} | {"recrawl_up": steady(0)},
    "RecrawlWorkerSilent": {"recrawl_worker_is_running": steady(0)},
    "RecrawlStandingStill": EMPTY
    | {"recrawl_last_report_timestamp_seconds": GONE, "recrawl_ready_wait_seconds": AS_TIME_GOES},
    "RecrawlCrawlersSlow": {"recrawl_ready_wait_seconds": steady(90)},
    "RecrawlPaused": EMPTY | {"recrawl_paused": steady(1), "recrawl_ready_wait_seconds": AS_TIME_GOES},
    "RecrawlFetchesFail": {
        'recrawl_fetches_total{outcome="failed"}': counting(300),
        'recrawl_fetches_total{outcome="changed"}': counting(100),
    },
    "RecrawlHostsBlocked": {"recrawl_hosts_blocked": steady(600)},
    "RecrawlLeasesEnd": {"recrawl_pages_expired_total": counting(80)},
    "RecrawlSlotsMissed": {"recrawl_slots_missed_total": counting(80)},
    "RecrawlReportsRejected": {'recrawl_reports_not_accepted_total{reason="stale_lease"}': counting(80)},
    "RecrawlChangesNotReported": {"recrawl_fetches_change_unknown_total": counting(500)},
    "RecrawlRevisitsSkipped": {"recrawl_revisits_skipped_total": counting(60)},
    "RecrawlLessFresh": {"recrawl_freshness_ratio": steady(0.55)},
    "RecrawlOverBudget": {"recrawl_budget_fetches_per_second": steady(800 / 60)},
    "RecrawlJobFailing": {'recrawl_job_failures_since_success{job_name="allocate"}': steady(3)},
    "RecrawlJobLate": {'recrawl_job_due_timestamp_seconds{job_name="allocate"}': steady(60)},
    "RecrawlTransactionOpen": {"recrawl_longest_transaction_seconds": AS_TIME_GOES},
    "RecrawlInboxStuck": {"recrawl_inbox_wait_seconds": steady(100)},
}
SILENT: dict[str, Series] = {
    "a healthy crawl": {},
    "nothing to do": EMPTY | {"recrawl_last_report_timestamp_seconds": GONE, "recrawl_ready_wait_seconds": steady(0)},
    "a new crawl": {
        series: GONE
        for series in HEALTHY
        if re.match("recrawl_(vitals|hosts|freshness|covered|budget|job|last_report)", series)
    },
    "no budget, another objective, a job without a schedule": {
        "recrawl_budget_fetches_per_second": GONE,
        "recrawl_freshness_expected_ratio": GONE,
        'recrawl_job_interval_seconds{job_name="allocate"}': GONE,
        'recrawl_job_due_timestamp_seconds{job_name="allocate"}': GONE,
        'recrawl_job_last_success_timestamp_seconds{job_name="allocate"}': steady(60),
    },
    "a job has waited for another job for an hour": {
        'recrawl_job_due_timestamp_seconds{job_name="allocate"}': f"-3600+300x{STEPS}",
        'recrawl_job_running_since_timestamp_seconds{job_name="opic"}': f"-3600+300x{STEPS}",
    },
    "three of four fetches fail, of four an hour": EMPTY
    | {
        'recrawl_fetches_total{outcome="failed"}': counting(3 / 60),
        'recrawl_fetches_total{outcome="changed"}': counting(1 / 60),
    },
    "a budget is set": {"recrawl_budget_fetches_per_second": f"_x{STEPS - 36} {800 / 60}+0x36"},
    "the budget is lowered": {
        "recrawl_budget_fetches_per_second": f"{1000 / 60}+0x{STEPS - 36} {800 / 60}+0x36"
    },
    "the worker is started again every two hours": {
        series: f"{values.partition('x')[0]}x23 " * (STEPS // 24)
        for series, values in HEALTHY.items()
        if "_total" in series
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def promtool() -> str:
    return shutil.which("promtool") or pytest.skip("apt install prometheus")


def series_of(changes: Series) -> list[dict[str, str]]:
    assert set(changes) <= set(HEALTHY)
    return [{"series": series, "values": values} for series, values in (HEALTHY | changes).items() if values]


def run(promtool: str, folder: Path, name: str, changes: Series, alerts: list[str]) -> str:
    """The complaints of promtool; '' if exactly these alerts fire on these series."""
    asked = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{HOURS_OF_SLOW if name in SLOW else HOURS}h",
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in alerts],
    }
    file = folder / "cases.yml"
    file.write_text(  # JSON is YAML, too
        json.dumps(
            {
                "rule_files": [str(RULES)],
                "evaluation_interval": "5m",
                "tests": [{"interval": "5m", "input_series": series_of(changes), "promql_expr_test": [asked]}],
            }
        )
    )
    done = subprocess.run([promtool, "test", "rules", str(file)], capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_the_rules_are_well_formed(promtool: str) -> None:
    done = subprocess.run(
        [promtool, "check", "rules", "--lint=all", "--lint-fatal", RULES], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert set(re.findall(r"- alert: (\w+)", RULES.read_text())) == set(FIRES)


@pytest.mark.parametrize("alert", FIRES)
def test_an_alert_fires_on_what_it_is_for_and_no_other_does(alert: str, promtool: str, tmp_path: Path) -> None:
    assert not run(promtool, tmp_path, alert, FIRES[alert], [alert])


@pytest.mark.parametrize("name", SILENT)
def test_nothing_fires_on_a_crawl_that_is_well(name: str, promtool: str, tmp_path: Path) -> None:
    assert not run(promtool, tmp_path, name, SILENT[name], [])
