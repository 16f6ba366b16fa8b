"""Adds sitemaps and their URLs to the crawl.

Sitemaps that a robots.txt lists are pages of the crawl: recrawl decides when they are fetched again. Their meta is
{"sitemap": the host whose robots.txt lists them}. The URLs that a sitemap lists become pages too, if they are on this
host or on the host of the sitemap: the robots.txt of example.com often redirects to www.example.com.
"""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from recrawl.client.answers import storable_url
from recrawl.client.database import Database
from recrawl.client.sitemaps import Entry, entries

MOST_SITEMAPS = 100  # of a robots.txt
AT_ONCE = 1000  # URLs of a call


async def add_sitemaps(database: Database, url: str, sitemaps: list[str]) -> None:
    """Adds the sitemaps that the robots.txt of this URL's site lists."""
    meta = {"sitemap": _host(url)}
    await database.add_pages([(storable_url(each), meta) for each in sitemaps[:MOST_SITEMAPS]])


async def take_sitemap(database: Database, url: str, meta: dict[str, Any], body: bytes | str) -> int:
    """Adds the URLs of the sitemap at `url` to the crawl. If a page is known, its `lastmod` is a hint that it changed.
    Returns the number of new pages."""
    host, is_of_index = meta["sitemap"], "of_index" in meta
    hosts = host, _host(url)

    def is_wanted(entry: Entry) -> bool:
        return not is_of_index if entry.is_sitemap else _host(entry.url) in hosts

    raw = body.encode() if isinstance(body, str) else body
    found = await asyncio.to_thread(lambda: list(filter(is_wanted, entries(raw))))
    # of_index: an index listed this sitemap. Then its entries are pages; sitemaps in it are left out.
    of_index = {"sitemap": host, "of_index": True}
    new = 0
    for start in range(0, len(found), AT_ONCE):
        part = found[start : start + AT_ONCE]
        rows = await database.add_pages([(storable_url(e.url), of_index if e.is_sitemap else None) for e in part])
        new += sum(row.code == "new" for row in rows)
        changed = {
            row.page_id: entry.changed_at
            for row, entry in zip(rows, part, strict=True)
            if row.code == "known" and entry.changed_at
        }
        if changed:
            await database.hint_change(list(changed), list(changed.values()))
    return new


def _host(url: str) -> str | None:
    try:
        return urlsplit(storable_url(url)).hostname
    except ValueError:
        return None
