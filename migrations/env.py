"""Applies the versions of the tables, then replays sql/ (see recrawl/setup/replay.py).

Both happen in one transaction under an advisory lock: two processes that start together migrate once, and a failure
changes nothing. sql/ is replayed only at the newest version, not on the way down, and not by commands that only look.
"""

import os

from alembic import context
from sqlalchemy import Connection, NullPool, create_engine

from recrawl.setup import project, replay, waiting
from recrawl.setup.migrate import sqlalchemy_url

LOCK = 0x72656372  # «recr»: one database is one crawl, and one migration at a time
SCHEMA = "create schema if not exists recrawl_internal"
# Functions and views are bound to PostgreSQL's own operators, also if the login that migrates has another search path.
PATH = "set local search_path = pg_catalog, pg_temp"
OF_OTHERS = """
    with ours as (select * from pg_namespace where nspname in ('recrawl', 'recrawl_internal'))
    select pg_describe_object(class, object, 0), pg_get_userbyid(owner), current_user
    from (
        select 'pg_namespace'::regclass, oid, nspowner from ours
        union all
        select 'pg_class'::regclass, c.oid, c.relowner from pg_class c join ours on ours.oid = c.relnamespace
        union all
        select 'pg_proc'::regclass, p.oid, p.proowner from pg_proc p join ours on ours.oid = p.pronamespace
        union all
        select 'pg_operator'::regclass, o.oid, o.oprowner from pg_operator o join ours on ours.oid = o.oprnamespace
    ) made (class, object, owner)
    where owner <> (select oid from pg_roles where rolname = current_user)
    order by class <> 'pg_namespace'::regclass
    limit 1
"""


def database_url() -> str:
    url = context.config.attributes.get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("DATABASE_URL is not set: postgresql://user@host/database")
    return sqlalchemy_url(url)


def moves() -> bool:
    """Whether this command takes the database somewhere, and does not merely look."""
    try:
        context.get_revision_argument()
    except KeyError:
        return False
    return True


def is_at_head() -> bool:
    revision = context.get_context().get_current_revision()
    return revision is not None and revision == context.script.get_current_head()


def refuse_what_others_own(connection: Connection) -> None:
    """The owner of a schema can put functions into it, which then run with the rights of every caller of recrawl."""
    for thing, owner, migrator in connection.exec_driver_sql(OF_OTHERS):
        raise SystemExit(
            f"the {thing} belongs to {owner}, not to {migrator}, who migrates: migrate as {owner},"
            " or drop it first if recrawl did not make it"
        )


def check(connection: Connection) -> None:
    version, encoding = connection.exec_driver_sql(
        "select current_setting('server_version_num')::int / 10000, current_setting('server_encoding')"
    ).one()
    if version < 15:
        raise SystemExit(f"recrawl needs PostgreSQL 15 or newer, this server is {version}")
    if encoding != "UTF8":
        raise SystemExit(
            f"recrawl needs a database in UTF8, this one is in {encoding}: create database … encoding 'UTF8'"
        )


def online() -> None:
    # psycopg gives bytes for text where the encoding is not known, as in a database in SQL_ASCII.
    options = {"client_encoding": "utf8", "fallback_application_name": "recrawl migrate"}
    engine = create_engine(database_url(), poolclass=NullPool, connect_args=options)
    with engine.begin() as connection, waiting.said(engine, connection):
        replay.run(connection, PATH)
        check(connection)
        if moves():
            replay.run(connection, f"select pg_advisory_xact_lock({LOCK})")
            replay.run(connection, SCHEMA)
            refuse_what_others_own(connection)
        context.configure(connection=connection, version_table_schema="recrawl_internal")
        context.run_migrations()
        if moves() and is_at_head():
            replay.replay(connection)


def offline() -> None:
    context.configure(url="postgresql+psycopg://", literal_binds=True, version_table_schema="recrawl_internal")
    with context.begin_transaction():
        write = context.get_context().impl.static_output
        write(f"{PATH};")
        write(f"{SCHEMA};")
        context.run_migrations()
        if context.get_revision_argument() == context.script.get_current_head():
            for path in project.sql_files():
                write(path.read_text(encoding="utf-8"))
            write(f"{replay.record()};")


if context.is_offline_mode():
    offline()
else:
    online()
