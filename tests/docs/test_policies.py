"""docs/policies.md tells what comes of its own command.

Nearly: sometimes the rounding of a processor decides which of two pages goes first, and this changes later days.
"""

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from recrawl import cli
from recrawl.lab import worlds

pytestmark = pytest.mark.soak
PAGE = (Path(__file__).parents[2] / "docs/policies.md").read_text()


def command(begin: str) -> str:
    """The one that begins so, on one line."""
    (found,) = re.findall(rf"^recrawl ({begin} .*)$", PAGE.replace("\\\n", ""), re.MULTILINE)
    return str(found)


def figures(heading: str, policy: str, budget: float) -> float:
    table = PAGE.partition(f"\n### {heading}\n")[2].partition("\n#")[0]
    budgets, row = (
        re.findall(rf"^\| {name} \|(.*)\|$", table, re.M) for name in ("fetches per page and day", f"`{policy}`")
    )
    place = [float(one) for one in budgets[0].split("|")].index(budget)
    return float(re.sub(r"[^\d.]", "", row[0].split("|")[place]))


def test_the_tables_of_the_real_web_are_what_the_command_above_them_says() -> None:
    done = CliRunner().invoke(cli.cli, [*shlex.split(command("simulate --recorded")), "--json"])
    assert done.exit_code == 0, done.output
    for one in map(json.loads, done.stdout.splitlines()):
        freshness, delay, fetches = (
            figures(heading, one["policy"], 0.03) for heading in ("Freshness", "Mean delay in days", "Fetches")
        )
        assert 100 * one["freshness"] == pytest.approx(freshness, abs=0.1)
        assert one["mean_delay_days"] == pytest.approx(delay, rel=0.05)
        assert one["fetches"] == pytest.approx(fetches, rel=0.01)


@pytest.mark.parametrize("kind", worlds.KINDS)
def test_a_kind_of_web_is_explained_and_policies_reach_there_what_is_said(kind: str) -> None:
    explained, said = re.findall(rf"^\| `{kind}` \|(.*)\|$", PAGE, re.MULTILINE)
    assert len(explained) > 20
    done = CliRunner().invoke(
        cli.cli, [*shlex.split(command("simulate --web outages").replace("outages", kind)), "--json"]
    )
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["policy"] for one in found] == ["opt_polite", "uniform", "proportional"]
    for one, cell in zip(found, said.split("|"), strict=True):
        freshness, delay = re.findall(r"[\d.]+", cell)
        assert 100 * one["freshness"] == pytest.approx(float(freshness), abs=0.3)
        assert one["mean_delay_days"] == pytest.approx(float(delay), rel=0.2)
