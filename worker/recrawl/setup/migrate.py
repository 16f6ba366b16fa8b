"""Brings a database to the newest version, like `alembic upgrade head`, but from Python."""

import re
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, TextIO

import psycopg
from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Engine, NullPool, create_engine
from sqlalchemy.exc import DBAPIError

from recrawl.setup import project

SCHEMAS = ("recrawl", "recrawl_internal")
# Before PostgreSQL 16 a login with CREATEROLE may also grant roles that others made.
UNGRANTABLE = """
    with wanted as (select rolname, oid from pg_roles where rolname = any (%s))
    select string_agg(quote_ident(rolname), ', ' order by rolname),
           quote_ident(current_user),
           (select string_agg(distinct pg_get_userbyid(m.member), ', ')
            from pg_auth_members m join wanted w on w.oid = m.roleid
            where m.admin_option)
    from wanted
    where not pg_has_role(oid, 'member with admin option')
      and not (current_setting('server_version_num')::int < 160000
               and (select rolcreaterole from pg_roles where rolname = current_user))
    having count(*) > 0
"""
SCRIPT_HEAD = """\
-- The tables, functions and views of recrawl {version}, for a database without a crawl.
-- Run it with: psql -1 -f FILE

\\set ON_ERROR_STOP on
\\encoding UTF8

do $$
begin
    if to_regclass('recrawl_internal.alembic_version') is not null then
        raise exception 'this database has a crawl already: this file cannot upgrade it, recrawl migrate can';
    end if;
end $$;

"""


def engine(url: str, **options: Any) -> Engine:
    """An engine whose URL is read by psycopg: SQLAlchemy cannot read postgresql://a:5432,b:5433/crawl."""
    url = url.replace("postgresql+psycopg://", "postgresql://", 1)
    return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url, **options), poolclass=NullPool)


def upgrade(url: str, with_roles: bool | None = None) -> None:
    """Applies the versions that are missing, then sql/ if any of its files changed. A second call changes nothing.

    Without roles, no role is created and none gets rights: the owner of the database does everything. None = as at the
    last call; at the first, with roles. Raises the error of psycopg, without SQLAlchemy's wrapper.
    """
    config = Config(project.root() / "alembic.ini", attributes={"url": url, "with_roles": with_roles})
    try:
        command.upgrade(config, "head")
    except DBAPIError as error:
        raise error.orig or error from None
    except CommandError as error:
        unknown = re.search(r"locate revision identified by '(.*)'", str(error))
        raise SystemExit(
            f"this database is at version {unknown[1]}, which this recrawl does not know: if a newer recrawl made it,"
            " use that one; if it is older than the first release, CHANGELOG.md says how to copy its crawl"
            if unknown
            else f"recrawl cannot migrate this database: {error}"
        ) from None


def write_script(file: TextIO, with_roles: bool | None = None) -> None:
    """Writes SQL for psql that does in an empty database what upgrade() does."""
    config = Config(project.root() / "alembic.ini", output_buffer=file, attributes={"with_roles": with_roles})
    file.write(SCRIPT_HEAD.format(version=version("recrawl")))
    command.upgrade(config, "head", sql=True)


def missing_grant(url: str) -> str | None:
    """A sentence if this login cannot give the roles of recrawl to other logins, because somebody else created them."""
    with psycopg.connect(url) as connection:
        used = connection.execute("select with_roles from recrawl_internal.replayed").fetchone()
        found = connection.execute(UNGRANTABLE, [list(project.ROLES)]).fetchone()
    if used != (True,) or not found:
        return None
    roles, login, admins = found
    return (
        f"{login} cannot give the roles of recrawl to your crawlers, because another login created them on this server."
        f" Let {admins or 'a superuser'} run: GRANT {roles} TO {login} WITH ADMIN OPTION;"
    )


def include_name(name: str | None, type_: str, parent_names: Mapping[str, str | None]) -> bool:
    """For `context.configure(include_name=…)` of your own Alembic: it then leaves the schemas of recrawl alone.

    Without it, `alembic revision --autogenerate` with include_schemas proposes to remove the tables of recrawl.
    """
    return (name if type_ == "schema" else parent_names.get("schema_name")) not in SCHEMAS
