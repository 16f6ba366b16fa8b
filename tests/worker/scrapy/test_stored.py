"""A request comes back from the database as it was, or it is not stored."""

import math
from typing import Any

import pytest
from scrapy import Request, Spider

from recrawl.scrapy.stored import restored, stored


class Shop(Spider):
    name = "shop"

    def read(self, response: object, **_: object) -> None: ...


SPIDER = Shop()
URL = "http://a.example/"


def test_what_json_can_hold_comes_back() -> None:
    held = {"texts": ["ü", "\N{SNOWMAN}", r"\n"], "numbers": [1, 2.5], "others": [None, True, {}]}
    asked = Request(URL, SPIDER.read, headers={"X": "é"}, meta=held, cb_kwargs=held, priority=3)
    again = restored(URL, {"scrapy": stored(asked, SPIDER)}, SPIDER)
    assert again.to_dict(spider=SPIDER) == asked.to_dict(spider=SPIDER)


@pytest.mark.parametrize(
    "value",
    [(1, 2), {1: 2}, {1}, object(), math.inf, math.nan, "\0", "\ud800"],
    ids=["tuple", "number as key", "set", "object", "infinity", "NaN", "NUL", "surrogate"],
)
def test_what_would_come_back_as_something_else_is_not_stored(value: Any) -> None:
    """JSON in Postgres changes some of these values and refuses the others. A refusal would lose the request."""
    assert stored(Request(URL, meta={"a": value}), SPIDER) is None
    assert stored(Request(URL, cb_kwargs={"a": value}), SPIDER) is None


@pytest.mark.parametrize(
    "more",
    [
        {"method": "POST"}, {"body": "a=b"}, {"cookies": {"a": "b"}}, {"headers": {"authorization": "me"}},
        {"headers": {"Cookie": "a=b"}}, {"headers": {"X": b"\xe9"}}, {"callback": print},
    ],
    ids=str,
)  # fmt: skip
def test_more_than_a_get_of_a_url_is_not_stored(more: dict[str, Any]) -> None:
    assert stored(Request(URL, **more), SPIDER) is None
