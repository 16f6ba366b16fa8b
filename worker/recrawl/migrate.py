"""Brings a database to the newest version: what `alembic upgrade head` does, from Python."""

from alembic import command
from alembic.config import Config
from sqlalchemy.engine import make_url

from recrawl import project


def sqlalchemy_url(url: str) -> str:
    """The same URL as SQLAlchemy spells it: with the driver's name."""
    if url.startswith("postgres://"):
        url = url.replace("postgres://", "postgresql://", 1)
    return make_url(url).set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def upgrade(url: str) -> None:
    """Applies the versions that are missing, then sql/ if any of its files changed. Twice is once."""
    config = Config(project.root() / "alembic.ini", attributes={"url": sqlalchemy_url(url)})
    command.upgrade(config, "head")
