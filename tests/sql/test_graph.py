"""The graph that reports make: links, relevance and sketches."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from helpers import Crawl, Row, codes, result_of
from recrawl.client import fingerprint

ONE_LINK = {"http://a.test/": ["http://b.test/"]}


def crawled(crawl: Crawl, links: dict[str, list[str]]) -> dict[str, int]:
    """Pages with these links, reported once; the id of every page by URL."""
    crawl.add(*links)
    answers = crawl.report(*({"url": url, "status": 200, "links": targets} for url, targets in links.items()))
    assert codes(answers) == ["ok"] * len(links)
    return {row["url"]: row["page_id"] for row in crawl.rows("select url, page_id from page")}


def linked(crawl: Crawl) -> set[tuple[str, str]]:
    return {
        (row["source"], row["target"])
        for row in crawl.rows(
            "select s.url as source, t.url as target from graph_link"
            " join page s on s.page_id = source_id join page t on t.page_id = target_id"
        )
    }


def urls(rows: list[Row]) -> list[str]:
    return [row["url"] for row in rows]


# ------------------------------------------------------------------------------------------------------------- links


def test_links_are_replaced_as_a_whole_distinct_and_without_the_page_itself(crawl: Crawl) -> None:
    a, b, c = "http://a.test/", "http://b.test/", "http://c.test/"
    crawled(crawl, {a: [b, c, b, "HTTP://B.test:80/#x", a], b: []})
    assert linked(crawl) == {(a, b), (a, c)}
    crawl.report({"url": a, "status": 200, "links": [c]})
    assert linked(crawl) == {(a, c)}
    crawl.report({"url": a, "status": 200})
    assert linked(crawl) == {(a, c)}, "absent is unknown: the links stay"
    crawl.report({"url": a, "status": 200, "links": []})
    assert linked(crawl) == set()


def test_the_same_links_again_write_nothing(crawl: Crawl) -> None:
    a, b = "http://a.test/", "http://b.test/"
    crawled(crawl, {a: [b]})
    before = crawl.rows("select ctid, xmin, * from link")
    for result in ({"status": 200, "links": [b]}, {"status": 200, "links": [b, b]}, {"status": 404}):
        crawl.report({"url": a} | result)
        assert crawl.rows("select ctid, xmin, * from link") == before
    crawl.report({"url": a, "status": 200, "links": []})
    assert crawl.rows("select ctid, xmin, * from link") != before


def test_successors_and_predecessors_are_found_both_ways(crawl: Crawl) -> None:
    hosts = [f"http://{name}.test/" for name in "abcd"]
    a, b, c, d = hosts
    ids = crawled(crawl, {a: [b], b: [d], c: [a, b, d], d: []})
    assert urls(crawl.rows("select * from successors(%s)", ids[c])) == [a, b, d]
    assert urls(crawl.rows("select * from predecessors(%s)", ids[d])) == [b, c]
    assert crawl.rows("select * from predecessors(%s)", ids[c]) == []
    assert crawl.rows("select * from successors(12345)") == []
    nodes = crawl.rows("select url, out_links from graph_node order by url")
    assert [(row["url"], row["out_links"]) for row in nodes] == [(a, 1), (b, 1), (c, 3), (d, 0)]


def test_ids_that_only_seem_to_be_there_are_not_predecessors(crawl: Crawl) -> None:
    ids = crawled(crawl, {"http://a.test/": ["http://b.test/", "http://c.test/"]})
    # The last bytes of the first and the first of the second together look like page 256 · b.
    crawl.value("select setval('page_id', %s)", 256 * ids["http://b.test/"] - 1)
    (other,) = crawl.add("http://other.test/")
    assert other["page_id"] == 256 * ids["http://b.test/"]
    found = "select count(*) from link where position(int8send(%s) in targets) > 0"
    assert crawl.value(found, other["page_id"]) == 1
    assert crawl.rows("select * from predecessors(%s)", other["page_id"]) == []


def test_a_page_may_have_ten_thousand_links(crawl: Crawl) -> None:
    ids = crawled(crawl, {"http://a.test/": [f"http://b.test/{n}" for n in range(10_000)]})
    assert crawl.value("select count(*) from successors(%s)", ids["http://a.test/"]) == 10_000
    assert crawl.value("select count(*) from graph_link") == 10_000


@pytest.mark.parametrize("verb", ["keep_out", "exclude"])
def test_a_page_that_is_taken_out_goes_with_its_links_both_ways(crawl: Crawl, verb: str) -> None:
    a, b, c = "http://a.test/", "http://b.test/", "http://c.test/"
    ids = crawled(crawl, {a: [b], b: [c], c: [a]})
    if verb == "keep_out":
        crawl.value("select keep_out(%s)", [ids[b]])
    else:
        crawl.value("select exclude('b.test')")
    assert linked(crawl) == {(c, a)}
    assert crawl.rows("select * from successors(%s)", ids[a]) == []
    assert crawl.rows("select * from predecessors(%s)", ids[c]) == []
    assert crawl.rows("select * from successors(%s)", ids[b]) == []
    assert urls(crawl.rows("select url from graph_node order by url")) == [a, c]


def test_a_link_to_a_page_that_moved_leads_to_where_it_is_now(crawl: Crawl) -> None:
    old, new, source = "http://a.test/", "https://www.a.test/", "http://b.test/"
    crawled(crawl, {source: [old]})
    crawl.report({"url": old, "status": 301, "redirect_to": new})
    assert linked(crawl) == set(), "a page that moved is not in the graph"
    crawl.report({"url": source, "status": 200, "links": [old]})
    assert linked(crawl) == {(source, new)}
    crawl.report({"url": new, "status": 200, "links": [old]})
    assert linked(crawl) == {(source, new)}, "to itself"
    newest = "https://www.b.test/"
    crawl.report({"url": new, "status": 301, "redirect_to": newest})
    crawl.report({"url": source, "status": 200, "links": [old]})
    assert linked(crawl) == {(source, newest)}


def test_a_late_report_brings_no_link_of_a_forgotten_page_back(crawl: Crawl) -> None:
    crawled(crawl, ONE_LINK)
    crawl.tick()
    (leased,) = [page for page in crawl.next() if page["host"] == "b.test"]
    crawl.value("select keep_out(%s)", [leased["page_id"]])
    crawl.report(result_of(leased, links=["http://a.test/"]))
    assert crawl.value("select count(*) from link where page_id = %s", leased["page_id"]) == 0


# -------------------------------------------------------------------------------------------- relevance, value, sketch


def test_relevance_is_what_was_reported_last_unless_it_is_pinned(crawl: Crawl) -> None:
    (page,) = crawl.add("http://a.test/")

    def relevance() -> Any:
        return crawl.page("http://a.test/")["relevance"]

    assert relevance() is None
    crawl.report({"url": "http://a.test/", "status": 200, "relevance": 0})
    assert relevance() == 0, "is a value, and not unknown"
    crawl.value("select set_relevance(%s, 0.9)", page["page_id"])
    crawl.report({"url": "http://a.test/", "status": 200, "relevance": 0.25})
    assert relevance() == pytest.approx(0.9)
    crawl.value("select set_relevance(%s, null)", page["page_id"])
    assert relevance() == 0.25
    crawl.report({"url": "http://a.test/", "status": 200})
    assert relevance() == 0.25
    crawl.report({"url": "http://a.test/", "status": 200, "relevance": 1e-60})
    assert relevance() == 0


@pytest.mark.parametrize("wrong", [-0.1, 1.1, 1e300, "NaN"])
def test_a_relevance_out_of_range_spoils_its_own_row_alone(crawl: Crawl, wrong: object) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    bad, good = crawl.report(
        {"url": "http://a.test/", "status": 200, "relevance": wrong}, {"url": "http://b.test/", "status": 200}
    )
    assert (bad["code"], good["code"]) == ("invalid", "ok")
    assert "relevance must lie between 0 and 1, got" in bad["detail"]


def test_the_most_relevant_pages_come_first_and_the_unknown_not_at_all(crawl: Crawl) -> None:
    names = [f"http://{name}.test/" for name in "abcd"]
    crawl.add(*names)
    for name, relevance in zip(names, (0.2, 0, 0.8, None), strict=True):
        crawl.report({"url": name, "status": 200, "relevance": relevance})
    assert urls(crawl.rows("select * from top_relevant(10)")) == [names[2], names[0], names[1]]
    assert urls(crawl.rows("select * from top_relevant(1)")) == [names[2]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("set_value(1, -1)", "set_value: value must be 0 or between 1e-30 and 1e30, got -1"),
        ("set_value(1, 'Infinity')", "set_value: value must be 0 or between 1e-30 and 1e30, got Infinity"),
        ("set_value(1, 'NaN')", "set_value: value must be 0 or between 1e-30 and 1e30, got NaN"),
        ("set_value(77, 1)", "set_value: there is no page 77"),
        ("set_value(null, 1)", "set_value: there is no page null"),
        ("set_relevance(1, 1.5)", "set_relevance: relevance must lie between 0 and 1, got 1.5"),
        ("set_relevance(1, 'NaN')", "set_relevance: relevance must lie between 0 and 1, got NaN"),
        ("set_relevance(77, 1)", "set_relevance: there is no page 77"),
        ("top_hubs(0)", "top_hubs: n must be positive, got 0"),
        ("top_authorities(0)", "top_authorities: n must be positive, got 0"),
        ("top_relevant(0)", "top_relevant: n must be positive, got 0"),
        ("sketch_distance('{1}', '{2}')", "sketch_distance: a sketch has 8 numbers, got {1} and {2}"),
        (
            "sketch_distance('{1,2,3,4,5,6,7,8}', '{1,2,3,4,5,6,7,NULL}')",
            "sketch_distance: a sketch has 8 numbers, got {1,2,3,4,5,6,7,8} and {1,2,3,4,5,6,7,NULL}",
        ),
    ],
)
def test_misuse_is_told_by_name(crawl: Crawl, call: str, message: str) -> None:
    crawl.add("http://a.test/")
    with pytest.raises(psycopg.errors.InvalidParameterValue) as refused:
        crawl.value(f"select {call}")
    assert refused.value.diag.message_primary == message


def test_a_given_value_is_pinned_and_a_pinned_one_decides_who_goes_first(crawl: Crawl) -> None:
    crawl.add("http://a.test/1", "http://a.test/2", "http://a.test/3", value=[None, 5, None])
    crawl.tick()
    crawl.value("select set_value((select page_id from page where url = 'http://a.test/3'), 7)")
    crawl.tick()
    status = {row["url"][-1]: row for row in crawl.rows("select * from page_status")}
    assert [(status[n]["value"], status[n]["pinned_value"]) for n in "123"] == [(1, None), (5, 5), (7, 7)]
    order = []
    for _ in range(3):
        order += [page["url"][-1] for page in crawl.next()]
        crawl.wait(crawl.value("select interval '1 second'"))
    assert order == ["3", "2", "1"]


def test_a_value_found_while_somebody_pins_another_gives_way(crawl: Crawl, url: str) -> None:
    crawl.add("http://a.test/")
    with psycopg.connect(url) as pinning, ThreadPoolExecutor() as beside:
        pinning.execute("select recrawl.set_value(1, 7)")
        found = beside.submit(crawl.value, "select put_values('{1}', '{3}', null)")
        while not pinning.execute("select from pg_locks where not granted").fetchall():
            time.sleep(0.01)
        pinning.commit()
        assert found.result(60) == 0
    assert crawl.page("http://a.test/")["value"] == 7


def test_a_new_page_is_worth_a_part_of_the_page_that_links_to_it(crawl: Crawl) -> None:
    crawl.add("http://rich.test/", "http://poor.test/", "http://none.test/", value=[8.0, 0.5, 0.0])
    for name in ("rich", "poor", "none"):
        crawl.report({"url": f"http://{name}.test/", "status": 200, "links": [f"http://child.test/{name}"]})
    value = {row["url"]: row["value"] for row in crawl.rows("select url, value from page_status")}
    assert value["http://child.test/rich"] == 4
    assert value["http://child.test/poor"] == 0.25
    assert value["http://child.test/none"] == 0
    crawl.tick()
    (first,) = [page for page in crawl.next() if page["host"] == "child.test"]
    assert first["url"] == "http://child.test/rich"
    assert crawl.page("http://child.test/rich")["pinned_value"] is None


def test_values_shrink_from_link_to_link_but_never_out_of_bounds(crawl: Crawl) -> None:
    crawl.add("http://a.test/0", value=[1e-30])
    for n in range(3):
        crawl.report({"url": f"http://a.test/{n}", "status": 200, "links": [f"http://a.test/{n + 1}"]})
    assert crawl.page("http://a.test/3")["value"] == pytest.approx(1e-30)


def test_a_redirect_hands_its_value_over(crawl: Crawl) -> None:
    crawl.add("http://a.test/", value=[8])
    crawl.report({"url": "http://a.test/", "status": 301, "redirect_to": "http://b.test/"})
    assert crawl.page("http://b.test/")["value"] == 8


def test_a_sketch_tells_changes_from_noise(crawl: Crawl) -> None:
    text = " ".join(f"word{n}" for n in range(2000))
    versions = [text, text.replace("word777 ", "another "), " ".join(f"other{n}" for n in range(2000))]
    sketches = [fingerprint.sketch(version) for version in versions]
    assert sketches[0] == sketches[1], "one word of two thousand"
    crawl.add("http://a.test/")
    changes = []
    for content_hash, sketch in zip("xyz", sketches, strict=True):
        crawl.wait(crawl.value("select interval '1 day'"))
        crawl.report(
            {
                "url": "http://a.test/",
                "status": 200,
                "fetched_at": str(crawl.now),
                "content_hash": content_hash,
                "sketch": sketch,
            }
        )
        changes.append(crawl.page("http://a.test/")["changes"])
    assert changes == [0, 0, 1]
    assert crawl.page("http://a.test/")["sketch"] == sketches[2]


@pytest.mark.parametrize("sketch", [[1, 2], [1, 2, 3, 4, 5, 6, 7, None], [[1, 2, 3, 4], [5, 6, 7, 8]], [], "x", 5])
def test_a_sketch_that_is_none_spoils_its_own_row_alone(crawl: Crawl, sketch: object) -> None:
    crawl.add("http://a.test/", "http://b.test/")
    bad, good = crawl.report(
        {"url": "http://a.test/", "status": 200, "sketch": sketch}, {"url": "http://b.test/", "status": 200}
    )
    assert (bad["code"], good["code"]) == ("invalid", "ok") and "sketch" in bad["detail"]


def test_sql_and_python_find_sketches_equally_far_apart(crawl: Crawl) -> None:
    texts = ["one two three four five six", "one two three four five seven", "", "entirely something else in here"]
    sketches = [fingerprint.sketch(text) for text in texts]
    for one in sketches:
        for other in sketches:
            asked = crawl.value("select sketch_distance(%s, %s)", one, other)
            assert asked == fingerprint.distance(one, other)
    assert crawl.value("select sketch_distance(%s, null)", sketches[0]) is None


def test_json_has_no_say_in_types(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (answer,) = crawl.rows(
        "select * from report_at(%s, %s::jsonb)",
        crawl.now,
        json.dumps([{"url": "http://a.test/", "status": 200, "relevance": "much"}]),
    )
    assert answer["code"] == "invalid" and "relevance" in answer["detail"]
