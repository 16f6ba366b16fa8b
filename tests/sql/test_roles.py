"""The rights of each role, tested by trying: every role tries every function, view, table and helper."""

import json
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from helpers import DAY, MINUTE, Crawl, run_job
from recrawl import store
from recrawl.jobs.registry import JOBS
from recrawl.setup import migrate
from recrawl.store import reads
from recrawl.view import facts, figures, history

ROLES = ["crawler", "reader", "operator", "worker", "nobody"]
# Operators and workers may read everything that readers may read.
INHERITS = {"operator": {"reader"}, "worker": {"reader"}}
REFERENCE = Path(__file__).parents[2] / "docs" / "reference.md"


def granted(kind: str) -> set[str]:
    """The functions and views that a role may use, according to the reference."""
    said = re.findall(r"^### (\w+)\n(?:(?!^#).*\n)*?^For: (.*)\.$", REFERENCE.read_text(), re.MULTILINE)
    assert len(said) > 30
    return {name for name, roles in said if {kind, *INHERITS.get(kind, ())} & set(roles.split(", "))}


RUN = json.dumps(
    {"token": 1, "policy": "opt_polite", "objective": "freshness", "priced_by": "freshness"}
    | dict.fromkeys(
        ["seconds", "budget", "for_revisits", "price", "pages", "hosts", "capped_hosts", "utility", "limit_with_gaps",
         "limit_without_gaps", "residual", "spread", "duality_gap"], 0,
    )
)  # fmt: skip

OPIC_RUN = json.dumps(
    {"token": 1, "converged": True}
    | dict.fromkeys(["pages", "links", "sweeps", "residual", "error", "cash", "moved", "seconds"], 0)
)

# Calls that do something. Others are tried with nulls, which they refuse.
CALLS = {
    "next_pages": "recrawl.next_pages(1)",
    "next_ready_at": "recrawl.next_ready_at()",
    "report": """recrawl.report('[{"page_id": 1, "lease_id": 1, "status": 200}]')""",
    "report_pages": "recrawl.report_pages('{1}', '{1}', '{200}')",
    "release": "recrawl.release(1)",
    "extend_lease": "recrawl.extend_lease(1, '1 minute')",
    "add_pages": "recrawl.add_pages('{http://roles.test/}')",
    "fetch_now": "recrawl.fetch_now('{1}')",
    "set_host": "recrawl.set_host('roles.test', gap => '2 seconds')",
    "block_host": "recrawl.block_host('roles.test')",
    "unblock_host": "recrawl.unblock_host('a.test')",
    "pause": "recrawl.pause()",
    "resume": "recrawl.resume()",
    "exclude": "recrawl.exclude('roles')",
    "unexclude": "recrawl.unexclude('excluded before')",
    "keep_out": "recrawl.keep_out('{1}')",
    "set_setting": "recrawl.set_setting('max_depth', '3')",
    "set_rate": "recrawl.set_rate(1, 0.5)",
    "set_value": "recrawl.set_value(1, 2)",
    "set_relevance": "recrawl.set_relevance(1, 0.5)",
    "boost": "recrawl.boost('roles', 2)",
    "set_interval": "recrawl.set_interval('{1}', '1 day')",
    "hint_change": "recrawl.hint_change('{1}')",
    "successors": "recrawl.successors(1)",
    "predecessors": "recrawl.predecessors(1)",
    "top_hubs": "recrawl.top_hubs(3)",
    "top_authorities": "recrawl.top_authorities(3)",
    "top_relevant": "recrawl.top_relevant(3)",
    "explain_page": "recrawl.explain_page(1)",
    "page_of": "recrawl.page_of('http://a.test/1')",
    "sketch_distance": "recrawl.sketch_distance('{1,2,3,4,5,6,7,8}', '{1,2,3,4,5,6,7,9}')",
}


@pytest.fixture(scope="module")
def admin(new_database: Callable[..., str], template: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser on a crawl of a page that is out and one that is not."""
    with psycopg.connect(new_database(template), autocommit=True) as connection:
        connection.execute("select recrawl.add_pages('{http://a.test/1,http://a.test/2}')")
        connection.execute("select recrawl.exclude('excluded before')")
        connection.execute("select recrawl.next_pages()")
        connection.execute("select recrawl_internal.start_job('rates', '1 hour')")  # its token is 1
        yield connection


@pytest.fixture(scope="module")
def nobody(admin: psycopg.Connection[Any]) -> Iterator[str]:
    """A role that was granted nothing. Roles belong to the whole server, so its name is its own."""
    name = f"recrawl_test_nobody_{uuid.uuid4().hex[:12]}"
    admin.execute(f"create role {name}")
    yield name
    admin.execute(f"drop role {name}")


class Actor:
    """Somebody who tries things, each of them taken back afterwards."""

    def __init__(self, connection: psycopg.Connection[Any], role: str) -> None:
        self.connection = connection
        self.role = role

    @contextmanager
    def acting(self) -> Iterator[None]:
        with self.connection.transaction(force_rollback=True):
            self.connection.execute(sql.SQL("set local role {}").format(sql.Identifier(self.role)))
            yield

    def may(self, statement: str) -> bool:
        """Whether the statement goes through, or is stopped by anything but a lack of privilege."""
        try:
            with self.acting():
                self.connection.execute(statement)
        except InsufficientPrivilege:
            return False
        except psycopg.Error:
            return True
        return True


@pytest.fixture(params=ROLES)
def actor(request: pytest.FixtureRequest, admin: psycopg.Connection[Any], nobody: str) -> Actor:
    return Actor(admin, nobody if request.param == "nobody" else f"recrawl_{request.param}")


def kind(actor: Actor) -> str:
    return "nobody" if "nobody" in actor.role else actor.role.removeprefix("recrawl_")


def names(connection: psycopg.Connection[Any], query: str) -> list[str]:
    return [name for (name,) in connection.execute(query).fetchall()]


TABLES = """
    select relname from pg_class where relnamespace = 'recrawl_internal'::regnamespace and relkind in ('r', 'p')
"""


# -- verbs and views --


PUBLIC_CALLS = """
    select proname, format('select * from recrawl.%I(%s)', proname,
                           (select string_agg('null::' || t::regtype, ', ' order by place)
                            from unnest(proargtypes) with ordinality as a (t, place)))
    from pg_proc where pronamespace = 'recrawl'::regnamespace
"""
PUBLIC_VIEWS = "select viewname from pg_views where schemaname = 'recrawl'"


def test_a_role_may_call_its_verbs_and_no_others(actor: Actor) -> None:
    calls = dict(actor.connection.execute(PUBLIC_CALLS).fetchall())
    calls |= {name: f"select * from {call}" for name, call in CALLS.items()}
    assert {name for name, call in calls.items() if actor.may(call)} == granted(kind(actor)) & set(calls)


def test_a_role_may_read_its_views_and_no_others(actor: Actor) -> None:
    views = names(actor.connection, PUBLIC_VIEWS)
    may = {view for view in views if actor.may(f"select * from recrawl.{view}")}
    assert may == granted(kind(actor)) & set(views)


def test_nobody_writes_through_a_view(actor: Actor) -> None:
    for view in names(actor.connection, PUBLIC_VIEWS):
        columns = names(
            actor.connection,
            f"select attname from pg_attribute where attrelid = 'recrawl.{view}'::regclass and attnum = 1",
        )
        for statement in (
            f"insert into recrawl.{view} default values",
            f"update recrawl.{view} set {columns[0]} = null",
            f"delete from recrawl.{view}",
        ):
            refusals = (InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState)
            with pytest.raises(refusals), actor.acting():
                actor.connection.execute(statement)


# -- what is internal --


def test_no_role_touches_a_table(actor: Actor) -> None:
    tables = names(actor.connection, TABLES)
    assert {"page", "host", "queue", "lease", "setting", "link", "alembic_version"} <= set(tables)
    for table in tables:
        for statement in (
            "select from {}",
            "select from {} for update",
            "insert into {} default values",
            "delete from {}",
            "truncate {}",
            "lock table {}",
            "copy {} to stdout",
            "alter table {} add column mine int",
            "create index on {} (ctid)",
            "drop table {}",
            "comment on table {} is 'mine'",
        ):
            assert not actor.may(statement.format(f"recrawl_internal.{table}")), f"{actor.role}: {statement} {table}"


def test_no_role_touches_a_sequence(actor: Actor) -> None:
    sequences = names(
        actor.connection,
        "select relname from pg_class where relnamespace = 'recrawl_internal'::regnamespace and relkind = 'S'",
    )
    assert sequences
    for sequence in sequences:
        for statement in (
            "select nextval('{}')",
            "select setval('{}', 1)",
            "select last_value from {}",
            "drop sequence {}",
        ):
            assert not actor.may(statement.format(f"recrawl_internal.{sequence}")), (
                f"{actor.role}: {statement} {sequence}"
            )


def test_no_role_calls_a_helper_but_the_worker_its_own(actor: Actor) -> None:
    helpers = actor.connection.execute(
        """
        select proname, format('select recrawl_internal.%I(%s)', proname,
                               (select string_agg(repeat('variadic ', (provariadic > 0 and place = pronargs)::int)
                                                  || case t when 'text'::regtype then quote_literal('/') else 'null' end
                                                  || '::' || t::regtype, ', ' order by place)
                                from unnest(proargtypes) with ordinality as a (t, place)))
        from pg_proc where pronamespace = 'recrawl_internal'::regnamespace
        """
    ).fetchall()
    # PostgreSQL does not check rights of a strict function if its argument is null, so the argument is a text.
    calls = dict(helpers) | {"tick": "select recrawl_internal.tick(100, 1000)"}
    calls |= {
        "start_job": "select recrawl_internal.start_job('x', '1 minute')",
        "keep_job": "select recrawl_internal.keep_job(1, '1 minute')",
        "put_priors": "select recrawl_internal.put_priors(1, '1 minute', '{0}', '{1}', '{2}')",
        "bring_forward": "select recrawl_internal.bring_forward(1, '1 minute', '{}', '{}')",
        "put_graph_state": "select recrawl_internal.put_graph_state(1, '1 minute', 0.5, 0.5)",
        "put_scores": "select recrawl_internal.put_scores(1, '1 minute', '{1}', '{1}', '{1}', '{1}', '{1}')",
        "put_opic": "select recrawl_internal.put_opic(1, '1 minute', '" + OPIC_RUN + "')",
        "put_prices": "select recrawl_internal.put_prices(1, '1 minute', '" + RUN + "'" + ", '{}'" * 7 + ")",
    }
    calls["put_capped_hosts"] = "select recrawl_internal.put_capped_hosts(1, '1 minute', '{}', '{}', '{}', '{}', '{}')"
    calls["oldest_due"] = "select * from recrawl_internal.oldest_due(clock_timestamp())"
    calls["one_for_each"] = "select recrawl_internal.one_for_each('{1}'::int[], 1)"
    calls["crawl_now"] = "select * from recrawl_internal.crawl_now(clock_timestamp())"
    assert len(calls) > 30
    # The worker, a reader too, can reach the schema, and so call by name what views call.
    its_own = names(
        actor.connection,
        """
        select proname from pg_proc, aclexplode(proacl)
        where pronamespace = 'recrawl_internal'::regnamespace
          and grantee in ('recrawl_worker'::regrole, 'recrawl_reader'::regrole)
        """,
    )
    assert {name for name, call in calls.items() if actor.may(call)} == (
        set(its_own) if kind(actor) == "worker" else set()
    )


def test_no_role_makes_or_changes_anything_in_the_schemas(actor: Actor) -> None:
    for statement in (
        "create table recrawl.mine ()",
        "create table recrawl_internal.mine ()",
        "create view recrawl.mine as select 1",
        "create function recrawl.mine() returns int language sql as 'select 1'",
        "create type recrawl.mine as enum ()",
        "alter type recrawl.page_to_fetch add attribute mine int",
        "create or replace function recrawl.pause() returns void language sql as ''",
        "alter function recrawl.next_ready_at() security invoker",
        "alter function recrawl.next_ready_at() reset search_path",
        "drop function recrawl.next_ready_at()",
        "drop view recrawl.queue_status",
        "drop schema recrawl cascade",
        "alter schema recrawl rename to mine",
        "create role mine",
        "grant recrawl_operator to recrawl_crawler",
    ):
        assert not actor.may(statement), f"{actor.role}: {statement}"


def test_granting_on_what_one_does_not_own_grants_nothing(actor: Actor) -> None:
    for thing in ("all functions in schema recrawl", "all tables in schema recrawl"):
        with actor.acting():
            try:
                actor.connection.execute(f"grant all on {thing} to public")
            except InsufficientPrivilege:
                continue
            open_to_all = actor.connection.execute(
                "select proname from pg_proc"
                " where pronamespace = 'recrawl'::regnamespace and has_function_privilege('public', oid, 'execute')"
            ).fetchall()
            assert open_to_all == []


def test_the_worker_does_the_upkeep(admin: psycopg.Connection[Any]) -> None:
    with Actor(admin, "recrawl_worker").acting():
        row = admin.execute("select recrawl_internal.tick(100, 1000)").fetchone()
    assert row and row[0] >= 0


def test_the_worker_runs_each_job(url: str) -> None:
    as_worker = f"{url}{'&' if '?' in url else '?'}options={quote('-c role=recrawl_worker')}"
    for name in JOBS:
        assert run_job(name, as_worker)


def test_no_recrawl_role_can_log_in_or_do_anything_special(admin: psycopg.Connection[Any]) -> None:
    special = admin.execute(
        """
        select rolname from pg_roles
        where rolname in ('recrawl_crawler', 'recrawl_reader', 'recrawl_operator', 'recrawl_worker')
          and (rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls)
        """
    ).fetchall()
    assert special == []


def test_reading_is_all_that_operator_and_worker_inherit(admin: psycopg.Connection[Any]) -> None:
    members = admin.execute(
        """
        select m.rolname, r.rolname
        from pg_auth_members join pg_roles m on m.oid = member join pg_roles r on r.oid = roleid
        where m.rolname = any (%(ours)s) and r.rolname = any (%(ours)s)
        """,
        {"ours": [f"recrawl_{role}" for role in ROLES]},
    ).fetchall()
    assert set(members) == {("recrawl_operator", "recrawl_reader"), ("recrawl_worker", "recrawl_reader")}


# -- a neighbour without rights, and a crawler with bad intentions --


def test_a_login_that_holds_advisory_locks_stops_nothing(crawl: Crawl, url: str) -> None:
    crawl.value("select setval('page_id', 10000)")  # a worker applies boosts to a crawl of this size
    crawl.add("http://a.test/")
    with psycopg.connect(url, autocommit=True) as neighbour:
        neighbour.execute(
            "select pg_advisory_lock('recrawl_internal'::regnamespace::int, n) from generate_series(0, 9) n"
        )
        neighbour.execute("select pg_advisory_lock(n) from generate_series(0, 9) n")
        crawl.connection.execute("set statement_timeout = '1 min'")
        crawl.value("select setval('next_tick', 1, false)")  # as after a crash
        assert crawl.next()
        crawl.value("select setval('next_tick', 1, false)")
        assert crawl.value("select start_job('rates', '1 minute')")
        crawl.value("select boost_at(%s, 'a', 3)", crawl.now)
        assert crawl.value("select follow_boosts(20000)")
        assert crawl.page("http://a.test/")["value"] == 3


TWINS = """
    select p.proname,
           pg_get_function_identity_arguments(p.oid),
           case when pg_get_function_result(p.oid) like 'TABLE%' then pg_get_function_result(p.oid)
                else case when p.proretset then 'setof ' else '' end || p.prorettype::regtype end as result,
           p.proargmodes && '{o,b,t}'::"char"[] as has_out
    from pg_proc p
    where p.pronamespace = 'recrawl_internal'::regnamespace
"""


TRAP = "language plpgsql as $$ begin raise exception 'trapped'; end $$"
# PostgreSQL's own, which a path that names pg_catalog late would not find first.
BENT_FUNCTIONS = {
    "length(text)": "int",
    "clock_timestamp()": "timestamptz",
    "cardinality(anyarray)": "int",
    "unnest(anyarray)": "setof anyelement",
}
BENT_OPERATORS = [
    ("=", "bigint", "bigint", "boolean"),
    ("=", "text", "text", "boolean"),
    ("<=", "timestamptz", "timestamptz", "boolean"),
    ("+", "timestamptz", "interval", "timestamptz"),
]


def lay_traps(connection: psycopg.Connection[Any], schema: str, functions: list[Any], tables: list[str]) -> None:
    """Puts a namesake of every internal function and table into a schema; the functions raise when they are called."""
    for name, arguments, result, has_out in functions:
        returns = "" if has_out and "TABLE" not in result else f"returns {result}"
        connection.execute(f"create function {schema}.{name}({arguments}) {returns} {TRAP}")
    for name in tables:
        connection.execute(f"create {'temporary' if schema == 'pg_temp' else ''} table {schema}.{name} (trapped int)")


@pytest.fixture
def trapper(new_database: Callable[..., str], template: str) -> Iterator[psycopg.Connection[Any]]:
    """A crawler who laid traps in its temporary schema and in one of its own, and put both first on its path."""
    with psycopg.connect(new_database(template), autocommit=True) as connection:
        functions = connection.execute(TWINS).fetchall()
        tables = names(connection, TABLES)
        connection.execute("create schema mine authorization recrawl_crawler")
        # It may even name the internal types: without that, half of the traps could not be laid.
        connection.execute("grant usage on schema recrawl_internal to recrawl_crawler")
        connection.execute("set role recrawl_crawler")
        lay_traps(connection, "mine", functions, tables)
        lay_traps(connection, "pg_temp", functions, tables)
        for signature, result in BENT_FUNCTIONS.items():
            connection.execute(f"create function mine.{signature} returns {result} {TRAP}")
        for operator, left, right, result in BENT_OPERATORS:
            connection.execute(f"create or replace function mine.bend(a {left}, b {right}) returns {result} {TRAP}")
            connection.execute(
                f"create operator mine.{operator} (leftarg = {left}, rightarg = {right}, function = mine.bend)"
            )
        connection.execute("reset role")
        connection.execute("revoke usage on schema recrawl_internal from recrawl_crawler")
        connection.execute("set role recrawl_crawler")
        connection.execute("set search_path = mine, pg_temp, recrawl, pg_catalog")
        yield connection


def test_the_traps_work(trapper: psycopg.Connection[Any]) -> None:
    for call in ("clock_timestamp()", "check_isolation('x')", "1::bigint = 1::bigint", "length('x'::text)"):
        with pytest.raises(psycopg.errors.RaiseException, match="trapped"):
            trapper.execute(f"select {call}")


def test_no_verb_steps_into_a_trap_on_the_callers_search_path(trapper: psycopg.Connection[Any]) -> None:
    def call(statement: str) -> list[Any]:
        return trapper.execute(statement).fetchall()

    added = call("select * from add_pages(array['http://a.test/', 'HTTP://B.test:80/%7e/../x?y#z', 'nonsense'])")
    assert [row[3] for row in added] == ["new", "new", "invalid"]
    pages = call("select * from next_pages(5)")
    assert {row[1] for row in pages} == {"http://a.test/", "HTTP://B.test:80/%7e/../x?y"}
    page, lease = pages[0][0], pages[0][6]
    assert call(f"select extend_lease({lease}, '1 minute')")[0][0] is not None
    result = {
        "page_id": page,
        "lease_id": lease,
        "status": 503,
        "fetched_at": "2020-01-01",
        "links": ["http://c.test/"],
        "crawl_delay": 3,
    }
    told = call(f"select * from report('{json.dumps([result, {}, {'url': 3}])}')")
    assert [row[2] for row in told] == ["ok", "invalid", "invalid"]
    told = call(f"select * from report_pages(array[{page}]::int8[], array[{lease}]::int8[], array[200])")
    assert [row[2] for row in told] == ["duplicate"]
    assert call(f"select release({lease})") == [(1,)]
    call("select next_ready_at()")


# -- and a superuser who looks on, on a path with somebody else's schema --

# An operator or function whose types fit better wins over PostgreSQL's own, wherever on the path it stands. So here is
# one of every name for every pair of types, and most fit better: PostgreSQL's own have few mixed pairs.
TYPES = [
    "boolean", "smallint", "int", "bigint", "real", "float8", "numeric", "text", "varchar", "timestamptz", "interval",
    "jsonb", "regclass", "bigint[]", "text[]",
]  # fmt: skip
COMPARISONS = ["=", "<>", "<", "<=", ">", ">=", "~", "!~", "~~"]
OPERATORS = ["+", "-", "*", "/", "%", "^", "&", "<<", ">>", "||", "->>", "#"]
# PostgreSQL's polymorphic functions are found after others that fit exactly.
OF_ONE = [
    "ln", "exp", "sqrt", "cbrt", "floor", "ceil", "abs", "length", "cardinality", "to_jsonb", "sum", "max", "min",
    "unnest", "pg_relation_size", "pg_sequence_last_value", "encode", "array_agg",
]  # fmt: skip
OF_TWO = ["mod", "date_part", "split_part", "substr", "strpos", "round", "power", "generate_series"]


def bend_everything(connection: psycopg.Connection[Any]) -> None:
    """Lays a trap for every operator and function that the crawl's views and helpers use, in the schema mine."""
    trap = "language plpgsql immutable as $$ begin raise exception 'trapped'; end $$"
    traps = []
    for one in TYPES:
        traps += [f"create function mine.{name}(a {one}) returns {one} {trap}" for name in ["bend", *OF_ONE]]
        traps += [f"create operator mine.- (rightarg = {one}, function = mine.bend)"]
    for left, right in product(TYPES, TYPES):
        pair, result = f"leftarg = {left}, rightarg = {right}", max(left, right, key=TYPES.index)
        traps += [f"create function mine.compare(a {left}, b {right}) returns boolean {trap}"]
        traps += [f"create operator mine.{name} ({pair}, function = mine.compare)" for name in COMPARISONS]
        traps += [
            f"create function mine.{name}(a {left}, b {right}) returns {result} {trap}" for name in ["bend", *OF_TWO]
        ]
        traps += [f"create operator mine.{name} ({pair}, function = mine.bend)" for name in OPERATORS]
    connection.execute("create schema mine authorization recrawl_crawler")
    connection.execute("set role recrawl_crawler")
    connection.execute(";".join(traps).encode())
    connection.execute("reset role")


PATHS = ["mine, public", "public, mine", "mine, pg_catalog"]
paths = pytest.mark.parametrize("path", PATHS)
ALL_VIEWS = "select schemaname || '.' || viewname from pg_views where schemaname in ('recrawl', 'recrawl_internal')"
INLINED = """
    select format('select * from recrawl_internal.%I(%s)', proname,
                  (select string_agg(case when typcategory = 'N' then '1' when typname = 'interval' then '''1 s'''
                                          when typname = 'timestamptz' then '''2030-01-01''' else 'null' end
                                     || '::' || t.oid::regtype, ', ' order by place)
                   from unnest(proargtypes) with ordinality as a (oid, place) join pg_type t using (oid)))
    from pg_proc where pronamespace = 'recrawl_internal'::regnamespace and proconfig is null
"""
BOUND_TO_A_TRAP = """
    select distinct pg_describe_object(d.classid, d.objid, d.objsubid)
    from pg_depend d
    where d.classid <> 'pg_operator'::regclass and (d.refclassid, d.refobjid) in (
        select 'pg_proc'::regclass, oid from pg_proc where pronamespace = 'mine'::regnamespace
        union all
        select 'pg_operator'::regclass, oid from pg_operator where oprnamespace = 'mine'::regnamespace)
"""


@pytest.fixture(scope="module")
def trapped(new_database: Callable[..., str], template: str) -> str:
    """The URL of a crawl in which every view has rows, and everything is bent."""
    url = new_database(template)
    with psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal") as connection:
        crawl = Crawl(connection)
        connection.execute("select set_setting('budget', '1000'), boost('a', 2)")
        crawl.add(*(f"http://{host}.test/" for host in "abcdef"))
        for changed in (None, True):
            crawl.report_ok(crawl.next(5), links=["http://a.test/", "http://b.test/"], changed=changed)
            crawl.wait(2 * DAY)
        crawl.next(1)
    with psycopg.connect(url, autocommit=True) as connection:
        run = json.dumps(json.loads(RUN) | {"for_new": 1, "newest_page": 0})
        connection.execute("select recrawl_internal.start_job('allocate', '1 hour')")
        connection.execute(f"select recrawl_internal.put_prices(1, '1 h', '{run}', '{{0}}', '{{0.1}}' {', null' * 5})")
        connection.execute("update recrawl_internal.allocation set started_at = '2020-01-01'")
        connection.execute(
            "update recrawl_internal.host_terms set price = 0.1, min_frequency = 0.01, objective = 'freshness'"
        )
        connection.execute(f"select recrawl_internal.put_opic(1, '1 hour', '{OPIC_RUN}')")
        connection.execute(
            "select recrawl_internal.put_capped_hosts(1, '1 hour', array[h.host_id], '{1}', '{1}', '{1}', '{1}'),"
            "       recrawl_internal.take_vitals(), h.* from recrawl_internal.host h limit 1"
        )
        connection.execute(
            "insert into recrawl_internal.late_host select host_id, 1, clock_timestamp(), clock_timestamp()"
            " from recrawl_internal.host on conflict do nothing"
        )
        connection.execute(
            "insert into recrawl_internal.page_score select page_id, 1, 1, 1, 1 from recrawl_internal.page"
        )
        bend_everything(connection)
    return url


@pytest.fixture(scope="module")
def onlooker(trapped: str) -> Iterator[psycopg.Connection[Any]]:
    """A superuser."""
    with psycopg.connect(trapped, autocommit=True) as connection:
        yield connection


@contextmanager
def on_path(connection: psycopg.Connection[Any], path: str) -> Iterator[None]:
    connection.execute(f"set search_path = {path}".encode())
    try:
        yield
    finally:
        connection.execute("reset search_path")


@paths
def test_what_is_bent_traps_whoever_names_it_bare(onlooker: psycopg.Connection[Any], path: str) -> None:
    with on_path(onlooker, path):
        for call in ("1::real * 1::int", "'x'::text = 'x'::varchar", "ln(1::real)", "'1 s'::interval * 2::real"):
            with pytest.raises(psycopg.errors.RaiseException, match="trapped"):
                onlooker.execute(f"select {call}")


@paths
def test_no_view_steps_into_a_trap_on_the_readers_search_path(onlooker: psycopg.Connection[Any], path: str) -> None:
    views = names(onlooker, ALL_VIEWS)
    assert len(views) > 15
    with on_path(onlooker, path):
        assert [view for view in views if not onlooker.execute(f"table {view}").fetchall()] == []


@paths
def test_no_inlined_function_steps_into_a_trap_on_the_callers_search_path(
    onlooker: psycopg.Connection[Any], path: str
) -> None:
    calls = names(onlooker, INLINED)
    assert len(calls) > 40
    with on_path(onlooker, path):
        for call in calls:
            onlooker.execute(call)


def test_neither_worker_nor_command_line_steps_into_a_trap(trapped: str) -> None:
    url = f"{trapped}{'&' if '?' in trapped else '?'}options={quote('-c search_path=mine,public')}"
    with store.connect(url) as connection:
        added = store.calls.add_pages(connection, [store.calls.PageToAdd(url) for url in ("http://z.test/", "?")])
        assert added.counts["invalid"] == 1
        assert reads.host_names(connection, [1, 2]) == ["a.test", "b.test"]
        store.schedule.due_jobs(connection)
        store.calls.tick(connection)
        store.calls.next_pages(connection, 1, 0 * MINUTE, MINUTE, None)
    for read in (reads.pages_to_allocate, reads.hosts_to_allocate, reads.evidence):
        read(url)
    reads.graph(url)


@paths
def test_whoever_looks_at_the_crawl_steps_into_no_trap(trapped: str, path: str) -> None:
    """A login that may do anything asks most of what is shown: what others made must not run with its rights."""
    option = quote("-c search_path=" + path.replace(" ", ""))
    url = f"{trapped}{'&' if '?' in trapped else '?'}options={option}"
    with store.connect(url) as connection:
        assert facts.read(connection, False).figures.database == "same"
        assert history.read(connection).events
        assert "allocate" in {each.job for each in store.views.schedule(connection, figures.Schedule)}


def test_nothing_is_bound_to_a_trap_on_the_migrators_search_path(new_database: Callable[..., str]) -> None:
    url = new_database()
    with psycopg.connect(url, autocommit=True) as connection:
        bend_everything(connection)
        connection.execute(f"alter database {connection.info.dbname} set search_path = mine, pg_catalog")
    migrate.upgrade(url)
    with psycopg.connect(url, autocommit=True, options="-c search_path=pg_catalog") as connection:
        assert names(connection, BOUND_TO_A_TRAP) == []
