"""The guard: a small process that runs the embedded PostgreSQL as its child.

It makes the cluster if it is missing, starts PostgreSQL and waits for the lock `users` (folder.py). When it gets the
lock, no process uses the server any more: the guard stops PostgreSQL and exits. The guard is in a session of its own.
If the guard is killed, Linux stops the server. On other systems, the next process that enters or leaves stops it.
"""

import ctypes
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from recrawl.setup import folder
from recrawl.setup.folder import EmbeddedError
from recrawl.setup.programs import MAJOR

if sys.platform != "win32":
    import fcntl

PORT = 5432  # names the socket file; nothing listens on TCP
# A short path, because the path of a socket may have at most 103 bytes. XDG_RUNTIME_DIR is not the same in all sessions
# of a user.
SOCKETS = Path("/tmp")
LOG_LIMIT = 10_000_000  # bytes; a longer log is set aside at the next start

# These settings are written into postgresql.conf when the cluster is made. Its owner may change them there.
# wal_compression stays off: with it, a next_pages from 10M pages took 200 ms of CPU instead of 20 for a minute after
# each checkpoint.
SETTINGS = [
    "shared_buffers=256MB",
    "max_connections=50",
    "max_wal_size=2GB",
    "autovacuum_naptime=10s",  # a queue leaves thousands of dead rows a second
]

_started: dict[Path, subprocess.Popen[bytes]] = {}  # the guards that this process started, and so must wait for


def start_guard(home: Path, binaries: Path, alive: IO[bytes]) -> int:
    """Starts the guard, which inherits the lock `alive`; returns where its part of the log begins."""
    version = home / folder.CLUSTER / "PG_VERSION"
    if version.exists() and (maker := version.read_text().strip()) != str(MAJOR):
        raise EmbeddedError(
            f"{home} was made by PostgreSQL {maker}, but the installed one is {MAJOR}: {folder.ELSEWHERE}, "
            f"or dump this one with PostgreSQL {maker} and restore it"
        )
    pid, _ = folder.postmaster(home)
    if pid and not folder.is_postmaster(pid, home):  # PostgreSQL refuses to start if another process has that pid now
        (home / folder.CLUSTER / "postmaster.pid").unlink()
    wait_for_guard(home)
    log_file = home / folder.LOG
    if log_file.exists() and log_file.stat().st_size > LOG_LIMIT:
        log_file.replace(home / f"{folder.LOG}.1")
    import_path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    with folder.opened(log_file) as log:
        log_start = log_file.stat().st_size
        _started[home] = subprocess.Popen(
            [sys.executable, "-P", "-m", "recrawl.setup.guard", home, binaries, str(alive.fileno())],
            env=os.environ | {"PYTHONPATH": import_path},
            cwd="/",
            start_new_session=True,  # out of reach of the terminal's Ctrl-C
            pass_fds=[alive.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return log_start


def wait_for_guard(home: Path) -> None:
    """Waits until the last guard that this process started has ended."""
    if guard := _started.pop(home, None):
        guard.wait()


def run_guard(home: Path, binaries: Path, alive: int) -> None:
    """Runs PostgreSQL until no process uses it any more, or until it ends by itself."""
    cluster, users, guard = (
        home / folder.CLUSTER,
        folder.opened(home / folder.USERS),
        folder.opened(home / folder.GUARD),
    )
    fcntl.flock(guard, fcntl.LOCK_EX)
    environment = os.environ | {"LC_ALL": "C"}  # macOS wants a valid locale; log_line() looks for English words
    how = folder.as_account() | {"cwd": "/", "env": environment, "pass_fds": [alive]}
    if not cluster.exists():
        _make_cluster(cluster, binaries, how)
    sockets = _socket_directory(home)
    options = f"--listen_addresses= --unix_socket_directories={sockets} --port={PORT}"
    options += " --lc_messages=C --logging_collector=off"
    command = [str(binaries / "postgres"), "-D", str(cluster), *options.split()]
    postgres = subprocess.Popen(command, preexec_fn=_stopped_with(os.getpid()), **how)

    def stop(*_: object) -> None:
        postgres.send_signal(folder.FAST_SHUTDOWN)

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
    if folder.is_root():
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
        # PR_SET_PDEATHSIG; a change of user would clear it, but has already happened
        libc.prctl(1, folder.FAST_SHUTDOWN)
        if os.getppid() != guard:
            os._exit(1)

    return ask_the_kernel


def socket_name(home: Path) -> str:
    return f"recrawl-{folder.account_uid()}-{hashlib.sha256(os.fsencode(home)).hexdigest()[:16]}"


def _socket_directory(home: Path) -> Path:
    """A private directory of the server's account. It is the same at every start, unless another user took its name."""
    uid = folder.account_uid()
    directory = SOCKETS / socket_name(home)
    try:
        directory.mkdir(mode=0o700)
        os.chown(directory, uid, -1)
    except FileExistsError:
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or (found.st_uid, stat.S_IMODE(found.st_mode)) != (uid, 0o700):
            directory = Path(tempfile.mkdtemp(prefix=f"{directory.name}-", dir=SOCKETS))
            os.chown(directory, uid, -1)
    # Files of a dead server. Its lock file may have the pid of another process now: then the next server would not
    # start.
    for leftover in directory.iterdir():
        leftover.unlink()
    return directory


if __name__ == "__main__":
    run_guard(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
