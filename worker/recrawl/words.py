"""Numbers and times in words, for screens, messages and log lines. The functions read nothing but the time zone of
this machine.

sql/common/words.sql writes the same for explain_page, and a test compares the two. An unknown figure is a dash. One
space stands between a number and its unit.
"""

from datetime import datetime, timedelta
from math import isinf

UNKNOWN = "–"


def count(n: float | None) -> str:
    """7,718. Below ten with two digits, unless it is whole: 2.2, 0.017."""
    if n is None:
        return UNKNOWN
    if isinf(n):
        return "unlimited"
    if abs(n) >= 9.95 or n == round(n):
        return f"{n:,.0f}"
    return f"{n:.2g}" if abs(n) >= 0.0001 else f"{n:.1e}"


def measured(n: float, digits: int = 3) -> str:
    """A result with this number of digits, for tables that compare results: 42.7, 0.0171, 1,027."""
    return count(n) if abs(n) >= 10**digits - 0.5 else f"{n:,.{digits}g}"


def things(n: float | None, one: str, many: str = "") -> str:
    """A number and its noun: 1 page, 7,718 pages."""
    return f"{count(n)} {either(n, one, many or one + 's')}"


def either(n: float | None, one: str, many: str) -> str:
    """The word that agrees with a number: is or are."""
    return one if n == 1 else many


def pace(per_second: float, of: str = "") -> str:
    """In the smallest unit in which the figure is at least 0.1, otherwise per second: 5.5 a second, 1.2 fetches a
    minute."""
    units = (("a second", 1), ("a minute", 60), ("an hour", 3600))
    unit, seconds = next((each for each in units if per_second * each[1] >= 0.1), units[0])
    return " ".join(filter(None, (count(per_second * seconds), of, unit)))


def short(n: float | None) -> str:
    """Three digits and a letter, for tiles and charts: 464 k, 1.21 M."""
    if n is None:
        return UNKNOWN
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(n) >= size * 0.9995:
            return f"{n / size:.3g} {letter}" if abs(n) < size * 999.5 else f"{n / size:,.0f} {letter}"
    return count(n)


def size(n_bytes: float) -> str:
    """Three digits: 464 kB, 1.21 MB."""
    return f"{short(n_bytes)}B" if n_bytes >= 999.5 else f"{count(n_bytes)} B"


def percent(share: float | None, digits: int = 1) -> str:
    """A share between 0 and 1: 72.0 %. Only nothing is 0 %, and only all is 100 %."""
    if share is None:
        return UNKNOWN
    least = 10.0**-digits
    if 0 < share * 100 < least / 2:
        return f"< {least:.{digits}f} %"
    if 100 - least / 2 <= share * 100 < 100:
        return f"> {100 - least:.{digits}f} %"
    return f"{share * 100:.{0 if share in (0, 1) else digits}f} %"


def percent_of_axis(share: float) -> str:
    """A share in three digits, for the axis of a chart: 50 %, 72.5 %."""
    return f"{share * 100:.3g} %"


def points(difference: float) -> str:
    """The difference of two shares in percentage points, with its sign: +1.2."""
    return f"{difference * 100:+.1f}".replace("-", "−")


def utility(figure: float | None, is_share: bool) -> str:
    """The utility of an allocation per unit of value. None = minus infinity, which some objectives allow: a loss
    without limit."""
    return "without limit" if figure is None else percent(figure) if is_share else count(figure)


def gain(difference: float | None, is_share: bool) -> str:
    """A small difference of two utilities: 0.12 %, 0.017."""
    return percent(difference, 2) if is_share or difference is None else count(difference)


UNITS = (("years", 31557600), ("days", 86400), ("h", 3600), ("min", 60), ("s", 1))


def lasting(duration: timedelta | None) -> str:
    """One figure and its unit, in the largest unit that gives at least 2. Exactly 1 h, 1 min or 1 s is written so.
    Examples: 0.8 s, 90 s, 12 min, 24 h, 3 days."""
    if duration is None:
        return UNKNOWN
    seconds = max(duration.total_seconds(), 0.0)
    for unit, size in UNITS:  # the last one, if none is small enough
        if seconds >= 2 * size or (seconds == size and unit not in ("days", "years")):
            break
    n = seconds / size
    return f"{n:.1f}".removesuffix(".0") + " s" if unit == "s" and n < 9.95 else f"{n:,.0f} {unit}"


def when(at: datetime, as_of: datetime) -> str:
    """A time to come, with its preposition: now, in 90 s, at 15:04, tomorrow 15:04."""
    if at - as_of < timedelta(seconds=1):
        return "now"
    if at - as_of < timedelta(minutes=2):
        return f"in {lasting(at - as_of)}"
    is_today = at - as_of < timedelta(days=1) and at.astimezone().date() == as_of.astimezone().date()
    return f"at {clock(at, as_of)}" if is_today else clock(at, as_of)


def clock(at: datetime | None, now: datetime) -> str:
    """Yesterday, today and tomorrow: the time, as in 15:04 and tomorrow 15:04. On other days of this year also the
    date: 12 Nov 15:04. In other years only the date. In the time zone of this machine."""
    if at is None:
        return UNKNOWN
    if at.year >= 9999:
        return "for ever"
    at, now = at.astimezone(), now.astimezone()
    days = (at.date() - now.date()).days
    if days == 0:
        return f"{at:%H:%M}"
    if days in (-1, 1):
        return f"{'yesterday' if days < 0 else 'tomorrow'} {at:%H:%M}"
    return f"{at.day} {at:%b %H:%M}" if at.year == now.year else f"{at.day} {at:%b %Y}"


def moment(at: datetime) -> str:
    """21 Nov 2026, 15:04:10 UTC, in the time zone of this machine."""
    at = at.astimezone()
    return f"{at.day} {at:%b %Y, %H:%M:%S} {at:%Z}".rstrip()


def literal(text: str) -> str:
    """A text in SQL, to be copied."""
    return "'" + text.replace("'", "''") + "'"


def interval(time: timedelta) -> str:
    """A length of time in SQL, to be copied."""
    # Not 1e+06: PostgreSQL reads no exponent in an interval.
    seconds = f"{time.total_seconds():.6f}".rstrip("0").rstrip(".")
    return f"'{seconds} seconds'"


def in_url(host: str) -> str:
    """A host in a URL, where an IPv6 address has brackets."""
    return f"[{host}]" if ":" in host else host
