"""`python -m …` or `python -c …` in a process of its own. It is forked from a process that has imported what commands
need, because to import that takes longer than most commands do."""

import io
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from importlib.machinery import PathFinder
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, Self

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
    timeout: float = 600,
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


class Running:
    """A command that goes on running, in a session of its own. It has what tests use of subprocess.Popen. The module
    "-c" is the code that follows it."""

    def __init__(
        self, module: str, *arguments: str, environment: dict[str, str], cwd: str | Path | None = None
    ) -> None:
        (output, wrote), (errors, complained) = (forking.Pipe(duplex=False) for _ in range(2))
        self._process = forking.Process(
            target=_become_leader,
            args=(module, arguments, environment, str(cwd or Path.cwd()), [os.devnull, wrote, complained]),
        )
        self._process.start()
        self.stdout, self.stderr = (os.fdopen(os.dup(pipe.fileno())) for pipe in (output, errors))
        for pipe in (output, wrote, errors, complained):
            pipe.close()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float = 600) -> int:
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(str(self._process), timeout)
        return self.returncode

    def communicate(self, timeout: float = 600) -> tuple[str, str]:
        """The output that was not read yet. A second call returns nothing."""
        with ThreadPoolExecutor(2) as readers:
            texts = [readers.submit(_rest, file) for file in (self.stdout, self.stderr)]
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()  # otherwise the readers wait for ever
                raise
            output, errors = (text.result() for text in texts)
        return output, errors

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.communicate()


def _rest(file: IO[str]) -> str:
    if file.closed:
        return ""
    with file:
        return file.read()


def _become_leader(*how: Any) -> None:
    os.setsid()
    _become(*how)


def _become(
    module: str,
    arguments: tuple[str, ...],
    environment: dict[str, str],
    cwd: str,
    files: "list[str | Connection[Any, Any]]",
) -> None:
    for number, file in enumerate(files):
        if isinstance(file, str):
            os.dup2(os.open(file, os.O_RDWR), number)
        else:
            os.dup2(file.fileno(), number)
            file.close()
    if "LD_PRELOAD" in environment:  # only a new program loads it
        os.chdir(cwd)
        program = [module] if module == "-c" else ["-m", module]
        os.execve(sys.executable, [sys.executable, *program, *arguments], environment)
    # multiprocessing has closed stdin. The others would take 1 and 2 for the files that they were before.
    sys.stdin, sys.stdout = open(0), open(1, "w")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace")  # noqa: SIM115
    if "PYTHONUNBUFFERED" in environment:
        for output in (sys.stdout, sys.stderr):
            assert isinstance(output, io.TextIOWrapper)
            output.reconfigure(write_through=True)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[:0] = environment.get("PYTHONPATH", "").split(os.pathsep)
    found = PathFinder.find_spec("recrawl", sys.path)
    if found and found.origin != recrawl.__file__:
        for name in [name for name in sys.modules if name.partition(".")[0] == "recrawl"]:
            del sys.modules[name]
    sys.argv = [module, *arguments]
    if module == "-c":
        code = sys.argv.pop(1)
        exec(code, {"__name__": "__main__"})
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
