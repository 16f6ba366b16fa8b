"""robots.txt: its address, the meaning of an answer, and the URLs that it allows (RFC 9309)."""

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from protego import Protego

from recrawl.client.answers import REDIRECTS, Result, storable

LONGEST = 500 * 1024  # bytes; the rest is ignored
MOST_REDIRECTS = 5


def site_of(url: str) -> str:
    """Scheme, host and port. Each site has its own robots.txt."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def address(url: str) -> str:
    return f"{site_of(url)}/robots.txt"


class Access(Enum):
    """Whether robots.txt allows a URL. Unknown: this process has no valid rules of its site."""

    ALLOWED = 1
    DENIED = 2
    UNKNOWN = 3


def product_token(user_agent: str) -> str:
    """The name of the crawler, which the groups of a robots.txt use. Browsers and crawlers that pretend to be one begin
    with Mozilla: then the name follows in «(compatible; …»."""
    found = re.match(r"(?:Mozilla/\S+ \(compatible; *)?([^\s/;()]+)", user_agent)
    return found[1] if found else user_agent


class Rules:
    """The rules of a site for this crawler."""

    def __init__(self, text: str | None, user_agent: str) -> None:
        self._parsed = Protego.parse(text) if text else None
        self._agent = product_token(user_agent)
        self.size = len(text or "")  # characters

    def allow(self, url: str) -> bool:
        parts = urlsplit(url)
        if self._parsed is None or parts.path == "/robots.txt":
            return True
        return bool(self._parsed.can_fetch(url, self._agent))

    @property
    def crawl_delay(self) -> float | None:
        return None if self._parsed is None else self._parsed.crawl_delay(self._agent)

    @property
    def sitemaps(self) -> list[str]:
        return [] if self._parsed is None else list(self._parsed.sitemaps)


@dataclass(frozen=True)
class RobotsAnswer:
    """The answer to a request of robots.txt: its text, the target of a redirect, or only a status."""

    status: int
    text: str | None = None
    redirect_to: str | None = None


def answer_of(result: Result, body: bytes | str | None, redirects: int) -> RobotsAnswer:
    """Reads the answer to a request for robots.txt: a text, a redirect, or only a status. A redirect without a target,
    or one redirect too many, counts as a robots.txt that does not exist."""
    status: int = result["status"]
    if status not in range(100, 1000):
        return RobotsAnswer(0)  # no answer
    if status in REDIRECTS and "redirect_to" in result and redirects < MOST_REDIRECTS:
        return RobotsAnswer(status, redirect_to=result["redirect_to"])
    if 200 <= status < 300:
        if body is None:
            return RobotsAnswer(0)  # the visit did not say what it contains
        text = body if isinstance(body, str) else body[:LONGEST].decode("utf-8", "replace")
        return RobotsAnswer(status, text=storable(text.removeprefix("\ufeff"))[:LONGEST])
    return RobotsAnswer(404 if 100 <= status < 400 else status)
