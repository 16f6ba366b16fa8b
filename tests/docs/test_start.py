"""docs/start.md, done as a reader does it: the same commands and statements, the same answers, against a real web."""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest

from docs.reader import Reader, blocks
from helpers import eventually
from web import Answer, Request, Web, links

ROOT = Path(__file__).parents[2]
START = ROOT / "docs/start.md"
HOST = "127.0.0.2"
GAP = 1.0  # seconds
PATHS = ["/", "/a", "/b"]


def a_site(request: Request) -> Answer:
    if request.path == "/robots.txt":
        return Answer(404)
    return Answer(200, links([*PATHS, "http://127.0.0.3/elsewhere"]), {"Content-Type": "text/html"})


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(a_site) as web:
        yield web


def without_times(table: str) -> list[str]:
    """The rows of psql's answer; blanks depend on how long the times are."""
    timeless = re.sub(r"\d{4}-\d\d-\d\d [\d:.]+[+-]\d\d", "(a time)", table)
    return [
        re.sub(r"[ -]+", " ", line).strip() for line in timeless.splitlines() if not re.match(r"\(\d+ rows?\)|$", line)
    ]


def test_from_nothing_to_a_crawl(open_folder: Path, tmp_path: Path, web: Web) -> None:
    by_sql, of_a_site = START.read_text().split("\n## A crawl of a site\n")
    reader = Reader(tmp_path, open_folder / "started")
    assert ("sh", "recrawl up\n") in blocks(by_sql)
    with reader.leaves_running("recrawl up") as said:
        found = eventually(lambda: re.search(r"^export DATABASE_URL='(.*)'$", said.read_text(), re.MULTILINE))
        eventually(lambda: "at work" in said.read_text())
        assert found
        reader.environment["DATABASE_URL"] = found[1]
        crawls_by_sql(reader, by_sql)
        crawls_a_site(reader, of_a_site, web)


def crawls_by_sql(reader: Reader, text: str) -> None:
    _, _, after = text.partition("\n## A crawl by SQL alone\n")
    steps = blocks(after)
    assert [language for language, _ in steps] == ["sql", "text"] * 5, "five statements, each with its answer"
    for (_, statement), (_, answer) in zip(steps[::2], steps[1::2], strict=True):
        given = eventually(partial(rows_of, reader, statement), 10, "an answer")
        assert given == without_times(answer)


def rows_of(reader: Reader, statement: str) -> list[str]:
    """None while there is nothing but a head."""
    rows = without_times(reader.says("recrawl psql", statement))
    return rows if len(rows) > 2 else []


def crawls_a_site(reader: Reader, text: str, web: Web) -> None:
    text = text.replace(r"www\.example\.net/", rf"{re.escape(HOST)}:{web.port}/")
    text = text.replace("https://www.example.net/", f"http://{HOST}:{web.port}/")
    (excludes,) = [said for language, said in blocks(text) if language == "sql"]
    adds, crawler, looks = [said for language, said in blocks(text) if language == "sh"]
    reader.says("recrawl psql", excludes)
    assert "1 new" in reader.says(adds)

    (program,) = [said for language, said in blocks((ROOT / "README.md").read_text()) if language == "py"]
    (reader.folder / "crawler.py").write_text(program)
    with reader.leaves_running(crawler) as said:
        eventually(lambda: {entry.path for entry in web.log} >= {"/robots.txt", *PATHS}, 60, "all is found")
        with psycopg.connect(reader.environment["DATABASE_URL"]) as connection:
            reported = "select count(*) = 3 from recrawl.page_status where host = %s and fetches = 1"
            eventually(lambda: connection.execute(reported, [HOST]).fetchone() == (True,), 30, "all is reported")
        assert looks.splitlines()[0].startswith("recrawl status") and "The crawl " in reader.says(looks)
    assert said.read_text() == "", "the crawler prints nothing"
    assert (reader.folder / "recrawl.html").exists()
    assert [entry.path for entry in web.log][:2] == ["/robots.txt", "/"]
    assert {entry.host for entry in web.log} == {HOST}, "it stays where it may go"
    assert len(web.log) == 1 + len(PATHS), "nothing is fetched before it is due"
    # A log is of what arrives: the first request of a process takes its time on the way.
    assert web.apart(HOST)[1] > GAP - 0.05
