"""The rules of robots.txt that this process knows. The database has the rules that all processes have found."""

import asyncio
import time

from recrawl.client.database import Database
from recrawl.client.robots import Access, Rules, site_of

ABSENT = 30.0  # seconds until a site whose rules the database does not have is looked up again
MOST_SITES = 10_000  # in memory; other sites are looked up again
MOST_TEXT = 20_000_000  # characters of all rules; parsed they take about 300 MB. The oldest are forgotten first
LONG_TEXT = 20_000  # characters; a longer text takes milliseconds to parse, so a thread does it


class RobotsCache:
    def __init__(self, database: Database, user_agent: str, obeys: bool) -> None:
        """`obeys`: whether the crawler obeys robots.txt. If not, every URL is allowed, and nothing is looked up."""
        self._database = database
        self._agent = user_agent
        self._obeys = obeys
        self._rules: dict[str, tuple[Rules, float]] = {}  # by site, each with the monotonic time when they expire
        self._size = 0  # characters of all rules
        self._absent: dict[str, float] = {}  # by site: the monotonic time when it may be looked up again

    def access_to(self, url: str) -> Access:
        if not self._obeys:
            return Access.ALLOWED
        rules, good_until = self._rules.get(site_of(url), (None, 0.0))
        if rules is None or good_until < time.monotonic():
            return Access.UNKNOWN
        return Access.ALLOWED if rules.allow(url) else Access.DENIED

    async def look_up(self, urls: list[str]) -> None:
        """Reads the rules of the sites of these URLs, if this process does not know them and the database does."""
        now = time.monotonic()
        self._absent = {site: until for site, until in self._absent.items() if until > now}
        unknown = {site_of(url): url for url in urls if self.access_to(url) is Access.UNKNOWN}
        wanted = [url for site, url in unknown.items() if site not in self._absent]
        if not wanted:
            return
        self._absent |= dict.fromkeys(map(site_of, wanted), now + ABSENT)
        for row in await self._database.robots(wanted):
            await self.store_rules(wanted[row.ord - 1], row.rules, row.good_for)

    async def store_rules(self, url: str, text: str | None, good_for: float) -> Rules:
        rules = await self.rules_of(text)
        self._forget(site_of(url))
        self._rules[site_of(url)] = rules, time.monotonic() + good_for
        self._size += rules.size
        self._absent.pop(site_of(url), None)
        # The oldest rules go. The new ones stay, even if they are longer than MOST_TEXT: a page waits for them.
        while len(self._rules) > 1 and (len(self._rules) > MOST_SITES or self._size > MOST_TEXT):
            self._forget(next(iter(self._rules)))
        return rules

    def _forget(self, site: str) -> None:
        if found := self._rules.pop(site, None):
            self._size -= found[0].size

    async def rules_of(self, text: str | None) -> Rules:
        if text and len(text) > LONG_TEXT:
            return await asyncio.to_thread(Rules, text, self._agent)
        return Rules(text, self._agent)
