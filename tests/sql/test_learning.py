"""Learned rates compared with true rates: pages change at random moments, and crawlers learn as little as possible."""

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import pytest

from helpers import DAY, HOUR, Crawl, Row, result_of

PAGES = 300
RATE = 0.5  # changes per day, of every page
DAYS = 60


class Page:
    def __init__(self, rng: np.random.Generator, started: datetime) -> None:
        self.rng, self.started = rng, started
        self.changes = np.sort(rng.uniform(0, DAYS, rng.poisson(RATE * DAYS)))
        self.fetched = -1  # which version was fetched last

    def version(self, t: datetime) -> int:
        return int(np.searchsorted(self.changes, (t - self.started) / DAY, side="right"))

    def since(self, version: int) -> datetime:
        return self.started + (self.changes[version - 1] if version else -10) * DAY

    def has_changed(self, t: datetime) -> bool:
        before, self.fetched = self.fetched, self.version(t)
        return before != self.fetched


Answer = Callable[[Page, Row], Row]  # what is reported of a page that was handed out


def told(page: Page, row: Row) -> Row:
    return {"changed": page.has_changed(row["fetch_at"])}


class World:
    """Each page on a host of its own. Nobody is told more than how often pages change on average."""

    def __init__(self, crawl: Crawl) -> None:
        self.crawl, self.rng = crawl, np.random.default_rng(7)
        self.pages = {f"http://h{i}.test/": Page(self.rng, crawl.now) for i in range(PAGES)}
        crawl.connection.execute("update host_terms set prior_changes = 1, prior_days = %s", [1 / RATE])
        crawl.add(*self.pages)
        crawl.tick()

    def run(self, step: timedelta, answer: Answer) -> float:
        """How often pages are thought to change, compared to the truth."""
        crawl, end = self.crawl, self.crawl.now + DAYS * DAY
        while crawl.now < end:
            self.before_a_step(step)
            crawl.report(*(result_of(row, **answer(self.pages[row["url"]], row)) for row in crawl.next(PAGES)))
            crawl.tick()
            crawl.wait(step)
        changes = sum(len(page.changes) for page in self.pages.values())
        return float(crawl.value("select sum(rate) from page_status")) / (changes / DAYS)

    def before_a_step(self, step: timedelta) -> None:
        pass


# --------------------------------------------------------------------------------------------------------- validators


def unconditional(page: Page, version: int, row: Row) -> Row:
    return {"status": 200, "etag": f'"{version}"'}


def with_etags(page: Page, version: int, row: Row) -> Row:
    weak = "W/" * bool(page.rng.random() < 0.5)
    if row["etag"] and row["etag"].removeprefix("W/") == f'"{version}"':
        return {"status": 304} | ({"etag": f'{weak}"{version}"'} if page.rng.random() < 0.5 else {})
    return {"status": 200, "etag": f'{weak}"{version}"'}


def with_dates(page: Page, version: int, row: Row) -> Row:
    modified = page.since(version).replace(microsecond=0)
    if row["last_modified"] and modified <= row["last_modified"]:
        return {"status": 304}
    return {"status": 200, "last_modified": modified.isoformat()}


def with_old_dates(page: Page, version: int, row: Row) -> Row:
    """Files that were made long before they were put in place."""
    modified = page.started - (1000 - version) * DAY
    if row["last_modified"] == modified:
        return {"status": 304}
    return {"status": 200, "last_modified": modified.isoformat()}


def now_and_then(page: Page, version: int, row: Row) -> Row:
    """Of its two machines one knows nothing of etags."""
    return with_etags(page, version, row) if page.rng.random() < 0.5 else {"status": 200}


def with_times_of_answers(page: Page, version: int, row: Row) -> Row:
    return with_etags(page, version, row) | {"last_modified": row["fetch_at"].isoformat()}


def of_two_kinds(page: Page, version: int, row: Row) -> Row:
    return (with_etags if page.rng.random() < 0.5 else with_dates)(page, version, row)


def served(server: Callable[[Page, int, Row], Row]) -> Answer:
    def answer(page: Page, row: Row) -> Row:
        return server(page, page.version(row["fetch_at"]), row)

    return answer


@pytest.mark.parametrize(
    "sends",
    [unconditional, with_etags, with_dates, with_old_dates, now_and_then, with_times_of_answers, of_two_kinds],
    ids=lambda sends: sends.__name__,
)
def test_who_sends_nothing_but_validators_learns_how_often_pages_change(
    crawl: Crawl, sends: Callable[[Page, int, Row], Row]
) -> None:
    assert World(crawl).run(DAY, served(sends)) == pytest.approx(1, abs=0.05)


def test_a_server_that_sends_no_validator_with_what_it_has_just_made_is_learnt_from(crawl: Crawl) -> None:
    made: dict[Page, int] = {}

    def server(page: Page, version: int, row: Row) -> Row:
        was_made, made[page] = made.get(page) == version, version
        return with_etags(page, version, row) if was_made else {"status": 200}

    ratio = World(crawl).run(DAY, served(server))
    assert 0.7 < ratio < 1.05, "0.77 measured: what was changed is known only a visit later"


def test_a_server_that_says_nothing_teaches_nothing(crawl: Crawl) -> None:
    World(crawl).run(10 * DAY, served(lambda page, version, row: {"status": 200}))
    assert crawl.value("select max(seen_days) from page") == 0


# -------------------------------------------------------------------------------------------------------------- hints


class Hinted(World):
    def __init__(self, crawl: Crawl, recall: float, delay: float, false_hints_per_day: float) -> None:
        super().__init__(crawl)
        self.recall, self.false_hints_per_day = recall, false_hints_per_day
        self.hints: list[tuple[datetime, str]] = []
        for url, page in self.pages.items():
            announced = page.changes[self.rng.random(len(page.changes)) < recall]
            announced = announced + self.rng.exponential(delay or 1e-9, len(announced))
            false = self.rng.uniform(0, DAYS, self.rng.poisson(false_hints_per_day * DAYS))
            self.hints += [(crawl.now + float(day) * DAY, url) for day in np.concatenate((announced, false))]
        self.hints.sort(reverse=True)
        self.ids = {row["url"]: row["page_id"] for row in crawl.rows("select page_id, url from page")}

    def before_a_step(self, step: timedelta) -> None:
        now: list[int] = []
        while self.hints and self.hints[-1][0] <= self.crawl.now:
            now.append(self.ids[self.hints.pop()[1]])
        self.crawl.value(
            "select hint_change_at(%s, %s::bigint[], %s, %s)",
            self.crawl.now,
            now,
            self.recall,
            self.false_hints_per_day,
        )


@pytest.mark.parametrize(
    ("recall", "delay", "false_hints_per_day", "price"),  # with a price, what is learnt decides when the next fetch is
    [
        (0.9, 0.5, 0.0, 0.5),
        (0.9, 0.0, 0.3, None),
        *(
            pytest.param(*hints, marks=pytest.mark.soak)
            for hints in [(1, 0, 0, None), (1, 0, 0, 0.5), (0.5, 0, 0, None)]
        ),
    ],
)
def test_hints_do_not_make_pages_look_faster_than_they_are(
    crawl: Crawl, recall: float, delay: float, false_hints_per_day: float, price: float | None
) -> None:
    crawl.value("select set_setting('frequency', '0.4')")
    crawl.connection.execute("update host_terms set objective = 'freshness', price = %s where host_id = 0", [price])
    assert Hinted(crawl, recall, delay, false_hints_per_day).run(4 * HOUR, told) == pytest.approx(1, abs=0.05)
