"""Turns an answer of the web into one result for the SQL function report. Headers and links may contain anything.

A link that is no text is left out: an HTML parser returns None for an `<a>` without `href`.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from itertools import islice
from typing import Any
from urllib.parse import urljoin, urlsplit

from recrawl.client import fingerprint

Headers = Mapping[str, str] | Mapping[bytes, bytes] | None
Result = dict[str, Any]
MOST_LINKS = 10_001  # of a page: one more than report takes, so that the answer of report says that links were left out
REDIRECTS = {301, 302, 303, 307, 308}


def request_headers(user_agent: str, etag: str | None, last_modified: datetime | None) -> dict[str, str]:
    """The headers of a request. A server can answer 304 to them if the page has not changed."""
    headers = {"User-Agent": user_agent}
    if etag and etag.isascii() and etag.isprintable():  # httpx, for example, cannot send other characters
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
    links: Iterable[object] | None = None,
) -> Result:
    """The validators, hash, links and redirect of an answer, under the keys of report."""
    named = plain(headers)
    result: Result = {"status": status}
    if etag := drop_unstorable(named.get("etag", "")):
        result["etag"] = etag
    if modified := date_of(named.get("last-modified")):
        result["last_modified"] = modified
    if status in (429, 503) and (wait := drop_unstorable(named.get("retry-after", ""))):
        result["retry_after"] = wait
    if status in REDIRECTS and "location" in named and (target := absolute(url, named["location"])):
        result["redirect_to"] = target
    if 200 <= status < 300:
        if body is not None:
            result["content_hash"] = fingerprint.xxh3(
                body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
            )
        if text is not None:
            result["sketch"] = fingerprint.sketch(text)
        if links is not None:
            texts = (text_of(link) for link in links if isinstance(link, str | bytes))
            result["links"] = list(islice(filter(None, (absolute(url, text) for text in texts)), MOST_LINKS))
    return result


def plain(headers: Headers) -> dict[str, str]:
    """Headers as text, by their names in small letters."""
    return {text_of(name).lower(): text_of(value).strip() for name, value in (headers.items() if headers else ())}


def text_of(value: object) -> str:
    """Decodes UTF-8, or Latin-1 if it is no UTF-8."""
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def drop_unstorable(text: str) -> str:
    """Removes the characters that JSON in Postgres cannot hold."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode()


def storable_url(url: str) -> str:
    """The URL as the database takes it: a host name that is not ASCII gets its ASCII form (xn--…)."""
    url = drop_unstorable(url)
    parts = re.match("([^/?#]*//)([^/?#]*)(.*)", url, re.DOTALL)
    if parts and not parts[2].isascii():
        with suppress(UnicodeError):  # it is no host name
            return parts[1] + parts[2].lower().encode("idna").decode() + parts[3]
    return url


def absolute(base: str, link: str) -> str | None:
    """The absolute URL of a link on a page. None if it is no URL of the web."""
    try:
        target = storable_url(urljoin(base, drop_unstorable(link).strip()))
        return target if urlsplit(target).scheme in ("http", "https") else None
    except ValueError:
        return None


def date_of(text: str | None) -> str | None:
    """The date of a header, in a form that Postgres reads. None if it is no date."""
    if not text:
        return None
    try:
        date = parsedate_to_datetime(text)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        return None
