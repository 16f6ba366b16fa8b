"""Draws docs/dashboard.png and its dark twin, the head of the dashboard of a made-up crawl: `make picture`."""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from recrawl.view import overview
from worker.view.browser import DESK, open_browser
from worker.view.reports import report


def draw(file: Path, *, dark: bool) -> None:
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = Path(folder) / "dashboard.html"
        page.write_text(overview.html(report()))
        browser.show(page.as_uri(), DESK, dark=dark)
        bottom = browser.run("return document.querySelector('[data-part=budget]').getBoundingClientRect().bottom")
        browser.picture(file, height=int(bottom) + 20)
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(160).save(file, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1], "dashboard.png"), dark=False)
    draw(Path(sys.argv[1], "dashboard-dark.png"), dark=True)
