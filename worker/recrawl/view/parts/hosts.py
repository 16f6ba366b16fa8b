"""Tables of hosts: hosts that are limited by their gap, hosts with overdue pages, blocked hosts."""

from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from recrawl.view.parts import sentences
from recrawl.view.parts.html import Html, el, said
from recrawl.view.parts.page import Look, copied, part
from recrawl.words import clock, count, gain, interval, lasting, literal


def host_table(
    look: Look, name: str, columns: Sequence[tuple[str, str | None]], rows: Iterable[tuple[str, Sequence[object]]]
) -> Html:
    """One row per host. Columns have a heading and a class. On a phone each cell shows its heading."""
    return el(
        "table",
        el(
            "thead",
            el("tr", el("th", "host", scope="col"), (el("th", words, scope="col", class_=c) for words, c in columns)),
        ),
        el(
            "tbody",
            (
                el(
                    "tr",
                    el("th", host_link(look, host), scope="row"),
                    (
                        el("td", cell, class_=c, data_name=words)
                        for (words, c), cell in zip(columns, cells, strict=True)
                    ),
                )
                for host, cells in rows
            ),
        ),
        class_="list",
        id=name,
    )


def host_link(look: Look, host: str) -> object:
    return el("a", host, href=f"/find?{urlencode({'q': host})}") if look.live else host


def held_back(look: Look) -> Html:
    hosts, minute = look.figures.held_back[:10], look.figures.minute
    sentence = sentences.holding_back(hosts, minute.hosts_capped if minute else None, minute.hosts if minute else None)
    of_time = look.figures.allocates_share
    rows = [
        (
            host.host,
            [
                count(host.pages),
                lasting(host.gap),
                count(host.wanted),
                count(host.frequency),
                gain(host.gain, of_time),
                copied(f"SELECT recrawl.set_host({literal(host.host)}, gap => {interval(host.gap / 2)});"),
            ],
        )
        for host in hosts
    ]
    columns = [
        *(
            (words, "right")
            for words in ("pages", "gap", "fetches a day wanted", "fetches a day", "gain of half the gap")
        ),
        ("if the host agrees", "wide"),
    ]
    return part(
        "held-back",
        "Hosts that are limited by their gap",
        el(
            "div",
            el("p", said(sentence), class_="note"),
            host_table(look, "held", columns, rows) if rows else None,
            class_="card",
        ),
    )


WAITS = {"crawler": ("failed", "a crawler"), "gap": ("", "its gap"), "block": ("failed", "a block")}


def late_hosts(look: Look) -> Html:
    hosts = look.figures.late_hosts
    rows = []
    for host in hosts[:10]:
        kind, words = WAITS.get(host.waits_for, ("", host.waits_for))
        rows.append(
            (
                host.host,
                [count(host.due), lasting(host.late), lasting(host.gap), el("span", words, class_=f"pill {kind}")],
            )
        )
    columns = [("overdue pages", "right"), ("the oldest by", "right"), ("gap", "right"), ("waits for", None)]
    more = f"The first ten of {len(hosts)}." if len(hosts) > 10 else ""
    return el(
        "details",
        el("summary", "The hosts with the most overdue pages"),
        el("p", said(sentences.late_hosts(hosts)), " ", more, class_="note"),
        host_table(
            look,
            "late-hosts",
            columns,
            rows,
        ),
        class_="card",
        id="late-details",
    )


def blocked(look: Look) -> Html:
    hosts, minute = look.history.blocked, look.figures.minute
    sentence = sentences.blocked_hosts(
        hosts, minute.hosts_blocked if minute else None, minute.hosts if minute else None
    )
    rows = [
        (
            host.host,
            [
                clock(host.blocked_until, look.now),
                host.blocked_reason or "–",
                count(host.due),
                copied(f"SELECT recrawl.unblock_host({literal(host.host)});"),
            ],
        )
        for host in hosts
    ]
    columns = [("until", None), ("because", None), ("overdue pages", "right"), ("to unblock it", "wide")]
    return part(
        "blocked",
        "Blocked hosts",
        el(
            "div",
            el("p", said(sentence), class_="note"),
            host_table(
                look,
                "blocked-hosts",
                columns,
                rows,
            )
            if rows
            else None,
            class_="card",
        ),
    )
