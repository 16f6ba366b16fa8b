"""A number and a time are written in one way. tests/sql/test_words.py compares SQL with this."""

from datetime import UTC, datetime, timedelta
from math import inf

import psycopg
import pytest

from recrawl.words import (
    clock,
    count,
    gain,
    interval,
    lasting,
    measured,
    moment,
    percent,
    points,
    short,
    size,
    things,
    utility,
    when,
)  # fmt: skip

SECOND, MINUTE, HOUR, DAY = (timedelta(**{unit: 1}) for unit in ("seconds", "minutes", "hours", "days"))
NOW = datetime(2026, 11, 21, 15, 4, 10, tzinfo=UTC)
NUMBERS = {
    0: "0",
    7: "7",
    2.27: "2.3",
    9.96: "10",
    12.3: "12",
    7718: "7,718",
    0.0171: "0.017",
    0.5: "0.5",
    1e-9: "1.0e-09",
}
SECONDS = {
    0.0: "0 s", 0.8: "0.8 s", 9.96: "10 s", 10.4: "10 s", 60: "1 min", 90: "90 s", 119: "119 s", 120: "2 min",
    3600: "1 h", 5400: "90 min", 7200: "2 h", 86400: "24 h", 200000: "2 days", 1e8: "3 years",
}  # fmt: skip


def test_numbers_have_commas_or_two_digits() -> None:
    assert {n: count(n) for n in NUMBERS} == NUMBERS


def test_a_duration_is_one_figure_and_its_unit() -> None:
    assert {s: lasting(timedelta(seconds=s)) for s in SECONDS} == SECONDS


def test_a_time_to_come_has_its_preposition() -> None:
    said = {
        0: "now",
        90: "in 90 s",
        150: "at 15:06",
        3600: "at 16:04",
        36000: "tomorrow 01:04",
        86400: "tomorrow 15:04",
        9 * 86400: "30 Nov 15:04",
    }
    assert {s: when(NOW + timedelta(seconds=s), NOW) for s in said} == said


def test_a_share_is_never_nothing_when_it_is_something_nor_all_when_it_is_less() -> None:
    shares = {
        0: "0 %",
        1e-9: "< 0.1 %",
        0.0004: "< 0.1 %",
        0.0006: "0.1 %",
        0.72: "72.0 %",
        0.9994: "99.9 %",
        0.99999: "> 99.9 %",
        1: "100 %",
    }
    assert {share: percent(share) for share in shares} == shares
    assert percent(0.996, 0) == "> 99 %"
    assert percent(None) == "–"


def test_amounts_are_short_with_three_digits() -> None:
    amounts = {
        0: "0",
        7.25: "7.2",
        999: "999",
        1000: "1 k",
        463_541: "464 k",
        999_600: "1 M",
        1_210_571: "1.21 M",
        1.5e12: "1,500 G",
    }
    assert {n: short(n) for n in amounts} == amounts
    assert short(None) == count(None) == "–"


def test_words_go_with_their_numbers() -> None:
    assert [things(n, "page") for n in (0, 1, 2)] == ["0 pages", "1 page", "2 pages"]
    assert (points(0.012), points(-0.012)) == ("+1.2", "−1.2")


def test_a_result_has_as_many_digits_as_its_table_compares() -> None:
    results = {0: "0", 0.01714: "0.0171", 2.5: "2.5", 42.66: "42.7", 999.4: "999", 999.6: "1,000", 1026.5: "1,026"}
    assert {n: measured(n) for n in results} == results
    assert [measured(n, 5) for n in (46.6704, 1234.56, 99_999.7, inf)] == ["46.67", "1,234.6", "100,000", "unlimited"]


def test_a_size_has_three_digits_and_bytes_as_its_unit() -> None:
    assert [size(n) for n in (0, 512, 1000, 463_541, 1 << 30)] == ["0 B", "512 B", "1 kB", "464 kB", "1.07 GB"]


def test_a_utility_is_a_share_or_a_number_and_a_gain_has_one_digit_more() -> None:
    assert [utility(0.7234, True), utility(-1.234, False), utility(None, False)] == ["72.3 %", "-1.2", "without limit"]
    assert [gain(0.00123, True), gain(0.0171, False), gain(None, False)] == ["0.12 %", "0.017", "–"]


def test_a_time_is_as_exact_as_it_is_near() -> None:
    assert clock(NOW - HOUR, NOW) == "14:04"
    assert clock(NOW - DAY, NOW) == "yesterday 15:04"
    assert clock(NOW + DAY, NOW) == "tomorrow 15:04"
    assert clock(NOW - 9 * DAY, NOW) == "12 Nov 15:04"
    assert clock(NOW - 400 * DAY, NOW) == "17 Oct 2025"
    assert clock(NOW.replace(year=9999), NOW) == "for ever"


@pytest.mark.usefixtures("in_berlin")
def test_a_time_before_the_clocks_were_changed_is_told_as_clocks_showed_it() -> None:
    """On 25 October 2026 at 01:00 UTC they go from 03:00 back to 02:00."""
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)
    now = change + 12 * HOUR
    assert moment(now) == "25 Oct 2026, 14:00:00 CET"
    ago = {13: "02:00", 12.5: "02:30", 12: "02:00", 11.5: "02:30", 11: "03:00", 24: "yesterday 15:00"}
    assert {hours: clock(change + timedelta(hours=12 - hours), now) for hours in ago} == ago
    assert clock(datetime(2026, 7, 1, 10, tzinfo=UTC), now) == "1 Jul 12:00"


@pytest.mark.parametrize("seconds", [1e-6, 0.25, 90, 1_036_800, 315_576_000.000001])
def test_a_length_of_time_to_be_copied_is_read_by_postgres(connection: psycopg.Connection, seconds: float) -> None:
    time = timedelta(seconds=seconds)
    ((read,),) = connection.execute(f"select extract(epoch from interval {interval(time)})::float8".encode()).fetchall()
    assert read == pytest.approx(time.total_seconds(), abs=1e-6)
