"""The frame of every HTML document, and the content security policy, which says what a browser may do with it.

Pure, like all parts: figures in, markup out.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from recrawl.view.figures import Figures
from recrawl.view.history import History
from recrawl.view.parts.html import Html, el
from recrawl.view.rule import MARKS, Diagnosis, Fix

STYLE = Html((Path(__file__).parent / "page.css").read_text(encoding="utf-8"))
REFRESH_SECONDS = 5
SCRIPT = Html((Path(__file__).parent / "page.js").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Report:
    """A report. It shows times in the time zone of this machine. If it is live, hosts link to their search."""

    figures: Figures
    verdict: Diagnosis
    history: History
    live: bool = False

    @property
    def now(self) -> datetime:
        """In UTC, in which every day has 24 hours."""
        return self.figures.now.as_of.astimezone(UTC)


def policy(live: bool) -> str:
    """A browser may run the script, apply the style, and request the server that sent the document."""
    itself = "'self'" if live else "'none'"
    return (
        f"default-src 'none'; style-src {_digest(STYLE)}; script-src {_digest(SCRIPT)}; img-src data:; "
        f"connect-src {itself}; form-action {itself}; base-uri 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def document(title: str, body: Html, *, live: bool, about: str = "", as_of: str = "", asked: str = "") -> str:
    """A whole HTML document. `about` and `as_of` stand in its first line. `asked` is the text in its search.

    A file contains its policy; a server sends the policy in a header. A live document refreshes itself."""
    head = el(
        "head",
        el("meta", charset="utf-8"),
        None if live else el("meta", http_equiv="Content-Security-Policy", content=policy(live)),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="referrer", content="no-referrer"),
        el("title", title),
        Html('<link rel="icon" href="data:,">'),
        el("noscript", el("meta", http_equiv="refresh", content=30)) if live else None,
        el("style", STYLE),
    )
    skip, main = el("a", "Skip to the figures", class_="skip", href="#main"), el("main", body, id="main", tabindex=-1)
    script, seconds = el("script", SCRIPT), REFRESH_SECONDS if live else None
    shown = el("body", skip, header(about, as_of, live, asked), main, script, data_live=seconds)
    return f"<!doctype html>\n{el('html', head, shown, lang='en')}\n"


def header(about: str, as_of: str, live: bool, asked: str) -> Html:
    about_it = el("span", about, data_part="about"), el("span", as_of, class_="as-of", data_part="as-of")
    if not live:
        return el("header", el("span", "recrawl", class_="name"), *about_it)
    box = el(
        "input", type="search", name="q", value=asked, required=True, maxlength=2048,
        placeholder="https://… or page_id or host", aria_label="Explain a page (URL or page_id) or a host",
    )  # fmt: skip
    form = el("form", box, el("button", "Explain", type="submit"), action="/find", role="search")
    name = el("a", "recrawl", class_="name", href="/")
    return el("header", name, *about_it, form, el("p", id="news", role="status"))


def part(name: str, title: str | None, *children: object) -> Html:
    """A section. The script replaces it with the new section of the same name."""
    heading = el("h2", title, id=f"{name}-title") if title else None
    return el("section", heading, *children, data_part=name, aria_labelledby=title and f"{name}-title")


def verdict_box(level: str, headline: str, detail: str, fixes: Sequence[Fix] = ()) -> Html:
    heading = el("h1", el("span", MARKS[level], " ", aria_hidden="true"), headline)
    items = (el("li", el("span", f.topic, class_="topic"), el("div", f.says, copied(f.do))) for f in fixes)
    listed = el("ul", items, class_="fixes") if fixes else None
    return el("section", heading, el("p", detail), listed, class_=f"verdict {level}", data_part="verdict")


def copied(do: str | None) -> Html | None:
    """SQL or a command, to copy."""
    return el("div", el("code", do), class_="fix") if do else None


def terms(rows: Iterable[tuple[str, object]]) -> Html:
    return el("dl", ((el("dt", name), el("dd", value)) for name, value in rows))
