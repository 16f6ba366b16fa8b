"""What was compiled is kept for the next process, and is never what its source does not say."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import recrawl

PLAN = """
import sys
import numpy as np
from numba.core.dispatcher import Dispatcher
from recrawl.model.allocation import inverse, objectives, passes
from recrawl.model.allocation.ties import per_change_at_the_price
from recrawl.model.allocation.solve import Web, allocate, unconstrained
from recrawl.model.change import prior

compiled = []
compile = Dispatcher._compile_for_args
Dispatcher._compile_for_args = lambda self, *a, **k: (compiled.append(self), compile(self, *a, **k))[1]
web = Web(np.ones(300, np.float32), np.linspace(0.1, 2, 300, dtype=np.float32), np.array([0, 200, 300]), np.ones(2) * 9)
for name in sys.argv[1:]:
    best = allocate(web, 15.0, name)
    print(name, best.utility.hex(), unconstrained(web.value, web.rate, 15.0, name).utility.hex())
    objective = objectives.objective_named(name)
    print(objective.marginal(best.frequency, 1.0, web.rate).sum().hex(), per_change_at_the_price(web, best, name))
print(prior.fit(web.first, np.ones(300), np.linspace(1, 9, 300)).a)
print(sum(sum(f.stats.cache_misses.values()) for f in compiled), file=sys.stderr)
"""


class Installed:
    """recrawl in a folder and with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.source, self.cache = folder / "source", folder / "cache"
        shutil.copytree(
            Path(recrawl.__file__).parent, self.source / "recrawl", ignore=shutil.ignore_patterns("__pycache__")
        )

    def run(self, *objectives: str) -> tuple[str, int]:
        """What a process computes, and how many functions it compiled."""
        path = os.pathsep.join([str(self.source), *(entry for entry in sys.path if not entry.endswith("worker"))])
        done = subprocess.run(
            [sys.executable, "-P", "-c", PLAN, *objectives],
            env=os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(self.cache), "HOME": str(self.cache)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, int(done.stderr.splitlines()[-1])

    @property
    def kept(self) -> list[Path]:
        return sorted((self.cache / "recrawl" / "compiled").glob("*"))


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_a_second_process_compiles_nothing_and_computes_the_same(installed: Installed) -> None:
    said, compiled = installed.run("delay", "harmonic")
    assert compiled > 10
    assert installed.run("delay", "harmonic") == (said, 0)
    of_harmonic = said.splitlines()[2:]
    assert installed.run("harmonic") == ("\n".join([*of_harmonic, ""]), 0), "whichever comes first"
    assert stat.S_IMODE(installed.kept[0].stat().st_mode) == 0o700

    # A file from which others take functions.
    edited = installed.source / "recrawl" / "model" / "allocation" / "objectives.py"
    edited.write_text(
        edited.read_text().replace("return -value * (rate / frequency)", "return -value * (rate / frequency) * 2.0")
    )
    other, compiled = installed.run("delay")
    assert compiled > 10 and not said.startswith(other.splitlines()[0])

    # What is damaged is compiled anew, and kept.
    for number, path in enumerate(sorted(path for folder in installed.kept for path in folder.iterdir())):
        path.write_bytes(path.read_bytes()[: -10 if number % 2 else 10])
    assert installed.run("delay")[0] == other
    assert installed.run("delay") == (other, 0)


@pytest.mark.parametrize("way", ["a file", "everybody's"])
def test_where_nothing_can_be_kept_a_process_compiles(installed: Installed, way: str) -> None:
    if way == "a file":
        installed.cache.write_text("where the folder would be")
    else:
        installed.run()
        (folder,) = installed.kept
        shutil.rmtree(folder)
        folder.mkdir()
        folder.chmod(0o777)
    assert installed.run("delay")[1] > 10
    assert way == "a file" or list(folder.iterdir()) == []
