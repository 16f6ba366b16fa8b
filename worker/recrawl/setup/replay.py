"""Brings the functions, views and row types of sql/ into a database. They are not versioned: migrations/env.py replays
them in the transaction of the versions. (lab/replay.py runs a policy on a recorded web.)

1. If the files and what they made are as they were at the last replay, nothing is done.
2. Things whose declaration changed, or that no file declares any more, are dropped. So are recrawl's own things that
   depend on them. A declaration is the text of a function up to the word `language` (name, arguments and result), or
   the whole text of a view or row type.
3. All files are run. Each function or view that is still there is replaced where it stands.
4. Rights that were granted by hand on a dropped thing are granted again on the new things of the same name. But PUBLIC
   and the roles of recrawl get only what the files grant (sql/rights.sql).

Why not drop everything: a crawler that is inside of a call when its function disappears gets the error «cache lookup
failed for function». With three crawlers, 8 of 40 replays caused it in next_pages or report, and nearly every replay
caused it in hint_change, which waits while a replay drops a view. With functions replaced in place, none of 40 did.
"""

import json
from collections.abc import Iterable
from typing import Any

from psycopg.errors import InvalidTableDefinition
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from recrawl.setup import project

# The search path of the statements of a migration: the login may have another one.
PATH = "set local search_path = pg_catalog, pg_temp;"
# As in install.sql.
PATH_OF_FILES = "set local search_path = recrawl_internal, pg_temp;"

# A hash of all things that sql/ made and of the rights on them. It uses names and no ids, so it is the same in a
# restored database. A restore may have lost roles and rights, and people may have changed them.
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

# A thing is written as in `drop …`. In pg_depend, an object that uses a view or a row type may depend on its type or
# its array type instead. And the rule of a view, not the view itself, depends on the things that the view uses.
THINGS = """
    with thing (class, oid, thing, name, acl) as (
        select 'pg_proc'::regclass, p.oid, 'function ' || p.oid::regprocedure, n.nspname || '.' || p.proname, p.proacl
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname in ('recrawl', 'recrawl_internal')
        union all
        select 'pg_class'::regclass, c.oid, case c.relkind when 'v' then 'view ' else 'type ' end || c.oid::regclass,
               n.nspname || '.' || c.relname, c.relacl
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('recrawl', 'recrawl_internal') and c.relkind in ('v', 'c')
    ),
    address (class, oid, thing) as (
        select class, oid, thing from thing
        union all
        select 'pg_type'::regclass, unnest(array[r.oid, r.typarray]), thing
        from thing join pg_type r on r.typrelid = thing.oid and class = 'pg_class'::regclass
        union all
        select 'pg_rewrite'::regclass, w.oid, thing
        from thing join pg_rewrite w on w.ev_class = thing.oid and w.rulename = '_RETURN'
    )
"""
NAMES = THINGS + "select thing, name from thing"
# Pairs: a thing, and something that depends on it.
DEPENDS = (
    THINGS
    + """
    select distinct a.thing, coalesce(
        b.thing, regexp_replace(pg_describe_object(d.classid, d.objid, d.objsubid), '^rule _RETURN on ', ''))
    from pg_depend d
    join address a on (a.class, a.oid) = (d.refclassid, d.refobjid)
    left join address b on (b.class, b.oid) = (d.classid, d.objid)
    where b.thing is distinct from a.thing
"""
)
RIGHTS = (
    THINGS
    + """
    select thing, name, privilege_type, quote_ident(pg_get_userbyid(grantee)), is_grantable
    from thing cross join aclexplode(acl)
    where grantee <> grantor and grantee <> 0
"""
)


def run(connection: Connection, sql: str) -> Any:
    # With parameters, every % in the file would be read as a placeholder.
    return connection.exec_driver_sql(sql, execution_options={"no_parameters": True})


def rows(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in run(connection, sql)]


def replay(connection: Connection, with_roles: bool | None = None) -> None:
    """Replays sql/ with or without grants to the four roles. None = as the last time."""
    known = rows(connection, "select digest, in_force, with_roles, declared from recrawl_internal.replayed")
    digest, in_force, had_roles, before = known[0] if known else ("", "", True, {})
    if with_roles is None:
        with_roles = bool(had_roles)
    now = project.sql_digest(), run(connection, IN_FORCE).scalar(), with_roles
    if (digest, in_force, had_roles) == now:
        return
    declared = project.declarations()
    changed = {name for name in {*before, *declared} if before.get(name) != declared.get(name)}
    granted_by_hand = [right for right in rows(connection, RIGHTS) if right[3] not in project.ROLES]

    dropped, blocked = drop(connection, changed)
    for thing, others in blocked.items():
        # A view can be replaced where it stands if it only gets more columns.
        may_stay = thing.startswith("view ") and thing.removeprefix("view ") in declared
        if thing.partition(" ")[2].partition("(")[0] in changed and not may_stay:
            raise SystemExit(refusal(thing, others))
    for text in texts(with_roles):
        try:
            run(connection, text)
        except DBAPIError as error:
            view = next((thing for thing in blocked if f"replace {thing} as" in text), None)
            if view and isinstance(error.orig, InvalidTableDefinition):
                raise SystemExit(f"{refusal(view, blocked[view])} ({str(error.orig).splitlines()[0]})") from None
            raise
    grant_again(connection, [right for right in granted_by_hand if right[0] in dropped])
    run(connection, record(with_roles))


def texts(with_roles: bool) -> list[str]:
    """The statements that run all files."""
    return [PATH_OF_FILES, *project.sql_texts(with_roles), PATH]


def drop(connection: Connection, names: set[str]) -> tuple[set[str], dict[str, set[str]]]:
    """Drops the things with these names and recrawl's own things that depend on them.

    Returns what was dropped. Also returns what stays because objects of others depend on it, with their names.
    """
    ours: dict[str, str] = dict(rows(connection, NAMES))
    dependants: dict[str, set[str]] = {thing: set() for thing in ours}
    for thing, dependant in rows(connection, DEPENDS):
        dependants[thing].add(dependant)
    unwanted: set[str] = set()
    found = [thing for thing, name in ours.items() if name in names]
    while found:
        thing = found.pop()
        if thing in ours and thing not in unwanted:
            unwanted.add(thing)
            found += dependants[thing]
    left = set(unwanted)
    while free := [thing for thing in left if not any(d in left or d not in ours for d in dependants[thing])]:
        for thing in free:
            run(connection, f"drop {thing}")
        left -= set(free)
    return unwanted - left, {thing: others_on(thing, dependants) for thing in left}


def others_on(thing: str, dependants: dict[str, set[str]]) -> set[str]:
    """The things of others that depend on it, directly or through recrawl's own things."""
    return set().union(*(others_on(d, dependants) if d in dependants else {d} for d in dependants[thing]))


def refusal(thing: str, others: Iterable[str]) -> str:
    return (
        f"this recrawl changes the {thing}, which {', '.join(sorted(others))} depends on: save the definition of that,"
        " drop it, migrate, then make it again"
    )


def grant_again(connection: Connection, rights: Iterable[Any]) -> None:
    now = rows(connection, NAMES)
    for _, name, privilege, grantee, is_grantable in rights:
        for thing in (thing for thing, its_name in now if its_name == name):
            option = " with grant option" if is_grantable else ""
            run(connection, f"grant {privilege} on {thing.removeprefix('view ')} to {grantee}{option}")


def record(with_roles: bool) -> str:
    """The statement that writes down what a replay brought into force."""
    declared = json.dumps(project.declarations())
    return f"""
        insert into recrawl_internal.replayed (digest, in_force, declared, with_roles)
        values ('{project.sql_digest()}', ({IN_FORCE}), '{declared}', {with_roles})
        on conflict (only_row) do update
        set digest = excluded.digest, in_force = excluded.in_force, declared = excluded.declared,
            with_roles = excluded.with_roles
    """
