"""robots.txt as RFC 9309 has it: what an answer means, and what rules allow."""

import asyncio
import tracemalloc
from datetime import UTC, datetime

import pytest

from recrawl.client import robots_cache
from recrawl.client.clock import Clock
from recrawl.client.database import Database
from recrawl.client.page import Page, request_row, robots_request
from recrawl.client.robots import Access, Rules, answer_of, site_of

AGENT = "shop-bot/1.0 (+http://shop.example/bot)"


def allowed(text: str | None, path: str, agent: str = AGENT) -> bool:
    return Rules(text, agent).allow(f"http://a.example{path}")


def test_each_scheme_and_port_has_its_own() -> None:
    urls = ["http://a.example/x", "https://a.example/x", "http://a.example:81/x", "HTTP://A.example/y"]
    assert len({site_of(url) for url in urls}) == 3
    slot = datetime.now(UTC), datetime.now(UTC)
    row = request_row("https://a.example:8443/deep/page?q", "a.example", slot)
    request = robots_request(Page(row, AGENT, "page", lambda *_: True))
    assert (request.kind, request.url) == ("robots", "https://a.example:8443/robots.txt")


def test_the_most_special_rule_for_the_most_special_agent_counts() -> None:
    ours = "User-agent: shop-bot\nDisallow: /private\nAllow: /private/open\nDisallow: /*.pdf$"
    text = f"User-agent: *\nDisallow: /\n\n{ours}"
    assert allowed(text, "/") and allowed(text, "/private/open/x") and allowed(text, "/x.pdf?y")
    assert not allowed(text, "/private/x") and not allowed(text, "/x.pdf")
    assert not allowed(text, "/", "other") and not allowed(text, "/", "workshop-bottle")


HEADERS = [
    "shop-bot",
    AGENT,
    "Shop-Bot/1.0 (compatible; +http://shop.example/bot)",
    f"Mozilla/5.0 (compatible; {AGENT})",
    f"Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; {AGENT}) Chrome/100.0.0.0 Safari/537.36",
    f"Mozilla/5.0 (Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.0.0 (compatible; {AGENT})",
]


@pytest.mark.parametrize("agent", HEADERS)
def test_the_name_of_the_crawler_counts_and_no_other_word_of_its_header(agent: str) -> None:
    text = "User-agent: {}\nDisallow: /\n\nUser-agent: *\nAllow: /"
    assert not allowed(text.format("shop-bot"), "/", agent)
    for word in ("Mozilla", "compatible", "http", "shop.example", "1.0", "shop", "bot", "shop-bot-news", "KHTML"):
        assert allowed(text.format(word), "/", agent), word


@pytest.mark.parametrize("line", ["shop-bot/1.0", "SHOP-BOT/2", "shop-bot 1.0 # ours", "shop*-bot*", *HEADERS])
def test_a_group_may_name_the_crawler_with_its_version(line: str) -> None:
    assert not allowed(f"User-agent: {line}\nDisallow: /", "/")


def test_a_path_means_what_it_means_without_its_dots() -> None:
    """HTTP clients send it without them: a link to /../search led to /search, which was forbidden."""
    text = "User-agent: *\nDisallow: /search\nDisallow: /a//b\nDisallow: /*/$\nDisallow: /*?$\nDisallow: /*..x"
    for path in ("/../search?q=1", "/x/%2E%2e/search", "/./search", "/x/y/../../search/../search/z", "/../../search#x"):
        assert not allowed(text, path), path
    for path in ("/a//b", "/a//x/../b", "/x/y/..", "/x/.", "/x?", "/a..x"):
        assert not allowed(text, path), path
    for path in ("/search/../x", "/search/..?q", "/x?/../search", "/x#/../search", "/a//../b", "//search", "/.search"):
        assert allowed(text, path), path
    assert allowed("User-agent: *\nDisallow: /x", "") and not allowed("User-agent: *\nDisallow: /", "")


def test_robots_txt_itself_is_always_allowed() -> None:
    assert allowed("User-agent: *\nDisallow: /", "/robots.txt")
    assert not allowed("User-agent: *\nDisallow: /", "/robots.txt.html")


@pytest.mark.parametrize("text", [None, "", "\ufeff", "<html>not found</html>", "Disallow: /", "\r\r\n\n", "a:" * 1000])
def test_what_has_no_rules_allows_everything(text: str | None) -> None:
    rules = Rules(text, AGENT)
    assert rules.allow("http://a.example/x") and rules.crawl_delay is None and rules.sitemaps == []


def test_a_byte_order_mark_other_line_ends_and_capitals_do_not_matter() -> None:
    answer = answer_of({"status": 200}, b"\xef\xbb\xbfUSER-AGENT: Shop-Bot\rDISALLOW: /x\rcrawl-DELAY: 2.5", 0)
    for text in (answer.text, "\ufeff" + str(answer.text)):  # the second one was stored by another program
        rules = Rules(text, AGENT)
        assert not rules.allow("http://a.example/x") and rules.crawl_delay == 2.5


def test_sitemaps_belong_to_no_agent() -> None:
    text = "User-agent: other\nSitemap: http://a.example/1.xml\nDisallow: /\nSitemap: http://b.example/2.xml"
    assert Rules(text, AGENT).sitemaps == ["http://a.example/1.xml", "http://b.example/2.xml"]


@pytest.mark.parametrize("delay", ["x", "-1", "nan", "inf", "1e999", ""])
def test_a_crawl_delay_that_is_none_is_none(delay: str) -> None:
    found = Rules(f"User-agent: *\nCrawl-delay: {delay}", AGENT).crawl_delay
    assert found is None or 0 <= found < 1e9


def test_after_500_kib_nothing_counts() -> None:
    body = b"User-agent: *\nDisallow: /first\n" + b"#" * 500 * 1024 + b"\nDisallow: /last"
    rules = Rules(answer_of({"status": 200}, body, 0).text, AGENT)
    assert not rules.allow("http://a.example/first") and rules.allow("http://a.example/last")


def test_rules_made_to_be_slow_are_not() -> None:
    text = "User-agent: *\n" + f"Disallow: /{'*a' * 200}*b$\n" * 100
    assert allowed(text, "/" + "a" * 2000)


def test_many_crawlers_and_rules_in_one_group_do_not_fill_the_memory() -> None:
    """Each rule was kept for each crawler, 250,000 times."""
    forms = ["User-agent: a", "user-agent\tb", "USERAGENT:c", " User Agent : d*", "User   agent e"]
    names = [f"{forms[n % 5]}{n} # x" for n in range(500)]
    text = "\r".join([*names, "User-agent: shop-bot", *(f"Disallow: /{n}." for n in range(500))])
    tracemalloc.start()
    rules = Rules(text, AGENT)
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
    assert not rules.allow("http://a.example/499.") and rules.allow("http://a.example/500.")
    assert allowed(text, "/499.", "e"), "the other crawlers are others"


@pytest.mark.parametrize("status", [0, 429, 500, 503, 404, 403])
def test_a_failure_stays_what_it_is(status: int) -> None:
    answer = answer_of({"status": status}, b"User-agent: *\nDisallow: /", 0)
    assert (answer.status, answer.text, answer.redirect_to) == (status, None, None)


def test_redirects_are_followed_five_times_then_there_is_none() -> None:
    result = {"status": 302, "redirect_to": "http://b.example/robots.txt"}
    for redirects in range(5):
        assert answer_of(result, b"", redirects).redirect_to == "http://b.example/robots.txt"
    assert answer_of(result, b"", 5).status == 404
    assert answer_of({"status": 302}, b"", 0).status == 404, "it leads nowhere"
    assert answer_of({"status": 50}, b"", 0).status == answer_of({"status": 1000}, b"", 0).status == 0, "no answer"


def test_an_answer_whose_body_was_not_reported_has_no_rules() -> None:
    """It counted as an empty robots.txt, which allows everything."""
    assert answer_of({"status": 200}, None, 0).status == 0
    assert answer_of({"status": 200}, b"", 0).text == ""


def test_a_process_keeps_the_rules_of_the_last_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    deny = "User-agent: *\nDisallow: /"
    monkeypatch.setattr(robots_cache, "MOST_SITES", 3)
    monkeypatch.setattr(robots_cache, "MOST_TEXT", 4 * len(deny))
    cache = robots_cache.RobotsCache(Database("", Clock()), AGENT, obeys=True)

    def known() -> str:
        return "".join(site for site in "abcde" if cache.access_to(f"http://{site}/x") is Access.DENIED)

    async def store() -> None:
        for site in "aaaaaabc":  # rules that are read again count once
            await cache.store_rules(f"http://{site}/", deny, 60)
        assert known() == "abc"
        await cache.store_rules("http://d/", deny, 60)
        assert known() == "bcd"
        await cache.store_rules("http://e/", f"{deny}#", 60)
        assert known() == "cde"
        await cache.store_rules("http://d/", 2 * f"{deny}\n", 60)
        assert known() == "de", "too much text: the oldest is forgotten"
        await cache.store_rules("http://e/", deny, -1)
        assert known() == "d", "its time is over"
        await cache.store_rules("http://a/", 5 * f"{deny}\n", 60)
        assert known() == "a", "a page waits for these, and would ask for them again and again"

    asyncio.run(store())
