"""Tables of hosts: hosts that are limited by their gap, hosts with late pages, blocked hosts."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any
from urllib.parse import urlencode

from recrawl.view.parts import sentences
from recrawl.view.parts.html import Html, el, in_markup, table
from recrawl.view.parts.page import Report, copied, part
from recrawl.words import clock, count, gain, interval, lasting, literal


def host_table(
    report: Report, name: str, columns: Sequence[tuple[str, str | None]], rows: Iterable[tuple[Any, ...]]
) -> Html | None:
    """One row per host, with its name first. On a phone each cell shows its heading."""

    def shown(host: str, *cells: object) -> Html:
        link = el("a", host, href=f"/find?{urlencode({'q': host})}") if report.live else host
        rest = (el("td", cell, class_=c, data_name=words) for (words, c), cell in zip(columns, cells, strict=True))
        return el("tr", el("th", link, scope="row"), rest)

    shown_rows = [shown(*row) for row in rows]
    return table([("host", None), *columns], shown_rows, class_="list", id=name) if shown_rows else None


def host_part(name: str, title: str, sentence: str, hosts: Html | None) -> Html:
    return part(name, title, el("div", el("p", in_markup(sentence), class_="note"), hosts, class_="card"))


def capped_hosts(report: Report) -> Html:
    hosts, minute = report.figures.capped_hosts[:10], report.figures.minute
    sentence = sentences.capped_hosts(hosts, minute.hosts_capped, minute.hosts)
    rows = [
        (
            host.host, count(host.pages), lasting(host.gap),
            count(inf if host.wanted is None else host.wanted), count(host.frequency),
            gain(host.half_gap_gain, report.figures.allocates_share),
            copied(f"SELECT recrawl.set_host({literal(host.host)}, gap => {interval(host.gap / 2)});"),
        )
        for host in hosts
    ]  # fmt: skip
    figures = ("pages", "gap", "fetches a day wanted", "fetches a day", "gain of half the gap")
    columns = [*((words, "right") for words in figures), ("if the host agrees", "wide")]
    return host_part(
        "capped-hosts", "Hosts that are limited by their gap", sentence, host_table(report, "capped", columns, rows)
    )


WAITS = {"crawler": ("failed", "a crawler"), "gap": ("", "its gap"), "block": ("failed", "a block")}


def late_hosts(report: Report) -> Html:
    hosts = report.figures.late_hosts
    rows = []
    for host in hosts[:10]:
        kind, words = WAITS.get(host.waits_for, ("", host.waits_for))
        waits = el("span", words, class_=f"pill {kind}")
        rows.append((host.host, count(host.due), lasting(host.late), lasting(host.gap), waits))
    columns = [("late pages", "right"), ("the oldest by", "right"), ("gap", "right"), ("waits for", None)]
    return el(
        "details",
        el("summary", "The hosts that are most late"),
        el("p", f"The first ten of {len(hosts)}.", class_="note") if len(hosts) > 10 else None,
        host_table(report, "late-hosts", columns, rows),
        class_="card",
        id="late-details",
    )


def blocked(report: Report) -> Html:
    hosts, minute = report.history.blocked, report.figures.minute
    sentence = sentences.blocked_hosts(hosts, minute.hosts_blocked, minute.hosts)
    rows = [
        (
            host.host, clock(host.blocked_until, report.now), host.blocked_reason or "–", count(host.due),
            copied(f"SELECT recrawl.unblock_host({literal(host.host)});"),
        )
        for host in hosts
    ]  # fmt: skip
    columns = [("until", None), ("because", None), ("late pages", "right"), ("to unblock it", "wide")]
    return host_part("blocked", "Blocked hosts", sentence, host_table(report, "blocked-hosts", columns, rows))
