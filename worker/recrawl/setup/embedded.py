"""An embedded PostgreSQL. `with server() as url:` runs a server and shares it with all processes that use the same data
directory. The server stops when the last of these processes has ended, even if that process was killed.

folder.py knows the data directory of the server, guard.py runs the server, and this file shares it. None of them knows
what is stored in it: no schema, no roles, no migrations.
"""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

import platformdirs
import psycopg
from psycopg.conninfo import conninfo_to_dict

from recrawl.setup import folder
from recrawl.setup.folder import EmbeddedError
from recrawl.setup.guard import PORT, SOCKETS, socket_name, start_guard, wait_for_guard
from recrawl.setup.programs import ROOT_HOME, binaries_for_server

if sys.platform != "win32":  # server() refuses Windows before it uses fcntl
    import fcntl

DATABASE = "recrawl"
MUTE_LIMIT = 60  # seconds without a sensible answer after which a server is given up
# libpq takes from these variables what a URL leaves out. A user has set them for another server: they name that server,
# or demand something that the embedded server does not have. PGPORT=5432,5433 keeps even PostgreSQL from starting.
OF_OTHER_SERVERS = (
    *("PGHOSTADDR", "PGPORT", "PGSERVICE", "PGTARGETSESSIONATTRS"),
    *("PGREQUIREPEER", "PGREQUIREAUTH", "PGCHANNELBINDING"),
    *("PGGSSENCMODE", "PGSSLMODE", "PGSSLNEGOTIATION", "PGSSLCERTMODE"),
)


def default_data_dir() -> Path:
    """Where the current user's embedded database lives."""
    if chosen := os.environ.get("RECRAWL_DATA_DIR"):
        return Path(chosen)
    return (ROOT_HOME if folder.is_root() else platformdirs.user_data_path("recrawl")) / "postgres"


def exists() -> bool:
    """Whether the current user has an embedded database, running or not."""
    return (default_data_dir().expanduser() / folder.CLUSTER).exists()


def is_ours(url: str) -> bool:
    """Whether `url` is the current user's embedded database, running or not. Other databases of that server are not."""
    parts = conninfo_to_dict(url)
    is_its_database = (parts.get("user", "postgres"), parts.get("dbname")) == ("postgres", DATABASE)
    return is_its_database and is_on_our_server(url)


def is_on_our_server(url: str) -> bool:
    """Whether `url` is any database of the current user's embedded server."""
    host = Path(str(conninfo_to_dict(url).get("host")))
    return host.parent == SOCKETS and host.name.startswith(socket_name(default_data_dir().expanduser().resolve()))


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
    ended. If a disk is full, this function says so and starts nothing: call it again.

    lasting_server() removes the variables OF_OTHER_SERVERS from the environment of this process permanently."""
    if sys.platform not in ("linux", "darwin"):
        raise EmbeddedError(f"no embedded PostgreSQL on {sys.platform}: set DATABASE_URL to a server's URL")
    for name in OF_OTHER_SERVERS:
        os.environ.pop(name, None)
    data_dir = data_dir or default_data_dir()
    try:
        binaries = binaries_for_server()
        home = folder.prepared(data_dir)
        users = folder.opened(home / folder.USERS)
    except OSError as error:
        problem = f"cannot prepare an embedded database in {data_dir}: {error}"
        raise EmbeddedError(f"{problem}; {folder.ELSEWHERE}") from error
    owner = os.getpid()
    with users:
        with folder.turn(home):
            try:
                url = _enter(home, users, binaries)
            except BaseException:
                _leave(home, users)
                raise

        is_told = False  # that a disk is full

        def restart() -> None:
            nonlocal is_told
            try:
                with folder.turn(home):
                    again = _enter(home, users, binaries)
            except EmbeddedError as error:
                if not (full := folder.full_disk(home, str(error))):
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
                with folder.turn(home):
                    _leave(home, users)


# ---- users of the server


def _enter(home: Path, users: IO[bytes], binaries: Path) -> str:
    """Takes a share in the server, and starts it if it does not run. Returns its URL once the server has answered."""
    for _ in folder.patiently(home, "for the former server to stop"):
        if folder.locks(users, fcntl.LOCK_SH):
            break
    log_start: int | None = None
    heard = time.monotonic()
    for _ in folder.patiently(home, f"for PostgreSQL in {home} to accept connections"):
        with folder.opened(home / folder.ALIVE) as alive:
            if folder.locks(alive, fcntl.LOCK_EX):
                if log_start is not None:
                    reason = folder.log_line(home, r"FATAL|PANIC|rror:", log_start) or folder.log_line(
                        home, ".", log_start
                    )
                    raise EmbeddedError(f"PostgreSQL did not start in {home}: {reason}; see {home / folder.LOG}")
                log_start = start_guard(home, binaries, alive)
        _, sockets = folder.postmaster(home)
        if not sockets:  # the cluster is still being made
            heard = time.monotonic()
            continue
        url = f"postgresql://postgres@/{DATABASE}?host={quote(sockets, safe='')}&port={PORT}"
        try:
            _probe(url)
            with folder.opened(home / folder.GUARD) as guard:
                if not folder.locks(guard, fcntl.LOCK_SH):
                    return url
            # The guard was killed. On Linux the server then stops. On other systems it must be told to stop. The next
            # turn of this loop starts it with a new guard.
            folder.signal_server(home, folder.FAST_SHUTDOWN)
            answer = "its guard was killed"
        except psycopg.OperationalError as error:
            answer = " ".join(str(error).split())
        # Wait on if the server has as many clients as allowed, or is shutting down or recovering: that will end.
        # Recovery may take many minutes, but its process can die and leave a server that says "starting up" for ever.
        # Such a server is stopped.
        starts = "the database system is" in answer and "shutting down" not in answer
        waits = re.search("shutting down|too many clients|remaining connection slots", answer)
        if waits or (starts and folder.is_recovering(home)):
            heard = time.monotonic()
        elif time.monotonic() - heard > MUTE_LIMIT:
            if not starts:
                raise EmbeddedError(f"PostgreSQL in {home} cannot be used: {answer}; see {home / folder.LOG}")
            heard = time.monotonic()
            folder.signal_server(home, folder.IMMEDIATE_SHUTDOWN)  # there is nothing to lose: the next start recovers
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
    # No other process can enter: this one has folder.turn().
    for _ in folder.patiently(home, f"for PostgreSQL in {home} to stop"):
        with folder.opened(home / folder.ALIVE) as alive:
            if folder.locks(alive, fcntl.LOCK_EX):
                break
        folder.signal_server(home, folder.FAST_SHUTDOWN)  # the guard does the same, unless it was killed
    wait_for_guard(home)


def _used_by_others(users: IO[bytes]) -> bool:
    # flock cannot turn a shared lock into an exclusive lock in one step. So the caller has given up its shared lock.
    # The guard may have taken the exclusive lock since then.
    try:
        if folder.locks(users, fcntl.LOCK_EX):
            return False
        # If this fails too, the guard has the lock and is stopping the server.
        return folder.locks(users, fcntl.LOCK_SH)
    finally:
        fcntl.flock(users, fcntl.LOCK_UN)
