"""URL identity: every way to write a URL is one page, and different URLs are different pages."""

from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import Crawl, codes, result_of
from recrawl.intake.urls import clean

pure = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(scope="module")
def parse(template: str, new_database: Callable[..., str]) -> Iterator[Callable[[str], dict[str, Any]]]:
    with psycopg.connect(new_database(template), autocommit=True) as connection:
        crawl = Crawl(connection)

        def parse(url: str) -> dict[str, Any]:
            return crawl.row(
                "select *, recrawl_internal.is_canonical(%s) as is_canonical from recrawl_internal.parse_url(%s)",
                url,
                url,
            )

        yield parse


LONGEST_HOST = ".".join(["a" * 63] * 3 + ["b" * 61])  # 253 characters
SPELLINGS = [
    ("http://example.com", "http://example.com/"),
    ("HTTP://EXAMPLE.COM/", "http://example.com/"),
    ("http://example.com:80/", "http://example.com/"),
    ("https://example.com:443/", "https://example.com/"),
    ("https://example.com:0443/", "https://example.com/"),
    ("http://example.com:443/", "http://example.com:443/"),
    ("http://example.com:/", "http://example.com/"),
    ("http://example.com./", "http://example.com/"),
    ("http://example.com/#top", "http://example.com/"),
    ("http://example.com#top", "http://example.com/"),
    ("  http://example.com/\n", "http://example.com/"),
    ("http://example.com?q", "http://example.com/?q"),
    ("http://example.com/a/./b/../c", "http://example.com/a/c"),
    ("http://example.com/a/..", "http://example.com/"),
    ("http://example.com/../../a", "http://example.com/a"),
    ("http://example.com/a/%2e%2E/b", "http://example.com/b"),
    ("http://example.com/a/.", "http://example.com/a/"),
    ("http://example.com/.hidden", "http://example.com/.hidden"),
    ("http://example.com/a//b", "http://example.com/a//b"),
    ("http://example.com/%7Euser/%41", "http://example.com/~user/A"),
    ("http://example.com/%c3%a9", "http://example.com/%C3%A9"),
    ("http://example.com/é", "http://example.com/%C3%A9"),
    ("http://example.com/a b", "http://example.com/a%20b"),
    ("http://example.com/100%", "http://example.com/100%25"),
    ("http://example.com/%zz", "http://example.com/%25zz"),
    ("http://example.com/%2f", "http://example.com/%2F"),
    ("http://example.com/a\\b", "http://example.com/a%5Cb"),
    ("http://example.com/?a=b&c=[1]", "http://example.com/?a=b&c=%5B1%5D"),
    ("http://example.com/?q=%e4?x/../y", "http://example.com/?q=%E4?x/../y"),
    ("http://[2001:DB8::1]:8080/x", "http://[2001:db8::1]:8080/x"),
    ("http://[2001:db8:0:0::1]/", "http://[2001:db8::1]/"),
    ("http://[::ffff:102:304]/", "http://[::ffff:1.2.3.4]/"),
    ("http://127.0.0.1/", "http://127.0.0.1/"),
    ("http://127.1/", "http://127.0.0.1/"),
    ("http://2130706433/", "http://127.0.0.1/"),
    ("http://0x7F.0.0.1/", "http://127.0.0.1/"),
    ("http://0177.1/", "http://127.0.0.1/"),
    ("http://1.2.3.4.example/", "http://1.2.3.4.example/"),
    ("http://xn--bcher-kva.example/", "http://xn--bcher-kva.example/"),
    ("http://under_score.example/", "http://under_score.example/"),
    ("http://localhost/", "http://localhost/"),
    ("http://example.com:65535/", "http://example.com:65535/"),
    (f"http://{LONGEST_HOST}/", f"http://{LONGEST_HOST}/"),
    ("http://example.com/" + "a" * 2029, "http://example.com/" + "a" * 2029),
    ("http://example.com/a" + "é" * 338, "http://example.com/a" + "%C3%A9" * 338),
]


@pytest.mark.parametrize(("url", "canonical"), SPELLINGS)
def test_spellings(parse: Callable[[str], dict[str, Any]], url: str, canonical: str) -> None:
    assert parse(url)["canonical"] == canonical


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("", "the URL is empty"),
        ("   ", "the URL is empty"),
        ("#top", "the URL is empty"),
        ("ftp://example.com/", "the URL must begin with http:// or https://"),
        ("mailto:a@b.c", "the URL must begin with http:// or https://"),
        ("example.com/a", "the URL must begin with http:// or https://"),
        ("//example.com/a", "the URL must begin with http:// or https://"),
        ("http:/example.com/", "the URL must begin with http:// or https://"),
        ("http://user:secret@example.com/", "the URL carries credentials"),
        ("http://user@example.com/", "the URL carries credentials"),
        ("http://a.test\\x", 'the host "a.test\\x" is not a valid name'),
        ("http:///path", 'the host "" is not a valid name'),
        ("http://exa mple.com/", 'the host "exa mple.com" is not a valid name'),
        ("http://a..b/", 'the host "a..b" is not a valid name'),
        ("http://-a.b/", 'the host "-a.b" is not a valid name'),
        ("http://a-.b/", 'the host "a-.b" is not a valid name'),
        ("http://" + "a" * 64 + ".b/", f'the host "{"a" * 64}.b" is not a valid name'),
        (f"http://{LONGEST_HOST}b/", f'the host "{LONGEST_HOST[:100]}" is not a valid name'),
        ("http://[::1/", 'the host "[" is not a valid name'),
        ("http://[1:2:3]/", 'the host "[1:2:3]" is not a valid address'),
        ("http://256.1.1.1/", 'the host "256.1.1.1" is not a valid address'),
        ("http://1.256.1.1/", 'the host "1.256.1.1" is not a valid address'),
        ("http://1.16777216/", 'the host "1.16777216" is not a valid address'),
        ("http://1.2.3.4.5/", 'the host "1.2.3.4.5" is not a valid address'),
        ("http://1.2.3.4.0/", 'the host "1.2.3.4.0" is not a valid address'),
        ("http://4294967296/", 'the host "4294967296" is not a valid address'),
        ("http://09.1/", 'the host "09.1" is not a valid address'),
        ("http://bücher.example/", "the host bücher.example is not ASCII: give it in its xn-- form"),
        ("http://example.com:99999/", 'the port "99999" is not valid'),
        ("http://example.com:-1/", 'the port "-1" is not valid'),
        ("http://example.com:8o/", 'the port "8o" is not valid'),
        ("http://example.com/a\tb", "the URL contains a control character"),
        ("http://example.com/" + "a" * 2048, "the URL is longer than 2048 characters (2067)"),
        ("http://example.com/" + "é" * 339, "the URL is longer than 2048 characters once encoded"),
    ],
)
def test_invalid_urls_are_told_why(parse: Callable[[str], dict[str, Any]], url: str, problem: str) -> None:
    assert parse(url)["problem"] == problem
    assert parse(url)["canonical"] is None


PART = st.text("abcXYZ019-._~%2eE7/?&=+;:@!$'()*,# é€[]|\\\"<>{}^`", max_size=30)
URLISH = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["http://", "https://", "HTTP://", "ftp://", ""]),
    st.sampled_from(["a.test", "A.Test.", "a-b.test", "x", "[::1]", "1.2.3.4", "user@a.test", "é.test", ""]),
    st.sampled_from(["", ":80", ":443", ":8080", ":", ":99999"]),
    st.sampled_from(["", "/"]),
    PART,
)


@pure
@given(url=URLISH)
def test_a_canonical_url_is_its_own_canonical_spelling(parse: Callable[[str], dict[str, Any]], url: str) -> None:
    first = parse(url)
    assert (first["canonical"] is None) != (first["problem"] is None)
    if first["canonical"]:
        again = parse(first["canonical"])
        assert again["canonical"] == first["canonical"]
        assert again["host"] == first["host"]
        assert parse(first["url"])["canonical"] == first["canonical"], "what is fetched is the same page"
        assert first["canonical"].isascii()
        assert "\\" not in first["canonical"]


@pure
@given(piece=st.sampled_from(["é", '"', "a", "%41", "/../b"]), length=st.integers(300, 2100), tail=PART)
def test_what_is_fetched_of_a_long_url_is_a_valid_url(
    parse: Callable[[str], dict[str, Any]], piece: str, length: int, tail: str
) -> None:
    parsed = parse(f"http://a.test/{piece * (length // len(piece))}{tail}")
    if parsed["problem"] is None:
        assert parse(parsed["url"])["canonical"] == parse(parsed["canonical"])["canonical"] == parsed["canonical"]


@pure
@given(url=URLISH)
def test_the_short_cut_takes_only_canonical_urls(parse: Callable[[str], dict[str, Any]], url: str) -> None:
    parsed = parse(url)
    if parsed["is_canonical"]:
        assert parsed["canonical"] == url
        assert parsed["host"] == url.split("/")[2]


@pure
@given(
    path=st.lists(st.text("ab-_~", min_size=1, max_size=4), max_size=4),
    encode=st.lists(st.booleans(), min_size=30, max_size=30),
    dots=st.booleans(),
    port=st.booleans(),
    upper=st.booleans(),
)
def test_equal_spellings_are_one_url(
    parse: Callable[[str], dict[str, Any]], path: list[str], encode: list[bool], dots: bool, port: bool, upper: bool
) -> None:
    plain = "/" + "/".join(path)
    spelt = "".join(f"%{ord(c):02x}" if e and c not in "/" else c for c, e in zip(plain, encode, strict=False))
    host = ("WWW.Example.COM" if upper else "www.example.com") + (":80" if port else "")
    assert parse(f"http://{host}{'/x/..' if dots else ''}{spelt}#f")["canonical"] == f"http://www.example.com{plain}"


@pure
@given(url=URLISH)
def test_cleaning_in_python_first_never_makes_a_page_invalid(parse: Callable[[str], dict[str, Any]], url: str) -> None:
    if parse(url)["problem"] is None:
        assert parse(clean(url))["problem"] is None


def test_equal_spellings_are_one_page(crawl: Crawl) -> None:
    rows = crawl.add(*(url for url, canonical in SPELLINGS if canonical == "http://example.com/"))
    assert len({row["page_id"] for row in rows}) == 1
    assert codes(rows) == ["new"] + ["known"] * (len(rows) - 1)


def test_what_is_fetched_is_what_was_given_first(crawl: Crawl) -> None:
    crawl.add(" HTTP://Example.com/%7euser#x ", "http://example.com/~user")
    assert crawl.next()[0]["url"] == "HTTP://Example.com/%7euser"


def test_a_session_that_reads_backslashes_its_own_way_changes_nothing(crawl: Crawl) -> None:
    crawl.connection.execute("set standard_conforming_strings = off")
    crawl.connection.execute("set backslash_quote = on")
    assert codes(crawl.add("http://a.test/%7e?q", "HTTP://A.test/~?q", "http://[::1]/", "http://a.b/é")) == [
        "new", "known", "new", "new",
    ]  # fmt: skip
    page = crawl.next()[0]
    assert codes(crawl.report(result_of(page, links=["http://c.test/x"], retry_after=" 12.5 "))) == ["ok"]
    crawl.value("select exclude('x$')")
