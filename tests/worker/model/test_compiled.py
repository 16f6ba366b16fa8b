"""Compiled code is kept for the next process, and always agrees with its source."""

import os
import shutil
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import recrawl

COUNTED = """
import sys
from numba.core.dispatcher import Dispatcher

compiled = []
compile = Dispatcher._compile_for_args
Dispatcher._compile_for_args = lambda self, *a, **k: (compiled.append(self), compile(self, *a, **k))[1]
{script}
print(sum(sum(f.stats.cache_misses.values()) for f in compiled), file=sys.stderr)
"""


@dataclass
class Kernels:
    """Of a script that computes what its arguments name, and changes of files, each with what it makes compiled."""

    script: str
    names: tuple[str, str]
    edits: list[tuple[str, str, str, int]]  # file, old text, new text, least number of functions that a name takes
    files: dict[str, str] = field(default_factory=dict)


SMALL = Kernels(
    script="""
from recrawl.lab import outside
from recrawl.model import outer
for name in sys.argv[1:]:
    print(name, {"square": outer.to_the(2), "cube": outer.to_the(3)}[name](1.5).hex(), end=" ")
    print(outside.less(1.5).hex())
""",
    names=("square", "cube"),
    edits=[("inner.py", "2.0 * x", "3.0 * x", 2), ("../lab/outside.py", "- x", "+ x", 1)],
    files={
        "inner.py": """
from recrawl.model.compiled import compiled

@compiled()
def doubled(x):
    return 2.0 * x
""",
        "outer.py": """
from recrawl.model.compiled import compiled
from recrawl.model.inner import doubled

def to_the(power):
    @compiled(f"to the {power}")
    def raised(x):
        return doubled(x) ** power
    return raised

""",
        # Outside the model: a change of this file changes only what is kept of this file.
        "../lab/outside.py": """
from recrawl.model.compiled import compiled
from recrawl.model.inner import doubled

@compiled()
def less(x):
    return doubled(x) * x - x
""",
    },
)
WHOLE = Kernels(
    script="""
import numpy as np
from recrawl.model.allocation import inverse, objectives, passes
from recrawl.model.allocation.solve import Web, allocate, unconstrained
from recrawl.model.allocation.terms import per_change_at_the_price
from recrawl.model.change import prior

web = Web(np.ones(300, np.float32), np.linspace(0.1, 2, 300, dtype=np.float32), np.array([0, 200, 300]), np.ones(2) * 9)
for name in sys.argv[1:]:
    best = allocate(web, 15.0, name)
    print(name, best.utility.hex(), unconstrained(web.value, web.rate, 15.0, name).utility.hex(), end=" ")
    objective = objectives.objective_named(name)
    print(objective.marginal(best.frequency, 1.0, web.rate).sum().hex(), end=" ")
    print(per_change_at_the_price(web, best, name), end=" ")
    print(prior.fit(web.starts, np.ones(300), np.linspace(1, 9, 300)).a.tolist())
""",
    names=("delay", "harmonic"),
    edits=[
        (
            "allocation/objectives.py",
            "return -value * (rate / frequency)",
            "return -value * (rate / frequency) * 2.0",
            9,
        )
    ],
)


class Installed:
    """recrawl and other code to compile, in a folder and with a cache of its own."""

    def __init__(self, folder: Path, kernels: Kernels) -> None:
        self.source, self.cache, self.kernels = folder / "source", folder / "cache", kernels
        shutil.copytree(
            Path(recrawl.__file__).parent, self.source / "recrawl", ignore=shutil.ignore_patterns("__pycache__")
        )
        for name, text in kernels.files.items():
            (self.model / name).write_text(text)

    def run(self, *names: str) -> tuple[str, int]:
        """The results of a process, and the number of functions that it compiled."""
        path = os.pathsep.join([str(self.source), *(entry for entry in sys.path if not entry.endswith("worker"))])
        done = subprocess.run(
            [sys.executable, "-P", "-c", COUNTED.format(script=self.kernels.script), *names],
            env=os.environ | {"PYTHONPATH": path, "XDG_CACHE_HOME": str(self.cache), "HOME": str(self.cache)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, int(done.stderr.splitlines()[-1])

    @property
    def model(self) -> Path:
        return self.source / "recrawl" / "model"

    @property
    def kept(self) -> list[Path]:
        return sorted((self.cache / "recrawl" / "compiled").glob("*"))


@pytest.mark.parametrize(
    "kernels",
    [
        pytest.param(SMALL, id="small"),
        pytest.param(WHOLE, id="whole", marks=pytest.mark.soak),
    ],
)
def test_a_second_process_compiles_nothing_and_computes_the_same(tmp_path: Path, kernels: Kernels) -> None:
    installed = Installed(tmp_path, kernels)
    one, another = kernels.names
    said, compiled = installed.run(one, another)
    assert compiled >= kernels.edits[0][3]
    assert installed.run(one, another) == (said, 0)
    assert installed.run(another) == (said.splitlines(keepends=True)[1], 0), "in any order"
    assert stat.S_IMODE(installed.kept[0].stat().st_mode) == 0o700

    for file, old, new, least in kernels.edits:
        edited = installed.model / file
        assert old in edited.read_text()
        edited.write_text(edited.read_text().replace(old, new))
        other, compiled = installed.run(one)
        assert compiled >= least and not said.startswith(other)
        said = other

    # Damaged code is compiled again, and kept.
    for number, path in enumerate(sorted(path for folder in installed.kept for path in folder.iterdir())):
        path.write_bytes(path.read_bytes()[: -10 if number % 2 else 10])
    assert installed.run(one)[0] == other
    assert installed.run(one) == (other, 0)


def test_processes_that_need_the_same_function_at_once_compile_it_once(tmp_path: Path) -> None:
    installed = Installed(tmp_path, SMALL)
    with ThreadPoolExecutor() as pool:
        said, compiled = zip(*pool.map(lambda _: installed.run("square"), range(3)), strict=True)
    assert len(set(said)) == 1
    assert sum(compiled) == Installed(tmp_path / "alone", SMALL).run("square")[1] >= SMALL.edits[0][3]


@pytest.mark.parametrize("way", ["a file", "everybody's"])
def test_where_nothing_can_be_kept_a_process_compiles(tmp_path: Path, way: str) -> None:
    installed = Installed(tmp_path, SMALL)
    if way == "a file":
        installed.cache.write_text("where the folder would be")
    else:
        installed.run()
        (folder,) = installed.kept
        shutil.rmtree(folder)
        folder.mkdir()
        folder.chmod(0o777)
    assert installed.run("square")[1] >= SMALL.edits[0][3]
    assert way == "a file" or list(folder.iterdir()) == []
