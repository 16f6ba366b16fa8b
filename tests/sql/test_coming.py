"""A look at what comes next changes nothing, and is about what a pop then gives."""

from helpers import DAY, MINUTE, SECOND, Crawl, Row, urls


def coming(crawl: Crawl, n: int = 100) -> list[Row]:
    return crawl.rows("select * from coming(%s, %s)", crawl.now, n)


def test_a_look_leases_nothing_and_sees_what_the_next_pop_gives(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2", "http://b.test/", value=[1, 2, 3])
    assert coming(crawl) == [], "the inbox is not in the queue yet"
    crawl.tick()
    seen = coming(crawl)
    assert [(row["url"], row["is_new"], row["fetch_at"], row["due_at"]) for row in seen] == [
        ("http://b.test/", True, crawl.now, None),
        ("http://a.test/2", True, crawl.now, None),
    ]
    assert coming(crawl) == seen and crawl.rows("select from lease") == []
    assert len(coming(crawl, 1)) == 1
    assert set(urls(crawl.next())) == set(urls(seen))


def test_what_is_leased_is_not_coming_and_what_is_due_again_is(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[1])
    crawl.tick()
    taken = crawl.next(lease=30 * SECOND)
    assert coming(crawl) == []
    crawl.wait(29 * SECOND)
    assert coming(crawl) == [], "within max_ahead of the end of the lease, but leased"
    crawl.report_ok(taken)
    crawl.tick()
    assert coming(crawl) == []
    due = crawl.page("http://a.test/")["due_at"]
    crawl.now = due - 30 * SECOND
    crawl.tick()
    (row,) = coming(crawl)
    assert (row["is_new"], row["due_at"]) == (False, due) and row["fetch_at"] >= due
    crawl.wait(2 * DAY)
    (row,) = coming(crawl)
    assert row["fetch_at"] == crawl.now


def test_hosts_that_may_not_be_asked_are_not_coming(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    crawl.tick()
    crawl.value("select block_host_at(%s, 'a.test', %s, 'asked by mail')", crawl.now, crawl.now + 10 * MINUTE)
    assert urls(coming(crawl)) == ["http://b.test/"]
    crawl.value("select pause()")
    assert coming(crawl) == []
