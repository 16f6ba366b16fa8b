"""Sitemaps of all kinds, whole and broken."""

import gzip
import tracemalloc
from datetime import UTC, datetime

import pytest

from recrawl.client.sitemaps import Entry, entries, time_of

MIB = 1 << 20
HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def sitemap(*urls: str) -> bytes:
    items = (f"<url><loc>\n {url} </loc><lastmod>2030-01-02</lastmod><priority>.5</priority></url>" for url in urls)
    return f"{HEAD}{''.join(items)}</urlset>".encode()


JAN_2 = datetime(2030, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_urls_come_with_their_time(pack: type[bytes]) -> None:
    body = pack(sitemap("http://a.example/1?x=1&amp;y=2", "http://a.example/2"))
    assert list(entries(body)) == [
        Entry("http://a.example/1?x=1&y=2", JAN_2, False), Entry("http://a.example/2", JAN_2, False)
    ]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        b"\n\n" + sitemap("http://a.example/"),
        sitemap("http://a.example/").decode().replace("UTF-8", "UTF-16").encode("utf-16"),
        gzip.compress(sitemap("http://a.example/")[:120]) + gzip.compress(sitemap("http://a.example/")[120:]) + b"\0\0",
    ],
    ids=["blank lines", "UTF-16", "two gzip members"],
)
def test_what_other_readers_take_is_read(body: bytes) -> None:
    assert [entry.url for entry in entries(body)] == ["http://a.example/"]


def test_an_index_names_sitemaps() -> None:
    body = b"<sitemapindex><sitemap><loc>http://a.example/1.xml</loc></sitemap></sitemapindex>"
    assert list(entries(body)) == [Entry("http://a.example/1.xml", None, True)]


def test_extensions_are_not_taken_for_pages() -> None:
    body = (
        f'{HEAD}<url><loc>http://a.example/</loc><image:image xmlns:image="http://i"><image:loc>http://a.example/i.png'
        "</image:loc></image:image></url></urlset>"
    )
    assert [entry.url for entry in entries(body.encode())] == ["http://a.example/"]


def test_a_list_of_lines_is_one_too() -> None:
    body = b"\xef\xbb\xbfhttp://a.example/1\r\nnonsense\nhttps://a.example/2"
    assert list(entries(body)) == [Entry(url, None, False) for url in ("http://a.example/1", "https://a.example/2")]


def test_of_what_is_cut_off_the_beginning_counts() -> None:
    whole = sitemap(*(f"http://a.example/{n}" for n in range(10_000)))
    for body in (whole[: len(whole) // 2], gzip.compress(whole)[:-3000], whole[:-3000] + b"<url><loc>&broken;"):
        found = [entry.url for entry in entries(body)]
        assert 0 < len(found) < 10_000 and found == [f"http://a.example/{n}" for n in range(len(found))]


ENCODED = [f'<?xml version="1.0" encoding="{name}"?><urlset/>'.encode() for name in ("nope", "hex", "gb2312")]


@pytest.mark.parametrize(
    "body", [b"", b"\x1f\x8b", b"\x1f\x8b\x08nonsense", b"<", b"\0\0\0", b"<html><p>no</html>", b"<a>" * 9, *ENCODED]
)
def test_what_is_none_has_no_urls(body: bytes) -> None:
    assert list(entries(body)) == []


def test_it_is_bounded_in_urls_bytes_and_memory() -> None:
    many = sitemap(*(f"http://a.example/{n}" for n in range(50_010)))
    assert sum(1 for _ in entries(many)) == 50_000
    bomb = gzip.compress(HEAD.encode() + b" " * 100 * MIB + sitemap("http://a.example/"))
    tracemalloc.start()
    assert list(entries(bomb)) == []
    assert tracemalloc.get_traced_memory()[1] < 60 * MIB
    tracemalloc.stop()


@pytest.mark.parametrize("inside", ["<a/>", "<a>", "<a>x</a>"], ids=["wide", "deep", "long"])
@pytest.mark.parametrize("begun", ["<urlset>", "<urlset><url>"])
def test_what_lies_in_its_elements_does_not_stay_in_memory(begun: str, inside: str) -> None:
    bomb = gzip.compress(begun.encode() + inside.encode() * 100_000)
    tracemalloc.start()
    assert list(entries(bomb)) == []
    assert tracemalloc.get_traced_memory()[1] < 8_000_000  # the elements would take more than 9 MB
    tracemalloc.stop()


def test_entities_do_not_explode() -> None:
    levels = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 12))
    body = f'<!DOCTYPE x [<!ENTITY e0 "0123456789">{levels}]><urlset><url><loc>&e11;</loc></url></urlset>'
    assert list(entries(body.encode())) == []


def test_times_are_w3c_dates() -> None:
    assert time_of("2030-01") == datetime(2030, 1, 1, tzinfo=UTC)
    assert time_of("2030-01-02T03:04:05.5+01:00") == datetime(2030, 1, 2, 2, 4, 5, 500_000, tzinfo=UTC)
    assert time_of("2030-01-02T03:04Z") == datetime(2030, 1, 2, 3, 4, tzinfo=UTC)
    assert time_of("2030-01-02T03:04+23:00") == datetime(2030, 1, 1, 4, 4, tzinfo=UTC), "which Postgres would not read"
    assert time_of("2030") == datetime(2030, 1, 1, tzinfo=UTC)
    assert [time_of(said) for said in ("", "20a0", "soon", "2030-13-01", "0001-01-01T00:00+14:00")] == [None] * 5
