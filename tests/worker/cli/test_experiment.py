"""recrawl experiment, as a user has it."""

import json
from pathlib import Path

import pytest

from recrawl.lab.experiments.registry import EXPERIMENTS
from worker.cli.test_cli import error, output


def test_without_a_name_the_experiments_are_listed() -> None:
    said = output(None, "experiment", columns=200)
    for name, experiment in EXPERIMENTS.items():
        assert name in said and experiment.says in said


def test_an_experiment_is_told_in_tables_and_drawn(tmp_path: Path) -> None:
    figure = tmp_path / "figure.svg"
    said = output(None, "experiment", "two-pages", "--quick", "--figure", str(figure), columns=250)
    *tables, says = said.splitlines()
    assert says.endswith(".") and any(" | " in line for line in tables)
    assert "<svg" in figure.read_text() and figure.stat().st_size > 10_000


def test_it_is_one_object_for_programs() -> None:
    said = output(None, "experiment", "two-pages", "--seed", "3", "--json")
    found = json.loads(said)
    assert list(found) == ["experiment", "seed", "tables", "says"]
    ((title, rows),) = found["tables"].items()
    assert title.startswith("fetches a day") and rows[1]["page 1"] == pytest.approx(0.77717, abs=1e-5)


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    assert "experiment must be one of figure-4.5, " in error(None, "experiment", "figure")
    assert "--figure must be a file that ends in .svg, got a.png" in error(
        None, "experiment", "opic", "--figure", "a.png"
    )
    nowhere = str(tmp_path / "nowhere" / "a.svg")
    assert "--figure must be in an existing folder" in error(None, "experiment", "opic", "--figure", nowhere)
