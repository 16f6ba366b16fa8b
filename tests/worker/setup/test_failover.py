"""A standby becomes the primary. It gives no id that the old primary may have given, also if changes were lost."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import pytest
from psycopg.rows import dict_row

from helpers import Row, eventually
from recrawl.setup import migrate
from recrawl.setup.folder import account_uid, as_account
from recrawl.setup.programs import program

DEBIAN = Path("/usr/lib/postgresql/15/bin")
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '..'  # next to the data directory, which standbys copy
fsync = off
wal_log_hints = on  # pg_rewind needs this, and the log since the last checkpoint
wal_keep_size = '200MB'
wal_retrieve_retry_interval = '100ms'
wal_receiver_timeout = 0  # a standby that gets nothing must not connect again
"""
HOSTS = 150


class Server:
    """A server that is started, killed and promoted by hand."""

    def __init__(self, programs: Path, folder: Path) -> None:
        self.programs, self.data = programs, folder / "data"
        folder.mkdir()
        if os.geteuid() == 0:
            os.chown(folder, account_uid(), -1)
        self.folder = folder
        self.url = f"postgresql://postgres@/postgres?host={quote(str(folder), safe='')}"
        self.connection: psycopg.Connection[Row] | None = None

    def run(self, name: str, *arguments: str) -> None:
        """Runs one of PostgreSQL's programs. Its output goes to a file: a server would keep a pipe open."""
        with (self.folder / "output").open("w+") as output:
            command = [str(self.programs / name), *arguments]
            code = subprocess.run(command, stdout=output, stderr=output, cwd="/", **as_account()).returncode
            output.seek(0)
            assert code == 0, output.read() + (self.folder / "log").read_text()

    def make(self) -> None:
        self.run(
            "initdb", f"--pgdata={self.data}", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"
        )
        with (self.data / "postgresql.conf").open("a") as settings:
            settings.write(SETTINGS)
        self.start()

    def follow(self, primary: "Server", rewind: bool) -> None:
        """Becomes a standby, as a copy of the primary or, if it was the primary itself, by pg_rewind."""
        if rewind:
            self.run(
                "pg_rewind", f"--target-pgdata={self.data}", f"--source-server={primary.url}", "--write-recovery-conf"
            )
        else:
            self.run(
                "pg_basebackup",
                f"--pgdata={self.data}",
                f"--dbname={primary.url}",
                "--write-recovery-conf",
                "--checkpoint=fast",
            )
        self.start()

    def start(self) -> None:
        self.run("pg_ctl", f"--pgdata={self.data}", "--wait", f"--log={self.folder / 'log'}", "start")

    def stop(self) -> None:
        self.disconnect()
        self.run("pg_ctl", f"--pgdata={self.data}", "--wait", "--mode=fast", "stop")

    def promote(self) -> None:
        self.disconnect()
        self.run("pg_ctl", f"--pgdata={self.data}", "--wait", "promote")

    def kill(self) -> None:
        """All of its processes at once, as if its machine had lost its power."""
        self.disconnect()
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            postmaster = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            processes = [postmaster, *postmaster.children(recursive=True)]
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
            psutil.wait_procs(processes, timeout=30)

    def query(self, query: str, *arguments: object) -> list[Row]:
        self.connection = self.connection or psycopg.connect(self.url, autocommit=True, row_factory=dict_row)
        cursor = self.connection.execute(query.encode(), arguments)
        return cursor.fetchall() if cursor.description else []

    def disconnect(self) -> None:
        if self.connection:
            self.connection.close()
        self.connection = None

    def value(self, query: str, *arguments: object) -> Any:
        (row,) = self.query(query, *arguments)
        (value,) = row.values()
        return value

    def pops(self, times: int) -> list[Row]:
        """Pages of as many leases, one of each."""
        return [page for _ in range(times) for page in self.query("select * from recrawl.next_pages(1)")]

    def cut_off_standby(self) -> None:
        """From now on the standby gets nothing."""
        streaming = "select pid from pg_stat_replication where state = 'streaming'"
        (sender,) = eventually(lambda: self.query(streaming))
        os.kill(sender["pid"], signal.SIGSTOP)

    def has_caught_up(self, primary: "Server") -> bool:
        return bool(
            self.value("select pg_last_wal_replay_lsn() >= %s::pg_lsn", primary.value("select pg_current_wal_lsn()"))
        )


@pytest.fixture(params=["embedded", "debian"])
def programs(request: pytest.FixtureRequest) -> Path:
    """Where PostgreSQL's programs are: an old server and a new one."""
    if request.param == "embedded":
        return program("postgres").parent
    if not (DEBIAN / "pg_rewind").exists():
        pytest.skip(f"no PostgreSQL 15 in {DEBIAN}")
    return DEBIAN


@pytest.fixture
def new_server(programs: Path, open_folder: Path) -> Iterator[Callable[[], Server]]:
    made: list[Server] = []

    def make() -> Server:
        made.append(Server(programs, open_folder / f"failover-{programs.parts[-2]}-{time.monotonic_ns()}"))
        return made[-1]

    yield make
    for server in made:
        server.kill()


def add(server: Server, name: str) -> set[int]:
    """A page on each of many hosts, ready to be handed out."""
    urls = [f"http://{name}-{n}.test/" for n in range(HOSTS)]
    added = server.query("select page_id from recrawl.add_pages(%s)", urls)
    while server.value("select recrawl_internal.tick(1000, 10000)"):
        pass
    return {row["page_id"] for row in added}


def start_jobs(server: Server, times: int) -> list[int]:
    """The tokens of this many runs. The last run goes on."""
    tokens = []
    for _ in range(times):
        server.query("update recrawl_internal.job set ended_at = now() where ended_at is null")
        tokens.append(server.value("select recrawl_internal.start_job('rates', '1 minute')"))
    server.query("update recrawl_internal.job set pid = null where ended_at is null")  # its session has ended
    return tokens


def pops_at_once(server: Server) -> list[Row]:
    """The first pops after a promotion. One is in a transaction that changed something already and that goes on, and
    the others do not wait for it."""
    at_once = threading.Barrier(6)

    def pop() -> list[Row]:
        with psycopg.connect(server.url, autocommit=True, row_factory=dict_row) as connection:
            connection.execute("set statement_timeout = '100 s'")
            at_once.wait()
            return connection.execute("select * from recrawl.next_pages(1)").fetchall()

    with psycopg.connect(server.url, row_factory=dict_row) as connection, ThreadPoolExecutor(6) as pool:
        connection.execute("select pg_current_xact_id()")
        pages = connection.execute("select * from recrawl.next_pages(1)").fetchall()
        for others in [pool.submit(pop) for _ in range(6)]:
            pages += others.result()
    return pages


LEASES = "select lease_id, round, page_ids, lease_until, unreported from recrawl_internal.lease order by 1, 2"


def test_nothing_of_a_lost_primary_acts_on_what_the_next_one_gave(new_server: Callable[[], Server]) -> None:
    first, second = new_server(), new_server()
    first.make()
    migrate.upgrade(first.url)
    first.query("select recrawl.set_setting('window_share', '0')")
    add(first, "known")
    known = first.pops(20)
    assert max(page["lease_id"] for page in known) < 1000, "ids are small before anything happens"
    second.follow(first, rewind=False)
    eventually(lambda: second.has_caught_up(first))
    assert second.value("select upkeep_at from recrawl.crawl_status") is not None, "a standby can be read"
    assert second.value("select count(*) from recrawl.internal_state where name = 'next_tick' and value is null") == 1

    # The primary dies with changes that the standby never got. Their crawlers and workers live.
    first.cut_off_standby()
    lost_pages = add(first, "lost")
    lost, lost_tokens = first.pops(100), start_jobs(first, 80)
    first.kill()
    second.promote()

    out = pops_at_once(second)
    assert len(out) == 7
    new_pages = add(second, "new")
    out += second.pops(100)
    given = {page["lease_id"] for page in out}
    assert len(given) == len(out), "each of these calls got a lease of its own"
    assert min(given) > max(page["lease_id"] for page in lost + known)
    assert len(new_pages) == HOSTS and min(new_pages) > max(lost_pages)
    (token,) = start_jobs(second, 1)
    assert token > max(lost_tokens)

    before = second.query(LEASES)
    for page in lost:
        for end in ({"status": 410}, {"status": 200, "content_hash": "x"}):
            result = [{"page_id": page["page_id"], "lease_id": page["lease_id"]} | end]
            (answer,) = second.query("select code from recrawl.report(%s::jsonb)", json.dumps(result))
            assert answer["code"] in ("stale_lease", "unknown_page", "duplicate"), answer
        assert second.value("select recrawl.extend_lease(%s, '1 hour')", page["lease_id"]) is None
        assert second.value("select recrawl.release(%s)", page["lease_id"]) == 0
    for old in lost_tokens:
        with pytest.raises(psycopg.Error, match="another worker took this job over"):
            second.query("select recrawl_internal.keep_job(%s, '1 minute')", old)
    assert second.query(LEASES) == before
    untouched = (
        "select count(*) from recrawl_internal.page where state = 'live' and successes = 0 and page_id = any (%s)"
    )
    assert second.value(untouched, sorted(new_pages)) == HOSTS

    # Vitals do not count the skipped numbers.
    second.query("select recrawl_internal.take_vitals()")
    assert second.value("select max(pages_added) from recrawl.vitals") < 10 * HOSTS
    assert second.value("select max(empty_calls) from recrawl.vitals") < 10 * HOSTS

    # The old primary becomes the standby, now a synchronous one, and then the primary again: nothing is lost.
    first.follow(second, rewind=True)
    second.query("alter system set synchronous_standby_names = '*'")
    second.query("select pg_reload_conf()")
    eventually(lambda: second.query("select pid from pg_stat_replication where sync_state = 'sync'"))
    add(second, "last")
    out += second.pops(50)
    second.kill()
    first.promote()
    last = pops_at_once(first) + first.pops(20)
    assert min(page["lease_id"] for page in last) > max(page["lease_id"] for page in out)
    assert not {page["page_id"] for page in last} & {page["page_id"] for page in out}, "each page is leased once"
    page = out[-1]
    in_time = json.dumps([{"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200}])
    assert first.value("select code from recrawl.report(%s::jsonb)", in_time) == "ok"


def test_ids_skip_once_after_a_crash_and_stay_after_a_clean_restart(new_server: Callable[[], Server]) -> None:
    server = new_server()
    server.make()
    migrate.upgrade(server.url)
    add(server, "a")
    (first,) = server.pops(1)
    server.stop()
    server.start()
    (second,) = server.pops(1)
    assert second["lease_id"] == first["lease_id"] + 1
    server.kill()
    server.start()
    third, fourth = server.pops(2)
    assert third["lease_id"] > 10**15 and fourth["lease_id"] == third["lease_id"] + 1


def test_pages_that_are_added_before_the_first_pop_after_a_crash_get_skipped_ids_too(
    new_server: Callable[[], Server],
) -> None:
    server = new_server()
    server.make()
    migrate.upgrade(server.url)
    before = add(server, "before")
    server.kill()
    server.start()
    (first,) = server.query("select page_id from recrawl.add_pages('{http://first.test/}')")
    (second,) = server.query("select page_id from recrawl.add_pages('{http://second.test/}')")
    assert first["page_id"] > max(before) + 9_000_000 and second["page_id"] == first["page_id"] + 1
