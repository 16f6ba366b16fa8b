"""docs/start.md, done as a reader does it: the same commands and statements, the same answers, against a real web."""

import os
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from crawler import LATE, with_start_times
from docs import results
from docs.reader import Reader, blocks
from helpers import eventually
from web import Answer, Request, Web, links

ROOT = Path(__file__).parents[2]
START = ROOT / "docs/start.md"
HOST = "127.0.0.2"
SITE = "\n## A crawl of a site\n"
GAP = 1.0  # seconds
FIRST_LOOK = 50  # seconds: after a minute the worker has run its jobs, and the screens show more than the document
PATHS = ["/", "/a", "/b"]


def a_site(request: Request) -> Answer:
    if request.path == "/robots.txt":
        return Answer(404)
    return Answer(200, links([*PATHS, "http://127.0.0.3/elsewhere"]), {"Content-Type": "text/html"})


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(a_site) as web:
        yield web


def test_from_nothing_to_a_crawl(open_folder: Path, tmp_path: Path, web: Web) -> None:
    by_sql, of_a_site = START.read_text().split(SITE)
    reader = Reader(tmp_path, open_folder / "started")
    assert ("sh", "recrawl up\n") in blocks(by_sql)
    with reader.leaves_running("recrawl up") as said:
        found = eventually(lambda: re.search(r"^export DATABASE_URL='(.*)'$", said.read_text(), re.MULTILINE))
        eventually(lambda: "at work" in said.read_text())
        began = time.monotonic()
        assert found
        reader.environment["DATABASE_URL"] = found[1]
        crawls_by_sql(reader, by_sql)
        crawls_a_site(reader, of_a_site, web, began)


def crawls_by_sql(reader: Reader, text: str) -> None:
    _, _, after = text.partition("\n## A crawl by SQL alone\n")
    steps = results.steps(after)
    assert [step.language for step in steps] == ["sql"] * 5 and all(step.answer for step in steps)
    for step in steps:
        given = eventually(partial(rows_of, reader, step.text), what="an answer")
        assert step.agrees(given), given


def rows_of(reader: Reader, statement: str) -> str:
    """Nothing while there is nothing but a head."""
    answer = reader.says("recrawl psql -q -P footer=off", statement)
    return answer if len(answer.strip().splitlines()) > 2 else ""


def crawls_a_site(reader: Reader, text: str, web: Web, began: float) -> None:
    def here(command: str) -> str:
        return command.replace("https://www.example.net/", f"http://{HOST}:{web.port}/")

    def there(answer: str) -> str:
        answer = answer.replace(f"http://{HOST}:{web.port}/", "https://www.example.net/")
        return answer.replace(HOST, "www.example.net")

    adds, crawler, status, explain, report = results.steps(text)
    assert adds.agrees(reader.says(here(adds.text)))

    readme = (ROOT / "README.md").read_text()
    first_crawl = readme.partition("\n## Your first crawl of one site\n")[2].partition("```py")[0]
    for typed in (adds.text, crawler.text, status.text):
        assert typed.strip() in first_crawl, "the README and this page have the same commands"
    (program,) = [said for language, said in blocks(readme) if language == "py"]
    (reader.folder / "crawler.py").write_text(with_start_times(program))
    with reader.leaves_running(crawler.text) as said:
        eventually(lambda: {entry.path for entry in web.log} >= {"/robots.txt", *PATHS}, what="all is found")
        with psycopg.connect(reader.environment["DATABASE_URL"]) as connection:
            reported = "select count(*) = 3 from recrawl.page_status where host = %s and successes = 1"
            eventually(lambda: connection.execute(reported, [HOST]).fetchone() == (True,), what="all is reported")
        for step in (explain, status):  # from the last to the first, so that places stay
            answer = there(reader.says(here(step.text)))
            assert "The crawl " in answer or step is explain
            if time.monotonic() - began > FIRST_LOOK:
                continue
            if os.environ.get("UPDATE_GOLDEN") and not step.agrees(answer):
                results.written(START, step, answer, after=SITE)
            else:
                assert step.agrees(answer), answer
        reader.says(report.text)
    assert said.read_text() == "", "the crawler prints nothing"
    assert (reader.folder / "crawl.html").exists()
    assert [entry.path for entry in web.log][:2] == ["/robots.txt", "/"]
    assert {entry.host for entry in web.log} == {HOST}, "it stays where it may go"
    assert len(web.log) == 1 + len(PATHS), "nothing is fetched before it is due"
    assert web.apart(HOST)[0] > GAP - LATE
