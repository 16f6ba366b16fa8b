"""What doctor looks at beside the figures: the server, its clock, its transactions and tables. Read in one go."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recrawl import store
from recrawl.view import figures
from recrawl.view.figures import Figures

OPEN = timedelta(minutes=1)  # a transaction, from which on it is looked at


@dataclass(frozen=True)
class Checkup:
    newest_page: int = 0
    newest_allocated: int | None = None
    pages: int | None = 0
    most_pages: int | None = 0
    largest_host: str | None = None
    blocked_hosts: int = 0
    largest_blocked: list[str] | tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerFacts:
    version: int
    clock: datetime
    vacuums: bool
    sees_all: bool


@dataclass(frozen=True)
class Transaction:
    pid: int | None
    login: str | None
    program: str | None
    state: str | None
    age: timedelta
    gid: str | None  # of a prepared one
    holds_hosts: bool


@dataclass(frozen=True)
class Superuser:
    login: str


@dataclass(frozen=True)
class Slot:
    name: str
    active: bool
    kept_bytes: float | None
    transactions_behind: int | None


@dataclass(frozen=True)
class Table:
    table: str
    live: int
    dead: int


@dataclass(frozen=True)
class Facts:
    figures: Figures
    server: ServerFacts
    asked_at: datetime  # by the clock of this machine
    is_embedded: bool = False
    checkup: Checkup = Checkup()
    transactions: tuple[Transaction, ...] = ()
    superusers: tuple[Superuser, ...] = ()
    slots: tuple[Slot, ...] = ()
    tables: tuple[Table, ...] = ()
    every: dict[str, timedelta | None] | None = None  # how often each job is to run; None = never by itself


def read(connection: store.Connection, is_embedded: bool) -> Facts:
    before = datetime.now(UTC)
    server = store.server.server(connection, ServerFacts)
    asked_at = before + (datetime.now(UTC) - before) / 2
    found = figures.read(connection)
    if found.database != "same":
        return Facts(found, server, asked_at, is_embedded)
    return Facts(
        figures=found,
        server=server,
        asked_at=asked_at,
        is_embedded=is_embedded,
        checkup=store.looks.checkup(connection, Checkup),
        transactions=tuple(store.server.transactions(connection, Transaction, OPEN)),
        superusers=tuple(store.server.superusers(connection, Superuser)),
        slots=tuple(store.server.slots(connection, Slot)),
        tables=tuple(store.server.dead_rows(connection, Table)),
        every={job: every for job, (every, _) in store.looks.schedules(connection).items()},
    )
