"""psycopg, asyncpg, pg8000 and JDBC can read every value that report and add_pages accept, in every time zone. They can
read every view after the calls of test_fuzz.py too. A value that some driver could not read is refused in a sentence,
or ignored if a server said it."""

import asyncio
import base64
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import cache
from itertools import chain
from pathlib import Path

import asyncpg
import pg8000.dbapi
import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy.engine import make_url

from helpers import Crawl, Row, codes
from sql.test_fuzz import failure, seeds_of

Driver = Callable[..., list[list[Row]]]  # of a URL, a time zone and queries: the rows of each query
JDBC = "/usr/share/java/postgresql.jar"
# JSON as text: Python cannot hold all of it.
METAS = ['"' + "9" * 5000 + '"', "0." + "3" * 5000, "1e308", "-1e308", "1e-300", "[" * 100 + "]" * 100, '{"ä": null}']
NO_METAS = ["9" * 5000, "[1e309]", '{"a": [-1e309]}', "[" * 2000 + "]" * 2000, '{"a":' * 101 + "1" + "}" * 101]
TIMES = [
    "0001-01-01 00:00+00", "-infinity", "infinity", "4714-11-24 00:00+00 BC", "294276-12-31 23:59+00", "epoch",
    "1969-12-31 00:00+00", "2200-01-02 00:00+00", "9999-12-31 23:59+00", "2026-01-01 00:00+00",
]  # fmt: skip


def array(texts: list[str]) -> str:
    return f"array[{', '.join(map(repr, texts))}]"


def by_psycopg(url: str, zone: str, *queries: str) -> list[list[Row]]:
    with psycopg.connect(url, autocommit=True, row_factory=dict_row, options=f"-c timezone={zone}") as connection:
        return [connection.execute(query.encode()).fetchall() for query in queries]


def by_asyncpg(url: str, zone: str, *queries: str) -> list[list[Row]]:
    async def read() -> list[list[Row]]:
        connection = await asyncpg.connect(url, server_settings={"timezone": zone})
        await connection.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        answers = [await connection.fetch(query) for query in queries]
        await connection.close()
        return [[dict(row) for row in rows] for rows in answers]

    return asyncio.run(read())


def by_pg8000(url: str, zone: str, *queries: str) -> list[list[Row]]:
    parts = make_url(url)
    where = parts.query.get("host") or parts.host
    port = parts.query.get("port") or parts.port or 5432
    of_host = {"unix_sock": f"{where}/.s.PGSQL.{port}"} if str(where).startswith("/") else {"host": where, "port": port}
    connection = pg8000.dbapi.connect(
        parts.username, database=parts.database, password=parts.password, startup_params={"timezone": zone}, **of_host
    )
    connection.autocommit = True
    cursor = connection.cursor()
    answers = []
    for query in queries:
        cursor.execute(query)
        names = [column[0] for column in cursor.description]
        answers.append([dict(zip(names, row, strict=True)) for row in cursor.fetchall()])
    connection.close()
    return answers


@cache
def read_class() -> str:
    """The folder with the compiled Read.java. `java Read.java` would compile it in each process."""
    folder = tempfile.mkdtemp(prefix="java-", dir=os.environ["RECRAWL_TESTS"])
    subprocess.check_call(["javac", "-d", folder, str(Path(__file__).with_name("Read.java"))])
    return folder


def by_jdbc(url: str, zone: str, *queries: str) -> list[list[Row]]:
    if not (shutil.which("javac") and Path(JDBC).exists()):
        pytest.skip("apt install default-jdk-headless libpostgresql-jdbc-java")
    parts = make_url(url)
    if not str(parts.query.get("host")).startswith("/"):
        pytest.skip("the server under test is not reached by a Unix socket")
    with on_tcp(f"{parts.query['host']}/.s.PGSQL.{parts.query.get('port', 5432)}") as port:
        program = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{JDBC}:{read_class()}", "Read"]
        arguments = [f"jdbc:postgresql://127.0.0.1:{port}/{parts.database}", str(parts.username), zone, *queries]
        printed = subprocess.check_output([*program, *arguments], text=True)

    def value(kind: str, encoded: str) -> object:
        if encoded == "NULL":
            return None
        text = base64.b64decode(encoded).decode()
        return datetime.fromisoformat(text) if kind == "timestamptz" else int(text) if kind == "int8" else text

    def row(lines: str) -> Row:
        values = [line.split(" ") for line in lines.splitlines()]
        return {name: value(kind, encoded) for name, kind, encoded in values}

    return [[row(lines) for lines in answer.split("\n\n")[:-1]] for answer in printed.split(";\n")[:-1]]


@contextmanager
def on_tcp(path: str) -> Iterator[int]:
    """A port from which one connection is passed on to this Unix socket, because JDBC speaks only TCP."""

    def pass_on(source: socket.socket, target: socket.socket) -> None:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)

    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket(socket.AF_UNIX) as server:

        def serve() -> None:
            client, _ = listening.accept()
            server.connect(path)  # not before: PostgreSQL waits a minute for the first message
            with client:
                answers = threading.Thread(target=pass_on, args=(server, client))
                answers.start()
                pass_on(client, server)
                answers.join()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        yield listening.getsockname()[1]
        serving.join()


def read_all(driver: Driver, url: str, zone: str, *sources: str) -> list[list[Row]]:
    """The rows of each view or call. Their times are times that Python can compute with."""
    answers = driver(url, zone, *(f"select * from {source}" for source in sources))
    for row in chain(*answers):
        for name, value in row.items():
            if name.endswith(("_at", "_until", "_by", "last_modified")) and value is not None:
                assert isinstance(value, datetime) and 1969 <= value.year <= 9999, name
    return answers


in_every_time_zone = pytest.mark.parametrize("zone", ["Pacific/Honolulu", "Pacific/Kiritimati"])
with_every_driver = pytest.mark.parametrize("driver", [by_psycopg, by_asyncpg, by_pg8000, by_jdbc])


@in_every_time_zone
@with_every_driver
def test_every_driver_reads_everything_in_every_time_zone(crawl: Crawl, url: str, driver: Driver, zone: str) -> None:
    def read(query: str) -> list[Row]:
        (rows,) = read_all(driver, url, zone, f"recrawl.{query}")
        return rows

    number = 30
    urls = [f"http://{n}.test/" for n in range(number)]
    metas = [METAS[n % len(METAS)] for n in range(number)]
    times = [TIMES[n % len(TIMES)] for n in range(number)]
    added = read(f"add_pages({array(urls)}, meta => {array(metas)}::jsonb[])")
    assert codes(added) == ["new"] * number
    assert len(read(f"add_pages({array(urls)}, due => {array(times)}::timestamptz[])")) == number
    pages = read("next_pages(100)")
    assert len(pages) == number

    elements = [
        f'{{"page_id": {page["page_id"]}, "lease_id": {page["lease_id"]}, "status": {status}, "{key}": "{time}", '
        f'"meta": {meta}}}'
        for page, time, meta, key, status in zip(
            pages, times, metas, ["last_modified", "last_modified", "due"] * 10, [200, 200, 429] * 10, strict=True
        )
    ]
    answers = codes(read(f"report('[{', '.join(elements)}]')"))
    assert set(answers) == {"ok", "invalid"}
    assert read("page_status") and read("host_status")
    crawl.connection.execute("select set_setting('default_gap', '1 ms'), unblock_host(name) from host")
    crawl.connection.execute("select fetch_now(array(select page_id from page))")
    again = read("next_pages(100)")
    assert len(again) == answers.count("ok")
    assert {page["last_modified"] is None for page in again} == {True, False}
    assert {page["meta"] is None for page in again} == {False}


@pytest.fixture(scope="module")
def after_calls(new_database: Callable[..., str], template: str) -> str:
    """A crawl after calls in any order."""
    url = new_database(template)
    # This seed leaves meta, last_modified, and a page that is never due: in the year 9999.
    assert failure(url, seeds_of(43)) is None
    return url


LATER = iter(range(2032, 2100))  # years later than all calls, so that pages of earlier pops come again


@in_every_time_zone
@with_every_driver
def test_every_driver_reads_what_calls_in_any_order_left(after_calls: str, driver: Driver, zone: str) -> None:
    with psycopg.connect(after_calls) as connection:
        views = connection.execute(
            "select relname from pg_class where relnamespace = 'recrawl'::regnamespace and relkind = 'v'"
        ).fetchall()
    names = [f"recrawl.{name}" for (name,) in views]
    pop = f"recrawl_internal.next_pages_at('{next(LATER)}-01-01', 100, '0', '1 s', null)"
    rows = dict(zip([pop, *names], read_all(driver, after_calls, zone, pop, *names), strict=True))
    for source in (pop, "recrawl.lease_status", "recrawl.page_status", "recrawl.host_status", "recrawl.events"):
        assert rows[source], source


@pytest.mark.parametrize("meta", NO_METAS)
def test_a_meta_that_some_language_cannot_read_is_refused_with_a_sentence(crawl: Crawl, meta: str) -> None:
    refused = "meta must be nested at most 100 levels deep, with numbers between -1e308 and 1e308"
    added = crawl.rows("select * from add_pages('{http://a.test/}', meta => array[%s]::jsonb[])", meta)
    assert (codes(added), added[0]["detail"]) == (["invalid"], refused)
    crawl.add("http://a.test/", meta=[7])
    (page,) = crawl.next()
    element = f'[{{"page_id": {page["page_id"]}, "lease_id": {page["lease_id"]}, "status": 200, "meta": {meta}}}]'
    (answer,) = crawl.rows("select * from report_at(%s, %s::jsonb)", crawl.now, element)
    assert (answer["code"], answer["detail"]) == ("invalid", refused)
    assert crawl.page("http://a.test/")["meta"] == 7
