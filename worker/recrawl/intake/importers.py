"""Readers of URL lists: lines of text in, pages out, one at a time, however large the file.

A reader knows only its format. It knows no database and does not judge URLs: they come out as they are written.
recrawl.intake.urls cleans them, and SQL judges them. A line that cannot be read comes out as a BadLine, and the reading
goes on. The reading ends with an ImportFileError only if the rest of the file makes no sense, for example after a bad
header.
"""

import csv
import gzip
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from io import TextIOWrapper
from itertools import chain, repeat
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, TextIO

from recrawl.intake.urls import host_of_key, storable
from recrawl.store.calls import PageToAdd
from recrawl.words import count

LONGEST_LINE = 1_000_000  # characters
_TOO_LONG = f"longer than {count(LONGEST_LINE)} characters"
_CSV_COLUMNS = ("url", "value", "rate", "due")


def _finite(number: str) -> float:
    """The number. Refuses NaN, Infinity and 1e999: Python would make floats of them that JSON cannot hold."""
    if not math.isfinite(value := float(number)):
        raise ValueError(f"no finite number: {number[:40]}")
    return value


_json = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).decode


class BadLine(NamedTuple):
    """A line that names no page, and why."""

    where: str
    problem: str


class ImportFileError(ValueError):
    """A file cannot be read on. The message is one line: where, what is wrong, what was found."""


Reader = Callable[[Iterable[str]], Iterator[PageToAdd | BadLine]]


@contextmanager
def open_text(path: str) -> Iterator[TextIO]:
    """The text of a file, unpacked if it is gzipped, without a byte order mark. `-` is standard input. Bytes that are
    not UTF-8 are kept."""
    with open(0, "rb", closefd=False) if path == "-" else Path(path).open("rb") as file:
        packed = file.peek(2)[:2] == b"\x1f\x8b"
        with TextIOWrapper(gzip.open(file) if packed else file, encoding="utf-8-sig", errors="surrogateescape") as text:
            yield text


def short_lines(text: TextIO) -> Iterator[str]:
    """The lines of a text. A line that is too long is cut, but stays too long, so that a reader notices it."""
    while line := text.readline(LONGEST_LINE + 1):
        yield line
        while len(line) > LONGEST_LINE and not line.endswith("\n"):
            line = text.readline(LONGEST_LINE + 1)


def pages_in(name: str, text: TextIO) -> Iterator[PageToAdd | BadLine]:
    """The pages that a file names. The first line that is not blank may decide which reader is used."""
    lines, blank = short_lines(text), 0
    for first in lines:
        if first.strip():
            return reader_for(name, first)(chain(repeat("\n", blank), [first], lines))
        blank += 1
    return reader_for(name, "")(repeat("\n", blank))


def reader_for(name: str, first_line: str) -> Reader:
    """The reader for a file. A header of Nutch decides first, then the suffix .csv, then the first line that is not
    blank."""
    first_line = first_line.strip()
    if first_line.startswith(_NUTCH_HEADER):
        return nutch
    if PurePath(name.lower().removesuffix(".gz")).suffix == ".csv":
        return csv_pages
    # Compares whole cells, because the first URL of a plain list may contain both "url" and a comma.
    is_header = "url" in (cell.strip(' "').lower() for cell in first_line.split(","))
    return csv_pages if is_header and not first_line.startswith("{") else url_lines


def csv_pages(lines: Iterable[str]) -> Iterator[PageToAdd | BadLine]:
    """CSV with a header: `url` and, if wanted, `value`, `rate` and `due`, in any order. Empty cell = not given.

    A row is a line: a stray quote must not swallow the lines after it.
    """
    numbered = enumerate(lines, 1)
    rows = (_cells(line, number) for number, line in numbered)
    header = _csv_header(next(filter(any, rows), []))
    # A missing column is read from an empty cell that is appended to every row. csv.DictReader takes a fifth longer
    # (Python 3.11).
    url_at, value_at, rate_at, due_at = (header.index(c) if c in header else -1 for c in _CSV_COLUMNS)
    for number, line in numbered:
        try:
            if len(line) > LONGEST_LINE:
                raise ValueError(_TOO_LONG)
            row = _cells(line, number)
            if not any(row):
                continue
            if len(row) != len(header):
                problem = f"{len(row)} cells under a header of {len(header)} (a URL with a comma must be quoted)"
                raise ValueError(problem)
            if not (url := row[url_at].strip()):
                raise ValueError("url is empty")
            row.append("")
            value, rate = _number("value", row[value_at]), _number("rate", row[rate_at])
            yield PageToAdd(url, value, rate, _instant(row[due_at]))
        except ValueError as error:
            yield BadLine(f"line {number}", str(error).removeprefix(f"line {number}: "))


def _cells(line: str, number: int) -> list[str]:
    try:
        return next(csv.reader((line,), strict=True), [])
    except csv.Error as error:
        raise ImportFileError(f"line {number}: not CSV: {error}") from None


def _csv_header(row: list[str]) -> list[str]:
    header = [cell.strip().lower() for cell in row]
    for position, column in enumerate(header):
        if column not in _CSV_COLUMNS:
            raise ImportFileError(f"header: unknown column {column!r}; known are {', '.join(_CSV_COLUMNS)}")
        if column in header[:position]:
            raise ImportFileError(f"header: column {column!r} appears twice")
    if "url" not in header:
        raise ImportFileError("header: column 'url' is missing")
    return header


def _number(column: str, cell: str) -> float | None:
    if not cell:
        return None
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{column} must be a number, got {cell[:40]!r}")
    return number


def _instant(cell: str) -> datetime | None:
    if not cell:
        return None
    try:
        instant = datetime.fromisoformat(cell)
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        raise ValueError(f"due must be a time with its zone, like 2026-11-22T09:30:00Z, got {cell[:40]!r}")
    return instant


# The output of `nutch readdb … -dump … -format csv`. URLs and metadata are between quotes, but quotes inside them are
# not escaped, so a row is not valid CSV. The fields that are read come first in the row.
_NUTCH_HEADER = "Url,Status code,Status name,Fetch Time,"
_NUTCH_ROW = re.compile(r'"(?P<url>.*?)",(?P<code>\d+),"(?P<status>\w+)",(?P<fetch_time>[^,]*),')


def nutch(lines: Iterable[str]) -> Iterator[PageToAdd | BadLine]:
    """The pages of a CrawlDb that Nutch dumped, due at their fetch time. Pages that Nutch never fetched come as new."""
    for number, line in enumerate(lines, 1):
        if line.startswith(_NUTCH_HEADER) or not line.strip():  # each part of a dump has the header
            continue
        if len(line) > LONGEST_LINE:
            yield BadLine(f"line {number}", _TOO_LONG)
        elif (row := _NUTCH_ROW.match(line)) is None:
            yield BadLine(f"line {number}", f"must begin with Url, Status code, Status name, got {line[:40].strip()!r}")
        elif row["status"] == "db_unfetched":
            yield PageToAdd(row["url"])
        else:
            try:
                due = datetime.strptime(row["fetch_time"], "%a %b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC)
            except ValueError:
                problem = f"Fetch Time must be in UTC (let Nutch run with TZ=UTC), got {row['fetch_time'][:40]!r}"
                yield BadLine(f"line {number}", problem)
            else:
                yield PageToAdd(row["url"], due=due)


def url_lines(lines: Iterable[str]) -> Iterator[PageToAdd | BadLine]:
    """One URL a line. Blank lines and lines that start with # are skipped.

    A line may also be a JSON object, as URLFrontier's client writes it (DumpURLs, ListURLs --json) and reads it
    (PutURLs).
    """
    for number, text in _items(lines):
        if len(text) > LONGEST_LINE:
            yield BadLine(f"line {number}", _TOO_LONG)
        elif text.startswith("{"):
            yield _frontier_page(text, number)
        elif text and text[0] != "#":
            yield PageToAdd(text)


def _items(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Lines with their numbers. Only ListURLs writes an object over several lines: `{`, indented lines, and `}`.

    An object that is too long is cut, but stays too long, so that the reader notices it.
    """
    begun, length, parts = 0, 0, list[str]()
    for number, line in enumerate(lines, 1):
        if parts and (line[0].isspace() or line[0] == "}"):
            if length <= LONGEST_LINE:
                parts.append(line.strip())
                length += len(parts[-1])
            if line[0] == "}":
                yield begun, "".join(parts)
                parts = []
            continue
        if parts:  # it does not end
            yield begun, "".join(parts)
            parts = []
        text = line.strip()
        if text == "{":
            begun, length, parts = number, 1, ["{"]
        else:
            yield number, text
    if parts:
        yield begun, "".join(parts)


def _frontier_page(text: str, line: int) -> PageToAdd | BadLine:
    where = f"line {line}"
    try:
        item = _json(text)
    except json.JSONDecodeError as error:
        return BadLine(where, f"not JSON: {error.msg}, got {text[error.pos : error.pos + 40]!r}")
    except (ValueError, RecursionError) as error:
        return BadLine(where, f"not JSON: {str(error)[:80]}")
    seconds: Any = None
    try:
        known = item.get("known")
        entry = known or item["discovered"]
        info = entry["info"]
        # Seconds, as a string, because JSON writes 64-bit integers as strings. 0 is left out and means "never again".
        seconds = entry.get("refetchableFromDate")
        due: datetime | Literal["infinity"] | None = "infinity" if known else None
        if seconds and seconds != "0":
            due = datetime.fromtimestamp(int(seconds), UTC)
        meta = {key: values.get("values", []) for key, values in info.get("metadata", {}).items()}
        if "\\u" in text or not text.isascii():
            # Postgres would refuse the whole batch for one character that it cannot hold.
            meta = {storable(key): [storable(value) for value in values] for key, values in meta.items()}
        url = info["url"].strip()
        if not url:
            raise KeyError("url")
        return PageToAdd(url, None, None, due, meta or None, host_of_key(info.get("key")))
    except (KeyError, TypeError, AttributeError):
        return BadLine(where, f"must be known or discovered, with info and url, got {text[:40]!r}")
    except (ValueError, OverflowError, OSError):
        return BadLine(where, f"refetchableFromDate must be in seconds since 1970, got {str(seconds)[:40]!r}")
