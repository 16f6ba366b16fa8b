"""Stores a request in a page's meta, and makes it again from there: in any process, even a month later."""

import copy
import json
from typing import Any

from scrapy import Request, Spider
from scrapy.utils.request import request_from_dict

Stored = dict[str, Any]
KEY = "scrapy"  # the key of the request in a page's meta; all other keys belong to the project

# Parts that belong to one request only, and not to the next request of the page.
PASSING = {"download_latency", "download_slot", "download_timeout_set", "redirect_ttl", "redirect_times"}
PASSING_HEADERS = {b"If-None-Match", b"If-Modified-Since"}
SECRET_HEADERS = {b"Authorization", b"Cookie", b"Proxy-Authorization"}  # the database is no place for them
WANTED = ("callback", "errback", "cb_kwargs", "flags", "dont_filter", "priority", "_class")


def is_of_the_web(request: Request) -> bool:
    """Whether the request needs a slot. Requests for files and data need none."""
    return request.url.startswith(("http:", "https:"))


def stored(request: Request, spider: Spider) -> Stored | None:
    """The request to store. None if it cannot be stored: it is more than a GET of a URL, or JSON cannot hold it."""
    if request.method != "GET" or request.body or request.cookies or SECRET_HEADERS & set(request.headers):
        return None
    try:
        known = request.to_dict(spider=spider)
        headers = {
            name.decode(): [value.decode() for value in values]
            for name, values in request.headers.items()
            if name not in PASSING_HEADERS
        }
    except ValueError:
        return None  # the callback is no method of the spider, or a header is not in UTF-8
    kept = {name: known[name] for name in WANTED if known.get(name)}
    if meta := {name: value for name, value in request.meta.items() if name not in PASSING}:
        kept["meta"] = meta
    if headers:
        kept["headers"] = headers
    return kept if _survives(kept) else None


def _survives(kept: Stored) -> bool:
    """Whether JSON in Postgres gives back exactly the same. A tuple, for example, would come back as a list."""
    try:
        text = json.dumps(kept, ensure_ascii=False, allow_nan=False)
        text.encode()
        return bool("\\u0000" not in text and json.loads(text) == kept)
    except (TypeError, ValueError, RecursionError):
        return False


def restored(url: str, meta: object, spider: Spider) -> Request:
    """The request of a page. Raises ValueError if the spider no longer has a method or class that it names."""
    kept: Stored = copy.deepcopy(stored_in(meta) or {})  # a callback may change its request, but not the stored one
    try:
        return request_from_dict(kept | {"url": url}, spider=spider)
    except (TypeError, AttributeError, NameError, ImportError) as error:
        raise ValueError(f"its request cannot be made again: {error}") from None


def stored_in(meta: object) -> Stored | None:
    found = meta.get(KEY) if isinstance(meta, dict) else None
    return found if isinstance(found, dict) else None


def own_part(meta: object) -> dict[str, Any]:
    """The part of a page's meta that belongs to the project."""
    return {name: value for name, value in meta.items() if name != KEY} if isinstance(meta, dict) else {}
