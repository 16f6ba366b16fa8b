"""Recorded webs, read from JSON lines. A line is a page, in one of two forms. Times are in days.

    ["host", "page", born, died or null, [change, …]]      every change is known
    [[days, changed], …]                                   days since the fetch before, and whether it had changed

Histories of crawls are published in the second form (Kolobov et al., 2019). They do not say when in its interval a page
changed: the middle of the interval is assumed. Such pages are born on day 0, die with their last fetch, and all belong
to one host.
"""

import gzip
import json
import math
import zlib
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from recrawl.lab.world import World

SAMPLE = "sample"  # the name of the web in this package
VISITS = "visits"  # the host of pages that were published as histories of visits
# A number with more digits than any float is read as infinite. int() would refuse it without saying where it is.
JSON = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) <= 310 else math.inf)


class RecordedWebError(ValueError):
    """A file has an error. The message says where."""


class RecordedPage(NamedTuple):
    host: str
    name: str
    born: float
    died: float
    changes: list[float]


class _Wrong(ValueError):
    """An error in the element at `path`: an index into the list of the line, then an index into that element, …"""

    def __init__(self, problem: str, *path: int) -> None:
        super().__init__(problem)
        self.path = path


def read(file: str) -> World:
    """The web in a file, which may be gzipped. The name `sample` stands for a file of this package."""
    path = Path(str(files("recrawl.lab") / "sample.jsonl.gz")) if file == SAMPLE else Path(file)
    pages, known = list[RecordedPage](), dict[tuple[str, str], int]()
    for number, line in _lines(path, file):
        try:
            page = _page(line, number)
        except _Wrong as wrong:
            raise RecordedWebError(f"{file}: line {number}, column {_column(line, wrong.path)}: {wrong}") from None
        except json.JSONDecodeError as error:
            raise RecordedWebError(f"{file}: line {number}, column {error.colno}: {error.msg}") from None
        except RecursionError:
            raise RecordedWebError(f"{file}: line {number}, column 1: too many lists in lists") from None
        before = known.setdefault((page.host, page.name), number)
        if before != number:
            raise RecordedWebError(f"{file}: line {number}, column 1: the page of line {before} once more")
        pages.append(page)
    if not pages:
        raise RecordedWebError(f"{file}: line 1, column 1: there is no page in it")
    return _world(pages)


def _lines(path: Path, file: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with path.open("rb") as raw:  # opened once: it may be a pipe
            is_packed = raw.peek(2)[:2] == b"\x1f\x8b"
            with gzip.open(raw) if is_packed else nullcontext(raw) as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        yield number, _text(line, number, file)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise RecordedWebError(f"{file}: line {number + 1}, column 1: cannot be read: {error}") from None


def _text(line: bytes, number: int, file: str) -> str:
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError as error:
        column = len(error.object[: error.start].decode()) + 1
        raise RecordedWebError(f"{file}: line {number}, column {column}: cannot be read: {error.reason}") from None


def _page(line: str, number: int) -> RecordedPage:
    value = JSON.decode(line)
    if not isinstance(value, list) or not value:
        raise _Wrong("a page is a list, [host, page, born, died or null, [change, …]] or [[days, changed], …]")
    return _of_visits(value, number) if isinstance(value[0], list) else _of_changes(value)


def _of_changes(value: list[Any]) -> RecordedPage:
    if len(value) != 5:
        raise _Wrong(f"a page has five entries: host, page, born, died or null, changes; got {len(value)}")
    host, name, born, died, changes = value
    for place, word in enumerate(("host", "page")):
        if not isinstance(value[place], str) or not value[place]:
            raise _Wrong(f"{word} must be a text that is not empty, got {_shortened(value[place])}", place)
    born = _day(born, "born", 2)
    died = math.inf if died is None else _day(died, "died", 3)
    if died < born:
        raise _Wrong(f"died must not be before born ({born:g}), got {died:g}", 3)
    if not isinstance(changes, list):
        raise _Wrong(f"changes must be a list of days, got {_shortened(changes)}", 4)
    last = born
    for place, change in enumerate(changes):
        day = _day(change, "a change", 4, place)
        if not last <= day <= died:
            raise _Wrong(f"a change must come after the one before ({last:g}) and until death, got {day:g}", 4, place)
        last = day
    return RecordedPage(host, name, born, died, [day for day in changes if day > born])


def _of_visits(value: list[Any], number: int) -> RecordedPage:
    now, changes = 0.0, []
    for place, visit in enumerate(value):
        if not isinstance(visit, list) or len(visit) != 2:
            raise _Wrong(f"a visit is [days since the one before, changed], got {_shortened(visit)}", place)
        days = _day(visit[0], "days", place, 0)
        if days <= 0:
            raise _Wrong(f"days must be positive, got {days:g}", place, 0)
        if visit[1] not in (0, 1):
            raise _Wrong(f"changed must be true or false, got {_shortened(visit[1])}", place, 1)
        if visit[1]:
            changes.append(now + days / 2)
        now += days
    return RecordedPage(VISITS, f"line {number}", 0.0, now, changes)


def _day(value: Any, name: str, *path: int) -> float:
    with suppress(OverflowError):
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    raise _Wrong(f"{name} must be a number of days, got {_shortened(value)}", *path)


def _shortened(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _column(line: str, path: tuple[int, ...]) -> int:
    """The column, counted from 1, in which the element at this path begins."""
    at = _blank(line, 0)
    for place in path:
        at = _blank(line, at + 1)  # behind the bracket
        for _ in range(place):
            _, at = JSON.raw_decode(line, at)
            at = _blank(line, _blank(line, at) + 1)  # behind the comma
    return at + 1


def _blank(line: str, at: int) -> int:
    while line[at] in " \t\r\n":
        at += 1
    return at


def _world(pages: list[RecordedPage]) -> World:
    pages.sort(key=lambda page: page.host)  # stable: in the order of the file
    hosts = sorted({page.host for page in pages})
    place = {host: index for index, host in enumerate(hosts)}
    per_host = np.bincount([place[page.host] for page in pages], minlength=len(hosts))
    return World(
        hosts=hosts,
        first_page=np.append(0, np.cumsum(per_host)),
        born=np.array([page.born for page in pages]),
        died=np.array([page.died for page in pages]),
        first_change=np.array([0, *accumulate(len(page.changes) for page in pages)]),
        changed_at=np.array([day for page in pages for day in page.changes], np.float64),
    )
