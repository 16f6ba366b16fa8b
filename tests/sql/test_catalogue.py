"""Rules for every object that recrawl puts into a database, checked with the catalogue."""

import re
from pathlib import Path

import psycopg
import pytest

from helpers import Row
from recrawl.setup import project

# They write down when they were called, and nothing is decided by it.
MERELY_STAMPED = {f"recrawl.{name}" for name in ("delete_pages", "exclude", "keep_out", "pause", "resume")}
# Two arguments that nobody can mix up: a page by its URL, or by its id.
OVERLOADED = {"recrawl.explain_page", "recrawl_internal.explain_page_at"}

FUNCTIONS = """
    select n.nspname as schema, n.nspname || '.' || p.proname as name, p.proname,
           p.oid::regprocedure::text as signature,
           coalesce(pg_get_function_sqlbody(p.oid), p.prosrc) as body, p.prosqlbody is not null as is_bound,
           p.prosecdef as is_definer, p.provolatile = 'v' as is_volatile, l.lanname as language,
           (select split_part(c, '=', 2) from unnest(p.proconfig) as c where c like 'search_path=%%') as search_path,
           array(select t::regtype::text from unnest(p.proargtypes) as t) as arguments,
           p.proargnames[1] as first_argument,
           pg_get_function_result(p.oid) as result,
           exists (select from aclexplode(coalesce(p.proacl, acldefault('f', p.proowner)))
                   where grantee = 0) as is_for_all,
           array(select grantee::regrole::text from aclexplode(p.proacl)
                 where grantee <> p.proowner order by 1) as roles
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    join pg_language l on l.oid = p.prolang
    where n.nspname in ('recrawl', 'recrawl_internal')
    order by 2, 4
"""

# All objects of the two schemas that must have a comment. The comments of internal functions stand above them in sql/.
COMMENTS = """
    with ours as (select oid, nspname from pg_namespace where nspname in ('recrawl', 'recrawl_internal')),
    thing (what, name, comment) as (
        select 'schema', nspname, obj_description(oid, 'pg_namespace') from ours
        union all
        select 'function', p.oid::regprocedure::text, obj_description(p.oid, 'pg_proc')
        from pg_proc p where p.pronamespace = 'recrawl'::regnamespace
        union all
        select case c.relkind when 'v' then 'view' else 'table' end, c.oid::regclass::text,
               obj_description(c.oid, 'pg_class')
        from pg_class c join ours n on n.oid = c.relnamespace
        where c.relkind in ('r', 'p', 'v', 'm') and c.relname <> 'alembic_version'
        union all
        select 'column', c.oid::regclass || '.' || a.attname, col_description(c.oid, a.attnum)
        from pg_class c join ours n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
        where (c.relkind in ('r', 'p') or c.relkind = 'v' and nspname = 'recrawl')
          and a.attnum > 0 and not a.attisdropped and c.relname <> 'alembic_version'
        union all
        select 'type', t.oid::regtype::text, obj_description(t.oid, 'pg_type')
        from pg_type t join ours n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
        where t.typtype in ('e', 'd', 'r') or c.relkind = 'c'
    )
    select what, name from thing where what = %s and coalesce(btrim(comment), '') = '' order by name
"""

CLOCKS_OF_THE_TRANSACTION = re.compile(
    r"\b(now\s*\(|current_timestamp|current_date|current_time\b|localtimestamp|localtime\b"
    r"|transaction_timestamp|statement_timestamp|timeofday|'now'|'today')",
    re.IGNORECASE,
)


@pytest.fixture
def functions(catalogue: psycopg.Connection[Row]) -> list[Row]:
    return catalogue.execute(FUNCTIONS).fetchall()


@pytest.mark.parametrize("what", ["schema", "function", "table", "view", "column", "type"])
def test_everything_has_a_comment(catalogue: psycopg.Connection[Row], what: str) -> None:
    assert [row["name"] for row in catalogue.execute(COMMENTS, [what])] == []


def test_every_sequence_gives_ids_or_says_what_its_number_is(catalogue: psycopg.Connection[Row]) -> None:
    """Its unit, who writes it, what a wrong value does; and the view internal_state shows it."""
    comments = {
        row["name"]: row["comment"]
        for row in catalogue.execute(
            """
            select c.relname::text as name, coalesce(obj_description(c.oid, 'pg_class'), '') as comment from pg_class c
            where c.relnamespace = 'recrawl_internal'::regnamespace and c.relkind = 'S'
              and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'i')      -- of an identity
            """
        )
    }
    ids = {name for name, comment in comments.items() if comment.startswith("Ids of ")}
    assert ids == {"host_id", "page_id", "lease_id", "job_token"}
    cell = r"(time|count|bits): .+\. .*\b(writes?|counts?|is set|sets)\b.+(\b[Ii]f (it|the|a) .+|A wrong value .+)"
    cells = {name for name, comment in comments.items() if re.fullmatch(cell, comment)}
    assert cells == comments.keys() - ids
    shown = catalogue.execute("select name, meaning from recrawl.internal_state").fetchall()
    assert {row["name"] for row in shown} == cells
    assert all(comments[row["name"]].endswith(f": {row['meaning']}") for row in shown)


def test_every_table_can_be_published(catalogue: psycopg.Connection[Row]) -> None:
    """Otherwise CREATE PUBLICATION … FOR ALL TABLES would stop the crawl."""
    without_identity = catalogue.execute(
        """
        select c.relname from pg_class c
        where c.relnamespace = 'recrawl_internal'::regnamespace and c.relkind in ('r', 'p') and c.relreplident <> 'f'
          and not exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary)
        """
    ).fetchall()
    assert without_identity == []


# -- functions --


def without_comments(body: str) -> str:
    return re.sub(r"--[^\n]*", "", body)


def test_functions_that_are_not_inlined_have_a_pinned_search_path_with_temporary_objects_last(
    functions: list[Row],
) -> None:
    for function in functions:
        if not function["is_bound"]:
            assert function["search_path"] == "recrawl_internal, pg_temp", function["signature"]


def test_functions_that_are_inlined_were_bound_when_they_were_made(functions: list[Row]) -> None:
    """A string would be read when it is called, by the rules of the caller's search path: see test_roles."""
    inlined = [function for function in functions if function["search_path"] is None]
    assert len(inlined) > 40
    for function in inlined:
        assert function["is_bound"] and not function["is_definer"], function["signature"]


def test_no_function_is_executable_by_everybody(functions: list[Row]) -> None:
    assert [function["signature"] for function in functions if function["is_for_all"]] == []


def test_nothing_else_is_granted_to_everybody(catalogue: psycopg.Connection[Row]) -> None:
    granted = catalogue.execute(
        """
        select c.oid::regclass::text as name
        from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname in ('recrawl', 'recrawl_internal')
          and exists (select from aclexplode(c.relacl) where grantee = 0)
        union all
        select nspname from pg_namespace
        where nspname in ('recrawl', 'recrawl_internal') and exists (select from aclexplode(nspacl) where grantee = 0)
        """
    ).fetchall()
    assert granted == []


def test_no_function_is_overloaded(functions: list[Row]) -> None:
    names = [function["name"] for function in functions if function["name"] not in OVERLOADED]
    assert len(names) == len(set(names))


def test_functions_that_run_with_their_owners_rights_are_the_public_ones_and_doors_for_the_worker_and_for_views(
    functions: list[Row],
) -> None:
    for f in functions:
        if f["schema"] == "recrawl":
            assert f["is_definer"], f["signature"]
        elif f["is_definer"]:
            assert f["roles"] in (["recrawl_worker"], ["recrawl_reader"]), f["signature"]
        elif f["roles"]:
            assert f["roles"] == ["recrawl_reader"] and not f["is_volatile"], "a part of a view: " + f["signature"]


def test_what_a_run_writes_is_refused_if_another_run_has_the_job(functions: list[Row]) -> None:
    """The token of a run is the first argument, and is checked first."""
    of_worker = [f for f in functions if f["roles"] == ["recrawl_worker"] and f["proname"] != "keep_job"]
    with_token = [f for f in of_worker if f["arguments"][:2] == ["bigint", "interval"]]
    assert "put_scores" in [f["proname"] for f in with_token]
    assert [f["signature"] for f in of_worker if f["proname"].startswith("put_") and f not in with_token] == []
    for f in with_token:
        statements = re.split(r"\bbegin\b", without_comments(f["body"]), maxsplit=1)[-1].strip()
        assert re.match(r"(perform |t := |select (\w+\()?)keep_job\(token", statements), f["signature"]


def test_every_public_verb_that_asks_the_clock_has_a_twin_that_is_told_the_time(functions: list[Row]) -> None:
    by_name = {(function["name"], *function["arguments"]): function for function in functions}
    asking = [
        f
        for f in functions
        if f["schema"] == "recrawl" and "clock_timestamp" in f["body"] and f["name"] not in MERELY_STAMPED
    ]
    assert len(asking) > 10
    for verb in asking:
        arguments = ["timestamp with time zone", *verb["arguments"]]
        name = "next_ready_time" if verb["proname"] == "next_ready_at" else f"{verb['proname']}_at"
        twin = by_name.get((f"recrawl_internal.{name}", *arguments))
        assert twin, f"{verb['signature']} has no twin"
        assert twin["result"] == verb["result"], twin["signature"]
        assert re.search(rf"\b{twin['proname']}\(\s*clock_timestamp\(\)", verb["body"]), verb["name"]


def test_every_twin_belongs_to_a_public_verb_or_to_the_upkeep(functions: list[Row]) -> None:
    verbs = {function["proname"] for function in functions if function["schema"] == "recrawl"} | {
        "tick",
        "reap",
        "drain",
        "put_dues",
        "bring_forward",
        "rotate_log",
        "take_vitals",
        "forget_history",
    }
    for function in functions:
        if (
            function["schema"] == "recrawl_internal"
            and function["proname"].endswith("_at")
            and function["arguments"][:1] == ["timestamp with time zone"]
        ):
            assert function["proname"].removesuffix("_at") in verbs, function["signature"]


def test_no_function_asks_when_its_transaction_began(functions: list[Row]) -> None:
    asking = [f["signature"] for f in functions if CLOCKS_OF_THE_TRANSACTION.search(without_comments(f["body"]))]
    assert asking == []


def test_no_view_asks_when_its_transaction_began(catalogue: psycopg.Connection[Row]) -> None:
    views = catalogue.execute("select viewname, definition from pg_views where schemaname ~ '^recrawl'").fetchall()
    assert views
    assert [v["viewname"] for v in views if CLOCKS_OF_THE_TRANSACTION.search(v["definition"])] == []


def test_core_postgres_is_all_that_is_used(catalogue: psycopg.Connection[Row], functions: list[Row]) -> None:
    assert {function["language"] for function in functions} == {"sql", "plpgsql"}
    assert catalogue.execute("select extname from pg_extension").fetchall() == [{"extname": "plpgsql"}]


def test_no_name_is_one_of_postgresqls_own(catalogue: psycopg.Connection[Row]) -> None:
    """The files of sql/ write no schema before names of recrawl_internal. PostgreSQL looks in pg_catalog first."""
    taken = catalogue.execute(
        """
        with named (what, schema, name) as (
            select 'relation', relnamespace, relname from pg_class
            union all
            select 'type', typnamespace, typname from pg_type
            union all
            select 'function', pronamespace, proname from pg_proc
        )
        select what, name from named where schema = 'recrawl_internal'::regnamespace
        intersect
        select what, name from named where schema = 'pg_catalog'::regnamespace
        """
    ).fetchall()
    assert taken == []


# -- files --


def test_install_lists_every_file_of_sql_once() -> None:
    folder = project.root() / "sql"
    listed = project.sql_files()
    assert len(listed) == len(set(listed))
    assert set(listed) == set(folder.rglob("*.sql")) - {folder / "install.sql"}


@pytest.mark.parametrize("path", project.sql_files(), ids=lambda path: path.name)
def test_every_file_of_sql_creates_or_grants_something(path: Path) -> None:
    assert re.search(r"^(create or replace|select make_type|grant|revoke|do)\b", path.read_text(), re.MULTILINE)


def test_the_files_create_exactly_what_is_there(catalogue: psycopg.Connection[Row], functions: list[Row]) -> None:
    """Row types of the schema recrawl are made by a version of the tables."""
    views_and_row_types = {
        row["name"]
        for row in catalogue.execute(
            """
            select n.nspname || '.' || c.relname as name
            from pg_class c join pg_namespace n on n.oid = c.relnamespace
            where n.nspname ~ '^recrawl' and c.relkind = 'v' or n.nspname = 'recrawl_internal' and c.relkind = 'c'
            """
        )
    }
    assert project.declarations().keys() == {function["name"] for function in functions} | views_and_row_types


# -- the public face --


def test_the_public_schema_holds_functions_views_and_row_types_only(catalogue: psycopg.Connection[Row]) -> None:
    kinds = catalogue.execute(
        "select distinct relkind::text as kind from pg_class where relnamespace = 'recrawl'::regnamespace"
    ).fetchall()
    assert {row["kind"] for row in kinds} <= {"v", "c"}


def test_public_functions_take_and_give_plain_types_and_named_rows(catalogue: psycopg.Connection[Row]) -> None:
    """A named row type can get more columns later; RETURNS TABLE and OUT arguments cannot."""
    odd = catalogue.execute(
        """
        select p.oid::regprocedure::text as name
        from pg_proc p
        where p.pronamespace = 'recrawl'::regnamespace
          and (p.proallargtypes is not null or p.prorettype = 'record'::regtype
               or exists (select from unnest(p.proargtypes) as a join pg_type t on t.oid = a
                          where t.typnamespace <> 'pg_catalog'::regnamespace))
        """
    ).fetchall()
    assert odd == []
