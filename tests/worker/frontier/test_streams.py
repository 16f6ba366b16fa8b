"""Streams of puts whose clients, or whose database, do what nobody expects."""

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from recrawl.frontier import stream
from recrawl.frontier import urlfrontier_pb2 as pb
from worker.frontier.frontier import FAIL, OK, SKIPPED, Frontier, discovered, info

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
    acks = frontier.calls["PutURLs"](items(), timeout=60)
    before = -1
    while before < sent:
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
    acks = frontier.calls["PutDiscovered"](batches(), timeout=60)
    before = -1
    while before < sent:
        before = sent
        time.sleep(1)
    assert 0 < sent < MANY
    assert sum(len(ack.statuses) for ack in acks) == 10 * MANY


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
