"""Every public function in any order, with plausible and with hostile arguments: each call answers, or is refused in a
sentence. psycopg can read the rows of its answer. After every 60 calls, all invariants of model.py hold.

A history is a list of numbers. Each number is the seed of one call: it chooses the function and its arguments, among
them pages and leases that were handed out before. So a history without some of its calls is a history too. One that
fails is made shorter by leaving calls out, and is then shown as SQL, with its seed.

The same seed makes the same calls each time. So autovacuum is off: it moves rows, and next_pages then chooses otherwise
among pages that are equally good.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random, SystemRandom

import psycopg
import pytest
from psycopg.rows import dict_row
from sqlalchemy.engine import make_url

from helpers import Row, result_of
from sql.model import BROKEN
from sql.test_properties import OUTCOMES

CALLS = 600  # in a history
URLS = [f"http://{host}.test/{path}" for host in "abcdefgh" for path in range(9)]
OFTEN = {"next_pages": 30, "report": 20, "tick": 10, "add_pages": 10, "report_pages": 6, "unexclude": 6, "release": 5,
         "extend_lease": 8, "resume": 5, "unblock_host": 5, "delete_pages": 5, "set_setting": 3}  # fmt: skip
# If a function has a twin that takes the time, the twin is called. tick is the worker's upkeep.
FUNCTIONS = """
    select p.proname as verb, coalesce(p.proargnames[:p.pronargs], '{}') as names,
           array(select t::regtype::text from unnest(p.proargtypes::oid[]) as t) as types,
           to_regprocedure(format('recrawl_internal.%I_at(%s)', p.proname, concat_ws(', ', 'timestamptz',
               nullif(oidvectortypes(p.proargtypes), '')))) is not null as has_twin
    from pg_proc p where p.pronamespace = 'recrawl'::regnamespace
    union all
    select 'tick', '{max_leases,max_entries}', '{integer,integer}', true
    order by 1, 3
"""
NO_AUTOVACUUM = """
    do $$ declare name regclass; begin
        for name in select oid from pg_class
                    where relnamespace = 'recrawl_internal'::regnamespace and relkind = 'r' loop
            execute format('alter table %s set (autovacuum_enabled = off)', name);
        end loop;
    end $$
"""
NESTED = "[" * 2000 + "]" * 2000
JSON = ["null", "true", "7", "65536", "-1e999", "1e-999", "9" * 5000, '""', '"x"', json.dumps("x" * 5000), '"infinity"',
        '"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59Z"', "[]", "[null]", "[[[[[[[[1]]]]]]]]", NESTED, "{}",
        '{"a": ' + NESTED + "}", '["http://a.test/1", null, ""]', json.dumps(URLS)]  # fmt: skip
HOSTILE: dict[str, Sequence[object]] = {
    "bigint": [None, 0, -1, 2**63 - 1, -(2**63)],
    "integer": [None, 0, -1, 2**31 - 1, -(2**31)],
    "double precision": [None, "nan", "inf", "-inf", -1, 0, 1e308, 5e-324, 1e-30, 1e30],
    "boolean": [None],
    "interval": [None, 0, "-1 s", "1 us", "1 mon -31 days", "178000000 years", "-178000000 years", "2147483647 months"],
    "timestamp with time zone": [None, "-infinity", "infinity", "4714-11-24 00:00+00 BC", "294276-12-31 23:59+00",
                                 "0001-01-01 00:00+00", "2199-12-31 00:00+00", "epoch"],
    "text": [None, "", " ", "'", "\\", "%", "(", "none", "-1", "1e400", "é", "x" * 3000, "//a.test/", "http://[::1",
             "http://u:p@a.test/", "http://a.test:80/../%7e", f"http://{'a.' * 200}test/", "http://ä.test/"],
    "jsonb": JSON,
}  # fmt: skip
KEYS = "select unnest(result_keys()) as key"
MOMENTS: list[float] = [0, 0, 0, 0, 1e-6, 0.1, 1, 1, 1, 2.5, 11]  # seconds
WHILES: list[float] = [60, 660, 3600, 86400, 40 * 86400]
# By the name of an argument, or else by its type.
PLAUSIBLE: dict[str, Sequence[object]] = {
    "ahead": ["0", "0", "1 s", "10 s"],
    "by": ["1 s", "10 min", "2 days"],
    "false_hints_per_day": [0.1, 10],
    "host": ["a.test", "b.test", "c.test"],
    "lease": ["1 s", "10 min", "10 min", "2 days"],
    "links": [json.dumps(URLS[1:9]), "[]"],
    "meta": ['{"a": 1}'],
    "n": range(1, 13),
    "notice": ["0", "1 s"],
    "pattern": ["a.test", "b.test/[1-4]", "/2", "/[2-5]"],
    "per_host": [None, 1, 3],
    "recall": [0.1, 0.9],
    "redirect_to": URLS,
    "relevance": [0, 0.5, 1],
    "reset": ["gap", "max_pages", "one_at_a_time"],
    "retry_after": [1, 30, 100000],
    "rules": ["User-agent: *\nDisallow: /2"],
    "statuses": [200, 200, 200, 304, 404, 410, 429, 500, 301, -1],
    "url": URLS,
    "urls": URLS,
    "bigint": range(1, 41),
    "boolean": [True, False],
    "double precision": [0, 0.1, 0.5, 1, 7.3, 1440],
    "integer": range(20),
    "interval": ["1 s", "10 s", "1 min", "10 min", "2 days"],
    "jsonb": ["[]"],
    "text": ["x", "0", "1", "0.5", "1 s", "1 min", "measured"],
}


class History:
    """A crawl on which calls are made, one after the other."""

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self.connection = connection
        connection.execute(NO_AUTOVACUUM)
        self.now = datetime(2030, 1, 1, tzinfo=UTC)
        self.functions = connection.execute(FUNCTIONS).fetchall()
        self.keys = [row["key"] for row in connection.execute(KEYS)]
        self.settings = connection.execute("select name, value from settings").fetchall()
        self.out: list[Row] = []  # what was handed out lately
        self.said: list[str] = []  # all calls, as SQL

    def call(self, seed: int) -> None:
        """One call. Raises if it neither answers nor refuses."""
        self.random = Random(seed)
        self.connection.execute("select setseed(%s)", [seed / 2**32])  # for the server's random()
        self.now += timedelta(seconds=self.random.choice(MOMENTS if self.random.random() < 0.995 else WHILES))
        self.hostility = self.random.choice([0, 0, 0, 0, 0.3])
        (function,) = self.random.choices(self.functions, [OFTEN.get(f["verb"], 1) for f in self.functions])
        verb, types = function["verb"], function["types"]
        self.pages = self.random.sample(self.out, min(len(self.out), self.random.randint(1, 4)))
        self.setting = self.random.choice(self.settings)
        arguments = [self.argument(verb, *argument) for argument in zip(function["names"], types, strict=True)]
        if function["has_twin"]:
            verb, types, arguments = f"{verb}_at", ["timestamptz", *types], [self.now, *arguments]
        query = f"select * from {verb}({', '.join(f'%s::{of_type}' for of_type in types)})"
        cursor = psycopg.ClientCursor(self.connection, row_factory=dict_row)
        self.said.append(cursor.mogrify(query, arguments))
        try:
            rows = cursor.execute(query, arguments).fetchall()
        except psycopg.errors.InvalidParameterValue as refusal:
            if not str(refusal).startswith(function["verb"] + ": "):
                raise
        else:
            if function["verb"] == "next_pages":
                self.out = [*self.out, *rows][-20:]

    def argument(self, verb: str, name: str, of_type: str) -> object:
        if not of_type.endswith("[]"):
            return self.one(verb, name, of_type)
        element = of_type.removesuffix("[]")
        if name.removesuffix("s") in ("page_id", "lease_id") and self.random.random() < 0.8:
            return [str(page[name.removesuffix("s")]) for page in self.pages]
        if name not in ("page_ids", "urls") and self.random.random() < 0.5:
            return None
        length = 1 if verb == "add_pages" and name != "urls" else len(self.pages) if "report" in verb else 5
        return [self.one(verb, name, element) for _ in range(8 * length if name == "sketch" else length)]

    def one(self, verb: str, name: str, of_type: str) -> str | None:
        value = self.drawn(verb, name, of_type)
        return None if value is None else str(value)

    def drawn(self, verb: str, name: str, of_type: str) -> object:
        if verb != "tick" and self.random.random() < self.hostility:
            return self.random.choice(HOSTILE[of_type])
        if verb == "next_pages" and name == "host" and self.random.random() < 0.8:
            return None
        if name in ("page_id", "lease_id") and self.pages:
            return self.pages[0][name]
        if name == "results":
            return f"[{', '.join(self.result(page) for page in self.pages)}]"
        if verb == "set_setting" and (name == "name" or self.random.random() < 0.5):
            return self.setting[name]
        if of_type == "timestamp with time zone":
            return self.now + self.random.choice([-1, 1]) * timedelta(seconds=self.random.choice(MOMENTS + WHILES))
        return self.random.choice(PLAUSIBLE.get(name, PLAUSIBLE[of_type]))

    def result(self, page: Row) -> str:
        """An element for report, as text: Python's JSON cannot hold all that PostgreSQL's can."""
        if self.random.random() < 0.03:
            return self.random.choice(JSON)
        element = {key: json.dumps(value) for key, value in result_of(page, **self.random.choice(OUTCOMES)[0]).items()}
        if self.random.random() < 0.2:
            element[self.random.choice([*self.keys, "x"])] = self.random.choice(JSON)
        if self.random.random() < 0.1:
            element.pop(self.random.choice(list(element)))
        return "{" + ", ".join(f'"{key}": {value}' for key, value in element.items()) + "}"


@dataclass
class Failure:
    what: str
    calls: int
    said: list[str]


def failure(url: str, seeds: list[int]) -> Failure | None:
    """The first thing that goes wrong in a history."""
    options = "-c search_path=recrawl,recrawl_internal -c synchronous_commit=off"
    with psycopg.connect(url, autocommit=True, row_factory=dict_row, options=options) as connection:
        history = History(connection)
        for calls, seed in enumerate(seeds, 1):
            what = None
            try:
                history.call(seed)
                if calls % 60 == 0 or calls == len(seeds):
                    for row in connection.execute(BROKEN, {"t": history.now}):
                        what = what or "{what}: {id}, {detail}".format(**row)
            except (psycopg.Error, ValueError, RecursionError) as error:  # the last two: JSON that Python cannot read
                what = f"{type(error).__name__}: {error}"
            if what is not None:
                return Failure(what, calls, history.said)
    return None


def seeds_of(seed: int) -> list[int]:
    """The history of a seed."""
    random = Random(seed)
    return [random.getrandbits(32) for _ in range(CALLS)]


def shortened(seeds: list[int], fails: Callable[[list[int]], Failure | None], first: Failure) -> Failure:
    """The failure of a shorter history: leaves out half of the calls, a quarter and so on, if the same still fails."""
    found, seeds = first, seeds[: first.calls]
    size = len(seeds)
    while size := size // 2:
        start = 0
        while start < len(seeds):
            rest = seeds[:start] + seeds[start + size :]
            if (again := fails(rest)) and again.what[:30] == first.what[:30]:
                found, seeds = again, rest[: again.calls]
            else:
                start += size
    return found


@pytest.fixture
def play(template: str, new_database: Callable[..., str], on_server: Callable[..., None]) -> Callable[[int], None]:
    """Plays the history of a seed."""

    def fails(seeds: list[int]) -> Failure | None:
        url = new_database(template)
        try:
            return failure(url, seeds)
        finally:
            on_server("drop database {} with (force)", make_url(url).database or "")

    def play(seed: int) -> None:
        seeds = seeds_of(seed)
        if found := fails(seeds):
            found = shortened(seeds, fails, found)
            pytest.fail(f"{found.what}\nThe history of seed {seed}, shortened:\n\n" + ";\n".join(found.said) + ";")

    return play


@pytest.mark.parametrize("seed", [1, 2])
def test_every_call_answers_or_is_refused_and_nothing_breaks(play: Callable[[int], None], seed: int) -> None:
    play(seed)


@pytest.mark.soak
def test_many_histories_break_nothing(play: Callable[[int], None]) -> None:
    first = SystemRandom().randrange(10**9)
    print(f"seeds from {first} on")
    for seed in range(first, first + 100):
        play(seed)
