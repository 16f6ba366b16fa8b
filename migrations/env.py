"""Applies the versions of the tables, then replays sql/ (see recrawl/setup/replay.py).

Both happen in one transaction under an advisory lock: two processes that start together migrate once, and a failure
changes nothing. sql/ is replayed only at the newest version, not on the way down, and not by commands that only look.
"""

import os
import time

from alembic import context
from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from recrawl.setup import replay, waiting
from recrawl.setup.migrate import engine as engine_for

LOCK = 0x72656372  # «recr»: one database is one crawl, and one migration at a time
SCHEMA = "create schema if not exists recrawl_internal"
# Crawlers wait behind a statement that waits for a lock. So it waits at most this long, and the migration starts again.
LOCK_PATIENCE = 0.5  # seconds
PATIENCE = f"set local lock_timeout = '{LOCK_PATIENCE} s'"
LONGEST_PAUSE = 5.0  # seconds between two attempts
# A line if there is a reason not to migrate. One reason: a schema of recrawl, or a thing in it, does not belong to the
# role that migrates. Its owner could change functions, which run with the rights of every caller of recrawl.
REFUSALS = """
    select 'recrawl needs PostgreSQL 15 or newer, this server is ' || current_setting('server_version')
    where current_setting('server_version_num')::int < 150000
    union all
    select format('recrawl needs a database in UTF8, this one is in %s: create database … encoding %L', it, 'UTF8')
    from current_setting('server_encoding') as it
    where it <> 'UTF8'
    union all
    (with ours as (select * from pg_namespace where nspname in ('recrawl', 'recrawl_internal'))
    select format('the %1$s belongs to %2$s, not to %3$s, who migrates: migrate as %2$s,'
                  ' or drop it first if recrawl did not make it',
                  pg_describe_object(class, object, 0), pg_get_userbyid(owner), current_user)
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
    order by class <> 'pg_namespace'::regclass)
    union all
    select 'the schema recrawl exists, but recrawl_internal.alembic_version does not: if a restore has failed, drop the'
           ' schemas recrawl and recrawl_internal, and restore again'
    where to_regnamespace('recrawl') is not null and to_regclass('recrawl_internal.alembic_version') is null
    limit 1
"""
REFUSE = f"""
do $$
declare
    refusal constant text := ({REFUSALS});
begin
    if refusal is not null then
        raise exception '%', refusal;
    end if;
end $$;
"""


def database_url() -> str:
    url = context.config.attributes.get("url") or os.environ.get("DATABASE_URL")
    if not url:
        raise SystemExit("DATABASE_URL is not set: postgresql://user@host/database")
    return str(url)


def moves() -> bool:
    """Whether this command changes the version of the tables, and does not only look."""
    try:
        context.get_revision_argument()
    except KeyError:
        return False
    return True


def is_at_head() -> bool:
    revision = context.get_context().get_current_revision()
    return revision is not None and revision == context.script.get_current_head()


def online() -> None:
    # psycopg gives bytes for text if the encoding is not known, as in a database in SQL_ASCII.
    engine = engine_for(database_url(), client_encoding="utf8", fallback_application_name="recrawl migrate")
    began, pause, named = time.monotonic(), 0.2, set[int]()
    while True:
        is_long = time.monotonic() - began > waiting.ASK_EVERY
        try:
            with (
                engine.begin() as connection,
                waiting.announced(engine, connection, LOCK_PATIENCE / 2 if is_long else waiting.ASK_EVERY, named),
            ):
                migrate(connection)
                return
        except DBAPIError as error:
            if not isinstance(error.orig, LockNotAvailable):
                raise
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def migrate(connection: Connection) -> None:
    replay.run(connection, replay.PATH)
    if moves():
        replay.run(connection, f"select pg_advisory_xact_lock({LOCK})")
        replay.run(connection, SCHEMA)
        for (refusal,) in replay.rows(connection, REFUSALS):
            raise SystemExit(refusal)
        replay.run(connection, PATIENCE)
    context.configure(connection=connection, version_table_schema="recrawl_internal")
    context.run_migrations()
    if moves() and is_at_head():
        replay.replay(connection, context.config.attributes.get("with_roles"))


def offline() -> None:
    context.configure(
        url="postgresql+psycopg://",
        dialect_opts={"paramstyle": "named"},  # with the paramstyle of psycopg each % would be written as %%
        literal_binds=True,
        version_table_schema="recrawl_internal",
    )
    with_roles = context.config.attributes.get("with_roles") is not False
    with context.begin_transaction():
        write = context.get_context().impl.static_output
        write(replay.PATH)
        write(f"select pg_advisory_xact_lock({LOCK});")
        write(f"{SCHEMA};")
        write(REFUSE)
        write(f"{PATIENCE};")
        context.run_migrations()
        if context.get_revision_argument() == context.script.get_current_head():
            for text in replay.texts(with_roles):
                write(text)
            write(f"{replay.record(with_roles)};")


if context.is_offline_mode():
    offline()
else:
    online()
