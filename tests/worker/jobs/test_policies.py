"""The setting policy, switched on a live crawl."""

import json
import re

import numpy as np
import psycopg
import pytest

from helpers import Crawl, misplaced, run_job
from recrawl.jobs.allocation_input import read
from recrawl.jobs.compare import compare
from recrawl.jobs.plan import Plan
from recrawl.lab.policies.registry import SIMULATED
from recrawl.model.policies.registry import POLICIES
from recrawl.store import reads
from worker.cli.test_cli import output
from worker.jobs.test_jobs import crawl, fill, frequencies, last_run
from worker.jobs.test_pins import often

__all__ = ["crawl"]


@pytest.fixture
def filled(crawl: Crawl) -> Crawl:
    """A slow host and a fast one: the slow one has 12 fetches a day for 100 pages."""
    fill(crawl, {"fast.test": 100, "slow.test": 100})
    crawl.value("select set_host('slow.test', gap => '2 hours')")
    crawl.value("select set_setting('budget', '200')")
    return crawl


def follow(crawl: Crawl, url: str, policy: str) -> np.ndarray:
    crawl.value("select set_setting('policy', %s)", policy)
    run_job("allocate", url)
    assert last_run(crawl)["policy"] == policy
    return frequencies(crawl)


def of_hosts(crawl: Crawl) -> dict[str, np.ndarray]:
    rows = crawl.rows("select host, rate, frequency from page_status order by page_id")
    return {
        host: np.array([[row["rate"], row["frequency"]] for row in rows if row["host"] == host])
        for host in ("fast.test", "slow.test")
    }


def test_the_setting_knows_the_policies_that_can_be_followed(connection: psycopg.Connection) -> None:
    row = connection.execute("select recrawl_internal.names_allowed('policy must be one of')").fetchone()
    assert row and row[0].split(", ") == list(POLICIES)
    with pytest.raises(psycopg.Error, match=r"set_setting: policy must be one of opt_polite, .*, got best"):
        connection.execute("select recrawl.set_setting('policy', 'best')")


def test_each_policy_is_told_where_it_is_explained() -> None:
    """The command's help and the setting's comment name them; the files say what they assume."""
    for policy in SIMULATED.values():
        assert policy.answer.__module__.endswith(policy.name)
        said = __import__(policy.answer.__module__, fromlist=["_"]).__doc__
        assert said and re.search(r"[Ii]t assumes", said), policy.name


def test_uniform_visits_all_pages_equally_often(filled: Crawl, url: str) -> None:
    follow(filled, url, "uniform")
    fast, slow = of_hosts(filled).values()
    assert fast[:, 1] == pytest.approx(fast[0, 1]) and fast[:, 1].sum() == pytest.approx(200 - 86400 / 7202, rel=1e-4)
    assert slow[:, 1] == pytest.approx(86400 / 7202 / 100, rel=1e-4)


def test_proportional_visits_pages_as_often_as_they_change(filled: Crawl, url: str) -> None:
    follow(filled, url, "proportional")
    fast, slow = of_hosts(filled).values()
    for of_host, sum_ in ((fast, 200 - 86400 / 7202), (slow, 86400 / 7202)):
        assert of_host[:, 1] / of_host[:, 0] == pytest.approx(of_host[0, 1] / of_host[0, 0], rel=1e-4)
        assert of_host[:, 1].sum() == pytest.approx(sum_, rel=1e-4)


def test_the_optimum_without_gaps_wants_more_of_a_slow_host_than_it_gives_and_says_what_comes(
    filled: Crawl, url: str
) -> None:
    follow(filled, url, "opt_polite")
    polite = last_run(filled)
    follow(filled, url, "optimal")
    _, slow = of_hosts(filled).values()
    run = last_run(filled)
    assert slow[:, 1].sum() > 2 * 86400 / 7202
    assert run["for_revisits"] < 200 and run["utility"] < polite["utility"]


def test_best_first_visits_no_page_again(filled: Crawl, url: str) -> None:
    assert (follow(filled, url, "best_first") <= 1e-4).all()
    run = last_run(filled)
    assert run["for_revisits"] == 0


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_follow_each_other_within_the_budget(filled: Crawl, url: str, policy: str) -> None:
    """Each page keeps its one place in the queue after any change of policy."""
    filled.report_ok(filled.next())
    for before in ("uniform", policy):
        follow(filled, url, before)
    asked = frequencies(filled)
    assert asked.sum() <= 200 * (1 + 1e-6)
    assert misplaced(filled) == []
    assert Plan(url).curve([100.0, 400.0])[0].budget == 100


def test_a_greedy_policy_knows_since_when_it_is_in_force(filled: Crawl, url: str) -> None:
    first = follow(filled, url, "epsilon_greedy")
    fast = first[:100]
    assert fast == pytest.approx(fast[0], rel=1e-4), "all equally often in the first phase"
    told = often(filled, 1)
    assert told["code"] == "policy" and "at first fetches all pages equally often" in told["says"]
    follow(filled, url, "epsilon_greedy")
    filled.connection.execute("update allocation set started_at = started_at - interval '30 days' "
                             "where token = (select min(token) from allocation)")  # fmt: skip
    filled.value("select set_setting('keep_history', '1 day')")
    filled.value("select forget_history()")
    later = follow(filled, url, "epsilon_greedy")
    assert np.ptp(later[:100]) > 0.1, "then the best"


def test_policies_are_compared_on_the_crawl_as_it_is(filled: Crawl, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    of = {one.policy: one for one in compare(read(url, filled.connection))}
    assert list(of) == list(POLICIES)
    fresh = {name: one.outlook.fresh for name, one in of.items()}
    assert fresh["opt_polite"] > max(fresh["uniform"], fresh["proportional"], fresh["optimal"]) > fresh["best_first"]
    follow(filled, url, "opt_polite")
    assert fresh["opt_polite"] == pytest.approx(last_run(filled)["utility"], rel=1e-4)
    assert of["opt_polite"].outlook.fetches == pytest.approx(200, rel=1e-4)
    assert of["optimal"].unused > 10 and of["opt_polite"].unused < 0.1
    assert of["best_first"].outlook.delay_days == float("inf")
    assert of["uniform"].unused == 0, "to the last fetch, but for rounding"
    filled.add(*(f"http://fast.test/new{i}" for i in range(40)))
    filled.tick()
    monkeypatch.setattr(reads, "retries_per_day", lambda *_: 30.0)
    (best, *_) = compare(read(url, filled.connection))
    assert best.for_new == pytest.approx(40) and best.outlook.fetches == pytest.approx(130, rel=1e-4)
    assert best.unused < 0.1, "new pages and retries use the rest"
    said = output(url, "compare", columns=140)
    assert "opt_polite is in force" in said and "never seen" in said
    found = [json.loads(line) for line in output(url, "compare", "--json").splitlines()]
    assert [one["policy"] for one in found] == list(POLICIES)
    assert [one["policy"] for one in found if one["delay_days"] is None] == ["best_first"]
