"""Recorded webs, well written and not."""

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from recrawl.lab import recorded
from recrawl.lab.recorded import RecordedWebError
from recrawl.lab.world import World

GOOD = """["b.test", "/1", 0, null, [1, 2.5, 2.5]]
["a.test", "/1", -3, 9, []]

["b.test", "/2", 1.5, 1.5, [1.5]]
"""


def read(folder: Path, text: str) -> World:
    file = folder / "web.jsonl"
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
    return recorded.read(str(file))


def test_pages_stand_host_by_host_and_a_birth_is_no_change(tmp_path: Path) -> None:
    web = read(tmp_path, GOOD)
    assert web.hosts == ["a.test", "b.test"]
    assert web.first_page.tolist() == [0, 1, 3]
    assert web.born.tolist() == [-3, 0, 1.5] and web.died.tolist() == [9, np.inf, 1.5]
    assert web.first_change.tolist() == [0, 0, 3, 3] and web.changed_at.tolist() == [1, 2.5, 2.5]
    assert web.days == (-3, 9)


def test_a_packed_file_is_the_same(tmp_path: Path) -> None:
    packed = tmp_path / "web"
    packed.write_bytes(gzip.compress(GOOD.encode()))
    assert recorded.read(str(packed)).changed_at.tolist() == [1, 2.5, 2.5]


def test_a_history_of_visits_has_its_changes_in_the_middle(tmp_path: Path) -> None:
    web = read(tmp_path, "[[2, true], [4, false], [1, 1]]\n[[5, 0]]")
    assert web.hosts == ["visits"] and web.pages == 2
    assert web.changed_at.tolist() == [1, 6.5] and web.died.tolist() == [7, 5]


def test_between_two_days_are_those_that_live_and_what_happens_then(tmp_path: Path) -> None:
    web = read(tmp_path, GOOD).between(2, 10)
    assert web.hosts == ["a.test", "b.test"] and web.first_page.tolist() == [0, 1, 2]
    assert web.changed_at.tolist() == [2.5, 2.5]


def test_the_sample_comes_along() -> None:
    web = recorded.read("sample")
    assert len(web.hosts) == 7 and web.pages > 5000 and len(web.changed_at) > 10_000


@pytest.mark.parametrize(
    ("line", "column", "problem"),
    [
        ('["a", "b", 0, null, [1]', 24, "Expecting ',' delimiter"),
        ('{"host": "a"}', 1, "a page is a list"),
        ("[]", 1, "a page is a list"),
        ('["a", "b", 0, null]', 1, "a page has five entries: host, page, born, died or null, changes; got 4"),
        ('["", "b", 0, null, []]', 2, 'host must be a text that is not empty, got ""'),
        ('["a", 7, 0, null, []]', 7, "page must be a text that is not empty, got 7"),
        ('["a", "b", "x", null, []]', 12, 'born must be a number of days, got "x"'),
        ('["a", "b", NaN, null, []]', 12, "born must be a number of days, got NaN"),
        ('["a", "b", 1e999, null, []]', 12, "born must be a number of days, got Infinity"),
        ('["a", "b", true, null, []]', 12, "born must be a number of days, got true"),
        ('["a", "b", 5, 3, []]', 15, "died must not be before born (5), got 3"),
        ('["a", "b", 0, null, 3]', 21, "changes must be a list of days, got 3"),
        ('["a", "b", 0, null, [1,  0.5]]', 26, "a change must come after the one before (1) and until death, got 0.5"),
        ('["a", "b", 0, 2, [1, 3]]', 22, "a change must come after the one before (1) and until death, got 3"),
        ('["a", "b", 0, null, [null]]', 22, "a change must be a number of days, got null"),
        ('  ["a,]", "b", 0, null, [1, "]"]]', 29, 'a change must be a number of days, got "]"'),
        ("[[1, true], [0, true]]", 14, "days must be positive, got 0"),
        ("[[1, true], 3]", 13, "a visit is [days since the one before, changed], got 3"),
        ("[[1, 2]]", 6, "changed must be true or false, got 2"),
        (f'["a", "b", 0, null, [1, {"9" * 5000}]]', 25, "a change must be a number of days, got Infinity"),
        ("[" * 1_000_000, 1, "too many lists in lists"),
        ('["a", "\u20ac\udce9", 0, null, []]', 9, "cannot be read: invalid continuation byte"),
    ],
)
def test_what_is_wrong_is_named_by_line_and_column(tmp_path: Path, line: str, column: int, problem: str) -> None:
    with pytest.raises(RecordedWebError) as error:
        read(tmp_path, f'["a", "first", 0, null, []]\n{line}\n')
    assert str(error.value).startswith(f"{tmp_path}/web.jsonl: line 2, column {column}: {problem}")


def test_a_page_stands_once(tmp_path: Path) -> None:
    with pytest.raises(RecordedWebError, match="line 3, column 1: the page of line 1 once more"):
        read(tmp_path, '["a", "b", 0, null, []]\n["a", "c", 0, null, []]\n["a", "b", 0, null, []]\n')


def test_it_may_come_through_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "web")
    with ThreadPoolExecutor(1) as other:
        other.submit(pipe.write_bytes, gzip.compress(GOOD.encode()))
        assert recorded.read(str(pipe)).changed_at.tolist() == [1, 2.5, 2.5]


def test_it_may_be_written_as_on_windows(tmp_path: Path) -> None:
    assert read(tmp_path, "\ufeff" + GOOD.replace("\n", "\r\n")).changed_at.tolist() == [1, 2.5, 2.5]


PACKED = gzip.compress(b"[]" * 100, mtime=0)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe", PACKED[:-9], PACKED[:10] + b"\xff" * 20])
def test_a_file_without_pages_or_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "web.jsonl"
    file.write_bytes(content)
    with pytest.raises(RecordedWebError, match="line 1, column 1: "):
        recorded.read(str(file))
