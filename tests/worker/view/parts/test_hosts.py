"""The tables of hosts: at most ten rows, and a command for each host."""

import re
from dataclasses import replace
from html import unescape

import pytest

from recrawl.view.figures import HOUR, LateHost
from recrawl.view.parts import hosts
from worker.view.reports import FIGURES, HISTORY, NOW, report


@pytest.mark.parametrize("n", [1, 10, 11])
def test_a_table_has_ten_hosts_at_most_and_says_if_there_are_more(n: int) -> None:
    late = tuple(replace(FIGURES.late_hosts[1], host=f"h{i}.test") for i in range(n))
    capped = tuple(replace(FIGURES.capped_hosts[0], host=f"h{i}.test") for i in range(n))
    shown = report(replace(FIGURES, late_hosts=late, capped_hosts=capped))
    for table in (hosts.late_hosts(shown), hosts.capped_hosts(shown)):
        assert re.findall(r'<th scope="row">(\S+)</th>', table) == [f"h{i}.test" for i in range(min(n, 10))]
    assert re.findall(r"The first ten of \d+\.", hosts.late_hosts(shown)) == ["The first ten of 11."] * (n == 11)


def test_a_host_that_agrees_gets_half_the_gap() -> None:
    (first, *_) = re.findall(r"<code>([^<]*)", hosts.capped_hosts(report()))
    assert unescape(first) == "SELECT recrawl.set_host('news.harbour-post.example', gap => '1 seconds');"


def test_a_block_has_its_reason_or_a_dash() -> None:
    assert ">it answered 429</td>" in hosts.blocked(report())
    blocked = (LateHost("a.test", 3, None, "block", blocked_until=NOW + HOUR),)
    table = hosts.blocked(report(FIGURES, replace(HISTORY, blocked=blocked)))
    assert re.findall(r'<td data-name="\w+">([^<]*)</td>', table) == ["16:04", "–"]
