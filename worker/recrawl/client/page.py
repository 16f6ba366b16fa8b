"""A page in hand, as a visit sees it: what to request, and how to say what the web answered."""

from collections.abc import Callable, Iterable
from datetime import datetime
from types import SimpleNamespace
from typing import Any, Literal

from recrawl.client.answers import Headers, Result, request_headers, result_of
from recrawl.client.robots import site_of

Kind = Literal["page", "robots", "sitemap", "extra"]
# Settles a page. Returns False if it was settled before. Arguments: the page, the result (None = give the page back),
# the body (if the client reads it), and whether a request used the slot of a page that is given back.
Settle = Callable[["Page", Result | None, bytes | str | None, bool], bool]


class Page:
    """Request `url` with `request_headers` once, without following redirects. Then report the answer, or release.

    Some pages in hand are requests of the client, and no pages of the crawl. Request and report them in the same way.
    Their kind is `robots` for a robots.txt, and `extra` for a request that you asked for with `Client.extra_request`. A
    page of kind `sitemap` is a page of the crawl, but the client needs its body, as it needs the body of a robots.txt.
    """

    __slots__ = (
        "_settle", "attempt", "began", "content_hash", "etag", "fetch_at", "host", "is_settled", "kind",
        "last_modified", "lease_id", "lease_until", "meta", "page_id", "request_headers", "slot_used", "start_by",
        "url", "value",
    )  # fmt: skip

    def __init__(self, row: Any, user_agent: str, kind: Kind, settle: Settle) -> None:
        self.page_id: int = row.page_id
        self.url: str = row.url
        self.host: str = row.host
        self.fetch_at: datetime = row.fetch_at
        self.start_by: datetime = row.start_by
        self.lease_id: int = row.lease_id
        self.lease_until: datetime = row.lease_until
        self.attempt: int = row.attempt
        self.value: float = row.value
        self.etag: str | None = row.etag
        self.last_modified: datetime | None = row.last_modified
        self.content_hash: str | None = row.content_hash
        self.meta: Any = row.meta
        self.kind: Kind = kind
        self.request_headers = request_headers(user_agent, self.etag, self.last_modified)
        self.is_settled = False  # its end is decided: reported, released, declined, lost, denied, or missed its slot
        self.slot_used = False  # it was released, but a request used its slot, or may have used it
        self.began = 0.0  # the monotonic time when it was yielded or its request began; 0 = not yet
        self._settle = settle

    def __repr__(self) -> str:
        return f"<{self.kind} {self.url}>"

    def report(
        self,
        status: int,
        headers: Headers = None,
        *,
        body: bytes | str | None = None,
        text: str | None = None,
        links: Iterable[str | None] | None = None,
        due: datetime | Literal["infinity"] | None = None,
        **more: Any,
    ) -> bool:
        """Reports the answer of the web. Status 0 means that there was no answer.

        `body` is the decoded content. `text` is the content without markup, for a sketch. `links` may be relative.
        A link that is None is left out. `due` is the time of the next fetch, if you plan the fetches of this page
        yourself. Every other key of the SQL function report is an argument too. You may call this from any thread. It
        returns False and does nothing if the page was settled before.
        """
        result = result_of(self.url, status, headers, body, text, links if self.kind == "page" else None)
        if due is not None:
            result["due"] = due if isinstance(due, str) else due.isoformat()
        return self._settle(self, result | more, None if self.kind == "page" else body, False)

    def decline(self) -> bool:
        """Says that you will never request this page. It is not handed out again until somebody calls fetch_now or
        set_interval, or adds it again with a due time. You may call this from any thread."""
        if is_request(self):
            return self.report(0)
        return self._settle(self, {"declined": True}, None, False)

    def release(self, *, slot_used: bool = False) -> bool:
        """Releases the page: another crawler may get it. `slot_used` says that a request to its host was sent in its
        slot, so the page does not count as missed. You may call this from any thread."""
        return self._settle(self, None, None, slot_used)


def is_request(page: Page) -> bool:
    """Whether it is a request of the client, and no page of the crawl: the database knows nothing of it."""
    return page.kind in ("robots", "extra")


def request_row(url: str, host: str, slot: tuple[datetime, datetime], meta: object = None) -> Any:
    """A request of the client, in the form of a row of next_pages. page_id and lease_id are 0: no lease."""
    return SimpleNamespace(
        page_id=0, url=url, host=host, fetch_at=slot[0], start_by=slot[1], lease_id=0, lease_until=slot[1],
        attempt=1, value=1.0, etag=None, last_modified=None, content_hash=None, meta=meta,
    )  # fmt: skip


def robots_request(page: Page) -> Page:
    """The request of the robots.txt that a page needs. It uses the slot of this page."""
    row = request_row(f"{site_of(page.url)}/robots.txt", page.host, (page.fetch_at, page.start_by))
    return Page(row, page.request_headers["User-Agent"], "robots", page._settle)
