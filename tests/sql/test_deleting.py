"""Pages that are taken out as if they had never been known, and which lease a page is out on."""

import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, codes, result_of, urls

A, A2, B = "http://a.test/", "http://a.test/2", "http://b.test/"


def delete(crawl: Crawl, *names: str) -> int:
    ids = [crawl.value("select recrawl.page_of(%s)", name) for name in names]
    return int(crawl.value("select recrawl.delete_pages(%s::bigint[])", ids))


@pytest.mark.parametrize("kind", ["new", "due", "in the inbox", "fetched", "done", "gone"])
def test_a_deleted_page_comes_no_more_and_may_be_found_again(crawl: Crawl, kind: str) -> None:
    crawl.add(A, B, **({"due": [crawl.now - HOUR]} if kind == "due" else {}))
    if kind != "in the inbox":
        crawl.tick()
    if kind in ("fetched", "done", "gone"):
        said: dict[str, Row] = {"done": {"due": "infinity"}, "gone": {"status": 410}}
        crawl.report(*(result_of(page, **said.get(kind, {})) for page in crawl.next()))
        crawl.tick()
        crawl.wait(2 * DAY)
    assert delete(crawl, A) == 1
    crawl.tick()
    crawl.wait(MINUTE)
    assert A not in urls(crawl.next())
    assert crawl.rows("select * from page_status where url = %s", A) == []
    assert crawl.value("select count(*) from queue q left join page p using (page_id) where p.page_id is null") == 0
    assert crawl.value("select count(*) from new_page n left join page p using (page_id) where p.page_id is null") == 0
    assert crawl.host("a.test")["pages"] == 0
    assert codes(crawl.add(A)) == ["new"]
    crawl.tick()
    crawl.wait(MINUTE)
    assert A in urls(crawl.next())


def test_a_page_that_is_out_leaves_its_lease_and_the_queue(crawl: Crawl) -> None:
    crawl.add(A, B, "http://c.test/")
    pages = crawl.next()
    crawl.report_ok(pages[2:])
    delete(crawl, pages[0]["url"], pages[2]["url"])
    assert crawl.row("select unreported, page_ids from lease_status join lease using (lease_id, unreported)") == {
        "unreported": 1,
        "page_ids": sorted(page["page_id"] for page in pages[1:]),
    }, "what is reported stays in the list, which nobody reads any more"
    assert codes(crawl.report_ok(pages[:2])) == ["unknown_page", "ok"]
    assert crawl.rows("select * from lease") == []
    crawl.tick()
    assert crawl.rows("select page_id from queue") == [{"page_id": pages[1]["page_id"]}]


def test_a_lease_of_which_all_pages_are_deleted_is_over(crawl: Crawl) -> None:
    crawl.add(A, B)
    pages = crawl.next()
    delete(crawl, A, B)
    assert crawl.rows("select * from lease") == []
    assert crawl.extend(pages[0]["lease_id"], HOUR) is None


def test_a_page_deleted_while_a_pop_hands_it_out_shifts_no_other_page_of_the_lease(crawl: Crawl, url: str) -> None:
    names = [f"http://a.test/{i}" for i in range(3)]
    crawl.value("select set_setting('longest_lease', '7 days')")
    crawl.add(*names, rate=[1440.0, 24.0, 0.5])
    crawl.tick()
    with psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as deleting:
        delete(Crawl(deleting), names[1])
        pages = crawl.next(ahead=10 * SECOND)
    assert urls(pages) == names, "a pop locks no page"
    for _ in range(2):
        crawl.extend(pages[0]["lease_id"], DAY)
    held = crawl.rows("select unnest(page_ids) as page_id, unnest(held_dues) as due_at from lease order by page_id")
    assert [page for page in held if page["page_id"] != pages[1]["page_id"]] == crawl.rows(
        "select page_id, queue.due_at from queue join page using (page_id) order by page_id"
    )
    crawl.wait(DAY)
    assert crawl.next(ahead=10 * SECOND) == []


def test_a_host_counts_its_pages_right_after_one_of_a_lease_is_deleted(crawl: Crawl) -> None:
    """The last page of the extended lease once lost its due time. Its report then gave it a second place in the queue,
    and when it was kept_out, both places went but the host counted one."""
    names = [f"http://a.test/{i}" for i in range(3)]
    crawl.add(*names)
    pages = crawl.next(ahead=10 * SECOND)
    delete(crawl, names[0])
    crawl.extend(pages[0]["lease_id"], MINUTE)
    assert codes(crawl.report_ok(pages[2:])) == ["ok"]
    crawl.tick()
    assert crawl.value("select count(*) from queue where page_id = %s", pages[2]["page_id"]) == 1
    crawl.value("select keep_out(array[%s::bigint])", pages[2]["page_id"])
    crawl.tick()
    assert crawl.host("a.test")["pages"] == crawl.value("select count(*) from queue") == 1


def test_a_host_that_gives_one_at_a_time_waits_until_the_lease_of_a_deleted_page_ends(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', one_at_a_time => true)")
    crawl.add(A, A2)
    (page,) = crawl.next()
    delete(crawl, page["url"])
    crawl.wait(MINUTE)
    assert crawl.next() == [], "that request may still be under way"
    assert codes(crawl.report(result_of(page))) == ["unknown_page"]
    crawl.wait(9 * MINUTE)
    assert [p["url"] for p in crawl.next()] == [A2], "though nobody looks after the queue"


def test_what_moved_to_it_leads_nowhere_else(crawl: Crawl) -> None:
    crawl.add(A, B)
    crawl.report(*(result_of(p, status=301, redirect_to=B) for p in crawl.next() if p["url"] == A))
    delete(crawl, B)
    crawl.report({"url": "http://c.test/", "status": 200})
    crawl.add("http://c.test/")
    crawl.report({"url": "http://c.test/", "status": 200, "links": [A, B]})
    linked = crawl.rows("select url from successors(page_of('http://c.test/'))")
    assert urls(linked) == [B], "found again; A has moved, so it is no page"
    assert crawl.rows("select * from explain_page(%s)", A)


def test_nothing_to_delete_is_nothing(crawl: Crawl) -> None:
    assert crawl.value("select recrawl.delete_pages('{7,null}')") == 0
    assert crawl.value("select recrawl.delete_pages(null)") == 0


def test_leases_of_pages_that_are_out(crawl: Crawl) -> None:
    crawl.add(A, B, "http://c.test/")
    pages = crawl.next(2)
    found = "select page_id, lease_id, lease_until from leases_of_at(%s, %s) order by page_id"
    known = sorted((p["page_id"], p["lease_id"], p["lease_until"]) for p in pages)
    assert [tuple(row.values()) for row in crawl.rows(found, crawl.now, None)] == known
    assert [tuple(row.values()) for row in crawl.rows(found, crawl.now, [known[0][0]])] == known[:1]
    crawl.report_ok(pages[:1])
    assert len(crawl.rows(found, crawl.now, None)) == 1
    crawl.wait(HOUR)
    assert crawl.rows(found, crawl.now, None) == [], "it ran out"


# ------------------------------------------------------------------------------------------- one host alone


@pytest.mark.parametrize("kind", ["new", "due"])
def test_one_host_may_be_asked_alone(crawl: Crawl, kind: str) -> None:
    pages = [A, B, A2, "http://a.test/3"]
    crawl.add(*pages, **({"due": [crawl.now - HOUR]} if kind == "due" else {}))
    of_host = "select * from next_pages_at(%s, %s, %s, '10 minutes', null, '0', %s)"
    got = crawl.rows(of_host, crawl.now, 10, "10 seconds", "A.test")
    assert {page["host"] for page in got} == {"a.test"} and len(got) == 3
    assert crawl.rows(of_host, crawl.now, 10, "10 seconds", "a.test") == []
    assert crawl.rows(of_host, crawl.now, 10, "0", "unknown.test") == []
    assert urls(crawl.next()) == [B]


def test_a_host_asked_alone_keeps_its_gap_and_its_blocks(crawl: Crawl) -> None:
    crawl.add(A, A2, "http://a.test/3", B)
    of_host = "select * from next_pages_at(%s, 10, '0', '10 minutes', null, '0', 'a.test')"
    assert len(crawl.rows(of_host, crawl.now)) == 1
    assert crawl.rows(of_host, crawl.now) == []
    crawl.wait(MINUTE)
    crawl.value("select block_host_at(%s, 'a.test', 'infinity', null)", crawl.now)
    assert crawl.rows(of_host, crawl.now) == []
    crawl.value("select unblock_host_at(%s, 'a.test')", crawl.now)
    crawl.value("select set_host('a.test', gap => '0.1 s', one_at_a_time => true)")
    (page,) = crawl.rows(of_host, crawl.now)
    crawl.value("select block_host_at(%s, 'a.test', %s, null)", crawl.now, crawl.now + SECOND / 5)
    for wait in (SECOND / 4, MINUTE):
        crawl.wait(wait)
        assert crawl.rows(of_host, crawl.now) == [], "its page is out, and the block is over"
    crawl.report_ok([page])
    assert len(crawl.rows(of_host, crawl.now)) == 1


def test_a_report_of_a_page_that_was_deleted_brings_no_links(crawl: Crawl) -> None:
    """They brought a part of a site back, with depth 1."""
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.value("select delete_pages('{1}')")
    crawl.report(result_of(page, links=["http://a.test/x"]))
    crawl.report(result_of(page, status=301, redirect_to="http://a.test/y"))
    assert crawl.rows("select url from page") == []
