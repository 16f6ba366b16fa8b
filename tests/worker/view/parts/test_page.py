"""The page as such: nothing from the web gets into it as markup, everybody can read it, and its policy fits."""

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import combinations

import pytest

from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.view import overview, search
from recrawl.view.figures import SHARES, Figures, LastRun
from recrawl.view.history import Event, History
from recrawl.view.parts import page
from recrawl.view.parts.html import Html, el, in_markup
from recrawl.view.rule import Diagnosis, Fix
from worker.view.reports import EMPTY, FIGURES, HISTORY, NOW, report

EVIL = """<script>alert(1)</script><img src=x onerror=alert(2)>"'&--></style></title>"""
VOID = {"input", "meta", "link"}


class Tree(HTMLParser):
    """Its elements, and whether all are closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def ids(self) -> list[str | None]:
        return [attributes["id"] for _, attributes in self.tags if "id" in attributes]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def evil_look(*, live: bool) -> str:
    host = EVIL.replace(" ", "")
    figures = replace(
        FIGURES,
        late_hosts=tuple(replace(h, host=host, waits_for=EVIL, blocked_reason=EVIL) for h in FIGURES.late_hosts),
        capped_hosts=tuple(replace(h, host=host) for h in FIGURES.capped_hosts),
        runs=(LastRun(EVIL, NOW, 1.0, False, EVIL, None, 3),),
    )
    history = replace(
        HISTORY,
        blocked=tuple(replace(h, host=host, blocked_reason=EVIL) for h in HISTORY.blocked),
        events=(Event(NOW, EVIL, EVIL, EVIL, EVIL),),
    )
    verdict = Diagnosis("working", "warn", EVIL, EVIL, (Fix(EVIL, EVIL, EVIL),))
    return overview.html(report(figures, history, verdict=verdict, live=live))


# -- markup --


def test_text_is_escaped_wherever_it_stands() -> None:
    assert el("p", "<b>", title='"<') == '<p title="&quot;&lt;">&lt;b&gt;</p>'
    assert el("p", ["<", None, Html("<b></b>")], hidden=True, title=None) == "<p hidden>&lt;<b></b></p>"
    assert in_markup("**<b>**") == "<b>&lt;b&gt;</b>"


@pytest.mark.parametrize("live", [False, True])
def test_what_comes_from_the_web_is_text(live: bool) -> None:
    html = evil_look(live=live)
    plain = Tree(overview.html(report(live=live)))
    evil = Tree(html)
    assert evil.count("script") == plain.count("script") == 1
    assert evil.count("img") == 0
    assert html.count("&lt;script&gt;alert(1)") >= 15
    assert "alert(2)" not in {name for _, attributes in evil.tags for name in attributes}


def test_so_is_what_somebody_looks_for_and_finds() -> None:
    rows = [{"topic": EVIL, "code": EVIL, "says": EVIL, "fix": EVIL, "detail": None}]
    for found in (search.SearchResult(EVIL, NOW), search.SearchResult(EVIL, NOW, explanation=rows)):
        tree = Tree(search.shown(found))
        assert tree.count("script") == 1 and tree.count("img") == 0


@pytest.mark.parametrize(
    "shown",
    [
        report(),
        report(EMPTY, History()),
        report(Figures(now=EMPTY.now, database="older"), History()),
        report(FIGURES, History()),
        report(FIGURES, replace(HISTORY, hours=HISTORY.hours[-1:], tens=HISTORY.tens[-1:])),
        report(replace(FIGURES, allocation=None, minutes=(), runs=(), settings={}), HISTORY),
    ],
    ids=["health", "empty", "older", "no history", "one point", "no minute"],
)
def test_every_crawl_makes_a_whole_page(shown: page.Report) -> None:
    tree = Tree(overview.html(shown))
    assert len(set(tree.ids())) == len(tree.ids())
    labels = {label for _, attributes in tree.tags if (label := attributes.get("aria-labelledby"))}
    assert labels <= set(tree.ids())
    assert tree.count("h1") == 1
    assert all("style" not in attributes for _, attributes in tree.tags), "the policy lets none through"
    assert {"None", "nan"} & set(re.findall(r">(None|nan)<", overview.html(shown))) == set()


def test_the_mean_of_an_hour_is_not_called_what_is_so_now() -> None:
    """A crawl that stands still loses tens of points within the hour that goes on."""
    html = overview.html(report())
    assert ">Fresh now<" in html and ">fresh<" in html and ">fresh now<" not in html


def test_a_file_asks_the_network_for_nothing() -> None:
    tree = Tree(overview.html(report()))
    links = [a.get("href") or a.get("src") for _, a in tree.tags if a.get("href") or a.get("src")]
    assert set(links) == {"data:,", "#main"}
    assert "form" not in {tag for tag, _ in tree.tags}


def test_the_policy_knows_the_style_and_the_script_by_their_digests() -> None:
    html = overview.html(report())
    for tag in ("style", "script"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", html, re.DOTALL)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in page.policy(live=False)
        assert f"{tag}-src 'sha256-{digest}'" in page.policy(live=True)
    assert "unsafe" not in page.policy(live=True) + page.policy(live=False)
    assert "connect-src 'none'" in page.policy(live=False)


@pytest.mark.usefixtures("in_berlin")
def test_times_are_in_the_zone_of_this_machine() -> None:
    html = overview.html(report())
    assert "21 Nov 2026, 16:04:10 CET" in html
    assert "22 Nov" not in html and ">16:04<" not in html


def test_the_view_knows_which_objectives_are_shares() -> None:
    assert {name for name, objective in OBJECTIVES.items() if objective.is_share} == SHARES


@pytest.mark.parametrize(
    ("objective", "utility", "promised"),
    [("poisson_freshness", 0.74, "74.0 %"), ("delay", 0.74, "0.74"), ("delay", None, "without limit")],
)
def test_what_was_promised_is_told_as_a_share_where_it_is_one(
    objective: str, utility: float | None, promised: str
) -> None:
    assert FIGURES.allocation
    allocation = replace(FIGURES.allocation, objective=objective, utility=utility)
    html = overview.html(replace(report(), figures=replace(FIGURES, allocation=allocation)))
    (told,) = re.findall(r"<dt>expected</dt><dd>([^<]*)</dd>", html)
    assert told.replace("\N{NO-BREAK SPACE}", " ") == promised


def test_a_host_whose_pages_would_take_any_number_of_fetches_is_told_so() -> None:
    first = replace(FIGURES.capped_hosts[0], wanted=None)
    html = overview.html(replace(report(), figures=replace(FIGURES, capped_hosts=(first,))))
    assert re.search(r'data-name="fetches a day wanted">unlimited<', html)


# -- colours --

THEMES = re.findall(r":root \{([^}]*)\}", page.STYLE)[:2]
TEXT = {"ink": ("ground", "card", "code", "good-ground", "warn-ground", "bad-ground"), "soft": ("ground", "card")}
TEXT |= {"good": ("good-ground", "card"), "bad": ("bad-ground", "ground"), "warn": ("warn-ground", "card")}
TEXT |= {"warn ": ("good-ground", "bad-ground")}  # what to do, in a verdict
SHAPES = ("changed", "unchanged", "first", "missing", "failed", "focus")

# How colour-blind eyes see linear red, green and blue (Machado, Oliveira and Fernandes 2009, complete deficiency).
EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
APART = 0.08  # in OKLab, in which .02 is just seen side by side


def colours(theme: str) -> dict[str, tuple[float, ...]]:
    """Linear red, green and blue."""

    def linear(hexadecimal: str) -> float:
        c = int(hexadecimal, 16) / 255
        return c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4

    found = re.findall(r"--([\w-]+): #(..)(..)(..);", theme)
    return {name: (linear(red), linear(green), linear(blue)) for name, red, green, blue in found}


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted(0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in (one, other))
    return (high + 0.05) / (low + 0.05)


def seen(colour: tuple[float, ...], eyes: str) -> tuple[float, ...]:
    """In OKLab."""
    r, g, b = (min(max(sum(m * c for m, c in zip(row, colour, strict=True)), 0), 1) for row in EYES[eyes])
    cones = (
        0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b,
        0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b,
        0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b,
    )
    x, y, z = (cone ** (1 / 3) for cone in cones)
    return (
        0.2104542553 * x + 0.7936177850 * y - 0.0040720468 * z,
        1.9779984951 * x - 2.4285922050 * y + 0.4505937099 * z,
        0.0259040371 * x + 0.7827717662 * y - 0.8086757660 * z,
    )


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
def test_text_and_shapes_have_the_contrast_of_wcag_aa(theme: str) -> None:
    of = colours(theme)
    assert len(of) == 18
    text = {(ink, ground): contrast(of[ink.strip()], of[ground]) for ink, grounds in TEXT.items() for ground in grounds}
    assert {pair: round(value, 2) for pair, value in text.items() if value < 4.5} == {}
    shapes = {shape: contrast(of[shape], of["card"]) for shape in SHAPES}
    assert {shape: round(value, 2) for shape, value in shapes.items() if value < 3} == {}


@pytest.mark.parametrize("theme", THEMES, ids=["light", "dark"])
@pytest.mark.parametrize("eyes", EYES)
def test_the_layers_of_a_chart_differ_for_all_eyes(theme: str, eyes: str) -> None:
    of = colours(theme)
    for one, other in combinations(("changed", "unchanged", "first", "missing", "failed"), 2):
        far = sum((a - b) ** 2 for a, b in zip(seen(of[one], eyes), seen(of[other], eyes), strict=True)) ** 0.5
        assert far >= APART, (one, other)
