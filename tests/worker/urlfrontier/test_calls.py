"""Every call of URLFrontier, by a real client, over a real crawl. With several crawls: test_crawls.py."""

import logging
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from helpers import eventually
from recrawl.client.database import Connection
from recrawl.urlfrontier import crawl_database
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import OK, SKIPPED, Frontier, discovered, info, known
from worker.urlfrontier.conftest import Command, Served

A, A2, B = "http://a.example/", "http://a.example/2", "http://b.example/"
DAY = timedelta(days=1)


def now() -> datetime:
    return datetime.now(UTC)


def state(db: psycopg.Connection[Any], url: str) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = db.execute(
        "select state, successes, due_at, last_status from recrawl.page_status where page_id = recrawl.page_of(%s)",
        [url],
    ).fetchone()
    assert row
    return row


# ------------------------------------------------------------------------------------------------------ put


def test_what_is_new_is_ok_and_what_is_known_or_cannot_be_is_skipped(frontier: Frontier) -> None:
    items = {
        "new": discovered(A, key="k" * 255), "again": discovered(A),
        "in another spelling": discovered("HTTP://A.example:80/"),
        "empty": discovered(""), "no URL": discovered("mailto:a@a.example"), "key": discovered(B, key="k" * 256),
        "NUL": discovered("http://c.example/", metadata={"a": ["\0"]}), "of nothing": pb.URLItem(),
        "NUL as a name": discovered("http://c.example/", metadata={"\0": []}),
    }  # fmt: skip
    for name, item in items.items():
        item.ID = name
    assert dict(frontier.put(*items.values())) == dict.fromkeys(items, SKIPPED) | {"new": OK}
    assert frontier.urls() == [A]


def test_an_acknowledgement_has_the_id_else_the_url(frontier: Frontier) -> None:
    assert sorted(frontier.put(discovered(A, ID="7"), discovered(B))) == [("7", OK), (B, OK)]
    assert frontier.put() == []


def test_a_stream_that_stays_open_is_acknowledged_as_it_goes(frontier: Frontier) -> None:
    def items() -> Any:
        for n in range(3):
            yield discovered(f"{A}{n}")
            eventually(lambda: len(acks) == n + 1)  # noqa: B023

    acks: list[str] = []
    for ack in frontier.calls["PutURLs"](items(), timeout=60):
        acks.append(ack.ID)
    assert acks == [f"{A}{n}" for n in range(3)]


def test_what_is_put_comes_back_as_it_was(frontier: Frontier) -> None:
    metadata = {"several": ["a", "", "ü"], "none": [], "": ["x"], "no NUL": [r"\u0000"]}
    frontier.put(discovered("http://a.example/x?b=2&a=1#top", metadata=metadata))
    (got,) = frontier.get()
    assert (got.url, got.key, got.crawlID) == ("http://a.example/x?b=2&a=1", "a.example", "DEFAULT")
    assert {name: list(values.values) for name, values in got.metadata.items()} == metadata


def test_batches_are_acknowledged_in_their_order_empty_ones_too(frontier: Frontier) -> None:
    acks = frontier.put_batches(
        pb.DiscoveredBatch(ID="probe"),
        pb.DiscoveredBatch(ID="all", items=[info(A), info(""), info(A), info(B)]),
        pb.DiscoveredBatch(ID="bad", items=[info("")]),
    )
    assert {ack.ID: list(ack.statuses) for ack in acks} == {
        "probe": [], "all": [OK, SKIPPED, SKIPPED, OK], "bad": [SKIPPED],
    }  # fmt: skip


# ---------------------------------------------------------------------------------------------- get, and known


def set_gap(frontier: Frontier, seconds: int) -> None:
    """Sets the gap of all queues: longer than a busy machine needs for the calls that must come within one gap."""
    frontier.call("SetDelay", pb.QueueDelayParams(delay_requestable=seconds))


def test_one_of_each_queue_is_handed_out_and_none_twice(frontier: Frontier) -> None:
    set_gap(frontier, 5)
    frontier.put(*(discovered(url) for url in (A, A2, B)))
    assert {got.url for got in frontier.get()} == {A, B}
    assert frontier.get() == [], "its host's gap"
    assert [got.url for got in eventually(frontier.get)] == [A2]
    time.sleep(6)
    assert frontier.get() == [], "all are in process"


def test_a_url_that_nobody_reports_comes_again(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    assert [got.url for got in frontier.get(held=1)] == [A]
    assert [got.url for got in eventually(frontier.get)] == [A]


def test_a_url_is_held_for_30_seconds_by_default(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A))
    assert len(frontier.get(queues=0, per_queue=0, held=0)) == 1
    assert db.execute("select lease_until - handed_out_at from recrawl.lease_status").fetchall() == [
        (timedelta(seconds=30),)
    ]


def test_no_more_queues_than_asked_for_and_a_key_alone(frontier: Frontier) -> None:
    frontier.put(*(discovered(f"http://h{n}.example/") for n in range(5)))
    assert len(frontier.get(queues=2)) == 2
    assert frontier.get(key="h9.example", crawlID="") == []
    left = {item for item in frontier.urls() if frontier.status(item)}
    got = [url for n in range(5) for url in frontier.get(key=f"h{n}.example", crawlID="DEFAULT")]
    assert len(got) == 3 and len(left) == 5
    assert frontier.get(key="h1.example") == [], "a key needs a crawlID"


@pytest.mark.parametrize("pages", [1, 5])
def test_no_more_queues_than_asked_for_and_no_more_urls_of_each(frontier: Frontier, pages: int) -> None:
    set_gap(frontier, 10)
    frontier.put(*(discovered(f"http://h{n}.example/{page}") for n in range(7) for page in range(pages)))
    got = Counter(page.key for page in frontier.get(queues=3, per_queue=2))
    assert list(got.values()) == [min(pages, 2)] * 3
    others = Counter(page.key for page in frontier.get(queues=2**32 - 1, per_queue=2))
    assert list(others.values()) == [min(pages, 2)] * 4 and not got.keys() & others.keys()


def test_several_urls_of_a_queue_have_slots_of_their_own(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    """Their client spaces them. Until their slots have passed, no other client gets a URL of the queue."""
    set_gap(frontier, 3)
    frontier.put(*(discovered(f"{A}{n}") for n in range(5)))
    assert len(frontier.get(per_queue=3, key="a.example", crawlID="DEFAULT")) == 3
    assert frontier.get(per_queue=3) == []
    assert len(eventually(lambda: frontier.get(per_queue=3))) == 2
    slots = db.execute("select unnest(slots) as slot from recrawl_internal.lease order by 1").fetchall()
    assert len(slots) == 5 and all(later[0] - slot[0] >= timedelta(seconds=3) for slot, later in pairwise(slots))


def test_without_a_limit_a_queue_gives_what_its_gap_allows_while_its_urls_are_held(frontier: Frontier) -> None:
    set_gap(frontier, 4)
    frontier.put(*(discovered(f"http://h{host}.example/{n}") for host in range(2) for n in range(20)))
    assert {len(frontier.get(per_queue=0, queues=1, held=held)) for held in (20, 20)} == {5}
    assert frontier.stats()[:2] == (40, 10)
    eventually(lambda: frontier.stats()[1] == 0, what="all are requestable again")


def test_of_what_nobody_knows_nothing_is_handed_out(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    for key in ("a.example:80", "no host", "a.example/"):
        assert frontier.get(key=key, crawlID="DEFAULT") == []
    assert frontier.get(crawlID="unknown") == []
    assert frontier.get(crawlID="no/name") == []


def test_a_known_url_comes_when_its_client_said(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A))
    frontier.get()
    later = now() + 40 * DAY
    assert frontier.put(known(A, later, metadata={"depth": ["1"], "signature": ["s" * 2000]})) == [(A, OK)]
    found = frontier.status(A)
    assert found.known.refetchable_from_date == int(later.timestamp())
    assert list(found.known.info.metadata["depth"].values) == ["1"]
    stored = db.execute("select content_hash from recrawl.page_status").fetchall()
    assert stored == [("s" * 1000,)], "the content hash is the beginning of the signature"
    assert abs(found.creation_date - time.time()) < 60
    assert state(db, A)[:2] == ("live", 1)
    assert frontier.stats()[:3] == (1, 0, 0), "it is in process no more"
    assert frontier.put(known(A, later)) == [(A, OK)]
    assert dict(frontier.status(A).known.info.metadata) == {}, "it was put without metadata"


def test_a_known_url_may_be_due_at_once(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    frontier.get()
    frontier.put(known(A, now() - DAY))
    assert [got.url for got in eventually(frontier.get)] == [A]


def test_date_0_is_done_for_ever_and_counted(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A), discovered(B))
    frontier.get()
    assert frontier.put(known(A, 0), known("http://c.example/", 0)) == [(A, OK), ("http://c.example/", OK)]
    assert frontier.status(A).known.refetchable_from_date == 0
    assert frontier.stats() == (1, 1, 2, 1, 3)
    assert state(db, A)[0] == "done"
    assert frontier.put(discovered(A)) == [(A, SKIPPED)]
    assert frontier.put(known(A, now() - DAY)) == [(A, OK)]
    assert frontier.stats()[:3] == (2, 1, 1)


def test_a_url_that_was_never_seen_may_be_put_as_known(frontier: Frontier) -> None:
    later = now() + DAY
    assert frontier.put(known(A, later), known(B, 2**60)) == [(A, OK), (B, OK)]
    assert frontier.status(A).known.refetchable_from_date == int(later.timestamp())
    assert frontier.status(B).known.refetchable_from_date == 0, "so far away is never"


def test_of_several_puts_of_a_url_the_last_counts(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    frontier.get()
    later = [now() + n * DAY for n in range(1, 6)]
    spellings = [A, A, "HTTP://A.example:80/", A, "http://a.example"]
    puts = [known(url, when, ID=str(n)) for n, (url, when) in enumerate(zip(spellings, later, strict=True))]
    assert dict(frontier.put(*puts, discovered(A, ID="d"))) == {**{str(n): OK for n in range(5)}, "d": SKIPPED}
    assert frontier.status(A).known.refetchable_from_date == int(later[-1].timestamp())
    frontier.put(known(A, 0), known(B, 0), known(A, later[0]), known(B, later[1]), known(B, 0))
    assert frontier.status(A).known.refetchable_from_date == int(later[0].timestamp())
    assert frontier.status(B).known.refetchable_from_date == 0


@pytest.mark.parametrize(
    ("metadata", "status"),
    [
        ({}, 200), ({"fetch.statusCode": ["304"]}, 304), ({"fetch.statusCode": ["410"]}, 404),
        ({"fetch.statusCode": ["301"]}, 200), ({"fetch.statusCode": ["503"]}, 503),
        ({"error.cause": ["timeout"]}, 0), ({"fetch.error.count": ["2"], "fetch.statusCode": ["404"]}, 404),
        ({"fetch.statusCode": ["²00"]}, 200), ({"fetch.statusCode": ["404"]}, 404),
    ],
)  # fmt: skip
def test_metadata_say_what_became_of_it(
    frontier: Frontier, db: psycopg.Connection[Any], metadata: dict[str, list[str]], status: int
) -> None:
    frontier.put(discovered(A))
    frontier.get()
    later = now() + 3 * DAY
    assert frontier.put(known(A, later, metadata=metadata)) == [(A, OK)]
    assert state(db, A)[3] == status
    assert frontier.status(A).known.refetchable_from_date == int(later.timestamp()), "the date is the client's"


def test_where_recrawl_schedules_dates_are_left_alone(url: str, db: psycopg.Connection[Any], tmp_path: Path) -> None:
    served = Command(url, tmp_path / "log", "--schedule", "recrawl")
    served.client.put(discovered(A), discovered(B))
    served.client.get()
    served.client.put(known(A, now() + 40 * DAY), known(B, 0))
    assert state(db, A)[2] < now() + 2 * DAY
    assert state(db, B)[0] == "done", "it must not be fetched again, for any crawl that schedules it"
    served.stop()


def test_a_lease_is_found_after_a_restart(url: str, db: psycopg.Connection[Any]) -> None:
    first = Served(url)
    first.client.put(discovered(A))
    first.client.get()
    first.stop()
    second = Served(url)
    assert second.client.stats()[1] == 1
    second.client.put(known(A, now() + DAY))
    assert second.client.stats()[1] == 0
    assert db.execute("select * from recrawl.lease_status").fetchall() == []
    second.stop()


# ----------------------------------------------------------------------------------------------------- looks


def test_urls_are_listed_counted_and_found(frontier: Frontier) -> None:
    pages = [f"http://a.example/Page/{n}" for n in range(120)]
    frontier.put(*(discovered(url) for url in pages), discovered(B))
    assert len(frontier.urls()) == 100
    assert frontier.urls(start=119, size=5) == [*pages[119:], B]
    assert frontier.urls(key="b.example") == [B]
    assert frontier.urls(filter="page/11") == []
    assert frontier.urls(filter="page/11", ignoreCase=True) == [url for url in pages if "/11" in url]

    def count(**ask: Any) -> int:
        return int(frontier.call("CountURLs", pb.CountUrlParams(**ask)).value)

    assert (count(), count(key="a.example"), count(filter="Page/11"), count(filter="%")) == (121, 120, 11, 0)
    with pytest.raises(grpc.RpcError) as error:
        frontier.status("http://nowhere.example/")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_url_is_found_as_it_was_put(frontier: Frontier) -> None:
    frontier.put(discovered("http://bücher.example/ä"))
    assert frontier.status("http://bücher.example/ä").known.info.url == "http://xn--bcher-kva.example/%C3%A4"


def test_no_more_is_read_at_once_however_much_is_listed_or_deleted(
    frontier: Frontier, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [f"{A}{n}" for n in range(35)]
    frontier.put(*map(discovered, pages))
    read: list[int] = []

    async def reading(connection: Connection, *query: Any) -> list[Any]:
        rows = await call(connection, *query)
        read.append(len(rows))
        return rows

    call = Connection.call
    monkeypatch.setattr(Connection, "call", reading)
    monkeypatch.setattr(crawl_database, "AT_ONCE", 10)
    assert frontier.urls(size=2**31 - 1) == pages
    assert frontier.urls(start=4, size=25) == pages[4:29]
    assert frontier.urls(start=4, filter="/3") == pages[33:]
    assert frontier.call("DeleteCrawl", pb.DeleteCrawlMessage()).value == 35
    assert frontier.urls() == []
    assert max(read) == 10


def test_queues_are_listed_and_counted(frontier: Frontier) -> None:
    frontier.put(*(discovered(f"http://h{n}.example/") for n in range(4)), known("http://done.example/", 0))

    def queues(**ask: Any) -> list[str]:
        return list(frontier.call("ListQueues", pb.Pagination(**ask)).values)

    names = [f"h{n}.example" for n in range(4)]
    assert frontier.call("ListQueues", pb.Pagination()) == pb.QueueList(values=names, size=4, crawlID="DEFAULT")
    assert queues(include_inactive=True) == ["done.example", *queues()]
    assert queues(start=1, size=2) == ["h1.example", "h2.example"]
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="h0.example", time=int(time.time()) + 1000))
    assert queues() == ["h1.example", "h2.example", "h3.example"]
    frontier.get(key="h1.example", crawlID="DEFAULT")
    assert frontier.stats("h1.example") == (1, 1, 0, 1, 1)
    assert frontier.stats("done.example") == (0, 0, 1, 0, 1)
    assert frontier.stats("none.example") == (0, 0, 0, 0, 0)
    assert frontier.stats() == (4, 1, 1, 4, 5)


# --------------------------------------------------------------------------------------------------- steering


def test_a_queue_keeps_its_delay_and_all_others_the_default(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A), discovered(B))
    frontier.call("SetDelay", pb.QueueDelayParams(key="a.example", delay_requestable=7))
    frontier.call("SetDelay", pb.QueueDelayParams(delay_requestable=3))
    gaps = dict(db.execute("select host, extract(epoch from gap)::int from recrawl.host_status").fetchall())
    assert gaps == {"a.example": 7, "b.example": 3}
    for key in ("a.example", ""):
        frontier.call("SetDelay", pb.QueueDelayParams(key=key, delay_requestable=0))
    assert db.execute("select distinct gap from recrawl.host_status").fetchall() == [(timedelta(milliseconds=1),)]


def test_a_queue_is_found_however_its_key_is_spelled(frontier: Frontier) -> None:
    frontier.put(discovered("http://A.Example/"))
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="A.Example", time=2**40))
    assert frontier.get() == []
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="A.Example"))
    assert [page.key for page in frontier.get()] == ["a.example"]
    assert frontier.urls(key="A.Example") == ["http://A.Example/"]
    assert frontier.stats("A.Example") == (1, 1, 0, 1, 1)
    assert frontier.call("DeleteQueue", pb.QueueWithinCrawlParams(key="A.Example")).value == 1


def test_who_steers_does_not_wait_for_who_looks(frontier: Frontier, url: str) -> None:
    frontier.put(discovered(A))
    with psycopg.connect(url) as holder:
        holder.execute("lock table recrawl_internal.page in access exclusive mode")
        look = frontier.calls["GetStats"].future(pb.QueueWithinCrawlParams())
        time.sleep(0.5)
        frontier.calls["BlockQueueUntil"](pb.BlockQueueParams(key="a.example", time=2**40), timeout=60)
        assert not look.done()
    assert look.result(60).size == 1
    assert frontier.get() == []


def test_what_no_queue_can_have_is_refused_in_a_line(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    with pytest.raises(grpc.RpcError) as error:
        frontier.call("SetDelay", pb.QueueDelayParams(key="a.example", delay_requestable=2**32 - 1))
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert error.value.details() == (
        "set_host: gap must lie between 1 millisecond and 30 days, got 49710 days 06:28:15"
    )


def test_a_blocked_queue_gives_nothing_until_it_may(frontier: Frontier) -> None:
    frontier.put(discovered(A))
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="a.example", time=2**62))
    assert frontier.get() == []
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="a.example"))
    assert [got.url for got in frontier.get()] == [A]


def test_a_key_that_is_no_queue_changes_nothing_and_the_log_says_so(
    frontier: Frontier, db: psycopg.Connection[Any], caplog: pytest.LogCaptureFixture
) -> None:
    frontier.put(discovered("http://www.a.example/"))
    for key in ("a.example", "_DEFAULT_", "no host", "www.a.example:80"):
        frontier.call("SetDelay", pb.QueueDelayParams(key=key, delay_requestable=7))
        frontier.call("BlockQueueUntil", pb.BlockQueueParams(key=key, time=2**62))
        frontier.call("BlockQueueUntil", pb.BlockQueueParams(key=key))
        told = [f"{call} changes nothing: there is no queue {key}" for call in ("SetDelay", "BlockQueueUntil")]
        assert caplog.messages[-3:] == [*told, told[1]]
    rows = db.execute("select host, extract(epoch from gap)::int, blocked_until from recrawl.host_status").fetchall()
    assert rows == [("www.a.example", 1, None)]


def test_who_partitions_by_domain_asks_a_domain_one_url_at_a_time(frontier: Frontier) -> None:
    set_gap(frontier, 100)
    names = ["http://www.a.example/", "http://shop.a.example/", "http://b.example/"]
    keys = ["A.example", "A.example", "no host"]
    puts = [discovered(name, key=key) for name, key in zip(names, keys, strict=True)]
    assert dict(frontier.put(*puts)) == dict.fromkeys(names, OK)
    first = frontier.get()
    assert [got.key for got in first] == ["a.example", "b.example"]
    assert frontier.get(key="a.example", crawlID="DEFAULT") == [], "within its gap"
    assert len(frontier.urls(key="A.example")) == 2
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="a.example", time=2**40))
    frontier.put(discovered("http://www.a.example/2"), known(names[2], 0, key="b.example"))
    assert frontier.get() == []


def test_a_key_that_no_host_could_have_leaves_urls_in_the_queues_of_their_hosts(frontier: Frontier) -> None:
    """A key that is an address in another spelling would come back as that address."""
    keys = [
        "a b", "a:1", "[::1]", "a..b", "a.-b", "a.", "-", "b" * 64, ".".join(["b" * 50] * 5), "99999999999",
        "1.2.3.4.5", "256.1.1.1", "a.1", "12345", "127.1", "010.0.0.1", "0x7f", "a\n", "\u212a",
    ]  # fmt: skip
    hosts = ["1.2.3.4", "_default_", "b" * 63, ".".join(["b" * 50] * 4), "1.example", "com", "xn--p1ai", "a-b.0y"]
    urls = {f"http://{n}.example/": key for n, key in enumerate(keys + hosts)}
    assert dict(frontier.put(*(discovered(url, key=key) for url, key in urls.items()))) == dict.fromkeys(urls, OK)
    given = {url: frontier.status(url).known.info.key for url in urls}
    assert given == {url: key if key in hosts else f"{n}.example" for n, (url, key) in enumerate(urls.items())}


def test_while_inactive_nothing_is_given_and_all_is_taken(frontier: Frontier) -> None:
    assert frontier.call("GetActive", pb.Local()).state
    frontier.call("SetActive", pb.Active(state=False))
    assert not frontier.call("GetActive", pb.Local()).state
    assert frontier.put(discovered(A)) == [(A, OK)]
    assert frontier.get() == []
    frontier.call("SetActive", pb.Active(state=True))
    assert [got.url for got in frontier.get()] == [A]


def test_a_queue_gives_nothing_once_its_limit_of_urls_is_completed(frontier: Frontier) -> None:
    def limit(limit: int, key: str = "a.example") -> None:
        frontier.call("SetCrawlLimit", pb.CrawlLimitParams(key=key, limit=limit))

    def gives(key: str = "a.example") -> bool:
        time.sleep(1.2)
        return len(frontier.get(key=key, crawlID="DEFAULT", held=1)) == 1

    pages = [f"{A}{n}" for n in range(9)]
    assert {status for _, status in frontier.put(*map(discovered, pages), known(A, 0), discovered(B))} == {OK}
    limit(3)
    assert gives(), "one is completed"
    frontier.put(known(pages[0], now() + DAY), known(pages[1], 0))
    assert gives(), "two are completed"
    frontier.put(known(pages[2], 0), known(pages[3], 0))
    assert not gives(), "and its URLs are still taken:"
    assert frontier.put(discovered(f"{A}more")) == [(f"{A}more", OK)]
    assert gives("b.example")
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="a.example"))
    assert not gives(), "the end of another block changes nothing"
    limit(5)
    assert gives()
    limit(4)
    assert not gives(), "four were completed before"
    frontier.put(known(pages[3], now() - DAY))
    assert gives(), "one of them is not any more"
    limit(1)
    assert not gives()
    limit(0)
    assert gives()
    with pytest.raises(grpc.RpcError) as error:
        limit(1, "unknown.example")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("deletes", ["DeleteQueue", "DeleteCrawl"])
def test_a_deleted_queue_comes_back_as_a_new_one(frontier: Frontier, db: psycopg.Connection[Any], deletes: str) -> None:
    """Without its block, its delay and its limit."""
    frontier.put(discovered(A), known(A2, 0))
    frontier.call("SetDelay", pb.QueueDelayParams(key="a.example", delay_requestable=1000))
    frontier.call("SetCrawlLimit", pb.CrawlLimitParams(key="a.example", limit=1))
    frontier.call("BlockQueueUntil", pb.BlockQueueParams(key="a.example", time=2**40))
    message = pb.QueueWithinCrawlParams(key="A.example") if deletes == "DeleteQueue" else pb.DeleteCrawlMessage()
    assert frontier.call(deletes, message).value == 1
    assert frontier.urls() == []
    assert frontier.put(discovered(A), known(A2, 0)) == [(A, OK), (A2, OK)]
    assert [got.url for got in frontier.get()] == [A]
    assert db.execute("select gap from recrawl.host_status").fetchall() == [(timedelta(seconds=1),)]


def test_what_is_deleted_may_come_back(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A), discovered(B), known(A2, 0))
    assert frontier.call("DeleteQueue", pb.QueueWithinCrawlParams(key="unknown.example")).value == 0
    assert frontier.call("DeleteQueue", pb.QueueWithinCrawlParams()).value == 0
    assert frontier.call("DeleteQueue", pb.QueueWithinCrawlParams(key="a.example")).value == 1
    assert frontier.urls() == [B]
    assert frontier.put(discovered(A)) == [(A, OK)]
    db.execute("update recrawl_internal.page set added_at = now() - interval '10 days' where url = %s", [B])
    assert frontier.call("PurgeURLs", pb.PurgeUrlParams(days=11)).value == 0
    assert frontier.call("PurgeURLs", pb.PurgeUrlParams(days=9, key="a.example")).value == 0
    assert frontier.call("PurgeURLs", pb.PurgeUrlParams(days=9)).value == 1
    assert frontier.call("DeleteCrawl", pb.DeleteCrawlMessage()).value == 1
    assert frontier.stats() == (0, 0, 0, 0, 0)


def test_what_is_purged_is_completed_no_more(frontier: Frontier, db: psycopg.Connection[Any]) -> None:
    frontier.put(discovered(A), known(A2, 0))
    frontier.call("SetCrawlLimit", pb.CrawlLimitParams(key="a.example", limit=1))
    assert frontier.get() == []
    db.execute("update recrawl_internal.page set added_at = now() - interval '10 days' where url = %s", [A2])
    assert frontier.call("PurgeURLs", pb.PurgeUrlParams(days=9)).value == 1
    assert [got.url for got in frontier.get()] == [A]


def test_nodes_and_log_levels(served: Served) -> None:
    assert list(served.client.call("ListNodes").values) == [f"127.0.0.1:{served.port}"]
    for name, level in {"TRACE": 10, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40}.items():
        served.client.call("SetLogLevel", pb.LogLevelParams(package="recrawl.test", level=name))
        assert logging.getLogger("recrawl.test").level == level
    with pytest.raises(grpc.RpcError, match="no such level: 9"):
        served.client.call("SetLogLevel", pb.LogLevelParams.FromString(b"\x10\x09"))
