"""Pages that moved permanently, and that their site moved back."""

from collections import Counter
from datetime import timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, result_of

A, B, C = "http://a.test/", "https://a.test/", "https://www.a.test/"


def fetch(crawl: Crawl, redirects: dict[str, str]) -> list[str]:
    """Fetches the pages that are due now. They redirect as given; the others answer 200."""
    fetched = []
    while pages := crawl.next():
        for page in pages:
            fetched.append(page["url"])
            target = redirects.get(page["url"])
            answer = {"status": 301, "redirect_to": target} if target else {"status": 200}
            assert codes(crawl.report(result_of(page, **answer))) == ["ok"]
        crawl.wait(SECOND)
    return fetched


def days(crawl: Crawl, number: float, redirects: dict[str, str], step: timedelta = HOUR) -> Counter[str]:
    """How often each URL is fetched in that number of days."""
    fetched: Counter[str] = Counter()
    end = crawl.now + number * DAY
    while crawl.now < end:
        crawl.tick()
        fetched.update(fetch(crawl, redirects))
        crawl.wait(step)
    return fetched


def moved_to_and_back(crawl: Crawl) -> Row:
    """A redirected to B, and B redirects to A now. Returns A."""
    crawl.add(A)
    assert fetch(crawl, {A: B}) == [A, B]
    crawl.wait(DAY)
    assert fetch(crawl, {B: A}) == [B]
    return crawl.page(A)


def test_a_page_that_its_site_moves_back_is_fetched_again(crawl: Crawl) -> None:
    assert moved_to_and_back(crawl)["state"] == "moved"
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert (crawl.page(A)["state"], crawl.page(A)["moved_to"]) == ("new", None), "it was never fetched"
    assert fetch(crawl, {B: A}) == [A]
    fetched = days(crawl, 30, {B: A})
    assert (fetched[B], 28 <= fetched[A] <= 30) == (1, True), "B moves to A at its next fetch"
    assert (crawl.page(B)["state"], crawl.page(B)["moved_to"]) == ("moved", crawl.page(A)["page_id"])
    assert crawl.value("select count(*) from queue") == 1
    assert crawl.value("select sum(pages) from host") == 1
    assert crawl.value("select count(*) from moved_back") == 0


def test_a_site_that_moves_to_and_fro_keeps_all_its_pages(crawl: Crawl) -> None:
    old, new = ([f"{site}{page}" for page in range(20)] for site in (A, B))
    crawl.value("select set_setting('default_gap', '1 millisecond')")
    crawl.add(*old)
    for source, target in 3 * [(old, new), (new, old)]:
        days(crawl, 5, dict(zip(source, target, strict=True)))
        assert days(crawl, 1, dict(zip(source, target, strict=True))) == dict.fromkeys(target, 1)
    assert crawl.value("select sum(pages) from host") == 20


@pytest.mark.parametrize("circle", [[A, B], [A, B, C]])
def test_a_circle_of_redirects_is_asked_ever_less_often(crawl: Crawl, circle: list[str]) -> None:
    """As of a site that wants a cookie: no page of the circle ever answers."""
    crawl.add(A)
    redirects = dict(zip(circle, [*circle[1:], A], strict=True))
    days(crawl, 100, redirects)
    fetched = days(crawl, 300, redirects, DAY)
    assert 0 < sum(fetched.values()) <= 5 * len(circle)
    assert crawl.value("select count(*) from page where state = 'live'") == 1
    recovered = days(crawl, 160, {}, DAY)
    assert sum(recovered.values()) >= 50, "a page of the circle is fetched again when the circle has ended"


def test_a_page_that_redirects_to_itself_brings_nothing_back(crawl: Crawl) -> None:
    crawl.add(A)
    fetch(crawl, {A: B})
    crawl.wait(DAY)
    assert fetch(crawl, {B: B}) == [B]
    assert crawl.value("select count(*) from moved_back") == 0


def test_a_page_that_is_excluded_by_now_stays_out(crawl: Crawl) -> None:
    moved_to_and_back(crawl)
    crawl.value("select exclude('^http://')")
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == "moved"
    assert crawl.value("select count(*) from moved_back") == 0


def test_a_page_that_was_deleted_or_removed_by_now_stays_away(crawl: Crawl) -> None:
    page_id = moved_to_and_back(crawl)["page_id"]
    crawl.value("select delete_pages(%s)", [page_id])
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.value("select count(*) from moved_back") == 0
    assert crawl.value("select count(*) from page where state = 'live'") == 1


def test_a_page_that_somebody_has_locked_comes_back_later(crawl: Crawl, url: str) -> None:
    page_id = moved_to_and_back(crawl)["page_id"]
    crawl.wait(10 * MINUTE)
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.page where page_id = %s for update", [page_id])
        crawl.tick()
        assert crawl.page(A)["state"] == "moved"
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == "new"


def test_an_exclusion_that_runs_does_not_hold_up_the_upkeep(crawl: Crawl, url: str) -> None:
    moved_to_and_back(crawl)
    crawl.wait(10 * MINUTE)
    with psycopg.connect(url) as operator:
        operator.execute("lock table recrawl_internal.exclusion in exclusive mode")
        crawl.tick()
        assert crawl.page(A)["state"] == "moved"
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == "new"


def test_a_page_that_is_still_leased_gets_no_second_place(crawl: Crawl) -> None:
    crawl.add(A)
    (leased,) = crawl.next(lease=DAY)
    crawl.report({"url": A, "status": 301, "redirect_to": B})
    crawl.wait(SECOND)
    assert fetch(crawl, {B: A}) == [B]
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == "new"
    assert fetch(crawl, {}) == [], "another crawler has it"
    crawl.report(result_of(leased))
    crawl.tick()
    assert crawl.value("select count(*) from queue where page_id = %s", leased["page_id"]) == 1
    assert days(crawl, 10, {})[A] in (9, 10)


def test_a_page_whose_redirects_lead_to_a_page_that_was_deleted_comes_back(crawl: Crawl) -> None:
    crawl.add(A)
    assert fetch(crawl, {A: B}) == [A, B]
    crawl.value("select delete_pages(%s)", [crawl.page(B)["page_id"]])
    crawl.add(C)
    fetch(crawl, {C: A})
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == "new"


def test_a_long_chain_of_redirects_that_leads_back_is_no_end(crawl: Crawl) -> None:
    chain = [f"http://a.test/{n}" for n in range(14)]
    crawl.add(chain[0])
    redirects: dict[str, str] = {}
    for source, target in pairwise([*chain, chain[0]]):
        redirects = {source: target}
        days(crawl, 2, redirects)
    assert crawl.page(chain[0])["state"] == "live"


@pytest.mark.parametrize("end", [{"declined": True}, {"status": 301, "redirect_to": B, "due": "infinity"}])
def test_a_page_that_is_not_wanted_any_more_stays_so(crawl: Crawl, end: dict[str, Any]) -> None:
    crawl.add(A)
    (page,) = crawl.next()
    assert codes(crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"]} | end)) == ["ok"]
    crawl.report({"url": A, "status": 301, "redirect_to": B})
    crawl.wait(SECOND)
    fetch(crawl, {B: A})
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["state"] == ("declined" if "declined" in end else "done")
    assert fetch(crawl, {}) == []


def test_a_page_whose_first_entry_is_still_in_the_inbox_gets_one_place(crawl: Crawl) -> None:
    crawl.add(A)
    crawl.report({"url": A, "status": 301, "redirect_to": B})
    crawl.report({"url": B, "status": 301, "redirect_to": A})
    assert crawl.value("select bring_back(%s, 100)", crawl.now) == 0
    crawl.tick()
    assert crawl.value("select bring_back(%s, 100)", crawl.now) == 1
    crawl.tick()
    assert crawl.value("select count(*) from new_page where page_id = %s", crawl.page(A)["page_id"]) == 1


def test_a_page_that_somebody_has_locked_keeps_no_other_from_coming_back(crawl: Crawl, url: str) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    for here, there in (("http", "https"), ("https", "http")):
        crawl.tick()
        crawl.report(
            {"url": f"{here}://a.test/", "status": 301, "redirect_to": f"{there}://a.test/"},
            {"url": f"{here}://b.test/", "status": 301, "redirect_to": f"{there}://b.test/"},
        )
    with psycopg.connect(url) as holder:
        holder.execute("select from recrawl_internal.page where url = 'http://a.test/' for update")
        assert crawl.value("select bring_back(%s, 1)", crawl.now) == 1
        assert crawl.value("select bring_back(%s, 1)", crawl.now) == 0
    assert crawl.value("select bring_back(%s, 1)", crawl.now) == 1


def test_a_page_that_was_fetched_before_it_moved_is_due_at_once(crawl: Crawl) -> None:
    crawl.add(A)
    fetch(crawl, {})
    crawl.wait(DAY)
    fetch(crawl, {A: B})
    crawl.wait(DAY)
    fetch(crawl, {B: A})
    crawl.add(*(f"http://b.test/{n}" for n in range(20)))
    crawl.value("select set_setting('discovery', '0')")
    crawl.wait(10 * MINUTE)
    crawl.tick()
    assert crawl.page(A)["due_at"] == crawl.now
    assert [page["url"] for page in crawl.next(1)] == [A]


def test_a_note_about_a_page_that_is_being_deleted_does_not_stay(crawl: Crawl) -> None:
    page_id = moved_to_and_back(crawl)["page_id"]
    crawl.connection.execute("delete from page where page_id = %s", [page_id])
    assert crawl.value("select bring_back(%s, 100)", crawl.now) == 0
    assert crawl.value("select count(*) from moved_back") == 0


def test_a_page_whose_move_is_still_in_the_inbox_waits(crawl: Crawl) -> None:
    crawl.add(A)
    (page,) = crawl.next()
    crawl.report(result_of(page, status=301, redirect_to="http://b.test/"))
    crawl.report({"url": "http://b.test/", "status": 301, "redirect_to": A})
    assert crawl.value("select bring_back(%s, 100)", crawl.now) == 0
    crawl.tick()
    assert crawl.value("select bring_back(%s, 100)", crawl.now) == 1
    crawl.tick()
    assert crawl.page(A)["due_at"] is None
    assert crawl.value("select count(*) from new_page where page_id = %s", page["page_id"]) == 1
