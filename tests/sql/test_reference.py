"""docs/reference.md is made from what the database says of itself. It is also the golden text of the public face: what
crawlers and reports depend on changes only together with it.
"""

import os
import re
from pathlib import Path
from typing import Any

import psycopg

from helpers import Row

DOCS = Path(__file__).parents[2] / "docs"
REFERENCE, OPERATE = DOCS / "reference.md", DOCS / "operate.md"

HEAD = """# Reference

All functions, views, row types and settings of recrawl. This page is generated from the comments in the database. In
psql, `\\df+ recrawl.*` and `\\d+ recrawl.page_status` show the same comments. [The glossary](glossary.md) explains the
words.

* An invalid argument raises an error, and the call changes nothing. A function that takes many URLs or pages returns
  the `code` `invalid` for each wrong one instead, and changes the others.
* Most functions that change the crawl raise an error in a transaction that is not READ COMMITTED, the default isolation
  level of PostgreSQL.
* "For" names the roles that may use a function or view. [Operate](operate.md#give-each-login-its-role) describes them.
"""

FUNCTIONS = """
    select proname as name,
           pg_get_function_arguments(p.oid) as arguments,
           replace(pg_get_function_result(p.oid), 'recrawl.', '') as result,
           obj_description(p.oid, 'pg_proc') as comment,
           array(select replace(grantee::regrole::text, 'recrawl_', '')
                 from aclexplode(proacl) where grantee <> proowner order by 1) as roles
    from pg_proc p
    where pronamespace = 'recrawl'::regnamespace and prokind = 'f'
    order by proname, pg_get_function_identity_arguments(oid)
"""
RELATIONS = """
    select c.relname as name, c.relkind::text as kind,
           coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type')) as comment,
           array(select replace(grantee::regrole::text, 'recrawl_', '')
                 from aclexplode(relacl) where grantee <> relowner order by 1) as roles,
           array(select array[a.attname::text, format_type(a.atttypid, a.atttypmod),
                              coalesce(col_description(c.oid, a.attnum), '')]
                 from pg_attribute a
                 where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns
    from pg_class c
    where c.relnamespace = 'recrawl'::regnamespace
    order by c.relname
"""
SHORT = {
    "timestamp with time zone": "timestamptz",
    "double precision": "float8",
    "character varying": "varchar",
    "integer": "int",
}


WIDE = 72  # characters: more would have to be scrolled in a page's column


def short(text: str) -> str:
    for long, kept in SHORT.items():
        text = text.replace(long, kept)
    return re.sub(r"::[a-z0-9 ]+(\[\])?", "", text).replace(" DEFAULT ", " = ")


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line).rstrip() + " |" for line in lines)


def function(f: Row) -> str:
    arguments, result = short(f["arguments"]), short(f["result"])
    call = f"{f['name']}({arguments}) → {result}"
    if len(call) > WIDE:
        one_a_line = arguments.replace(", ", ",\n    ")
        call = f"{f['name']}(\n    {one_a_line}\n) → {result}"
    return f"### {f['name']}\n\n```text\n{call}\n```\n\n{f['comment']}\n\nFor: {', '.join(f['roles'])}."


def view(v: Row) -> str:
    columns = [[f"`{name}`", short(kind), meaning] for name, kind, meaning in v["columns"]]
    text = f"### {v['name']}\n\n{v['comment']}\n\n{table(['column', 'type', 'meaning'], columns)}"
    return text + f"\n\nFor: {', '.join(v['roles'])}."


def row_type(t: Row) -> str:
    columns = ", ".join(f"`{name}` {short(kind)}" for name, kind, _ in t["columns"])
    return f"### {t['name']}\n\n{t['comment']}\n\n{columns}."


def reference(connection: psycopg.Connection[Row]) -> str:
    functions = connection.execute(FUNCTIONS).fetchall()
    relations = connection.execute(RELATIONS).fetchall()
    settings = connection.execute("select name, value, unit, meaning from recrawl.settings").fetchall()
    cells = connection.execute(
        "select name, meaning from recrawl.internal_state where name !~ '^new_horizon_[1-9]'"
    ).fetchall()
    crawlers = [f for f in functions if "crawler" in f["roles"]]
    operators = [f for f in functions if f not in crawlers and "operator" in f["roles"]]
    others = [f for f in functions if f not in crawlers and f not in operators]
    return (
        "\n\n".join(
            [
                HEAD.rstrip(),
                "## What crawlers call",
                *map(function, crawlers),
                "## What operators call",
                *map(function, operators),
                "## What readers call",
                *map(function, others),
                "## Views",
                *(view(r) for r in relations if r["kind"] == "v"),
                "## Row types",
                *(row_type(r) for r in relations if r["kind"] == "c"),
                "## Settings",
                table(
                    ["setting", "at first", "unit", "meaning"],
                    [[f"`{s['name']}`", s["value"] or "none", s["unit"], s["meaning"]] for s in settings],
                ),
                "## Numbers in sequences",
                "You need these numbers only to find an error in recrawl. The view internal_state shows them. "
                "`new_horizon_0` stands for 33 sequences, one for each class of new pages. Upkeep is the work on the "
                "queue that a worker does continuously, for example to take back pages of ended leases. A horizon is "
                "the time at which the scan of an index begins: below it all rows are dead.",
                table(["sequence", "meaning"], [[f"`{c['name']}`", c["meaning"]] for c in cells]),
            ]
        )
        + "\n"
    )


def test_the_reference_is_what_the_database_says(catalogue: psycopg.Connection[Any]) -> None:
    said = reference(catalogue)
    if os.environ.get("UPDATE_GOLDEN"):
        REFERENCE.write_text(said)
    assert said.splitlines() == REFERENCE.read_text().splitlines(), (
        "the public face changed: if that is meant and compatible, say `make golden` and give the change a line in "
        "CHANGELOG.md"
    )


def test_the_documents_name_all_that_crawlers_may_call(catalogue: psycopg.Connection[Any]) -> None:
    (row,) = re.findall(r"^\| `recrawl_crawler` \|(.*)\|.*\|$", OPERATE.read_text(), re.MULTILINE)
    may_call = {f["name"] for f in catalogue.execute(FUNCTIONS) if "crawler" in f["roles"]}
    assert set(re.findall(r"`(\w+)`", row)) == may_call
