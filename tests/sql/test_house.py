"""How sql/ is written, so that it can be read: widths, lengths, and what each function says of itself."""

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from helpers import Row
from recrawl.client import fingerprint
from recrawl.lab import replay, visits
from recrawl.lab.methods import beliefs
from recrawl.model import limits
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.setup import project
from recrawl.urlfrontier import items

WIDEST = 120  # columns, as in Python
LONGEST = 80  # lines: what can be read in one sitting

FILES = [*project.sql_files(), *(project.root() / "migrations" / "versions").rglob("*.sql")]
files = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(project.root())))

FUNCTIONS = """
    select p.proname as name, p.prosrc as body, p.prosqlbody is not null as is_inlined,
           p.prosrc ~ '^\\s*-- plans: ' as declares,
           substring(p.prosrc from '^\\s*-- plans: (\\w+)') as plans,
           coalesce(substring(p.prosrc from '^\\s*-- plans: [^\\n]*writes ([a-z_, ]+)'), '') as writes,
           coalesce(substring(p.prosrc from '^\\s*-- plans: [^\\n]*locks ([^\\n]+)'), '') as locks,
           array(select c from unnest(p.proconfig) c
                 where c !~ '^(search_path|lock_timeout|TimeZone|DateStyle)=' order by c) as config
    from pg_proc p join pg_language l on l.oid = p.prolang
    where p.pronamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace)
    order by p.proname
"""
KINDS = {
    "lookups": {
        "plan_cache_mode=force_generic_plan", "enable_seqscan=off", "enable_bitmapscan=off", "enable_mergejoin=off",
        "enable_hashjoin=off", "jit=off",
    },
    "hashes": {
        "plan_cache_mode=force_generic_plan", "enable_seqscan=off", "enable_bitmapscan=off", "enable_mergejoin=off",
        "enable_memoize=off", "jit=off",
    },
    "whole": {"jit=off"},
    "inherited": set(),
    None: set(),
}  # fmt: skip


@pytest.fixture
def functions(catalogue: psycopg.Connection[Any]) -> list[Row]:
    return catalogue.execute(FUNCTIONS).fetchall()


@pytest.fixture
def tables(catalogue: psycopg.Connection[Any]) -> set[str]:
    query = (
        "select relname from pg_class where relnamespace = 'recrawl_internal'::regnamespace and relkind in ('r', 'p')"
    )
    return {row["relname"] for row in catalogue.execute(query)}


def code(function: Row) -> str:
    return re.sub(r"--[^\n]*", "", function["body"])


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    """The text in the files between the head of a function and its end."""
    text = "\n".join(path.read_text() for path in project.sql_files())
    head = r"^create or replace function (?:\w+\.)?(\w+)\((?:(?!return |begin atomic).*(?<!as \$\$)\n)*?"
    long = r"(?:.*as \$\$|begin atomic)\n((?:.*\n)*?)(?:end )?(?:\$\$|end);$"
    short = r"return ((?:.*\n)*?.*?);$"
    return {name: body for form in (long, short) for name, body in re.findall(head + form, text, re.MULTILINE)}


# -- to be read --


@files
def test_no_name_is_longer_than_postgresql_keeps(path: Path) -> None:
    """The names of constraints are error messages."""
    assert [name for name in re.findall(r'"([^"\n]+)"', path.read_text()) if len(name.encode()) > 63] == []


@files
def test_no_line_is_wider_than_a_screen(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > WIDEST] == []


@files
def test_every_internal_function_has_a_comment_above_it(path: Path) -> None:
    """Except NAME_at, which is the public function NAME of the same file at a given time."""
    bare = re.findall(r"^(?!--).*\ncreate or replace function (?!recrawl\.)(\w+)", path.read_text(), re.MULTILINE)
    public = re.findall(r"^create or replace function recrawl\.(\w+)", path.read_text(), re.MULTILINE)
    assert [name for name in bare if name.removesuffix("_at") not in public] == []


def test_every_function_can_be_read_in_one_sitting(functions: list[Row], sources: dict[str, str]) -> None:
    assert set(sources) == {function["name"] for function in functions}
    lines = {name: body.strip().count("\n") + 1 for name, body in sources.items()}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


def test_each_file_uses_only_functions_and_views_of_files_above_it() -> None:
    """In the order of install.sql. So there is no circle, and nobody who reads in this order meets an unknown name."""
    below: set[str] = set()
    too_early = []
    for path in reversed(project.sql_files()):
        text = re.sub(r"--[^\n]*|'[^']*'", "", path.read_text())
        made = re.findall(r"^create or replace (?:function|view) ([\w.]+)", text, re.MULTILINE)
        used = {name for names in re.findall(r"\b(recrawl\.\w+)|(?<![\w.])(\w+)\s*\(|\b(?:from|join) (\w+)", text)
                for name in names}  # fmt: skip
        too_early += [f"{path.name}: {name}" for name in sorted(used & below - {*made})]
        below |= {*made}
    assert too_early == []


# -- plans --


def test_every_function_is_planned_as_its_kind_says(functions: list[Row]) -> None:
    assert {f["name"]: f["config"] for f in functions if set(f["config"]) != KINDS[f["plans"]]} == {}


def test_every_function_that_reads_tables_declares_its_kind(functions: list[Row], tables: set[str]) -> None:
    for function in functions:
        named = set(re.findall(r"\b(?:from|join|into|update)\s+(?:recrawl_internal\.)?(\w+)\b(?!\()", code(function)))
        # Functions without settings become part of the plan of their caller.
        if named & (tables - {"setting"}) and not function["is_inlined"]:
            assert function["declares"], function["name"]


CALLS_OF_ITS_OWN = {  # the cost of a call does not matter here
    "amount", "are_few_hosts", "grouped", "has_prices", "in_words", "run_is_dead", "short_number",
}  # fmt: skip


def test_functions_that_can_be_part_of_a_plan_are(connection: psycopg.Connection) -> None:
    """PostgreSQL calls a function for each row, and parses its body in each statement, if the body is more volatile
    than the function says: for example an immutable function with extract()."""
    called = set()
    for name, returns_rows, types in connection.execute(
        """
        select p.oid::regproc::text, p.proretset, array(select format_type(t, null) from unnest(p.proargtypes) t)
        from pg_proc p join pg_language l on l.oid = p.prolang
        where p.pronamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace)
          and l.lanname = 'sql' and p.prosqlbody is not null and p.prokind = 'f'
        """
    ).fetchall():
        columns = ", ".join(f"null::{type} as a{nth}" for nth, type in enumerate(types)) or "1"
        call = f"{name}({', '.join(f'x.a{nth}' for nth in range(len(types)))})"
        what = f"f.* from (select {columns} offset 0) x cross join lateral {call} f"
        query = f"select {what if returns_rows else f'{call} from (select {columns} offset 0) x'}"
        plan = "\n".join(line for (line,) in connection.execute(f"explain (verbose) {query}".encode()).fetchall())
        if re.search(rf"\b{name.rpartition('.')[2]}\(", plan):
            called.add(name.rpartition(".")[2])
    assert called == CALLS_OF_ITS_OWN


# -- what they do --


def test_every_function_that_writes_says_what(functions: list[Row], tables: set[str]) -> None:
    writing = r"\b(?:insert into|merge into|update|delete from|truncate)\s+(?:recrawl_internal\.)?(\w+)"
    for function in functions:
        written = set(re.findall(writing, code(function))) & tables
        if function["declares"]:
            assert set(function["writes"].replace(" ", "").split(",")) - {""} == written, function["name"]
        else:
            assert written <= {"setting"}, function["name"]


def test_no_function_notifies(functions: list[Row]) -> None:
    """Any login of the server can fill the queue of NOTIFY, and then every transaction that notifies fails."""
    assert [function["name"] for function in functions if re.search(r"\bnotify\b|pg_notify", code(function))] == []


@pytest.fixture(scope="module")
def in_order() -> list[str]:
    """The things that are locked, in the one order of CONTRIBUTING.md."""
    text = (project.root() / "CONTRIBUTING.md").read_text()
    (listed,) = re.findall(r"in this order and no other:\n\n((?:    .*\n)+)", text)
    return [word.strip() for word in listed.split(",")]


def test_every_function_that_locks_says_what_in_the_one_order(
    functions: list[Row], tables: set[str], in_order: list[str]
) -> None:
    assert set(in_order) - {"new keys"} <= tables
    locking = (
        r"\b(?:update|merge into|delete from|truncate|lock table)\s+(?:recrawl_internal\.)?(\w+)",
        r"\binsert into (\w+)\b(?:(?!insert into)[^;])*? do update\b",
    )
    for function in functions:
        if not function["declares"]:
            continue
        locked = {table for pattern in locking for table in re.findall(pattern, code(function))} & tables
        if re.search(r"\bfor (no key )?update\b", code(function)) or locked:
            assert function["locks"], function["name"]
        if not function["locks"] or function["locks"].startswith("nothing"):
            continue
        said = [re.sub(r"( by id)?( \([^)]*\))?$", "", word) for word in function["locks"].split(", ")]
        assert locked <= set(said), function["name"]
        assert said == [word for word in in_order if word in said], function["name"]


@files
def test_every_step_of_a_query_says_what_is_new(path: Path) -> None:
    lines = path.read_text().splitlines()
    step = re.compile(r"\s*(with )?(recursive )?\w+( \([\w, ]+\))? as (not )?(materialized )?\($")
    for before, line in pairwise(lines):
        if step.match(line):
            assert re.match(r"\s*-- (?!plans: )", before), line.strip()


def built(text: str) -> Iterator[tuple[str, list[str]]]:
    """Rows that are put together by place, as «(a, b)::of_type»: their types, and what stands at each place."""
    text = re.sub(r"--[^\n]*|'[^']*'", "", text)
    for end in re.finditer(r"\)\s*::(?:recrawl(?:_internal)?\.)?(\w+)", text):
        depth, places = 1, [""]
        for letter in reversed(text[: end.start()]):
            depth += (letter in ")]") - (letter in "([")
            if not depth:
                break
            if letter == "," and depth == 1:
                places.insert(0, "")
            else:
                places[0] = letter + places[0]
        yield end[1], [place.strip() for place in places]


def test_what_is_put_together_by_place_has_its_type_s_columns_in_their_places(
    sources: dict[str, str], catalogue: psycopg.Connection[Any]
) -> None:
    types = {
        row["name"]: row["columns"]
        for row in catalogue.execute(
            """
            select c.relname as name,
                   array_agg(a.attname::text order by a.attnum) filter (where not a.attisdropped) as columns
            from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
            where c.relnamespace in ('recrawl'::regnamespace, 'recrawl_internal'::regnamespace)
              and c.relkind in ('c', 'r')
            group by c.relname
            """
        )
    }
    seen = set()
    for name, text in sources.items():
        for of_type, places in built(text):
            if of_type in types and len(places) > 1:
                seen.add(of_type)
                assert len(places) == len(types[of_type]), (name, of_type)
                for place, column in zip(places, types[of_type], strict=True):
                    plain = re.fullmatch(r"(?:\w+\.)?(\w+)", place)
                    assert not plain or plain[1] not in types[of_type] or plain[1] == column, (name, of_type, column)
    assert {"result", "result_extras", "parsed_url", "page_after"} <= seen


# -- numbers that stand in several places --

Said = Callable[[str, str], tuple[float, ...]]


@pytest.fixture(scope="module")
def said(sources: dict[str, str]) -> Said:
    """The numbers that a pattern finds in a function, the same wherever it does."""

    def found(name: str, pattern: str) -> tuple[float, ...]:
        (numbers,) = {match.groups() for match in re.finditer(pattern, sources[name])}
        return tuple(map(float, numbers))

    return found


def test_sql_and_python_agree_on_their_numbers(said: Said, catalogue: psycopg.Connection[Any]) -> None:
    assert said("clamped_frequency", r", ([\d.e-]+)\), ([\d.e-]+)\)::real") == (
        limits.MOST_FREQUENCY, limits.LEAST_FREQUENCY,
    )  # fmt: skip
    assert said("frequency_in_force", r"price \* \(1 [-+] (\S+)\)") == (limits.EQUAL,)
    assert said("has_moved", r"> (\S+) \*") == (limits.MOVED,)
    assert said("comparison", r"interval '(\d+) seconds'") == (round(beliefs.ANSWERED_NOW * 86400),)
    assert said("learnt", r"least\(1 / ([\d.]+), days / (\d+)\)") == (
        visits.MEMORY_VISITS, visits.MEMORY_DAYS,
    )  # fmt: skip
    (row,) = catalogue.execute(
        """
        select recrawl_internal.unknown_relevance() as relevance, recrawl_internal.sketch_values() as sketch,
               prior_changes, prior_days
        from recrawl_internal.host_terms where host_id = 0
        """
    ).fetchall()
    assert row["sketch"] == fingerprint.VALUES
    assert row["relevance"] == limits.UNKNOWN_RELEVANCE
    assert (row["prior_changes"], row["prior_days"]) == (limits.FIRST_CHANGES, limits.FIRST_DAYS)


def test_the_most_that_may_be_looked_ahead_is_what_a_lease_keeps_its_pages_longer(
    catalogue: psycopg.Connection[Any],
) -> None:
    (row,) = catalogue.execute(
        """
        select pg_get_constraintdef(oid) as rule, recrawl_internal.longest_ahead()::text as longest
        from pg_constraint where conname = 'max_ahead must lie between 0 and 10 minutes'
        """
    ).fetchall()
    assert f"'{row['longest']}'" in row["rule"]


def test_sql_and_python_agree_on_what_objectives_are_like(sources: dict[str, str]) -> None:
    def named(name: str, pattern: str) -> set[str]:
        (listed,) = re.findall(pattern, sources[name])
        return set(re.findall(r"'(\w+)'", listed))

    assert named("frequency_in_force", r"weight <= price and objective in \((.*?)\)") == {
        objective.name for objective in OBJECTIVES.values() if objective.share_at(2.0, 1.0) == 0
    }
    assert named("take_samples", r"where a.objective in \((.*?)\)") == {
        objective.name for objective in OBJECTIVES.values() if objective.is_share
    }


def test_the_laboratory_begins_with_the_settings_that_a_crawl_has_at_first(
    catalogue: psycopg.Connection[Any],
) -> None:
    (row,) = catalogue.execute(
        """
        select objective, discovery, exploration::text::float8,
               date_part('epoch', longest_interval) / 86400 as longest,
               date_part('epoch', shortest_interval) / 86400 as shortest
        from recrawl_internal.setting
        """
    ).fetchall()
    assert (row["objective"], row["discovery"]) == (replay.OBJECTIVE, replay.DISCOVERY)
    first = Limits(exploration=row["exploration"], longest_interval=row["longest"], shortest_interval=row["shortest"])
    assert first == replay.PRODUCTION


def test_no_door_takes_a_time_that_is_refused_further_in(catalogue: psycopg.Connection[Any]) -> None:
    query = "select recrawl_internal.within_reach(to_timestamp(%s)) as is_known"
    assert catalogue.execute(query, [items.LATEST]).fetchall() == [{"is_known": True}]
    assert catalogue.execute(query, [items.LATEST + 2 * 86400]).fetchall() == [{"is_known": False}]


def test_what_keeps_a_page_away_is_as_long_as_is_said_elsewhere(sources: dict[str, str], said: Said) -> None:
    (denied,) = said("wait_after", r"'denied' then interval '(\d+) hours'")
    (missing,) = said("wait_after", r"'missing' then\s+\S+\('24 hours', '(\d+) hours'")
    (failed,) = said("wait_after", r"'(\d+) hours', attempts - 1\)")
    assert said("explain_wait", r"grow to '\s*'(\d+) days") == (missing / 24,)
    assert said("explain_wait", r"that '\s*'grow to (\d+) days") == (failed / 24,)
    assert (denied / 24, "once a week" in sources["explain_wait"]) == (7, True)
    # A clock that was ahead is told from a page that waits by its longest wait, with the jitter.
    longest, other = said("is_of_wrong_clock", r"attempts > 0 then interval '(\d+) days' else interval '(\d+) days'")
    assert longest >= 1.1 * max(missing, failed) / 24
    assert other > denied / 24


def test_there_is_a_line_for_every_class_of_new_pages(catalogue: psycopg.Connection[Any]) -> None:
    (row,) = catalogue.execute(
        """
        select recrawl_internal.last_class() as last, array_agg(substring(relname from '\\d+')::int order by 1) as lines
        from pg_class where relnamespace = 'recrawl_internal'::regnamespace and relname ~ '^new_horizon_\\d+$'
        """
    ).fetchall()
    assert sorted(row["lines"]) == list(range(row["last"] + 1))
