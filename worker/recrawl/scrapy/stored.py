"""A request as a page's meta, and back: what must be known to make it again, by whatever process, in a month."""

import json
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.request import request_from_dict

Stored = dict[str, Any]
KEY = "scrapy"  # where it stands in a page's meta; what else is there is the project's

# What goes with one request only, and not with the next one of its page.
PASSING = {"download_latency", "download_slot", "download_timeout_set", "redirect_ttl", "redirect_times"}
PASSING_HEADERS = {b"If-None-Match", b"If-Modified-Since"}
SECRET_HEADERS = {b"Authorization", b"Cookie", b"Proxy-Authorization"}  # the database is no place for them
WANTED = ("callback", "errback", "cb_kwargs", "flags", "dont_filter", "priority", "_class")


def is_of_the_web(request: Request) -> bool:
    """Files and data need no slot."""
    return request.url.startswith(("http:", "https:"))


def stored(request: Request, spider: Spider) -> Stored | None:
    """None where it cannot be kept: it is more than a URL to get, or holds what JSON does not."""
    if request.method != "GET" or request.body or request.cookies or SECRET_HEADERS & set(request.headers):
        return None
    try:
        known = request.to_dict(spider=spider)
    except ValueError:
        return None  # a callback that is no method of the spider
    kept = {name: known[name] for name in WANTED if known.get(name)}
    if meta := {name: value for name, value in request.meta.items() if name not in PASSING}:
        kept["meta"] = meta
    headers = [(name, values) for name, values in request.headers.items() if name not in PASSING_HEADERS]
    if headers:
        kept["headers"] = {name.decode("latin-1"): [v.decode("latin-1") for v in values] for name, values in headers}
    return kept if _survives(kept) else None


def _survives(kept: Stored) -> bool:
    """JSON in Postgres gives back just this: tuples, say, would come back as lists."""
    try:
        text = json.dumps(kept, ensure_ascii=False, allow_nan=False)
        text.encode()
        return bool("\\u0000" not in text and json.loads(text) == kept)
    except (TypeError, ValueError, RecursionError):
        return False


def restored(url: str, meta: object, spider: Spider) -> Request:
    """The request of a page; ValueError where the spider no longer has what it names."""
    kept: Stored = stored_in(meta) or {}
    try:
        return request_from_dict(kept | {"url": url, "meta": dict(kept.get("meta", {}))}, spider=spider)
    except (TypeError, AttributeError, NameError, ImportError) as error:
        raise ValueError(f"its request cannot be made again: {error}") from None


def stored_in(meta: object) -> Stored | None:
    found = meta.get(KEY) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else None


def own_part(meta: object) -> dict[str, Any]:
    """What is the project's in a page's meta."""
    return {name: value for name, value in meta.items() if name != KEY} if isinstance(meta, dict) else {}
