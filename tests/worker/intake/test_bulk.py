"""Pages are added over several connections. Pages that were added stay, also after a later error."""

from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg
import pytest

from helpers import eventually
from recrawl.intake import bulk
from recrawl.intake.bulk import BATCH, CONNECTIONS
from recrawl.intake.importers import ImportFileError
from recrawl.store.calls import INVALID_SHOWN, AddedPages, PageToAdd


def pages(count: int, hosts: int = 50) -> Iterator[PageToAdd]:
    return (PageToAdd(f"http://h{i % hosts}.test/{i}") for i in range(count))


def count(connection: psycopg.Connection, query: str) -> int:
    row = connection.execute(query).fetchone()
    assert row
    return int(row[0])


def all_queued(connection: psycopg.Connection) -> None:
    """If an entry of the inbox is committed more than half a second after its time, upkeep finds it seconds later."""
    left = "select (select count(*) from inbox) + tick(100, 1000)"
    eventually(lambda: count(connection, left) == 0)


def assert_queued(connection: psycopg.Connection, expected: int) -> None:
    """Every page is in the queue, once, and nothing waits to get there."""
    seen = "select count(*) from inbox where at >= from_micros((select last_value from inbox_horizon))"
    assert count(connection, seen) == 0
    all_queued(connection)
    assert count(connection, "select count(*) from page") == expected
    places = "(select page_id from queue union all select page_id from new_page)"
    assert count(connection, f"select count(*) from {places} p") == expected
    assert count(connection, f"select count(distinct page_id) from {places} p join page using (page_id)") == expected
    assert count(connection, "select coalesce(sum(pages), 0) from host") == expected


@pytest.mark.parametrize("size", [0, 1, BATCH - 1, BATCH, BATCH + 1, 3 * CONNECTIONS * BATCH + 7])
def test_what_was_added_is_in_the_queue_afterwards(url: str, connection: psycopg.Connection, size: int) -> None:
    assert bulk.add(url, pages(size)).counts.total() == size
    assert_queued(connection, size)


def test_value_rate_due_meta_and_host_arrive(url: str, connection: psycopg.Connection) -> None:
    bulk.add(url, [PageToAdd("http://a.test/", 2.5, 0.5, None, {"k": ["v"]}, "c.test"), PageToAdd("http://b.test/")])
    rows = connection.execute(
        "select p.value, p.pinned_rate, p.meta, h.name from page p join host h using (host_id) order by h.name"
    ).fetchall()
    assert rows == [(1.0, None, None, "b.test"), (2.5, 0.5, {"k": ["v"]}, "c.test")]


def test_a_page_that_is_never_due_is_known_and_not_handed_out(url: str, connection: psycopg.Connection) -> None:
    now = datetime.now(UTC)
    pages = [
        PageToAdd("http://a.test/done", due="infinity"),
        PageToAdd("http://b.test/", due=now),
        PageToAdd("http://c.test/"),
    ]
    assert bulk.add(url, pages).counts == {"new": 3}
    states = connection.execute("select url, state from recrawl.page_status order by url").fetchall()
    assert states[0] == ("http://a.test/done", "done")
    all_queued(connection)
    handed_out = connection.execute("select url from recrawl.next_pages(10) order by url").fetchall()
    assert handed_out == [("http://b.test/",), ("http://c.test/",)]
    assert bulk.add(url, [PageToAdd("http://a.test/done")]).counts == {"known": 1}


def test_the_same_page_in_every_batch_and_on_every_connection_is_one_page(
    url: str, connection: psycopg.Connection
) -> None:
    spellings = ["http://a.test/%7Ex", "HTTP://A.test:80/~x", "http://a.test/./~x#top", "http://a.test/%7ex"]
    everywhere = [
        PageToAdd(spellings[i % 4]) if i % 10 == 0 else PageToAdd(f"http://b.test/{i % 3000}")
        for i in range(12 * BATCH)
    ]
    counts = bulk.add(url, everywhere).counts
    different = 1 + len({i % 3000 for i in range(12 * BATCH) if i % 10})
    assert counts == {"new": different, "known": len(everywhere) - different}
    assert_queued(connection, different)


def test_counts_say_what_became_of_each(url: str, connection: psycopg.Connection) -> None:
    connection.execute("select exclude('/private/')")
    bulk.add(url, [PageToAdd("http://a.test/known")])
    progress = bulk.add(
        url,
        [
            PageToAdd("http://a.test/known"),
            PageToAdd("http://a.test/new"),
            PageToAdd("http://a.test/new"),
            PageToAdd("http://a.test/private/x"),
            *(PageToAdd(f"ftp://a.test/{i}") for i in range(20)),
        ],
    )
    assert progress.counts == {"known": 2, "new": 1, "excluded": 1, "invalid": 20}
    assert 0 < len(progress.invalid) <= INVALID_SHOWN
    assert all(bad.startswith("ftp://a.test/") and "http" in reason for bad, reason in progress.invalid)


def test_the_counts_grow_as_it_goes(url: str) -> None:
    seen: list[int] = []
    bulk.add(url, pages(5 * BATCH), lambda progress: seen.append(progress.counts.total()))
    assert len(seen) == 5 and seen == sorted(seen)
    assert all(count >= BATCH * n for n, count in enumerate(seen, 1)) and seen[-1] == 5 * BATCH


def test_large_pages_go_in_several_transactions(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "BATCH_CHARACTERS", 1000)
    seen: list[int] = []
    large = (PageToAdd(f"http://a.test/{n}", meta={"a": "b" * 400}) for n in range(9))
    bulk.add(url, large, lambda progress: seen.append(progress.counts.total()))
    assert len(seen) == 3 and seen[-1] == 9
    long = (PageToAdd(f"http://a.test/{n}/{'b' * 400}") for n in range(9))
    bulk.add(url, long, lambda progress: seen.append(progress.counts.total()))
    assert len(seen) == 6 and seen[-1] == 9


@pytest.mark.parametrize("good", [0, 1, 500, 5 * BATCH, 20 * BATCH + 1])
def test_when_the_pages_end_in_an_error_what_came_before_it_stays(
    url: str, connection: psycopg.Connection, good: int
) -> None:
    def failing() -> Iterator[PageToAdd]:
        yield from pages(good)
        raise ImportFileError("line 4: torn")

    with pytest.raises(ImportFileError, match="line 4: torn"):
        bulk.add(url, failing())
    kept = count(connection, "select count(*) from page")
    assert kept == good
    assert_queued(connection, kept)


def test_when_the_user_interrupts_what_was_added_stays_and_is_counted(url: str, connection: psycopg.Connection) -> None:
    def watch(progress: AddedPages) -> None:
        raise KeyboardInterrupt

    progress = AddedPages()
    with pytest.raises(KeyboardInterrupt):
        bulk.add(url, pages(20 * BATCH), watch, progress)
    kept = count(connection, "select count(*) from page")
    assert 0 < kept < 20 * BATCH
    assert progress.counts == {"new": kept}
    while count(connection, "select tick(1000, 10000)"):  # as the worker does
        pass
    assert_queued(connection, kept)


@pytest.mark.parametrize("meta", [{"a": "\0"}, {"a": float("nan")}, {"\ud800": 1}], ids=["NUL", "NaN", "surrogate"])
def test_a_page_the_database_refuses_is_invalid_and_harms_no_other(
    url: str, connection: psycopg.Connection, meta: dict[str, object]
) -> None:
    refused = PageToAdd("http://a.test/", meta=meta)
    progress = bulk.add(url, [*pages(BATCH + 7), refused, *pages(BATCH), refused])
    assert progress.counts == {"new": BATCH + 7, "known": BATCH, "invalid": 2}
    assert [bad for bad, _ in progress.invalid] == ["http://a.test/"] * 2
    assert_queued(connection, BATCH + 7)


def test_when_the_connections_break_all_that_is_in_is_counted_or_unanswered(
    url: str, connection: psycopg.Connection
) -> None:
    def watch(progress: AddedPages) -> None:
        if progress.counts.total() > 5 * BATCH:
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and application_name = 'recrawl add'"
            )

    progress = AddedPages()
    with pytest.raises(psycopg.OperationalError):
        bulk.add(url, pages(200 * BATCH), watch, progress)
    kept = count(connection, "select count(*) from page")
    assert 5 * BATCH < progress.counts["new"] <= kept <= progress.counts["new"] + progress.counts["unanswered"]
    progress = bulk.add(url, pages(20 * BATCH))
    assert progress.counts.total() == 20 * BATCH
    assert count(connection, "select count(*) from page") == max(kept, 20 * BATCH)


def test_it_reads_no_further_ahead_than_its_connections_can_take(url: str) -> None:
    read = 0

    def counted() -> Iterator[PageToAdd]:
        nonlocal read
        for page in pages(40 * BATCH):
            read += 1
            yield page

    furthest = 0

    def watch(progress: AddedPages) -> None:
        nonlocal furthest
        furthest = max(furthest, read - progress.counts.total())

    bulk.add(url, counted(), watch)
    assert furthest <= (2 * CONNECTIONS + 1) * BATCH


def test_no_connection_stays_behind(url: str, connection: psycopg.Connection) -> None:
    bulk.add(url, pages(10))
    left = (
        "select count(*) from pg_stat_activity"
        " where datname = current_database() and application_name like 'recrawl add%'"
    )
    eventually(lambda: count(connection, left) == 0)
