"""From any text comes the URL that a browser would request, in a form that SQL can store."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.intake.urls import clean, storable

any_text = st.text(st.characters(codec=None))  # codec=None: lone surrogates too

# Pieces that meet in real URLs and in broken ones; in any order, so that most rules of the parser are met.
schemes = ["http:", "https:", "HTTP:", "mailto:", "file:", "a:"]
delimiters = ["//", "/", "\\", "?", "#", "@", ":", "&", "=", "%"]
hosts = [
    "example.com",
    "EXAMPLE.com",
    "bücher.de",
    "xn--bcher-kva.de",
    "xn--",
    "127.1",
    "0x7f.1",
    "[::1]",
    "[1",
]
parts = [":80", ":443", ":99999", "user:pw@", "..", ".", "%2e", "%2F", "%zz", "b=2&a=1", "ü", "İ"]
traps = [" ", "\t", "\n", "\xa0", "\u2028", "\ufeff", "\x01", "\x7f", "\0", "\ud800", "\udc00", "\u200b"]
url_like = st.lists(st.sampled_from(schemes + delimiters + hosts + parts + traps), max_size=12).map("".join)


@pytest.mark.parametrize(
    ("given_url", "requested"),
    {
        "  http://example.com/a \r\n": "http://example.com/a",
        "\ufeffhttp://example.com/a\xa0": "http://example.com/a",
        "HTTP://EXAMPLE.com": "http://example.com/",
        "http://example.com:80/": "http://example.com/",
        "http:\\\\example.com\\a\\b": "http://example.com/a/b",
        "http://example.com/a/../b/./c": "http://example.com/b/c",
        "http://bücher.example/straße": "http://xn--bcher-kva.example/stra%C3%9Fe",
        "http://example.com/a b?c d|e": "http://example.com/a%20b?c%20d|e",
        "http://exa\nmple.com/a\tb": "http://example.com/ab",
        "http://[2001:DB8::0]/": "http://[2001:db8::]/",
        "http://2130706433/": "http://127.0.0.1/",
        "http://example.com/caf\udce9": "http://example.com/caf%E9",  # a byte that is not UTF-8, as Python reads it
    }.items(),
)
def test_a_url_becomes_what_a_browser_would_request(given_url: str, requested: str) -> None:
    assert clean(given_url) == requested


@pytest.mark.parametrize("fragment", ["#", "#top", "#!/route?x=1", "#a#b", "# "])
@pytest.mark.parametrize("page", ["http://example.com/", "http://example.com/a?b=1", "http://example.com/?"])
def test_a_fragment_names_no_page(page: str, fragment: str) -> None:
    assert clean(page + fragment) == page


@pytest.mark.parametrize("query", ["b=2&a=1", "a=2&a=1", "a", "a=", "&&", "a=%41", "a=%c3%bc", "a+b"])
def test_a_query_is_kept_as_it_is(query: str) -> None:
    assert clean("http://example.com/?" + query) == "http://example.com/?" + query


@pytest.mark.parametrize(
    "text",
    [
        "",
        "example.com/a",
        "/a/b",
        "//example.com/",
        "not a url",
        "http://",
        "http://a b/#c",
        "http://example.com:99999/",
        "http://[1/",
        "http://xn--/",
    ],
)
def test_what_cannot_be_parsed_is_left_to_sql(text: str) -> None:
    assert clean(text) == text
    assert clean(f" {text}\n") == text


def test_credentials_stay_so_that_sql_can_refuse_them() -> None:
    assert clean("http://user:pw@example.com/") == "http://user:pw@example.com/"


def test_characters_postgres_cannot_hold_are_replaced() -> None:
    assert storable("a\0b\ud800c") == "a\ufffdb\ufffdc"
    assert storable("bücher \U0001f600") == "bücher \U0001f600"
    assert clean("http://example.com/\ud800x") == "http://example.com/%EF%BF%BDx"
    assert clean("no\0url") == "no\ufffdurl"


@given(any_text | url_like)
@example("\0\xa0http://example.com/\x01\u3000\x02")
@example("a://b\0c")
@example("a:b  #c")
def test_any_text_can_be_cleaned_and_then_stored_and_cleaning_again_changes_nothing(text: str) -> None:
    cleaned = clean(text)
    assert "\0" not in cleaned
    cleaned.encode()  # raises for what UTF-8, and so Postgres, has no bytes for
    assert clean(cleaned) == cleaned


@given(url_like)
def test_blanks_around_a_url_make_no_difference(url: str) -> None:
    assert clean(f"\ufeff \xa0{url}\t\r\n") == clean(url)
