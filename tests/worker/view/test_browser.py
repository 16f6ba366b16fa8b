"""The pages as a browser shows them: on a phone and a desk, in light and dark, by keyboard, live, and without a script.

RECRAWL_PICTURES=folder keeps pictures of what was looked at.
"""

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.engine import make_url

from helpers import Crawl
from recrawl.view import dashboard as served
from recrawl.view import overview
from recrawl.view.dashboard import Dashboard
from recrawl.view.history import History
from recrawl.view.parts.page import Report
from worker.view.browser import DESK, PHONE, Browser, open_browser, program, until
from worker.view.reports import EMPTY, FIGURES, HISTORY, NOW, report
from worker.view.test_dashboard import serving

pytestmark = pytest.mark.skipif(program() is None, reason="apt install chromium chromium-driver")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


LONG_AGO = timedelta(minutes=12)
STILL = replace(FIGURES.now, last_report_at=NOW - LONG_AGO, ready_wait=LONG_AGO, hosts_ready=1000)
LOOKS: dict[str, Report] = {
    "health": report(),
    "still": report(replace(FIGURES, now=replace(STILL, fetches_per_second=0.0), reported_at=NOW - LONG_AGO)),
    "paused": report(replace(FIGURES, now=replace(FIGURES.now, paused=True))),
    "empty": report(EMPTY, History()),
    "unallocated": report(
        replace(
            FIGURES,
            allocation=None,
            capped_hosts=(),
            minutes=tuple(
                replace(m, expected=None, limit_with_gaps=None, limit_without_gaps=None) for m in FIGURES.minutes
            ),
        ),
        replace(HISTORY, hours=tuple(replace(h, expected=None, limit_with_gaps=None) for h in HISTORY.hours)),
    ),
    "young": report(FIGURES, replace(HISTORY, hours=HISTORY.hours[-2:], tens=HISTORY.tens[-9:], events=())),
    "long": report(
        replace(FIGURES, capped_hosts=tuple(replace(h, host="long-" * 40 + h.host) for h in FIGURES.capped_hosts)),
        replace(HISTORY, blocked=tuple(replace(h, host="x" * 250, blocked_reason="y" * 400) for h in HISTORY.blocked)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOKS)
def test_a_report_fits_every_screen_and_breaks_no_rule(browser: Browser, name: str, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(overview.html(LOOKS[name]))
    for width in (DESK, PHONE):
        for dark in (False, True):
            browser.show(file.as_uri(), width, dark=dark)
            assert browser.complaints() == []
            assert_fits(browser)
            if pictures := os.environ.get("RECRAWL_PICTURES"):
                browser.picture(Path(pictures) / f"{name}-{width}{'-dark' if dark else ''}.png")


def assert_fits(browser: Browser) -> None:
    """Nothing scrolls sideways but tables of numbers, no text of a chart is cut off, no code is out of its box."""
    wide = browser.run(
        """
        const width = document.documentElement.clientWidth, wide = [];
        if (document.documentElement.scrollWidth > width) wide.push("the page");
        for (const e of document.querySelectorAll("main *, header *")) {
            if (e.closest(".scroll")) continue;
            const box = e.getBoundingClientRect();
            if (box.width && (box.right > width + 0.5 || box.left < -0.5)) wide.push(e.outerHTML.slice(0, 80));
        }
        for (const text of document.querySelectorAll("figure text")) {
            const box = text.getBoundingClientRect(), figure = text.closest("figure").getBoundingClientRect();
            if (box.width && (box.right > figure.right || box.left < figure.left)) wide.push(text.outerHTML);
        }
        return wide;
        """
    )
    assert wide == []


def test_the_search_has_a_line_of_its_own_where_it_is_narrow(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(overview.html(replace(report(), live=True)))
    for width in (DESK, PHONE):
        browser.show(file.as_uri(), width)
        field = browser.run("return document.querySelector('header form input').getBoundingClientRect().width")
        assert field > 0.6 * width


def test_a_card_without_a_chart_is_not_stretched_beside_one(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(overview.html(report(FIGURES, History())))
    browser.show(file.as_uri())
    high = "return document.getElementById(arguments[0]).getBoundingClientRect().height"
    heights = {name: browser.run(high, name) for name in ("waiting", "visits", "freshness", "fetches")}
    assert heights["waiting"] < heights["visits"] / 2 and heights["freshness"] == heights["fetches"]


def test_labels_of_an_axis_do_not_touch(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(overview.html(report()))
    for width in (DESK, PHONE):
        browser.show(file.as_uri(), width)
        gaps = browser.run(
            """
            return [...document.querySelectorAll(".plot")].flatMap(plot => {
                const texts = [...plot.querySelectorAll("text.x")].map(t => t.getBoundingClientRect());
                const boxes = texts.filter(box => box.width);
                return boxes.slice(1).map((box, i) => box.left - boxes[i].right);
            });
            """
        )
        assert len(gaps) >= 6 and min(gaps) > 4


def test_a_plot_tells_its_numbers_by_keyboard_and_pointer(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(overview.html(report()))
    browser.show(file.as_uri())
    browser.run("document.querySelector('#fetches .plot').focus()")

    def at_the_end() -> str:
        """Presses the key each time: the browser may ignore one right after the page has loaded."""
        browser.press("End")
        return browser.text("#fetches output")

    until(at_the_end)
    browser.press("ArrowLeft")
    told = browser.text("#fetches output")
    rows = browser.run(
        "return [...document.querySelectorAll('#fetches tr[data-x]')].map(r => [...r.cells].map(c => c.textContent))"
    )
    names = browser.run("return [...document.querySelectorAll('#fetches thead th')].map(h => h.textContent)")
    second = rows[1]
    assert told == " · ".join([second[0], *(f"{n} {v}" for n, v in zip(names[1:], second[1:], strict=True))])
    browser.press("Tab")
    assert browser.text("#fetches output") == ""

    left, top = browser.run(
        """
        const plot = document.querySelector("#waiting .plot");
        plot.scrollIntoView({ block: "center" });
        return [plot.getBoundingClientRect().left, plot.getBoundingClientRect().top];
        """
    )

    def pointed_at(x: float, y: float) -> str:
        browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        return browser.text("#waiting output")

    until(lambda: "the gap of their host" in pointed_at(left + 2, top + 50))
    until(lambda: pointed_at(1, 1) == "")


def test_everything_can_be_reached_by_keyboard_and_seen_to_be(browser: Browser, dashboard: Dashboard) -> None:
    browser.show(dashboard.address)
    reached: list[str] = []
    for _ in range(80):
        browser.press("Tab")
        at: dict[str, Any] = browser.run(
            """
            const e = document.activeElement, box = e.getBoundingClientRect();
            return {what: e.className || e.id || e.tagName, ring: getComputedStyle(e).outlineStyle, width: box.width,
                    left: box.left, top: e.getBoundingClientRect().top + scrollY, body: e === document.body};
            """
        )
        if at["body"] and reached:
            break
        if at["body"]:  # the browser may ignore a key that comes right after the page
            continue
        assert at["ring"] == "solid" and at["width"] > 0 and at["left"] >= 0, at
        reached.append(str(at["what"]))
    assert reached[0] == "skip" and reached[1] == "name"
    assert {"INPUT", "pause", "SUMMARY", "copy"} <= set(reached)


def test_the_skip_link_leads_past_the_head(browser: Browser, dashboard: Dashboard) -> None:
    browser.show(dashboard.address)

    def reaches_the_link() -> bool:
        """Presses the key each time: the browser may ignore one right after the page has loaded."""
        browser.press("Tab")
        return bool(browser.run("return document.activeElement.className") == "skip")

    until(reaches_the_link)
    browser.press("Enter")
    assert browser.run("return document.activeElement.id") == "main"


# -- live --


@pytest.fixture
def dashboard(url: str, crawl: Crawl, monkeypatch: pytest.MonkeyPatch) -> Iterator[Dashboard]:
    monkeypatch.setattr("recrawl.view.parts.page.REFRESH_SECONDS", 0.4)
    monkeypatch.setattr(served, "REMEMBERED_SECONDS", 0.0)
    crawl.add(*(f"http://h{i}.test/{page}" for i in range(5) for page in range(20)))
    crawl.tick()
    with serving(url) as server:
        yield server


def test_the_search_explains_a_page_and_a_host(browser: Browser, dashboard: Dashboard) -> None:
    for width, dark in itertools.product((DESK, PHONE), (False, True)):
        browser.show(dashboard.address, width, dark=dark)
        box = browser.find("input[type=search]")
        box.send_keys("http://H1.test/3\n")
        until(lambda: "Why is it not fetched now?" in browser.text("main"))
        assert browser.complaints() == []
        assert_fits(browser)
        if pictures := os.environ.get("RECRAWL_PICTURES"):
            browser.picture(Path(pictures) / f"page-{width}{'-dark' if dark else ''}.png")
        browser.find("input[type=search]").clear()
        browser.find("input[type=search]").send_keys("h1.test\n")
        until(lambda: "gap between two requests" in browser.text("main"))
        assert_fits(browser)
        if pictures:
            browser.picture(Path(pictures) / f"host-{width}{'-dark' if dark else ''}.png")


def test_the_page_stays_current_and_keeps_what_somebody_does(
    browser: Browser, dashboard: Dashboard, crawl: Crawl
) -> None:
    browser.show(dashboard.address)
    browser.find("#jobs summary").click()
    browser.find("input[type=search]").send_keys("half a wo")
    browser.run("document.querySelector('#jobs summary').focus(); scrollTo(0, 300)")
    where = browser.run("return scrollY")
    assert "paused" not in browser.text(".verdict h1").lower()
    crawl.value("select pause()")
    until(lambda: "paused" in browser.text(".verdict h1").lower())
    assert browser.run("return document.querySelector('#jobs').open")
    assert browser.run("return document.activeElement.parentElement.id") == "jobs"
    assert browser.run("return document.querySelector('input').value") == "half a wo"
    anchored = browser.run("return scrollY") - where
    assert abs(anchored) < 120
    assert browser.complaints() == []


def test_it_can_be_held(browser: Browser, dashboard: Dashboard, crawl: Crawl) -> None:
    browser.show(dashboard.address)
    browser.find("#pause").click()
    held = browser.text(".as-of")
    crawl.value("select pause()")
    browser.run("return new Promise(done => setTimeout(done, 1500))")
    assert browser.text(".as-of") == held
    browser.find("#pause").click()
    until(lambda: "paused" in browser.text(".verdict h1").lower())


def test_a_database_that_goes_and_comes_is_told_on_the_page(
    browser: Browser, dashboard: Dashboard, url: str, on_server: Callable[..., None]
) -> None:
    name = make_url(url).database or ""
    browser.show(dashboard.address)
    try:
        on_server("alter database {} with allow_connections false", name)
        until(lambda: "The database does not answer" in browser.text("h1"))
        assert browser.find("#freshness"), "the last figures stay"
        browser.show(dashboard.address)
        assert "The database does not answer" in browser.text("h1")
    finally:
        on_server("alter database {} with allow_connections true", name)
    until(lambda: "The database does not answer" not in browser.text("h1"))
    until(lambda: browser.run("return !!document.querySelector('#freshness')"))


def test_a_dashboard_that_ended_is_told_on_the_page(
    browser: Browser, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recrawl.view.parts.page.REFRESH_SECONDS", 0.4)
    with serving(url) as server:
        browser.show(server.address)
    until(lambda: "does not answer" in browser.text("#news"))
    assert browser.find("#freshness")


def test_what_is_to_be_done_can_be_copied(browser: Browser, dashboard: Dashboard, crawl: Crawl) -> None:
    crawl.value("select pause()")
    browser.show(dashboard.address)
    browser.tell("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
    browser.find("#pause").click()
    browser.find(".verdict .copy").click()
    until(lambda: browser.text(".verdict .copy") in ("Copied", "Selected"))


def test_it_works_without_a_script(browser: Browser, dashboard: Dashboard) -> None:
    browser.show(dashboard.address, PHONE, scripts=False)
    try:
        browser.find("input[type=search]").send_keys("h1.test\n")
        until(lambda: "/find?q=h1.test" in browser.driver.current_url)
        assert "gap between two requests" in browser.driver.page_source
        assert "<noscript>" in browser.driver.page_source
    finally:
        browser.tell("Emulation.setScriptExecutionDisabled", value=False)
