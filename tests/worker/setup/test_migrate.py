"""Migrations: whatever the way up, the same database; and a way that fails leaves no trace."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import sql
from sqlalchemy import Column, Integer, MetaData, Table, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import OperationalError

import command
from helpers import eventually, free_port, run_program
from recrawl.client import ThreadedClient
from recrawl.setup import migrate, programs, project, waiting

GOLDEN = Path(__file__).parents[2] / "golden" / "schema.txt"
NewDatabase = Callable[..., str]

# Everything in the two schemas, in words that PostgreSQL 15 to 18 share: no view text, no row-level names of not-null
# constraints (18 has them), no privileges of the owner (17 has a new one). Alembic's table is alembic's business.
DUMP = r"""
with ours as (select oid, nspname, nspacl, nspowner from pg_namespace where nspname in ('recrawl', 'recrawl_internal')),
relation as (
    select c.*, n.nspname || '.' || c.relname as name
    from pg_class c join ours n on n.oid = c.relnamespace
    where c.relname !~ '^alembic_version'
),
line (name, text) as (
    select format('%s %s', case relkind when 'v' then 'view' when 'c' then 'type' else 'table' end, r.name),
           (select string_agg(
                       format(E'\n    %s %s', a.attname, format_type(a.atttypid, a.atttypmod))
                       || case when a.attnotnull then ' not null' else '' end
                       || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '')
                       || case a.attidentity when '' then '' else ' identity' end, '' order by a.attnum)
            from pg_attribute a left join pg_attrdef d on (d.adrelid, d.adnum) = (a.attrelid, a.attnum)
            where a.attrelid = r.oid and a.attnum > 0 and not a.attisdropped)
           || coalesce((select string_agg(format(E'\n    constraint "%s" %s', conname, pg_get_constraintdef(oid)), ''
                                          order by conname collate "C")
                        from pg_constraint where conrelid = r.oid and contype <> 'n'), '')
           || coalesce((select E'\n    with ' || string_agg(o, ', ' order by o collate "C")
                        from unnest(r.reloptions) as o), '')
    from relation r where relkind in ('r', 'p', 'v', 'm', 'c')
    union all
    select 'index ' || name, E'\n    ' || pg_get_indexdef(oid) from relation where relkind = 'i'
    union all
    select 'sequence ' || r.name, format(E'\n    %s from %s by %s', s.seqtypid::regtype, s.seqstart, s.seqincrement)
    from relation r join pg_sequence s on s.seqrelid = r.oid
    union all
    select 'type ' || t.oid::regtype,
           E'\n    ' || (select string_agg(enumlabel, ', ' order by enumsortorder) from pg_enum where enumtypid = t.oid)
    from pg_type t join ours n on n.oid = t.typnamespace where t.typtype = 'e'
    union all
    select format('function %s.%s(%s)', n.nspname, p.proname, pg_get_function_arguments(p.oid)),
           format(E'\n    returns %s\n    %s %s%s%s%s', pg_get_function_result(p.oid), l.lanname,
                  case p.provolatile when 'v' then 'volatile' when 's' then 'stable' else 'immutable' end,
                  case when p.proisstrict then ' strict' else '' end,
                  case when p.prosecdef then ' security definer' else '' end,
                  coalesce(' set ' || array_to_string(p.proconfig, '; '), ''))
    from pg_proc p join ours n on n.oid = p.pronamespace join pg_language l on l.oid = p.prolang
    union all
    select 'trigger ' || r.name, E'\n    ' || pg_get_triggerdef(t.oid)
    from pg_trigger t join relation r on r.oid = t.tgrelid where not t.tgisinternal
    union all
    select format('grants to %s', case grantee when 0 then 'public' else grantee::regrole::text end),
           string_agg(format(E'\n    %s on %s', privilege_type, thing), '' order by thing collate "C", privilege_type)
    from (
        select 'schema ' || nspname as thing, nspowner as owner, a.* from ours cross join aclexplode(nspacl) a
        union all
        select r.name, r.relowner, a.* from relation r cross join aclexplode(r.relacl) a
        union all
        select p.oid::regprocedure::text, p.proowner, a.*
        from pg_proc p join ours n on n.oid = p.pronamespace
        cross join aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    ) granted
    where grantee <> owner
    group by grantee
)
select name || text from line order by name collate "C", text collate "C"
"""

# What the golden text leaves out, to compare two databases of one server.
CONTENT = """
select p.oid::regprocedure::text, md5(coalesce(pg_get_function_sqlbody(p.oid), p.prosrc)),
       obj_description(p.oid, 'pg_proc')
from pg_proc p where p.pronamespace::regnamespace::text ~ '^recrawl'
union all
select c.oid::regclass::text, case when c.relkind = 'v' then md5(pg_get_viewdef(c.oid)) end,
       obj_description(c.oid, 'pg_class')
from pg_class c where c.relnamespace::regnamespace::text ~ '^recrawl'
union all
select digest, null, null from recrawl_internal.replayed
union all
select version_num, null, null from recrawl_internal.alembic_version
order by 1
"""

# A row that is written again has another xmin.
WRITTEN = """
select 'pg_proc', oid::text, xmin::text from pg_proc where pronamespace::regnamespace::text ~ '^recrawl'
union all
select 'pg_class', oid::text, xmin::text from pg_class
where relnamespace::regnamespace::text ~ '^recrawl' and relkind in ('r', 'v')
union all
select 'replayed', digest, xmin::text from recrawl_internal.replayed
order by 1, 2
"""

# Everything the database holds beyond what PostgreSQL puts there.
LEFT_OVER = """
with ours as (select oid, nspname from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema')
select 'schema ' || nspname as thing from ours where nspname <> 'public'
union all
select 'relation ' || c.oid::regclass from pg_class c join ours on ours.oid = relnamespace
union all
select 'function ' || p.oid::regprocedure from pg_proc p join ours on ours.oid = pronamespace
union all
select 'type ' || t.oid::regtype from pg_type t join ours on ours.oid = typnamespace
order by 1
"""
ALEMBICS_OWN = [
    "relation recrawl_internal.alembic_version",
    "relation recrawl_internal.alembic_version_pkc",
    "schema recrawl_internal",
    "type recrawl_internal.alembic_version",
    "type recrawl_internal.alembic_version[]",
]


def rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def dump(url: str) -> str:
    return "\n\n".join(str(text) for (text,) in rows(url, DUMP)) + "\n"


def everything(url: str) -> tuple[str, list[tuple[object, ...]]]:
    return dump(url), rows(url, CONTENT)


class Project:
    """A copy of what migrations need, that a test may change, and the commands run from it."""

    def __init__(self, root: Path) -> None:
        self.root = self.directory = root
        here = project.root()
        skip = shutil.ignore_patterns("__pycache__", "_project")
        for folder in ("sql", "migrations"):
            shutil.copytree(here / folder, root / folder, ignore=skip)
        shutil.copytree(Path(project.__file__).parents[1], root / "worker" / "recrawl", ignore=skip)
        shutil.copy(here / "alembic.ini", root)

    def environment(self, url: str | None) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        ours = {"PYTHONPATH": str(self.root / "worker"), "PYTHONDONTWRITEBYTECODE": "1"}
        return kept | ours | ({"DATABASE_URL": url} if url else {})

    def start(self, url: str, *words: str) -> command.Running:
        return command.Running(*words, environment=self.environment(url), cwd=self.directory)

    @contextmanager
    def running(self, url: str, *words: str) -> Iterator[None]:
        process = self.start(url, *words)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors

    def run(self, url: str | None, module: str, *arguments: str) -> str:
        done = command.run(module, *arguments, environment=self.environment(url), cwd=self.directory)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def fails(self, url: str | None, module: str, *arguments: str) -> str:
        done = command.run(module, *arguments, environment=self.environment(url), cwd=self.directory)
        assert done.returncode != 0
        return done.stderr

    def migrate(self, url: str) -> None:
        self.run(url, "recrawl", "migrate")

    def migrates(self, url: str) -> str:
        """Does that, and returns its advice."""
        done = command.run("recrawl", "migrate", environment=self.environment(url), cwd=self.directory)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def alembic(self, url: str | None, *arguments: str) -> str:
        return self.run(url, "alembic", *arguments)

    def add_file(self, name: str, text: str) -> None:
        (self.root / "sql" / name).write_text(text)
        with (self.root / "sql" / "install.sql").open("a") as install:
            install.write(f"\\ir {name}\n")

    def remove_file(self, name: str) -> None:
        (self.root / "sql" / name).unlink()
        install = self.root / "sql" / "install.sql"
        install.write_text(install.read_text().replace(f"\\ir {name}\n", ""))

    def change(self, name: str, old: str, new: str) -> None:
        path = self.root / "sql" / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def add_version(self, upgrade: str, downgrade: str = "select 1") -> None:
        heads = re.findall(r"^(\d{4}) \(head\)", self.alembic(None, "heads"), re.MULTILINE)
        assert heads, "the id of a version has four digits: alembic revision --rev-id NNNN"
        (self.root / "migrations" / "versions" / "next.py").write_text(
            "from alembic import op\n"
            f"revision = 'next'\ndown_revision = {heads[0]!r}\n"
            f"def upgrade() -> None:\n    op.execute({upgrade!r})\n"
            f"def downgrade() -> None:\n    op.execute({downgrade!r})\n"
        )

    @property
    def last_version(self) -> str:
        """The newest version that was there before add_version."""
        return max(path.name[:4] for path in (self.root / "migrations" / "versions").glob("[0-9]*.py"))


@pytest.fixture
def copy(tmp_path: Path) -> Project:
    return Project(tmp_path / "recrawl")


def psql(url: str, *arguments: str, text: str | None = None) -> None:
    errors = run_program("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", *arguments, url, text=text)
    assert "ERROR" not in errors, errors


def test_the_schema_is_the_golden_one(url: str) -> None:
    """What versions make; what sql/ makes is in docs/reference.md, or no one's business."""
    entries = dump(url).strip().split("\n\n")
    text = "\n\n".join(entry for entry in entries if entry.startswith(("table", "index", "sequence", "type"))) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(text)
    assert text.splitlines() == GOLDEN.read_text().splitlines(), (
        "the schema changed: if that is meant, and a migration brings existing databases there, say `make golden`"
    )


# -- every way up leads to the same database --


def test_recrawl_and_alembic_do_the_same(new_database: NewDatabase, copy: Project, url: str) -> None:
    by_alembic, by_recrawl = new_database(), new_database()
    copy.alembic(by_alembic, "upgrade", "head")
    copy.migrate(by_recrawl)
    assert everything(by_alembic) == everything(by_recrawl) == everything(url)


def test_alembic_works_from_any_directory(new_database: NewDatabase, copy: Project, url: str) -> None:
    database = new_database()
    copy.directory = Path("/")
    copy.alembic(database, "-c", str(copy.root / "alembic.ini"), "upgrade", "head")
    assert everything(database) == everything(url)


def test_the_offline_script_does_the_same(new_database: NewDatabase, copy: Project, url: str) -> None:
    database = new_database()
    script = copy.alembic(None, "upgrade", "head", "--sql")
    psql(database, text=script)
    assert everything(database) == everything(url)
    written = rows(database, WRITTEN)
    copy.migrate(database)
    assert rows(database, WRITTEN) == written


@pytest.mark.parametrize("option", ["--single-transaction", "--no-psqlrc"], ids=["in one transaction", "as it is"])
def test_the_file_for_psql_does_the_same(
    new_database: NewDatabase, copy: Project, url: str, tmp_path: Path, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also in a terminal that is not in UTF-8."""
    database, file = new_database(), tmp_path / "recrawl.sql"
    file.write_text(copy.run(None, "recrawl", "migrate", "--sql"))
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    run_program("psql", "--quiet", option, "--file", str(file), database)
    monkeypatch.delenv("PGCLIENTENCODING")
    assert everything(database) == everything(url)
    written = rows(database, WRITTEN)
    copy.migrate(database)
    assert rows(database, WRITTEN) == written
    before = everything(database)
    errors = subprocess.run([programs.program("psql"), "-1", "-f", file, database], capture_output=True, text=True)
    assert errors.returncode == 3
    assert [line for line in errors.stderr.splitlines() if "ERROR" in line] == [
        f"psql:{file}:12: ERROR:  this database has a crawl already: this file cannot upgrade it, recrawl migrate can"
    ]
    assert everything(database) == before


def test_the_file_for_psql_can_set_the_search_path(new_database: NewDatabase, copy: Project) -> None:
    database = new_database()
    psql(database, text=copy.run(None, "recrawl", "migrate", "--sql", "--search-path"))
    assert rows(database, "select to_regproc('next_pages')::text") == [("next_pages",)]


def test_the_offline_script_of_the_way_down_leads_down(copy: Project, url: str) -> None:
    psql(url, text=copy.alembic(None, "downgrade", "head:base", "--sql"))
    assert [thing for (thing,) in rows(url, LEFT_OVER)] == ALEMBICS_OWN


def test_an_offline_script_that_ends_before_the_head_has_none_of_sql(copy: Project) -> None:
    copy.add_version("create table recrawl_internal.later ()")
    assert "create or replace function" not in copy.alembic(None, "upgrade", copy.last_version, "--sql")
    assert "create or replace function" in copy.alembic(None, "upgrade", "head", "--sql")


def test_up_twice_is_up_once(copy: Project, url: str) -> None:
    written = rows(url, WRITTEN)
    copy.migrate(url)
    copy.alembic(url, "upgrade", "head")
    assert rows(url, WRITTEN) == written


def test_down_leaves_nothing_and_up_again_is_up(new_database: NewDatabase, copy: Project, url: str) -> None:
    database = new_database()
    before = rows(database, LEFT_OVER)
    for _ in range(2):
        copy.alembic(database, "upgrade", "head")
        assert everything(database) == everything(url)
        with psycopg.connect(database) as connection:
            connection.execute("select recrawl.add_pages('{http://a.test/,http://b.test/}'), recrawl.next_pages()")
        copy.alembic(database, "downgrade", "base")
        assert [thing for (thing,) in rows(database, LEFT_OVER)] == ALEMBICS_OWN
        assert rows(database, "select * from recrawl_internal.alembic_version") == []
    with psycopg.connect(database) as connection:
        connection.execute("drop schema recrawl_internal cascade")
    assert rows(database, LEFT_OVER) == before


def test_there_is_no_way_down_to_an_earlier_version(copy: Project, url: str) -> None:
    before = everything(url)
    assert "no way back to version 0001" in one_line(copy.fails(url, "alembic", "downgrade", "0001"))
    assert everything(url) == before


def test_going_down_spares_what_is_the_users(copy: Project, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "create table public.mine as select 1 as n;"
            "create function public.pause() returns int language sql as 'select 1'"
        )
    copy.alembic(url, "downgrade", "base")
    copy.migrate(url)
    assert rows(url, "select n, public.pause() from public.mine") == [(1, 1)]


def test_many_processes_at_once_migrate_once(new_database: NewDatabase, copy: Project, url: str) -> None:
    database = new_database()
    processes = [copy.start(database, "recrawl", "migrate") for _ in range(2)]
    processes += [copy.start(database, "alembic", "upgrade", "head") for _ in range(2)]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert everything(database) == everything(url)


def test_databases_of_one_server_migrate_at_once(new_database: NewDatabase, copy: Project, url: str) -> None:
    """Roles belong to the server, so these two meet there."""
    databases = [new_database() for _ in range(3)]
    for process in [copy.start(database, "recrawl", "migrate") for database in databases]:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert {dump(database) for database in databases} == {dump(url)}


def test_psql_installs_the_functions_again_by_hand(copy: Project, url: str) -> None:
    before = everything(url)
    written = rows(url, WRITTEN)
    psql(url, "--single-transaction", "--file", str(copy.root / "sql" / "install.sql"))
    assert everything(url) == before
    assert rows(url, WRITTEN) != written


def test_somebody_elses_alembic_leaves_recrawl_alone(url: str) -> None:
    """With the filter, autogenerate sees only the tables of its own metadata."""
    mine = MetaData()
    Table("mine", mine, Column("n", Integer, primary_key=True))
    Table("kept", mine, Column("n", Integer, primary_key=True), schema="kept")
    engine = migrate.engine(url)
    with engine.begin() as connection:
        connection.execute(text("create schema kept"))
        mine.create_all(connection)
        connection.execute(text("create table kept.kept_out ()"))

        def proposed(**filters: object) -> list[str]:
            context = MigrationContext.configure(connection, opts={"include_schemas": True, **filters})
            return [f"{change[0]} {change[1]}" for change in compare_metadata(context, mine)]

        assert proposed(include_name=migrate.include_name) == ["remove_table kept.kept_out"]
        assert "remove_table recrawl_internal.page" in proposed()


# -- when sql/ is replayed --


def comment_on_pause(url: str) -> object:
    return rows(url, "select obj_description('recrawl.pause()'::regprocedure, 'pg_proc')")[0][0]


def names(url: str) -> set[str]:
    query = """
        select proname from pg_proc where pronamespace::regnamespace::text ~ '^recrawl'
        union
        select relname from pg_class where relnamespace::regnamespace::text ~ '^recrawl' and relkind = 'v'
    """
    return {str(name) for (name,) in rows(url, query)}


def test_a_changed_file_is_replayed(copy: Project, url: str) -> None:
    copy.change(
        "steer/pause.sql",
        "Pauses the crawl: next_pages hands out no page until you call resume(). Reports still count.",
        "Changed, 100 % %s :x %(y)s.",
    )
    copy.migrate(url)
    assert comment_on_pause(url) == "Changed, 100 % %s :x %(y)s."


def test_what_no_file_creates_any_more_is_dropped(copy: Project, url: str) -> None:
    before = everything(url)
    copy.add_file(
        "extra.sql",
        "create or replace function recrawl_internal.extra(n int) returns int language sql as 'select n';\n"
        "create or replace view recrawl.extra_view as select recrawl_internal.extra(1) as n;\n"
        "create or replace view recrawl.another_view as select n from recrawl.extra_view;\n",
    )
    copy.migrate(url)
    assert names(url) >= {"extra", "extra_view", "another_view", "next_pages"}
    copy.remove_file("extra.sql")
    copy.migrate(url)
    assert everything(url) == before


CHANGED_DECLARATIONS = {
    "a function with one more argument": [
        (
            "upkeep/logs.sql",
            "log_part(t timestamptz)",
            "log_part(t timestamptz, x int = 4)",
        ),
    ],
    "a function that views call with one more argument": [
        (
            "common/times.sql",
            "start_window(gap interval, window_share real)",
            "start_window(gap interval, window_share real, x int = 4)",
        ),
    ],
    "a function with another result": [
        ("upkeep/logs.sql", "log_part(t timestamptz) returns int", "log_part(t timestamptz) returns bigint"),
    ],
    "a row type": [("take_in/row_types.sql", "moved_to bigint)',", "moved_to bigint, extra text)',")],
    "a view with a column less": [("show/events.sql", "subject, says", "says")],
}


@pytest.mark.parametrize("changes", CHANGED_DECLARATIONS.values(), ids=CHANGED_DECLARATIONS)
def test_a_changed_declaration_needs_no_version(
    copy: Project, url: str, new_database: NewDatabase, changes: list[tuple[str, str, str]]
) -> None:
    before, fresh = dump(url), new_database()
    for change in changes:
        copy.change(*change)
    for database in (url, fresh):
        copy.migrate(database)
    assert everything(url) == everything(fresh)
    assert dump(url) != before
    for file, old, new in changes:
        copy.change(file, new, old)
    copy.migrate(url)
    assert dump(url) == before


def make_a_view_of_the_user(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute(
            "create view public.mine as select subject, slot_every, recrawl.sketch_distance('{1}', '{1}')"
            " from recrawl.events cross join recrawl.host_status"
        )


def test_a_view_of_the_user_stays_while_ours_gets_more_columns(copy: Project, url: str) -> None:
    make_a_view_of_the_user(url)
    copy.change("show/events.sql", "says, by\n", "says, by, event_id\n")
    copy.migrate(url)
    assert rows(url, "select event_id from recrawl.events") == rows(url, "select subject from public.mine") == []


@pytest.mark.parametrize(
    ("thing", "changes"),
    [
        ("view recrawl.events", [("show/events.sql", "subject, says", "says")]),
        ("view recrawl.events", [("show/events.sql", "recrawl.events", "recrawl.happenings")]),
        (
            "function recrawl.sketch_distance(integer[],integer[])",
            [("show/sketch_distance.sql", "(one int[], other int[])", "(one int[], other int[], x int = 4)")],
        ),
        (
            "function recrawl_internal.start_window(interval,real)",
            CHANGED_DECLARATIONS["a function that views call with one more argument"],
        ),
    ],
    ids=["a column", "a view", "a function", "a function that its views call"],
)
def test_what_a_view_of_the_user_needs_is_not_taken_away(
    copy: Project, url: str, thing: str, changes: list[tuple[str, str, str]]
) -> None:
    make_a_view_of_the_user(url)
    before, written = everything(url), rows(url, WRITTEN)
    for change in changes:
        copy.change(*change)
    line = one_line(copy.fails(url, "recrawl", "migrate"))
    assert f"the {thing}, which view public.mine depends on" in line
    assert everything(url) == before
    assert rows(url, WRITTEN) == written


def test_rights_granted_by_hand_outlive_a_changed_declaration(copy: Project, url: str) -> None:
    analyst = f"recrawl_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url) as connection:
        connection.execute(f"create role {analyst}")
        connection.execute(f"grant usage on schema recrawl to {analyst}")
        connection.execute(f"grant select on recrawl.events to {analyst} with grant option")
        connection.execute(f"grant execute on function recrawl.claim to {analyst}")
    copy.change("show/events.sql", "subject, says", "says")
    copy.change("take_in/claim.sql", "claim(name text)", "claim(name text, why text default null)")
    copy.migrate(url)
    assert rows(
        url,
        f"select has_table_privilege('{analyst}', 'recrawl.events', 'select with grant option'),"
        f" has_function_privilege('{analyst}', 'recrawl.claim(text, text)', 'execute')",
    ) == [(True, True)]
    with psycopg.connect(url) as connection:
        connection.execute(f"drop owned by {analyst}")
        connection.execute(f"drop role {analyst}")


@pytest.mark.parametrize("what", [what for what in CHANGED_DECLARATIONS if what != "a row type"])
def test_crawlers_do_not_wait_for_a_replay(copy: Project, url: str, what: str) -> None:
    for change in CHANGED_DECLARATIONS[what]:
        copy.change(*change)
    copy.add_file(
        "waits.sql",
        "do $$ begin while not pg_try_advisory_xact_lock(4711) loop perform pg_sleep(.05); end loop; end $$;\n",
    )
    with psycopg.connect(url, autocommit=True) as holder, psycopg.connect(url, autocommit=True) as crawler:
        crawler.execute("set lock_timeout = '1 s'; select recrawl.add_pages('{http://a.test/,http://b.test/}')")
        holder.execute("select pg_advisory_lock(4711)")
        migration = copy.start(url, "recrawl", "migrate")
        waiting = "select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'"
        while not holder.execute(waiting).fetchall():
            assert migration.poll() is None
        crawler.execute("select recrawl.add_pages('{http://c.test/}')")
        out = crawler.execute("select page_id, lease_id from recrawl.next_pages()").fetchall()
        for page_id, lease_id in out:
            result = f'[{{"page_id": {page_id}, "lease_id": {lease_id}, "status": 200, "links": ["http://d.test/"]}}]'
            assert crawler.execute("select code from recrawl.report(%s)", [result]).fetchall() == [("ok",)]
        assert len(out) == 3
        holder.execute("select pg_advisory_unlock(4711)")
        _, errors = migration.communicate(timeout=600)
        assert migration.returncode == 0, errors


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("a transaction with the lock", ["recrawl", "migrate"]),
        ("a transaction with the lock", ["alembic", "upgrade", "head"]),
        ("a session with the lock", ["recrawl", "migrate"]),
        ("a reader", ["recrawl", "migrate"]),
    ],
    ids=["a transaction", "a transaction and alembic", "a session", "a reader"],
)
def test_a_migration_says_which_session_it_waits_for(copy: Project, url: str, what: str, words: list[str]) -> None:
    lock = "(x'" + re.findall(r"^LOCK = 0x(\w+)", (copy.root / "migrations/env.py").read_text(), re.M)[0] + "'::int)"
    copy.change(*CHANGED_DECLARATIONS["a view with a column less"][0])
    name = "anna's notebook"
    with psycopg.connect(url, application_name=name, autocommit=what == "a session with the lock") as holder:
        pid = holder.info.backend_pid
        holds, state = {
            "a transaction with the lock": (f"select pg_advisory_xact_lock{lock}", "in a transaction"),
            "a session with the lock": (f"select pg_advisory_lock{lock}", "idle"),
            "a reader": ("select from recrawl.events limit 1", "in a transaction"),
        }[what]
        holder.execute(holds.encode())
        migration = copy.start(url, *words)
        said = migration.stderr.readline()
        while said and "waits for" not in said:
            said = migration.stderr.readline()  # Alembic has lines of its own
        assert re.fullmatch(
            rf"recrawl: the migration waits for process {pid} \({name}, login \w+\), which has been {state} since "
            rf"\d\d:\d\d:\d\d\. To end it: SELECT pg_terminate_backend\({pid}\);\n",
            said,
        )
        time.sleep(3)
        assert migration.poll() is None, "it goes on waiting"
        holder.rollback()
        holder.execute("select pg_advisory_unlock_all()")
        holder.commit()
        _, errors = migration.communicate(timeout=600)
        assert migration.returncode == 0, errors
        assert "waits for" not in errors, "it says it once"


def test_a_right_that_no_file_grants_any_more_is_gone(copy: Project, url: str) -> None:
    before = dump(url)
    copy.add_file("extra.sql", "grant execute on function recrawl.pause() to recrawl_crawler;\n")
    copy.migrate(url)
    assert dump(url) != before
    copy.remove_file("extra.sql")
    copy.migrate(url)
    assert dump(url) == before


@pytest.mark.parametrize("words", [["current"], ["history"], ["heads"], ["show", "head"]], ids=lambda c: c[0])
def test_looking_replays_nothing(copy: Project, url: str, words: list[str]) -> None:
    copy.change("steer/pause.sql", "Pauses the crawl", "Changed: pauses the crawl")
    written = rows(url, WRITTEN)
    copy.alembic(url, *words)
    assert rows(url, WRITTEN) == written


@pytest.mark.parametrize("words", [["current"], ["history"]], ids=lambda c: c[0])
def test_looking_at_an_empty_database_leaves_it_empty(
    new_database: NewDatabase, copy: Project, words: list[str]
) -> None:
    database = new_database()
    before = rows(database, LEFT_OVER)
    copy.alembic(database, *words)
    assert rows(database, LEFT_OVER) == before


def test_sql_is_not_replayed_on_the_way_down(copy: Project, url: str) -> None:
    copy.add_version("create table recrawl_internal.later ()", "drop table recrawl_internal.later")
    copy.migrate(url)
    copy.change("steer/pause.sql", "Pauses the crawl", "Changed: pauses the crawl")
    copy.alembic(url, "downgrade", "-1")
    assert str(comment_on_pause(url)).startswith("Pauses the crawl")
    assert rows(url, "select to_regclass('recrawl_internal.later')") == [(None,)]
    copy.migrate(url)
    assert str(comment_on_pause(url)).startswith("Changed: pauses the crawl")


def test_sql_is_not_replayed_before_the_head(new_database: NewDatabase, copy: Project) -> None:
    copy.add_version("create table recrawl_internal.later ()", "drop table recrawl_internal.later")
    database = new_database()
    copy.alembic(database, "upgrade", copy.last_version)
    assert names(database) == set()
    copy.alembic(database, "upgrade", "+1")
    assert "next_pages" in names(database)


# -- refusals --


def one_line(errors: str) -> str:
    (line,) = errors.splitlines()
    return line


@pytest.mark.parametrize("words", [["recrawl", "migrate"], ["alembic", "upgrade", "head"]], ids=lambda c: c[0])
def test_an_error_in_one_file_leaves_everything_as_it_was(copy: Project, url: str, words: list[str]) -> None:
    before, written = everything(url), rows(url, WRITTEN)
    copy.add_version("create table recrawl_internal.later ()")
    copy.change("steer/pause.sql", "Pauses the crawl", "Changed: pauses the crawl")
    copy.add_file(
        "broken.sql", "create or replace function recrawl.broken() returns int language sql as 'select nowhere';\n"
    )
    assert 'column "nowhere" does not exist' in copy.fails(url, *words)
    assert everything(url) == before
    assert rows(url, WRITTEN) == written


def test_a_database_that_is_not_utf8_is_refused_in_one_line(server: str, copy: Project) -> None:
    name = f"recrawl_test_{uuid.uuid4().hex[:12]}"
    with closing(psycopg.connect(server, autocommit=True)) as connection:
        connection.execute(
            f"create database {name} encoding 'SQL_ASCII' template template0 locale_provider libc locale 'C'"
        )
        try:
            database = make_url(server).set(database=name).render_as_string(hide_password=False)
            for words in (["recrawl", "migrate"], ["alembic", "upgrade", "head"]):
                line = one_line(copy.fails(database, *words))
                assert "UTF8" in line and "SQL_ASCII" in line
            assert rows(database, "select nspname from pg_namespace where nspname ~ 'recrawl'") == []
        finally:
            connection.execute(f"drop database {name} with (force)")


def test_without_database_url_alembic_says_so_in_one_line(copy: Project) -> None:
    assert "DATABASE_URL" in one_line(copy.fails(None, "alembic", "upgrade", "head"))


def test_an_unknown_version_is_refused_in_one_line(copy: Project, url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("update recrawl_internal.alembic_version set version_num = '0014'")
    before = everything(url)
    line = one_line(copy.fails(url, "recrawl", "migrate"))
    assert "at version 0014" in line and "CHANGELOG.md" in line
    assert everything(url) == before


# -- roles --


class Owner:
    """An owner of databases who is no superuser, and a project whose roles nobody else on this server has."""

    def __init__(self, server: str, copy: Project) -> None:
        self.connection = psycopg.connect(server, autocommit=True)
        self.server = server
        self.copy = copy
        self.prefix = f"recrawl_test_{uuid.uuid4().hex[:12]}"
        self.databases: list[str] = []
        self.owners: list[str] = []
        for path in [*(copy.root / "sql").rglob("*.sql"), *(copy.root / "worker").rglob("*.py")]:
            path.write_text(
                re.sub(r"\brecrawl_(crawler|reader|operator|worker)\b", rf"{self.prefix}_\1", path.read_text())
            )

    def database(self, *attributes: str) -> str:
        """The URL of a new database as its new owner."""
        name = f"{self.prefix}_{len(self.databases)}"
        self.connection.execute(f"create role {name} {' '.join(attributes)}")
        self.owners.append(name)
        self.connection.execute(f"create database {name} owner {name} template template0 encoding 'UTF8'")
        self.databases.append(name)
        url = make_url(self.server).set(database=name)
        return f"{url.render_as_string(hide_password=False)}&options={quote(f'-c role={name}')}"

    def login(self) -> str:
        """The URL of a new database as its new owner, who logs in and may do nothing else on this server."""
        name = make_url(self.database("login", "password 'secret'")).database
        url = make_url(self.server).set(database=name, username=name, password="secret")
        return url.render_as_string(hide_password=False)

    def roles(self) -> set[str]:
        made = self.connection.execute("select rolname from pg_roles where starts_with(rolname, %s)", [self.prefix])
        return {name.removeprefix(f"{self.prefix}_") for (name,) in made} - {str(n) for n in range(9)}

    def clear(self) -> None:
        for name in self.databases:
            self.connection.execute(f"drop database if exists {name} with (force)")
        for role in [*self.roles()]:
            self.connection.execute(sql.SQL("drop role {}").format(sql.Identifier(f"{self.prefix}_{role}")))
        for name in self.owners:
            self.connection.execute(f"drop role {name}")
        self.connection.close()


@pytest.fixture
def owner(server: str, copy: Project) -> Iterator[Owner]:
    owner = Owner(server, copy)
    yield owner
    owner.clear()


FOUR = {"crawler", "reader", "operator", "worker"}


def test_whoever_may_create_roles_gets_them_created(owner: Owner) -> None:
    database = owner.database("createrole")
    owner.copy.migrate(database)
    assert owner.roles() == FOUR
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select recrawl.add_pages('{http://a.test/}')")


def test_whoever_may_not_create_roles_is_told_what_to_do_and_it_helps(owner: Owner) -> None:
    database = owner.database()
    line = one_line(owner.copy.fails(database, "recrawl", "migrate"))
    assert f"the role {owner.prefix}_crawler" in line
    assert owner.roles() == set()
    assert rows(database, "select nspname from pg_namespace where nspname ~ '^recrawl'") == []

    advice = re.findall(r"(?:create role|grant) [^;]+;", line)
    assert len(advice) >= 4
    for statement in advice:
        owner.connection.execute(statement)
    owner.copy.migrate(database)
    assert owner.roles() == FOUR


def test_a_second_database_of_somebody_else_uses_the_same_roles(owner: Owner) -> None:
    for _ in range(2):
        owner.copy.migrate(owner.database("createrole"))
    owner.copy.migrate(owner.database())
    assert owner.roles() == FOUR


def test_a_second_owner_is_told_what_to_grant_and_it_helps(owner: Owner) -> None:
    first, second = owner.database("createrole"), owner.database("createrole")
    assert owner.copy.migrates(first) == ""
    creator, login = make_url(first).database, make_url(second).database
    said = owner.copy.migrates(second)
    with psycopg.connect(second, autocommit=True) as connection:
        give = f"create role {owner.prefix}_8 in role {owner.prefix}_crawler"
        if connection.info.server_version < 160000:
            assert said == ""
            connection.execute(give.encode())
            return
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(give.encode())
        assert login and login in said and f"Let {creator} run: " in said
        rows_of_first = said.partition("run: ")[2].strip()
        assert rows_of_first.endswith(" WITH ADMIN OPTION;")
        with psycopg.connect(first) as creators:
            creators.execute(rows_of_first.encode())
        connection.execute(give.encode())
    assert owner.copy.migrates(second) == ""


def test_the_owner_of_one_database_and_nothing_else_runs_a_crawl(owner: Owner) -> None:
    """On this server nobody may create a role, and there is none of recrawl's."""
    database = owner.login()
    assert "recrawl migrate --no-roles" in one_line(owner.copy.fails(database, "recrawl", "migrate"))
    owner.copy.run(database, "recrawl", "migrate", "--no-roles")
    assert "grants to" not in dump(database)
    written = rows(database, WRITTEN)
    owner.copy.migrate(database)  # as the last time
    assert rows(database, WRITTEN) == written

    metrics, report = (f"127.0.0.1:{free_port()}" for _ in range(2))
    with (
        owner.copy.running(database, "recrawl", "worker", "--metrics", metrics),
        owner.copy.running(database, "recrawl", "dashboard", "--listen", report),
    ):
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("select recrawl.add_pages('{http://a.test/}')")
        with ThreadedClient(database, user_agent="me", robots=False) as crawl:
            next(crawl).report(200, links=["http://b.test/"])
        eventually(lambda: rows(database, "select from recrawl.page_status where url = 'http://b.test/'"))
        eventually(lambda: "recrawl_up 1.0" in answer(f"http://{metrics}/metrics"))
        eventually(lambda: "The crawl" in answer(f"http://{report}/"))
        assert "No worker runs" not in owner.copy.run(database, "recrawl", "status")
        owner.copy.run(database, "recrawl", "explain", "http://a.test/")
    assert owner.roles() == set()


def answer(address: str) -> str:
    def asked() -> str:
        with suppress(OSError), urllib.request.urlopen(address, timeout=20) as response:
            return str(response.read().decode())
        return ""

    return eventually(asked)


def test_roles_that_were_left_out_come_later_and_go_again(owner: Owner) -> None:
    database = owner.database("createrole")
    owner.copy.run(database, "recrawl", "migrate", "--no-roles")
    without = dump(database)
    owner.copy.run(database, "recrawl", "migrate", "--roles")
    assert owner.roles() == FOUR
    fresh = owner.database("createrole")
    owner.copy.migrate(fresh)
    assert dump(database) == dump(fresh) != without
    assert "</html>" in owner.copy.run(database, "recrawl", "dashboard", "--file", "-")
    owner.copy.run(database, "recrawl", "migrate", "--no-roles")
    assert dump(database) == without
    assert owner.roles() == FOUR  # another crawl of the server uses them


def test_the_file_for_psql_without_roles_needs_no_role(owner: Owner, tmp_path: Path) -> None:
    by_file, by_recrawl, file = owner.database(), owner.database(), tmp_path / "recrawl.sql"
    file.write_text(owner.copy.run(None, "recrawl", "migrate", "--sql", "--no-roles"))
    run_program("psql", "--quiet", "--single-transaction", "--file", str(file), by_file)
    owner.copy.run(by_recrawl, "recrawl", "migrate", "--no-roles")
    assert everything(by_file) == everything(by_recrawl)
    written = rows(by_file, WRITTEN)
    owner.copy.migrate(by_file)
    assert rows(by_file, WRITTEN) == written


def test_going_down_keeps_the_roles(owner: Owner) -> None:
    database = owner.database("createrole")
    owner.copy.migrate(database)
    owner.copy.alembic(database, "downgrade", "base")
    assert owner.roles() == FOUR
    owner.copy.migrate(database)


# -- rights and owners --


@pytest.mark.parametrize(
    "change",
    [
        "grant execute on all functions in schema recrawl to public",
        "revoke execute on function recrawl.next_pages from recrawl_crawler",
        "grant usage on schema recrawl_internal to recrawl_crawler",
        "revoke usage on schema recrawl from recrawl_reader",
        "grant select on recrawl_internal.page to public",
        "grant usage on sequence recrawl_internal.page_id to recrawl_reader",
        "revoke select on recrawl.page_status from recrawl_reader",
        "alter function recrawl.next_pages reset search_path",
        "alter function recrawl.next_pages security invoker",
        "drop view recrawl.queue_status",
        "create or replace function recrawl.pause() returns void language sql as ''",
    ],
)
def test_what_was_changed_by_hand_is_put_right_again(url: str, change: str) -> None:
    before = dump(url)
    with psycopg.connect(url) as connection:
        connection.execute(change.encode())
    assert dump(url) != before
    migrate.upgrade(url)
    assert dump(url) == before
    written = rows(url, WRITTEN)
    migrate.upgrade(url)
    assert rows(url, WRITTEN) == written


def test_a_membership_that_was_lost_comes_back(owner: Owner) -> None:
    database = owner.database("createrole")
    owner.copy.migrate(database)
    operator, reader = f"{owner.prefix}_operator", f"{owner.prefix}_reader"
    is_member = f"select pg_has_role('{operator}', '{reader}', 'member')"
    with psycopg.connect(database) as connection:  # since PostgreSQL 16 whoever granted it revokes it
        connection.execute(f"revoke {reader} from {operator}")
    assert rows(database, is_member) == [(False,)]
    owner.copy.migrate(database)
    assert rows(database, is_member) == [(True,)]


def test_what_the_user_granted_stays(url: str, owner: Owner) -> None:
    analyst = f"{owner.prefix}_analyst"
    with psycopg.connect(url) as connection:
        connection.execute(f"create role {analyst}")
        connection.execute(f"grant usage on schema recrawl to {analyst}")
        connection.execute(f"grant select on recrawl.page_status to {analyst}")
    migrate.upgrade(url)
    assert rows(url, f"select has_table_privilege('{analyst}', 'recrawl.page_status', 'select')") == [(True,)]
    with psycopg.connect(url) as connection:
        connection.execute(f"drop owned by {analyst}")


def test_a_dump_restored_where_the_roles_are_missing_is_put_right(
    owner: Owner, new_database: NewDatabase, tmp_path: Path
) -> None:
    first, second = owner.database("createrole"), owner.database("createrole superuser")
    owner.copy.migrate(first)
    before = dump(first)
    run_program("pg_dump", "--format=custom", f"--file={tmp_path / 'dump'}", first)
    owner.connection.execute(f"drop database {make_url(first).database}")
    for role in FOUR:
        owner.connection.execute(f"drop role {owner.prefix}_{role}")
    errors = run_program("pg_restore", "--no-owner", f"--dbname={second}", str(tmp_path / "dump"))
    assert f'role "{owner.prefix}_crawler" does not exist' in errors
    open_to_all = """
        select count(*) from pg_proc
        where pronamespace = 'recrawl'::regnamespace and prosecdef and has_function_privilege('public', oid, 'execute')
    """
    closed_by_their_schema = """
        select has_schema_privilege('public', nspname, 'usage') from pg_namespace where nspname ~ '^recrawl'
    """
    assert rows(second, open_to_all) > [(20,)]
    assert rows(second, closed_by_their_schema) == [(False,), (False,)]
    owner.copy.migrate(second)
    assert rows(second, open_to_all) == [(0,)]
    assert dump(second) == before


@pytest.mark.parametrize(
    "theirs",
    [
        "create schema recrawl_internal",
        "create schema recrawl",
        "create schema recrawl_internal authorization current_user; set role {other};"
        " create function recrawl_internal.length(text) returns int language sql as 'select 1'",
    ],
)
@pytest.mark.parametrize("words", [["recrawl", "migrate"], ["alembic", "upgrade", "head"]], ids=lambda c: c[0])
def test_what_somebody_else_owns_is_refused_in_one_line(
    new_database: NewDatabase, server: str, copy: Project, theirs: str, words: list[str]
) -> None:
    database, other = new_database(), f"recrawl_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(f"create role {other}")
        if "set role" in theirs:
            ours, theirs = theirs.format(other=other).split("set role", 1)
            connection.execute(ours.encode())
            connection.execute(f"grant usage, create on schema recrawl_internal to {other}")
            connection.execute(f"set role{theirs}".encode())
        else:
            connection.execute(f"{theirs} authorization {other}".encode())
        connection.execute("reset role")
        before = rows(database, LEFT_OVER)
        line = one_line(copy.fails(database, *words))
        assert f"belongs to {other}" in line and "recrawl" in line
        assert rows(database, LEFT_OVER) == before
        connection.execute(f"drop owned by {other} cascade")
        connection.execute(f"drop role {other}")
    copy.migrate(database)


def test_a_part_of_a_crawl_is_refused_in_one_line(copy: Project, url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop table recrawl_internal.alembic_version cascade")
        assert one_line(copy.fails(url, "recrawl", "migrate")).endswith("and restore again")
        connection.execute("drop schema recrawl, recrawl_internal cascade")
    copy.migrate(url)


def test_a_crawl_of_somebody_else_is_refused_and_the_owner_goes_on(owner: Owner) -> None:
    database = owner.database("createrole")
    owner.copy.migrate(database)
    name = make_url(database).database
    superusers = make_url(owner.server).set(database=name).render_as_string(hide_password=False)
    assert f"migrate as {name}" in one_line(owner.copy.fails(superusers, "recrawl", "migrate"))
    owner.copy.migrate(database)


def test_a_session_in_the_way_is_named_once_although_the_migration_goes_on_between(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The migration gives up its locks after half a second of waiting, and begins again."""
    engine, told = migrate.engine(url), set[int]()
    with (
        psycopg.connect(url) as holder,
        engine.connect() as migration,
        waiting.announced(engine, migration, 0.05, told),
    ):
        holder.execute("lock table recrawl_internal.setting")

        def wait_for_the_lock() -> bool:
            migration.exec_driver_sql("set local lock_timeout = '1 s'")
            with pytest.raises(OperationalError, match="lock timeout"):
                migration.exec_driver_sql("select from recrawl_internal.setting")
            migration.rollback()
            return bool(told)

        eventually(wait_for_the_lock)
        migration.exec_driver_sql("select pg_sleep(1)")
        wait_for_the_lock()
    assert capsys.readouterr().err.count("the migration waits for process") == 1
