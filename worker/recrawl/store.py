"""The only place that talks SQL for the worker and the command line. Has no mathematics and no opinions."""

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row, scalar_row
from psycopg.types.json import Jsonb

from recrawl.columns import Columns, read
from recrawl.importers import Page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Connection = psycopg.Connection[Any]


def connect(url: str, name: str = "recrawl") -> Connection:
    """A connection in autocommit: every verb is a transaction of its own."""
    return psycopg.connect(url, autocommit=True, application_name=name)


def put_on_search_path(connection: Connection) -> None:
    """From the next connection on, `SELECT * FROM next_pages(100)` works as written."""
    connection.execute(
        sql.SQL('alter database {} set search_path = "$user", public, recrawl').format(
            sql.Identifier(connection.info.dbname)
        )
    )


def tick(connection: Connection, max_leases: int = 200, max_entries: int = 2000) -> int:
    """One step of the queue's upkeep; how many pages it moved."""
    with connection.cursor(row_factory=scalar_row) as cursor:
        cursor.execute("select recrawl_internal.tick(%s, %s)", [max_leases, max_entries])
        return int(cursor.fetchone() or 0)


@dataclass
class Added:
    """How many URLs of a batch came out as what, and a few of those that are invalid."""

    counts: dict[str, int] = field(default_factory=dict)
    invalid: list[tuple[str, str]] = field(default_factory=list)


def add_pages(connection: Connection, pages: Sequence[Page]) -> Added:
    rows = connection.execute(
        """
        select code, count(*), (array_agg(array[url, detail]) filter (where code = 'invalid'))[:3]
        from recrawl.add_pages(%b::text[], %b::float8[], %b::float8[], %b::timestamptz[], %b::jsonb[])
        group by code
        """,
        [
            [page.url for page in pages],
            _column([page.value for page in pages]),
            _column([page.rate for page in pages]),
            _column([page.due for page in pages]),
            _column([page.meta and Jsonb(page.meta) for page in pages]),
        ],
    ).fetchall()
    added = Added()
    for code, count, invalid in rows:
        added.counts[code] = count
        added.invalid += [(url, detail) for url, detail in invalid or []]
    return added


def _column(values: list[Any]) -> list[Any] | None:
    """None stands for a column in which nothing is given."""
    return values if any(value is not None for value in values) else None


def next_pages(
    connection: Connection, n: int, ahead: timedelta, lease: timedelta, per_host: int | None
) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.next_pages(%s, %s, %s, %s)", [n, ahead, lease, per_host])
        return cursor.fetchall()


def queue_status(connection: Connection) -> dict[str, Any]:
    with connection.cursor(row_factory=dict_row) as cursor:
        cursor.execute("select * from recrawl.queue_status")
        return cursor.fetchone() or {}


# -------------------------------------------------------------------------------------------------------- batch jobs


@dataclass(frozen=True)
class Settings:
    """What allocation obeys. Fetches per day, shares and days."""

    frequency: float
    budget: float | None
    objective: str
    exploration: float
    longest_interval: float | None
    shortest_interval: float | None


def settings(connection: Connection) -> Settings:
    rows = connection.execute("select name, value from recrawl.settings").fetchall()
    given = {name: value for name, value in rows if value is not None}
    days = "select extract(epoch from %s::interval)::float8 / 86400"

    def interval(name: str) -> float | None:
        row = connection.execute(days, [given[name]]).fetchone() if name in given else None
        return float(row[0]) if row else None

    return Settings(
        frequency=float(given["frequency"]),
        budget=float(given["budget"]) if "budget" in given else None,
        objective=given["objective"],
        exploration=float(given["exploration"]),
        longest_interval=interval("longest_interval"),
        shortest_interval=interval("shortest_interval"),
    )


@dataclass(frozen=True)
class PagesToAllocate:
    page_id: "NDArray[np.int64]"
    host_id: "NDArray[np.int64]"
    value: "NDArray[np.float32]"
    rate: "NDArray[np.float32]"  # changes per day
    frequency: "NDArray[np.float32]"  # fetches per day, as stored; NaN = none


@dataclass(frozen=True)
class HostsToAllocate:
    host_id: "NDArray[np.int64]"  # ascending
    cap: "NDArray[np.float64]"  # fetches per day


@dataclass(frozen=True)
class Evidence:
    """On how often pages change: the filter's numbers beyond its prior."""

    host_id: "NDArray[np.int64]"
    changes: "NDArray[np.float32]"
    days: "NDArray[np.float32]"


def pages_to_allocate(url: str) -> PagesToAllocate:
    query: LiteralString = "select page_id, host_id, value, rate, frequency from recrawl_internal.page_to_allocate"
    return PagesToAllocate(*read(url, query))


def hosts_to_allocate(url: str) -> HostsToAllocate:
    return HostsToAllocate(*read(url, "select host_id, cap from recrawl_internal.host_to_allocate order by host_id"))


def evidence(url: str) -> Evidence:
    return Evidence(*read(url, "select host_id, seen_changes, seen_days from recrawl_internal.page_evidence"))


@dataclass(frozen=True)
class LoggedVisits:
    """Page by page; beside each visit the filter's numbers on its page."""

    page_id: "NDArray[np.int64]"
    days: "NDArray[np.float32]"
    changed: "NDArray[np.int32]"
    belief_changes: "NDArray[np.float64]"
    belief_days: "NDArray[np.float64]"


def logged_visits(url: str) -> LoggedVisits:
    query: LiteralString = (
        "select page_id, days, changed, belief_changes, belief_days from recrawl_internal.visit_to_audit"
    )
    return LoggedVisits(*read(url, query))


def host_names(connection: Connection, host_ids: Sequence[int]) -> list[str]:
    rows = connection.execute(
        """
        select name from unnest(%b::bigint[]) with ordinality as wanted (host_id, place)
        join recrawl_internal.host_to_allocate using (host_id) order by place
        """,
        [list(host_ids)],
    ).fetchall()
    return [name for (name,) in rows]


@dataclass(frozen=True)
class Links:
    """Page source_ids[s] links to the pages target_ids[first[s] : first[s + 1]]."""

    source_ids: "NDArray[np.int64]"
    first: "NDArray[np.int64]"
    target_ids: "NDArray[np.int64]"


SCORES = ("hub", "authority", "importance", "in_links")


@dataclass(frozen=True)
class StoredScores:
    """As last written; all but in_links are 1 on average over all pages."""

    page_id: "NDArray[np.int64]"
    by_name: "dict[str, NDArray[np.float32]]"  # NaN = none


@dataclass(frozen=True)
class WholeGraph:
    page_id: "NDArray[np.int64]"
    relevance: "NDArray[np.float32]"  # NaN = unknown
    links: Links
    scores: StoredScores


@dataclass(frozen=True)
class GraphNews:
    """The present state of every page of which something changed, in order of id."""

    is_live: "NDArray[np.int32]"
    relevance: "NDArray[np.float32]"  # NaN = unknown
    links: Links  # a row for every page


def read_graph(url: str, token: int, remembered: int | None) -> WholeGraph | GraphNews:
    """What changed since run `remembered` read the graph; all of it if that is not known.

    In one transaction with one snapshot: what it does not show is news for the next read.
    """
    with Columns(url) as columns:
        columns.execute("set transaction isolation level repeatable read")
        (last_token,) = columns.read(f"select coalesce(recrawl_internal.begin_graph_read({token:d}), 0)")
        news = _graph_news(columns) if int(last_token[0]) == remembered else None
        graph = news or _whole_graph(columns)
        columns.read("select recrawl_internal.end_graph_read()")
    return graph


def _whole_graph(columns: Columns) -> WholeGraph:
    page_id, relevance = columns.read("select page_id, relevance from recrawl_internal.page_in_graph")
    links = columns.read("select page_id, targets from recrawl_internal.link_in_graph")
    scored, *scores = columns.read(f"select page_id, {', '.join(SCORES)} from recrawl_internal.score_in_graph")
    return WholeGraph(page_id, relevance, Links(*links), StoredScores(scored, dict(zip(SCORES, scores, strict=True))))


def _graph_news(columns: Columns) -> GraphNews | None:
    page_id, is_live, relevance, first, target_ids = columns.read(
        "select page_id, is_live, relevance, targets from recrawl_internal.news_in_graph"
    )
    if -1 in page_id[:1]:
        return None  # more than can be told
    return GraphNews(is_live, relevance, Links(page_id, first, target_ids))


def weights(connection: Connection) -> dict[str, float]:
    """Of a page's scores in its value."""
    rows = connection.execute("select name, value::float8 from recrawl.settings where name like %b", [r"%\_weight"])
    return {name.removesuffix("_weight"): weight for name, weight in rows.fetchall()}


def last_terms(connection: Connection) -> dict[str, float] | None:
    """What the values of all pages were last worked out with."""
    (terms,) = connection.execute("select terms from recrawl_internal.last_terms").fetchone() or (None,)
    return dict(terms) if terms else None


ALIVE_FOR = timedelta(minutes=1)
HEARTBEAT_SECONDS = 15.0
CHUNK = 10_000


@dataclass
class Run:
    """A run of a job. Whatever it writes is refused once another worker has taken the job over."""

    connection: Connection
    token: int
    message: str = ""

    def put_prices(
        self,
        allocation: dict[str, object],
        host_ids: "NDArray[np.int64]",
        prices: "NDArray[np.float64]",
        ties: "NDArray[np.float64]",
        floors: "NDArray[np.float64]",
        capped: "NDArray[np.bool_]",
        frequencies: "NDArray[np.float64]",
    ) -> None:
        record = {
            name: str(v) if isinstance(v, float) and not math.isfinite(v) else v for name, v in allocation.items()
        }
        self.connection.execute(
            """
            select recrawl_internal.put_prices(
                %b, %b, %b,
                %b::bigint[], %b::float8[], %b::float8[], %b::float8[], %b::boolean[], %b::float8[])
            """,
            [
                self.token, ALIVE_FOR, Jsonb(record | {"token": self.token}), host_ids.tolist(), prices.tolist(),
                ties.tolist(), floors.tolist(), capped.tolist(), frequencies.tolist(),
            ],
        )  # fmt: skip

    def put_priors(
        self, host_ids: "NDArray[np.int64]", changes: "NDArray[np.float64]", days: "NDArray[np.float64]"
    ) -> None:
        self.connection.execute(
            "select recrawl_internal.put_priors(%b, %b, %b::bigint[], %b::float8[], %b::float8[])",
            [self.token, ALIVE_FOR, host_ids.tolist(), changes.tolist(), days.tolist()],
        )

    def put_frequencies(
        self,
        page_ids: "NDArray[np.int64]",
        frequencies: "NDArray[np.float32]",
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        """In chunks, each a transaction of its own; `watch` sees how many are done."""
        for start in range(0, len(page_ids), CHUNK):
            chunk = slice(start, start + CHUNK)
            self.connection.execute(
                "select recrawl_internal.put_frequencies(%b, %b, %b::bigint[], %b::real[])",
                [self.token, ALIVE_FOR, page_ids[chunk].tolist(), frequencies[chunk].tolist()],
            )
            watch(min(start + CHUNK, len(page_ids)))

    def reopen_news(self) -> bool:
        """False if the news are more than their table may hold, and somebody holds it so that it cannot be emptied."""
        row = self.connection.execute("select recrawl_internal.reopen_news(%b, %b)", [self.token, ALIVE_FOR]).fetchone()
        return bool(row and row[0])

    def put_graph_state(self, mean_relevance: float, first_share: float) -> None:
        self.connection.execute(
            "select recrawl_internal.put_graph_state(%b, %b, %b, %b)",
            [self.token, ALIVE_FOR, mean_relevance, first_share],
        )

    def put_scores(
        self,
        scores: StoredScores,
        watch: Callable[[int], None] = lambda _: None,
    ) -> None:
        """In chunks, each a transaction of its own; `watch` sees how many are done."""
        for start in range(0, len(scores.page_id), CHUNK):
            chunk = slice(start, start + CHUNK)
            self.connection.execute(
                """
                select recrawl_internal.put_scores(
                    %b, %b, %b::bigint[], %b::real[], %b::real[], %b::real[], %b::real[])
                """,
                [
                    self.token, ALIVE_FOR, scores.page_id[chunk].tolist(),
                    *(scores.by_name[name][chunk].tolist() for name in SCORES),
                ],
            )  # fmt: skip
            watch(min(start + CHUNK, len(scores.page_id)))

    def put_opic(self, terms: dict[str, float], record: dict[str, object]) -> None:
        self.connection.execute(
            "select recrawl_internal.put_opic(%b, %b, %b, %b)",
            [self.token, ALIVE_FOR, Jsonb(terms), Jsonb(record | {"token": self.token})],
        )


@contextmanager
def run(url: str, job: str) -> Iterator[Run]:
    """A run of a job, which no other worker can run meanwhile; it is in job_run however it ends."""
    with connect(url, f"recrawl {job}") as connection:
        with connection.cursor(row_factory=scalar_row) as cursor:
            token = cursor.execute("select recrawl_internal.start_job(%s, %s)", [job, ALIVE_FOR]).fetchone()
        running = Run(connection, int(token or 0))
        with _heartbeat(url, running.token):
            try:
                yield running
            except BaseException as error:
                with suppress(psycopg.Error):
                    _end(connection, running.token, False, str(error) or type(error).__name__)
                raise
            _end(connection, running.token, True, running.message)


def _end(connection: Connection, token: int, ok: bool, message: str) -> None:
    connection.execute("select recrawl_internal.end_job(%s, %s, %s)", [token, ok, " ".join(message.split())])


@contextmanager
def _heartbeat(url: str, token: int) -> Iterator[None]:
    """Signs of life while nothing is written: computing may take minutes."""
    done = threading.Event()

    def beat() -> None:
        # When it cannot be heard, or another worker took over, the next write says so.
        with suppress(psycopg.Error), connect(url, "recrawl heartbeat") as connection:
            while not done.wait(HEARTBEAT_SECONDS):
                connection.execute("select recrawl_internal.keep_job(%s, %s)", [token, ALIVE_FOR])

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
