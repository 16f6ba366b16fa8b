"""Which database a command works on."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

EPILOG = (
    "DATABASE_URL says which database: postgresql://user@host/name. Without it, recrawl runs an embedded PostgreSQL "
    "of its own while the command does; RECRAWL_DATA_DIR says where that keeps its data. `recrawl up` makes it."
)

PATIENCE = 10  # seconds, for a database that is looked at and does not answer


@contextmanager
def database(*, makes: bool = False) -> Iterator[str]:
    """The URL of the migrated database to use: DATABASE_URL's, else the embedded one, which only some commands make."""
    with lasting_database(makes=makes) as (url, _):
        yield url


@contextmanager
def lasting_database(*, makes: bool = False) -> Iterator[tuple[str, Callable[[], None]]]:
    """The same for a command that stays, with what starts the embedded server again should it have ended."""
    if url := given_url():
        yield url, lambda: None
        return
    from recrawl import store
    from recrawl.setup import embedded, project

    if not makes and not embedded.exists():
        raise click.ClickException(
            f"there is no crawl in {embedded.default_data_dir()} yet: say `recrawl up`, or set DATABASE_URL to one "
            "that is elsewhere"
        )
    with embedded.lasting_server() as (url, restart):
        with store.connect(url) as connection:
            if store.looks.in_force(connection) != (project.versions()[-1], project.sql_digest()):
                from recrawl.setup import migrate  # only now: it takes half a second to load

                migrate.upgrade(url)
                store.put_on_search_path(connection)
        yield url, restart


@contextmanager
def throwaway_database() -> Iterator[str]:
    """The URL of a migrated database in an embedded PostgreSQL that nobody else has, and that nothing is left of."""
    from recrawl.setup import embedded, migrate

    with tempfile.TemporaryDirectory(prefix="recrawl-laboratory-") as folder:
        Path(folder).chmod(0o755)  # root's server runs as another user
        with embedded.server(Path(folder) / "data") as url:
            migrate.upgrade(url)
            yield url


def given_url() -> str | None:
    """DATABASE_URL, if it is set. What is wrong with it is told without quoting it: it may hold a password."""
    url = os.environ.get("DATABASE_URL")
    if not url:
        return None
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(url) if url.startswith(("postgresql://", "postgres://")) else {}
    except psycopg.ProgrammingError:
        parts = {}
    if not parts or "@" in str(parts.get("host", "")) or not re.fullmatch(r"[0-9,]*", str(parts.get("port", ""))):
        raise click.ClickException(
            "DATABASE_URL is not a URL like postgresql://user:password@host:port/database (in a password, @ is %40)"
        )
    return url


def without_password(url: str) -> str:
    from sqlalchemy.engine import make_url

    return make_url(url).difference_update_query(["password", "sslpassword"]).render_as_string(hide_password=True)
