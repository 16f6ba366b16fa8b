"""The data directory of the embedded PostgreSQL: its owner, its locks, its log, and the server that works in it.

The directory holds PostgreSQL's own directory (`cluster`), its log and four lock files. The kernel releases a lock
(flock) when its last holder dies. So the locks are right even after SIGKILL, a reboot or a reused pid:

    turn     one process at a time enters or leaves
    users    shared by all processes that use the server; the guard (guard.py) gets it alone when none of them is left
    alive    held by the guard and inherited by every process of the server; if it is free, all of them have ended
    guard    held by the guard alone; if it is free while the server runs, the guard was killed

If root starts the server, the server runs as the account `nobody`, because PostgreSQL refuses to run as root.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from recrawl.words import lasting

if sys.platform != "win32":  # embedded.server() refuses Windows before it uses these
    import fcntl
    import pwd

CLUSTER, LOG = "cluster", "postgres.log"
TURN, USERS, ALIVE, GUARD = "turn.lock", "users.lock", "alive.lock", "guard.lock"
WAL_FILE = 16 << 20  # bytes: PostgreSQL starts only if it can make a file of write-ahead log
FAST_SHUTDOWN = signal.SIGINT  # to PostgreSQL: end the sessions, write a checkpoint, exit
IMMEDIATE_SHUTDOWN = signal.SIGQUIT  # to PostgreSQL: exit at once, and recover at the next start
ELSEWHERE = "set RECRAWL_DATA_DIR to another directory"


class EmbeddedError(RuntimeError):
    """The embedded PostgreSQL cannot be used; the message is one line and says what to do."""


def prepared(data_dir: Path) -> Path:
    """Returns the data directory, and makes it if it is missing. First checks that it belongs to the user."""
    home = data_dir.expanduser().resolve()
    for directory, owner in ((home, os.geteuid()), (home / CLUSTER, account_uid())):
        if directory.exists() and (found := directory.stat().st_uid) != owner:
            raise EmbeddedError(
                f"{directory} belongs to {account_name(found)}, not to {account_name(owner)}: {ELSEWHERE}, "
                f"or run as {account_name(found)}"
            )
    if home.exists() and any(home.iterdir()) and not (home / USERS).exists():
        raise EmbeddedError(f"{home} is not empty and is not a database of recrawl: {ELSEWHERE}")
    parents = [parent for parent in reversed(home.parents) if parent.exists()]
    if is_root() and (closed := closed_to_account(parents)):
        raise EmbeddedError(
            f"root runs PostgreSQL as {account_name(account_uid())}, who may not enter {closed}: {ELSEWHERE}"
        )
    make_directory(home)
    if is_root():
        home.chmod(home.stat().st_mode | 0o011)  # the cluster in it belongs to another account
    return home


def make_directory(path: Path) -> None:
    for directory in [*reversed(path.parents), path]:
        if not directory.exists():
            directory.mkdir(exist_ok=True)
            directory.chmod(0o755 if is_root() else 0o700)  # mkdir's mode depends on the umask


# ---- the account of the server


def is_root() -> bool:
    return sys.platform != "win32" and os.geteuid() == 0


def as_account() -> dict[str, Any]:
    """Subprocess arguments for the account the server runs as: PostgreSQL refuses to run as root."""
    if not is_root():
        return {}
    try:
        nobody = pwd.getpwnam("nobody")
    except KeyError as error:
        problem = "root runs PostgreSQL as nobody, but there is no such account"
        raise EmbeddedError(f"{problem}: run as another user, or set DATABASE_URL") from error
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def account_uid() -> int:
    return int(as_account().get("user", os.geteuid()))


def closed_to_account(directories: list[Path]) -> str:
    """The first of the directories that the server's account may not enter, or ''."""
    script = 'for d; do if ! test -x "$d"; then printf %s "$d"; break; fi; done'
    command = ["/bin/sh", "-c", script, "sh", *map(str, directories)]
    return str(subprocess.check_output(command, cwd="/", text=True, **as_account()))


def account_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"


# ---- locks


def opened(path: Path) -> IO[bytes]:
    """Opens a lock file or log that other users cannot read, because a user who can read a file can lock it."""
    return os.fdopen(os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "ab")


def locks(file: IO[bytes], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def turn(home: Path) -> Iterator[None]:
    with opened(home / TURN) as turn:
        for _ in patiently(home, "for another process to start or stop the server"):
            if locks(turn, fcntl.LOCK_EX):
                break
        try:
            yield
        finally:  # closing is not enough: a child that was forked during the turn would keep the lock
            fcntl.flock(turn, fcntl.LOCK_UN)


def patiently(home: Path, event: str) -> Iterator[None]:
    """Paces a loop, which its caller ends when the event has happened. Writes to stderr if that takes long."""
    start, notice, pause = time.monotonic(), 3, 0.02
    while True:
        yield
        time.sleep(pause)
        pause = min(0.5, pause * 1.2)  # each refused probe is a line in the log
        waited = time.monotonic() - start
        if waited > notice:
            notice += 10
            doing, so_far = log_line(home, "LOG:"), lasting(timedelta(seconds=round(waited)))
            print(f"recrawl: waiting {event}, {so_far}{doing and '; '}{doing}", file=sys.stderr, flush=True)


# ---- log and disk


def log_line(home: Path, pattern: str, start: int = 0) -> str:
    """The last line of the log that matches, without the answers to probes."""
    with suppress(OSError), (home / LOG).open("rb") as log:
        log.seek(max(start, os.fstat(log.fileno()).st_size - 100_000))
        for line in reversed(log.read().decode(errors="replace").splitlines()):
            if re.search(pattern, line) and "the database system is" not in line:
                return line.strip()
    return ""


def full_disk(home: Path, error: str) -> str:
    """The disk that is full, or ''. PostgreSQL cannot say so in its log if the log is on this disk."""
    for part in (home / CLUSTER / "pg_wal", home / CLUSTER, home):
        if shutil.disk_usage(part).free < WAL_FILE:
            return f"the disk of {part.resolve()} is full"
    return f"a disk of {home} is full" if re.search("No space left on device|Disk quota exceeded", error) else ""


# ---- the server in the data directory


def postmaster(home: Path) -> tuple[int, str]:
    """Pid and socket directory from the pid file of the last server; 0 and '' if the file does not exist (yet)."""
    try:
        lines = (home / CLUSTER / "postmaster.pid").read_text(errors="replace").splitlines()
        return int(lines[0]), lines[4]
    except (OSError, ValueError, IndexError):
        return 0, ""


def signal_server(home: Path, shutdown: signal.Signals) -> None:
    pid, _ = postmaster(home)
    if is_postmaster(pid, home):
        with suppress(ProcessLookupError):
            os.kill(pid, shutdown)


def is_recovering(home: Path) -> bool:
    """Whether the server has a process that recovers its data. Every server has one while it starts."""
    pid, _ = postmaster(home)
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


def is_postmaster(pid: int, home: Path) -> bool:
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
