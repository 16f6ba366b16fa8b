"""The search of the dashboard: a page by its URL or id, or a host. Reading and rendering are separate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recrawl import store
from recrawl.view.parts import page
from recrawl.view.parts.html import Html, el
from recrawl.words import HERE, clock, count, interval, lasting, literal, moment, things


@dataclass(frozen=True)
class SearchResult:
    asked: str
    now: datetime
    explanation: Sequence[Mapping[str, Any]] = ()  # rows of explain_page
    host: Mapping[str, Any] | None = None
    name: str = ""  # by which the host was found

    @property
    def ok(self) -> bool:
        return bool(self.host) or any(row["topic"] == "page" for row in self.explanation)


def find(connection: store.Connection, asked: str) -> SearchResult:
    now = datetime.now(HERE)
    if not asked or "\0" in asked:
        return SearchResult("", now)
    if asked.isdecimal() or "://" in asked:
        return SearchResult(asked, now, explanation=store.verbs.explain_page(connection, asked))
    if "/" in asked:
        return SearchResult(asked, now, explanation=store.verbs.explain_page(connection, f"https://{asked}"))
    detail = store.verbs.explain_page(connection, asked)[0]["detail"]
    return SearchResult(
        asked, now, host=store.history.host(connection, detail.get("host", "")), name=detail.get("name", "")
    )


def shown(found: SearchResult, live_seconds: float) -> str:
    head = page.header("", moment(found.now), live=True, asked=found.asked)
    if found.explanation:
        body = explained(found)
    elif found.host:
        body = described(found, found.host)
    else:
        body = page.verdict_box("warn", "This page or host is not in the crawl.", HOW)
    title = f"recrawl: {found.asked}" if found.asked else "recrawl"
    return page.document(
        title,
        head,
        Html.of(body, el("p", el("a", "Back to the crawl", href="/"), class_="back")),
        live_seconds=live_seconds,
    )


HOW = (
    "Type the whole URL of a page (https://example.com/news) or its page_id, or the name of a host (example.com) "
    "without a port."
)

TOPICS = {
    "page": "The page",
    "now": "Why is it not fetched now?",
    "also": "What else delays it",
    "last": "The last fetch",
    "often": "How often is it fetched?",
    "changes": "How often does it change?",
    "value": "How valuable is it?",
}


def explained(found: SearchResult) -> Html:
    cards = (
        el(
            "section",
            el("h3", TOPICS.get(row["topic"], row["topic"]), " ", el("span", row["code"], class_="pill")),
            el("p", row["says"]),
            page.copied(row["fix"]),
            class_="card",
        )
        for row in found.explanation
    )
    asked = f"Page {found.asked}" if found.asked.isdecimal() else found.asked
    return el("div", el("h1", asked, class_="asked"), cards, class_="found", data_part="found")


def described(found: SearchResult, host: Mapping[str, Any]) -> Html:
    now = found.now
    rows: list[tuple[str, object]] = [("also known as", found.name)] if found.name != host["host"] else []
    rows += [
        ("pages", count(host["pages"])),
        ("gap between two requests", f"{lasting(host['gap'])}{_own_gap(host)}"),
        ("next request may start", _at(host["next_slot_at"], now) or "now"),
        ("blocked", _blocked(host, now)),
        ("overdue", _late(host)),
        ("fetches a day", count(host["frequency"])),
        ("limited by its gap", {True: "yes", False: "no: the budget decides", None: "–"}[host["capped"]]),
        ("fetches so far", count(host["fetches"])),
        ("failed recently", count(host["failures"])),
    ]
    name = literal(host["host"])
    changes = [
        ("twice as fast, if the host agrees", f"SELECT recrawl.set_host({name}, gap => {interval(host['gap'] / 2)});"),
        ("half as fast", f"SELECT recrawl.set_host({name}, gap => {interval(host['gap'] * 2)});"),
        ("unblock it", f"SELECT recrawl.unblock_host({name});")
        if host["blocked_until"]
        else ("block it", f"SELECT recrawl.block_host({name}, now() + interval '1 day', 'a reason');"),
    ]
    return el(
        "div",
        el("h1", host["host"], class_="asked"),
        el("section", page.terms(rows), class_="card"),
        el(
            "section",
            el("h3", "To change it"),
            page.terms((does, page.copied(do)) for does, do in changes),
            class_="card",
        ),
        class_="found",
        data_part="found",
    )


def _own_gap(host: Mapping[str, Any]) -> str:
    return "; its robots.txt asks for " + lasting(host["crawl_delay"]) if host["crawl_delay"] else ""


def _at(at: datetime | None, now: datetime) -> str | None:
    return clock(at, now) if at and at > now else None


def _blocked(host: Mapping[str, Any], now: datetime) -> str:
    if not host["blocked_until"]:
        return "no"
    return f"until {clock(host['blocked_until'], now)}: {host['blocked_reason'] or 'no reason given'}"


def _late(host: Mapping[str, Any]) -> str:
    if not host["due"]:
        return "not among the hosts with the most overdue pages"
    return f"{things(host['due'], 'page')}, the oldest by {lasting(host['late'])}"
