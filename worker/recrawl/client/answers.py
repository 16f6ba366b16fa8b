"""What an answer of the web becomes: an element of report. Pure, and tolerant of whatever servers say."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from itertools import islice
from typing import Any
from urllib.parse import urljoin, urlsplit

from recrawl.client import fingerprint

Headers = Mapping[str, str] | Mapping[bytes, bytes] | None
Result = dict[str, Any]
MOST_LINKS = 10_001  # of a page: one more than report takes, so that it says so
REDIRECTS = {301, 302, 303, 307, 308}


def request_headers(user_agent: str, etag: str | None, last_modified: datetime | None) -> dict[str, str]:
    """What to send with a request, so that an unchanged page is answered with 304."""
    headers = {"User-Agent": user_agent}
    if etag:
        headers["If-None-Match"] = etag
    if last_modified:
        headers["If-Modified-Since"] = format_datetime(last_modified.astimezone(UTC), usegmt=True)
    return headers


def result_of(
    url: str,
    status: int,
    headers: Headers = None,
    body: bytes | str | None = None,
    text: str | None = None,
    links: Iterable[str] | None = None,
) -> Result:
    """Validators, hash, links and redirect of an answer, as report wants them."""
    said = plain(headers)
    result: Result = {"status": status}
    if etag := clean(said.get("etag", "")):
        result["etag"] = etag
    if modified := date_of(said.get("last-modified")):
        result["last_modified"] = modified
    if status in (429, 503) and (wait := clean(said.get("retry-after", ""))):
        result["retry_after"] = wait
    if status in REDIRECTS and "location" in said and (target := absolute(url, said["location"])):
        result["redirect_to"] = target
    if 200 <= status < 300:
        if body is not None:
            result["content_hash"] = fingerprint.xxh3(body.encode() if isinstance(body, str) else body)
        if text is not None:
            result["sketch"] = fingerprint.sketch(text)
        if links is not None:
            targets = (target for link in links if (target := absolute(url, link)))
            result["links"] = list(islice(targets, MOST_LINKS))
    return result


def plain(headers: Headers) -> dict[str, str]:
    """Headers by their names in small letters, whatever a library keeps them in."""
    return {text_of(name).lower(): text_of(value).strip() for name, value in (headers.items() if headers else ())}


def text_of(value: object) -> str:
    """Servers say what they say in UTF-8, mostly."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def clean(said: str) -> str:
    """Without what JSON in Postgres cannot hold."""
    return said.replace("\0", "").encode("utf-8", "ignore").decode()


def absolute(base: str, link: str) -> str | None:
    """The URL that a link on a page means; None for one that is no page's."""
    try:
        target = clean(urljoin(base, clean(link).strip()))
        return target if urlsplit(target).scheme in ("http", "https") else None
    except ValueError:
        return None


def date_of(said: str | None) -> str | None:
    """A date as servers write it, in a form that Postgres reads; None where nobody can."""
    if not said:
        return None
    try:
        date = parsedate_to_datetime(said)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
