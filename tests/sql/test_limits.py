"""The limits of one login, with a real login of the role recrawl_crawler."""

import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.errors import InvalidParameterValue
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

Connection = psycopg.Connection[Any]


@pytest.fixture
def db(connection: Connection) -> Connection:
    return connection


@pytest.fixture
def login(url: str, db: Connection) -> Iterator[Callable[[str], Connection]]:
    """Opens a connection of a new login that has the role."""
    made: list[tuple[str, Connection]] = []

    def new(role: str) -> Connection:
        name = f"recrawl_test_{role}_{uuid.uuid4().hex[:12]}"
        db.execute(f"create role {name} login password 'x' in role recrawl_{role}".encode())
        connection = psycopg.connect(url, user=name, password="x", autocommit=True, row_factory=dict_row)
        made.append((name, connection))
        return connection

    yield new
    for name, connection in made:
        connection.close()
        db.execute(f"drop role {name}".encode())


@pytest.fixture
def crawler(login: Callable[[str], Connection]) -> Connection:
    return login("crawler")


def set_setting(db: Connection, name: str, value: object) -> None:
    db.execute("select recrawl.set_setting(%s, %s)", [name, str(value)])


def add_hosts(db: Connection, hosts: int, pages: int = 1) -> None:
    db.execute(
        "select recrawl.add_pages(array(select format('http://h%%s.test/%%s', h, p)"
        " from generate_series(1, %s) h, generate_series(1, %s) p))",
        [hosts, pages],
    )
    tick(db)


def tick(db: Connection) -> None:
    db.execute("select recrawl_internal.tick(100, 1000000)")


def pop(login: Connection, n: int = 10, **more: object) -> list[Any]:
    named = "".join(f", {name} => %({name})s" for name in more)
    return login.execute(f"select * from recrawl.next_pages(%(n)s{named})".encode(), {"n": n, **more}).fetchall()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(InvalidParameterValue) as error:
        call()
    return error.value.diag.message_primary or ""


def test_no_lease_is_longer_than_the_setting(db: Connection, crawler: Connection) -> None:
    add_hosts(db, 3)
    assert refusal(lambda: pop(crawler, lease="7 days")) == (
        "next_pages: lease must lie between 1 second and the setting longest_lease (1 day), got 7 days"
    )
    (page,) = pop(crawler, 1, lease="1 day")

    def extended(by: str) -> datetime:
        row = crawler.execute("select recrawl.extend_lease(%s, %s) as until", [page["lease_id"], by]).fetchone()
        assert row
        until: datetime = row["until"]
        return until

    assert refusal(lambda: extended("2 days")) == (
        "extend_lease: by must lie between 1 second and the setting longest_lease (1 day), got 2 days"
    )
    # Two days would be too long. A day and max_ahead is the most that next_pages gives.
    until = extended("1 day")
    latest = db.execute("select clock_timestamp() + interval '1 day 1 minute'").fetchone()
    assert latest and page["lease_until"] < until <= latest[0]
    set_setting(db, "longest_lease", "1 hour")
    assert extended("10 minutes") == until, "it never becomes shorter"
    set_setting(db, "longest_lease", "7 days")
    assert extended("2 days") == until + timedelta(days=2)
    assert len(pop(crawler, 1, lease="7 days")) == 1


def test_no_call_asks_for_more_pages_than_the_setting(db: Connection, crawler: Connection) -> None:
    add_hosts(db, 30)
    assert refusal(lambda: pop(crawler, 10_001)) == (
        "next_pages: n must be at most the setting max_per_call (10000), got 10001"
    )
    set_setting(db, "max_per_call", 20)
    assert refusal(lambda: pop(crawler, 21)) == "next_pages: n must be at most the setting max_per_call (20), got 21"
    assert len(pop(crawler, 20)) == 20


def test_no_login_has_more_pages_than_the_setting(
    db: Connection, crawler: Connection, login: Callable[[str], Connection]
) -> None:
    add_hosts(db, 200)
    set_setting(db, "max_leased_per_login", 50)
    first = [page for _ in range(5) for page in pop(crawler)]
    assert len(first) == 50
    tick(db)
    name = crawler.info.user
    full = (
        f"next_pages: the login {name} has leased 50 pages, and n = 10 more would exceed the setting "
        "max_leased_per_login (50)"
    )
    assert refusal(lambda: pop(crawler)) == full
    assert len(pop(login("crawler"))) == 10, "another login"
    crawler.execute("select recrawl.report_pages(%s, %s, %s)", [
        [page["page_id"] for page in first[:10]], [page["lease_id"] for page in first[:10]], [200] * 10
    ])  # fmt: skip
    assert len(pop(crawler)) == 10, "as soon as pages are reported"
    assert refusal(lambda: pop(crawler)) == full
    crawler.execute("select recrawl.release(%s)", [first[-1]["lease_id"]])
    assert len(pop(crawler)) == 10, "or released"
    set_setting(db, "max_leased_per_login", "none")
    assert len(pop(crawler, 100)) == 100


def test_a_lease_that_ends_at_a_time_does_not_count_at_that_time(db: Connection, crawler: Connection) -> None:
    add_hosts(db, 5)
    assert len(pop(crawler)) == 5
    leased = "select recrawl_internal.leased_by(%s, lease_until + %s) from recrawl_internal.lease"
    before, at_its_end = (
        db.execute(leased, [crawler.info.user, timedelta(microseconds=moment)]).fetchone() for moment in (-1, 0)
    )
    assert (before, at_its_end) == ((5,), (0,))


def test_logins_are_also_watched_without_a_worker(db: Connection, crawler: Connection) -> None:
    """Pops tick themselves every half second. Between two ticks a login can exceed the limit."""
    add_hosts(db, 1000)
    set_setting(db, "max_leased_per_login", 100)
    taken = 0
    with suppress(InvalidParameterValue):
        for _ in range(20):
            taken += len(pop(crawler, 30))
            time.sleep(0.6)
    assert 60 < taken <= 120


def test_logins_are_counted_only_when_one_can_be_full(db: Connection, crawler: Connection) -> None:
    """A count reads all leases."""

    def counts() -> int:
        (row,) = db.execute("select last_value from recrawl_internal.leased_recount").fetchall()
        return int(row[0])

    add_hosts(db, 100)
    set_setting(db, "max_leased_per_login", 1000)
    tick(db)
    before = counts()
    for _ in range(5):
        pop(crawler)
        tick(db)
    assert counts() == before
    set_setting(db, "max_leased_per_login", 60)
    tick(db)
    assert counts() < before, "a new limit is obeyed at once"
    assert len(pop(crawler)) == 10
    tick(db)
    assert "has leased 60 pages" in refusal(lambda: pop(crawler))


def test_crawlers_make_only_so_many_hosts_known_in_a_minute(db: Connection, crawler: Connection) -> None:
    set_setting(db, "max_unknown_hosts", 5)
    add_hosts(db, 2)
    to_next_minute = 60 - time.time() % 60
    if to_next_minute < 20:
        time.sleep(to_next_minute)

    def take(host: str) -> bool:
        with suppress(InvalidParameterValue):
            crawler.execute("select recrawl.take_slot(%s)", [host])
            return True
        return False

    assert sum(take(f"new{n}.test") for n in range(8)) == 5
    assert take("h1.test") and take("new1.test"), "known hosts are no new ones"
    assert refusal(lambda: crawler.execute("select recrawl.take_slot('more.test')")) == (
        "take_slot: crawlers made 5 hosts known in this minute, as many as the setting max_unknown_hosts allows"
    )
    robots = "select recrawl.set_robots('http://other.test/', 200, '', null)"
    assert "set_robots: crawlers made 5 hosts" in refusal(lambda: crawler.execute(robots))
    crawler.execute("select recrawl.add_pages('{http://page.test/}')")
    db.execute("select setval('recrawl_internal.new_host_count', last_value - 10000000)"
               " from recrawl_internal.new_host_count")  # as if a minute had passed  # fmt: skip
    assert take("later.test")
    assert db.execute("select count(*) from recrawl.host_status").fetchall() == [(9,)]


def test_the_limit_of_new_hosts_holds_for_all_crawlers_together(
    db: Connection, login: Callable[[str], Connection]
) -> None:
    set_setting(db, "max_unknown_hosts", 40)

    def take(crawler: Connection) -> int:
        made = 0
        for n in range(40):
            try:
                crawler.execute("select recrawl.take_slot(%s)", [f"{crawler.info.user.replace('_', '-')}-{n}.test"])
            except InvalidParameterValue:
                continue
            made += 1
        return made

    with ThreadPoolExecutor(4) as pool:
        made = sum(pool.map(take, [login("crawler") for _ in range(4)]))
    # The limit starts again if the minute changes. In each minute, a call of three of the crawlers may not count.
    assert 40 <= made <= 2 * (40 + 3)


ENDS = [
    {"status": 410},
    {"status": 301, "redirect_to": "http://other.test/"},
    {"declined": True},
    {"status": 200, "due": "infinity"},
    {"status": 200, "due": "2199-01-01"},
]


@pytest.mark.parametrize("by", ["page_id", "url"])
@pytest.mark.parametrize("end", ENDS)
def test_only_a_lease_ends_pages_if_the_operator_says_so(
    db: Connection, crawler: Connection, end: dict[str, object], by: str
) -> None:
    def report(**more: object) -> tuple[str, str | None]:
        (answer,) = crawler.execute("select * from recrawl.report(%s)", [Jsonb([{**named, **more}])]).fetchall()
        return answer["code"], answer["detail"]

    def state() -> tuple[object, ...]:
        query = "select state, due_at > now() + interval '1 year' as is_late from recrawl.page_status where url = %s"
        (row,) = db.execute(query, [page["url"]]).fetchall()
        return tuple(row)

    set_setting(db, "default_gap", "1 ms")
    add_hosts(db, 1)
    (page,) = pop(crawler, 1)
    named = {by: page[by]}
    crawler.execute("select recrawl.release(%s)", [page["lease_id"]])
    before = state()
    set_setting(db, "ends_without_lease", "false")
    message = "a report without lease_id must not end a page: the setting ends_without_lease is false"
    assert report(**end) == ("invalid", message)
    assert state() == before
    assert report(status=200) == ("ok", None), "an observation"
    assert report(status=302, redirect_to="http://other.test/")[0] == "ok", "a temporary redirect"
    tick(db)
    (page,) = pop(crawler, 1, host="h1.test")
    assert report(**end, lease_id=page["lease_id"]) == ("ok", None)
    assert state() not in (before, ("live", False))


@pytest.mark.parametrize("end", ENDS)
def test_without_that_a_report_without_a_lease_ends_pages(
    db: Connection, crawler: Connection, end: dict[str, object]
) -> None:
    add_hosts(db, 1)
    report = Jsonb([{"url": "http://h1.test/1", **end}])
    (answer,) = crawler.execute("select * from recrawl.report(%s)", [report]).fetchall()
    assert answer["code"] == "ok"
    tick(db)
    assert "h1.test" not in {page["host"] for page in pop(crawler)}


def test_a_full_login_is_noted_later_if_the_setting_is_locked(url: str, db: Connection, crawler: Connection) -> None:
    """It was forgotten until almost as many pages again were handed out."""
    add_hosts(db, 200)
    set_setting(db, "max_leased_per_login", 50)
    for _ in range(5):
        pop(crawler)
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.setting for update")
        tick(db)
    tick(db)
    assert "max_leased_per_login (50)" in refusal(lambda: pop(crawler))
