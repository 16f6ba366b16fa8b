"""Values that no crawl needs, but that occur anyway: absurd years, arrays numbered from 0, billions of pages."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from helpers import DAY, SECOND, Crawl, codes, result_of

# A call of every verb that takes a time, but for that time.
CALLS = {
    "add_pages": "urls => '{http://a.test/8,http://a.test/9}'",
    "block_host": "host => 'b.test'",
    "extend_lease": "lease_id => 1",
    "hint_change": "page_ids => '{2}'",
    "next_pages": "n => 10",
    "report_pages": "page_ids => '{1}', lease_ids => '{null}', statuses => '{200}'",
    "set_host": "host => 'a.test'",
    "set_interval": "page_ids => '{1}'",
    "take_slot": "host => 'b.test'",
}
TIMES = ["4714-11-24 00:00+00 BC", "294276-12-31 23:59:59+00", "-infinity", "infinity", "epoch", "2199-12-31 23:59+00"]
INTERVALS = ["-178000000 years", "178000000 years", "0", "1 microsecond", "2147483647 months", "7 days", "30 days"]


def extremes(crawl: Crawl) -> Iterator[str]:
    """Every public verb with extreme times, as the catalogue knows them."""
    arguments = crawl.rows(
        """
        select p.proname as verb, a.name, a.type::regtype::text as type
        from pg_proc p cross join unnest(p.proargnames, p.proargtypes::oid[]) as a (name, type)
        where p.pronamespace = 'recrawl'::regnamespace and a.type::regtype::text ~ '^(timestamp|interval)'
        """
    )
    assert {a["verb"] for a in arguments} == set(CALLS)
    for a in arguments:
        for extreme in TIMES if a["type"].startswith("timestamp") else INTERVALS:
            value = f'{{"{extreme}"}}' if a["type"].endswith("[]") else extreme
            for _ in range(2):
                yield f"select * from {a['verb']}({CALLS[a['verb']]}, {a['name']} => '{value}')"
    keys = crawl.rows(
        "select attname as name from pg_attribute join unnest(result_keys()) key on key = attname"
        " where attrelid in ('result'::regclass, 'result_extras'::regclass)"
        " and (atttypid = 'timestamptz'::regtype or attname in ('retry_after', 'crawl_delay'))"
    )
    assert len(keys) == 5
    for key in keys:
        for extreme in [*TIMES, "9" * 90, "-1"]:
            status = 429 if key["name"] == "retry_after" else 200
            yield f"""select * from report('[{{"page_id": 2, "status": {status}, "{key["name"]}": "{extreme}"}}]')"""
    for setting in crawl.rows("select name from settings where unit = 'interval'"):
        for extreme in INTERVALS:
            yield f"select set_setting('{setting['name']}', '{extreme}')"


def test_no_time_that_any_verb_takes_stops_the_crawl(crawl: Crawl) -> None:
    pages = [f"http://a.test/{i}" for i in range(8)]
    for i, extreme in enumerate(TIMES[:4]):  # what was due then all at once
        crawl.rows("select * from add_pages(%s, due => array[%s::timestamptz])", pages[2 * i : 2 * i + 2], extreme)
    crawl.rows("select * from add_pages(%s)", pages)
    for call in extremes(crawl):
        with suppress(psycopg.errors.InvalidParameterValue):
            crawl.rows(call)
    crawl.value("select set_setting('max_ahead', '1 minute')")
    crawl.value("select set_setting('default_gap', '1 millisecond')")
    crawl.value("select set_host('a.test', gap => '1 millisecond')")
    crawl.value("select unblock_host('a.test')")
    crawl.value("select recrawl_internal.tick(100, 1000)")
    out = crawl.rows("select * from next_pages(1000, '1 minute')")
    assert len(out) >= 5
    answers = crawl.rows("select * from report(%s)", Jsonb([result_of(page) for page in out[1:]]))
    assert set(codes(answers)) == {"ok"}
    for view in ("page_status", "host_status", "queue_status", "lease_status"):
        assert crawl.rows(f"select * from {view}"), "Python can read every time in it"


@pytest.mark.parametrize("due", ["4714-11-24 00:00+00 BC", "294276-12-31 00:00+00", "1969-12-30", "2200-01-03"])
def test_a_due_time_far_from_our_age_is_invalid(crawl: Crawl, due: str) -> None:
    (row,) = crawl.rows("select * from add_pages('{http://a.test/}', due => array[%s::timestamptz])", due)
    assert (row["code"], row["detail"][:40]) == ("invalid", "due must lie between 1970 and 2200, or b")


def test_so_it_is_in_a_report_of_a_page_that_cannot_be(crawl: Crawl) -> None:
    report = "select * from report_pages('{-1}', '{null}', '{200}', due => '{4714-11-24 00:00+00 BC}')"
    assert codes(crawl.rows(report)) == ["invalid"]


def test_a_block_until_a_year_that_calendars_do_not_have_is_one_without_end(crawl: Crawl) -> None:
    crawl.value("select block_host('a.test', '20000-01-01')")
    assert crawl.value("select blocked_until = 'infinity' from host")


@pytest.mark.parametrize("gap", ["1 second", "30 days"])
@pytest.mark.parametrize("per_host", [None, 1, 2_147_483_647])
@pytest.mark.parametrize("ahead", [0 * SECOND, 10 * SECOND])
@pytest.mark.parametrize("kinds", ["new", "due", "new due"])
def test_a_million_pages_may_be_asked_for(
    crawl: Crawl, gap: str, per_host: int | None, ahead: timedelta, kinds: str
) -> None:
    crawl.value("select set_setting('max_per_call', '1000000')")
    crawl.value("select set_setting('default_gap', %s)", gap)
    if "new" in kinds:
        crawl.add(*(f"http://a.test/new/{i}" for i in range(50)))
    if "due" in kinds:
        crawl.add(*(f"http://a.test/{i}" for i in range(50)), due=[crawl.now - DAY])
    crawl.tick()
    slots = 11 if ahead and per_host != 1 and gap == "1 second" else 1
    assert len(crawl.next(1_000_000, ahead, per_host=per_host)) == slots


def test_a_host_with_many_pages_and_a_long_gap_is_popped(crawl: Crawl) -> None:
    crawl.value("select set_host('a.test', gap => '30 days')")
    crawl.add(*(f"http://a.test/{i}" for i in range(90_000)), due=[crawl.now - DAY])
    crawl.connection.execute("select drain_at(%s, 100000)", [crawl.now])
    assert len(crawl.next(10_000, 10 * SECOND)) == 1


# ------------------------------------------------------------------------------------------------- arrays


@pytest.mark.parametrize("value", ["{7}", "[0:0]={7}", "[-3:-3]={7}", "[9:9]={7}", "{{7}}", "[0:0][5:5]={{7}}"])
@pytest.mark.parametrize("column", ["value", "rate", "due", "meta"])
def test_an_array_means_its_elements_wherever_they_are_numbered_from(crawl: Crawl, column: str, value: str) -> None:
    element = {"due": '"2031-01-01 00:00+00"'}.get(column, "7")
    array = value.replace("7", element)
    for url in ("'{http://a.test/1}'", "'[0:1]={http://a.test/2,http://a.test/3}'", "'{{http://a.test/4}}'"):
        rows = crawl.rows(f"select * from add_pages({url}, {column} => '{array}')")
        assert set(codes(rows)) == {"new"}
    given = {"value": "pinned_value", "due": "date_trunc('day', due_at + '1 s')"}.get(column, column)
    found = {str(row["given"]) for row in crawl.rows(f"select {given} as given from page_status")}
    assert found in ({"7.0"}, {"7"}, {"2031-01-01 00:00:00+00:00"})


@pytest.mark.parametrize("ids", ["[0:1]={%s,%s}", "{{%s},{%s}}", "[7:7][0:1]={{%s,%s}}"])
def test_so_it_does_in_all_other_verbs(crawl: Crawl, ids: str) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    pages = crawl.next()
    of_pages = ids % tuple(page["page_id"] for page in pages)
    lease_ids, statuses = ids % (pages[0]["lease_id"], pages[0]["lease_id"]), ids % (200, 200)
    assert crawl.value("select release_at(%s, %s, %s)", crawl.now, pages[0]["lease_id"], of_pages) == 2
    crawl.wait(SECOND)
    pages = crawl.next()
    lease_ids = ids % (pages[0]["lease_id"], pages[0]["lease_id"])
    report = "select * from report_pages_at(%s, %s, %s, %s, %s, null, null, null, null)"
    changed = ids % ("true", "false")
    assert codes(crawl.rows(report, crawl.now, of_pages, lease_ids, statuses, changed)) == ["ok", "ok"]
    assert crawl.value("select fetch_now_at(%s, %s)", crawl.now, of_pages) == 2
    crawl.value("select set_host('a.test', gap => '9 s', reset => %s)", "[0:0]={max_pages}")
    assert crawl.value("select keep_out(%s)", of_pages) == 2


@pytest.mark.parametrize(
    "links",
    [
        [["http://x.test/1", "http://x.test/2"], ["http://x.test/3", "http://x.test/4"]],
        [[["http://x.test/1"]]],
        "{{http://x.test/1,http://x.test/2}}",
    ],
)
def test_links_are_one_list(crawl: Crawl, links: object) -> None:
    crawl.add("http://a.test/")
    (row,) = crawl.report_ok(crawl.next(), links=links)
    assert (row["code"], row["detail"]) == ("invalid", "links must be one list of URLs, without lists in it")
    assert crawl.value("select count(*) from page") == 1


@pytest.mark.parametrize("first", [-20_000, 0, 1, 20_000])
def test_the_limit_of_links_counts_them_wherever_they_are_numbered_from(crawl: Crawl, first: int) -> None:
    crawl.add("http://a.test/")
    array = f"[{first}:{first + 10_001}]={{{','.join(f'http://x.test/{i}' for i in range(10_002))}}}"
    (row,) = crawl.report_ok(crawl.next(), links=array)
    assert (row["code"], row["detail"]) == ("ok", "the first 10000 of its 10002 links were taken")
    assert crawl.value("select count(*) from page") == 10_001
