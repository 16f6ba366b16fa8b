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
REFERENCE = DOCS / "reference.md"

HEAD = """# Reference

This document lists all functions, views, row types and settings of recrawl. [The glossary](glossary.md) explains the
words.
The texts are comments in the database: in psql, `\\df+ recrawl.*` and `\\d+ recrawl.page_status` show them too.

* If an argument is invalid, the call raises an error and changes nothing. Functions that take many URLs or pages are an
  exception. They return the `code` `invalid` for each wrong one, and change the others.
* Functions that change the crawl need the isolation level READ COMMITTED, which is the default of PostgreSQL. At
  another level most of them raise an error.
* The line «For» names the [roles](roles.md) that may use a function or view.
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


def sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line).rstrip() + " |" for line in lines)


def comment(text: str) -> str:
    """Names of arguments, before the colons of a list, are code."""
    names = re.compile(r"^\* ([a-z_]+(?:(?:, | or )[a-z_]+)*):", re.MULTILINE)
    return names.sub(lambda found: "* " + re.sub(r"\b(?!or\b)[a-z_]+", r"`\g<0>`", found[1]) + ":", text)


def function(f: Row) -> str:
    arguments, result = short(f["arguments"]), short(f["result"])
    call = f"{f['name']}({arguments}) → {result}"
    if len(call) > WIDE:
        one_a_line = arguments.replace(", ", ",\n    ")
        call = f"{f['name']}(\n    {one_a_line}\n) → {result}"
    return f"### {f['name']}\n\n```text\n{call}\n```\n\n{comment(f['comment'])}\n\nFor: {', '.join(f['roles'])}."


def view(v: Row, others: list[Row]) -> str:
    """A view with the columns of an earlier one refers to it."""
    columns = [[f"`{name}`", short(kind), meaning] for name, kind, meaning in v["columns"]]
    listed = table(["column", "type", "meaning"], columns)
    for like in others:
        if like["name"] < v["name"] and [c[0] for c in like["columns"]] == [c[0] for c in v["columns"]]:
            listed = f"It has the columns of [{like['name']}](#{like['name']}). `at` is the beginning of the hour."
    return f"### {v['name']}\n\n{v['comment']}\n\n{listed}\n\nFor: {', '.join(v['roles'])}."


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
    views = [r for r in relations if r["kind"] == "v"]
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
                *(view(r, views) for r in views),
                "## Row types",
                *(row_type(r) for r in relations if r["kind"] == "c"),
                "## Settings",
                table(
                    ["setting", "at first", "unit", "meaning"],
                    [[f"`{s['name']}`", s["value"] or "none", s["unit"], sentence(s["meaning"])] for s in settings],
                ),
                "## Numbers in sequences",
                "You need these numbers only to find an error in recrawl. The view `internal_state` shows them. For "
                "each number the table says what it is, what writes it, and what happens if it is too high or too low.",
                "* *Upkeep* is the work on the queue that a worker does continuously. For example it takes back the "
                "pages of ended leases.\n"
                "* A *horizon* is a time. All rows of an index that are older are deleted ones, so a scan of the index "
                "begins at this time.\n"
                "* A *class* is a group of new pages with similar values. `new_horizon_0` stands for 33 sequences, one "
                "for each class.\n"
                "* An *old snapshot* belongs to a transaction that is open for a long time. Until it ends, PostgreSQL "
                "keeps the deleted rows.",
                table(["sequence", "meaning"], [[f"`{c['name']}`", sentence(c["meaning"])] for c in cells]),
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
