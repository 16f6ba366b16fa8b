"""Numbers, durations and times as people read them."""

from collections.abc import Sequence
from datetime import datetime, timedelta


def count(number: float) -> str:
    """7,718, or 3.2 where it is small and not whole."""
    return f"{number:,.0f}" if abs(number) >= 10 or number == round(number) else f"{number:,.1f}"


def share(part: float | None, digits: int = 0) -> str:
    """Of a share between 0 and 1: 72 %."""
    return "–" if part is None else f"{100 * part:.{digits}f} %"


UNITS = (("days", 86400), ("h", 3600), ("min", 60), ("s", 1))


def lasting(duration: timedelta | None) -> str:
    """One figure and its unit: 12 min, 4.5 h, 0.8 s."""
    if duration is None:
        return "–"
    seconds = max(duration.total_seconds(), 0.0)
    unit, size = next(
        ((unit, size) for unit, size in UNITS if seconds >= 2 * size or (seconds == size and unit != "days")), UNITS[-1]
    )
    number = seconds / size
    if unit == "s" and number < 10:
        return f"{number:.1f}".rstrip("0").rstrip(".") + " s"
    return f"{number:,.0f} {unit}"


def when(at: datetime, as_of: datetime) -> str:
    """at 15:04 today, else with its day; in the zone of this machine."""
    local, today = at.astimezone(), as_of.astimezone()
    if at - as_of < timedelta(seconds=1):
        return "now"
    if at - as_of < timedelta(minutes=2):
        return f"in {lasting(at - as_of)}"
    return f"at {local:%H:%M}" if local.date() == today.date() else f"on {local:%-d %B} at {local:%H:%M}"


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


EIGHTHS = " ▏▎▍▌▋▊▉█"
LEVELS = "▁▂▃▄▅▆▇█"


def bar(part: float, width: int) -> str:
    """A share between 0 and 1 as a bar of at most so many columns."""
    eighths = round(min(max(part, 0), 1) * width * 8)
    return "█" * (eighths // 8) + (EIGHTHS[eighths % 8] if eighths % 8 else "")


def sparkline(numbers: Sequence[float], width: int) -> str:
    """The last numbers, from nothing up to the greatest of them."""
    numbers = list(numbers)[-width:]
    most = max(numbers, default=0)
    return "".join(LEVELS[round(number / most * (len(LEVELS) - 1))] if most > 0 else LEVELS[0] for number in numbers)
