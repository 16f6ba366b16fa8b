"""Facts for the rules for trouble: the figures, and for doctor also the server, its transactions and its tables."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from recrawl import store
from recrawl.view import figures
from recrawl.view.figures import Figures

OPEN = timedelta(minutes=1)  # doctor looks at transactions that have been open for longer


@dataclass(frozen=True)
class Checkup:
    added_since_allocation: int | None = None
    pages: int | None = 0
    most_pages: int | None = 0
    largest_host: str | None = None
    blocked_hosts: int = 0
    largest_blocked: list[str] | tuple[str, ...] = ()


@dataclass(frozen=True)
class ServerFacts:
    clock: datetime | None = None
    vacuums: bool = True
    sees_all: bool = True  # also what other logins do
    naptime: timedelta = timedelta(seconds=10)  # autovacuum_naptime
    wal_compression: str = "off"
    wal_bytes: int = 1 << 31  # max_wal_size
    buffer_bytes: int = 1 << 28  # shared_buffers
    syncs: bool = True  # fsync
    writes_full_pages: bool = True  # full_page_writes


@dataclass(frozen=True)
class Transaction:
    pid: int | None
    login: str | None
    program: str | None
    state: str | None
    age: timedelta
    gid: str | None  # of a prepared transaction
    holds_hosts: bool


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
    """With the figures alone, as status has them, everything else is as if nothing were wrong."""

    figures: Figures
    server: ServerFacts = ServerFacts()
    asked_at: datetime | None = None  # by the clock of this machine
    # For doctor: the server was read too, and everything else if the database has the version of this program.
    is_checkup: bool = False
    is_embedded: bool = False
    checkup: Checkup = Checkup()
    transactions: tuple[Transaction, ...] = ()
    superusers: tuple[str, ...] = ()  # logins of crawlers
    slots: tuple[Slot, ...] = ()
    tables: tuple[Table, ...] = ()


def read(connection: store.Connection, is_embedded: bool) -> Facts:
    before = datetime.now(UTC)
    server = store.server.server(connection, ServerFacts)
    asked_at = before + (datetime.now(UTC) - before) / 2
    facts = Facts(figures.read(connection), server, asked_at, is_checkup=True, is_embedded=is_embedded)
    if facts.figures.database != "same":
        return facts
    return replace(
        facts,
        checkup=store.views.row_of(connection, Checkup, "checkup"),
        transactions=tuple(store.server.transactions(connection, Transaction, OPEN)),
        superusers=tuple(store.server.superusers(connection)),
        slots=tuple(store.server.slots(connection, Slot)),
        tables=tuple(store.server.dead_rows(connection, Table)),
    )
