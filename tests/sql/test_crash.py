"""Real processes in real time: crawlers are killed, the server is killed, everything happens at once.

The notes of all crawlers together make one crawl: one lease per page, a gap between requests, no page lost.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime, timedelta
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest

from helpers import DAY, HOUR, SECOND, Crawl, Row
from recrawl.setup import migrate
from sql.model import BROKEN

pytestmark = pytest.mark.soak

SETTINGS = "-c search_path=recrawl,recrawl_internal"
GAP = timedelta(milliseconds=30)
HOSTS, PAGES = 300, 20
RUN, KILL_SERVER_AFTER = 15.0, 7.0  # seconds

HOLDER = """
import sys
from pathlib import Path
from recrawl.setup.embedded import server
with server(Path(sys.argv[1])) as url:
    print(url, flush=True)
    sys.stdin.read()
"""

# A crawler notes a call before it makes it, and the answer right after. A call whose answer is lost may have happened.
# It notes the server's clock at the end of next_pages, because the function may work for a while. If a lease ends while
# the function works, the function can hand out the pages of that lease.
CRAWLER = """
import json, os, random, sys, time
import psycopg
url, path, seed = sys.argv[1:]
random.seed(seed)
file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def write(what, **more):
    os.write(file, (json.dumps({"what": what, "at": time.time()} | more) + "\\n").encode())

def crawl(connection):
    while True:
        ahead = random.choice([0, 0, 0.1, 1, 5])
        pages = connection.execute(
            "select page_id, host, extract(epoch from fetch_at)::float8, lease_id,"
            " extract(epoch from lease_until)::float8, extract(epoch from clock_timestamp())::float8"
            " from next_pages(%s, make_interval(secs => %s), make_interval(secs => %s))",
            (random.choice([1, 3, 10, 50]), ahead, random.choice([1, 1.5, 2]))).fetchall()
        write("out", pages=pages)
        if not pages:
            time.sleep(0.02)
            continue
        lease_id = pages[0][3]
        if random.random() < 0.2:
            extend = "select extract(epoch from extend_lease(%s, '1 s'))::float8"
            (until,) = connection.execute(extend, (lease_id,)).fetchone()
            write("extended", lease_id=lease_id, until=until)
        if random.random() < 0.2:
            time.sleep(random.uniform(0, 2.5))
        ids = [page[0] for page in pages]
        random.shuffle(ids)
        released, kept_out = (random.choice([0, 0, len(ids) // 3]) for _ in range(2))
        if released:
            write("ending", lease_id=lease_id, page_ids=ids[:released], is_release=True)
            connection.execute("select release(%s, %s)", (lease_id, ids[:released]))
            write("ended", lease_id=lease_id)
        done = ids[released + kept_out:]
        results = [{"page_id": i, "lease_id": lease_id, "status": random.choice([200, 200, 304])} for i in done]
        write("ending", lease_id=lease_id, page_ids=done)
        connection.execute("select from report(%s::jsonb)", (json.dumps(results),))
        write("ended", lease_id=lease_id)

while True:
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=5, options="-c search_path=recrawl") as connection:
            crawl(connection)
    except psycopg.OperationalError as error:
        write("lost", error=str(error))
        time.sleep(0.1)
    except psycopg.Error as error:
        write("error", error=repr(error))
        raise
"""

UPKEEP = """
import sys, time
import psycopg
while True:
    try:
        with psycopg.connect(sys.argv[1], autocommit=True) as connection:
            while True:
                connection.execute("select recrawl_internal.tick(100, 2000)")
                time.sleep(0.05)
    except psycopg.OperationalError:
        time.sleep(0.1)
"""

ADDER = """
import random, sys, time
import psycopg
urls = sys.argv[2:]
while urls:
    try:
        with psycopg.connect(sys.argv[1], autocommit=True) as connection:
            while urls:
                due = random.choice([None, "{now}"])
                connection.execute("select count(*) from recrawl.add_pages(%s, due => %s)", (urls[:100], due))
                del urls[:70]
                time.sleep(0.1)
    except psycopg.OperationalError:
        time.sleep(0.1)
"""


def python(script: str, *arguments: object, **how: Any) -> subprocess.Popen[str]:
    path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}, text=True, **how)


def held_server(home: Path) -> tuple[subprocess.Popen[str], str]:
    """A process that holds an embedded server, and the server's URL."""
    holder = python(HOLDER, home, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout
    url = holder.stdout.readline().strip()
    assert url, "there is no server"
    return holder, url


def broken(crawl: Crawl) -> list[Any]:
    return crawl.connection.execute(BROKEN, {"t": crawl.now}).fetchall()


def settle(crawl: Crawl) -> None:
    """The leases have ended, and all upkeep is done."""
    crawl.now = datetime.now(UTC) + HOUR
    until = time.monotonic() + 120
    while crawl.tick() or crawl.value("select count(*) from inbox"):
        assert time.monotonic() < until, "somebody holds hosts"  # the killed let go of theirs when the server notices
        time.sleep(0.05)
    assert crawl.value("select count(*) from inbox") == 0
    assert broken(crawl) == []


def fetch_everything(crawl: Crawl) -> set[int]:
    """Two days later every page is due. Returns the pages that are handed out until no page is left."""
    crawl.connection.execute("set synchronous_commit = off")
    crawl.connection.execute("update setting set frequency = 0.01")  # set_setting would put off what is due
    crawl.now += 2 * DAY
    out: set[int] = set()
    for host in crawl.rows("select host from host_status"):
        crawl.value("select unblock_host_at(%s, %s)", crawl.now, host["host"])
    while pages := crawl.next(1000):
        crawl.report_ok(pages)
        out |= {page["page_id"] for page in pages}
        crawl.wait(SECOND)
    return out


# ------------------------------------------------------------------------------------------- killed crawlers and server


@pytest.fixture(scope="module")
def aftermath(open_folder: Path) -> Iterator[tuple[Crawl, list[Row]]]:
    """The notes of the crawlers, and the database at the end."""
    home, files = open_folder / "crash", open_folder / "crash-files"
    files.mkdir()
    holders: list[subprocess.Popen[str]] = []
    running: list[subprocess.Popen[str]] = []
    crawlers: list[subprocess.Popen[str]] = []

    def start_crawler() -> None:
        name = str(len(list(files.iterdir())) + random.randrange(10**9) * 1000)
        crawlers.append(python(CRAWLER, url, files / name, name))

    try:
        holder, url = held_server(home)
        holders.append(holder)
        migrate.upgrade(url)
        with psycopg.connect(url, autocommit=True, options=SETTINGS) as connection:
            connection.execute(
                "select set_setting('default_gap', '30 ms'), set_setting('frequency', '86400'),"
                " set_setting('shortest_interval', '1 s')"
            )
        urls = [f"http://h{host}.test/{page}" for page in range(PAGES) for host in range(HOSTS)]
        running += [python(UPKEEP, url), python(ADDER, url, *urls)]
        for _ in range(8):
            start_crawler()
        begun, server_lives = time.monotonic(), True
        while time.monotonic() - begun < RUN or running[1].poll() is None:
            assert time.monotonic() - begun < 600, "the URLs are not taken in"
            time.sleep(0.6)
            victim = crawlers.pop(random.randrange(len(crawlers)))
            assert victim.poll() is None, "a crawler gave up"
            victim.kill()
            victim.wait()
            start_crawler()
            if server_lives and time.monotonic() - begun > KILL_SERVER_AFTER:
                server_lives = False
                os.kill(int((home / "cluster" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
                holder, again = held_server(home)
                holders.append(holder)
                assert again == url
        for process in crawlers:
            assert process.poll() is None, "a crawler gave up"
            process.kill()
            process.wait()
        running[0].kill()  # two clocks at once would be put right by pulling in what the later one wrote
        running[0].wait()
        time.sleep(0.5)  # what they asked last is done, whether or not they hear of it
        lines = [line for file in files.iterdir() for line in file.read_text().splitlines(keepends=True)]
        with psycopg.connect(url, autocommit=True, options=SETTINGS) as connection:
            yield Crawl(connection), [json.loads(line) for line in lines if line.endswith("\n")]
    finally:
        for process in (*crawlers, *running):
            process.kill()
            process.wait()
        for process in reversed(holders):
            process.communicate(timeout=60)


class Out(NamedTuple):
    """One time that a page was out. Seconds: of the server's clock, except heard_at and returned_at (the crawler's)."""

    lease_id: int
    given_at: float
    heard_at: float
    until: float
    returned_at: float

    def was_out_at(self, other: "Out") -> bool:
        """Whether this lease still ran when the other was given."""
        return other.given_at < self.until and other.heard_at < self.returned_at


def test_no_page_was_out_twice_at_once(aftermath: tuple[Crawl, list[Row]]) -> None:
    _, events = aftermath
    extended: dict[int, float] = {}
    ending: dict[tuple[int, int], float] = {}
    for event in events:
        if event["what"] == "extended" and event["until"] is not None:
            extended[event["lease_id"]] = max(event["until"], extended.get(event["lease_id"], 0))
        elif event["what"] == "ending":
            for page_id in event["page_ids"]:
                ending[event["lease_id"], page_id] = event["at"]
    outs: dict[int, list[Out]] = defaultdict(list)
    for event in events:
        for page_id, _, _, lease_id, until, given_at in event.get("pages", ()):
            until = max(until, extended.get(lease_id, 0))
            returned_at = ending.get((lease_id, page_id), float("inf"))
            outs[page_id].append(Out(lease_id, given_at, event["at"], until, returned_at))
    # The order of lease ids is not the order of time: a call takes its id in its first round, and in a later round it
    # may find a page that a call with a higher id had, and gave back.
    twice = [
        (page_id, one, other)
        for page_id, of_page in outs.items()
        for one, other in combinations(of_page, 2)
        if one.lease_id == other.lease_id or (one.was_out_at(other) and other.was_out_at(one))
    ]
    assert twice == []
    assert sum(map(len, outs.values())) > HOSTS, "hardly anything happened"


def test_no_gap_was_broken_not_even_across_the_restart(aftermath: tuple[Crawl, list[Row]]) -> None:
    _, events = aftermath
    unused = {(event["lease_id"], page) for event in events if "is_release" in event for page in event["page_ids"]}
    slots: dict[str, list[float]] = defaultdict(list)
    for event in events:
        for page_id, host, fetch_at, lease_id, *_ in event.get("pages", ()):
            if (lease_id, page_id) not in unused:
                slots[host].append(fetch_at)
    for of_host in slots.values():
        of_host.sort()
        assert min(b - a for a, b in pairwise(of_host)) > GAP.total_seconds() - 2e-6
    assert len(slots) == HOSTS
    assert any(event["what"] == "lost" for event in events), "nobody noticed that the server was killed"


def test_every_page_comes_back(aftermath: tuple[Crawl, list[Row]]) -> None:
    crawl, _ = aftermath
    settle(crawl)
    assert fetch_everything(crawl) == {row["page_id"] for row in crawl.rows("select page_id from page")}
    assert crawl.value("select count(*) from page where fetched_at is not null") == HOSTS * PAGES
    settle(crawl)


# --------------------------------------------------------------------------------------------------------- storms


@contextmanager
def storm(url: str, seconds: float) -> Iterator[Callable[..., None]]:
    """Calls what it is given again and again for some seconds, each on a connection of its own; no call may fail. The
    share `late` of the calls is committed so late that the horizons may have moved past what they wrote."""
    over = threading.Event()

    def repeat(call: Callable[[Crawl, random.Random], object], late: float, seed: int) -> int:
        calls, chance = 0, random.Random(seed)
        with psycopg.connect(url, autocommit=True, options=SETTINGS) as connection:
            crawl = Crawl(connection)
            while not (calls and over.is_set()):
                crawl.now = datetime.now(UTC)
                with connection.transaction() if chance.random() < late else nullcontext() as transaction:
                    call(crawl, chance)
                    if transaction:
                        time.sleep(chance.uniform(0.4, 1))
                calls += 1
        return calls

    with ThreadPoolExecutor(40) as pool:
        futures = []
        try:
            yield lambda call, late=0.0: futures.append(pool.submit(repeat, call, late, len(futures)))
            time.sleep(seconds)
        finally:
            over.set()
        for future in futures:
            future.result(60)


def test_overlapping_batches_never_deadlock_and_make_one_page_of_a_url(url: str, crawl: Crawl) -> None:
    shared = [f"http://popular{i % 20}.test/{i}" for i in range(400)]

    def some(chance: random.Random, count: int) -> list[str]:
        """Half of them are popular, half may be anybody's."""
        rare = [f"http://rare{chance.randrange(500)}.test/{chance.randrange(100)}" for _ in range(count // 2)]
        return chance.sample(chance.sample(shared, count // 2) + rare, count // 2 * 2)

    def add(crawl: Crawl, chance: random.Random) -> None:
        crawl.rows("select * from add_pages(%s)", some(chance, 200))

    def fetch(crawl: Crawl, chance: random.Random) -> None:
        pages = crawl.rows("select * from next_pages(20)")
        results = [
            {"page_id": p["page_id"], "lease_id": p["lease_id"], "status": 200, "links": some(chance, 30)}
            for p in pages
        ]
        chance.shuffle(results)
        codes = crawl.rows("select code from report(%s::jsonb)", json.dumps(results))
        assert {row["code"] for row in codes} <= {"ok"}

    crawl.value("select set_setting('default_gap', '20 ms'), set_setting('frequency', '86400')")
    crawl.rows("select * from add_pages(%s)", shared[:100])
    with storm(url, 5) as start:
        for _ in range(8):
            start(add)
            start(fetch)
    pages = crawl.rows("select url, count(*) as times from page group by url")
    assert len(pages) > 1000 and {row["times"] for row in pages} == {1}
    unlike = "select url from page p where p.key is distinct from url_key((parse_url(url)).canonical)"
    assert crawl.rows(unlike) == []
    assert crawl.value("select count(*) from link") > 100
    lost = "select 1 from link l, unpacked(l.targets) as t where not exists (select from page p where p.page_id = t)"
    assert crawl.rows(lost) == []
    settle(crawl)


@pytest.mark.parametrize("late", [0, 0.05])
def test_everything_at_once_neither_fails_nor_breaks_anything(url: str, crawl: Crawl, late: float) -> None:
    urls = [f"http://h{host}.test/{page}" for host in range(6) for page in range(12)]
    crawl.value("select set_setting('default_gap', '2 ms'), set_setting('frequency', '86400')")
    out: list[Row] = []

    def fetch(crawl: Crawl, chance: random.Random) -> None:
        lease = f"{chance.choice([1, 1, 2, 60])} s"
        ahead = f"{chance.choice([0, 0, 10, 100])} ms"
        pages = crawl.rows("select * from next_pages(%s, %s, %s)", chance.choice([1, 3, 10]), ahead, lease)
        out.extend(pages)
        del out[:-60]

    def report(crawl: Crawl, chance: random.Random) -> None:
        # Each of them acts on what anybody has got: in time, late, twice.
        results: list[Row] = []
        for page in chance.choices(list(out) or [{"page_id": 1, "lease_id": None}], k=chance.randint(1, 8)):
            found: Row = dict(chance.choice([
                {"status": 200}, {"status": 200}, {"status": 304}, {"status": 500}, {"status": 404},
                {"status": 429, "retry_after": "1"}, {"status": 200, "crawl_delay": 0.002},
                {"status": 200, "links": chance.sample(urls, 5)},
                {"status": 301, "redirect_to": chance.choice(urls)} if chance.random() < 0.01 else {"status": 200},
            ]))  # fmt: skip
            if chance.random() < 0.2:
                found["fetched_at"] = (datetime.now(UTC) - timedelta(seconds=chance.uniform(-1, 3))).isoformat()
            results.append(found | {"page_id": page["page_id"], "lease_id": page["lease_id"]})
        crawl.rows("select * from report(%s::jsonb)", json.dumps(results))

    def keep_or_give_back(crawl: Crawl, chance: random.Random) -> None:
        if out:
            page = chance.choice(list(out))
            if chance.random() < 0.5:
                crawl.value("select extend_lease(%s, '1 s')", page["lease_id"])
            else:
                crawl.value("select release(%s, %s)", page["lease_id"], chance.choice([None, [page["page_id"]]]))

    def add(crawl: Crawl, chance: random.Random) -> None:
        crawl.rows(
            "select * from add_pages(%s, due => %s)", chance.sample(urls, 20), chance.choice([None, [crawl.now]])
        )

    def meddle(crawl: Crawl, chance: random.Random) -> None:
        ids = [chance.randrange(1, len(urls)) for _ in range(chance.randint(1, 8))]
        host = f"h{chance.randrange(6)}.test"
        what = chance.randrange(100)
        if what < 20:
            gap, alone = chance.choice([GAP, GAP / 10]), chance.choice([None, True, False])
            crawl.value("select set_host(%s, gap => %s, one_at_a_time => %s)", host, gap, alone)
        elif what < 60:
            crawl.value("select fetch_now(%s::bigint[])", ids)
        elif what < 80:
            crawl.value("select unblock_host(%s)", host)
        elif what < 98:
            crawl.value("select block_host(%s, clock_timestamp() + interval '1 s')", host)
        else:
            crawl.value("select keep_out(%s::bigint[])", ids[:1])
        time.sleep(0.005)

    def exclude(crawl: Crawl, chance: random.Random) -> None:
        # A pattern of its own for everybody: some of them overlap.
        pattern = f"h{chance.randrange(6)}.test/{chance.randrange(12)}|never-{crawl.connection.info.backend_pid}"
        with suppress(psycopg.errors.LockNotAvailable):  # late reports of new links are open all the time
            crawl.value("select exclude(%s)", pattern)
            time.sleep(chance.uniform(0, 0.02))
            crawl.value("select unexclude(%s)", pattern)

    def tick(crawl: Crawl, chance: random.Random) -> None:
        crawl.value("select tick(%s, %s)", chance.randint(1, 10), chance.randint(1, 50))

    crawl.rows("select * from add_pages(%s)", urls)
    with storm(url, 5) as start:
        for call in (fetch, report, keep_or_give_back):
            for _ in range(6):
                start(call, late)
        for call in (add, meddle, exclude, tick):
            for _ in range(4):
                start(call)
    settle(crawl)
    live = {row["page_id"] for row in crawl.rows("select page_id from page where state = 'live'")}
    crawl.now += 200 * DAY
    assert live and fetch_everything(crawl) == live
    settle(crawl)
