"""Builds the documents as a site: `make docs`.

The pages keep their places, the README on top and the others in docs/, so links lead the same way as in the repository.
What stops the build: a link or an anchor that leads nowhere, a page that the navigation lacks, and anything that a
reader's browser would have to fetch from elsewhere.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
TOP = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")


class SiteError(Exception):
    """The documents make no site. The message says which, and why."""


def build(root: Path, folder: Path) -> Path:
    """Where the pages of the documents under root are, after building in a folder of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = folder / "pages"
    shutil.copytree(root / "docs", pages / "docs", ignore=shutil.ignore_patterns("zensical.toml"))
    for name in TOP:
        # The generator knows a block by one word behind its fence: README has `sh run` and `sh test`.
        text = (root / name).read_text()
        (pages / name).write_text(re.sub(r"^```sh (run|test)$", "```sh", text, flags=re.MULTILINE))
    config = Path(shutil.copy(root / "docs/zensical.toml", folder))
    _all_in_navigation(tomllib.loads(config.read_text())["project"]["nav"], pages)
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run(
        [str(program), "build", "--strict", "--config-file", str(config)], capture_output=True, text=True
    )
    if done.returncode:
        said = re.sub("\x1b\\[[0-9;]*m", "", done.stdout + done.stderr).partition("Traceback")[0]
        raise SiteError(said.strip())
    _nothing_from_elsewhere(folder / "site")
    return folder / "site"


def _all_in_navigation(nav: Any, pages: Path) -> None:
    listed = set(_leaves(nav))
    there = {str(page.relative_to(pages)) for page in pages.rglob("*.md")}
    if missing := sorted(there - listed):
        raise SiteError(f"not in the navigation of docs/zensical.toml: {', '.join(missing)}")
    if extra := sorted(listed - there):
        raise SiteError(f"in the navigation of docs/zensical.toml, but no page: {', '.join(extra)}")


def _leaves(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for item in nav.values() if isinstance(nav, dict) else nav:
            yield from _leaves(item)


class Fetched(HTMLParser):
    """The addresses that a browser fetches automatically to show a page, without the links that a reader follows."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses = re.findall(r"""(?:@import\s*|url\()["']?([^"')\s]+)""", page)
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            follows = tag == "a" or (tag == "link" and dict(attrs).get("rel") in ("canonical", "next", "prev"))
            if value and (name in ("src", "srcset", "data", "poster") or (name == "href" and not follows)):
                self.addresses.append(value)


def _nothing_from_elsewhere(site: Path) -> None:
    for file in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for address in Fetched(file.read_text()).addresses:
            if re.match(r"(?:https?:)?//", address):
                raise SiteError(f"{file.relative_to(site)} would be shown with {address}, which is elsewhere")


if __name__ == "__main__":
    try:
        built = build(ROOT, ROOT / "build/docs")
    except SiteError as error:
        raise SystemExit(str(error)) from None
    print(f"{built.relative_to(ROOT)}/index.html")
