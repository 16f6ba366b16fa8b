"""Translates URLFrontier's messages into puts, and pages into URLFrontier's messages. No I/O."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from recrawl.intake.urls import clean, host_of_key
from recrawl.urlfrontier.urlfrontier_pb2 import KnownURLItem, StringList, URLInfo, URLItem

LONGEST_KEY = 255
LATEST = 7_258_118_400  # 2200: later than that is never
NOT_FETCHED = 0  # the status of a fetch that brought nothing
Metadata = Mapping[str, StringList]


class Put(NamedTuple):
    """One URL that a client sends. The fields after `host` are only of known URLs."""

    url: str
    meta: str | None  # JSON
    host: str | None = None  # the name of the host whose queue and gap the URL shares; None = its own
    is_known: bool = False
    due: str | None = None  # a time in SQL's syntax; None = recrawl decides
    status: int = 200
    content_hash: str | None = None


def put_of(item: URLItem, client_sets_dates: bool) -> Put | None:
    """None if the item can never be taken in. Without `client_sets_dates` its date is ignored, unless it is 0 or after
    2200."""
    if item.WhichOneof("item") != "known":
        return discovered(item.discovered.info)
    info, seconds = item.known.info, item.known.refetchable_from_date
    found = discovered(info)
    if found is None:
        return None
    is_done = seconds == 0 or seconds >= LATEST
    own_date = datetime.fromtimestamp(seconds, UTC).isoformat() if client_sets_dates and not is_done else None
    due = "infinity" if is_done else own_date
    signature = first(info.metadata, "signature")
    content_hash = signature and signature[:1000]
    # A known URL always replaces the stored metadata. Without metadata it empties them.
    return Put(found.url, found.meta or "{}", found.host, True, due, status_of(info.metadata), content_hash)


def discovered(info: URLInfo) -> Put | None:
    url = as_taken_in(info.url)
    if not url or "\0" in url or len(info.key) > LONGEST_KEY:
        return None
    metadata = {key: list(values.values) for key, values in info.metadata.items()}
    meta = json.dumps(metadata) if metadata else None
    if meta and "\\u0000" in meta and any("\0" in text for key in metadata for text in (key, *metadata[key])):
        return None
    return Put(url, meta, host_of_key(info.key))


def as_taken_in(url: str) -> str:
    """The URL in a spelling that SQL can normalise: SQL refuses a host that is not ASCII."""
    return url if url.isascii() else clean(url)


def status_of(metadata: Metadata) -> int:
    """The status of the fetch. StormCrawler sends only the metadata that it is configured to keep. So a fetch counts as
    successful unless its metadata name an error or a status from 400 to 599.

    301, 308 and 410 become other statuses: here only the client's own dates end a page.
    """
    code = first(metadata, "fetch.statusCode") or ""
    status = int(code) if code.isascii() and code.isdecimal() and len(code) == 3 else NOT_FETCHED
    if 400 <= status <= 599:
        return 404 if status == 410 else status
    if any(first(metadata, key) is not None for key in ("error.cause", "fetch.error.count")):
        return NOT_FETCHED
    return 304 if status == 304 else 200


def first(metadata: Metadata, key: str) -> str | None:
    # metadata[key] alone would add the key.
    return metadata[key].values[0] if key in metadata and metadata[key].values else None


def info_of(url: str, host: str, meta: Any, crawl: str) -> URLInfo:
    return URLInfo(url=url, key=host, metadata=metadata_of(meta), crawlID=crawl)


def metadata_of(meta: Any) -> dict[str, StringList]:
    """Metadata as the client put them. `meta` that another program wrote is turned into lists of strings."""
    if not isinstance(meta, dict):
        return {}
    return {
        key: StringList(values=[v if isinstance(v, str) else json.dumps(v) for v in values])
        for key, value in meta.items()
        for values in [value if isinstance(value, list) else [value]]
    }


def item_of(row: Any, crawl: str) -> URLItem:
    """A page for GetURLStatus and ListURLs. The date of a page that was never fetched is the time when it was found."""
    found = int(row.added_at.timestamp())
    # Rounded, because due times of the same second are spread within it.
    date = 0 if row.is_done else round(row.due_at.timestamp()) if row.due_at else found
    known = KnownURLItem(info=info_of(row.url, row.host, row.meta, crawl), refetchable_from_date=date)
    return URLItem(known=known, ID=row.url, creation_date=found)
