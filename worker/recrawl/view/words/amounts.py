"""Counts, shares and times as the report shows them. What is not known is a dash."""

from datetime import datetime

UNKNOWN = "–"
UNIT = "\N{NO-BREAK SPACE}"  # before what must not stand alone on the next line


def thousands(n: float | None) -> str:
    return UNKNOWN if n is None else f"{n:,.0f}"


def short(n: float | None) -> str:
    """Three digits and a letter: 464 k, 1.21 M."""
    if n is None:
        return UNKNOWN
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(n) >= unit * 0.9995:
            return f"{n / unit:.3g}{UNIT}{letter}" if abs(n) < unit * 999.5 else f"{n / unit:,.0f}{UNIT}{letter}"
    return f"{n:.3g}" if n % 1 else f"{n:.0f}"


def percent(share: float | None, digits: int = 1) -> str:
    """Never 0 for something, never 100 for less than all."""
    if share is None:
        return UNKNOWN
    least = 10.0**-digits
    if 0 < share * 100 < least / 2:
        return f"< {least:.{digits}f}{UNIT}%"
    if 100 - least / 2 <= share * 100 < 100:
        return f"> {100 - least:.{digits}f}{UNIT}%"
    return f"{share * 100:.{0 if share in (0, 1) else digits}f}{UNIT}%"


def points(difference: float) -> str:
    """Of two shares, in percentage points, with its sign."""
    return f"{difference * 100:+.1f}".replace("-", "−")


def number(noun: str, n: float) -> str:
    return f"{thousands(n)} {either(n, noun, noun + 's')}"


def either(n: float, one: str, many: str) -> str:
    """The word that goes with a number."""
    return one if round(n) == 1 else many


def clock(at: datetime | None, now: datetime) -> str:
    """The time of a day near now; further away also the date. Both in now's time zone."""
    if at is None:
        return UNKNOWN
    if at.year >= 9999:
        return "for good"
    at = at.astimezone(now.tzinfo)
    days = (at.date() - now.date()).days
    if days == 0:
        return f"{at:%H:%M}"
    if days in (-1, 1):
        return f"{'yesterday' if days < 0 else 'tomorrow'} {at:%H:%M}"
    return f"{at.day} {at:%b %H:%M}" if at.year == now.year else f"{at.day} {at:%b %Y}"


def moment(at: datetime) -> str:
    return f"{at.day} {at:%b %Y, %H:%M:%S} {at:%Z}".rstrip()
