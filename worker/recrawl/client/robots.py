"""robots.txt: the site that it belongs to, the meaning of an answer, and the URLs that it allows (RFC 9309)."""

import re
from dataclasses import dataclass
from enum import Enum
from urllib.parse import urlsplit

from protego import Protego

from recrawl.client.answers import REDIRECTS, Result, drop_unstorable

LONGEST = 500 * 1024  # bytes; the rest is ignored
MOST_REDIRECTS = 5
# A line that names the crawler of a group, in each form that Protego knows.
AGENT_LINE = re.compile(r"\s*user(?:-|\s*)agent\s*[:\s]([^#]*)", re.IGNORECASE)
OURS, OTHERS = "ours", "others"


def site_of(url: str) -> str:
    """Scheme, host and port. Each site has its own robots.txt."""
    parts = urlsplit(url)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}"


class Access(Enum):
    """Whether robots.txt allows a URL. Unknown: this process has no valid rules of its site."""

    ALLOWED = 1
    DENIED = 2
    UNKNOWN = 3


def product_token(user_agent: str) -> str:
    """The name of the crawler, which the groups of a robots.txt use. Browsers and crawlers that pretend to be one begin
    with Mozilla: then the name follows the last «compatible;», if there is one."""
    found = re.match(r"(?:Mozilla/.*compatible; *)?([^\s/;()]+)", user_agent)
    return found[1] if found else user_agent


def with_few_names(text: str, token: str) -> str:
    """The rules with the name OURS for this crawler, and OTHERS for every other one. Protego copies each rule of a
    group for each name: a text of 60 kB with thousands of names and rules took 5 seconds and 300 MB."""

    def renamed(line: str) -> str:
        if not (found := AGENT_LINE.match(line)):
            return line
        name = product_token(found[1].strip()).lower()
        return f"User-agent: {name if name == '*' else OURS if name.replace('*', '') == token.lower() else OTHERS}"

    return "\n".join(map(renamed, text.splitlines()))


def resolve_dots(path: str) -> str:
    """The path without its . and .. segments (RFC 3986, section 5.2.4)."""
    segments = re.sub("%2e", ".", path, flags=re.IGNORECASE).split("/")[1:]
    kept: list[str] = []
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    return "/" + "/".join(kept + [""] * (segments[-1:] in (["."], [".."])))


class Rules:
    """The rules of a site for this crawler."""

    def __init__(self, text: str | None, user_agent: str) -> None:
        text = (text or "").removeprefix("\ufeff")  # another program may have stored this mark
        self._parsed = Protego.parse(with_few_names(text, product_token(user_agent))) if text else None
        self.size = len(text)  # characters

    def allow(self, url: str) -> bool:
        # HTTP clients send the path without . and .., or servers read it so.
        url = re.sub("(//[^/?#]*)([^?#]*)", lambda found: found[1] + resolve_dots(found[2]), url, count=1)
        if self._parsed is None or urlsplit(url).path == "/robots.txt":
            return True
        return bool(self._parsed.can_fetch(url, OURS))

    @property
    def crawl_delay(self) -> float | None:
        return None if self._parsed is None else self._parsed.crawl_delay(OURS)

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
        return RobotsAnswer(status, text=drop_unstorable(text.removeprefix("\ufeff"))[:LONGEST])
    return RobotsAnswer(404 if 100 <= status < 400 else status)
