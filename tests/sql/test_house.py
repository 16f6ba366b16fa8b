"""How sql/ is written, so that it can be read: widths, lengths, and what each function says of itself."""

import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from helpers import Row
from recrawl.client import fingerprint
from recrawl.model import limits
from recrawl.setup import project

WIDEST = 120  # columns, as in Python
LONGEST = 110  # lines: what can be read in one sitting

FILES = [*project.sql_files(), *(project.root() / "migrations" / "versions").glob("*.sql")]
files = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(project.root())))

FUNCTIONS = """
    select p.proname as name, p.prosrc as body, p.prosqlbody is not null as is_inlined,
           p.prosrc ~ '^\\s*-- plans: ' as declares,
           substring(p.prosrc from '^\\s*-- plans: (\\w+)') as plans,
           coalesce(substring(p.prosrc from '^\\s*-- plans: [^\\n]*writes ([a-z_, ]+)'), '') as writes,
           p.prosrc ~ '^\\s*-- plans: [^\\n]*locks ' as says_locks,
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
        "jit=off",
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
    """What stands in the files between a function's head and its end."""
    text = "\n".join(path.read_text() for path in project.sql_files())
    body = r"^create or replace function \w+\.(\w+)\((?:.*\n)*?(?:as \$\$|begin atomic)((?:.*\n)*?.*)(?:\$\$|end);$"
    return dict(re.findall(body, text, re.MULTILINE))


# -- to be read --


@files
def test_no_line_is_wider_than_a_screen(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > WIDEST] == []


def test_every_function_can_be_read_in_one_sitting(functions: list[Row], sources: dict[str, str]) -> None:
    assert set(sources) == {function["name"] for function in functions}
    lines = {name: body.strip().count("\n") + 1 for name, body in sources.items()}
    assert {name: count for name, count in lines.items() if count > LONGEST} == {}


# -- plans --


def test_every_function_is_planned_as_its_kind_says(functions: list[Row]) -> None:
    assert {f["name"]: f["config"] for f in functions if set(f["config"]) != KINDS[f["plans"]]} == {}


def test_every_function_that_reads_tables_declares_its_kind(functions: list[Row], tables: set[str]) -> None:
    for function in functions:
        named = set(re.findall(r"\b(?:from|join|into|update)\s+(?:recrawl_internal\.)?(\w+)\b(?!\()", code(function)))
        # Those that are not pinned are taken into the plan of whoever calls them.
        if named & (tables - {"setting"}) and not function["is_inlined"]:
            assert function["declares"], function["name"]


# -- what they do --


def test_every_function_that_writes_says_what(functions: list[Row], tables: set[str]) -> None:
    writing = r"\b(?:insert into|update|delete from|truncate)\s+(?:recrawl_internal\.)?(\w+)"
    for function in functions:
        written = set(re.findall(writing, code(function))) & tables
        if function["declares"]:
            assert set(function["writes"].replace(" ", "").split(",")) - {""} == written, function["name"]
        else:
            assert written <= {"setting"}, function["name"]


def test_every_function_that_locks_says_in_which_order(functions: list[Row]) -> None:
    for function in functions:
        if re.search(r"\bfor (no key )?update\b|\block table\b", code(function)):
            assert function["says_locks"], function["name"]


# -- numbers that Python knows too --


def test_sql_and_python_agree_on_their_numbers(sources: dict[str, str], catalogue: psycopg.Connection[Any]) -> None:
    def said(name: str, pattern: str) -> tuple[float, ...]:
        (found,) = {match.groups() for match in re.finditer(pattern, sources[name])}
        return tuple(map(float, found))

    assert said("page_frequency", r", ([\d.e-]+)\), ([\d.e-]+)\)::real") == (
        limits.MOST_FREQUENCY, limits.LEAST_FREQUENCY,
    )  # fmt: skip
    assert said("frequency_in_force", r"price \* \(1 [-+] (\S+)\)") == (limits.EQUAL,)
    assert said("has_moved", r"> (\S+) \*") == (limits.MOVED,)
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
