"""`recrawl explain` as a user has it."""

import json
import re
from urllib.parse import urlsplit

import psycopg
import pytest

from worker.cli.test_cli import acting_as, error, output, recrawl

URL = "https://example.com/" + "a-long-path/" * 20


@pytest.fixture
def page(connection: psycopg.Connection) -> str:
    connection.execute("select recrawl.add_pages(array[%s])", [URL])
    connection.execute("select recrawl_internal.tick(100, 100)")
    return URL


def test_a_page_is_explained_in_eighty_columns_by_its_url_in_any_spelling_or_its_id(url: str, page: str) -> None:
    text = output(url, "explain", "HTTPS" + page.removeprefix("https") + "#top")
    assert page in text, "to be copied in one piece"
    said = [line for line in text.splitlines() if page not in line]
    assert max(map(len, said)) <= 80
    assert [line.split()[0] for line in text.splitlines() if line[0] != " "] == [
        "page", "now", "last", "often", "changes", "value",
    ]  # fmt: skip
    assert re.search(r"^now +New: it was never handed out\.", text, re.MULTILINE)
    assert re.search(r"^ +SELECT recrawl\.fetch_now\('\{1\}'\);$", text, re.MULTILINE)
    by_id = output(url, "explain", "1")
    assert by_id.split("now", 1)[0] == text.split("now", 1)[0] and "SELECT recrawl.fetch_now('{1}');" in by_id


def test_programs_get_a_row_a_line(url: str, page: str) -> None:
    rows = [json.loads(line) for line in output(url, "explain", page, "--json").splitlines()]
    assert [row["topic"] for row in rows] == ["page", "now", "last", "often", "changes", "value"]
    assert set(rows[1]) == {"topic", "code", "says", "fix", "detail"}
    assert rows[1]["code"] == "new_crawlers" and rows[1]["detail"]["pages_before"] == 0


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("https://example.org/", "not in the crawl"),
        ("7", "page_id 7"),
        ("mailto:me@example.org", "http"),
        ("", "empty"),
    ],
)
def test_what_is_no_page_is_explained_too_and_the_exit_code_says_so(url: str, page: str, what: str, said: str) -> None:
    done = recrawl(url, "explain", what)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith("now ") and said in done.stdout


def test_the_name_of_a_known_host_is_explained(url: str, page: str) -> None:
    assert "This is a host, with 1 page." in output(url, "explain", urlsplit(page).netloc)


@pytest.mark.parametrize("what", ["http://münchen.example/a", "münchen.example"])
def test_a_host_may_be_typed_as_people_write_it(url: str, what: str) -> None:
    output(url, "add", "http://münchen.example/a")
    assert "xn--mnchen-3ya.example" in output(url, "explain", what)


def test_what_a_reader_may_ask_a_crawler_may_not(url: str, page: str) -> None:
    assert output(acting_as(url, "recrawl_reader"), "explain", page)
    assert "GRANT recrawl_reader" in error(acting_as(url, "recrawl_crawler"), "explain", page)


def test_what_others_wrote_does_not_steer_a_terminal(url: str, page: str, connection: psycopg.Connection) -> None:
    connection.execute("select recrawl.block_host('example.com', reason => %s)", ["\x1b]0;mine\x07\x1b[2J\u202eok\nok"])
    said = output(url, "explain", page)
    assert "mine" in said and not set(said) & set("\x1b\x07\u202e")
    assert all(
        line.startswith((" ", "page", "now", "and", "last", "often", "changes", "value")) for line in said.splitlines()
    )
