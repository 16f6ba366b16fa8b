"""Patterns that would make every found URL expensive are refused before they are in force."""

import random
from string import ascii_letters

import psycopg
import pytest

from helpers import Crawl

# Milliseconds on any machine: the time grows with the third power of the URL's length.
SLOW = r"^(.+)(.+)(.+)\1\2\3$"
# Fast for most URLs. For the URLs of `pages` its time doubles every few characters: the longest would take years.
ENDLESS = r"(/[a-z0-9-]+)(/.*)*\1(/.*)*\1(/.*)*\1"


@pytest.fixture
def pages(crawl: Crawl) -> Crawl:
    crawl.add(*(f"http://a.test/{'ab-cd/' * 100}{n}" for n in range(30)))
    return crawl


@pytest.mark.parametrize("verb", ["exclude", "boost"])
@pytest.mark.parametrize("pattern", ["(x{1,200}){1,200}", SLOW, ENDLESS], ids=["large", "slow", "endless"])
def test_a_pattern_that_cannot_be_used_is_refused(pages: Crawl, verb: str, pattern: str) -> None:
    """The first is too large for PostgreSQL 18, and too slow in 15."""
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        pages.value(f"select {verb}({'%s, 2' if verb == 'boost' else '%s'})", pattern)
    says = error.value.diag.message_primary or ""
    assert says.startswith((f"{verb}: pattern is too slow, it takes", f"{verb}: pattern is too large for PostgreSQL"))
    assert pages.value("select count(*) from exclusion") == pages.value("select count(*) from boost") == 0


@pytest.mark.parametrize("verb", ["exclude", "boost"])
def test_a_pattern_is_as_long_as_an_index_takes(crawl: Crawl, verb: str) -> None:
    """The pattern is a comment of random letters. PostgreSQL cannot compress it, and it takes no time to match."""
    letters = "".join(random.Random(1).choices(ascii_letters, k=2596))
    call = f"select {verb}({'%s, 2' if verb == 'boost' else '%s'})"
    assert crawl.value(call, f"x(?#{letters[1:]})") == 0
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="at most 2,600 bytes, got 2,601: use several"):
        crawl.value(call, f"x(?#{letters})")


@pytest.mark.parametrize(
    "pattern",
    [
        r"\.(jpg|jpeg|png|gif|css|js|pdf|zip)(\?|$)",
        r"^(?!https?://(www\.)?example\.(com|org)/)",
        r"[?&](sid|sessionid|utm_[a-z]+)=",
        "|".join(f"site{n}\\.example/" for n in range(100)),
    ],
)
def test_a_pattern_that_people_use_is_taken(pages: Crawl, pattern: str) -> None:
    assert pages.value("select exclude(%s)", pattern) is not None
