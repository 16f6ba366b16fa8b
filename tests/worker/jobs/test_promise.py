"""A crawl reaches the freshness that its allocation expects, also with new pages: on virtual time, with known rates.

A page that is fetched at intervals I and changes at a rate λ is fresh for (1 − e^−λI) / λ of each.
"""

from collections import defaultdict
from datetime import timedelta

import numpy as np
import psycopg
import pytest

from helpers import DAY, MINUTE, SECOND, Crawl, result_of, run_job

WARM_UP, DAYS = 1.0, 3.0

# Gap in seconds, known pages, changes per day of the middle one, and new pages by value.
HOSTS: dict[str, tuple[int, int, float, dict[float, int]]] = {
    "best.test": (300, 150, 3.0, {8: 3000}),
    "middling.test": (600, 100, 3.0, {2: 2000}),
    "none.test": (600, 80, 3.0, {}),
    "least.test": (300, 100, 3.0, {0.25: 3000}),
    "wide.test": (10, 300, 0.6, {8: 2000, 1: 9000}),
    "idle.test": (10, 200, 0.3, {1: 9000}),
}


class Web:
    def __init__(self, crawl: Crawl, seed: int) -> None:
        self.crawl, random = crawl, np.random.default_rng(seed)
        self.rate: dict[int, float] = {}
        self.host: dict[int, str] = {}
        self.visits: dict[int, list[float]] = defaultdict(list)
        self.found: dict[tuple[str, float], int] = {}
        for host, (gap, pages, rate, new) in HOSTS.items():
            crawl.value("select set_host(%s, gap => %s)", host, gap * SECOND)
            rates = rate * random.lognormal(0, 1, pages)
            rows = crawl.add(
                *(f"http://{host}/old{i}" for i in range(pages)),
                rate=rates.tolist(), due=[crawl.now + 400 * DAY],
            )  # fmt: skip
            self.rate |= {row["page_id"]: rate for row, rate in zip(rows, rates, strict=True)}
            self.host |= {row["page_id"]: host for row in rows}
            for value, waiting in new.items():
                self.find(host, value, waiting)
        crawl.tick()

    def find(self, host: str, value: float, pages: int) -> None:
        first = self.found.get((host, value), 0)
        self.crawl.add(*(f"http://{host}/new{value}-{i}" for i in range(first, first + pages)), value=[value])
        self.found[host, value] = first + pages

    def begin(self) -> None:
        """Known pages were fetched before and are due at any time of their intervals."""
        for statement in (
            "update page set fetched_at = %(t)s where page_id = any (%(pages)s)",
            # The fractions of the multiples of the golden ratio: spread evenly, and the same in every run.
            "update page p set due_at = %(t)s::timestamptz"
            " + (p.page_id * 0.6180339887 %% 1)::float8 * interval '1 day' / s.frequency"
            " from page_status s where s.page_id = p.page_id and p.page_id = any (%(pages)s)",
            "update queue q set due_at = p.due_at from page p where p.page_id = q.page_id",
            "update host h set head_due = q.due_at, ready_at = greatest(q.due_at, %(t)s)"
            " from (select host_id, min(due_at) as due_at from queue group by host_id) q where q.host_id = h.host_id",
        ):
            self.crawl.connection.execute(statement, {"pages": list(self.rate), "t": self.crawl.now})

    def freshness(self) -> float:
        """On average over the known pages, from the end of the warm-up."""
        fresh = []
        for page, rate in self.rate.items():
            edges = np.array([-np.inf, *self.visits[page], WARM_UP + DAYS])
            start, stop = np.maximum(edges[:-1], WARM_UP), np.maximum(edges[1:], WARM_UP)
            fresh.append(np.exp(-rate * (start - edges[:-1])) @ -np.expm1(-rate * (stop - start)) / rate)
        return float(np.mean(fresh)) / DAYS


def crawl_on(web: Web, every: timedelta) -> dict[str, tuple[float, float]]:
    """Revisits and new pages a day of each host, after the warm-up. A new page is gone once it was fetched."""
    crawl, start = web.crawl, web.crawl.now
    fetched = {host: [0, 0] for host in HOSTS}
    while (day := (crawl.now - start) / DAY) < WARM_UP + DAYS:
        pages = crawl.next(100, ahead=every)
        crawl.report(*(result_of(page, status=200 if page["page_id"] in web.rate else 410) for page in pages))
        for page in pages:
            if page["page_id"] in web.rate:
                web.visits[page["page_id"]].append((page["fetch_at"] - start) / DAY)
            if day >= WARM_UP:
                fetched[page["host"]][page["page_id"] not in web.rate] += 1
        if len(pages) and day % 0.25 < 1 / 1440:
            for (host, value), _ in list(web.found.items()):
                web.find(host, value, 50)
        crawl.wait(every)
    return {host: (revisits / DAYS, new / DAYS) for host, (revisits, new) in fetched.items()}


@pytest.mark.soak
def test_a_crawl_is_as_fresh_as_its_allocation_says(connection: psycopg.Connection, url: str) -> None:
    """Four hosts at their cap, one of them with the best new pages, and two with slots to spare."""
    crawl = Crawl(connection)
    crawl.now = crawl.value("select clock_timestamp()")
    for name, value in {
        "window_share": "0",
        "budget": "3000",
        "discovery": "0.3",
        "shortest_interval": "1 hour",
    }.items():
        crawl.value("select set_setting(%s, %s)", name, value)
    web = Web(crawl, 1)
    run_job("allocate", url)
    promised = crawl.row("select for_revisits, for_new, utility, limit_with_gaps, capped_hosts from allocation_run")
    by_host: dict[str, float] = dict(connection.execute("select host, frequency from host_status").fetchall())
    assert promised["capped_hosts"] == 4
    assert by_host["best.test"] == pytest.approx(0.7 * 288, rel=1e-3), "of its slots, its new pages have their share"
    crawl.wait(SECOND)
    web.begin()
    came = crawl_on(web, MINUTE)
    assert sum(new for _, new in came.values()) == pytest.approx(promised["for_new"], rel=0.03)
    for host, (revisits, _) in came.items():
        assert revisits >= 0.92 * by_host[host], host
    assert web.freshness() == pytest.approx(promised["utility"], rel=0.01)
    assert web.freshness() <= promised["limit_with_gaps"] * 1.01
