"""The questions that one asks Frontera and its first OPIC backend, asked here, as docs/frontera.md maps them."""

import re
from collections import Counter
from datetime import datetime, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, misplaced, result_of, run_job, urls

DOCUMENT = (Path(__file__).parents[2] / "docs/frontera.md").read_text()
PER_DAY = {f"http://a.test/{frequency}": frequency for frequency in (24, 12, 8, 4, 3, 1)}


# ------------------------------------------------------------------------------------------------- the OPIC backend


class FreqDB:
    """FreqDBInterface. Frequencies are per day; what it hands out is fetched and reported at once."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl = crawl

    def add(self, url: str, frequency: int) -> None:
        self.crawl.add(url)
        self.set(url, frequency)

    def set(self, url: str, frequency: int) -> None:
        every = DAY / frequency
        answers = self.crawl.rows("select * from set_interval_at(%s, %s, %s)", self.crawl.now, [self.id(url)], every)
        assert codes(answers) == ["ok"]

    def delete(self, url: str) -> None:
        assert self.crawl.value("select keep_out(%s)", [self.id(url)]) == 1

    def get_next_pages(self, n: int = 1) -> list[str]:
        """The first call that brings anything, once that is due."""
        while not (pages := self.crawl.next(n)):
            self.crawl.now = self.crawl.value("select next_ready_time(%s)", self.crawl.now)
        assert codes(self.crawl.report_ok(pages)) == ["ok"] * len(pages)
        return urls(pages)

    def id(self, url: str) -> int:
        return int(self.crawl.value("select page_of(%s)", url))


@pytest.fixture
def freq_db(crawl: Crawl) -> FreqDB:
    freq_db = FreqDB(crawl)
    for url, frequency in PER_DAY.items():
        freq_db.add(url, frequency)
    crawl.value("select set_host('a.test', gap => '1 second')")
    crawl.tick()
    return freq_db


def popped(freq_db: FreqDB, pops: int) -> list[str]:
    return [url for _ in range(pops) for url in freq_db.get_next_pages(1)]


def scores(order: list[str]) -> list[Fraction]:
    """The order of the ancestor: each pop adds 1/frequency to the score of a page. The page with the least is next."""
    before: Counter[str] = Counter()
    found = []
    for url in order:
        found.append(Fraction(before[url], PER_DAY[url]))
        before[url] += 1
    return found


def test_single_pops_give_each_page_its_exact_share_in_the_ancestors_order(freq_db: FreqDB) -> None:
    """Three days' pops, 52 a day: of each page as many as it is to have, and never one too early or late."""
    order = popped(freq_db, 3 * sum(PER_DAY.values()))
    assert Counter(order) == {url: 3 * frequency for url, frequency in PER_DAY.items()}
    assert scores(order) == sorted(scores(order)), "pages of one score may change places, no others"
    assert misplaced(freq_db.crawl) == []


def test_no_share_is_ever_off_by_more_than_a_fetch(freq_db: FreqDB) -> None:
    begin, total = freq_db.crawl.now, sum(PER_DAY.values())
    had: Counter[str] = Counter()
    for pop in range(1, total + 1):
        had.update(freq_db.get_next_pages())
        days = (freq_db.crawl.now - begin) / DAY
        for url, frequency in PER_DAY.items():
            assert -0.01 < had[url] - days * frequency < 1.01, (pop, url)


def test_a_frequency_that_is_set_anew_or_deleted_counts_from_then_on(freq_db: FreqDB) -> None:
    popped(freq_db, sum(PER_DAY.values()))
    often, gone = "http://a.test/24", "http://a.test/8"
    freq_db.set(often, 2)
    freq_db.delete(gone)
    freq_db.crawl.tick()
    begin, order = freq_db.crawl.now, list[str]()
    while freq_db.crawl.now < begin + 2 * DAY + MINUTE:
        order += freq_db.get_next_pages()
    had = Counter(order)
    assert had[often] == pytest.approx(4, abs=1) and had[gone] == 0
    for url in PER_DAY.keys() - {often, gone}:
        assert had[url] == pytest.approx(2 * PER_DAY[url], abs=1)


def test_the_optimal_scheduler_is_told_rates_and_values_and_finds_the_sources_frequencies(
    connection: psycopg.Connection, url: str
) -> None:
    """Its own example: a page that changes often and is worth little, and one the other way round; 4 fetches a day."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    rows = crawl.add("http://a.test/", "http://b.test/")
    crawl.tick()
    crawl.report_ok(crawl.next())
    crawl.tick()
    first, second = (row["page_id"] for row in rows)
    for page_id, rate, value in ((first, 5, 1), (second, 1, 5)):
        crawl.value("select set_rate(%s, %s)", page_id, rate)
        crawl.value("select set_value(%s, %s)", page_id, value)
    for name, said in (("objective", "new_content"), ("budget", "4"), ("exploration", "0"), ("discovery", "0")):
        crawl.value("select set_setting(%s, %s)", name, said)
    run_job("allocate", url)
    found = {row["page_id"]: row["frequency"] for row in crawl.rows("select page_id, frequency from page_status")}
    assert found == {first: pytest.approx(2.35945, rel=1e-4), second: pytest.approx(1.64055, rel=1e-4)}
    crawl.value("select keep_out(%s)", [first])
    run_job("allocate", url)
    assert crawl.page("http://b.test/")["frequency"] == pytest.approx(4, rel=1e-4)


def test_best_first_hands_out_the_page_of_most_value(crawl: Crawl) -> None:
    values = [3.0, 50.0, 0.5, 12.0, 1.0, 200.0]
    crawl.add(*(f"http://a.test/{value:g}" for value in values), value=values)
    crawl.tick()
    order = list[str]()
    while pages := crawl.next(1):
        order += urls(pages)
        crawl.wait(MINUTE)
    assert order == [f"http://a.test/{value:g}" for value in sorted(values, reverse=True)]


# --------------------------------------------------------------------------------------------------------- Frontera


class Backend:
    """The backend's interface: what a spider of Frontera says, and when."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl = crawl
        self.out: dict[str, Row] = {}

    def add_seeds(self, seeds: list[str]) -> list[str]:
        answers = codes(self.crawl.add(*seeds))
        self.crawl.tick()
        return answers

    def get_next_requests(self, max_n_requests: int) -> list[str]:
        pages = self.crawl.next(max_n_requests)
        self.out |= {page["url"]: page for page in pages}
        return urls(pages)

    def page_crawled(self, url: str, links: list[str]) -> datetime:
        return self._report(url, status=200, links=links)

    def request_error(self, url: str) -> datetime:
        return self._report(url, status=0)

    def finished(self) -> bool:
        return self.next_at() is None

    def next_at(self) -> datetime | None:
        found: datetime | None = self.crawl.value("select next_ready_time(%s)", self.crawl.now)
        return found

    def _report(self, url: str, **what: Any) -> datetime:
        (answer,) = self.crawl.report(result_of(self.out.pop(url), **what))
        assert answer["code"] == "ok"
        self.crawl.tick()
        next_fetch_at: datetime = answer["next_fetch_at"]
        return next_fetch_at


A, B, C = "http://a.test/", "http://b.test/", "http://c.test/"


def test_a_crawl_by_the_backends_calls(crawl: Crawl) -> None:
    backend = Backend(crawl)
    assert backend.finished() and backend.get_next_requests(64) == []
    assert backend.add_seeds([A, B]) == ["new", "new"]
    assert backend.add_seeds(["HTTP://A.test:80/#top"]) == ["known"], "CanonicalSolver: one spelling"
    assert sorted(backend.get_next_requests(64)) == [A, B]
    assert backend.get_next_requests(64) == [], "what is out is not handed out again"

    due = backend.page_crawled(A, links=[C, B, f"{A}2"])
    assert due == crawl.now + DAY, "the report says at once when the page is due again"
    assert backend.request_error(B) < due, "sooner, and then ever more rarely"
    crawl.wait(10 * SECOND)
    assert sorted(backend.get_next_requests(64)) == [f"{A}2", C], "links are pages, once each"
    for url in (C, f"{A}2"):
        backend.page_crawled(url, links=[])

    status = {row["url"]: row for row in crawl.rows("select * from page_status")}
    assert (status[A]["state"], status[A]["successes"], status[B]["successes"]) == ("live", 1, 0)
    assert not backend.finished() and backend.next_at() is not None, "a crawl that revisits never is"
    assert misplaced(crawl) == []


def test_errors_come_back_ever_more_rarely(crawl: Crawl) -> None:
    backend = Backend(crawl)
    backend.add_seeds([A])
    waits = list[timedelta]()
    for _ in range(4):
        assert backend.get_next_requests(1) == [A]
        due = backend.request_error(A)
        waits.append(due - crawl.now)
        crawl.now = max(due, backend.next_at() or due)
    assert all(longer > 1.5 * shorter for shorter, longer in pairwise(waits)), waits


def test_what_a_spider_that_died_had_in_hand_comes_back(crawl: Crawl) -> None:
    backend = Backend(crawl)
    backend.add_seeds([A])
    assert backend.get_next_requests(1) == [A]
    crawl.wait(HOUR)
    crawl.tick()
    assert backend.get_next_requests(1) == [A]


def test_every_function_that_the_document_names_is_there(connection: psycopg.Connection) -> None:
    here = "\n".join(row.rsplit("|", 2)[1] for row in DOCUMENT.splitlines() if row.startswith("| "))
    named = set(re.findall(r"(?<![\w.])([a-z_]+)\(", here))
    assert {"add_pages", "next_pages", "set_interval", "keep_out"} <= named
    schemas = "'recrawl'::regnamespace, 'pg_catalog'::regnamespace"
    known = connection.execute(f"select distinct proname from pg_proc where pronamespace in ({schemas})".encode())
    assert named <= {name for (name,) in known}
