"""recrawl simulate, as a user has it."""

import json
from pathlib import Path

from worker.cli.test_cli import error, output

SHORT = ("simulate", "--recorded", "sample", "--from", "5000", "--to", "5100", "--budget", "0.1")


def test_a_policy_is_let_loose_and_its_figures_are_one_object() -> None:
    said = output(None, *SHORT, "--policy", "uniform", "--seed", "3", "--json")
    found = json.loads(said)
    assert list(found) == [
        "policy", "budget", "fetches", "freshness", "changes", "changes_seen", "mean_delay_days",
    ]  # fmt: skip
    assert (found["policy"], found["budget"]) == ("uniform", 0.1)
    assert 0.9 < found["freshness"] < 1 and 0 < found["changes_seen"] <= found["changes"]
    assert said == output(None, *SHORT, "--policy", "uniform", "--seed", "3", "--json")


def test_policies_stand_side_by_side() -> None:
    said = output(None, *SHORT, "--policy", "opt_polite", "--policy", "uniform", columns=100)
    terms, _, head, _, *rows = said.splitlines()
    assert terms == "day 5000 to day 5100, 0.1 fetches per page and day"
    assert [row.split()[0] for row in rows] == ["opt_polite", "uniform"]
    assert all(unit in head for unit in ("fetches", "fresh %", "mean delay days"))


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('["a", "b", 0, null, []]\n["a", "c", 0, null, [x]]\n')
    assert error(None, "simulate", "--recorded", str(bad), "--budget", "1") == (
        f"recrawl: {bad}: line 2, column 22: Expecting value"
    )
    assert "nowhere" in error(None, "simulate", "--recorded", "nowhere", "--budget", "1")
    assert "policy must be one of" in error(None, *SHORT, "--policy", "best")
    assert "budget must be a positive number" in error(None, *SHORT[:-1], "-1")
    assert "the end must come after the beginning" in error(None, *SHORT, "--to", "4000")
