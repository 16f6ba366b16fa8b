"""The numbers in a scrape, also while the database is slow or away."""

import http.client
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta

import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families
from psycopg import sql
from sqlalchemy.engine import make_url

from helpers import DAY, HOUR, MINUTE, Crawl, ended_run, eventually, free_port, minute
from recrawl import cli
from recrawl.view import metrics

LOOPBACK = "127.0.0.1"
Samples = dict[str, float]


@contextmanager
def endpoint(url: str) -> Iterator[Callable[[], Samples]]:
    """A function that scrapes the metrics of a database. It starts after the first reading of the database."""
    with metrics.served(url, LOOPBACK, 0) as port:
        up(port)
        yield lambda: up(port)


def text(port: int, path: str = "/metrics") -> str:
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}{path}", timeout=20) as answer:
        return str(answer.read().decode())


def scrape(port: int) -> Samples:
    return {
        sample.name + "".join(f"{{{value}}}" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text(port))
        for sample in family.samples
    }


def up(port: int) -> Samples:
    """Scrapes until the database answers in time. On a busy machine one scrape may be too early."""

    def answered() -> Samples:
        found = scrape(port)
        return found if found["recrawl_up"] else {}

    return eventually(answered)


# -- figures --


def test_a_new_crawl_has_counters_at_zero_and_no_figures_that_nobody_knows(url: str) -> None:
    with endpoint(url) as scraped:
        found = scraped()
    assert found["recrawl_up"] == 1
    assert {f"recrawl_fetches_total{{{outcome}}}" for outcome in metrics.OUTCOMES} <= set(found)
    assert not any(found[name] for name in found if re.match("recrawl_(revisit_lateness_|.*_total)", name))
    assert found["recrawl_ready_wait_seconds"] == found["recrawl_paused"] == 0
    assert not {"recrawl_freshness_ratio", "recrawl_budget_fetches_per_second"} & set(found)


def test_the_figures_are_those_of_the_last_minute_in_seconds_and_shares(crawl: Crawl, url: str) -> None:
    minute(crawl, 3 * MINUTE, fresh=0.1, budget=5)
    minute(crawl, 2 * MINUTE, fresh=0.7, expected=0.8, budget=864_000, due_crawler=1, due_gap=2, due_blocked=3)
    crawl.connection.execute("select recrawl.pause()")
    with endpoint(url) as scraped:
        found = scraped()
    assert found["recrawl_freshness_ratio"] == pytest.approx(0.7)
    assert found["recrawl_freshness_expected_ratio"] == pytest.approx(0.8)
    assert found["recrawl_budget_fetches_per_second"] == 10
    assert [found[f"recrawl_late_pages{{{of}}}"] for of in ("crawler", "gap", "block")] == [1, 2, 3]
    assert found["recrawl_paused"] == 1
    assert 0 < time.time() - found["recrawl_vitals_timestamp_seconds"] < 600


def test_jobs_tell_how_they_do(crawl: Crawl, url: str) -> None:
    ended_run(crawl, "allocate", True, 3 * HOUR)
    ended_run(crawl, "allocate", False, HOUR)
    ended_run(crawl, "somebody's own", False, HOUR)
    crawl.connection.execute("select set_setting('opic_every', 'none')")
    with endpoint(url) as scraped:
        found = scraped()
        assert found["recrawl_job_failures_since_success{allocate}"] == 1
        assert time.time() - found["recrawl_job_last_success_timestamp_seconds{allocate}"] == pytest.approx(
            10800, abs=600
        )
        assert "recrawl_job_last_success_timestamp_seconds{rates}" not in found
        assert found["recrawl_job_interval_seconds{allocate}"] == 3600
        assert "recrawl_job_interval_seconds{opic}" not in found
        assert found["recrawl_job_runs_total{allocate}{failed}"] == 0, "before this process"
        ended_run(crawl, "allocate", True, timedelta(0))
        ended_run(crawl, "rates", False, timedelta(0))
        for _ in range(2):
            found = scraped()
            assert found["recrawl_job_runs_total{allocate}{ok}"] == 1
            assert found["recrawl_job_runs_total{allocate}{failed}"] == 0
            assert found["recrawl_job_run_seconds_total{allocate}"] == pytest.approx(3)
            assert found["recrawl_job_runs_total{rates}{failed}"] == 1
            assert found["recrawl_job_failures_since_success{allocate}"] == 0
        assert not any("somebody" in name for name in found), "no label that anybody can make up"
        for error, failures in ((None, 0), ("disk full", 1), (None, 0)):
            crawl.value("select note_health('upkeep', %s)", error)
            assert scraped()["recrawl_job_failures_since_success{upkeep}"] == failures


def test_a_run_that_ends_after_many_scrapes_is_counted_once(crawl: Crawl, url: str) -> None:
    start = "select recrawl_internal.start_job('rates', interval '1 hour')"
    token = crawl.value(start)
    crawl.connection.execute("update recrawl_internal.job set started_at = now() - interval '1 day'")
    with endpoint(url) as scraped:
        ended_run(crawl, "allocate", True, timedelta(0))
        for _ in range(3):
            found = scraped()
            assert found["recrawl_job_runs_total{rates}{ok}"] == 0
        crawl.connection.execute("select recrawl_internal.end_job(%s, true, '')", [token])
        for _ in range(3):
            found = scraped()
            assert found["recrawl_job_runs_total{rates}{ok}"] == 1
            assert found["recrawl_job_runs_total{allocate}{ok}"] == 1


# -- counters --


def test_a_minute_is_counted_once_and_what_it_gains_later_too(crawl: Crawl, url: str) -> None:
    now = crawl.value("select now()")
    minute(crawl, 5 * MINUTE, now, changed=1000)
    with endpoint(url) as scraped:
        assert scraped()["recrawl_fetches_total{changed}"] == 0, "was there before"
        minute(crawl, 4 * MINUTE, now, changed=10, calls=5, empty_calls=2)
        minute(crawl, 3 * MINUTE, now, changed=7)
        for _ in range(2):
            assert scraped()["recrawl_fetches_total{changed}"] == 17
        minute(crawl, 5 * MINUTE, now, changed=1002)
        minute(crawl, 4 * MINUTE, now, changed=11)
        found = scraped()
        assert found["recrawl_fetches_total{changed}"] == 20
        assert found["recrawl_next_pages_calls_total{pages}"] == 3
        assert found["recrawl_next_pages_calls_total{nothing}"] == 2


def test_a_counter_never_falls_when_rows_go_or_the_clock_is_put_back(crawl: Crawl, url: str) -> None:
    now = crawl.value("select now()")
    with endpoint(url) as scraped:
        minute(crawl, 50 * MINUTE, now, changed=10)
        minute(crawl, 2 * MINUTE, now, changed=5)
        assert scraped()["recrawl_fetches_total{changed}"] == 15
        minute(crawl, -DAY, now, changed=5)  # of a clock that was ahead
        assert scraped()["recrawl_fetches_total{changed}"] == 15
        crawl.connection.execute("delete from recrawl_internal.vital where at < now() - interval '10 minutes'")
        minute(crawl, MINUTE, now, changed=3)
        assert scraped()["recrawl_fetches_total{changed}"] == 18
        minute(crawl, MINUTE, now, changed=1)
        crawl.connection.execute("delete from recrawl_internal.vital")
        assert scraped()["recrawl_fetches_total{changed}"] == 18


def test_what_happened_while_no_worker_ran_is_counted_when_it_comes_to_be_known(crawl: Crawl, url: str) -> None:
    minute(crawl, 2 * DAY, changed=1)
    with endpoint(url) as scraped:
        for ago in range(200, 0, -1):
            minute(crawl, ago * MINUTE, changed=1)
        found = scraped()
    assert found["recrawl_fetches_total{changed}"] == 200


def test_lateness_is_a_histogram(crawl: Crawl, url: str) -> None:
    with endpoint(url) as scraped:
        minute(crawl, late_1m=5, late_10m=4, late_6h=2, late_more=1, late_seconds=250_000)
        found = scraped()
    edges = ("60", "600", "3600", "21600", "86400", "+Inf")
    assert [found[f"recrawl_revisit_lateness_seconds_bucket{{{edge}}}"] for edge in edges] == [5, 9, 9, 11, 11, 12]
    assert found["recrawl_revisit_lateness_seconds_count"] == 12
    assert found["recrawl_revisit_lateness_seconds_sum"] == 250_000


# -- rights --


def test_a_login_that_may_only_read_is_enough(crawl: Crawl, url: str) -> None:
    login = f"{make_url(url).database}_reader"
    crawl.connection.execute(sql.SQL("create role {} login in role recrawl_reader").format(sql.Identifier(login)))
    try:
        as_reader = make_url(url).set(username=login).render_as_string(hide_password=False)
        with endpoint(as_reader) as scraped:
            assert scraped()["recrawl_up"] == 1
    finally:
        crawl.connection.execute(sql.SQL("drop role {}").format(sql.Identifier(login)))


def test_it_looks_as_a_reader_and_writes_nothing_whoever_the_worker_is(crawl: Crawl, url: str) -> None:
    """A view of ours that tells who looks at it."""
    crawl.connection.execute(
        """
        create function recrawl.told() returns bigint language plpgsql as $$
        begin raise exception '% %', current_user, current_setting('transaction_read_only'); end $$;
        create or replace view recrawl.job_run as
            select job, started_at, recrawl.told()::float8 as seconds, ok, message from recrawl_internal.job;
        """
    )
    crawl.connection.execute("select recrawl_internal.start_job('rates', interval '1 hour')")
    collector = metrics.Collector(url)

    def complaint() -> str:
        collector.begin().join()
        return collector.complaint

    # On a busy machine the first complaint may be that the read took too long.
    eventually(lambda: complaint() == "recrawl_reader on")


# -- a database that does not answer --


def up_though_it_waits(url: str) -> float:
    with metrics.served(url, LOOPBACK, 0) as port:
        return scrape(port)["recrawl_up"]  # which waits for an answer for 20 s


def test_a_database_that_is_not_there_is_down() -> None:
    assert up_though_it_waits(f"postgresql://nobody@{LOOPBACK}:{free_port()}/nothing") == 0


def test_a_database_that_stays_away_is_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    collector = metrics.Collector(f"postgresql://nobody@{LOOPBACK}:{free_port()}/nothing")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            collector.read()
    (record,) = caplog.records
    assert re.fullmatch("metrics: .* failed: Connection refused", record.getMessage())


def test_a_database_that_takes_connections_and_says_nothing_is_down() -> None:
    with socket.create_server((LOOPBACK, 0)) as deaf:
        assert up_though_it_waits(f"postgresql://nobody@{LOOPBACK}:{deaf.getsockname()[1]}/nothing") == 0


def test_where_a_lock_holds_it_up_it_gives_up_and_comes_back(crawl: Crawl, url: str) -> None:
    sessions = "select count(*) from pg_stat_activity where datname = current_database() and application_name = %s"
    with metrics.served(url, LOOPBACK, 0) as port:
        up(port)
        with psycopg.connect(url) as holder:
            holder.execute("lock table recrawl_internal.setting")
            with ThreadPoolExecutor(20) as clients:
                asked = [clients.submit(scrape, port) for _ in range(20)]
            answers = [a.result() for a in asked if not isinstance(a.exception(), OSError)]
            assert answers and all(answer["recrawl_up"] == 0 for answer in answers)
            assert crawl.value(sessions, "recrawl metrics") <= 1
            assert len([thread for thread in threading.enumerate() if thread.name == "metrics read"]) <= 1
            holder.rollback()
        up(port)


def test_the_scrape_after_a_restart_of_the_server_finds_it_again(
    crawl: Crawl, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with metrics.served(url, LOOPBACK, 0) as port:
        up(port)
        monkeypatch.setattr(metrics, "SCRAPE_TIMEOUT", 15)  # this machine may be busy
        minute(crawl, changed=3)
        assert scrape(port)["recrawl_fetches_total{changed}"] == 3
        crawl.connection.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
            " where datname = current_database() and application_name = 'recrawl metrics'"
        )
        assert scrape(port)["recrawl_fetches_total{changed}"] == 3


def test_a_client_that_says_nothing_keeps_nobody_waiting(url: str) -> None:
    with metrics.served(url, LOOPBACK, 0) as port:
        silent = [socket.create_connection((LOOPBACK, port)) for _ in range(metrics.CLIENTS - 1)]
        up(port)
        silent.append(socket.create_connection((LOOPBACK, port)))
        with suppress(OSError):
            scrape(port)
        for client in silent:
            client.close()

        def answers() -> bool:
            with suppress(OSError):
                return scrape(port)["recrawl_up"] == 1
            return False

        eventually(answers)


# -- the endpoint --


def test_it_serves_metrics_and_nothing_else(url: str) -> None:
    with metrics.served(url, LOOPBACK, 0) as port:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            text(port, "/etc/passwd")
        here = f"http://{LOOPBACK}:{port}/metrics"
        by_another_name = urllib.request.Request(here, headers={"Host": f"evil.test:{port}"})
        with pytest.raises(urllib.error.HTTPError, match="421"):
            urllib.request.urlopen(by_another_name, timeout=20)
        for name in (f"localhost:{port}", "127.0.0.1"):
            asked = urllib.request.Request(here, headers={"Host": name})
            assert urllib.request.urlopen(asked, timeout=20).status == 200
    with pytest.raises(OSError, match=r"refused|reset"):  # somebody else may have the port by now
        text(port)


def test_an_error_while_figures_are_made_shows_in_recrawl_up_and_in_one_line_of_the_log(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("pages")

    with metrics.served(url, LOOPBACK, 0) as port, caplog.at_level(logging.WARNING):
        assert scrape(port)["recrawl_up"] == 1
        with monkeypatch.context() as broken:
            broken.setattr(metrics, "metrics", fail)
            assert [scrape(port)["recrawl_up"] for _ in range(3)] == [0, 0, 0]
        assert scrape(port)["recrawl_up"] == 1
    assert [record.getMessage() for record in caplog.records] == ["metrics: KeyError('pages')"]


def test_an_error_while_an_answer_is_sent_is_one_line_of_the_log(
    url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    raised: list[Exception] = [KeyError("pages"), ConnectionResetError()]

    def fail(*_: object) -> None:
        raise raised[0]

    with metrics.served(url, LOOPBACK, 0) as port, caplog.at_level(logging.WARNING):
        scrape(port)
        monkeypatch.setattr(metrics, "family", fail)
        while raised:
            with pytest.raises(http.client.RemoteDisconnected):
                text(port)
            del raised[0]
    assert [record.getMessage() for record in caplog.records if "127.0.0.1" in record.getMessage()] == [
        "cannot answer 127.0.0.1: KeyError('pages')"
    ]


def test_the_worker_says_where_it_serves_them_on_a_free_port(url: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "recrawl", "worker", "--metrics", f"{LOOPBACK}:0"],
        env=os.environ | {"DATABASE_URL": url, "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        assert worker.stdout
        said = re.fullmatch(
            r"The metrics for Prometheus are at http://127.0.0.1:(\d+)/metrics\n", worker.stdout.readline()
        )
        assert said and up(int(said[1]))
        worker.terminate()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("somewhere", "'somewhere' is not like 127.0.0.1:9888"),
        ("127.0.0.1:99999", "'127.0.0.1:99999' is not like 127.0.0.1:9888"),
        ("192.0.2.1:9888", "metrics cannot be served on 192.0.2.1:9888"),
    ],
)
def test_an_address_that_cannot_be_is_an_error_in_a_line(
    given: str, said: str, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    monkeypatch.setattr("sys.argv", ["recrawl", "worker", "--metrics", given])
    with pytest.raises(SystemExit):
        cli.main()
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
