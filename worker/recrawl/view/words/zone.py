"""The time zone of this machine. Pure but for where it is.

`datetime.now().astimezone()` holds on to the offset that counts now: a time on the other side of the change to or from
summer time would be told by it an hour off.
"""

from datetime import UTC, datetime, timedelta, tzinfo


class Here(tzinfo):
    """Each time has the offset that counts then, as the system knows it."""

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return _fixed(at).utcoffset() if at else None

    def tzname(self, at: datetime | None) -> str | None:
        return _fixed(at).tzname() if at else None

    def dst(self, at: datetime | None) -> None:
        return None

    def fromutc(self, at: datetime) -> datetime:
        fixed = at.replace(tzinfo=UTC).astimezone()
        here = fixed.replace(tzinfo=self)
        return here if here.utcoffset() == fixed.utcoffset() else here.replace(fold=1)  # the hour that comes twice


def _fixed(at: datetime) -> datetime:
    return at.replace(tzinfo=None).astimezone()


HERE = Here()
