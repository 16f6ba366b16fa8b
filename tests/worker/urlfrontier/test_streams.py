"""Streams of puts whose clients, or whose database, do what nobody expects."""

import time
from collections.abc import Iterator
from typing import Any

import grpc
import psycopg
import pytest

from recrawl.urlfrontier import puts, stream
from recrawl.urlfrontier import urlfrontier_pb2 as pb
from worker.urlfrontier.client import FAIL, OK, SKIPPED, Frontier, discovered, info, known

A = "http://a.example/"
LONG = "x" * 10_000  # as an ID: what is on its way is little, counted in messages
MANY = 5000


def test_who_does_not_read_acknowledgements_is_not_read(frontier: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def items() -> Iterator[pb.URLItem]:
        nonlocal sent
        while sent < MANY:
            sent += 1
            yield discovered("", ID=LONG)

    monkeypatch.setattr(stream, "MOST_IN_FLIGHT", 100)
    acks = frontier.calls["PutURLs"](items(), timeout=300)
    before = -1
    while before < sent or not sent:
        before = sent
        time.sleep(1)
    assert 0 < sent < MANY
    assert [ack.status for ack in acks] == [SKIPPED] * MANY


def test_a_batch_counts_as_what_it_holds(frontier: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def batches() -> Iterator[pb.DiscoveredBatch]:
        nonlocal sent
        while sent < MANY:
            sent += 1
            yield pb.DiscoveredBatch(ID=LONG, items=[info("")] * 10)

    monkeypatch.setattr(stream, "MOST_IN_FLIGHT", MANY)
    acks = frontier.calls["PutDiscovered"](batches(), timeout=300)
    before = -1
    while before < sent or not sent:
        before = sent
        time.sleep(1)
    assert 0 < sent < MANY
    assert sum(len(ack.statuses) for ack in acks) == 10 * MANY


def test_what_is_large_counts_as_more(frontier: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def items() -> Iterator[pb.URLItem]:
        nonlocal sent
        while sent < 300:
            sent += 1
            yield discovered("", ID=100 * LONG)

    monkeypatch.setattr(stream, "MOST_IN_FLIGHT", 10_000)
    acks = frontier.calls["PutURLs"](items(), timeout=300)
    before = -1
    while before < sent or not sent:
        before = sent
        time.sleep(1)
    assert 0 < sent < 100
    assert [ack.status for ack in acks] == [SKIPPED] * 300


def test_of_large_metadata_little_is_taken_in_at_once(frontier: Frontier, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, together = puts.taken, []

    async def counted(crawl: Any, some: Any) -> Any:
        together.append(len(some))
        return await taken(crawl, some)

    monkeypatch.setattr(puts, "taken", counted)
    monkeypatch.setattr(puts, "LARGEST", 50_000)
    batch = [info(f"{A}{n}", {"large": [LONG]}) for n in range(40)]
    (ack,) = frontier.put_batches(pb.DiscoveredBatch(items=batch))
    assert list(ack.statuses) == [OK] * 40
    assert sum(together) == 40 and max(together) == 5


def test_what_cannot_be_read_is_refused_in_a_line(frontier: Frontier, caplog: pytest.LogCaptureFixture) -> None:
    for call in ("PutURLs", "PutDiscovered", "GetURLs", "CountURLs"):
        kinds = {"PutURLs": "stream_stream", "PutDiscovered": "stream_stream", "GetURLs": "unary_stream"}
        send = getattr(frontier.channel, kinds.get(call, "unary_unary"))(f"/urlfrontier.URLFrontier/{call}")
        with pytest.raises(grpc.RpcError) as error:
            list(send(iter([b"\xff"]) if call.startswith("Put") else b"\xff", timeout=300))
        assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert error.value.details() == "this is no message of this call: its fields or its UTF-8 are broken"
    assert not caplog.records


def test_a_connection_that_was_lost_fails_nothing_while_the_database_is_there(
    frontier: Frontier, db: psycopg.Connection[Any]
) -> None:
    frontier.put(discovered(A))
    db.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    assert frontier.put(discovered(A), discovered(A + "2")) == [(A, SKIPPED), (A + "2", OK)]
    assert [page.url for page in frontier.get()] == [A]
    assert frontier.urls() == [A, A + "2"]


def test_what_the_database_does_not_answer_is_to_be_sent_again_and_so_is_what_waits_behind_it(
    frontier: Frontier, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(puts, "LONGEST_CALL", 3.0)
    monkeypatch.setattr(puts, "MOST_AT_ONCE", 1)
    items = [discovered(f"{A}{n}") for n in range(10)]
    with psycopg.connect(url) as holder:
        holder.execute("lock table recrawl_internal.page in access exclusive mode")
        began = time.monotonic()
        assert frontier.put(*items) == [(f"{A}{n}", FAIL) for n in range(10)]
        assert time.monotonic() - began < 20, "one is waited for, and not ten"
    monkeypatch.undo()
    assert frontier.put(*items) == [(f"{A}{n}", OK) for n in range(10)]


def test_what_takes_longer_than_its_login_is_given_is_taken_in_in_parts(
    frontier: Frontier, db: psycopg.Connection[Any]
) -> None:
    (right,) = db.execute(
        "select pg_get_functiondef(oid) from pg_proc where oid = 'recrawl.add_pages'::regproc"
    ).fetchone() or ("",)
    db.execute(right.replace("return query", "perform pg_sleep(.12 * cardinality(urls)); return query"))
    db.execute(f"alter database {db.info.dbname} set statement_timeout = '3s'".encode())
    db.execute(
        "select pg_terminate_backend(pid, 10000) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()"
    )
    urls = [f"{A}{n}" for n in range(50)]
    (ack,) = frontier.put_batches(pb.DiscoveredBatch(items=[info(url) for url in urls]))
    assert list(ack.statuses) == [OK] * 50
    assert frontier.put(known(urls[0], 0)) == [(urls[0], OK)]


def test_a_batch_of_which_the_database_says_nonsense_is_to_be_sent_again_and_harms_no_other(
    frontier: Frontier, db: psycopg.Connection[Any]
) -> None:
    (right,) = db.execute(
        "select pg_get_functiondef(oid) from pg_proc where oid = 'recrawl.add_pages'::regproc"
    ).fetchone() or ("",)
    db.execute(right.replace("return query", "return; return query"))
    assert frontier.put(discovered(A)) == [(A, FAIL)]
    db.execute(right)
    assert frontier.put(discovered(A)) == [(A, OK)]
