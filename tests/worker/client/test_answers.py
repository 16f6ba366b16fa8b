"""How an answer becomes a report, for any answer of a server and any HTTP library."""

import json
from datetime import UTC, datetime

import httpx
import pytest

from recrawl.client import fingerprint
from recrawl.client.answers import absolute, request_headers, result_of

URL = "http://a.example/dir/page"


def test_validators_come_back_with_the_next_request() -> None:
    headers = request_headers("me", 'W/"7"', datetime(1994, 11, 6, 8, 49, 37, tzinfo=UTC))
    assert headers == {
        "User-Agent": "me", "If-None-Match": 'W/"7"', "If-Modified-Since": "Sun, 06 Nov 1994 08:49:37 GMT"
    }  # fmt: skip
    assert request_headers("me", None, None) == {"User-Agent": "me"}


@pytest.mark.parametrize(
    "headers",
    [
        {"ETag": '"1"', "Last-Modified": "Sun, 06 Nov 1994 08:49:37 GMT"},
        {"etag": '"1"', "LAST-MODIFIED": "Sunday, 06-Nov-94 08:49:37 GMT"},
        {b"Etag": b'"1"', b"last-modified": b"Sun Nov  6 08:49:37 1994"},
        httpx.Headers({"ETag": '"1"', "Last-Modified": "Sun, 06 Nov 1994 09:49:37 +0100"}),
    ],
    ids=["dict", "old date", "bytes", "httpx"],
)
def test_headers_may_come_from_any_library(headers: dict[str, str]) -> None:
    result = result_of(URL, 304, headers)
    assert result == {"status": 304, "etag": '"1"', "last_modified": "1994-11-06T08:49:37+00:00"}


@pytest.mark.parametrize("etag", ['"é"', '"é"'.encode(), '"é"'.encode("latin-1"), '"a\tb"', '"a\r\nb"'])
def test_an_etag_that_cannot_be_sent_back_is_left_out_of_the_next_request(etag: str | bytes) -> None:
    given: dict[str, str] = {"ETag": etag}  # type: ignore[dict-item]  # as libraries give them
    assert (stored := result_of(URL, 200, given)["etag"])
    assert "If-None-Match" not in httpx.Request("GET", URL, headers=request_headers("me", stored, None)).headers


@pytest.mark.parametrize("date", ["yesterday", "", "Sun, 99 Nov 1994 08:49:37 GMT", "0", "\0"])
def test_dates_that_nobody_can_read_are_left_out(date: str) -> None:
    assert result_of(URL, 200, {"Last-Modified": date}) == {"status": 200}


def test_content_is_hashed_and_text_sketched_only_where_it_is_the_page() -> None:
    ok = result_of(URL, 200, body=b"<p>words", text="some words of a page")
    assert ok["content_hash"] == fingerprint.xxh3(b"<p>words")
    assert ok["sketch"] == fingerprint.sketch("some words of a page")
    assert result_of(URL, 200, body="<p>words")["content_hash"] == ok["content_hash"]
    assert result_of(URL, 404, body=b"not found", text="not found", links=["/"]) == {"status": 404}


def test_links_are_resolved_and_what_is_no_page_is_left_out() -> None:
    links = [
        "/x",
        "y?z#part",
        "//b.example/",
        "HTTPS://C.example",
        "mailto:me",
        "javascript:x()",
        "http://[",
        " /s\n",
        "",
    ]
    assert result_of(URL, 200, links=links)["links"] == [
        "http://a.example/x", "http://a.example/dir/y?z#part", "http://b.example/", "HTTPS://C.example",
        "http://a.example/s", URL,
    ]  # fmt: skip
    assert result_of(URL, 200, links=[])["links"] == []
    assert "links" not in result_of(URL, 200)


def test_a_link_that_is_no_text_does_not_harm_the_others() -> None:
    """As of an <a> without href. A regular expression on bytes finds bytes."""
    assert result_of(URL, 200, links=["/x", None, 5, b"/y"])["links"] == ["http://a.example/x", "http://a.example/y"]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirects_say_where_to(status: int) -> None:
    assert result_of(URL, status, {"Location": "../new"}) == {"status": status, "redirect_to": "http://a.example/new"}
    assert result_of(URL, status, {"Location": "ftp://a.example/"}) == {"status": status}
    assert result_of(URL, status) == {"status": status}


@pytest.mark.parametrize("location", ["/wörter", "/wörter".encode(), "/wörter".encode("latin-1")])
def test_redirects_may_be_said_in_any_letters(location: str | bytes) -> None:
    headers: dict[str, str] = {"Location": location}  # type: ignore[dict-item]  # as libraries give them
    assert result_of(URL, 302, headers)["redirect_to"] == "http://a.example/wörter"


def test_retry_after_counts_where_a_host_asks_to_be_left_alone() -> None:
    assert result_of(URL, 429, {"Retry-After": "120"}) == {"status": 429, "retry_after": "120"}
    assert result_of(URL, 503, {"Retry-After": "soon"})["retry_after"] == "soon"  # Postgres decides
    assert result_of(URL, 200, {"Retry-After": "120"}) == {"status": 200}


def test_what_json_in_postgres_cannot_hold_is_cleaned_away() -> None:
    result = result_of(URL, 200, {"ETag": '"\0\ud800x"'}, links=["/a\0b", "/c\udfffd"])
    assert result["etag"] == '"x"'
    assert result["links"] == ["http://a.example/ab", "http://a.example/cd"]
    assert "\\u0000" not in json.dumps(result)


def test_a_host_name_that_is_not_ascii_gets_its_ascii_form() -> None:
    links = ["//b\u00fccher.example/\u00fc", "https://M\u00dcNCHEN.example:8080?q", "/d\u00fc", "http://a.example/"]
    result = result_of(URL, 200, links=links)
    assert result_of(URL, 301, {"Location": links[0]})["redirect_to"] == "http://xn--bcher-kva.example/\u00fc"
    assert result["links"] == [
        "http://xn--bcher-kva.example/\u00fc", "https://xn--mnchen-3ya.example:8080?q", "http://a.example/d\u00fc",
        "http://a.example/",
    ]  # fmt: skip


def test_a_link_of_any_length_and_kind_breaks_nothing() -> None:
    for link in ["http://" + "a" * 5000, "http://a:99999999/", "http://\u212a/", "::::", "http://[::1", "?" * 100]:
        absolute(URL, link)
