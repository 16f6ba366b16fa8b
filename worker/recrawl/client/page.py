"""A page in hand: what to request, and how to say what came of it."""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Literal

from recrawl.client.answers import Headers, Result, request_headers, result_of

Kind = Literal["page", "robots", "sitemap", "aside"]
# The page, what to report (None = give it back), the body where the client reads it, whether it was settled before.
Settle = Callable[["Page", Result | None, bytes | str | None, bool], None]


class Page:
    """Request `url` with `request_headers` once, without following redirects; then report, or release.

    Some are the client's own errands, in the slot of a page: `kind` is then robots. They are requested and reported
    like any other. What `Client.aside` asked for has the kind aside: nothing of it goes to the database.
    """

    __slots__ = (
        "_settle", "attempt", "began", "content_hash", "etag", "fetch_at", "host", "is_settled", "kind",
        "last_modified", "lease_id", "lease_until", "meta", "page_id", "request_headers", "spent", "start_by", "url",
        "value",
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
        self.is_settled = False  # reported or released
        self.spent = False  # released, but requested all the same
        self.began = 0.0  # when it was yielded, by the monotonic clock
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
        links: Iterable[str] | None = None,
        due: datetime | Literal["infinity"] | None = None,
        **more: Any,
    ) -> bool:
        """What the web answered: its status (0 = nothing), headers, body as it was after decoding, and the links in it,
        also relative ones. `text` is what is left without markup, for a sketch; `due` is when you want the page next,
        where the schedule is yours. Anything else that report takes may be said too. From any thread; False, and
        nothing else, where the page was reported or released before.
        """
        result = result_of(self.url, status, headers, body, text, links if self.kind == "page" else None)
        if due is not None:
            result["due"] = due if isinstance(due, str) else due.isoformat()
        return self._end(result | more, None if self.kind == "page" else body)

    def decline(self) -> bool:
        """You will not request it, now or later: it comes no more until somebody asks for it. From any thread."""
        return self.report(0) if self.kind in ("robots", "aside") else self._end({"declined": True}, None)

    def release(self, *, spent: bool = False) -> bool:
        """Gives it back unfetched; spent: it was requested all the same, and its slot is used. From any thread."""
        if not self.is_settled:
            self.spent = spent
        return self._end(None, None)

    def _end(self, result: Result | None, body: bytes | str | None) -> bool:
        was_settled, self.is_settled = self.is_settled, True
        self._settle(self, result, body, was_settled)
        return not was_settled
