"""How often a page changes, learnt inside report."""

from datetime import timedelta

import numpy as np
import psycopg
import pytest

from helpers import DAY, HOUR, MINUTE, Crawl, Row, misplaced, result_of
from recrawl.lab.methods import beliefs, signals
from recrawl.lab.methods.plain_interval import plain_interval

PRIOR = (0.7, 3.5)  # before anything is known: see migrations/versions/0001_first/hosts.sql


# ---------------------------------------------------------------------------------------- the filter, against the model


def columns(size: int) -> list[np.ndarray]:
    rng = np.random.default_rng(2)
    had_changes, had_days = 10 ** rng.uniform(-9, 5, size), 10 ** rng.uniform(-9, 5, size)
    prior_changes, prior_days = 10 ** rng.uniform(-1.3, 1, size), 10 ** rng.uniform(-3, 6, size)
    return [had_changes, had_days, prior_changes, prior_days, 10 ** rng.uniform(-8, 8, size)]


def in_sql(
    connection: psycopg.Connection, given: list[np.ndarray], counted: int | None, changed: bool | None, age: np.ndarray
) -> np.ndarray:
    rows = connection.execute(
        """
        select l.seen_changes, l.seen_days
        from unnest(%b::float8[], %b::float8[], %b::float8[], %b::float8[], %b::float8[], %b::float8[]) with ordinality
                 as g (had_changes, had_days, prior_changes, prior_days, days, age, place),
             recrawl_internal.learnt(had_changes, had_days, prior_changes, prior_days, days, null, %s::int, %s::boolean,
                                     nullif(age, 'NaN')) l
        order by place
        """,
        [*(column.tolist() for column in given), age.tolist(), counted, changed],
    ).fetchall()
    return np.array(rows).T


@pytest.mark.parametrize("what", ["unchanged", "changed", "counted", "modified"])
def test_sql_learns_what_the_model_learns(connection: psycopg.Connection, what: str) -> None:
    had_changes, had_days, prior_changes, prior_days, days = given = columns(5000)
    age = days * np.random.default_rng(3).uniform(0.001, 0.999, 5000) + 3 / 86400
    age = np.minimum(age, days * 0.9999) if what == "modified" else np.full(5000, np.nan)
    if what == "modified":
        keep = age > beliefs.ANSWERED_NOW
        given, age = [column[keep] for column in given], age[keep]
        had_changes, had_days, prior_changes, prior_days, days = given
    before = beliefs.remembered(prior_changes + had_changes, prior_days + had_days, prior_changes, prior_days, days)
    a, b = {
        "unchanged": lambda: beliefs.unchanged(*before, days),
        "changed": lambda: beliefs.changed(*before, days),
        "counted": lambda: beliefs.counted(*before, days, 3),
        "modified": lambda: beliefs.modified(*before, days, age),
    }[what]()
    changes, spent = in_sql(
        connection, given, 3 if what == "counted" else None, None if what == "counted" else what != "unchanged", age
    )
    np.testing.assert_allclose(prior_changes + changes, a, rtol=1e-9)
    np.testing.assert_allclose(prior_days + spent, b, rtol=1e-9)


def test_sql_gives_a_visit_that_was_brought_forward_the_same_worth(connection: psycopg.Connection) -> None:
    random = np.random.default_rng(4)
    planned, rate = 10 ** random.uniform(-6, 5, 5000), 10 ** random.uniform(-9, 4, 5000)
    days = planned * random.uniform(0, 1, 5000)
    rows = connection.execute(
        "select recrawl_internal.days_worth(days, planned, rate)"
        " from unnest(%b::float8[], %b::float8[], %b::float8[]) with ordinality as g (days, planned, rate, place)"
        " order by place",
        [days.tolist(), planned.tolist(), rate.tolist()],
    ).fetchall()
    worth = signals.days_worth(days, planned, rate)
    np.testing.assert_allclose(np.array(rows).T[0], worth, rtol=1e-6, atol=1e-30)


def test_sql_gives_the_same_interval(connection: psycopg.Connection) -> None:
    a, b = 10 ** np.linspace(-1.3, 6, 1000), np.full(1000, 2.0)
    rows = connection.execute(
        "select i.low, i.high from unnest(%b::float8[], %b::float8[]) with ordinality as g (a, b, place),"
        " recrawl_internal.rate_interval(a, b) i order by place",
        [a.tolist(), b.tolist()],
    ).fetchall()
    np.testing.assert_allclose(np.array(rows).T, plain_interval(a, b), rtol=1e-9)


# --------------------------------------------------------------------------------------------------------- in reports


def fetched(crawl: Crawl, after: timedelta = timedelta(0), **what: object) -> Row:
    """One more fetch of the only page, some time after the last one; its row of page_status."""
    crawl.wait(after)
    page_id = crawl.value("select page_id from page")
    (answer,) = crawl.report({"page_id": page_id, "status": 200, "fetched_at": crawl.now.isoformat()} | what)
    assert answer["code"] == "ok"
    return crawl.page("http://a.test/")


@pytest.fixture
def page(crawl: Crawl) -> Row:
    """One page, fetched once."""
    crawl.add("http://a.test/")
    return fetched(crawl, content_hash="h1", etag='"x"')


def test_a_first_fetch_sets_the_base_and_says_nothing_about_changes(page: Row) -> None:
    assert page["rate"] == pytest.approx(PRIOR[0] / PRIOR[1])
    assert page["rate_low"] < page["rate"] < page["rate_high"]


@pytest.mark.parametrize(
    "nothing_new",
    [
        {"status": 304},
        {"changed": False},
        {"content_hash": "h1"},
        {"changes": 0},
        {"last_modified": "2029-12-01T00:00:00Z"},
        {"status": 304, "changes": 3},
        {"etag": 'W/"x"'},
        {"etag": '"x"', "last_modified": "2031-01-01"},
        {"changed": False, "etag": '"y"'},
        {"content_hash": "h1", "etag": '"y"'},
    ],
)
def test_a_day_without_a_change_lowers_the_rate(crawl: Crawl, page: Row, nothing_new: dict[str, object]) -> None:
    again = fetched(crawl, DAY, **nothing_new)
    assert again["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 1))
    assert again["changes"] == 0


@pytest.mark.parametrize(
    "something_new",
    [
        {"changed": True},
        {"content_hash": "h2"},
        {"content_hash": "h2", "last_modified": "2031-01-01"},
        {"etag": '"y"'},
        {"etag": 'W/"y"', "last_modified": "2029-12-01"},
        {"changed": True, "etag": '"x"'},
        {"content_hash": "h2", "etag": '"x"'},
    ],
)
def test_a_change_seen_after_a_day_raises_it(crawl: Crawl, page: Row, something_new: dict[str, object]) -> None:
    again = fetched(crawl, DAY, **something_new)
    a, b = beliefs.changed(*PRIOR, 1)
    assert again["rate"] == pytest.approx(float(a / b), rel=1e-6)
    assert again["changes"] == 1


def test_counted_changes_all_count(crawl: Crawl, page: Row) -> None:
    again = fetched(crawl, DAY, changes=5)
    assert again["rate"] == pytest.approx((PRIOR[0] + 5) / (PRIOR[1] + 1))
    assert again["changes"] == 5


def test_a_last_modified_between_the_two_fetches_dates_the_change(crawl: Crawl, page: Row) -> None:
    modified = crawl.now + DAY * 0.75
    again = fetched(crawl, DAY, last_modified=modified.isoformat())
    assert again["rate"] == pytest.approx((PRIOR[0] + 1) / (PRIOR[1] + 0.25))


def test_another_last_modified_is_a_change_even_one_before_the_last_fetch(crawl: Crawl, page: Row) -> None:
    fetched(crawl, DAY, changed=True, last_modified="2029-11-01")
    put_back = fetched(crawl, DAY, last_modified="2029-10-01")
    assert put_back["changes"] == 2
    assert fetched(crawl, DAY, last_modified="2029-10-01")["changes"] == 2


def test_a_fetch_with_nothing_to_compare_leaves_that_to_the_next(crawl: Crawl, page: Row) -> None:
    silent = fetched(crawl, DAY)
    assert (silent["etag"], silent["last_modified"], silent["content_hash"], silent["sketch"]) == (None,) * 4
    assert fetched(crawl, DAY, status=304)["rate"] == page["rate"], "unchanged since a fetch that said nothing"
    again = fetched(crawl, DAY, etag='"x"')
    assert again["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 3))
    assert (again["etag"], again["content_hash"], again["changes"]) == ('"x"', "h1", 0)
    assert fetched(crawl, DAY, status=304)["rate"] < again["rate"]


def test_of_a_fetch_with_nothing_to_compare_nothing_is_handed_out(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.report_ok(crawl.next(), etag='"x"', last_modified="2029-12-01", content_hash="h1")
    crawl.wait(DAY)
    crawl.report_ok(crawl.next())
    crawl.wait(DAY)
    (again,) = crawl.next()
    assert (again["etag"], again["last_modified"], again["content_hash"]) == (None, None, None)


def test_what_the_crawler_tells_itself_is_about_the_last_fetch(crawl: Crawl, page: Row) -> None:
    fetched(crawl, DAY)
    again = fetched(crawl, DAY, changed=False, etag='"y"')
    assert again["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 1))
    assert (again["etag"], again["content_hash"]) == ('"y"', None), "which version the hash was of is not known"


def test_another_kind_of_validator_begins_anew(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    fetched(crawl, content_hash="h1")
    assert fetched(crawl, DAY, etag='"x"')["rate"] == pytest.approx(PRIOR[0] / PRIOR[1])
    again = fetched(crawl, DAY, etag='"x"')
    assert again["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 1))
    assert again["content_hash"] is None


@pytest.mark.parametrize("status", [404, 500])
def test_what_comes_with_a_failure_is_not_the_pages(crawl: Crawl, page: Row, status: int) -> None:
    failed = fetched(crawl, DAY, status=status, etag='"error"', last_modified="2031-01-01")
    assert (failed["etag"], failed["last_modified"]) == ('"x"', None)
    assert fetched(crawl, DAY, etag='"x"')["changes"] == 0


def test_a_server_that_calls_every_answer_new_tells_nothing(crawl: Crawl, page: Row) -> None:
    again = fetched(crawl, DAY, last_modified=(crawl.now + DAY).isoformat())
    assert (again["rate"], again["changes"]) == (page["rate"], 0)


@pytest.mark.parametrize("status", [0, 404, 429, 500, 503])
def test_a_failure_says_nothing_about_changes(crawl: Crawl, page: Row, status: int) -> None:
    assert fetched(crawl, DAY, status=status, changed=True)["rate"] == page["rate"]


def test_a_fetch_of_which_nothing_is_said_says_nothing(crawl: Crawl, page: Row) -> None:
    assert fetched(crawl, DAY)["rate"] == page["rate"]


def test_the_rate_of_a_page_that_is_always_seen_changed_keeps_rising(crawl: Crawl, page: Row) -> None:
    seen = [fetched(crawl, DAY, changed=True)["rate"] for _ in range(20)]
    assert seen == sorted(seen) and seen[-1] > 1.5


def test_a_static_page_that_begins_to_change_is_noticed(crawl: Crawl, page: Row) -> None:
    for _ in range(60):
        last = fetched(crawl, 5 * DAY, changed=False)
    assert last["rate"] < 0.015
    visits = 0
    while last["rate"] < 0.5:
        last = fetched(crawl, DAY, changed=True)
        visits += 1
    assert visits <= 90


def test_a_pinned_rate_is_what_counts_until_it_is_unpinned(crawl: Crawl, page: Row) -> None:
    crawl.value("select set_rate_at(%s, %s, 4)", crawl.now, page["page_id"])
    pinned = fetched(crawl, DAY, changed=False)
    assert (pinned["rate"], pinned["rate_low"], pinned["rate_high"]) == (4, 4, 4)
    crawl.value("select set_rate_at(%s, %s, null)", crawl.now, page["page_id"])
    assert crawl.page("http://a.test/")["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 1)), "it was learnt meanwhile"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("set_rate(999, 1)", "set_rate: there is no page 999"),
        ("set_rate(1, -1)", "set_rate: rate must be 0 or between 1e-30 and 1e30 changes per day, got -1"),
        ("set_rate(1, 'NaN')", "set_rate: rate must be 0 or between 1e-30 and 1e30 changes per day, got NaN"),
        ("set_rate(1, 'inf')", "set_rate: rate must be 0 or between 1e-30 and 1e30 changes per day, got Infinity"),
    ],
)
def test_misuse_of_set_rate_is_refused(crawl: Crawl, call: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(f"select {call}")
    assert error.value.diag.message_primary == message


@pytest.mark.parametrize("seconds", [1e-6, 1e-3, 1, 86400 * 365 * 20])
@pytest.mark.parametrize("changed", [True, False])
def test_no_interval_between_two_fetches_is_an_error(crawl: Crawl, page: Row, seconds: float, changed: bool) -> None:
    for _ in range(3):
        assert fetched(crawl, timedelta(seconds=seconds), changed=changed)["rate"] > 0


def test_a_leased_fetch_teaches_too(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    (first,) = crawl.next()
    crawl.report(result_of(first, content_hash="h1"))
    crawl.wait(DAY)
    (second,) = crawl.next()
    crawl.report(result_of(second, content_hash="h1"))
    assert crawl.page("http://a.test/")["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + 1))


# -------------------------------------------------------------------------------------------------------------- hints


def hinted(crawl: Crawl, *arguments: object) -> Row:
    """The only page, due in ten days and changing twice a day, after a hint."""
    crawl.add("http://a.test/", rate=[2.0], due=[crawl.now + 10 * DAY])
    crawl.tick()
    page_id = crawl.value("select page_id from page")
    names = ", ".join("%s::float8" for _ in arguments)
    crawl.value(f"select hint_change_at(%s, array[%s::bigint], {names})", crawl.now, page_id, *arguments)
    assert misplaced(crawl) == []
    return crawl.page("http://a.test/")


@pytest.mark.parametrize(("recall", "false_hints_per_day"), [(0.5, 1.0), (0.9, 2.0), (0.1, 0.3), (0.99, 100.0)])
def test_a_hint_brings_a_page_forward_by_the_age_it_is_worth(
    crawl: Crawl, recall: float, false_hints_per_day: float
) -> None:
    days = float(signals.age_of_a_signal(2.0, recall, false_hints_per_day))
    assert 0 < days < 10
    status = hinted(crawl, recall, false_hints_per_day)
    assert status["due_at"] == pytest.approx(crawl.now + (10 - days) * DAY, abs=timedelta(milliseconds=1))


@pytest.mark.parametrize(("recall", "false_hints_per_day"), [(1.0, 1.0), (0.5, 0.0), (0.999, 1e-9)])
def test_a_sure_hint_makes_it_due_now_and_not_before(crawl: Crawl, recall: float, false_hints_per_day: float) -> None:
    assert hinted(crawl, recall, false_hints_per_day)["due_at"] == crawl.now
    assert [page["url"] for page in crawl.next()] == ["http://a.test/"]


def test_a_hint_that_cannot_be_true_moves_nothing(crawl: Crawl) -> None:
    assert hinted(crawl, 0.0, 1.0)["due_at"] == crawl.now + 10 * DAY


def test_a_hint_of_the_least_recall_there_is_moves_nothing(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[0.1], due=[crawl.now + DAY])
    assert crawl.value("select hint_change_at(%s, '{1}', 5e-324, 0.1)", crawl.now) == 0


def test_a_hint_that_cannot_make_a_page_earlier_leaves_it_as_it_is(crawl: Crawl) -> None:
    """It was counted, and its due time counted as moved, so that allocations left it alone until the next fetch."""
    crawl.value("select set_setting('shortest_interval', '1 hour')")
    crawl.add("http://a.test/", rate=[2.0])
    crawl.tick()
    crawl.report(result_of(crawl.next()[0], due=(crawl.now + HOUR / 2).isoformat()))
    crawl.wait(10 * MINUTE)
    assert crawl.value("select hint_change_at(%s, '{1}', 1, 1)", crawl.now) == 0
    assert crawl.value("select planned_due from page") is None


def test_a_hint_about_a_page_that_is_out_changes_nothing_now(crawl: Crawl) -> None:
    crawl.add("http://a.test/", rate=[2.0])
    (page,) = crawl.next()
    crawl.value("select hint_change_at(%s, array[%s::bigint], 0.9, 0.1)", crawl.now, page["page_id"])
    crawl.wait(5 * MINUTE)
    assert crawl.next() == []


@pytest.mark.parametrize("hint", ["select hint_change_at(%s, array[%s::bigint], 1, 1)",
                                  "select fetch_now_at(%s, array[%s::bigint])"])  # fmt: skip
def test_a_fetch_that_was_brought_forward_says_what_the_planned_one_would_have(crawl: Crawl, hint: str) -> None:
    crawl.value("select set_setting('frequency', '0.1')")
    crawl.add("http://a.test/")
    (first,) = crawl.next()
    crawl.report(result_of(first))
    rate, seen = PRIOR[0] / PRIOR[1], [DAY * 2, DAY * 3]
    for changed in (False, True):
        crawl.wait(seen[changed])
        crawl.value(hint, crawl.now, first["page_id"])
        crawl.tick()
        (page,) = crawl.next()
        crawl.report(result_of(page, changed=changed))
        status = crawl.page("http://a.test/")
        assert status["due_at"] == pytest.approx(crawl.now + 10 * DAY, abs=timedelta(seconds=1))
        if not changed:
            worth = float(signals.days_worth(2, 10, rate))
            assert 0 < worth < 2
            assert status["rate"] == pytest.approx(PRIOR[0] / (PRIOR[1] + worth), rel=1e-6)
        else:
            a, b = beliefs.changed(PRIOR[0], PRIOR[1] + worth * np.exp(-1 / 50), 10)
            assert status["rate"] == pytest.approx(float(a / b), rel=1e-6)
    crawl.wait(10 * DAY)
    before = crawl.value("select seen_days from page")
    crawl.report_ok(crawl.next(), changed=False)
    assert crawl.value("select seen_days from page") == pytest.approx(before * np.exp(-1 / 50) + 10), "this was not"


def test_a_false_hint_of_a_page_that_changes_all_the_time_teaches_nothing(crawl: Crawl) -> None:
    """An hour without a change, where two thousand were to come: that is next to impossible."""
    crawl.add("http://a.test/")
    crawl.report_ok(crawl.next())
    crawl.wait(DAY)
    crawl.report_ok(crawl.next(), changes=10_000)
    before = crawl.page("http://a.test/")["rate"]
    crawl.wait(HOUR)
    assert crawl.value("select hint_change_at(%s, '{1}', 0.99, 1e-9)", crawl.now) == 1
    crawl.tick()
    crawl.report_ok(crawl.next(), changed=False)
    assert crawl.page("http://a.test/")["rate"] == pytest.approx(before, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'{1}', 2", "hint_change: recall must lie between 0 and 1, got 2"),
        ("'{1}', 'NaN'", "hint_change: recall must lie between 0 and 1, got NaN"),
        ("'{1}', 0.5, -1", "hint_change: false_hints_per_day must lie between 0 and 1e30 hints per day, got -1"),
    ],
)
def test_misuse_of_hint_change_is_refused(crawl: Crawl, arguments: str, message: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as error:
        crawl.rows(f"select hint_change({arguments})")
    assert error.value.diag.message_primary == message


@pytest.mark.parametrize(("objective", "price"), [("harmonic", 5e29), ("delay", 1e-20)])
def test_a_frequency_beyond_what_a_real_holds_is_clamped_and_spoils_no_report(
    crawl: Crawl, objective: str, price: float
) -> None:
    crawl.add("http://a.test/", "http://b.test/", value=[1e30, 1e-16], rate=[1.0])
    crawl.value("select set_setting('shortest_interval', 'none')")
    crawl.connection.execute("update host_terms set objective = %s, price = %s where host_id = 0", [objective, price])
    pages = crawl.next()
    assert {row["code"] for row in crawl.report_ok(pages)} == {"ok"}
    crawl.value("select set_rate_at(%s, %s, 1e30)", crawl.now, pages[0]["page_id"])
    stored = crawl.rows("select frequency from page")
    assert all(row["frequency"] * (1 + 1e-6) >= 1e-4 and row["frequency"] <= 86400 for row in stored)


def test_a_rate_given_to_a_page_that_takes_no_part_moves_nothing(crawl: Crawl) -> None:
    crawl.add("http://a.test/")
    crawl.connection.execute("update host_terms set objective = 'freshness', price = 0.5 where host_id = 0")
    crawl.value("select set_rate_at(%s, 1, null)", crawl.now)
    assert crawl.value("select frequency from page") is None
