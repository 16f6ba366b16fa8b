"""The SQL functions that the command line, intake and the jobs that run all the time call."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple

from psycopg.types.json import Jsonb

from recrawl.store.connection import Connection, rows, value

INVALID_SHOWN = 5
WORKER = "recrawl worker"  # the application_name of a worker's connection


def workers(connection: Connection) -> int:
    """The number of connected workers that this login may see."""
    query = "select count(*) from pg_stat_activity where datname = current_database() and application_name = %s"
    return int(value(connection, query, WORKER) or 0)


def tick(connection: Connection, max_entries: int = 2000) -> int:
    """One step of the queue's upkeep. Returns how many pages, URLs and inbox entries it handled. While it repairs
    times that a wrong clock wrote, hosts and leases count too. 0 = nothing is left to do now."""
    return int(value(connection, "select recrawl_internal.tick(200, %s)", max_entries) or 0)


def follow_boosts(connection: Connection) -> int:
    """One step of applying boosts to pages. Returns how many page ids it looked at; 0 if nothing can be done now."""
    return int(value(connection, "select recrawl_internal.follow_boosts(2000)") or 0)


def take_vitals(connection: Connection) -> bool:
    """Brings the view vitals up to the last full minute. Returns whether that minute was missing."""
    return bool(value(connection, "select recrawl_internal.take_vitals()"))


def forget_history(connection: Connection) -> int:
    """Deletes rows that are older than the settings allow. Returns their number."""
    return int(value(connection, "select recrawl_internal.forget_history()") or 0)


class PageToAdd(NamedTuple):
    """A page to add; None = not given, so that SQL decides. rate: changes per day. due: "infinity" = never. host: the
    name of the host whose queue and gap the URL shares."""

    url: str
    value: float | None = None
    rate: float | None = None
    due: datetime | Literal["infinity"] | None = None
    meta: dict[str, object] | None = None
    host: str | None = None


@dataclass
class AddedPages:
    """The number of URLs by outcome, and the first few invalid URLs with the reason.

    Outcomes are new, known, excluded, invalid and unanswered. Unanswered: the connection broke while the URLs were
    added, so it is not known whether they are in the database.
    """

    counts: Counter[str] = field(default_factory=Counter)
    invalid: list[tuple[str, str]] = field(default_factory=list)

    def take(self, added: "AddedPages") -> None:
        self.counts.update(added.counts)
        self.invalid = (self.invalid + added.invalid)[:INVALID_SHOWN]


def add_pages(connection: Connection, pages: Sequence[PageToAdd]) -> AddedPages:
    rows = connection.execute(
        """
        select code, count(*), (pg_catalog.array_agg(array[url, detail]) filter (where code = 'invalid'))[:3]
        from recrawl.add_pages(
            %b::text[], %b::float8[], %b::float8[], %b::text[]::timestamptz[], %b::jsonb[], %b::text[])
        group by code
        """,
        [
            [page.url for page in pages],
            _column([page.value for page in pages]),
            _column([page.rate for page in pages]),
            _column([page.due and str(page.due) for page in pages]),
            _column([page.meta and Jsonb(page.meta) for page in pages]),
            _column([page.host for page in pages]),
        ],
    ).fetchall()
    counts = Counter({code: count for code, count, _ in rows})
    return AddedPages(counts, [(url, detail) for _, _, invalid in rows for url, detail in invalid or []])


def _column(values: list[Any]) -> list[Any] | None:
    return values if any(value is not None for value in values) else None


def next_pages(
    connection: Connection, n: int, ahead: timedelta, lease: timedelta, per_host: int | None
) -> list[dict[str, Any]]:
    return rows(connection, "select * from recrawl.next_pages(%s, %s, %s, %s)", n, ahead, lease, per_host)


def coming(connection: Connection, n: int) -> list[dict[str, Any]]:
    """Roughly the pages that next_pages would hand out, with a few facts about each. Leases nothing."""
    return rows(connection, "select * from recrawl_internal.coming(clock_timestamp(), %s)", n)


def explain_page(connection: Connection, what: str) -> list[dict[str, Any]]:
    """All that is known of a page, by its URL or id, or of a host. One row per topic."""
    return rows(connection, "select * from recrawl.explain_page(%s::text)", what)


def release(connection: Connection, lease_id: int, page_ids: Sequence[int] | None) -> int:
    return int(value(connection, "select recrawl.release(%s, %s)", lease_id, page_ids and list(page_ids)) or 0)


def exclude(connection: Connection, pattern: str) -> int:
    """Returns the number of pages that are no longer fetched."""
    return int(value(connection, "select recrawl.exclude(%s)", pattern) or 0)
