"""A day of a crawl whose pages really change, whose hosts tire of it, fail and forbid, up to this moment."""

import math
from datetime import datetime, timedelta
from random import Random

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, run_job

STEP = 10 * MINUTE
HOSTS, PAGES = 14, 40
SLOW, TIRED, DEAD = "news.harbour-post.test", "www.gazette-nord.test", "img.portal-8.test"
BUDGET = 6_000


class Simulated:
    def __init__(self, crawl: Crawl, url: str) -> None:
        self.crawl, self.url, self.rng = crawl, url, Random(5)
        self.rates: dict[str, float] = {}
        self.seen: dict[str, datetime] = {}
        self.is_cut_off = False  # the crawlers reach no host

    def begin(self, ago: timedelta) -> None:
        crawl = self.crawl
        crawl.now = crawl.value("select clock_timestamp()") - ago
        for name, value in {"budget": BUDGET, "max_ahead": "10 minutes", "discovery": 0.3}.items():
            crawl.value("select set_setting(%s, %s)", name, str(value))
        hosts = [SLOW, TIRED, DEAD, *(f"site-{i}.test" for i in range(HOSTS - 3))]
        urls = [f"http://{host}/{page}" for host in hosts for page in range(PAGES * (4 if host == SLOW else 1))]
        self.rates = {url: 2 * math.exp(self.rng.gauss(0, 1.2)) for url in urls}  # changes a day
        crawl.value("select set_host(%s, gap => '50 s')", SLOW)
        crawl.add(*urls)
        crawl.tick()

    def run(self, until: datetime, *, step: timedelta = STEP, crawlers: bool = True, jobs: bool = True) -> None:
        """Ten minutes at a time, or another step; the jobs every eight hours."""
        crawl = self.crawl
        steps = 0
        while crawl.now < until:
            if crawlers:
                pages = crawl.next(300, ahead=step, lease=3 * STEP)
                crawl.wait(min(step, max(until - crawl.now, SECOND)))
                crawl.report(*(self.fetched(page) for page in pages))
            else:
                crawl.wait(min(step, max(until - crawl.now, SECOND)))
            crawl.tick()
            steps += 1
            if jobs and steps % 48 == 6:
                run_job("rates", self.url)
                run_job("allocate", self.url)
            crawl.value("select take_vitals_at(%s)", crawl.now)

    def fetched(self, page: Row) -> Row:
        url, host, at = page["url"], page["host"], page["fetch_at"]
        result = {"page_id": page["page_id"], "lease_id": page["lease_id"], "status": 200}
        if host == DEAD or self.is_cut_off:
            return result | {"status": 0}
        if host == TIRED and self.rng.random() < 0.15:
            return result | {"status": 429, "retry_after": "1200"}
        if self.rng.random() < 0.01:
            return result | {"status": 404}
        before = self.seen.get(url)
        self.seen[url] = at
        if before:
            result["changed"] = self.rng.random() < -math.expm1(-self.rates[url] * ((at - before) / DAY))
        return result


def a_day(crawl: Crawl, url: str) -> Simulated:
    """The crawlers stood still for 50 minutes, seven hours ago."""
    crawl.connection.execute("set synchronous_commit = off")
    simulated = Simulated(crawl, url)
    simulated.begin(26 * HOUR)
    end = crawl.now + 26 * HOUR
    simulated.run(end - 7 * HOUR)
    simulated.run(end - 7 * HOUR + 50 * MINUTE, crawlers=False)
    simulated.run(end - 10 * MINUTE)
    simulated.run(end, step=15 * SECOND, jobs=False)
    return simulated
