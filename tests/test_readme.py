"""The documents are true: their code runs, their links lead to something, and the things that they name exist."""

import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Self

import psycopg
import pytest

from docs import results
from recrawl import cli, store
from recrawl.client import Client, Page, ThreadedClient
from recrawl.client.options import Options
from recrawl.setup.programs import program

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
START = DOCS / "start.md"
IGNORED = {"node_modules", "build", "dist", "site-packages"}
DOCUMENTS = sorted(
    path
    for path in ROOT.rglob("*.md")
    if not any(part in IGNORED or part.startswith(".") for part in path.relative_to(ROOT).parts)
)

# A test asks nobody on the web: every request ends at a proxy that is not there.
NO_WEB = dict.fromkeys(["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"], "http://127.0.0.1:9") | {
    "no_proxy": ""
}


def each_of(documents: list[Path]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("document", documents, ids=lambda path: str(path.relative_to(ROOT)))


documents = each_of(DOCUMENTS)
# Those that speak of nothing but recrawl: every name in them is one of ours.
our_words = each_of(
    [
        README,
        *(DOCS / f"{name}.md" for name in ("start", "why", "changes", "glossary")),
        *(DOCS / f"{name}.md" for name in ("write-a-crawler", "client", "other-languages", "report", "report-keys")),
        *(DOCS / f"{name}.md" for name in ("choose-pages", "hosts", "how-often", "watch", "operate", "roles")),
        DOCS / "in-production.md",
    ]
)


def blocks(document: Path) -> list[tuple[str, str]]:
    """Its fenced blocks in order: what stands behind the fence, and the lines inside."""
    found = re.findall(r"^(`{3,}|~{3,})([^\n`]*)\n(.*?)^\1[ ]*$", document.read_text(), re.MULTILINE | re.DOTALL)
    return [(info.strip(), text) for _, info, text in found]


def prose(document: Path) -> str:
    return re.sub(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1[ ]*$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)


def spans(document: Path) -> list[str]:
    """The texts in single backticks."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(document))


def code(document: Path) -> list[tuple[str, str]]:
    """Its blocks of SQL and Python. A block that must not run has another word after its fence, such as text."""
    return [(info.split()[0], text) for info, text in blocks(document) if info.split()[:1] in (["sql"], ["python"])]


def commands(document: Path) -> list[str]:
    """Lines that a reader would type: the lines of shell blocks, and spans of code."""
    lines = [
        line.strip().removeprefix("$ ")
        for info, text in blocks(document)
        if re.match("sh|bash|console", info)
        for line in text.splitlines()
    ]
    return [line for line in lines + spans(document) if line and not line.startswith("#")]


# -- code --


@pytest.mark.parametrize("purpose", ["run", "test"])
def test_there_is_exactly_one_command_to_run_and_one_to_test(purpose: str) -> None:
    (text,) = [text for info, text in blocks(README) if info == f"sh {purpose}"]
    (command,) = text.splitlines()
    assert command.strip() and not command.lstrip().startswith(("#", "$"))
    assert not re.search(r"&&|;|\|", command)


def test_the_first_thing_a_reader_sees_is_pages_being_handed_out() -> None:
    assert "SELECT * FROM next_pages(100)" in code(README)[0][1]


class Interpreter:
    """A process that runs blocks of Python, each where the one before left off."""

    PROGRAM = "import json, sys\nnames = {'__name__': '__main__'}\nfor line in sys.stdin: "
    PROGRAM += "exec(json.loads(line), names); print('\\nran', flush=True)"

    def __init__(self, folder: Path, database: str) -> None:
        self.errors = folder / "errors.txt"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.PROGRAM],
                env=os.environ | {"DATABASE_URL": database} | NO_WEB,
                cwd=folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        self.end = threading.Timer(600, self.process.kill)
        self.end.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end.cancel()
        self.process.kill()
        self.process.communicate()

    def run(self, text: str) -> str:
        """Returns what it printed."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(text) + "\n")
        self.process.stdin.flush()
        printed = ""
        for line in iter(self.process.stdout.readline, ""):
            if line == "ran\n":
                return printed
            printed += line
        raise AssertionError(f"{text}\n{self.errors.read_text()}")


@each_of([document for document in DOCUMENTS if code(document)])
def test_the_code_of_a_document_runs_from_top_to_bottom_with_the_results_that_it_shows(
    document: Path, new_database: Callable[..., str], template: str, tmp_path: Path
) -> None:
    database = new_database(template)
    with store.connect(database) as connection:
        connection.execute(store.SEARCH_PATH)
    differs = []
    with psycopg.connect(database, autocommit=True) as connection, Interpreter(tmp_path, database) as python:
        if document.name == "write-a-crawler.md":  # slots of 1 s: a busy machine misses slots of 0.1 s
            connection.execute("select recrawl.set_setting('window_share', '1')")
        for step in results.steps(document.read_text()):
            shows = step.answer is not None and document != START  # tests/docs/test_start.py looks at its results
            if step.language == "sh" and not shows and step.text.startswith("recrawl run "):
                answer_of(step, database, tmp_path)  # what stands below it is read from what it wrote
            if step.language == "sql":
                for statement in step.statements[: -1 if shows else None]:
                    connection.execute(statement.encode())
            if step.language == "python" or shows:
                found = python.run(step.text) if step.language == "python" else answer_of(step, database, tmp_path)
                if shows and not step.agrees(found):
                    differs.append((step, found))
    if os.environ.get("UPDATE_GOLDEN"):
        while differs:  # from the last to the first, so that places stay
            results.written(document, *differs.pop())
    assert not differs, "\n\n".join(f"{step.text}\n{found}" for step, found in differs)


def answer_of(step: results.Step, database: str, folder: Path) -> str:
    programs = [str(Path(sys.executable).parent), str(program("psql").parent), os.environ["PATH"]]
    command = step.text
    if step.language == "sql":
        command = f"psql -X -q -P footer=off -d {shlex.quote(database)} -c {shlex.quote(step.last_statement)}"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env=os.environ | {"DATABASE_URL": database, "PATH": os.pathsep.join(programs), "COLUMNS": "80"},
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


# -- links --


def anchors(document: Path) -> set[str]:
    """The names GitHub gives to headings."""
    headings = re.findall(r"^#{1,6}[ ]+(.+?)[ #]*$", prose(document), re.MULTILINE)
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@documents
def test_every_relative_link_leads_somewhere(document: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", prose(document))
    targets = re.findall(r"\]\(<?([^)\s>]+)", text) + re.findall(r"^\[[^]]+\]:[ ]*(\S+)", text, re.MULTILINE)
    for target in targets:
        if re.match(r"[a-z][a-z0-9+.-]*:", target):
            continue
        path, _, anchor = target.partition("#")
        to = document.parent / path if path else document
        assert to.exists(), target
        assert to.resolve().is_relative_to(ROOT), target
        if anchor and to.suffix == ".md":
            assert anchor in anchors(to), target


# -- names --


@documents
def test_every_make_target_that_is_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for command in commands(document):
        if match := re.match(r"(?:\w+=\S+ )*make\b(.*)", command):
            named = [word for word in shlex.split(match[1], comments=True) if "=" not in word and word[0] != "-"]
            assert set(named) <= targets, command


RUNS_OUR_CODE = ["demo", "test", "soak", "mutants", "fast", "golden", "docs", "picture", "figures", "experiments"]
RUNS_OUR_CODE += ["fixture", "bench", "psql"]


@pytest.mark.parametrize("target", RUNS_OUR_CODE)
def test_make_runs_the_code_of_this_checkout_with_the_venv_of_another_one(target: str, tmp_path: Path) -> None:
    """Here each program of .venv only says where it would look for code."""
    (tmp_path / "bin").mkdir()
    for name in ("recrawl", "python", "pytest"):
        program = tmp_path / "bin" / name
        program.write_text('#!/bin/sh\necho "looks in $PYTHONPATH"\n')
        program.chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MAKE"))}
    said = subprocess.check_output(["make", target, f"VENV={tmp_path}"], cwd=ROOT, env=variables, text=True)
    looked = [line for line in said.splitlines() if line.startswith("looks in ")]
    assert looked and set(looked) == {f"looks in {ROOT / 'worker'}:{ROOT / 'tests'}"}


@documents
def test_every_command_that_is_named_exists(document: Path) -> None:
    for command in commands(document):
        for name in re.findall(r"^(?:\S*/)?recrawl[ ]+([a-z][a-z-]*)\b", command):
            assert name in cli.cli.commands, command


@documents
def test_every_file_that_is_named_exists(document: Path) -> None:
    """Those that look like one of ours: a path with a folder of the checkout in front."""
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    for span in spans(document):
        if re.fullmatch(r"[\w.-]+/[\w./-]*", span) and span.split("/")[0] in folders:
            assert (ROOT / span).exists(), span


@pytest.fixture
def functions(connection: psycopg.Connection) -> set[str]:
    query = "select proname from pg_proc where pronamespace::regnamespace::text ~ '^recrawl'"
    return {name for (name,) in connection.execute(query).fetchall()}


@pytest.fixture
def known_words(connection: psycopg.Connection, functions: set[str]) -> set[str]:
    """All names in the database, and the codes and keys that its functions use."""
    named = connection.execute(
        """
        select relname from pg_class where relnamespace::regnamespace::text ~ '^recrawl'
        union select attname from pg_attribute a join pg_class c on c.oid = a.attrelid
              where c.relnamespace::regnamespace::text ~ '^recrawl'
        union select unnest(proargnames) from pg_proc where pronamespace::regnamespace::text ~ '^recrawl'
        union select name from recrawl.settings
        union select rolname from pg_roles where rolname ~ '^recrawl'
        union select nspname from pg_namespace
        union select name from pg_settings
        """
    ).fetchall()
    bodies = "\n".join(
        body
        for (body,) in connection.execute(
            "select coalesce(pg_get_function_sqlbody(oid), prosrc) from pg_proc"
            " where pronamespace::regnamespace::text ~ '^recrawl'"
        ).fetchall()
    )
    return {name for (name,) in named} | functions | set(re.findall(r"'(\w+)'", bodies))


@our_words
def test_every_function_that_is_called_exists(
    document: Path, functions: set[str], connection: psycopg.Connection
) -> None:
    builtin = {
        name
        for (name,) in connection.execute(
            "select proname from pg_proc where pronamespace = 'pg_catalog'::regnamespace"
        ).fetchall()
    }
    called = {match[1] for span in spans(document) if (match := re.match(r"(?:recrawl\.)?([a-z_]+)\(", span))}
    assert called <= functions | builtin


@our_words
def test_every_word_with_an_underscore_is_one_the_database_knows(document: Path, known_words: set[str]) -> None:
    words = {span.removeprefix("recrawl.") for span in spans(document)}
    tools = {word for word in words if word.startswith("pg_")}
    of_client = {*Options.__annotations__, *Page.__slots__, *dir(Client), "from_sitemaps"}  # a key of counts
    assert {word for word in words if re.fullmatch(r"[a-z]+(_[a-z]+)+", word)} <= known_words | tools | of_client


def public(of: type) -> set[str]:
    return {name for name in dir(of) if not name.startswith("_")}


def test_the_client_is_told_in_full_and_nothing_that_it_has_not() -> None:
    text = (DOCS / "client.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    assert {*Options.__annotations__} <= {row.strip("`") for row in rows}
    crawl = Client("", user_agent="me")
    assert set(re.findall(r"`page\.(\w+)", " ".join(rows))) == public(Page)
    assert set(re.findall(r"`crawl\.(\w+)", " ".join(rows))) == {
        name for name in (*vars(crawl), *public(Client)) if not name.startswith("_")
    }
    said = text.partition("\n`ThreadedClient` takes")[2].partition("\n\n")[0]
    threaded = ThreadedClient("", user_agent="me")
    has = {name for name in (*vars(threaded), *public(ThreadedClient)) if not name.startswith("_")} - {"client"}
    assert has == {name for name in re.findall(r"`(\w+)`", said) if hasattr(threaded, name)}


@documents
def test_every_setting_with_a_value_exists(document: Path, connection: psycopg.Connection) -> None:
    settings = {name for (name,) in connection.execute("select name from settings").fetchall()}
    assert set(re.findall(r"set_setting\('(\w+)'", document.read_text())) <= settings


def test_the_glossary_says_each_word_once_and_in_order() -> None:
    first, others = (DOCS / "glossary.md").read_text().split("\n## All other words\n")
    terms = [re.findall(r"^\| \*\*(.+?)\*\* \|", part, re.MULTILINE) for part in (first, others)]
    assert len(terms[0]) == 12 and len(terms[0]) + len(terms[1]) <= 50
    assert terms[1] == sorted(set(terms[1]) - set(terms[0]))


def test_every_key_of_a_report_is_explained(connection: psycopg.Connection) -> None:
    table = (DOCS / "report-keys.md").read_text().partition("\n## Keys\n")[2].partition("\n## ")[0]
    explained = [
        name for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    ]
    keys = connection.execute("select unnest(recrawl_internal.result_keys())").fetchall()
    assert sorted(explained) == sorted({name for (name,) in keys})


def test_every_verb_and_view_is_in_some_document(connection: psycopg.Connection) -> None:
    public = connection.execute(
        "select proname from pg_proc where pronamespace = 'recrawl'::regnamespace"
        " union select viewname from pg_views where schemaname = 'recrawl'"
    ).fetchall()
    said = "\n".join(document.read_text() for document in DOCUMENTS)
    assert {name for (name,) in public if not re.search(rf"\b{name}\b", said)} == set()
