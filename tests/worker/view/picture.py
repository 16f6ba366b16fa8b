"""Draws docs/report.png, the head of the report of a made-up crawl: `make picture`."""

import sys
import tempfile
from pathlib import Path

from PIL import Image

from recrawl.view import overview
from worker.view.browser import DESK, open_browser
from worker.view.looks import look


def draw(file: Path) -> None:
    with tempfile.TemporaryDirectory() as folder, open_browser() as browser:
        page = Path(folder) / "report.html"
        page.write_text(overview.html(look()))
        browser.show(page.as_uri(), DESK)
        bottom = browser.run("return document.querySelector('[data-part=budget]').getBoundingClientRect().bottom")
        browser.picture(file, height=int(bottom) + 20)
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(160).save(file, optimize=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
