"""The lines of the documents bring a crawl from other software, from stores like the ones of that software."""

import gzip
import json
import os
import pickle
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from recrawl.setup.programs import program

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ["https://a.test/", "https://b.test/?q=1&r=%20", "https://c.test/" + "x" * 300]
DUE = datetime(2099, 12, 22, 9, 30, tzinfo=UTC)
META = {"depth": {"values": ["3"]}, "empty": {}}


def lines(document: str) -> list[str]:
    """The commands to say, in order."""
    text = (DOCS / document).read_text()
    return [
        line
        for block in re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for line in block.replace("\\\n", "").splitlines()
    ]


@pytest.fixture
def say(url: str, tmp_path: Path) -> Callable[..., str]:
    """A command, in a folder of its own, with recrawl at hand."""
    programs = [str(Path(sys.executable).parent), os.environ["PATH"], str(program("psql").parent)]

    def say(line: str, said: bytes = b"", **environment: str) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            env=os.environ | {"DATABASE_URL": url, "PATH": os.pathsep.join(programs)} | environment,
            cwd=tmp_path,
            input=said,
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.decode()

    return say


def due_times(connection: psycopg.Connection) -> dict[str, datetime | None]:
    return dict(connection.execute("select url, due_at from page_status").fetchall())


def test_a_crawl_comes_along_from_nutch(
    say: Callable[..., str], connection: psycopg.Connection, tmp_path: Path
) -> None:
    rest = 'Thu Jan 01 00:00:00 UTC 1970,0,2592000.0,30.0,1.0,"null","|||"'
    part = tmp_path / "dump/part-r-00000"
    part.parent.mkdir()
    part.write_text(
        "Url,Status code,Status name,Fetch Time,Modified Time,Retries since fetch,Retry interval seconds,"
        "Retry interval days,Score,Signature,Metadata\n"
        f'"{PAGES[0]}",2,"db_fetched",Tue Dec 22 09:30:00 UTC 2099,{rest}\n'
        f'"{PAGES[1]}",1,"db_unfetched",Sun Nov 22 09:30:00 UTC 2026,{rest}\n'
    )
    (line,) = lines("nutch.md")
    say(line)
    assert due_times(connection) == {PAGES[0]: DUE, PAGES[1]: None}


def test_a_crawl_comes_along_from_fronteras_database(
    say: Callable[..., str], connection: psycopg.Connection, new_database: Callable[..., str]
) -> None:
    there = new_database()
    with psycopg.connect(there, autocommit=True) as frontera:
        frontera.execute("create table metadata (fingerprint varchar(40) primary key, url varchar(1024) not null)")
        frontera.execute("create table revisiting_queue (url varchar(1024) not null, crawl_at bigint not null)")
        for number, page in enumerate(PAGES):
            frontera.execute("insert into metadata values (%s, %s)", [str(number), page])
        frontera.execute("insert into revisiting_queue values (%s, %s)", [PAGES[0], int(DUE.timestamp())])
    revisiting, all_others, _ = lines("frontera.md")
    at = conninfo_to_dict(there)
    for line in (revisiting, all_others):
        say(
            line.replace("psql frontera", f"psql {at['dbname']}"),
            PGHOST=str(at["host"]),
            PGPORT=str(at.get("port", 5432)),
            PGUSER=str(at["user"]),
        )
    assert due_times(connection) == {PAGES[0]: DUE, PAGES[1]: None, PAGES[2]: None}


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="apt install sqlite3")
def test_a_crawl_comes_along_from_fronteras_opic_backend(
    say: Callable[..., str], connection: psycopg.Connection, tmp_path: Path
) -> None:
    (tmp_path / "crawl-opic").mkdir()
    with sqlite3.connect(tmp_path / "crawl-opic/pages.sqlite") as store:
        store.execute("create table pages (page_id text unique, url text, domain text)")
        store.executemany("insert into pages values (?, ?, '')", list(enumerate(PAGES)))
    say(lines("frontera.md")[-1])
    assert set(due_times(connection)) == set(PAGES)


def test_a_crawl_comes_along_from_urlfrontier(
    say: Callable[..., str], connection: psycopg.Connection, tmp_path: Path
) -> None:
    """Makes the file that its client would write: one item per line, as protobuf's JSON."""
    infos = [{"url": page, "key": "a.test", "metadata": META, "crawlID": "DEFAULT"} for page in PAGES]
    items = [
        {"known": {"info": infos[0], "refetchableFromDate": str(int(DUE.timestamp()))}, "ID": PAGES[0]},
        {"discovered": {"info": infos[1]}},
        {"known": {"info": infos[2]}, "creationDate": "1763812800"},
    ]
    with gzip.open(tmp_path / "urls.json.gz", "wt") as file:
        file.writelines(json.dumps(item, separators=(",", ":")) + "\n" for item in items)
    *_, line = lines("urlfrontier.md")
    say(line)
    done = connection.execute("select url from page_status where state = 'done'").fetchall()
    assert done == [(PAGES[2],)]
    due = due_times(connection)
    assert (len(due), due[PAGES[0]], due[PAGES[1]]) == (3, DUE, None)
    metas = connection.execute("select distinct meta from page_status").fetchall()
    assert metas == [({"depth": ["3"], "empty": []},)]


def test_a_crawl_comes_along_from_scrapy_redis(
    say: Callable[..., str], connection: psycopg.Connection, tmp_path: Path
) -> None:
    """Makes the file that redis-cli would write: the elements, with a line end after each."""
    (program,) = re.findall(r"^```py\n# unpickled\.py\n(.*?)^```", (DOCS / "scrapy-redis.md").read_text(), re.M | re.S)
    (tmp_path / "unpickled.py").write_text(program)
    starts, queued = (line.partition(" | ") for line in lines("scrapy-redis.md"))
    assert starts[0].startswith("redis-cli --raw ") and queued[0].startswith("redis-cli --raw ")
    say(starts[2], PAGES[0].encode() + b"\n")
    requests = ({"url": page, "callback": "parse", "meta": {"n": "\n."}, "headers": {b"A": [b"b"]}} for page in PAGES)
    say(queued[2], b"".join(pickle.dumps(request, protocol=-1) + b"\n" for request in requests))
    assert set(due_times(connection)) == set(PAGES)
