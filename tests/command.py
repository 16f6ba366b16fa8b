"""`python -m …` in a process of its own, forked from one that has imported what it needs: to import that takes longer
than most commands do."""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from importlib.machinery import PathFinder
from pathlib import Path

import recrawl

LIBRARIES = ["alembic.config", "alembic.command", "apscheduler", "click", "numba", "psycopg", "scipy.sparse"]
LIBRARIES += ["sqlalchemy.dialects.postgresql.psycopg"]
OURS = ["recrawl.cli", "recrawl.setup.migrate", "recrawl.view.overview"]

forking = multiprocessing.get_context("forkserver")
forking.set_forkserver_preload([*LIBRARIES, *OURS])


def run(
    module: str,
    *arguments: str,
    environment: dict[str, str],
    text: str = "",
    cwd: str | Path | None = None,
    timeout: float = 120,
) -> "subprocess.CompletedProcess[str]":
    """The package recrawl is the one that PYTHONPATH finds first."""
    with ExitStack() as opened:
        said, wrote, complained = (opened.enter_context(tempfile.NamedTemporaryFile("w+")) for _ in range(3))
        said.write(text)
        said.flush()
        files = [said.name, wrote.name, complained.name]
        process = forking.Process(target=_become, args=(module, arguments, environment, str(cwd or Path.cwd()), files))
        process.start()
        process.join(timeout)
        if process.exitcode is None:
            process.kill()
            process.join()
        output, errors = wrote.read(), complained.read()
    assert process.exitcode is not None and process.exitcode >= 0, f"it was killed: {errors}"
    return subprocess.CompletedProcess([module, *arguments], process.exitcode, output, errors)


def _become(module: str, arguments: tuple[str, ...], environment: dict[str, str], cwd: str, files: list[str]) -> None:
    for number, name in enumerate(files):
        os.dup2(os.open(name, os.O_RDWR), number)
    sys.stdin = open(0)  # noqa: SIM115 (multiprocessing has closed it; the others write to 1 and 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    found = PathFinder.find_spec("recrawl", sys.path)
    if found and found.origin != recrawl.__file__:
        for name in [name for name in sys.modules if name.partition(".")[0] == "recrawl"]:
            del sys.modules[name]
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
