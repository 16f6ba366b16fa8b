"""Brings a database to the newest version, like `alembic upgrade head`, but from Python."""

import re

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from recrawl.setup import project


def sqlalchemy_url(url: str) -> str:
    """The same URL as SQLAlchemy spells it: with the driver's name."""
    if url.startswith("postgres://"):
        url = url.replace("postgres://", "postgresql://", 1)
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def upgrade(url: str) -> None:
    """Applies the versions that are missing, then sql/ if any of its files changed. A second call changes nothing.

    Raises the error of psycopg, without SQLAlchemy's wrapper.
    """
    config = Config(project.root() / "alembic.ini", attributes={"url": sqlalchemy_url(url)})
    try:
        command.upgrade(config, "head")
    except DBAPIError as error:
        raise error.orig or error from None
    except CommandError as error:
        unknown = re.search(r"locate revision identified by '(.*)'", str(error))
        raise SystemExit(
            f"this database is at version {unknown[1]}, which this recrawl does not know: if a newer recrawl made it,"
            " use that one; if it is older than the first release, CONTRIBUTING.md says how to copy its crawl"
            if unknown
            else f"recrawl cannot migrate this database: {error}"
        ) from None
