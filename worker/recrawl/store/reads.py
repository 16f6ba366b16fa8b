"""Reads of the jobs: settings, and columns of numbers as numpy arrays."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray
from psycopg import sql

from recrawl.store.columns import Columns, Watch, read
from recrawl.store.connection import Connection, value

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Settings = TypeVar("Settings", bound="DataclassInstance")


def settings(connection: Connection, wanted: type[Settings]) -> Settings:
    """The settings that the fields of a dataclass name. Intervals are in days, and None is an empty setting."""
    given = dict(connection.execute("select name, typed from recrawl_internal.setting_column").fetchall())
    return wanted(**{field.name: given[field.name] for field in fields(wanted)})


def _columns_of(row_type: "type[DataclassInstance]", view: str) -> str:
    """The query for the columns of a view that the fields of a dataclass name."""
    return f"select {', '.join(field.name for field in fields(row_type))} from recrawl_internal.{view}"


@dataclass(frozen=True)
class PagesToAllocate:
    page_id: NDArray[np.int64]
    host_id: NDArray[np.int64]
    value: NDArray[np.float32]
    rate: NDArray[np.float32]  # changes per day
    due_on: NDArray[np.float64]  # days since 1970; NaN = no due time
    planned_interval: NDArray[np.float32]  # days from last fetch to due time; NaN = the frequency did not set this time
    pinned: NDArray[np.float32]  # fetches per day; NaN = the price decides


@dataclass(frozen=True)
class HostsToAllocate:
    host_id: NDArray[np.int64]  # ascending
    cap: NDArray[np.float64]  # slots per day
    cap_with_half_the_gap: NDArray[np.float64]
    blocked_until: NDArray[np.float64]  # days since 1970


@dataclass(frozen=True)
class NewPagesToAllocate:
    """In order of classes of value, the best class first."""

    host_id: NDArray[np.int64]
    value_class: NDArray[np.int32]
    pages: NDArray[np.float64]  # the pages that wait now, and those that will be found within a day
    waiting: NDArray[np.float64]  # the pages that wait now


@dataclass(frozen=True)
class Evidence:
    """The evidence on how often pages change: the changes and days that the fetches of each page showed, without the
    prior of its host."""

    host_id: NDArray[np.int64]
    changes: NDArray[np.float32]
    days: NDArray[np.float32]


def pages_to_allocate(url: str, watch: Watch = lambda _: None) -> PagesToAllocate:
    return PagesToAllocate(*read(url, _columns_of(PagesToAllocate, "page_to_allocate"), watch))


def hosts_to_allocate(url: str) -> HostsToAllocate:
    return HostsToAllocate(*read(url, _columns_of(HostsToAllocate, "host_to_allocate order by host_id")))


def new_pages_to_allocate(url: str, t: datetime) -> NewPagesToAllocate:
    query = sql.SQL("select * from recrawl_internal.new_pages_to_allocate({})").format(t)
    return NewPagesToAllocate(*read(url, query.as_string()))


@dataclass(frozen=True)
class FetchesOfLastDay:
    """How far the fetches since the first allocation of the last 24.5 hours are from the budget. Without an allocation
    in these hours, `days` and `to_make_up` are 0, and `since_last` is 1/24."""

    days: float  # since this first allocation
    to_make_up: float  # fetches that the budget allowed and no crawler took; negative = more than the budget allowed
    since_last: float  # days since the last allocation


def fetches_of_last_day(connection: Connection, t: datetime) -> FetchesOfLastDay:
    (row,) = connection.execute("select * from recrawl_internal.fetches_of_last_day(%s)", [t]).fetchall()
    return FetchesOfLastDay(*row)


def retries_per_day(connection: Connection, t: datetime) -> float:
    """Fetches per day, in the last 24 hours, of pages whose previous attempt had failed."""
    return float(value(connection, "select recrawl_internal.retries_per_day(%s)", t) or 0.0)


def policy_days(connection: Connection, t: datetime) -> float:
    """The days for which allocations have followed the policy that is set now."""
    return float(value(connection, "select recrawl_internal.policy_days(%s)", t))


def clock(connection: Connection) -> datetime:
    t: datetime = value(connection, "select clock_timestamp()")
    return t


def newest_page(connection: Connection) -> int:
    return int(value(connection, "select recrawl_internal.newest_page()"))


def evidence(url: str, watch: Watch = lambda _: None) -> Evidence:
    return Evidence(*read(url, "select host_id, seen_changes, seen_days from recrawl_internal.page_evidence", watch))


def host_names(connection: Connection, host_ids: Sequence[int]) -> list[str]:
    rows = connection.execute(
        """
        select name from pg_catalog.unnest(%b::bigint[]) with ordinality as wanted (host_id, place)
        join recrawl_internal.host_to_allocate using (host_id) order by place
        """,
        [list(host_ids)],
    ).fetchall()
    return [name for (name,) in rows]


@dataclass(frozen=True)
class Links:
    """Page source_ids[s] links to the pages target_ids[first[s] : first[s + 1]]."""

    source_ids: NDArray[np.int64]
    first: NDArray[np.int64]
    target_ids: NDArray[np.int64]


SCORES = ("hub", "authority", "importance", "in_links")


@dataclass(frozen=True)
class StoredGraph:
    """Pages, links and scores, each in its own order. The scores are those that were last written. All but in_links
    are 1 on average over all pages."""

    page_id: NDArray[np.int64]
    relevance: NDArray[np.float32]  # NaN = unknown
    value: NDArray[np.float32]  # without boosts; NaN = pinned
    links: Links
    scored_id: NDArray[np.int64]
    scores: dict[str, NDArray[np.float32]]  # by SCORES; NaN = not computed


def graph(url: str, watch: Callable[[str, int, int | None], None] = lambda *_: None) -> StoredGraph:
    """Reads in one transaction with one snapshot. `watch` gets the name of what is being read, the number of rows so
    far, and the number of pages (None while pages are read)."""
    with Columns(url) as columns:
        columns.execute("set transaction isolation level repeatable read")
        query = "select page_id, relevance, value from recrawl_internal.page_in_graph"
        page_id, relevance, value = columns.read(query, lambda rows: watch("pages", rows, None))
        query = "select page_id, targets from recrawl_internal.link_in_graph"
        links = columns.read(query, lambda rows: watch("links", rows, len(page_id)))
        query = f"select page_id, {', '.join(SCORES)} from recrawl_internal.score_in_graph"
        scored_id, *scores = columns.read(query, lambda rows: watch("scores", rows, len(page_id)))
    return StoredGraph(page_id, relevance, value, Links(*links), scored_id, dict(zip(SCORES, scores, strict=True)))
