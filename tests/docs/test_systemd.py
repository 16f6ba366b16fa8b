"""The units of docs/systemd are valid and hardened, and their commands are commands of recrawl."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from recrawl import cli

FOLDER = Path(__file__).parents[2] / "docs" / "systemd"
UNITS = sorted(FOLDER.glob("*.service"))
PROGRAM = "/opt/recrawl/bin/recrawl"
each_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)


def installed(unit: Path, folder: Path) -> Path:
    """A copy whose program is on this machine."""
    text = unit.read_text()
    assert PROGRAM in text
    copy = folder / unit.name
    copy.write_text(text.replace(PROGRAM, str(Path(sys.executable).with_name("recrawl"))))
    return copy


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd here")
@each_unit
def test_systemd_takes_the_unit_and_finds_it_closed(unit: Path, tmp_path: Path) -> None:
    copy = installed(unit, tmp_path)
    # Of 100 points, as few as a hardened service has; one without any restriction has 96.
    for words in (["verify"], ["security", "--offline=true", "--threshold=20"]):
        done = subprocess.run(["systemd-analyze", *words, copy], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert unit.name not in done.stderr, done.stderr


@each_unit
def test_the_command_of_the_unit_is_one_of_recrawl(unit: Path) -> None:
    (line,) = re.findall(r"^ExecStart=(.+)$", unit.read_text(), re.MULTILINE)
    program, name, *arguments = shlex.split(line)
    assert program == PROGRAM
    command = cli.cli.commands[name]
    parsed = command.make_context(name, arguments, **cli.cli.context_settings)
    assert all(str(value).startswith(("127.", "('127.")) for key, value in parsed.params.items() if key in HERE_ONLY)


HERE_ONLY = {"listen", "metrics"}


def test_the_page_tells_each_unit() -> None:
    page = (FOLDER.parent / "in-production.md").read_text()
    assert [unit.name for unit in UNITS if unit.name not in page] == []
