"""robots.txt: where it is, what an answer to it means, what it allows (RFC 9309)."""

from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from protego import Protego

from recrawl.client.answers import REDIRECTS, Result, clean

LONGEST = 500 * 1024  # bytes; what comes after counts for nothing
MOST_REDIRECTS = 5


def site_of(url: str) -> str:
    """Scheme, host and port: each has its own robots.txt."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


def address(url: str) -> str:
    return f"{site_of(url)}/robots.txt"


class Passage(Enum):
    """Whether robots.txt allows a URL. Unknown: this process has no valid rules of its site."""

    ALLOWED = 1
    DENIED = 2
    UNKNOWN = 3


def allow_all(url: str) -> Passage:
    """The verdict of a client that does not obey robots.txt."""
    return Passage.ALLOWED


class Rules:
    """What the robots.txt of a site allows a crawler."""

    def __init__(self, text: str | None, user_agent: str) -> None:
        self._parsed = Protego.parse(text) if text else None
        self._agent = user_agent
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
class Answer:
    """What came of asking for a robots.txt: a text, where it is instead, or neither."""

    status: int
    text: str | None = None
    redirect_to: str | None = None


def answer_of(result: Result, body: bytes | str | None, redirects: int) -> Answer:
    """Of a redirect that leads nowhere, or of too many, nothing is known: as of a robots.txt that is not there."""
    status: int = result["status"]
    if status not in range(100, 1000):
        return Answer(0)
    if status in REDIRECTS and "redirect_to" in result and redirects < MOST_REDIRECTS:
        return Answer(status, redirect_to=result["redirect_to"])
    if 200 <= status < 300:
        text = body if isinstance(body, str) else (body or b"")[:LONGEST].decode("utf-8", "replace")
        return Answer(status, text=clean(text.removeprefix("\ufeff"))[:LONGEST])
    return Answer(404 if 100 <= status < 400 else status)
