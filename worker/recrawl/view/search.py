"""The search of the dashboard: a page by its URL or id, or a host. Reading and rendering are separate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from recrawl import store
from recrawl.intake.urls import as_stored
from recrawl.view.parts import page
from recrawl.view.parts.html import Html, el
from recrawl.words import clock, count, interval, lasting, literal, moment, things

SHORTEST, LONGEST = timedelta(milliseconds=1), timedelta(days=30)  # the gaps that set_host takes


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
    now, asked = datetime.now(UTC), as_stored(asked)
    if not asked or "\0" in asked:
        return SearchResult("", now)
    if asked.isdecimal() or "/" in asked:
        whole = asked if asked.isdecimal() or "://" in asked else f"https://{asked}"
        return SearchResult(asked, now, explanation=store.calls.explain_page(connection, whole))
    detail = store.calls.explain_page(connection, asked)[0]["detail"]
    return SearchResult(
        asked, now, host=store.views.host(connection, detail.get("host", "")), name=detail.get("name", "")
    )


def shown(found: SearchResult) -> str:
    if found.explanation:
        body = explained(found)
    elif found.host:
        body = described(found, found.host)
    else:
        body = page.verdict_box("warn", "This page or host is not in the crawl.", HOW)
    title = f"recrawl: {found.asked}" if found.asked else "recrawl"
    back = el("p", el("a", "Back to the crawl", href="/"), class_="back")
    return page.document(title, Html.of(body, back), live=True, as_of=moment(found.now), asked=found.asked)


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
    cards = []
    for row in found.explanation:
        topic = el("h3", TOPICS.get(row["topic"], row["topic"]), " ", el("span", row["code"], class_="pill"))
        cards.append(el("section", topic, el("p", row["says"]), page.copied(row["fix"]), class_="card"))
    return _found(f"Page {found.asked}" if found.asked.isdecimal() else found.asked, *cards)


def _found(heading: str, *cards: Html) -> Html:
    return el("div", el("h1", heading, class_="asked"), cards, class_="found", data_part="found")


def described(found: SearchResult, host: Mapping[str, Any]) -> Html:
    now, until, next_slot_at = found.now, host["blocked_until"], host["next_slot_at"]
    asks_for = f"; its robots.txt asks for {lasting(host['crawl_delay'])}" if host["crawl_delay"] else ""
    ends = clock(until, now)
    lasts = ends if ends == "for ever" else f"until {ends}"
    blocked = f"{lasts}: {host['blocked_reason'] or 'no reason given'}" if until else "no"
    late = f"{things(host['due'], 'page')}, the oldest by {lasting(host['late'])}" if host["due"] else ""
    rows: list[tuple[str, object]] = [("also known as", found.name)] if found.name != host["host"] else []
    rows += [
        ("pages", count(host["pages"])),
        ("gap between two requests", f"{lasting(host['gap'])}{asks_for}"),
        ("next request may start", clock(next_slot_at, now) if next_slot_at and next_slot_at > now else "now"),
        ("blocked", blocked),
        ("late", late or "not in the list of hosts with late pages (at most 200)"),
        ("fetches a day", count(host["frequency"])),
        ("limited by its gap", {True: "yes", False: "no: the budget decides", None: "–"}[host["capped"]]),
        ("handed out so far", count(host["handed_out"])),
        ("failed recently", count(host["failures"])),
    ]
    name, half, twice = literal(host["host"]), max(host["gap"] / 2, SHORTEST), min(host["gap"] * 2, LONGEST)
    changes = [
        ("twice as fast, if the host agrees", f"SELECT recrawl.set_host({name}, gap => {interval(half)});"),
        ("half as fast", f"SELECT recrawl.set_host({name}, gap => {interval(twice)});"),
        ("unblock it", f"SELECT recrawl.unblock_host({name});")
        if until
        else ("block it", f"SELECT recrawl.block_host({name}, now() + interval '1 day', 'a reason');"),
    ]
    to_change = page.terms((does, page.copied(do)) for does, do in changes)
    return _found(
        host["host"],
        el("section", page.terms(rows), class_="card"),
        el("section", el("h3", "To change it"), to_change, class_="card"),
    )
