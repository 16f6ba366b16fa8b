"""Other needs of a client: a robots.txt for all crawlers, slots without a page, and slots that stay spent."""

from datetime import timedelta

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes


def robots(crawl: Crawl, *urls: str) -> list[Row]:
    return crawl.rows("select * from robots_at(%s, %s)", crawl.now, list(urls))


def set_robots(
    crawl: Crawl, url: str, status: int, rules: str | None = None, crawl_delay: float | None = None,
    retry_after: str | None = None,
) -> bool:  # fmt: skip
    return bool(
        crawl.value(
            "select set_robots_at(%s, %s, %s, %s, %s, %s)", crawl.now, url, status, rules, crawl_delay, retry_after
        )
    )


def take_slot(crawl: Crawl, host: str, ahead: str = "10 s", notice: str = "0") -> list[Row]:
    return crawl.rows("select * from take_slot_at(%s, %s, %s, %s)", crawl.now, host, ahead, notice)


# -- robots.txt --


def test_the_rules_of_a_site_are_known_to_whoever_asks_for_a_url_of_it(crawl: Crawl) -> None:
    assert set_robots(crawl, "https://example.com/robots.txt", 200, "User-agent: *\nDisallow: /no")
    found = robots(crawl, "http://example.com/", "https://example.org/", "HTTPS://Example.com:443/deep?x#y", "nonsense")
    assert [(row["ord"], row["site"], row["rules"]) for row in found] == [
        (3, "https://example.com", "User-agent: *\nDisallow: /no")
    ]
    assert found[0]["good_for"] == DAY


def test_ports_and_schemes_are_sites_of_their_own(crawl: Crawl) -> None:
    for n, site in enumerate(["http://a.example", "https://a.example", "http://a.example:81"]):
        set_robots(crawl, f"{site}/", 200, f"# {n}")
    found = robots(crawl, "http://a.example/x", "https://a.example/x", "http://a.example:81/x")
    assert [row["rules"] for row in found] == ["# 0", "# 1", "# 2"]


def test_rules_that_were_stored_while_the_clock_was_ahead_are_fetched_again(crawl: Crawl) -> None:
    now = crawl.now
    crawl.wait(365 * DAY)
    set_robots(crawl, "http://a.test/", 200, "x")
    crawl.now = now
    assert robots(crawl, "http://a.test/")[0]["good_for"] == 0 * DAY
    set_robots(crawl, "http://a.test/", 503)
    assert robots(crawl, "http://a.test/")[0]["good_for"] <= DAY


def test_after_a_day_rules_are_known_but_no_longer_good(crawl: Crawl) -> None:
    set_robots(crawl, "http://a.example/", 200, "# rules")
    crawl.wait(2 * DAY)
    (row,) = robots(crawl, "http://a.example/")
    assert row["rules"] == "# rules" and not row["good_for"]


@pytest.mark.parametrize("status", [401, 403, 404, 410, 451])
def test_4xx_allows_everything(crawl: Crawl, status: int) -> None:
    set_robots(crawl, "http://a.example/", 200, "User-agent: *\nDisallow: /")
    assert set_robots(crawl, "http://a.example/", status, "<html>not found</html>")
    (row,) = robots(crawl, "http://a.example/")
    assert (row["status"], row["rules"]) == (status, None)


@pytest.mark.parametrize("status", [0, -3, 429, 500, 503])
def test_what_cannot_be_had_is_not_known_but_what_was_known_counts_for_another_hour(crawl: Crawl, status: int) -> None:
    assert not set_robots(crawl, "http://a.example/", status)
    assert robots(crawl, "http://a.example/") == []
    set_robots(crawl, "http://a.example/", 200, "# rules")
    crawl.wait(2 * DAY)
    assert set_robots(crawl, "http://a.example/", status)
    (row,) = robots(crawl, "http://a.example/")
    assert (row["status"], row["rules"], row["good_for"]) == (status, "# rules", HOUR)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_host_that_refuses_its_robots_txt_is_left_alone_ever_longer_whatever_it_asks_for(
    crawl: Crawl, status: int, is_known: bool
) -> None:
    if is_known:
        set_robots(crawl, "http://a.example/", 200, "# rules")
        crawl.wait(2 * DAY)
    for n in range(5):
        assert set_robots(crawl, "http://a.example/", status, retry_after="1") is is_known
        held = crawl.host("a.example")
        assert held["blocked_reason"] == f"its robots.txt answered {status}"
        assert 0.85 * MINUTE < (held["blocked_until"] - crawl.now) / 2**n < 1.15 * MINUTE
        set_robots(crawl, "http://a.example/", status)
        assert crawl.host("a.example") == held, "another crawler asked in the same time"
        crawl.wait(held["blocked_until"] - crawl.now + SECOND)
    set_robots(crawl, "http://a.example/", status, retry_after="40000")
    assert crawl.host("a.example")["blocked_until"] == crawl.now + 40000 * SECOND
    set_robots(crawl, "http://b.example/", 500, retry_after="40000")
    assert crawl.host("b.example")["blocked_until"] is None, "it fails, and asks for nothing"


@pytest.mark.parametrize(
    ("age", "good_for"), [(0 * HOUR, DAY), (HOUR, 23 * HOUR), (23.5 * HOUR, HOUR), (24.5 * HOUR, HOUR)]
)
def test_if_a_new_fetch_fails_the_rules_stay_good_until_they_are_a_day_old_and_for_an_hour_at_least(
    crawl: Crawl, age: timedelta, good_for: timedelta
) -> None:
    set_robots(crawl, "http://a.example/", 200, "# rules")
    crawl.wait(age)
    assert set_robots(crawl, "http://a.example/", 500)
    assert robots(crawl, "http://a.example/")[0]["good_for"] == good_for


def test_more_than_500_kib_are_cut(crawl: Crawl) -> None:
    set_robots(crawl, "http://a.example/", 200, "x" * 600_000)
    assert len(robots(crawl, "http://a.example/")[0]["rules"]) == 500 * 1024


def test_a_delay_ends_with_the_robots_txt_that_asked_for_it_however_old_the_others_are(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "https://a.test/")
    crawl.tick()
    set_robots(crawl, "http://a.test/", 200, "", 30)
    crawl.wait(500 * DAY)
    crawl.value("select forget_history_at(%s)", crawl.now)
    set_robots(crawl, "https://a.test/", 200, "", None)
    assert crawl.value("select crawl_delay from host") == 30 * SECOND
    set_robots(crawl, "http://a.test/", 200, "", None)
    assert crawl.value("select crawl_delay from host") == 0 * SECOND


def test_a_host_keeps_the_longest_delay_that_any_of_its_sites_asks_for(crawl: Crawl) -> None:
    crawl.add("http://a.example/")
    crawl.tick()
    for url, delay, gap in [
        ("http://a.example/", 7, 7),
        ("https://a.example/", 3, 7),
        ("https://a.example/", 12, 12),
        ("https://a.example/", None, 7),
        ("http://a.example/", None, 1),
    ]:
        set_robots(crawl, url, 200, "", delay)
        assert crawl.host("a.example")["gap"] == gap * SECOND


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["no url", 200], "set_robots: url must be a URL of the site, got 'no url'"),
        (["http://a.example/", 5], "set_robots: status must be an HTTP status, or 0 or less .* got 5"),
        (["http://a.example/", None], "set_robots: status is missing"),
    ],
)
def test_misuse_of_set_robots_is_refused(crawl: Crawl, arguments: list[object], problem: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=problem):
        crawl.value("select recrawl.set_robots(%s, %s)", *arguments)


# -- slots --


def test_a_slot_is_nobody_elses(crawl: Crawl) -> None:
    crawl.add("http://a.example/1", "http://a.example/2")
    (page,) = crawl.next(1)
    (slot,) = take_slot(crawl, "a.example")
    (other,) = take_slot(crawl, "A.example")
    assert slot["fetch_at"] == page["fetch_at"] + SECOND and slot["wait"] == SECOND
    assert other["fetch_at"] == page["fetch_at"] + 2 * SECOND
    assert crawl.next() == []
    crawl.wait(3 * SECOND)
    assert [row["fetch_at"] for row in crawl.next()] == [crawl.now]


def test_a_slot_has_a_window_and_is_a_gap_after_it(crawl: Crawl) -> None:
    crawl.connection.execute("select set_setting('window_share', '0.1')")
    first, second = (take_slot(crawl, "a.example")[0] for _ in range(2))
    assert first["start_by"] == first["fetch_at"] + SECOND / 10
    assert second["fetch_at"] == first["start_by"] + SECOND


def test_a_host_without_a_page_has_slots_too(crawl: Crawl) -> None:
    assert take_slot(crawl, "new.example")[0]["fetch_at"] == crawl.now


def test_there_is_no_slot_of_a_held_host_nor_in_a_pause_nor_too_far_ahead(crawl: Crawl) -> None:
    crawl.connection.execute("select recrawl_internal.block_host_at(%s, 'a.example', %s, 'test')",
                             [crawl.now, crawl.now + HOUR])  # fmt: skip
    assert take_slot(crawl, "a.example") == []
    assert len(take_slot(crawl, "b.example", "0")) == 1
    assert take_slot(crawl, "b.example", "0.9 s") == []
    crawl.wait(HOUR)
    assert len(take_slot(crawl, "a.example", "0")) == 1, "the block is over"
    crawl.connection.execute("select pause()")
    assert take_slot(crawl, "b.example") == []


def test_a_slot_counts_as_a_fetch_of_the_budget(crawl: Crawl) -> None:
    crawl.connection.execute("select set_setting('budget', '86400')")
    counts = "select array[f.last_value, n.last_value] from fetch_count f, new_count n"
    fetched, new = crawl.value(counts)
    take_slot(crawl, "a.example")
    assert crawl.value(counts) == [fetched + 1, new], "and as no new page"


@pytest.mark.parametrize("host", [None, "", "a b", "http://a.example/"])
def test_what_is_no_host_is_refused(crawl: Crawl, host: str | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="take_slot: host must be a host name"):
        crawl.value("select recrawl.take_slot(%s)", host)


@pytest.mark.parametrize("slot_used", [False, True])
def test_a_slot_does_not_come_back_with_its_page(crawl: Crawl, slot_used: bool) -> None:
    crawl.add("http://a.example/1", "http://a.example/2")
    (page,) = crawl.next()
    assert crawl.value("select release_at(%s, %s, null, %s)", crawl.now, page["lease_id"], slot_used) == 1
    assert crawl.next() == []
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1


def test_a_host_that_waits_for_its_one_page_does_not_after_its_slot_was_spent(crawl: Crawl) -> None:
    crawl.add("http://a.example/1")
    crawl.connection.execute("select set_host('a.example', one_at_a_time => true)")
    (page,) = crawl.next()
    crawl.value("select release_at(%s, %s, null, true)", crawl.now, page["lease_id"])
    crawl.wait(SECOND)
    assert len(crawl.next()) == 1


# -- notice --


def test_no_fetch_at_is_sooner_than_the_notice(crawl: Crawl) -> None:
    crawl.add(*(f"http://{host}.example/{n}" for host in "ab" for n in range(9)))
    pages = crawl.rows("select * from next_pages_at(%s, 100, '2 s', '10 minutes', null, '3 s')", crawl.now)
    assert sorted((row["fetch_at"] - crawl.now).total_seconds() for row in pages) == [3, 3, 4, 4, 5, 5]
    assert {row["lease_until"] for row in pages} == {crawl.now + 605 * SECOND}
    crawl.wait(5 * SECOND)
    again = crawl.rows("select * from next_pages_at(%s, 100, '0', '10 minutes', null, '0.5 s')", crawl.now)
    assert [row["wait"] for row in again] == [], "the host is in its gap"


def test_with_notice_alone_there_is_one_page_a_host(crawl: Crawl) -> None:
    crawl.add(*(f"http://{host}.example/{n}" for host in "ab" for n in range(9)))
    pages = crawl.rows("select * from next_pages_at(%s, 100, '0', '10 minutes', null, '5 s')", crawl.now)
    assert [row["wait"] for row in pages] == [5 * SECOND] * 2


def test_no_slot_is_sooner_than_the_notice(crawl: Crawl) -> None:
    for wait in (3, 4):
        (slot,) = take_slot(crawl, "a.example", notice="3 s")
        assert slot["fetch_at"] - crawl.now == slot["wait"] == wait * SECOND


@pytest.mark.parametrize("notice", ["-1 s", "59 s", None])
def test_notice_and_look_ahead_together_are_bounded(crawl: Crawl, notice: str | None) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="next_pages: notice must lie between 0 and what"):
        crawl.value("select count(*) from recrawl.next_pages(ahead => '2 s', notice => %s)", notice)


# -- hints with a time --


def test_what_was_fetched_since_a_sitemap_says_it_changed_stays_as_it_is(crawl: Crawl) -> None:
    crawl.add("http://a.example/old", "http://b.example/new")
    pages = crawl.next()
    assert codes(crawl.report_ok(pages)) == ["ok", "ok"]
    crawl.tick()
    ids = [page["page_id"] for page in pages]
    changed = [crawl.now - HOUR, crawl.now + HOUR]
    crawl.wait(2 * HOUR)
    moved = crawl.value("select hint_change_at(%s, %s, 1, 0, %s)", crawl.now, ids, changed)
    assert moved == 1
    crawl.tick()
    assert [row["page_id"] for row in crawl.next()] == [ids[1]]


def test_hints_have_a_time_for_each_page(crawl: Crawl) -> None:
    with pytest.raises(
        psycopg.errors.InvalidParameterValue, match="changed_at must have one element for each of the 2"
    ):
        crawl.value("select recrawl.hint_change(%s, changed_at => %s)", [1, 2], [crawl.now])
