"""recrawl simulate, as a user has it."""

import json
import re
import signal
from pathlib import Path

import psycopg
import pytest

from command import Running
from helpers import eventually
from worker.cli.test_cli import environment, error, output, recrawl

README = Path(__file__).parents[3] / "README.md"
SHORT = ("simulate", "--recorded", "sample", "--from", "5000", "--to", "5100", "--per-page", "0.1")


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
    said = output(None, *SHORT, "--policy", "opt_polite", "--policy", "oracle", columns=100)
    terms, _, head, _, *rows = said.splitlines()
    assert terms == "day 5000 to day 5100, 0.1 fetches per page and day"
    assert [row.split()[0] for row in rows] == ["opt_polite", "oracle"]
    assert all(unit in head for unit in ("fetches", "fresh", "mean delay, days"))


def test_what_is_wrong_is_said_in_a_line(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('["a", "b", 0, null, []]\n["a", "c", 0, null, [x]]\n')
    assert error(None, "simulate", "--recorded", str(bad), "--per-page", "1") == (
        f"recrawl: {bad}: line 2, column 22: Expecting value"
    )
    assert "nowhere" in error(None, "simulate", "--recorded", "nowhere", "--per-page", "1")
    assert re.search(
        "policy must be one of opt_polite, optimal, .*, explore_then_commit, oracle, foresight, got 'best'",
        error(None, *SHORT, "--policy", "best"),
    )
    assert "budget must be a positive number" in error(None, *SHORT[:-1], "-1")
    assert "the end must come after the beginning" in error(None, *SHORT, "--to", "4000")


@pytest.mark.soak
def test_the_demonstration_is_better_than_what_knows_all_and_visits_all_equally_often(tmp_path: Path) -> None:
    """Its own server, and nothing of it stays but a report and a picture. The README shows its table."""
    said = output(None, "demo", "--folder", str(tmp_path), timeout=900)
    rows = re.findall(r"^(\w.*?) *\| +([0-9.]+) %", said, re.MULTILINE)
    reached, uniform, proportional, polite, unpolite = (float(share) for _, share in rows)
    assert proportional < uniform < reached < polite < unpolite
    shown = re.findall(r"^(\w.*?) *\| +([0-9.]+) %", README.read_text(), re.MULTILINE)
    assert [name for name, _ in shown] == [name for name, _ in rows]
    assert [float(share) for _, share in shown] == pytest.approx([float(share) for _, share in rows], abs=1)
    assert "Requests closer than the gap of their host: 0." in said
    assert re.findall(r"^  recrawl (\w+)", said, re.MULTILINE) == ["up", "add", "status"]
    png, page = tmp_path / "recrawl-demo.png", tmp_path / "recrawl-demo.html"
    assert png.read_bytes().startswith(b"\x89PNG") and "of the value of all pages was fresh" in page.read_text()
    parts = set(re.findall(r'data-part="([\w-]+)"', page.read_text()))
    assert {"verdict", "tiles", "worth", "budget", "late", "capped-hosts", "news", "machinery"} <= parts
    assert 'class="verdict ok"' in page.read_text(), "the report is of the moment at which its crawl ended"
    assert sorted(tmp_path.iterdir()) == [page, png]


def test_a_web_is_recorded_or_drawn() -> None:
    assert "choose a web" in error(None, "simulate", "--per-page", "1")
    assert "choose a web" in error(None, "simulate", "--recorded", "sample", "--web", "steady", "--per-page", "1")
    assert error(None, "simulate", "--web", "lively", "--per-page", "1").startswith(
        "recrawl: there is no kind of web 'lively'; there are steady, drift, turnover, values, outages, noise, content"
    )
    assert "a simulated web lasts 90 days" in error(
        None, "simulate", "--web", "steady", "--per-page", "1", "--to", "91"
    )


def test_a_drawn_web_through_sql_and_without(url: str) -> None:
    drawn = ("simulate", "--web", "steady", "--to", "3", "--per-page", "0.3", "--json")
    computed = json.loads(output(None, *drawn))
    by_sql = json.loads(output(None, *drawn, "--database", url, timeout=900))
    assert computed.keys() == by_sql.keys() and computed["changes"] == by_sql["changes"]
    assert by_sql["fetches"] > 100
    assert "has pages already" in error(None, *drawn, "--database", url)
    assert "one policy" in error(None, *drawn, "--database", url, "--policy", "uniform", "--policy", "optimal")
    for name in ("explore_then_commit", "oracle"):
        assert "does not work with --sql" in error(None, *drawn, "--sql", "--policy", name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_simulation_that_is_told_to_end(open_folder: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("these tests run under nohup")
    (temporary := open_folder / f"ended-by-{number.name}").mkdir()
    drawn = ("simulate", "--web", "steady", "--to", "90", "--per-page", "1", "--sql")
    with Running("recrawl", *drawn, environment=environment(None) | {"TMPDIR": str(temporary)}) as running:
        eventually(lambda: list(temporary.glob("recrawl-laboratory-*/data/cluster/postmaster.pid")))
        running.send_signal(number)
        assert running.wait(60) == 130
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("given", ["postgresql://anna:se@cret@localhost:1/d", "", "host=localhost"])
def test_the_database_of_a_simulation_is_a_url_and_is_not_quoted(given: str) -> None:
    done = recrawl(None, "simulate", "--web", "steady", "--to", "1", "--per-page", "1", "--database", given)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith("recrawl: --database is not a URL like postgresql://user:password@host:port/database")
    assert "cret" not in done.stderr


def test_nothing_is_done_to_a_database_of_a_crawl(url: str) -> None:
    """It is not even migrated, where it is of another version."""
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("select recrawl.add_pages(array['http://a.test/'])")
        db.execute("update recrawl_internal.replayed set digest = 'of another version'")
        drawn = ("simulate", "--web", "steady", "--to", "1", "--per-page", "1")
        assert "has pages already" in error(None, *drawn, "--database", url)
        assert db.execute("select digest from recrawl_internal.replayed").fetchall() == [("of another version",)]
