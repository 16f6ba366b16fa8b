"""docs/policies.md tells what comes of its own command.

Nearly: what a processor rounds otherwise decides now and then which of two pages goes first, and all that follows.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from recrawl import cli
from recrawl.lab import worlds

PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text()


def test_the_table_of_the_real_web_is_what_the_command_above_it_says() -> None:
    (command,) = re.findall(r"^recrawl (simulate --recorded .*)$", PAGE, re.MULTILINE)
    done = CliRunner().invoke(cli.cli, [*shlex.split(command), "--json"])
    assert done.exit_code == 0, done.output
    budgets = re.findall(r"^\| fetches per page and day \|(.*)\|$", PAGE, re.MULTILINE)[0].split("|")
    place = [float(budget) for budget in budgets].index(0.03)
    for one in map(json.loads, done.stdout.splitlines()):
        row = re.findall(rf"^\| `{one['policy']}` \|(.*%.*)\|$", PAGE, re.MULTILINE)[0].split("|")[place]
        freshness, delay, fetches = (float(figure.replace(",", "")) for figure in re.findall(r"[\d.,]+", row))
        assert 100 * one["freshness"] == pytest.approx(freshness, abs=0.1)
        assert one["mean_delay_days"] == pytest.approx(delay, rel=0.05)
        assert one["fetches"] == pytest.approx(fetches, rel=0.01)


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_a_kind_of_web_is_explained_and_policies_reach_there_what_is_said(kind: str) -> None:
    (command,) = re.findall(r"^recrawl (simulate --drawn outages .*)$", PAGE, re.MULTILINE)
    explained, said = re.findall(rf"^\| `{kind}` \|(.*)\|$", PAGE, re.MULTILINE)
    assert len(explained) > 20
    done = CliRunner().invoke(cli.cli, [*shlex.split(command.replace("outages", kind)), "--json"])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["policy"] for one in found] == ["opt_polite", "uniform", "proportional"]
    for one, cell in zip(found, said.split("|"), strict=True):
        freshness, delay = re.findall(r"[\d.]+", cell)
        assert 100 * one["freshness"] == pytest.approx(float(freshness), abs=0.3)
        assert one["mean_delay_days"] == pytest.approx(float(delay), rel=0.2)
