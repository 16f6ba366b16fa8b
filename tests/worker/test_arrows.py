"""The imports that each part of recrawl may have."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import recrawl

PACKAGE = Path(recrawl.__file__).parent
CHECKOUT = Path(__file__).parents[2]

# The modules that a part of recrawl may import, in addition to itself and the standard library: other parts, and
# packages that are installed with it. A module belongs to the most special line that names it or its package.
ALLOWED = {
    "__init__": "",
    "__main__": "cli",
    "client": "client.answers client.clock client.robots client.sitemaps words psycopg",
    "client.answers": "client.fingerprint",  # these five do nothing but compute
    "client.clock": "",
    "client.fingerprint": "xxhash",
    "client.robots": "client.answers protego",
    "client.sitemaps": "",
    "scrapy": "client client.answers scrapy twisted",
    "store": "client adbc_driver_manager adbc_driver_postgresql nanoarrow numpy psycopg",
    "intake": "intake.urls store words psycopg",
    "intake.urls": "ada_url",
    "model": "model.compiled numba numpy",
    "model.compiled": "numba numpy platformdirs",  # the one place of the model that writes: the user's cache
    "lab": "lab.methods lab.visits model words numpy",
    "lab.methods": "lab.visits model numpy scipy",
    "lab.policies": "model numpy scipy",
    "lab.visits": "model model.compiled numpy",
    "lab.verbs_at": "client.fingerprint store psycopg",
    "lab.driver": "jobs store lab.verbs_at",  # it needs a database, and so do those that it drives for
    "lab.demo_crawl": "lab lab.driver lab.verbs_at store model numpy",
    "lab.through_sql": "lab lab.driver lab.verbs_at store numpy",
    "lab.commands": "cli lab lab.demo_crawl lab.experiments lab.policies lab.through_sql setup store view view.parts"
    " words click matplotlib",
    "lab.experiments": "lab lab.methods lab.policies model words numpy",
    "jobs": "jobs.allocation_input jobs.job store model words numpy psycopg",
    "jobs.job": "store",
    "jobs.allocation_input": "jobs.job store model words numpy",
    "jobs.plan": "jobs.allocation_input store model numpy",  # what-if answers: of the jobs, nothing that writes
    "jobs.compare": "jobs.allocation_input model",
    "jobs.clock": "jobs jobs.job store apscheduler psycopg",
    "urlfrontier": "client intake.urls words google grpc psycopg",
    "view": "words view.parts view.serving intake.urls store setup.project psycopg",
    "view.parts": "words view",
    "view.serving": "",
    "words": "",
    "view.metrics": "view view.serving words store prometheus_client psycopg",
    "setup.project": "",
    "setup": "setup.project words alembic platformdirs psycopg sqlalchemy",
    "cli": "client urlfrontier intake intake.urls"
    " jobs jobs.allocation_input jobs.clock jobs.compare jobs.job jobs.plan"
    " lab.commands model setup setup.project store view view.metrics words click matplotlib psycopg rich",
}

STANDARD = sys.stdlib_module_names | {"_typeshed"}  # known to type checkers alone
HEAVY = {"adbc_driver_postgresql", "alembic", "apscheduler", "matplotlib", "numba", "numpy", "scipy", "sqlalchemy"}


def modules() -> dict[str, Path]:
    """The modules by their names, and packages by theirs."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ["recrawl", *path.relative_to(PACKAGE).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(name: str, text: str) -> Iterator[str]:
    """The modules that a module imports, wherever it does: also inside functions and for types alone."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            for alias in node.names:
                whole = f"{source}.{alias.name}"
                yield whole if whole in MODULES else source


@cache
def arrows() -> dict[str, set[str]]:
    """The imports of each module. Reading all files takes most of a second, so it is not done at collection."""
    return {name: set(imported(name, path.read_text())) for name, path in MODULES.items()}


def line_of(module: str) -> str:
    """The line of the table that a module stands under; for one that is not ours, what is installed."""
    if module.partition(".")[0] != "recrawl":
        return module.partition(".")[0]
    name = module.removeprefix("recrawl").removeprefix(".") or "__init__"
    return max((line for line in ALLOWED if f"{name}.".startswith(f"{line}.")), key=len, default=name)


def test_the_table_has_a_line_for_every_module_and_no_other() -> None:
    assert {line_of(name) for name in MODULES} == set(ALLOWED)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_what_the_table_allows(name: str) -> None:
    line = line_of(name)
    assert {line_of(module) for module in arrows()[name]} - STANDARD - {line} <= set(ALLOWED[line].split())


@pytest.mark.parametrize("line", ALLOWED)
def test_what_the_table_allows_is_imported_somewhere(line: str) -> None:
    found = {line_of(module) for name in MODULES if line_of(name) == line for module in arrows()[name]}
    assert set(ALLOWED[line].split()) <= found


def test_nothing_is_imported_in_a_circle() -> None:
    TopologicalSorter(arrows()).prepare()


def test_only_the_command_line_imports_the_laboratory() -> None:
    """Production runs without it."""
    importers = {name for name, modules in arrows().items() if any(f"{m}.".startswith("recrawl.lab.") for m in modules)}
    outside = {name for name in importers if not f"{name}.".startswith("recrawl.lab.")}
    assert outside and outside == {"recrawl.cli"}


def test_only_the_registry_imports_by_a_name_it_puts_together() -> None:
    """This file could not see it."""
    dynamic = {name for name, path in MODULES.items() if re.search(r"import_module|__import__", path.read_text())}
    assert dynamic == {"recrawl.jobs.registry"}


def test_sql_is_spoken_where_the_contributors_are_told_and_nowhere_else() -> None:
    statement = re.compile(r"\s*(select|insert into|update \w+ set|delete from|create \w+|with\s+\w+ as)\s")
    spoken = {
        name.removeprefix("recrawl.")
        for name, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and statement.match(node.value)
    }
    assert {name for name in spoken if not name.startswith(("store.", "setup."))} == {
        "client.database",
        "lab.verbs_at",
        "urlfrontier.crawl_database",
        "urlfrontier.crawls",
    }


def test_what_the_client_imports_is_installed_without_an_extra() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in project["dependencies"]}
    client = {name for line, names in ALLOWED.items() if f"{line}.".startswith("client.") for name in names.split()}
    assert names == {name for name in client if name not in ALLOWED}


def loaded(code: str) -> set[str]:
    """The packages that a new process has loaded after this code."""
    tell = "import sys; print('loaded', *{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{tell}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


def test_the_client_loads_nothing_of_the_worker() -> None:
    names = sorted(name for name in MODULES if name.startswith("recrawl.client"))
    assert {"recrawl.client", "recrawl.client.fingerprint"} <= set(names)
    found = loaded(f"import {', '.join(names)}")
    assert "xxhash" in found
    assert not found & (HEAVY | {"click", "rich"})


@pytest.mark.parametrize("arguments", [["--help"], ["plan", "--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments: list[str]) -> None:
    found = loaded(
        f"""
import sys
from recrawl.__main__ import main
sys.argv = {["recrawl", *arguments]}
try:
    main()
except SystemExit as done:
    assert not done.code, done
"""
    )
    assert "click" in found
    assert not found & (HEAVY | {"psycopg"})
