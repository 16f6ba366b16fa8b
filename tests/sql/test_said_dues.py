"""Crawlers that say when they want a page next, that they are done with it, or that they decline it."""

from datetime import timedelta

import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, declined, misplaced, result_of, urls

URL = "http://a.test/"
MILLISECOND = timedelta(milliseconds=1)


def popped(crawl: Crawl, url: str = URL) -> Row:
    crawl.add(url)
    (page,) = crawl.next()
    return page


def comes_within(crawl: Crawl, duration: timedelta) -> list[str]:
    """The pages that are handed out in this time, asked for in four steps."""
    found = []
    for _ in range(4):
        crawl.wait(duration / 4)
        crawl.tick()
        found += urls(crawl.next())
    return found


# ------------------------------------------------------------------------------------------------------- due


@pytest.mark.parametrize("status", [0, 200, 304, 404, 429, 500])
def test_a_page_comes_when_its_crawler_said_whatever_the_status(crawl: Crawl, status: int) -> None:
    wanted = crawl.now + 5 * HOUR
    (answer,) = crawl.report(result_of(popped(crawl), status=status, due=wanted.isoformat()))
    assert answer["code"] == "ok"
    assert wanted <= answer["next_fetch_at"] <= wanted + MILLISECOND
    assert wanted <= crawl.page(URL)["due_at"] <= wanted + MILLISECOND
    crawl.wait(5 * HOUR - SECOND)
    crawl.tick()
    assert crawl.next() == []
    crawl.wait(2 * SECOND)
    crawl.tick()
    assert urls(crawl.next()) == [URL]


@pytest.mark.parametrize("result", [{"status": 410}, {"status": 301, "redirect_to": "http://b.test/"}])
def test_a_page_that_is_gone_stays_gone(crawl: Crawl, result: Row) -> None:
    crawl.report(result_of(popped(crawl), **result, due=(crawl.now + HOUR).isoformat()))
    crawl.add("http://b.test/")
    assert comes_within(crawl, 400 * DAY).count(URL) == 0


def test_allocation_does_not_move_what_a_crawler_said(crawl: Crawl) -> None:
    page = popped(crawl)
    wanted = crawl.now + 100 * DAY
    crawl.report(result_of(page, due=wanted.isoformat()))
    crawl.tick()
    assert crawl.value("select not due_follows_frequency(p) from page p")
    crawl.value("select bring_forward_at(%s, array[%s::bigint], '{10}')", crawl.now, page["page_id"])
    assert wanted <= crawl.page(URL)["due_at"] <= wanted + MILLISECOND


def test_the_next_report_that_says_nothing_leaves_it_to_its_rate_again(crawl: Crawl) -> None:
    crawl.report(result_of(popped(crawl), due=(crawl.now + HOUR).isoformat()))
    crawl.wait(2 * HOUR)
    crawl.tick()
    (page,) = crawl.next()
    (answer,) = crawl.report(result_of(page))
    assert crawl.value("select due_is is null and due_follows_frequency(p) from page p")
    assert answer["next_fetch_at"] > crawl.now + 20 * HOUR


@pytest.mark.parametrize("due", ["1900-01-01", "2300-01-01", "-infinity"])
def test_a_due_time_far_from_our_age_is_invalid(crawl: Crawl, due: str) -> None:
    (answer,) = crawl.report(result_of(popped(crawl), due=due))
    assert answer["code"] == "invalid"
    assert answer["detail"].startswith("due must lie between 1970 and 2200, or be infinity, got ")
    crawl.wait(HOUR)
    crawl.tick()
    assert urls(crawl.next()) == [URL], "the lease ran out: nothing was taken in"


# ------------------------------------------------------------------------------------------- without a lease


@pytest.mark.parametrize("kind", ["new", "due", "in the inbox"])
def test_without_a_lease_a_page_that_nobody_has_moves(crawl: Crawl, kind: str) -> None:
    crawl.add(URL, **({"due": [crawl.now - HOUR]} if kind == "due" else {}))
    if kind != "in the inbox":
        crawl.tick()
    (answer,) = crawl.report({"url": URL, "status": 200, "due": (crawl.now + HOUR).isoformat()})
    assert answer["code"] == "ok"
    crawl.tick()
    assert crawl.next() == []
    assert crawl.page(URL)["successes"] == 1
    crawl.wait(2 * HOUR)
    assert urls(crawl.next()) == [URL]
    assert crawl.rows("select * from new_page") == []
    assert crawl.value("select count(*) from queue") == 1


def test_without_a_lease_a_page_that_somebody_has_stays_theirs(crawl: Crawl) -> None:
    page = popped(crawl)
    crawl.report({"url": URL, "status": 200, "due": "infinity"})
    crawl.tick()
    assert crawl.next() == []
    assert codes(crawl.report_ok([page])) == ["ok"]
    assert crawl.page(URL)["state"] == "live"
    crawl.tick()
    crawl.wait(2 * DAY)
    assert urls(crawl.next()) == [URL]


@pytest.mark.parametrize("end", ["released", "expired"])
def test_what_was_said_of_a_page_that_somebody_had_is_forgotten_with_the_lease(crawl: Crawl, end: str) -> None:
    page = popped(crawl)
    crawl.report({"url": URL, "status": 200, "due": "infinity"})
    if end == "released":
        crawl.release(page["lease_id"])
    else:
        crawl.wait(HOUR)
    crawl.tick()
    crawl.wait(SECOND)
    assert crawl.page(URL)["state"] == "live"
    crawl.wait(2 * DAY)
    crawl.tick()
    assert urls(crawl.next()) == [URL]


@pytest.mark.parametrize("said", [{"status": 200, "due": "infinity"}, {"declined": True}])
def test_a_stale_lease_moves_nothing(crawl: Crawl, said: Row) -> None:
    late = popped(crawl)
    crawl.wait(HOUR)
    crawl.tick()
    (page,) = crawl.next()
    assert codes(crawl.report({"page_id": late["page_id"], "lease_id": late["lease_id"], **said})) == ["stale_lease"]
    assert codes(crawl.report_ok([page])) == ["ok"]
    crawl.tick()
    assert crawl.page(URL)["state"] == "live"
    crawl.wait(2 * DAY)
    assert urls(crawl.next()) == [URL]


# --------------------------------------------------------------------------------------- done, and declined


def put_to_rest(crawl: Crawl, state: str, url: str = URL) -> Row:
    page = popped(crawl, url)
    said = declined(page) if state == "declined" else result_of(page, due="infinity")
    (answer,) = crawl.report(said)
    assert (answer["code"], answer["next_fetch_at"]) == ("ok", None)
    crawl.tick()
    return page


@pytest.mark.parametrize("state", ["done", "declined"])
def test_it_never_comes_by_itself_and_nothing_waits_for_it(crawl: Crawl, state: str) -> None:
    page = put_to_rest(crawl, state)
    assert crawl.rows("select * from lease_status") == [], "the lease has ended"
    assert (crawl.page(URL)["state"], crawl.page(URL)["frequency"]) == (state, None)
    assert crawl.page(URL)["due_at"].year == 9999, "as Python reads it"
    assert crawl.value("select hint_change_at(%s, array[%s::bigint], 0.9, 0.1)", crawl.now, page["page_id"]) == 0
    assert crawl.value("select count(*) from page_to_allocate") == 0
    assert comes_within(crawl, 4000 * DAY) == []
    assert crawl.value("select next_ready_time(%s)", crawl.now) is None
    assert crawl.host("a.test")["ready_at"] is None


@pytest.mark.parametrize("state", ["done", "declined"])
@pytest.mark.parametrize("way", ["fetch_now", "add_pages", "report"])
def test_who_asks_for_it_gets_it(crawl: Crawl, state: str, way: str) -> None:
    page = put_to_rest(crawl, state)
    crawl.add(URL)
    crawl.add(URL, due=["infinity"])
    crawl.report({"url": "http://b.test/", "status": 200, "links": [URL]})
    crawl.tick()
    assert crawl.page(URL)["state"] == state
    assert comes_within(crawl, DAY) == [], "to find it again is not to ask for it"
    if way == "fetch_now":
        crawl.value("select fetch_now_at(%s, array[%s::bigint])", crawl.now, page["page_id"])
    elif way == "add_pages":
        assert codes(crawl.add(URL, due=[crawl.now])) == ["known"]
    else:
        crawl.report({"url": URL, "status": 200, "due": crawl.now.isoformat()})
    assert crawl.page(URL)["state"] in ("new", "live")
    crawl.tick()
    crawl.wait(SECOND)
    (again,) = crawl.next()
    assert again["url"] == URL
    crawl.report_ok([again])
    assert crawl.value("select due_is is null and planned_due is null and seen_days < 100 from page")


def test_a_page_that_is_wanted_keeps_its_due_time_when_it_is_added_again(crawl: Crawl) -> None:
    crawl.add(URL, due=[crawl.now + DAY])
    crawl.add(URL, due=[crawl.now])
    crawl.tick()
    assert comes_within(crawl, 12 * HOUR) == []


def test_a_page_may_be_taken_in_that_is_not_wanted(crawl: Crawl) -> None:
    assert codes(crawl.add(URL, "http://a.test/2", due=["infinity"])) == ["new", "new"]
    crawl.tick()
    assert crawl.page(URL)["state"] == "done"
    assert comes_within(crawl, 400 * DAY) == []


def test_to_decline_is_no_observation_and_no_attempt(crawl: Crawl) -> None:
    crawl.report_ok([popped(crawl)])
    crawl.wait(2 * DAY)
    crawl.tick()
    (page,) = crawl.next()
    known = "select fetched_at, reported_at, last_status, successes, changes, attempts, rate, etag from page_status"
    before = crawl.row(known)
    crawl.report(declined(page))
    assert crawl.row(known) == before
    assert codes(crawl.report(declined(page))) == ["duplicate"]


@pytest.mark.parametrize("more", [{"status": 200}, {"robots_denied": True}, {"due": "infinity"}])
def test_who_declines_says_nothing_else(crawl: Crawl, more: Row) -> None:
    (answer,) = crawl.report(declined(popped(crawl)) | more)
    assert (answer["code"], answer["detail"]) == (
        "invalid", "declined says that no request was made: without status, robots_denied and due",
    )  # fmt: skip


def test_what_is_not_declined_needs_a_status(crawl: Crawl) -> None:
    (answer,) = crawl.report(declined(popped(crawl)) | {"declined": False})
    assert (answer["code"], answer["detail"]) == ("invalid", "status is missing")


def test_a_host_that_gives_one_page_at_a_time_goes_on_after_one_was_declined(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add(URL, "http://a.test/2")
    crawl.report(declined(crawl.next()[0]))
    crawl.wait(MINUTE)
    assert urls(crawl.next()) == ["http://a.test/2"]


# ------------------------------------------------------------------------------------- the slot of what is declined


def of_one_host(crawl: Crawl, pages: int) -> list[Row]:
    """Pages that are out, and one more: their slots are ten seconds apart."""
    crawl.value("select set_host('a.test', gap => '10 s')")
    crawl.add(*(f"{URL}{n}" for n in range(pages + 1)))
    return crawl.next(pages, ahead=MINUTE)


def next_slot(crawl: Crawl) -> timedelta:
    from_now: timedelta = crawl.host("a.test")["next_slot_at"] - crawl.now
    return max(0 * SECOND, from_now)


@pytest.mark.parametrize("said", [{"declined": True}, {"robots_denied": True}, {"status": 200, "due": "infinity"}])
def test_no_slot_comes_back(crawl: Crawl, said: Row) -> None:
    (page,) = of_one_host(crawl, 1)
    assert codes(crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"]} | said)) == ["ok"]
    assert next_slot(crawl) == 10 * SECOND
    assert crawl.next() == []


def test_a_page_that_was_fetched_first_keeps_its_slot(crawl: Crawl) -> None:
    (page,) = of_one_host(crawl, 1)
    assert codes(crawl.report(result_of(page), declined(page))) == ["ok", "duplicate"]
    assert next_slot(crawl) == 10 * SECOND
    assert codes(crawl.report(declined(page))) == ["duplicate"]
    assert next_slot(crawl) == 10 * SECOND


@pytest.mark.parametrize("when", ["expired", "released"])
def test_what_is_declined_too_late_gives_nothing_back(crawl: Crawl, when: str) -> None:
    (page,) = of_one_host(crawl, 1)
    if when == "expired":
        crawl.wait(HOUR)
        crawl.tick()
    else:
        crawl.value("select release_at(%s, %s, null, true)", crawl.now, page["lease_id"])
        crawl.wait(10 * SECOND)
    assert len(crawl.next(1)) == 1
    assert codes(crawl.report(declined(page))) == ["stale_lease"]
    assert next_slot(crawl) == 10 * SECOND


# -------------------------------------------------------------------------------------------------- the array twin


def test_the_array_twin_declines_too(crawl: Crawl) -> None:
    page = popped(crawl)
    (answer,) = crawl.rows(
        "select * from report_pages_at(%s, array[%s::bigint], array[%s::bigint], '{null}', null, null, null, null,"
        " null, declined => '{true}')",
        crawl.now, page["page_id"], page["lease_id"],
    )  # fmt: skip
    assert answer["code"] == "ok"
    assert crawl.page(URL)["state"] == "declined"


def test_pages_that_rest_do_not_stand_in_each_others_way(crawl: Crawl) -> None:
    """Each has a due time of its own, by which the queue finds it; so have those that are given one second."""
    pages = [f"http://a.test/{n}" for n in range(50)]
    crawl.add(*pages)
    crawl.report(*({"url": url, "status": 200, "due": "infinity"} for url in pages[:25]))
    crawl.report(*({"url": url, "status": 200, "due": (crawl.now + DAY).isoformat()} for url in pages[25:]))
    crawl.tick()
    assert crawl.value("select count(distinct due_at) from queue") == 50


def test_another_frequency_for_all_pages_leaves_them_alone(crawl: Crawl) -> None:
    put_to_rest(crawl, "done")
    crawl.report(result_of(popped(crawl, "http://b.test/"), due=(crawl.now + 9 * DAY).isoformat()))
    crawl.report(result_of(popped(crawl, "http://c.test/")))
    crawl.tick()
    dues = "select url, due_at from page order by url"
    before = crawl.rows(dues)
    crawl.value("select follow_frequency(%s, 1, 24)", crawl.now)
    assert [row in before for row in crawl.rows(dues)] == [True, True, False]
    crawl.tick()
    assert misplaced(crawl) == []


def test_a_clock_that_was_ahead_leaves_them_alone(crawl: Crawl) -> None:
    put_to_rest(crawl, "done")
    put_to_rest(crawl, "declined", "http://b.test/")
    crawl.report(result_of(popped(crawl, "http://c.test/"), due=(crawl.now + 1000 * DAY).isoformat()))
    crawl.tick()
    before = crawl.rows("select url, due_at from page order by url")
    crawl.now -= HOUR
    crawl.tick()
    after = crawl.rows("select url, due_at from page order by url")
    assert after[:2] == before[:2]
    assert after[2]["due_at"] > crawl.now + 999 * DAY


def test_when_a_page_was_found(crawl: Crawl) -> None:
    crawl.report(result_of(popped(crawl), links=["http://a.test/2"]))
    crawl.wait(HOUR)
    crawl.add("http://a.test/3")
    found = crawl.rows("select added_at, due_at from page_status order by url")
    assert [row["due_at"] is None for row in found] == [False, True, True]
    assert [row["added_at"] for row in found] == [crawl.now - HOUR, crawl.now - HOUR, crawl.now]
