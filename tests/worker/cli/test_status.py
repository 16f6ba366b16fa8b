"""status, doctor, jobs and run as a user has them, on real crawls in health and with troubles that are planted."""

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from command import Running
from helpers import HOUR, MINUTE, SECOND, Crawl, ended_run, eventually, five_seconds_go_by, result_of, run_job
from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.view import facts, figures
from recrawl.view.rules import RULES
from recrawl.view.verdict import checks, verdict
from worker.cli.test_cli import COMMAND, COMMANDS, environment, error, output, recrawl


def state(url: str) -> str:
    return str(json.loads(recrawl(url, "status", "--json").stdout)["verdict"]["code"])


LISTED = [rule.code for rule in RULES if rule.ok_line]


def found(url: str) -> dict[str, dict[str, Any]]:
    """The findings of doctor that are not ok."""
    done = recrawl(url, "doctor", "--json")
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert [check["code"] for check in said] == LISTED, done.stderr
    levels = {check["level"] for check in said}
    assert done.returncode == (2 if "trouble" in levels else 3 if "warn" in levels else 0)
    return {
        check["code"]: check | {"says": f"{check['headline']} {check['detail']}"}
        for check in said
        if check["level"] != "ok"
    }


@contextmanager
def worker(url: str) -> Iterator[Running]:
    with Running("recrawl", "worker", environment=environment(url) | {"PYTHONUNBUFFERED": "1"}) as process:
        assert any("at work" in line for line in process.stdout)
        yield process


@pytest.fixture
def now(crawl: Crawl) -> Crawl:
    """A crawl by the wall clock: doctor asks it."""
    crawl.now = crawl.value("select clock_timestamp()")
    return crawl


def fetch(crawl: Crawl, pages: int = 40, **result: object) -> None:
    """That many pages of as many hosts, added, handed out, reported and added up."""
    crawl.add(*(f"http://h{place}.test/" for place in range(pages)))
    crawl.tick()
    taken = crawl.next(pages)
    assert len(taken) == pages
    crawl.report(*(result_of(page, **({"content_hash": "a"} | result)) for page in taken))
    add_up(crawl)


def add_up(crawl: Crawl) -> None:
    crawl.value("select take_vitals_at(clock_timestamp() + interval '1 minute')")


# -- the last runs --


def test_the_last_runs_are_found_among_thousands(crawl: Crawl) -> None:
    """A crawl keeps an allocation an hour for 400 days. No job is looked up by anything but an index."""
    for job in ("rates", "allocate"):
        for ok, ago in ((True, 4 * HOUR), (False, 3 * HOUR), (False, 2 * HOUR)):
            ended_run(crawl, job, ok, ago)
    crawl.connection.execute(
        """
        update job set token = token + 10000;
        insert into job (token, job, started_at, alive_until, ended_at, ok)
        select i, (array['rates', 'opic', 'allocate'])[i % 3 + 1], at, at, at, true
        from (select i, now() - interval '400 days' + i * interval '1 hour' as at from generate_series(1, 9000) i) r;
        insert into job (token, job, started_at, alive_until, pid)
        values (20000, 'rates', now() - interval '1 hour', now() + interval '1 minute', pg_backend_pid()),
               (20001, 'allocate', now() - interval '1 hour', now() - interval '59 minutes', null);
        """
    )
    before = rows_read(crawl, "job")
    runs = {run.job: run for run in store.views.last_runs(crawl.connection, figures.LastRun, figures.ALWAYS)}
    assert rows_read(crawl, "job") - before < 50
    assert {job: (run.ok, run.failures, run.message) for job, run in runs.items()} == {
        "rates": (None, 2, "is running"),
        "opic": (True, 0, None),
        "allocate": (False, 3, "its process died, or lost its connection"),
    }
    assert runs["allocate"].seconds == pytest.approx(60)
    assert (runs["rates"].succeeded_at or crawl.now) < runs["rates"].started_at


def rows_read(crawl: Crawl, table: str) -> int:
    crawl.connection.execute("select pg_stat_force_next_flush()")
    return int(
        crawl.value(
            """
            select seq_tup_read + idx_tup_fetch from pg_stat_user_tables
            where schemaname = 'recrawl_internal' and relname = %s
            """,
            table,
        )
    )


# -- status --


def test_status_goes_from_nothing_to_a_crawl_that_works(url: str, now: Crawl, new_database: Callable[..., str]) -> None:
    bare = recrawl(new_database(), "status")
    assert (bare.returncode, "recrawl migrate" in bare.stdout) == (2, True)
    assert state(url) == "empty"
    output(url, "add", "http://h0.test/", "http://h1.test/")
    assert state(url) == "never_fetched"
    eventually(lambda: now.value("select tick(100, 1000)") == now.value("select count(*) from inbox") == 0)
    now.now = now.value("select clock_timestamp()")
    fetch(now)
    five_seconds_go_by(now)
    assert state(url) == "no_worker"
    text = output(url, "status")
    assert text.startswith("▲ No worker runs.") and re.search(r"^  fetches .* 40 in ", text, re.MULTILINE)
    with worker(url):
        eventually(lambda: state(url) in ("nothing_due", "no_allocation"))
        eventually(lambda: output(url, "status").startswith("✓ "))
        eventually(lambda: re.search(r"^. rates .* next ", output(url, "jobs"), re.MULTILINE))
    assert max(map(len, text.splitlines())) <= 80


def test_status_as_json_holds_the_verdict_and_its_figures(url: str) -> None:
    found = json.loads(output(url, "status", "--json"))
    assert set(found) == {"verdict", "figures"}
    assert set(found["verdict"]) == {"code", "level", "headline", "detail", "fixes"}
    assert found["figures"]["now"]["as_of"].startswith("2")


def test_the_exit_code_says_trouble(url: str, now: Crawl) -> None:
    fetch(now)
    assert recrawl(url, "status").returncode == 0
    now.add("http://late.test/")
    now.tick()
    now.connection.execute(
        """
        update host set new_ready_at = now() - interval '12 minutes', last_start_by = '-infinity'
        where name = 'late.test';
        update pulse set at = at - interval '13 minutes';
        update vital set at = at - interval '13 minutes';
        update setting set discovery = 1;
        select setval('host_horizon', 1), setval('horizon_recheck', 1);
        select setval(new_horizon(class), 1) from generate_series(0, 32) class
        """
    )
    done = recrawl(url, "status")
    assert done.returncode == 2, done.stdout
    assert re.match(r"✕ The crawl stands still: no crawler has reported for 1\d min\.", done.stdout)


MISTYPED = ["status --jsno", "statsu", "explain", "run nothing", "dashboard --listen x", "worker --metrics x"]
MISTYPED += ["dashboard --file ''", "experiment nothing", "experiment opic --figure x.pdf", "simulate --per-page 1"]
MISTYPED += [
    f"simulate --web {rest}"
    for rest in (
        "nothing --per-page 1", "steady --per-page -1", "steady --per-page 1 --to 900",
        "steady --per-page 1 --policy nobody", "steady --per-page 1 --policy oracle --sql",
        "steady --per-page 1 --database x --policy uniform --policy optimal",
    )
]  # fmt: skip


@pytest.mark.parametrize("arguments", [shlex.split(line) for line in MISTYPED], ids=MISTYPED)
def test_a_mistyped_command_is_not_taken_for_trouble(arguments: list[str]) -> None:
    done = recrawl(None, *arguments)
    assert done.returncode == 64 and len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("command", ["status", "doctor"])
@pytest.mark.parametrize(("version", "says"), [("9999", "newer"), ("0000", "older")])
def test_a_database_of_another_version_is_told(
    url: str, connection: psycopg.Connection, command: str, version: str, says: str
) -> None:
    connection.execute("update recrawl_internal.alembic_version set version_num = %s", [version])
    done = recrawl(url, command)
    assert done.returncode == 2 and says in done.stdout, done.stderr


LOOKING = [
    "status",
    "doctor",
    "jobs",
    "look",
    "next",
    "release 1",
    "dashboard --file -",
    "dashboard",
    "plan",
    "compare",
]
LOOKING += ["explain 1", "run allocate"]


@pytest.mark.parametrize("command", LOOKING)
def test_where_there_is_no_crawl_a_look_makes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("RECRAWL_DATA_DIR", str(tmp_path / "data"))
    said = error(None, *command.split(), cwd=tmp_path)
    assert "no crawl" in said and "`recrawl up`" in said and "DATABASE_URL" in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["status", "add http://a.test/", "worker", "up"])
def test_a_command_whose_server_does_not_run_is_told_so(command: str) -> None:
    away = "postgresql://postgres@/recrawl?host=%2Ftmp%2Frecrawl-1000-0123456789abcdef&port=5432"
    said = "recrawl: the embedded PostgreSQL does not run: start `env -u DATABASE_URL recrawl up` and leave it running"
    assert error(away, *command.split()) == said
    assert error("postgresql://127.0.0.1:9/x", *command.split()).endswith("port 9 failed: Connection refused")


def test_a_crawl_that_stands_still_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="recrawl-look-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        monkeypatch.setenv("RECRAWL_DATA_DIR", f"{folder}/data")
        assert output(None, "add", "http://a.test/") == "1 new\n"
        # If an entry of the inbox is committed more than half a second after its time, upkeep finds it seconds later.
        eventually(lambda: output(None, "run", "upkeep") and "http://a.test/" in output(None, "look"))


@pytest.mark.parametrize("command", ["status", "doctor", "jobs"])
def test_a_server_that_is_away_is_one_line(command: str) -> None:
    away = "postgresql://nobody@127.0.0.1:1/none"
    assert "connection" in error(away, command)
    assert recrawl(away, command).returncode == 1, "which no verdict has"


# -- doctor --


def test_doctor_is_silent_on_a_healthy_crawl(url: str, now: Crawl) -> None:
    fetch(now)
    with server_set(now, max_wal_size="2GB", fsync="on", full_page_writes="on"), worker(url):
        eventually(lambda: not found(url))
        eventually(lambda: re.search(r"^(\d+) of \1 checks are well$", recrawl(url, "doctor").stdout, re.MULTILINE))


@contextmanager
def server_set(crawl: Crawl, **values: str) -> Iterator[None]:
    """The server of the tests has other values, which make tests faster."""

    def put(values: dict[str, str]) -> None:
        for name, value in values.items():
            crawl.connection.execute(sql.SQL("alter system set {} = {}").format(sql.Identifier(name), value))
        crawl.connection.execute("select pg_reload_conf()")

    before = {name: crawl.value("select current_setting(%s)", name) for name in values}
    put(values)
    yield
    put(before)


def test_doctor_says_that_a_database_was_not_migrated(new_database: Callable[..., str]) -> None:
    done = recrawl(new_database(), "doctor")
    assert done.returncode == 2 and "recrawl migrate" in done.stdout


def test_a_transaction_that_holds_hosts_is_found_with_its_process(url: str, now: Crawl) -> None:
    fetch(now, 5)
    with psycopg.connect(url) as other, pytest.MonkeyPatch.context() as patch:
        other.execute("select from recrawl_internal.host for update")
        patch.setattr(facts, "OPEN", 0 * SECOND)
        with psycopg.connect(url, autocommit=True) as connection:
            said = {check.code: check for check in checks(facts.read(connection, False))}
        check = said["transaction_open"]
        assert check.level == "trouble" and "locks hosts" in check.detail
        now.connection.execute(check.fixes[0].do.encode())
        with pytest.raises(psycopg.OperationalError):
            other.execute("select 1")


def test_a_prepared_transaction_that_holds_hosts_is_found(url: str, now: Crawl) -> None:
    fetch(now, 5)
    with psycopg.connect(url, autocommit=True) as connection, pytest.MonkeyPatch.context() as patch:
        if connection.execute("show max_prepared_transactions").fetchall() == [("0",)]:
            pytest.skip("the server allows no prepared transactions")
        name = f"recrawl_test_{os.getpid()}"
        connection.execute(
            f"begin; update recrawl_internal.host set strikes = 0; prepare transaction '{name}'".encode()
        )
        patch.setattr(facts, "OPEN", 0 * SECOND)
        check = {check.code: check for check in checks(facts.read(connection, False))}["transaction_open"]
        connection.execute(check.fixes[0].do.encode())
        assert connection.execute("select from pg_prepared_xacts where gid = %s", [name]).fetchall() == []
        assert check.level == "trouble" and "locks hosts" in check.detail


def test_a_stopped_worker_is_found(url: str, now: Crawl) -> None:
    fetch(now, 5)
    five_seconds_go_by(now)
    assert found(url)["no_worker"]["level"] == "warn"
    with worker(url) as process:
        eventually(lambda: not {"no_worker", "worker_silent"} & set(found(url)))
        process.send_signal(signal.SIGSTOP)
        five_seconds_go_by(now)
        eventually(lambda: "worker_silent" in found(url))
        assert "is connected" in found(url)["worker_silent"]["says"]
        process.send_signal(signal.SIGCONT)
        eventually(lambda: "worker_silent" not in found(url))


def test_a_blocked_host_of_which_much_is_due_is_found(url: str, now: Crawl) -> None:
    now.add(*(f"http://a.test/{place}" for place in range(30)))
    now.tick()
    now.connection.execute("select recrawl.block_host('a.test', reason => 'too fast')")
    assert "host is blocked: a.test." in output_of(url, "doctor")
    now.add(*(f"http://h{place}.test/" for place in range(5)))
    now.tick()
    for place in range(5):
        now.connection.execute(f"select recrawl.block_host('h{place}.test')")
    assert "6 hosts are blocked" in found(url)["hosts_blocked"]["says"]


def test_reports_that_never_say_whether_a_page_changed_are_found(url: str, now: Crawl) -> None:
    fetch(now, content_hash=None)
    assert "changes_not_reported" not in found(url), "the first fetch has nothing to compare with"
    again(now, status=200)
    assert "do not say whether" in found(url)["changes_not_reported"]["says"]


def again(crawl: Crawl, **result: object) -> None:
    """The pages that were fetched are due once more, handed out and reported."""
    crawl.connection.execute("select recrawl.fetch_now(array(select page_id from page))")
    crawl.now = crawl.value("select clock_timestamp()") + 10 * SECOND
    crawl.tick()
    taken = crawl.next()
    assert len(taken) > 20
    crawl.now = crawl.value("select clock_timestamp()")
    crawl.report(*(result_of(page, **result) for page in taken))
    add_up(crawl)


def test_failures_are_found_by_kind(url: str, now: Crawl) -> None:
    fetch(now, status=-1)
    assert "40 had no answer or an error" in found(url)["fetches_fail"]["says"]


def test_leases_that_run_out_and_what_is_reported_after_are_found(url: str, now: Crawl) -> None:
    now.add(*(f"http://h{place}.test/" for place in range(40)))
    now.tick()
    add_up(now)
    taken = now.next(40, lease=SECOND)
    now.wait(5 * MINUTE)
    now.tick()
    now.now = now.value("select clock_timestamp()")
    now.report(*(result_of(page) for page in taken))
    now.value(
        "select take_vitals_at(clock_timestamp() + interval '7 minutes')"
    )  # the leases were ended 5 minutes ahead
    said = found(url)
    assert "100 %" in said["leases_end"]["says"]
    assert "after their lease had ended" in said["reports_rejected"]["says"]


def test_a_job_that_failed_and_an_allocation_of_other_settings_are_found(url: str, now: Crawl) -> None:
    fetch(now)
    run_job("allocate", url)
    assert not {"job_failing", "allocation_outdated"} & set(found(url))
    now.connection.execute("select recrawl.set_setting('objective', 'harmonic')")
    assert "harmonic" in found(url)["allocation_outdated"]["says"]
    now.connection.execute("select recrawl.set_setting('objective', 'freshness')")
    now.add(*(f"http://h{place % 7}.test/more/{place}" for place in range(100)))
    assert "added after" in found(url)["allocation_outdated"]["says"]
    token = now.value("select start_job('rates', '1 minute')")
    now.value("select end_job(%s, false, 'no such luck')", token)
    assert "No such luck" in found(url)["job_failing"]["says"]
    assert "✕ rates" in output(url, "jobs") and "no such luck" in output(url, "jobs", "rates")


@pytest.mark.parametrize("earlier", [None, 60_000])
def test_a_new_budget_counts_from_the_minute_in_which_it_was_set(url: str, now: Crawl, earlier: float | None) -> None:
    """The crawl made 30 fetches a minute, and then 15. The new budget allows 13.9."""
    now.connection.execute("select recrawl.set_setting('budget', '20000')")
    now.connection.execute(
        """
        insert into recrawl_internal.vital (at, fetches, budget)
        select date_trunc('minute', now()) - m * '1 minute'::interval,
               case when m > 400 then 30 else 15 end, case when m > 400 then %s else 20000 end
        from generate_series(1, 1200) m
        """,
        [earlier],
    )
    assert "over_budget" not in found(url)
    now.connection.execute("update recrawl_internal.vital set fetches = 2 * fetches")
    assert "over_budget" in found(url)


def test_a_host_with_most_of_the_pages_is_found(url: str, now: Crawl) -> None:
    now.add(*(f"http://trap.test/{place}" for place in range(1500)), "http://a.test/")
    now.tick()
    check = found(url)["big_host"]
    assert check["says"].startswith("trap.test has > 99 % of all pages")
    now.connection.execute(check["fixes"][0]["do"])


def test_crawlers_that_log_in_as_superuser_are_found(
    url: str, open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(url, autocommit=True) as crawler:
        crawler.execute("select * from recrawl.next_pages(1)")
        assert "superuser" in found(url)["crawler_is_superuser"]["says"]
        if "DATABASE_URL" not in os.environ:  # the server of these tests is an embedded one
            monkeypatch.setenv("RECRAWL_DATA_DIR", str(open_folder / "postgres"))
            assert "crawler_is_superuser" not in found(url), "it is another database of the user's embedded server"
    eventually(lambda: "crawler_is_superuser" not in found(url))


def test_a_slot_that_nobody_reads_is_seen(url: str, connection: psycopg.Connection) -> None:
    name = f"recrawl_test_{os.getpid()}"
    connection.execute("select pg_create_physical_replication_slot(%s, true)", [name])
    try:
        (slot,) = [slot for slot in facts.read(connection, False).slots if slot.name == name]
        assert not slot.active and slot.kept_bytes is not None and slot.transactions_behind is None
    finally:
        connection.execute("select pg_drop_replication_slot(%s)", [name])


def test_a_pause_is_found_and_its_fix_ends_it(url: str, connection: psycopg.Connection) -> None:
    connection.execute("select recrawl.add_pages('{http://a.test/}')")
    connection.execute("select recrawl.pause()")
    assert state(url) == "paused"
    connection.execute(found(url)["paused"]["fixes"][0]["do"])
    assert "paused" not in found(url)


def test_a_held_inbox_is_found(url: str, now: Crawl) -> None:
    fetch(now, 5)
    with psycopg.connect(url) as other:
        other.execute("select from recrawl_internal.host for update")
        now.connection.execute("insert into inbox (host_id, page_id) select host_id, page_id from page")
        now.connection.execute("select setval('inbox_horizon', 1)")
        five_seconds_go_by(now)
        with psycopg.connect(url, autocommit=True) as connection:
            for waited, is_found in (4 * MINUTE, False), (6 * MINUTE, True):
                now.connection.execute("update inbox set at = now() - %s", [waited])
                assert (verdict(figures.read(connection)).code == "inbox_stuck") == is_found, "no worker runs"


def output_of(url: str, *arguments: str) -> str:
    return recrawl(url, *arguments).stdout


# -- jobs and run --


def test_jobs_tells_what_ran_what_comes_and_the_runs_of_one(url: str, now: Crawl) -> None:
    assert "never ran" in output(url, "jobs")
    assert output(url, "jobs", "opic") == "opic never ran: recrawl run opic\n"
    fetch(now, 5)
    run_job("allocate", url)
    five_seconds_go_by(now)
    text = output(url, "jobs")
    assert re.search(r"^✓ allocate +ran .* ago, took ", text, re.MULTILINE)
    assert "No worker runs" in text
    of_all = output(url, "jobs", "--json")
    (run,) = [json.loads(line) for line in of_all.splitlines()]
    assert run["ok"] and run["job"] == "allocate" and output(url, "jobs", "allocate", "--json") == of_all
    assert {name for name in JOBS if re.search(rf"^. {name} ", text, re.MULTILINE)} == set(JOBS)


def test_jobs_shows_that_a_long_message_is_cut(url: str, now: Crawl) -> None:
    now.connection.execute("select note_failure('rates', 0, %s, false)", ["word " * 100])
    assert "word …" in output(url, "jobs") and "…" not in output(url, "jobs", "rates")


def test_off_a_terminal_a_run_says_a_line_a_step(url: str, now: Crawl) -> None:
    fetch(now, 5)
    done = recrawl(url, "run", "allocate")
    steps = done.stderr.splitlines()
    assert done.returncode == 0 and steps[0] == "reading the pages" and "writing the prices" in steps
    assert len(steps) == len(set(steps)) and "\x1b" not in done.stderr


def test_what_others_wrote_does_not_steer_the_terminal(url: str, now: Crawl) -> None:
    token = now.value("select coalesce(max(token), 0) from job")
    now.connection.execute("select note_failure('rates', %s, %s, false)", [token, "\x1b]0;pwned\x07 \u202egnorw"])
    for command in ("jobs", "doctor"):
        said = recrawl(url, command).stdout
        assert "pwned" in said and not {"\x1b", "\x07", "\u202e"} & set(said)


def test_a_job_that_fails_is_one_line(url: str, now: Crawl) -> None:
    now.value("select start_job('rates', '1 minute')")
    assert "is being run by another worker" in error(url, "run", "rates").replace("\n", "")


class Terminal:
    """A command on a terminal of 80 by 24."""

    def __init__(self, url: str, *arguments: str) -> None:
        self.said = ""
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        env = {name: value for name, value in environment(url).items() if name != "COLUMNS"} | {"TERM": "xterm"}
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)

    def until(self, words: str, seconds: float = 600) -> None:
        until = time.monotonic() + seconds
        while words not in self.said:
            assert time.monotonic() < until, self.said
            if select.select([self.master], [], [], 0.2)[0]:
                self.said += os.read(self.master, 65536).decode(errors="replace")


@pytest.mark.parametrize("no_color", ["", "1"])
def test_on_a_terminal_the_mark_has_a_colour(url: str, no_color: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    with Terminal(url, "status") as terminal:
        terminal.until("There is no page yet.")
        assert terminal.said.startswith("✓ Ready." if no_color else "\x1b[32m\x1b[1m✓\x1b[0m Ready.")


# -- a login that may only read --

READS = {
    "status": "recrawl doctor", "doctor": "checks are well", "jobs": "allocate", "jobs allocate": "freshness",
    "explain http://h1.test/": "h1.test", "dashboard --file -": "</html>", "psql -c 'table queue_status'": "(1 row)",
}  # fmt: skip
ON_A_TERMINAL = {"dashboard --listen 127.0.0.1:0": "Ctrl-C stops it"}
NEEDS_A_ROLE = {
    "look": "worker", "plan": "worker", "compare": "worker", "run allocate": "worker",
    "worker": "worker", "next": "crawler", "release 1": "crawler", "urlfrontier --listen 127.0.0.1:0": "crawler",
    "add http://a.test/": "operator",
}  # fmt: skip
NEEDS_THE_OWNER = ["migrate", "up"]
NEEDS_NO_CRAWL = ["demo", "simulate", "experiment"]


@pytest.fixture
def reader(url: str, crawl: Crawl) -> Iterator[str]:
    """The URL for a login that has the role recrawl_reader and no other."""
    login = f"{make_url(url).database}_reader"
    crawl.connection.execute(f"create role {login} login password 'x' in role recrawl_reader".encode())
    yield make_url(url).set(username=login, password="x").render_as_string(hide_password=False)
    crawl.connection.execute(f"drop role {login}".encode())


def test_a_reader_can_look_at_everything_and_each_other_command_names_its_role(
    url: str, reader: str, now: Crawl
) -> None:
    tried = [*READS, *ON_A_TERMINAL, *NEEDS_A_ROLE, *NEEDS_THE_OWNER, *NEEDS_NO_CRAWL]
    assert {line.split()[0] for line in tried} == set(COMMANDS)
    fetch(now)
    run_job("allocate", url)
    for line, words in READS.items():
        done = recrawl(reader, *shlex.split(line))
        assert words in done.stdout and not done.stderr, (line, done.stderr)
    eventually(lambda: output(reader, "status").splitlines()[0] == output(url, "status").splitlines()[0])
    unseen = {code for code, check in found(reader).items() if check["level"] == "unseen"}
    assert unseen <= {"transaction_open", "crawler_is_superuser"}
    for line, words in ON_A_TERMINAL.items():
        with Terminal(reader, *line.split()) as terminal:
            terminal.until(words)
            if shown := re.search(r"http://\S+", terminal.said):
                assert "</html>" in urllib.request.urlopen(shown[0], timeout=60).read().decode()
    for line, role in NEEDS_A_ROLE.items():
        said = error(reader, *line.split())
        assert re.findall(r"GRANT (recrawl_\w+)", said) == [f"recrawl_{role}"], said
    for line in NEEDS_THE_OWNER:
        assert "only the owner" in error(reader, line)


def test_on_a_terminal_a_run_shows_bars(url: str, now: Crawl) -> None:
    fetch(now)
    with Terminal(url, "run", "allocate") as terminal:
        terminal.until("due earlier than before")
        assert terminal.process.wait(60) == 0
        assert "100 %" in terminal.said and "━" in terminal.said


@pytest.mark.parametrize("command", ["status", "doctor", "jobs"])
def test_what_a_screen_needs_is_loaded_and_nothing_heavy(url: str, command: str) -> None:
    code = (
        "import sys; from recrawl.__main__ import main; sys.argv = ['recrawl', sys.argv[1]]\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, command], env=environment(url), capture_output=True, text=True, timeout=60
    )
    loaded = set(done.stderr.split())
    assert "psycopg" in loaded and not loaded & {"numpy", "sqlalchemy", "alembic", "rich", "apscheduler", "scipy"}
