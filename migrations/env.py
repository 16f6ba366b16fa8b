"""Applies versioned migrations of the tables, then replays sql/ when any of its files changed, or what they made.

Both happen in one transaction under an advisory lock: two processes at once migrate once, a failure leaves all as
it was. sql/ is replayed only at the head revision, never on the way down, and never by commands that merely look.
"""

import os
from typing import Any

from alembic import context
from sqlalchemy import Connection, CursorResult, NullPool, create_engine

from recrawl.setup import project
from recrawl.setup.migrate import sqlalchemy_url

LOCK = 0x72656372  # «recr»: one database is one crawl, and one migration at a time
SCHEMA = "create schema if not exists recrawl_internal"
# What is made here is bound to PostgreSQL's own operators, whatever the path of whoever migrates.
PATH = "set local search_path = pg_catalog, pg_temp"
STALE = """
    select 'view', c.oid::regclass::text, n.nspname || '.' || c.relname
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('recrawl', 'recrawl_internal') and c.relkind = 'v'
    union all
    select 'function', p.oid::regprocedure::text, n.nspname || '.' || p.proname
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname in ('recrawl', 'recrawl_internal')
"""
# What sql/ made, and who may use it, in words that mean the same in another database: a restore may have lost roles and
# rights, and somebody may have changed them by hand.
IN_FORCE = """
    with ours as (select * from pg_namespace where nspname in ('recrawl', 'recrawl_internal')),
    made (thing, owner, acl, definition) as (
        select 'schema ' || nspname, nspowner, nspacl, null from ours
        union all
        select 'relation ' || c.oid::regclass, c.relowner, c.relacl,
               case c.relkind when 'v' then pg_get_viewdef(c.oid) end
        from pg_class c join ours on ours.oid = c.relnamespace
        union all
        select 'function ' || p.oid::regprocedure, p.proowner, coalesce(p.proacl, acldefault('f', p.proowner)),
               concat_ws(' ', p.provolatile, p.prosecdef, p.proconfig, p.prosrc, pg_get_function_sqlbody(p.oid))
        from pg_proc p join ours on ours.oid = p.pronamespace
    ),
    granted as (
        select thing, privilege_type, grantee from made cross join aclexplode(acl) a where grantee <> owner
    ),
    line (text) as (
        select concat_ws(' ', thing, definition) from made
        union all
        select concat_ws(' ', thing, privilege_type, case when grantee <> 0 then pg_get_userbyid(grantee) end)
        from granted
        union all
        select pg_get_userbyid(member) || ' ' || pg_get_userbyid(roleid)
        from pg_auth_members
        where member in (select grantee from granted) and roleid in (select grantee from granted)
    )
    select md5(string_agg(text, E'\\n' order by text collate "C")) from line
"""
PUT_IN_FORCE = f"""
    insert into recrawl_internal.replayed (digest, in_force) values ('{{digest}}', ({IN_FORCE}))
    on conflict (only_row) do update set digest = excluded.digest, in_force = excluded.in_force
"""
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


def run(connection: Connection, sql: str) -> CursorResult[Any]:
    # Without parameters, or else every % in the file would be taken for one.
    return connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


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
    """Whoever owns a schema can put into it what then runs with the rights of those who call recrawl."""
    for thing, owner, migrator in connection.exec_driver_sql(OF_OTHERS):
        raise SystemExit(
            f"the {thing} belongs to {owner}, not to {migrator}, who migrates: migrate as {owner},"
            " or, if it is none of recrawl's, drop it first"
        )


def replay(connection: Connection) -> None:
    """Runs the files of sql/ if what they make is not in force, and drops what no file creates any more."""
    state = (project.sql_digest(), run(connection, IN_FORCE).scalar())
    if connection.exec_driver_sql("select digest, in_force from recrawl_internal.replayed").one_or_none() == state:
        return
    for path in project.sql_files():
        run(connection, path.read_text(encoding="utf-8"))
    kept = project.created_names()
    stale = [(kind, thing) for kind, thing, name in connection.exec_driver_sql(STALE) if name not in kept]
    for wanted in ("view", "function"):  # views call functions; together, as views stand on views
        if things := ", ".join(thing for kind, thing in stale if kind == wanted):
            run(connection, f"drop {wanted} {things}")
    run(connection, put_in_force())


def put_in_force() -> str:
    return PUT_IN_FORCE.replace("{digest}", project.sql_digest())


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
        run(connection, PATH)
        check(connection)
        if moves():
            run(connection, f"select pg_advisory_xact_lock({LOCK})")
            run(connection, SCHEMA)
            refuse_what_others_own(connection)
        context.configure(connection=connection, version_table_schema="recrawl_internal")
        context.run_migrations()
        if moves() and is_at_head():
            replay(connection)


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
            write(f"{put_in_force()};")


if context.is_offline_mode():
    offline()
else:
    online()
