"""The importers give the pages that a file lists, or the line at which it cannot be read."""

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.intake.importers import (
    LONGEST_LINE,
    BadLine,
    ImportFileError,
    Reader,
    csv_pages,
    nutch,
    open_text,
    pages_in,
    reader_for,
    short_lines,
    url_lines,
)
from recrawl.store.calls import PageToAdd

A, B = "http://example.com/a", "http://example.com/b"


def lines(text: str) -> Iterator[str]:
    return iter(text.splitlines(keepends=True))


def refusal(reader: Reader, text: str) -> str:
    with pytest.raises(ImportFileError) as raised:
        list(reader(lines(text)))
    message = str(raised.value)
    assert "\n" not in message
    return message


# -- lists of URLs --


def test_a_plain_list_has_one_url_a_line() -> None:
    assert list(url_lines(lines(f"{A}\n{B}"))) == [PageToAdd(A), PageToAdd(B)]


def test_blank_lines_and_comments_name_no_page() -> None:
    assert list(url_lines(lines(f"# seeds\n\n  \n{A}\n  # more\n{B}#top\n"))) == [PageToAdd(A), PageToAdd(B + "#top")]


@pytest.mark.parametrize("reader", [csv_pages, url_lines])
def test_a_list_written_on_windows_reads_like_any_other(reader: Reader, tmp_path: Path) -> None:
    header = "url\r\n" if reader is csv_pages else ""
    (tmp_path / "list").write_bytes(f"\ufeff{header}{A}\r\n\r\n{B}\r\n".encode())
    with open_text(str(tmp_path / "list")) as text:
        assert list(reader(text)) == [PageToAdd(A), PageToAdd(B)]


def test_an_empty_file_lists_no_page() -> None:
    assert list(url_lines([])) == []


@pytest.mark.parametrize(
    ("reader", "head", "line"),
    [
        (url_lines, [], "{url}"),
        (csv_pages, ["url"], "{url}"),
        (url_lines, [], '{{"discovered":{{"info":{{"url":"{url}"}}}}}}'),
    ],
)
def test_a_file_without_end_is_read_as_it_comes(reader: Reader, head: list[str], line: str) -> None:
    def endless() -> Iterator[str]:
        yield from head
        yield from (line.format(url=f"http://example.com/{n}") for n in count())

    assert [page[0] for page in islice(reader(endless()), 3)] == [f"http://example.com/{n}" for n in range(3)]


# -- csv --


def test_a_csv_row_gives_url_value_and_rate_in_the_order_of_its_header() -> None:
    assert list(csv_pages(lines(f"rate,URL , value\n0.5,{A},3\n1e-3,{B},-2.5\n"))) == [
        PageToAdd(A, value=3.0, rate=0.5),
        PageToAdd(B, value=-2.5, rate=0.001),
    ]


def test_a_csv_row_says_when_its_page_is_due() -> None:
    noon = datetime(2026, 11, 22, 12, tzinfo=UTC)
    cells = ["2026-11-22T12:00:00Z", "2026-11-22 14:00:00+02", "2026-11-22 12:00:00.000+00:00"]
    assert list(csv_pages(lines(f"due,url\n{cells[0]},{A}\n{cells[1]},{A}\n{cells[2]},{A}\n,{B}\n"))) == [
        *([PageToAdd(A, due=noon)] * 3),
        PageToAdd(B),
    ]


@pytest.mark.parametrize("cell", ["2026-11-22T12:00:00", "yesterday", "1763812800", "2026-13-01T00:00:00Z"])
def test_a_due_time_that_cannot_be_meant_is_told(cell: str) -> None:
    problem = f"due must be a time with its zone, like 2026-11-22T09:30:00Z, got {cell!r}"
    assert list(csv_pages(lines(f"url,due\n{A},{cell}\n{B},\n"))) == [BadLine("line 2", problem), PageToAdd(B)]


def test_an_empty_cell_is_not_zero_but_not_given() -> None:
    assert list(csv_pages(lines(f"url,value,rate\n{A},,0\n{B},0,\n"))) == [
        PageToAdd(A, rate=0.0),
        PageToAdd(B, value=0.0),
    ]


def test_a_quoted_url_may_contain_commas_and_quotes() -> None:
    assert list(csv_pages(lines('url,value\n"http://example.com/?q=a,""b""",1\n'))) == [
        PageToAdd('http://example.com/?q=a,"b"', value=1.0)
    ]


def test_rows_without_any_content_name_no_page() -> None:
    assert list(csv_pages(lines(f"\nurl,value\n\n{A},1\n,\n"))) == [PageToAdd(A, value=1.0)]


@pytest.mark.parametrize(
    ("text", "message"),
    {
        "": "header: column 'url' is missing",
        "value,rate\n1,2\n": "header: column 'url' is missing",
        "url,title\n": "header: unknown column 'title'; known are url, value, rate, due",
        "url;value\n": "header: unknown column 'url;value'; known are url, value, rate, due",
        "url,value,URL\n": "header: column 'url' appears twice",
        f'"url\n{A}\n': "line 1: not CSV: unexpected end of data",
    }.items(),
)
def test_csv_that_cannot_be_read_is_refused_with_the_line_and_the_reason(text: str, message: str) -> None:
    assert refusal(csv_pages, text) == message


@pytest.mark.parametrize(
    ("text", "where", "problem"),
    [
        (f"url,rate\n{A},1\n\n{A},abc\n", "line 4", "rate must be a number, got 'abc'"),
        (f"url,value\n{A},nan\n", "line 2", "value must be a number, got 'nan'"),
        (f"url,value\n{A},-inf\n", "line 2", "value must be a number, got '-inf'"),
        (f'url,value\n{A},"1\n', "line 2", "not CSV: unexpected end of data"),
        (f'url,value\n"{A}"x,1\n', "line 2", "not CSV: ',' expected after '\"'"),
        ("url,value\n,1\n", "line 2", "url is empty"),
        (f"url,value\n{A}\n", "line 2", "1 cells under a header of 2 (a URL with a comma must be quoted)"),
        (f"url,value\n{A}?b,c,1\n", "line 2", "3 cells under a header of 2 (a URL with a comma must be quoted)"),
    ],
)
def test_a_bad_row_is_told_and_the_reading_goes_on(text: str, where: str, problem: str) -> None:
    *_, bad, last = csv_pages(lines(f"{text}{B},1\n"))
    assert (bad, last) == (BadLine(where, problem), PageToAdd(B, *([1.0] if "value" in text else [None, 1.0])))


# -- Nutch --

NUTCH = (
    "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,Retry interval seconds,"
    "Retry interval days,Score,Signature,Metadata\n"
)
REST = 'Thu Jan 01 00:00:00 UTC 1970,0,2592000.0,30.0,1.0,"null","_pst_:success(1), lastModified=0|||"'


def test_a_page_of_nutch_is_due_at_its_fetch_time_and_one_it_never_fetched_is_new() -> None:
    dump = NUTCH
    dump += f'"{A}",2,"db_fetched",Tue Dec 22 09:30:00 UTC 2026,{REST}\n'
    dump += f'"{B}",1,"db_unfetched",Sun Nov 22 09:30:00 UTC 2026,{REST}\n'
    dump += NUTCH + f'"{A}?a="b",c",6,"db_notmodified",Tue Dec 22 09:30:00 UTC 2026,{REST}\n\n'
    due = datetime(2026, 12, 22, 9, 30, tzinfo=UTC)
    assert list(nutch(lines(dump))) == [PageToAdd(A, due=due), PageToAdd(B), PageToAdd(f'{A}?a="b",c', due=due)]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            f'"{A}",2,"db_fetched",Tue Dec 22 10:30:00 CET 2026,{REST}',
            "Fetch Time must be in UTC (let Nutch run with TZ=UTC), got 'Tue Dec 22 10:30:00 CET 2026'",
        ),
        (f'"{A}",2,"db_fetched",,{REST}', "Fetch Time must be in UTC (let Nutch run with TZ=UTC), got ''"),
        (
            "of metadata that has lines",
            "must begin with Url, Status code, Status name, got 'of metadata that has lines'",
        ),
        (f"{A},2,db_fetched", f"must begin with Url, Status code, Status name, got '{A},2,db_fetched'"),
        ('"' + "x" * LONGEST_LINE, "longer than 1,000,000 characters"),
    ],
)
def test_a_row_of_nutch_that_cannot_be_read_is_told_and_the_reading_goes_on(row: str, problem: str) -> None:
    after = f'"{B}",1,"db_unfetched",Sun Nov 22 09:30:00 UTC 2026,{REST}\n'
    assert list(nutch(lines(f"{NUTCH}{row}\n{after}"))) == [BadLine("line 2", problem), PageToAdd(B)]


numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Z"]), min_size=1)


@given(st.lists(st.tuples(words, numbers, numbers)))
def test_what_python_writes_as_csv_is_read_back(rows: list[tuple[str, float | None, float | None]]) -> None:
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("url", "value", "rate"), *rows])
    file.seek(0)
    assert list(csv_pages(file)) == [PageToAdd(*row) for row in rows]


# -- URLFrontier --

KNOWN = {
    "known": {
        "info": {
            "url": A,
            "key": "example.com",
            "metadata": {"depth": {"values": ["3"]}, "source": {"values": [B, A]}, "empty": {}},
            "crawlID": "DEFAULT",
        },
        "refetchableFromDate": "1626364800",
    },
    "creationDate": "1620000000",
}
KNOWN_PAGE = PageToAdd(
    A,
    due=datetime(2021, 7, 15, 16, tzinfo=UTC),
    meta={"depth": ["3"], "source": [B, A], "empty": []},
    host="example.com",
)


def known(**fields: object) -> str:
    return json.dumps({"known": {"info": {"url": A}, **fields}})


def test_a_known_url_keeps_its_date_and_its_metadata() -> None:
    assert list(url_lines([json.dumps(KNOWN)])) == [KNOWN_PAGE]


def test_a_discovered_url_is_left_to_sql() -> None:
    item = {"discovered": {"info": {"url": A, "metadata": {}}}, "ID": "x", "score": 0.5}
    assert list(url_lines([json.dumps(item)])) == [PageToAdd(A)]


@pytest.mark.parametrize(("key", "host"), [("example.com", "example.com"), ("_DEFAULT_", "_DEFAULT_"), ("a b", None)])
def test_a_key_that_can_be_a_host_is_the_host(key: str, host: str | None) -> None:
    item = {"discovered": {"info": {"url": A, "key": key}}}
    assert list(url_lines([json.dumps(item)])) == [PageToAdd(A, host=host)]


@pytest.mark.parametrize("date", [{}, {"refetchableFromDate": "0"}, {"refetchableFromDate": 0}])
def test_a_url_that_urlfrontier_has_completed_is_never_due(date: dict[str, object]) -> None:
    assert list(url_lines([known(**date)])) == [PageToAdd(A, due="infinity")]


def test_an_object_may_span_lines_as_list_urls_prints_it() -> None:
    printed = json.dumps(KNOWN, indent=2)
    assert list(url_lines(lines(f"{printed}\n{printed}\r\n{B}\n"))) == [KNOWN_PAGE, KNOWN_PAGE, PageToAdd(B)]


def test_objects_and_bare_urls_may_be_mixed() -> None:
    assert list(url_lines(lines(f"{B}\n\n# note\n  {json.dumps(KNOWN)}\n{A}\n"))) == [
        PageToAdd(B),
        KNOWN_PAGE,
        PageToAdd(A),
    ]


def test_characters_escaped_by_java_are_themselves() -> None:
    assert list(url_lines([r'{"discovered":{"info":{"url":"http://example.com/?a\u003db\u0026c"}}}'])) == [
        PageToAdd("http://example.com/?a=b&c")
    ]


def test_metadata_postgres_cannot_hold_does_not_cost_the_batch() -> None:
    metadata = {"k\0": {"values": ["\ud800", "\U0001f600"]}}
    for ascii_only in (True, False):
        item = {"discovered": {"info": {"url": A, "metadata": metadata}}}
        assert list(url_lines([json.dumps(item, ensure_ascii=ascii_only)])) == [
            PageToAdd(A, meta={"k\ufffd": ["\ufffd", "\U0001f600"]})
        ]


@pytest.mark.parametrize(
    ("text", "message"),
    {
        '{"known":': "line 1: not JSON: Expecting value, got ''",
        f"{A}\n{{nonsense}}": ("line 2: not JSON: Expecting property name enclosed in double quotes, got 'nonsense}'"),
        f"{known()} {known()}": f"line 1: not JSON: Extra data, got {known()[:40]!r}",
        '{\n  "known": {\n': "line 1: not JSON: Expecting property name enclosed in double quotes, got ''",
        "{}": "line 1: must be known or discovered, with info and url, got '{}'",
        '{"url":"http://a/"}': (
            """line 1: must be known or discovered, with info and url, got '{"url":"http://a/"}'"""
        ),
        '{"known":{"info":{"url":7}}}': (
            """line 1: must be known or discovered, with info and url, got '{"known":{"info":{"url":7}}}'"""
        ),
        '{"known":{"info":{"url":" "}}}': (
            """line 1: must be known or discovered, with info and url, got '{"known":{"info":{"url":" "}}}'"""
        ),
        known(score=1e999): "line 1: not JSON: no finite number: Infinity",
        '{"score":-1e999}': "line 1: not JSON: no finite number: -1e999",
        known(refetchableFromDate="soon"): ("line 1: refetchableFromDate must be in seconds since 1970, got 'soon'"),
        known(refetchableFromDate="18446744073709551615"): (
            "line 1: refetchableFromDate must be in seconds since 1970, got '18446744073709551615'"
        ),
    }.items(),
)
def test_json_that_cannot_be_read_is_told_with_the_line_and_the_reason(text: str, message: str) -> None:
    *_, bad = url_lines(lines(text))
    assert isinstance(bad, BadLine)
    assert f"{bad.where}: {bad.problem}" == message


def test_json_nested_beyond_reason_is_a_bad_line_too() -> None:
    (bad, page) = url_lines(['{"a":' * 200_000, A])
    assert isinstance(bad, BadLine) and page == PageToAdd(A)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["values", "url", "info"]), inner),
)


@given(
    info=st.fixed_dictionaries({}, optional={"url": json_values, "metadata": json_values}) | json_values,
    date=json_values,
)
def test_any_json_is_either_a_page_or_a_bad_line(info: object, date: object) -> None:
    (page,) = url_lines([json.dumps({"known": {"info": info, "refetchableFromDate": date}})])
    assert page.problem if isinstance(page, BadLine) else page.url


# -- files --


@pytest.mark.parametrize(
    ("name", "first_line", "reader"),
    [
        ("pages.csv", "anything", csv_pages),
        ("PAGES.CSV.GZ", "anything", csv_pages),
        ("dump.jsonl", A, url_lines),
        ("dump.ndjson.gz", A, url_lines),
        ("dump.json", A, url_lines),
        ("seeds.txt", A, url_lines),
        ("crawldb.csv", NUTCH, nutch),
        ("part-r-00000.gz", f"\ufeff{NUTCH}", nutch),
        ("seeds", f"{A}\n", url_lines),
        ("-", "", url_lines),
        ("-", "# url, value\n", url_lines),
        ("-", "http://example.com/url,value\n", url_lines),
        ("-", '{"known":{}}\n', url_lines),
        ("-", '{"ID":"1","known":{"info":{"metadata":{"a":{"values":["b","url","c"]}}}}}\n', url_lines),
        ("-", "\ufeff{\n", url_lines),
        ("-", "url\r\n", csv_pages),
        ("-", '\ufeff"Value","URL"\n', csv_pages),
        ("seeds.txt", "url,rate", csv_pages),
        ("-", "url,title\n", csv_pages),  # refused then, with the name of the column
    ],
)
def test_the_suffix_names_the_format_and_otherwise_the_first_line_does(
    name: str, first_line: str, reader: Reader, tmp_path: Path
) -> None:
    (tmp_path / "list").write_bytes(first_line.encode())
    with open_text(str(tmp_path / "list")) as text:
        assert reader_for(name, text.readline()) is reader


def test_blank_lines_before_the_first_count_as_lines() -> None:
    text = io.StringIO(f"\n \nurl,rate\n{A},x\n")
    assert list(pages_in("-", text)) == [BadLine("line 4", "rate must be a number, got 'x'")]
    assert list(pages_in("-", io.StringIO("\n\n"))) == []


def write_plain(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def write_gz(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content))


@pytest.mark.parametrize(("name", "write"), [("a.txt", write_plain), ("a.txt.gz", write_gz), ("A.GZ", write_gz)])
def test_a_file_is_unpacked_and_a_wrong_byte_does_not_stop_it(
    tmp_path: Path, name: str, write: Callable[[Path, bytes], None]
) -> None:
    write(tmp_path / name, "http://example.com/ü\r\nhttp://example.com/".encode() + b"\xff\n")
    with open_text(str(tmp_path / name)) as text:
        assert list(url_lines(text)) == [PageToAdd("http://example.com/ü"), PageToAdd("http://example.com/\udcff")]


def test_a_dash_is_standard_input_in_utf8_whatever_the_locale() -> None:
    program = (
        "from recrawl.intake.importers import *\n"
        "with open_text('-') as text: print(ascii([page.url for page in url_lines(text)]))"
    )
    done = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", program],
        input="http://example.com/ü\n".encode(),
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.stdout.decode().split() == [r"['http://example.com/\xfc']"]


# -- what has no end --


def test_an_object_that_does_not_end_costs_itself_only() -> None:
    torn = '{\n  "discovered": {\n'
    whole = f'{{"discovered": {{"info": {{"url": "{A}"}}}}}}\n'
    bad, page, bad_at_the_end = url_lines(lines(torn + whole + torn))
    assert isinstance(bad, BadLine) and bad.where == "line 1" and "not JSON" in bad.problem
    assert page == PageToAdd(A)
    assert isinstance(bad_at_the_end, BadLine) and bad_at_the_end.where == "line 4"


def test_an_object_that_is_too_long_costs_itself_only() -> None:
    long = "{\n" + '  "x",\n' * 300_000 + "}\n"
    bad, page = url_lines(lines(f"{long}{B}\n"))
    assert bad == BadLine("line 1", "longer than 1,000,000 characters")
    assert page == PageToAdd(B)


@pytest.mark.parametrize("longer", [-1, 0, 1, 5, 1_000_000])
def test_lines_are_whole_up_to_the_longest(longer: int) -> None:
    text = io.StringIO("x" * (LONGEST_LINE + longer) + f"\n{A}")
    first, second = short_lines(text)
    assert second == A
    assert first == "x" * (LONGEST_LINE + longer) + "\n" if longer < 1 else len(first) == LONGEST_LINE + 1
