"""The report of crawls that ran: its verdict and its pictures show what happened to them."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from html import unescape
from pathlib import Path
from re import sub

import psycopg
import pytest
from sqlalchemy.engine import make_url

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, run_job
from recrawl import store
from recrawl.view import overview
from recrawl.view.parts.page import Report
from worker.view.browser import DESK, PHONE, Browser, open_browser, program
from worker.view.simulated import BUDGET, DEAD, TIRED, Simulated, a_day
from worker.view.test_browser import assert_fits


def text_of(markup: str) -> str:
    """The text that a reader sees."""
    return unescape(sub(r"<[^>]*>", "", markup))


def connected(url: str) -> psycopg.Connection:
    return psycopg.connect(url, autocommit=True, options="-c search_path=recrawl,recrawl_internal")


@pytest.fixture(scope="module")
def day(template: str, new_database: Callable[..., str]) -> tuple[str, Simulated]:
    """A database in which a day went by, and what went by; to be cloned."""
    url = new_database(template)
    with connected(url) as connection:
        simulated = a_day(Crawl(connection), url)
    return make_url(url).database or "", simulated


@pytest.fixture
def lived(day: tuple[str, Simulated], new_database: Callable[..., str]) -> Iterator[Simulated]:
    """The same, for one test to go on with."""
    url = new_database(day[0])
    with connected(url) as connection:
        simulated = Simulated(Crawl(connection), url)
        simulated.rates, simulated.seen, simulated.crawl.now = day[1].rates, dict(day[1].seen), day[1].crawl.now
        yield simulated


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser | None]:
    """None where there is no Chromium."""
    if program() is None:
        yield None
    else:
        with open_browser() as browser:
            yield browser


def read(crawl: Crawl) -> Report:
    return overview.read(crawl.connection)


def looked_at(browser: Browser | None, report: Report, name: str, folder: Path) -> str:
    """The text of its page, which a browser has shown in all four ways."""
    html = overview.html(report)
    file = folder / "report.html"
    file.write_text(html)
    for width, dark in ((DESK, False), (DESK, True), (PHONE, False), (PHONE, True)) if browser else ():
        assert browser
        browser.show(file.as_uri(), width, dark=dark)
        assert browser.complaints() == []
        assert_fits(browser)
        if pictures := os.environ.get("RECRAWL_PICTURES"):
            browser.picture(Path(pictures) / f"real-{name}-{width}{'-dark' if dark else ''}.png")
    return text_of(html[html.index("<main") :]).replace("\N{NO-BREAK SPACE}", " ")


def test_a_day_in_health(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    until_now(lived)
    report = read(lived.crawl)
    text = looked_at(browser, report, "health", tmp_path)
    since = report.figures.day.since
    assert since and DAY - 15 * MINUTE < report.figures.now.as_of - since <= DAY
    day = lived.crawl.row(
        "select sum(fetches)::int as fetches, sum(changed)::int as changed from vitals where at >= %s", since
    )
    assert f"{day['fetches']:,} fetches in 24 h" in text
    assert f"{day['changed'] / day['fetches']:.0%}".replace("%", " %") + " found a change" in text
    assert report.verdict.level != "trouble"
    assert "of the value of all pages is fresh" in text and "the allocation expects" in text
    assert f"budget: {BUDGET / 24:,.0f} an hour" in text
    assert report.history.events and all(event.says in text for event in report.history.events)


def two_hours_ago(lived: Simulated) -> None:
    lived.crawl.age(2 * HOUR)
    lived.crawl.connection.execute("update pulse set at = at - interval '2 hours'")
    lived.crawl.connection.execute("delete from vital where at >= now() - interval '2 hours'")
    lived.crawl.connection.execute("delete from vital_hour where at >= now() - interval '3 hours'")


def until_now(lived: Simulated) -> None:
    """Crawls the time that this test has taken so far too. Otherwise hosts would have waited during this time."""
    while (now := lived.crawl.value("select clock_timestamp()")) - lived.crawl.now > 15 * SECOND:
        lived.run(now, step=15 * SECOND, jobs=False)


def test_no_crawlers(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    two_hours_ago(lived)
    lived.run(lived.crawl.now + 2 * HOUR, crawlers=False, jobs=False)
    report = read(lived.crawl)
    text = looked_at(browser, report, "still", tmp_path)
    assert report.verdict.level == "trouble"
    assert "their hosts are ready" in text


def test_crawlers_that_reach_no_host(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    two_hours_ago(lived)
    lived.is_cut_off = True
    lived.run(lived.crawl.now + 2 * HOUR, jobs=False)
    until_now(lived)
    report = read(lived.crawl)
    text = looked_at(browser, report, "cut-off", tmp_path)
    assert (report.verdict.code, report.verdict.level) == ("fetches_fail", "trouble")
    assert "Does the network of the crawlers work?" in text


def test_no_worker(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    until_now(lived)
    report = read(lived.crawl)
    text = looked_at(browser, report, "no-worker", tmp_path)
    assert report.verdict.code == "no_worker"
    assert "recrawl worker" in text


def test_a_worker_that_does_nothing(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    until_now(lived)
    with store.connect(lived.url, store.calls.WORKER):
        report = read(lived.crawl)
    looked_at(browser, report, "silent", tmp_path)
    assert report.verdict.code == "worker_silent"


def test_a_job_that_fails(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    until_now(lived)
    lived.crawl.connection.execute('alter table allocation add constraint "the disk is full" check (false) not valid')
    for _ in range(2):
        with pytest.raises(psycopg.errors.CheckViolation):
            run_job("allocate", lived.url)
    until_now(lived)
    lived.crawl.value("select tick(200, 2000)")  # as the worker does, whose jobs these are
    report = read(lived.crawl)
    text = looked_at(browser, report, "job", tmp_path)
    assert report.verdict.code == "job_failing"
    assert "The job allocate failed 2 times in a row" in text and "the disk is full" in text
    assert "recrawl run allocate" in text and "the allocation expects" in text


def test_a_crawl_that_is_paused(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    lived.crawl.value("select pause()")
    report = read(lived.crawl)
    looked_at(browser, report, "paused", tmp_path)
    assert report.verdict.code == "paused"


def test_blocked_hosts(lived: Simulated, browser: Browser | None, tmp_path: Path) -> None:
    for host in (DEAD, TIRED, "site-0.test"):
        reason = f"<b>{host}</b> & asked"
        lived.crawl.value("select block_host(%s, %s, %s)", host, lived.crawl.now + 30 * HOUR, reason)
        of_host = "select page_id from page join host using (host_id) where name = %s and fetched_at is not null"
        lived.crawl.value(f"select fetch_now_at(%s, array({of_host}))", lived.crawl.now, host)
    lived.crawl.connection.execute("update vitals_state set hosts_at = null")
    lived.run(lived.crawl.now + 10 * MINUTE, jobs=False)
    report = read(lived.crawl)
    text = looked_at(browser, report, "blocked", tmp_path)
    assert {host.host for host in report.history.blocked} >= {TIRED, "site-0.test"}
    assert all(f"<b>{host.host}</b> & asked" in text for host in report.history.blocked)


def test_an_empty_crawl(crawl: Crawl, browser: Browser | None, tmp_path: Path) -> None:
    report = read(crawl)
    text = looked_at(browser, report, "empty", tmp_path)
    assert report.verdict.code == "empty"
    assert "No page was fetched yet." in text and "Not known yet" in text


def test_a_young_crawl_without_an_allocation(crawl: Crawl, url: str, browser: Browser | None, tmp_path: Path) -> None:
    simulated = Simulated(crawl, url)
    simulated.begin(timedelta(hours=3))
    simulated.run(crawl.now + timedelta(hours=3), jobs=False)
    report = read(crawl)
    text = looked_at(browser, report, "young", tmp_path)
    assert "No allocation has said what to expect." in text
    assert "The last allocation" not in text
    assert "fetches in 3 h" in text
