"""Taking URLs in."""

import random
from concurrent.futures import ThreadPoolExecutor

import psutil
import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, codes, misplaced, urls


def test_a_bad_url_harms_no_other(crawl: Crawl) -> None:
    rows = crawl.add("http://a.test/", "nonsense", None, "http://b.test/", "http://a.test/#again")
    assert codes(rows) == ["new", "invalid", "invalid", "new", "known"]
    assert [row["ord"] for row in rows] == [1, 2, 3, 4, 5]
    assert [row["url"] for row in rows] == [
        "http://a.test/",
        "nonsense",
        None,
        "http://b.test/",
        "http://a.test/#again",
    ]
    assert rows[0]["page_id"] == rows[4]["page_id"]
    assert rows[1]["detail"] == "the URL must begin with http:// or https://"
    assert len(crawl.next()) == 2


def test_adding_twice_changes_nothing(crawl: Crawl) -> None:
    (first,) = crawl.add("http://a.test/", value=[2.0])
    (again,) = crawl.add("http://a.test/", value=[7.0])
    assert (again["code"], again["page_id"]) == ("known", first["page_id"])
    assert crawl.page("http://a.test/")["value"] == 2
    crawl.tick()
    assert crawl.value("select count(*) from new_page") == 1


def test_known_urls_draw_no_ids(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    before = crawl.value("select last_value from page_id")
    for _ in range(5):
        crawl.add("http://a.test/")
    assert crawl.value("select last_value from page_id") == before


def test_one_element_serves_all_or_each_has_its_own(crawl: Crawl) -> None:
    crawl.add("http://a.test/", "http://b.test/", value=[3.0], rate=[1.0, 2.0], meta=[{"k": 1}, {"k": 2}])
    a, b = crawl.page("http://a.test/"), crawl.page("http://b.test/")
    assert (a["value"], a["rate"], a["frequency"], a["meta"]) == (3, 1, 1, {"k": 1})
    assert (b["value"], b["rate"], b["frequency"], b["meta"]) == (3, 2, 2, {"k": 2})
    assert {page["meta"]["k"] for page in crawl.next()} == {1, 2}


def test_a_page_with_a_due_time_waits_for_it(crawl: Crawl) -> None:
    crawl.add("http://a.test/", due=[crawl.now + HOUR])
    assert crawl.next() == []
    crawl.wait(HOUR)
    assert len(crawl.next()) == 1


def test_pages_with_one_due_time_come_in_the_order_given(crawl: Crawl) -> None:
    given = [f"http://a.test/{i}" for i in (2, 0, 3, 1)]
    crawl.add(*given, due=[crawl.now])
    assert urls(crawl.next(ahead=MINUTE)) == given
    assert crawl.value("select max(dues[i]) from lease, generate_series(1, 4) i") == crawl.now


def test_nothing_is_added_from_nothing(crawl: Crawl) -> None:
    assert crawl.add() == []
    assert crawl.rows("select * from add_pages(null)") == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            "'{http://a/}', value => '{1,2}'",
            "add_pages: value must have one element, or one for each of the 1 urls, got 2",
        ),
        ("'{http://a/}', meta => '{}'", "add_pages: meta must have one element, or one for each of the 1 urls, got 0"),
    ],
)
def test_misuse_is_refused_by_argument_and_value(crawl: Crawl, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(f"select * from add_pages({arguments})")
    assert error.value.diag.message_primary == message


@pytest.mark.parametrize(
    ("column", "bad", "good", "detail"),
    [
        ("value", "NaN", "2", "value must be 0 or between 1e-30 and 1e30, got NaN"),
        ("value", "Infinity", "2", "value must be 0 or between 1e-30 and 1e30, got Infinity"),
        ("value", "-1", "0", "value must be 0 or between 1e-30 and 1e30, got -1"),
        ("value", "1e300", "1e30", "value must be 0 or between 1e-30 and 1e30, got 1e+300"),
        ("rate", "Infinity", "1", "rate must be 0 or between 1e-30 and 1e30 changes per day, got Infinity"),
        ("due", "-infinity", "2026-01-01", "due must lie between 1970 and 2200, or be infinity, got -infinity"),
        ("host", "a.test:8080", "b.test", "host must be a host name or address without port"),
        ("host", "http://b.test", "::1", "host must be a host name or address without port"),
    ],
)
def test_a_row_with_a_bad_number_or_time_is_told_why_and_harms_no_other(
    crawl: Crawl, column: str, bad: str, good: str, detail: str
) -> None:
    rows = crawl.rows(
        f"select * from add_pages('{{http://a.test/1,http://a.test/2,http://a.test/1}}', "
        f"{column} => '{{{bad},{good},{good}}}')"
    )
    assert codes(rows) == ["invalid", "new", "new"]
    assert rows[0]["detail"] == detail


def test_a_host_takes_in_no_more_than_max_pages(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', max_pages => 3)")
    rows = crawl.add(*(f"http://a.test/{i}" for i in range(5)), "http://b.test/")
    assert codes(rows) == ["new"] * 3 + ["excluded"] * 2 + ["new"]
    assert rows[3]["detail"] == "the host a.test has as many pages as it may have"
    assert codes(crawl.add("http://a.test/9")) == ["excluded"], "those waiting in the inbox count"
    crawl.tick()
    assert codes(crawl.add("http://a.test/9")) == ["excluded"]
    crawl.value("select keep_out(array[%s::bigint])", rows[0]["page_id"])
    crawl.tick()
    assert codes(crawl.add("http://a.test/9")) == ["new"], "a kept_out page makes room"
    crawl.value("select set_host('a.test', reset => '{max_pages}')")
    assert codes(crawl.add("http://a.test/10")) == ["new"]
    crawl.value("select set_host('a.test', max_pages => 0)")
    assert codes(crawl.add("http://a.test/11")) == ["excluded"]


def test_the_setting_max_pages_holds_for_all_hosts_without_their_own(crawl: Crawl) -> None:
    crawl.value("select set_setting('max_pages_per_host', '1')")
    crawl.value("select set_host('b.test', max_pages => 2)")
    rows = crawl.add("http://a.test/1", "http://a.test/2", "http://b.test/1", "http://b.test/2", "http://b.test/3")
    assert codes(rows) == ["new", "excluded", "new", "new", "excluded"]


def test_hosts_that_are_asked_as_one_share_its_gap_blocks_and_limits(crawl: Crawl) -> None:
    names = ["http://a.blogs.test/", "http://b.blogs.test/", "http://c.test/"]
    assert codes(crawl.add(*names, host=["Blogs.test", "blogs.test", None])) == ["new"] * 3
    first = crawl.next()
    assert [page["host"] for page in first] == ["blogs.test", "c.test"]
    # Pages that are found later share the host of the name too. A function that changes a host changes all its names.
    crawl.report_ok(first, links=["http://a.blogs.test/2", "http://d.blogs.test/"])
    assert crawl.page("http://a.blogs.test/2")["host"] == "blogs.test"
    assert crawl.page("http://d.blogs.test/")["host"] == "d.blogs.test"
    crawl.value("select set_host('b.blogs.test', gap => '9 s', max_pages => 3)")
    assert [(h["host"], h["gap"]) for h in crawl.rows("select * from host_status order by host")] == [
        ("blogs.test", 9 * SECOND), ("c.test", SECOND), ("d.blogs.test", SECOND),
    ]  # fmt: skip
    (refused,) = crawl.add("http://a.blogs.test/3")
    assert refused["detail"] == "the host blogs.test has as many pages as it may have"
    crawl.tick()
    (row,) = crawl.rows("select * from explain_page('http://a.blogs.test/3')")
    assert row["says"] == "It is not in the crawl, and its host is full: blogs.test has 3 pages and may have 3."
    crawl.value("select block_host_at(%s, 'a.blogs.test', 'infinity', 'asked to')", crawl.now)
    events = crawl.rows("select * from events where kind = 'host' order by at")
    assert [(event["subject"], event["says"]) for event in events] == [
        ("blogs.test", "gap: none → 00:00:09, max_pages: none → 3"),
        ("blogs.test", "blocked until further notice: asked to"),
    ]  # fmt: skip
    crawl.wait(MINUTE)
    assert urls(crawl.next()) == ["http://d.blogs.test/"]
    assert crawl.value("select count(*) from take_slot_at(%s, 'b.blogs.test', '0', '0')", crawl.now) == 0


def test_a_host_that_is_known_is_not_asked_as_another(crawl: Crawl) -> None:
    """Its pages are where they are. That others are asked as it is a reason as well."""
    crawl.add("http://a.test/")
    crawl.add("http://a.test/2", "http://b.test/", "http://c.test/", host=["z.test", "c.test", "d.test"])
    hosts = {row["url"]: row["host"] for row in crawl.rows("select url, host from page_status")}
    assert hosts == {
        "http://a.test/": "a.test", "http://a.test/2": "a.test", "http://b.test/": "c.test", "http://c.test/": "c.test",
    }  # fmt: skip


def test_who_names_hosts_at_once_waits_but_never_in_a_circle(crawl: Crawl, url: str) -> None:
    """Six names that are asked as each other, in random batches of several crawlers."""

    def adds(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(url, autocommit=True) as connection:
            for turn in range(40):
                names = [f"{letter}{turn}.test" for letter in chance.sample("abcdef", 4)]
                hosts = [chance.choice([None, *names]) for _ in names]
                connection.execute(
                    "select recrawl.add_pages(%s, host => %s::text[])",
                    [[f"http://{name}/{seed}" for name in names], hosts],
                )

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(adds, range(6)))
    assert crawl.value("select count(*) from host_name where host_id not in (select host_id from host)") == 0
    assert (
        crawl.value("select count(*) from host where (name, host_id) not in (select name, host_id from host_name)") == 0
    )
    assert crawl.value("select count(*) from page where host_id not in (select host_id from host)") == 0
    assert crawl.value("select count(*) from host_name n join host h using (host_id) where n.name <> h.name") > 0


def test_very_many_names_are_asked_as_others_at_once(crawl: Crawl) -> None:
    """In CPU that grows as their number: 1.2 and 2.4 times what they take as hosts of their own, not 7 and 11."""
    server = psutil.Process(crawl.connection.info.backend_pid)

    def seconds(name: str, asked_as: str | None) -> float:
        start = server.cpu_times().user
        crawl.value(
            "select count(*) from add_pages_at(%s, array(select format('http://%%s-%%s.test/', %s::text, i) "
            "from generate_series(1, 10000) i), null, null, null, null, "
            "array(select replace(%s, 'N', i::text) from generate_series(1, 10000) i))",
            crawl.now, name, asked_as,
        )  # fmt: skip
        return server.cpu_times().user - start

    alone = seconds("a", None)
    assert seconds("b", "one.test") < 4 * alone
    assert seconds("c", "nN.test") < 6 * alone


def test_excluded_patterns_keep_out_and_take_out(crawl: Crawl) -> None:
    crawl.add("http://a.test/calendar/1", "http://a.test/b")
    assert crawl.value("select exclude(%s)", "/calendar/") == 1
    (row,) = crawl.add("http://a.test/%63alendar/2")
    assert (row["code"], row["detail"]) == ("excluded", "matches the excluded pattern /calendar/")
    (known,) = crawl.add("http://a.test/calendar/1")
    assert (known["code"], known["detail"]) == ("excluded", "the page was kept_out or excluded")
    assert urls(crawl.next(ahead=9 * SECOND)) == ["http://a.test/b"]
    assert crawl.page("http://a.test/calendar/1")["state"] == "excluded"


def test_unexclude_brings_pages_back(crawl: Crawl) -> None:
    crawl.add("http://a.test/calendar/1", "http://a.test/calendar/x")
    crawl.value("select exclude('calendar')")
    crawl.value("select exclude('x$')")
    crawl.tick()
    assert crawl.value("select unexclude_at(%s, 'calendar')", crawl.now) == 1
    assert urls(crawl.next(ahead=9 * SECOND)) == ["http://a.test/calendar/1"]
    with pytest.raises(psycopg.errors.InvalidParameterValue, match="unexclude: 'calendar' is not excluded"):
        crawl.value("select unexclude('calendar')")


def test_unexclude_leaves_new_pages_new_and_unwanted_pages_unwanted(crawl: Crawl) -> None:
    """All became due revisits, which the budget and their values do not hold back."""
    crawl.add("http://a.test/new")
    crawl.add("http://a.test/done", "http://a.test/known", due=["infinity", (crawl.now + DAY).isoformat()])
    crawl.tick()
    crawl.value("select exclude('a.test')")
    crawl.tick()
    assert crawl.value("select unexclude_at(%s, 'a.test')", crawl.now) == 3
    crawl.tick()
    assert crawl.value("select array_agg(url) from new_page join page using (page_id)") == ["http://a.test/new"]
    assert crawl.page("http://a.test/done")["state"] == "done"
    assert crawl.page("http://a.test/known")["due_at"] == crawl.now
    assert misplaced(crawl) == []


def test_unexclude_does_not_care_how_a_session_reads_arrays(crawl: Crawl) -> None:
    crawl.connection.execute("set array_nulls = off")
    crawl.add("http://a.test/")
    crawl.value("select exclude('a.test')")
    assert crawl.value("select unexclude_at(%s, 'a.test')", crawl.now) == 1


def test_a_page_excluded_while_it_is_out_and_taken_back_is_there_once(crawl: Crawl) -> None:
    crawl.add("http://a.test/x")
    (page,) = crawl.next()
    crawl.value("select exclude('x')")
    crawl.value("select unexclude_at(%s, 'x')", crawl.now)
    assert crawl.report_ok([page])[0]["code"] == "ok"
    crawl.tick()
    assert crawl.value("select count(*) from queue") == 1


def test_forgotten_pages_stay_out(crawl: Crawl) -> None:
    (row,) = crawl.add("http://a.test/")
    assert crawl.value("select keep_out(array[%s::bigint, 999])", row["page_id"]) == 1
    assert codes(crawl.add("http://a.test/")) == ["excluded"]
    assert crawl.next() == []
    crawl.tick()
    assert crawl.value("select count(*) from new_page") == 0
    assert crawl.host("a.test")["pages"] == 0


def test_a_page_forgotten_while_it_is_out_does_not_come_back(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (page,) = crawl.next()
    crawl.value("select keep_out(array[%s::bigint])", page["page_id"])
    (answer,) = crawl.report_ok([page])
    assert (answer["code"], answer["next_fetch_at"]) == ("ok", None)
    crawl.tick()
    crawl.wait(10 * DAY)
    assert crawl.next() == []
    assert crawl.value("select count(*) from queue") == 0
    assert crawl.host("a.test")["pages"] == 0


@pytest.mark.parametrize(
    ("pattern", "why"), [("a(", "parentheses"), ("", "must not be empty"), (None, "must not be empty")]
)
def test_a_pattern_must_be_a_regular_expression(crawl: Crawl, pattern: str | None, why: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue, match=f"^exclude: pattern .*{why}"):
        crawl.value("select exclude(%s)", pattern)


def test_a_backlog_excluded_before_it_came_in_holds_nobody_up(crawl: Crawl) -> None:
    crawl.add(*(f"http://trap.test/{i}" for i in range(3000)))
    crawl.add("http://a.test/", "http://b.test/")
    crawl.value("select exclude('trap')")
    assert sorted(urls(crawl.next())) == ["http://a.test/", "http://b.test/"]
