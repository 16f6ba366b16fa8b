"""Reads sitemaps in pieces. A sitemap is XML, an index of sitemaps, or one URL per line, and may be gzipped.

Its size is bounded, so a server cannot fill the memory.
"""

import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from gzip import GzipFile
from io import BytesIO
from itertools import chain, islice
from typing import Any, NamedTuple, cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

# The limits of sitemaps.org for one file.
MOST_BYTES = 50 * 1024 * 1024  # unpacked
MOST_URLS = 50_000

MOST_DEEP = 20  # nested elements; extensions of the format have a few
PIECE = 1 << 16


class Entry(NamedTuple):
    url: str
    changed_at: datetime | None
    is_sitemap: bool


def entries(body: bytes) -> Iterator[Entry]:
    """The entries of a sitemap, up to the first error in it."""
    pieces = unpacked(body)
    first = next(pieces, b"").lstrip(b"\xef\xbb\xbf \t\r\n")
    is_xml = first.startswith((b"<", b"\xff\xfe", b"\xfe\xff"))  # the last two begin a text in UTF-16
    return islice((_of_xml if is_xml else _of_text)(chain([first], pieces)), MOST_URLS)


def unpacked(body: bytes) -> Iterator[bytes]:
    """The content in pieces, unpacked if it is gzipped, until it is too long or broken."""
    file = GzipFile(fileobj=BytesIO(body)) if body.startswith(b"\x1f\x8b") else BytesIO(body)
    left = MOST_BYTES
    with suppress(EOFError, OSError, zlib.error):
        while left > 0 and (piece := file.read1(PIECE)):  # read(PIECE) would lose the last piece before an error
            left -= len(piece)
            yield piece


def _of_xml(pieces: Iterable[bytes]) -> Iterator[Entry]:
    parser: XMLPullParser[Any] = XMLPullParser(["start", "end"])
    url, changed = "", ""
    path: list[Element] = []
    try:
        for piece in pieces:
            parser.feed(piece)
            for event, element in cast("Iterator[tuple[str, Element]]", parser.read_events()):
                name = element.tag.rpartition("}")[2]
                if event == "start":
                    path.append(element)
                    if len(path) > MOST_DEEP:
                        return
                    continue
                path.pop()
                if path:
                    path[-1].clear()  # otherwise the whole sitemap would stay in memory
                if name == "loc" and len(path) == 2:
                    url = (element.text or "").strip()
                elif name == "lastmod" and len(path) == 2:
                    changed = (element.text or "").strip()
                elif name in ("url", "sitemap") and len(path) == 1:
                    if url:
                        yield Entry(url, time_of(changed), name == "sitemap")
                    url = changed = ""
    except (ParseError, LookupError, ValueError):  # ValueError and LookupError: an unknown encoding
        return


def _of_text(pieces: Iterable[bytes]) -> Iterator[Entry]:
    begun = b""
    for piece in pieces:
        *lines, begun = (begun + piece).split(b"\n")
        for line in lines:
            yield from _of_line(line)
        begun = begun[:PIECE]
    yield from _of_line(begun)


def _of_line(line: bytes) -> Iterator[Entry]:
    url = line.decode("utf-8", "replace").strip("\ufeff \t\r")
    if url.startswith(("http://", "https://")):
        yield Entry(url, None, False)


def time_of(text: str) -> datetime | None:
    """The time of a W3C date. If it is only a day, a month or a year, its beginning."""
    try:
        time = datetime.fromisoformat(text + {len("2004"): "-01-01", len("2004-10"): "-01"}.get(len(text), ""))
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
