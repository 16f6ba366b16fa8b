"""The documents as a site: whole, asking nobody but itself, to be read on a phone and a desk, in light and dark."""

import re
import shutil
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from threading import Thread

import pytest

from docs import site
from helpers import eventually
from worker.view.browser import DESK, PHONE, Browser, open_browser, program

SCROLLING = """
    const wide = [...document.querySelectorAll('.md-content pre > code, .md-content .md-typeset__scrollwrap')];
    return wide.filter(part => part.scrollWidth > part.clientWidth).map(part => part.textContent.trim().slice(0, 60));
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return site.build(site.ROOT, tmp_path_factory.mktemp("site") / "docs")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """The documents, to be spoilt."""
    copy = tmp_path / "checkout"
    shutil.copytree(site.ROOT / "docs", copy / "docs")
    for name in site.TOP:
        shutil.copy(site.ROOT / name, copy)
    return copy


def test_every_document_is_a_page(built: Path) -> None:
    documents = {path.stem for path in (site.ROOT / "docs").glob("*.md")}
    assert {page.stem for page in (built / "docs").glob("*.html")} == documents
    words = re.sub("<[^>]*>", "", (built / "index.html").read_text())
    assert "SELECT * FROM next_pages(100)" in words, "the README is where one comes in"


def test_no_block_of_code_is_taken_for_text(built: Path) -> None:
    assert [page.name for page in built.rglob("*.html") if "```" in page.read_text()] == []


@pytest.mark.parametrize(
    ("document", "spoilt", "complaint"),
    [
        ("README.md", "[gone](docs/gone.md)", r"README\.md"),
        ("README.md", "[gone](docs/how-to.md#gone)", "anchor does not exist"),
        ("docs/why.md", "[gone](#gone)", "anchor does not exist"),
        ("docs/new.md", "# New", r"not in the navigation of docs/zensical\.toml: docs/new\.md"),
        ("docs/why.md", "![far](https://example.com/far.png)", r"docs/why\.html .* https://example\.com/far\.png"),
        ("docs/site.css", "@import '//fonts.example.com/a.css';", r"docs/site\.css .* //fonts\.example\.com/a\.css"),
    ],
)
def test_what_is_wrong_stops_the_build(
    checkout: Path, tmp_path: Path, document: str, spoilt: str, complaint: str
) -> None:
    with (checkout / document).open("a") as file:
        file.write(f"\n{spoilt}\n")
    with pytest.raises(site.SiteError, match=complaint):
        site.build(checkout, tmp_path / "built")


def test_a_page_of_the_navigation_must_be_there(checkout: Path, tmp_path: Path) -> None:
    (checkout / "docs/explain.md").unlink()
    with pytest.raises(site.SiteError, match=r"but no page: docs/explain\.md"):
        site.build(checkout, tmp_path / "built")


# -- in a browser --


@pytest.fixture(scope="module")
def address(built: Path) -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(built))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with open_browser() as browser:
        yield browser


@pytest.mark.skipif(program() is None, reason="apt install chromium chromium-driver")
def test_every_page_fits_and_asks_nobody_else(browser: Browser, built: Path, address: str) -> None:
    for page in sorted(built.rglob("*.html")):
        browser.look(DESK, dark=False)
        browser.driver.get(f"{address}{page.relative_to(built)}")  # show() would load an empty page before each
        for width in (DESK, PHONE):
            browser.look(width, dark=False)
            overflow = browser.run("const e = document.documentElement; return e.scrollWidth - e.clientWidth")
            assert overflow <= 0, page
            scrolling = browser.run(SCROLLING) if width == DESK else []
            assert scrolling == [], f"{page} has code or a table that scrolls sideways"
        asked = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert len(asked) > 2 and [name for name in asked if not name.startswith(address)] == [], page
        assert browser.complaints() == [], page


@pytest.mark.skipif(program() is None, reason="apt install chromium chromium-driver")
def test_the_pages_follow_the_light_of_the_system(browser: Browser, address: str) -> None:
    """All pages share one style, so one page shows it."""
    browser.show(f"{address}docs/why.html")
    for width, dark in product((DESK, PHONE), (False, True)):
        browser.look(width, dark=dark)
        eventually(partial(is_lit, browser, dark), what="it is in the other light")


def is_lit(browser: Browser, dark: bool) -> bool:
    ground = browser.run("return getComputedStyle(document.body).backgroundColor.match(/[\\d.]+/g).map(Number)")
    return (sum(map(float, ground[:3])) < 3 * 128) == dark
