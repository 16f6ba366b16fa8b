"""The calls of a crawler to the queue, and the yardstick for them. Each call returns the number of its rows."""

import json
import random
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from bench.data import REF_ROWS
from bench.measure import Backend, Row

BATCH = 100
TEN_A_HOST = "9 s"  # with a gap of 1 second
ONE_A_HOST = "0"
SHAPES = {"ten a host": TEN_A_HOST, "one a host": ONE_A_HOST}
# The same where many pops would soon have to wait for the hosts.
SHORT_GAP = "100 milliseconds"
SHAPES_OF_SHORT_GAP = {"ten a host": "0.9 s", "one a host": "0"}


def ref(backend: Backend) -> int:
    """100 random rows of a narrow table, one further index on the changed column."""
    ids = sorted(random.sample(range(1, REF_ROWS + 1), BATCH))  # or clients would deadlock
    backend.run(
        "update public.ref r set due = clock_timestamp() + interval '1 day' * random() "
        "from unnest(%s::bigint[]) i where r.id = i",
        [ids],
    )
    return BATCH


def arithmetic(backend: Backend) -> None:
    """Work that depends only on the speed of the machine: a yardstick for conditions in which ref itself is slower."""
    backend.run("select sum(sqrt(i)) from generate_series(1, 20000) i")


def pop(backend: Backend, ahead: str, n: int = BATCH) -> list[Row]:
    return backend.rows(
        "select page_id, lease_id, url, host, fetch_at, start_by, etag, last_modified, content_hash "
        "from recrawl.next_pages(%s, ahead => %s::interval)",
        [n, ahead],
    )


def pop_at(backend: Backend, t: datetime, ahead: str) -> list[Row]:
    """The explicit-time twin."""
    return backend.rows(
        "select page_id, lease_id, url, host, fetch_at, start_by, etag, last_modified, content_hash "
        "from recrawl_internal.next_pages_at(%s, %s, %s::interval, '10 minutes', null)",
        [t, BATCH, ahead],
    )


Outcome = dict[str, Any]


def fetched(pages: Sequence[Row]) -> list[Outcome]:
    """The reports of a crawler: three pages in ten have changed."""
    return [
        {
            "page_id": page[0],
            "lease_id": page[1],
            "status": 200,
            "content_hash": random.randbytes(16).hex() if random.random() < 0.3 else page[8],
            "etag": page[6],
        }
        for page in pages
    ]


def report_arrays(backend: Backend, outcomes: Sequence[Outcome]) -> list[Row]:
    return backend.rows(
        "select * from recrawl.report_pages("
        "%s::bigint[], %s::bigint[], %s::int[], content_hash => %s::text[], etag => %s::text[])",
        [[o[key] for o in outcomes] for key in ("page_id", "lease_id", "status", "content_hash", "etag")],
    )


def report_arrays_at(backend: Backend, t: datetime, outcomes: Sequence[Outcome]) -> list[Row]:
    """The explicit-time twin."""
    return backend.rows(
        "select * from recrawl_internal.report_pages_at("
        "%s, %s::bigint[], %s::bigint[], %s::int[], null, null, %s::text[], %s::text[], null)",
        [t, *([o[key] for o in outcomes] for key in ("page_id", "lease_id", "status", "content_hash", "etag"))],
    )


def report_json(backend: Backend, outcomes: Sequence[Outcome]) -> list[Row]:
    return backend.rows("select * from recrawl.report(%s::jsonb)", [json.dumps(outcomes)])


Report = Callable[[Backend, Sequence[Outcome]], list[Row]]
REPORTS: dict[str, Report] = {"report_pages": report_arrays, "report": report_json}


def cycle(backend: Backend, ahead: str = TEN_A_HOST) -> int:
    pages = pop(backend, ahead)
    report_arrays(backend, fetched(pages))
    return len(pages)
