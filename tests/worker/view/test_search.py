"""The search describes a host correctly in each of its states."""

import re
from datetime import timedelta
from html import unescape

import pytest

from recrawl.view import search
from recrawl.view.figures import HOUR
from worker.view.reports import MINUTE, NOW, SECOND

HOST = {
    "host": "a.test", "pages": 7, "gap": 10 * SECOND, "crawl_delay": None, "next_slot_at": NOW - SECOND,
    "blocked_until": None, "blocked_reason": None, "due": 0, "late": None, "frequency": 2.5, "capped": None,
    "handed_out": 12, "failures": 0,
}  # fmt: skip


def told(**changes: object) -> dict[str, str]:
    html = search.shown(search.SearchResult("a.test", NOW, host=HOST | changes, name="a.test"))
    rows = re.findall(r"<dt>([^<]*)</dt><dd>(?:<div[^>]*><code>)?([^<]*)", html)
    return {name: unescape(value) for name, value in rows}


@pytest.mark.parametrize(
    ("changes", "name", "says"),
    [
        ({}, "gap between two requests", "10 s"),
        ({"crawl_delay": MINUTE}, "gap between two requests", "10 s; its robots.txt asks for 1 min"),
        ({}, "next request may start", "now"),
        ({"next_slot_at": None}, "next request may start", "now"),
        ({"next_slot_at": NOW + HOUR}, "next request may start", "16:04"),
        ({}, "blocked", "no"),
        ({"blocked_until": NOW + HOUR}, "blocked", "until 16:04: no reason given"),
        ({"blocked_until": NOW.replace(year=9999), "blocked_reason": "asked"}, "blocked", "for ever: asked"),
        ({}, "late", "not in the list of hosts with late pages (at most 200)"),
        ({"due": 1, "late": HOUR}, "late", "1 page, the oldest by 1 h"),
        ({"capped": True}, "limited by its gap", "yes"),
        ({"capped": False}, "limited by its gap", "no: the budget decides"),
        ({}, "limited by its gap", "–"),
        ({}, "twice as fast, if the host agrees", "SELECT recrawl.set_host('a.test', gap => '5 seconds');"),
        ({}, "half as fast", "SELECT recrawl.set_host('a.test', gap => '20 seconds');"),
        (
            {"gap": timedelta(milliseconds=1)},
            "twice as fast, if the host agrees",
            "SELECT recrawl.set_host('a.test', gap => '0.001 seconds');",
        ),
    ],
)
def test_a_host_is_described(changes: dict[str, object], name: str, says: str) -> None:
    assert told(**changes)[name] == says
