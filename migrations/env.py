"""Applies versioned migrations of the tables, then replays sql/ when any of its files changed.

Both happen in one transaction under an advisory lock: two processes at once migrate once, a failure leaves all as
it was. sql/ is replayed only at the head revision, never on the way down, and never by commands that merely look.
"""

import os

from alembic import context
from sqlalchemy import Connection, NullPool, create_engine

from recrawl.setup import project
from recrawl.setup.migrate import sqlalchemy_url

LOCK = 0x72656372  # «recr»: one database is one crawl, and one migration at a time
SCHEMA = "create schema if not exists recrawl_internal"
STALE = """
    select 'view', c.oid::regclass::text, n.nspname || '.' || c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('recrawl', 'recrawl_internal') and c.relkind = 'v'
    union all
    select 'function', p.oid::regprocedure::text, n.nspname || '.' || p.proname
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('recrawl', 'recrawl_internal')
"""


def database_url() -> str:
    url = context.config.attributes.get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("DATABASE_URL is not set: postgresql://user@host/database")
    return sqlalchemy_url(url)


def run(connection: Connection, sql: str) -> None:
    # Without parameters, or else every % in the file would be taken for one.
    connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


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


def replay(connection: Connection) -> None:
    """Runs the files of sql/ if they are not in force, and drops what no file creates any more."""
    digest = project.sql_digest()
    if connection.exec_driver_sql("select digest from recrawl_internal.replayed").scalar() == digest:
        return
    for path in project.sql_files():
        run(connection, path.read_text())
    kept = project.created_names()
    stale = [(kind, thing) for kind, thing, name in connection.exec_driver_sql(STALE) if name not in kept]
    for wanted in ("view", "function"):  # views call functions; together, as views stand on views
        if things := ", ".join(thing for kind, thing in stale if kind == wanted):
            run(connection, f"drop {wanted} {things}")
    connection.exec_driver_sql(
        "insert into recrawl_internal.replayed (digest) values (%(digest)s)"
        " on conflict (only_row) do update set digest = excluded.digest",
        {"digest": digest},
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
    engine = create_engine(database_url(), poolclass=NullPool, connect_args={"client_encoding": "utf8"})
    with engine.begin() as connection:
        check(connection)
        if moves():
            run(connection, f"select pg_advisory_xact_lock({LOCK})")
            run(connection, SCHEMA)
        context.configure(connection=connection, version_table_schema="recrawl_internal")
        context.run_migrations()
        if moves() and is_at_head():
            replay(connection)


def offline() -> None:
    context.configure(url="postgresql+psycopg://", literal_binds=True, version_table_schema="recrawl_internal")
    with context.begin_transaction():
        write = context.get_context().impl.static_output
        write(f"{SCHEMA};")
        context.run_migrations()
        if context.get_revision_argument() == context.script.get_current_head():
            for path in project.sql_files():
                write(path.read_text())
            write(f"insert into recrawl_internal.replayed (digest) values ('{project.sql_digest()}')")
            write("    on conflict (only_row) do update set digest = excluded.digest;")


if context.is_offline_mode():
    offline()
else:
    online()
