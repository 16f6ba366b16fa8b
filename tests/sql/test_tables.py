"""migrations/README.md is made from what the database says of its tables."""

import os
import re
from pathlib import Path
from typing import Any

import psycopg

from helpers import Row
from recrawl.setup import project
from sql.test_reference import short, table

README = project.root() / "migrations" / "README.md"
VERSIONS = project.root() / "migrations" / "versions"

HEAD = """# The tables

The tables of recrawl, for people who work on recrawl. Users read the views of [the reference](../docs/reference.md).
This page is generated from the comments in the database and from the files of `versions/`. In psql,
`\\d+ recrawl_internal.page` shows the same comments. [The glossary](../docs/glossary.md) explains the words.

Each file of [versions/0001_first](versions/0001_first) creates one group of tables. Its first lines say what the tables
are for. [hosts.sql](versions/0001_first/hosts.sql) has a picture of the two queues of hosts.
[install.sql](../sql/install.sql) has a picture of the life of a page.

These files stay as they were released. Version 0002 changed some things that they show, and corrected many comments.
The tables below are as they are now. These things are different:

* queue.sql: [inbox](#inbox) has fewer columns, and [drain.sql](../sql/upkeep/drain.sql) has the kinds of entries.
  The life of a page in queue.sql is as in version 0001.
* graph.sql: the table graph_news and the column opic.is_full are gone. The columns token and terms of graph_state are
  not used.
* jobs.sql: the column allocation.worth is gone.
* settings.sql: the setting memory is gone.

A *revisit* is a fetch of a page that was handed out before. *Upkeep* is the work on the queue that a worker does
continuously, for example to take back pages of ended leases.
"""

TABLES = """
    select c.relname::text as name, obj_description(c.oid, 'pg_class') as comment,
           array(select array[a.attname::text, format_type(a.atttypid, a.atttypmod),
                              col_description(c.oid, a.attnum)]
                 from pg_attribute a
                 where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped order by a.attnum) as columns
    from pg_class c
    where c.relnamespace = 'recrawl_internal'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relname <> 'alembic_version'
    order by 1
"""
# There are no foreign keys: they would cost a look-up at each insert. The name of a column says what it refers to.
REFERS = {
    "host": r"host_id|busy_hosts",
    "page": r"page_ids?|moved_to|targets|newest_page|last_page|done_to|head_new_id",
    "lease": r"\w+_lease",
    "job": r"token",
}


def groups() -> dict[str, list[str]]:
    """The files of the versions in their order, and the tables that each makes."""
    version = (VERSIONS / "0001_first.py").read_text()
    names = re.findall(r'"(\w+)"', re.findall(r"^GROUPS = \((.*?)\)", version, re.MULTILINE | re.DOTALL)[0])
    files = [f"0001_first/{name}.sql" for name in names]
    files += sorted(path.name for path in VERSIONS.glob("*_*.py") if path.name > "0001_first.py")
    return {file: re.findall(r"create table recrawl_internal\.(\w+)", (VERSIONS / file).read_text()) for file in files}


def references(tables: dict[str, Row]) -> str:
    lines = []
    for target, pattern in REFERS.items():
        named = []
        for name, row in tables.items():
            if row["columns"][0][0] == "only_row":
                continue
            columns = [
                column for column, _, comment in row["columns"]
                if re.fullmatch(pattern, column) and not comment.startswith("Not used")
            ]  # fmt: skip
            columns = [] if name == target and columns[:1] in ([f"{target}_id"], ["token"]) else columns
            usual = columns in ([f"{target}_id"], ["token"])
            if columns:
                named.append(name if usual else f"{name} ({', '.join(columns)})")
        lines.append(f"{target:<6}◀── {named[0]}\n" + "".join(f"      ◀── {name}\n" for name in named[1:]))
    return "\n".join(lines)


def readme(connection: psycopg.Connection[Row]) -> str:
    tables = {row["name"]: row for row in connection.execute(TABLES)}
    parts = [
        HEAD.rstrip(),
        "## How the tables refer to each other",
        "A table on the right has a column with ids of the table on the left. If the column has another name than the "
        "id, the name follows in parentheses: page (moved_to) means that the column moved_to has ids of pages.",
        f"```text\n{references(tables)}```",
    ]
    for file, names in groups().items():
        present = [name for name in names if name in tables]  # not dropped by a later version
        if present:
            parts.append(f"## [{Path(file).stem}](versions/{file})")
        for name in present:
            row = tables.pop(name)
            parts += [f"### {name}", row["comment"]]
            if name != "vital_hour":
                columns = [[f"`{column}`", short(kind), comment] for column, kind, comment in row["columns"]]
                parts.append(table(["column", "type", "meaning"], columns))
    assert not tables, "no file makes these"
    return "\n\n".join(parts) + "\n"


def test_the_readme_of_the_tables_is_what_the_database_says(catalogue: psycopg.Connection[Any]) -> None:
    text = readme(catalogue)
    if os.environ.get("UPDATE_GOLDEN"):
        README.write_text(text)
    assert text.splitlines() == README.read_text().splitlines(), (
        "the tables or their comments changed: if that is meant, say `make golden`"
    )
