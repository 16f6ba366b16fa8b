"""A real PostgreSQL for every test: DATABASE_URL's server when it is set, else an embedded one.

Each test gets a database of its own, cloned from one that was migrated once.
"""

import fcntl
import gc
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest
from psycopg import sql
from sqlalchemy.engine import make_url

from helpers import Crawl
from recrawl.setup import embedded, migrate

pytest_plugins = ["summary"]

# Screens show times in the time zone of this machine.
os.environ["TZ"] = "UTC"
time.tzset()

# Threads of OpenBLAS wait in a loop. Without them a batch job's process starts with 0.41 instead of 0.48 s of CPU.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

# An example may be the one that compiles, on a machine that has other things to do. A property test tries the same
# examples each time, so that no run depends on luck. `make soak` by hand tries others, and more of them.
IS_SOAK = "RECRAWL_EXAMPLES" in os.environ and "CI" not in os.environ
hypothesis.settings.register_profile("unhurried", deadline=None, derandomize=not IS_SOAK)
hypothesis.settings.load_profile("unhurried")


def compact(url: str) -> None:
    """Takes out of a database's catalogue what migrations left there: a database for a test is a copy of it, and reads
    it anew. That takes some 10 ms of 120 less. The crawl's tables stay as they were made, never looked at."""
    with psycopg.connect(url, autocommit=True) as connection:
        (names,) = connection.execute(
            "select string_agg(oid::regclass::text, ', ') from pg_class"
            " where relnamespace = 'pg_catalog'::regnamespace and relkind = 'r' and not relisshared"
        ).fetchone() or ("",)
        connection.execute(f"vacuum full {names}".encode())
    psycopg.connect(url).close()  # writes down, for all copies, what each first session of a database would look up


def pytest_configure(config: pytest.Config) -> None:
    """A folder for all processes of a run, which other accounts can enter: pytest's own, made by root, is closed to
    the server's account."""
    # A process that a shell runs in the background ignores the signal, and so would all commands of the tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        # In memory where there is such a place: making a database takes half of the time there.
        in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        os.environ["RECRAWL_TESTS"] = folder = tempfile.mkdtemp(prefix="recrawl-tests-", dir=in_memory)
        Path(folder).chmod(0o755)
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Python's search for garbage would take a fifth of the time of the collection, and find none. What was collected
    is not searched later either."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def open_folder() -> Path:
    """A folder of this process that other accounts can enter."""
    folder = Path(os.environ["RECRAWL_TESTS"], os.environ.get("PYTEST_XDIST_WORKER", "alone"))
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def made_once() -> Path:
    """The data directory of an embedded server whose database is a new crawl's. Making one takes seconds, so it is made
    by the process of a run that needs it first."""
    folder = Path(os.environ["RECRAWL_TESTS"])
    made = folder / "made"
    with (folder / "made.lock").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not made.exists():
            making = folder / "making"
            with embedded.server(making) as url:
                # A database for every test is made and dropped in 40 ms, not in 580 (PostgreSQL 18, virtual disk). Data
                # that a killed server wrote is kept. Only a machine that stops would lose it.
                with psycopg.connect(url, autocommit=True) as connection:
                    for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '200MB'"):
                        connection.execute(f"alter system set {setting}".encode())
                    connection.execute("alter system set max_prepared_transactions = 10")  # a test prepares one
                migrate.upgrade(url)
                compact(url)
            making.rename(made)
    return made


@pytest.fixture(scope="session")
def home_of_a_crawl(made_once: Path, open_folder: Path) -> Callable[[str], Path]:
    """Makes data directories of embedded servers whose database is a new crawl's."""

    def make(name: str) -> Path:
        subprocess.check_call(["cp", "-Rp", made_once, open_folder / name])
        return open_folder / name

    return make


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database on the server under test, as a superuser."""
    if url := os.environ.get("DATABASE_URL"):
        yield url
    else:
        with embedded.server(request.getfixturevalue("home_of_a_crawl")("postgres")) as url:
            yield database_on(url, "postgres")


@pytest.fixture(scope="session")
def on_server(server: str) -> Iterator[Callable[..., None]]:
    """Says a statement there, over one connection for all tests."""
    with psycopg.connect(server, autocommit=True) as connection:

        def say(statement: str, *names: str) -> None:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

        yield say


def database_on(url: str, name: str) -> str:
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def over() -> list[str]:
    """The databases whose tests have ended."""
    return []


@pytest.fixture(scope="session")
def new_database(server: str, on_server: Callable[..., None], over: list[str]) -> Iterator[Callable[..., str]]:
    """Makes databases, empty or as clones, and drops them at the end. A database that is `over` is dropped when the
    next one is made: dropped at once, PostgreSQL would wait 0.1 s for the session that has just ended."""
    made: list[str] = []

    def make(template: str = "template0") -> str:
        while over:
            on_server("drop database if exists {} with (force)", over.pop())
        name = f"recrawl_test_{uuid.uuid4().hex[:12]}"
        on_server("create database {} template {} encoding 'UTF8' strategy file_copy", name, template)
        made.append(name)
        return database_on(server, name)

    yield make
    for name in made:
        on_server("drop database if exists {} with (force)", name)


@pytest.fixture(scope="session")
def template(new_database: Callable[..., str]) -> str:
    """The name of a migrated database that nobody uses."""
    if not os.environ.get("DATABASE_URL"):
        return embedded.DATABASE
    url = new_database()
    migrate.upgrade(url)
    return make_url(url).database or ""


@pytest.fixture
def url(template: str, new_database: Callable[..., str], over: list[str]) -> Iterator[str]:
    """The URL of a migrated database that only this test uses."""
    url = new_database(template)
    yield url
    over.append(make_url(url).database or "")


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
        yield connection


@pytest.fixture
def crawl(connection: psycopg.Connection) -> Crawl:
    """The verbs at a time that the test decides. Slots are exactly a gap apart: requests start in them, not later."""
    # Without set_setting: its first call in a session takes 5 ms of CPU, and two thousand tests would pay them.
    connection.execute("update setting set window_share = 0")
    return Crawl(connection)
