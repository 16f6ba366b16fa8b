"""The crawl in the tests of the client."""

import pytest

from crawler import GAP


@pytest.fixture
def crawl_settings() -> dict[str, str]:
    return {"default_gap": f"{GAP} s"}
