"""The database that a command uses: DATABASE_URL, or the embedded one."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from recrawl.cli.common import example, mistyped

if TYPE_CHECKING:
    from recrawl import store

# The parameters of a connection that nobody else may see.
SECRETS = ("password", "sslpassword", "scram_client_key", "scram_server_key", "oauth_client_secret")

EPILOG = example(
    "recrawl up",
    "recrawl add https://example.com/",
    "recrawl status",
    notes="DATABASE_URL names the database: postgresql://user@host/name. Without it, recrawl runs an embedded "
    "PostgreSQL while the command runs. `recrawl up` creates it; RECRAWL_DATA_DIR is the folder of its data.",
)


@contextmanager
def database(*, makes: bool = False, with_roles: bool | None = None) -> Iterator[str]:
    """The URL of the database. If DATABASE_URL names another database than the embedded one, DATABASE_URL is returned
    unchanged, and nothing is migrated. Otherwise the embedded database is migrated. It is created only if `makes`."""
    with lasting_database(makes=makes, with_roles=with_roles) as (url, _):
        yield url


@contextmanager
def connected() -> "Iterator[store.Connection]":
    from recrawl import store

    with database() as url, store.connect(url) as connection:
        yield connection


@contextmanager
def lasting_database(
    *, makes: bool = False, with_roles: bool | None = None
) -> Iterator[tuple[str, Callable[[], None]]]:
    """Like database(), for a command that keeps running. Also yields a function that restarts the embedded server if
    it ended."""
    if url := given_url():
        yield url, lambda: None
        return
    from recrawl import store
    from recrawl.setup import embedded, project

    if not makes and not embedded.exists():
        raise click.ClickException(
            f"there is no crawl in {embedded.default_data_dir()} yet: run `recrawl up`, or set DATABASE_URL to the "
            "database of a crawl"
        )
    with embedded.lasting_server() as (url, restart):
        with store.connect(url) as connection:
            if store.views.in_force(connection) != (project.versions()[-1], project.sql_digest()):
                from recrawl.setup import migrate  # only now: it takes half a second to load

                migrate.upgrade(url, with_roles)
                connection.execute(store.SEARCH_PATH)
        yield url, restart


@contextmanager
def same_version() -> Iterator[str]:
    """The URL of the database, for a command that runs jobs or computes from the crawl. Refuses another version."""
    from recrawl import store

    with database() as url:
        with store.connect(url) as connection:
            refuse_another_version(connection)
        yield url


def refuse_another_version(connection: "store.Connection") -> None:
    """Upkeep and jobs of another version could damage the crawl."""
    from recrawl import store
    from recrawl.setup import project
    from recrawl.view import figures
    from recrawl.view.verdict import verdict

    database = figures.compared(store.views.version(connection), project.versions())
    if database != "same":
        diagnosis = verdict(figures.Figures(figures.Now(datetime.now(UTC)), database=database))
        raise click.ClickException(f"{diagnosis.headline} {diagnosis.detail} Run `{diagnosis.fixes[0].do}`")


def given_url() -> str | None:
    """DATABASE_URL, if it is set and does not name the embedded database, whose server this program starts."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        return None
    if _host_of(url, "DATABASE_URL").startswith("/"):
        from recrawl.setup import embedded

        if embedded.is_ours(url):
            return None
    return url


def database_url(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """For an option that is the URL of a database."""
    if value is not None:
        with mistyped():
            _host_of(value, option.opts[0])
    return value


def _host_of(url: str, name: str) -> str:
    """The host in a URL, or ''. The error does not quote the URL, because it may contain a password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg.ProgrammingError:
        parts = {}
    host, port = str(parts.get("host", "")), str(parts.get("port", ""))
    if not parts or "@" in host or not re.fullmatch(r"[0-9,]*", port):
        raise ValueError(
            f"{name} is not a URL like postgresql://user:password@host:port/database (in a password, @ is %40)"
        )
    return host


def without_secrets(url: str) -> str:
    hidden = re.sub(r"^(\w+://[^:@/]*):[^@/]*@", r"\1:***@", url)  # the part before @ may contain ?, like in libpq
    return re.sub(rf"(?<=[?&])({'|'.join(SECRETS)})=[^&]*&?", "", hidden).rstrip("?&")
