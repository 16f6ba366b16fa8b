"""explain_page says why a page is not handed out now: an example of every code, and what it says to do does it."""

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg.rows import dict_row

from helpers import DAY, HOUR, MINUTE, SECOND, Crawl, Row, run_job
from sql.loads import Loaded, load, load_new
from sql.test_plans import cost

A, A2, A3, B = "http://a.test/1", "http://a.test/2", "http://a.test/3", "http://b.test/1"
DOCUMENT = Path(__file__).parents[2] / "docs" / "explain.md"


def wall() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
def here(crawl: Crawl) -> Crawl:
    """The tests run the proposed fixes now, so the story begins three days ago."""
    crawl.now = wall() - 3 * DAY
    return crawl


def ask(crawl: Crawl, what: str | int | None) -> list[Row]:
    return crawl.rows("select * from recrawl.explain_page(%s)", what)


def codes_of(rows: list[Row]) -> set[tuple[str, str]]:
    return {("now" if row["topic"] == "also" else row["topic"], row["code"]) for row in rows}


def find(rows: list[Row], topic: str, code: str) -> Row:
    (row,) = [row for row in rows if (topic, row["code"]) == ("now" if row["topic"] == "also" else row["topic"], code)]
    return row


# ---------------------------------------------------------------------------------------------- situations


def fetched(crawl: Crawl, *urls: str, **more: object) -> list[Row]:
    """Pages that were fetched once; the first of them half a day before now."""
    crawl.add(*urls, **({"rate": [1.0]} | more))  # type: ignore[arg-type]
    crawl.now = wall() - 12 * HOUR
    crawl.tick()
    pages = visit(crawl, len(urls))
    crawl.now = wall()
    return pages


def visit(crawl: Crawl, n: int, **more: object) -> list[Row]:
    pages = []
    for _ in range(n):
        taken = crawl.next(1)
        crawl.report_ok(taken, **more)
        crawl.tick()
        crawl.wait(SECOND)
        pages += taken
    assert len(pages) == n
    return pages


def reported(crawl: Crawl, **result: object) -> str:
    crawl.add(A)
    crawl.now = wall() - SECOND
    crawl.tick()
    crawl.report_ok(crawl.next(), **result)
    crawl.tick()
    return A


def due(crawl: Crawl, *urls: str) -> None:
    crawl.add(*urls, due=[wall() - MINUTE])
    crawl.now = wall() - 30 * SECOND
    crawl.tick()


def invalid(crawl: Crawl) -> str:
    return "ftp://a.test/"


def no_page(crawl: Crawl) -> int:
    return 12345


def is_host(crawl: Crawl) -> str:
    crawl.add("http://ann.blogs.test/", host=["blogs.test"])
    return "Ann.Blogs.test"


def unknown(crawl: Crawl) -> str:
    return A


def excluded_url(crawl: Crawl) -> str:
    crawl.value("select recrawl.exclude('/1$')")
    crawl.value("select recrawl.exclude('a.test')")
    return A


def host_full(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_host('a.test', max_pages => 1)")
    crawl.add(A)
    return A2


def being_added(crawl: Crawl) -> str:
    crawl.connection.execute(
        "insert into link_later (key, url, depth, tries) values (url_key('http://a.test/1'), 'http://a.test/1', 1, 1)"
    )
    return A


def excluded(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.tick()
    return excluded_url(crawl)


def kept_out(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.value("select recrawl.keep_out(array(select page_id from page))")
    return A


def gone(crawl: Crawl) -> str:
    return reported(crawl, status=410)


def moved(crawl: Crawl) -> str:
    return reported(crawl, status=301, redirect_to=B)


def leased(crawl: Crawl) -> str:
    due(crawl, A)
    crawl.now = wall()
    crawl.next()
    return A


def lease_expired(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.now = wall() - 6 * MINUTE
    crawl.tick()
    crawl.next(lease=MINUTE)
    return A


def inbox(crawl: Crawl) -> str:
    crawl.add(A)
    return A


def paused(crawl: Crawl) -> str:
    due(crawl, A)
    crawl.value("select recrawl.pause()")
    return A


def host_blocked(crawl: Crawl) -> str:
    due(crawl, A)
    crawl.value("select recrawl.block_host('a.test', reason => 'asked by mail')")
    return A


def host_busy(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_host('a.test', one_at_a_time => true)")
    due(crawl, A, A2)
    crawl.now = wall()
    assert crawl.next()[0]["url"] == A
    return A2


def clock(crawl: Crawl) -> str:
    due(crawl, A)
    crawl.now = wall() + HOUR
    crawl.tick()
    return A


def denied(crawl: Crawl) -> str:
    return reported(crawl, robots_denied=True)


def unreported(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.tick()
    for _ in range(8):
        taken = crawl.next(lease=MINUTE)
        crawl.wait(2 * MINUTE if taken else 10 * MINUTE)
        crawl.tick()
    crawl.now = wall()
    due_at = crawl.value("select due_at from page")
    crawl.connection.execute("update queue set due_at = %s", [wall() + HOUR])
    crawl.connection.execute("update page set due_at = (select due_at from queue)")
    assert due_at
    return A


def missing(crawl: Crawl) -> str:
    return reported(crawl, status=404)


def given_up(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_setting('max_attempts', '1')")
    return reported(crawl, status=500)


def backing_off(crawl: Crawl) -> str:
    return reported(crawl, status=0)


def set_due(crawl: Crawl) -> str:
    crawl.add(A, due=[wall() + DAY])
    crawl.tick()
    return A


def declined(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.now = wall() - SECOND
    (page,) = crawl.next()
    crawl.report({"page_id": page["page_id"], "lease_id": page["lease_id"], "declined": True})
    crawl.tick()
    return A


def done(crawl: Crawl) -> str:
    return reported(crawl, due="infinity")


def not_due(crawl: Crawl) -> str:
    fetched(crawl, A)
    return A


def brought_forward(crawl: Crawl) -> str:
    crawl.connection.execute("select recrawl.set_setting('frequency', '0.1')")
    fetched(crawl, A, rate=[None])
    crawl.value("select recrawl.hint_change(array(select page_id from page), 0.5, 0.2)")
    crawl.tick()
    return A


def host_gap(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_host('a.test', gap => '1 hour')")
    due(crawl, A, A2)
    crawl.now = wall()
    assert crawl.next()[0]["url"] == A
    return A2


def crawlers(crawl: Crawl) -> str:
    due(crawl, A)
    return A


def new_place(crawl: Crawl) -> str:
    crawl.add(A, A2, A3)
    crawl.tick()
    return A3


def new_share(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_setting('discovery', '0')")
    crawl.add(A)
    due(crawl, B)
    return A


def new_after_revisits(crawl: Crawl) -> str:
    crawl.add(A, A2, A3)
    crawl.add(*(f"http://a.test/due/{n}" for n in range(9)), due=[wall() - DAY])
    crawl.now = wall() - MINUTE
    crawl.tick()
    while crawl.value("select new_class from host") != 32:
        assert crawl.next(1)
        crawl.wait(2 * SECOND)
    crawl.add(B, value=[0.001])
    crawl.tick()
    return str(crawl.value("select page_id from new_page order by rank, page_id limit 1"))


def new_class(crawl: Crawl) -> str:
    crawl.add(A, value=[1])
    crawl.add(B, value=[100])
    crawl.tick()
    return A


def new_gap(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_host('a.test', gap => '1 hour')")
    crawl.add(A, A2)
    crawl.now = wall()
    crawl.tick()
    crawl.next()
    return A2


def new_crawlers(crawl: Crawl) -> str:
    crawl.add(A)
    crawl.tick()
    return A


def new_budget(crawl: Crawl) -> str:
    crawl.value("select recrawl.set_setting('budget', '24')")
    crawl.add(A, B, "http://c.test/")
    to_next_hour = 3600 - time.time() % 3600
    if to_next_hour < 20:
        time.sleep(to_next_hour)  # at the turn of the hour the budget has room for one more fetch
    crawl.now = wall()
    crawl.tick()
    taken = {page["url"] for page in crawl.next(lease=DAY)}
    return ({A, B} - taken).pop()


def allocated(crawl: Crawl, **terms: object) -> str:
    """Prices as an allocation would leave them."""
    fetched(crawl, A, rate=[None], value=[None])
    common = {"price": 1.0, "min_frequency": 0.01, "objective": "freshness", "is_capped": False} | terms
    names = ", ".join(common)
    crawl.connection.execute(
        f"update host_terms set ({names}) = row ({', '.join(['%s'] * len(common))}) where host_id = 0",
        list(common.values()),
    )
    return A


def price(crawl: Crawl) -> str:
    return allocated(crawl, min_frequency=0.0001)


def capped(crawl: Crawl) -> str:
    allocated(crawl)
    crawl.connection.execute(
        "insert into host_terms (host_id, price, min_frequency, is_capped) select host_id, 2, 0.0001, true from host"
    )
    return A


def exploration(crawl: Crawl) -> str:
    return allocated(crawl, price=1000.0, min_frequency=0.1)


def longest_interval(crawl: Crawl) -> str:
    return allocated(crawl, price=1000.0, min_frequency=1 / 60)


def never(crawl: Crawl) -> str:
    return allocated(crawl, price=1000.0, min_frequency=0)


def policy(crawl: Crawl) -> str:
    return divided(crawl, policy="uniform")


def divided(crawl: Crawl, *blocked: str, **settings: object) -> str:
    """The prices of a real allocation, while hosts are blocked permanently."""
    fetched(crawl, A, B)
    crawl.add(*(f"http://new.test/{number}" for number in range(50)))
    crawl.tick()
    for host in blocked:
        crawl.value("select recrawl.block_host(%s)", host)
    for name, value in settings.items():
        crawl.value("select recrawl.set_setting(%s, %s)", name, str(value))
    run_job("allocate", crawl.connection.info.dsn)
    return A


def closed(crawl: Crawl) -> str:
    return divided(crawl, "a.test")


def nothing_left(crawl: Crawl) -> str:
    return divided(crawl, budget=5, discovery=1)


def shortest_interval(crawl: Crawl) -> str:
    allocated(crawl, price=1e-20)
    crawl.value("select recrawl.set_rate(page_id, 1000) from page")
    return A


def pinned(crawl: Crawl) -> str:
    allocated(crawl, price=0.1)
    crawl.value("select count(*) from page p, recrawl.set_interval(array[p.page_id], '90 days')")
    return A


def pinned_less(crawl: Crawl) -> str:
    pinned(crawl)
    crawl.connection.execute(
        "insert into host_terms (host_id, is_capped, pins_kept) select host_id, true, 0.5 from host where pages > 0 "
        "on conflict (host_id) do update set pins_kept = 0.5"
    )
    return A


def unallocated(crawl: Crawl) -> str:
    fetched(crawl, A, rate=[None])
    return A


def learnt(crawl: Crawl) -> str:
    fetched(crawl, A, rate=[None])
    crawl.value("select recrawl.fetch_now(array(select page_id from page))")
    crawl.now = wall()
    crawl.tick()
    visit(crawl, 1, changed=True)
    return A


def scored(crawl: Crawl) -> str:
    fetched(crawl, A, value=[None])
    crawl.connection.execute(
        "insert into page_score (page_id, hub, authority, in_links) select page_id, 0.5, 2, 1 from page"
    )
    return A


def valued(crawl: Crawl) -> str:
    fetched(crawl, A, value=[3.0])
    return A


Situation = Callable[[Crawl], str | int]
EXAMPLES: dict[tuple[str, str], Situation] = {
    ("now", situation.__name__): situation
    for situation in (
        invalid, no_page, is_host, unknown, excluded_url, host_full, being_added, excluded, kept_out, gone, moved,
        leased, lease_expired, inbox, paused, host_blocked, host_busy, clock, declined, done, denied, unreported,
        missing, given_up, backing_off, set_due, brought_forward, not_due, host_gap, crawlers, new_place, new_share,
        new_after_revisits, new_class, new_gap, new_crawlers, new_budget,
    )
} | {
    ("often", situation.__name__): situation
    for situation in (
        price, capped, exploration, longest_interval, never, policy, nothing_left, closed, shortest_interval, pinned,
        pinned_less, unallocated,
    )
} | {
    ("page", "known"): crawlers,
    ("last", "never_reported"): crawlers,
    ("last", "last_fetched"): not_due,
    ("last", "last_missing"): missing,
    ("last", "last_failed"): backing_off,
    ("last", "last_throttled"): lambda crawl: reported(crawl, status=429),
    ("last", "last_denied"): denied,
    ("last", "last_gone"): gone,
    ("last", "last_moved"): moved,
    ("often", "as_it_changes"): not_due,
    ("often", "first_fetch"): lambda crawl: [allocated(crawl), crawl.add(A2), crawl.tick()] and A2,  # type: ignore[dict-item]
    ("often", "resting"): given_up,
    ("changes", "rate_pinned"): not_due,
    ("changes", "rate_learned"): learnt,
    ("changes", "rate_guessed"): unallocated,
    ("value", "value_pinned"): valued,
    ("value", "value_scored"): scored,
    ("value", "value_guessed"): not_due,
}  # fmt: skip
examples = pytest.mark.parametrize(("topic", "code"), EXAMPLES)


# ------------------------------------------------------------------------------------------- codes, what to do


def test_it_does_not_say_that_longest_interval_is_kept_where_it_is_not(here: Crawl) -> None:
    kept = find(ask(here, longest_interval(here)), "often", "longest_interval")
    assert kept["says"].startswith("It is fetched every 60 days, because no page waits longer")
    here.connection.execute("update host_terms set min_frequency = 1 / 600.0")
    longer = find(ask(here, A), "often", "longest_interval")
    assert longer["says"].startswith("It is fetched every 600 days, which is longer than the setting")


def test_the_name_of_a_host_tells_as_which_it_is_asked_and_what_holds_that(here: Crawl) -> None:
    name = is_host(here)
    here.connection.execute("select recrawl.block_host('blogs.test')")
    here.tick()
    asked, held = ask(here, name)
    assert asked["says"] == "This is a host (also known as blogs.test), with 1 page."
    assert asked["detail"] == {"name": "ann.blogs.test", "host": "blogs.test", "pages": 1}
    assert (held["topic"], held["code"]) == ("also", "host_blocked")
    assert ask(here, "blogs.test")[0]["says"] == "This is a host, with 1 page."
    assert codes_of(ask(here, "nowhere.test")) == {("now", "invalid")}


@pytest.mark.parametrize(
    ("situation", "says"),
    [
        (backing_off, "without success: no answer; 1 attempt in a row failed or was not reported."),
        (missing, "without success: status 404; 1 attempt in a row failed or was not reported."),
        (not_due, "status 200. It was fetched once."),
        (learnt, "status 200. 2 fetches found 1 change."),
    ],
)
def test_the_last_report_is_told_in_numbers(here: Crawl, situation: Situation, says: str) -> None:
    (row,) = (row for row in ask(here, situation(here)) if row["topic"] == "last")
    assert row["says"].endswith(says)


def test_a_number_agrees_with_its_verb(here: Crawl) -> None:
    here.value("select recrawl.set_host('a.test', gap => '1 hour')")
    due(here, A, A2, A3, "http://a.test/4", B, "http://b.test/2", "http://b.test/3", "http://c.test/")
    assert [page["url"] for page in here.next(1)] == [A]
    here.add("http://new.test/1", "http://new.test/2", "http://new.test/3")
    here.tick()
    says = {row["url"]: ask(here, row["url"])[1]["says"] for row in here.rows("select url from page")}
    assert "and no pages are due before it." in says[A2]
    assert "and 1 page is due before it." in says[A3]
    assert "and 2 pages are due before it." in says["http://a.test/4"]
    assert "1 host is ready for longer, and no pages are due before it." in says[B]
    assert "1 host is ready for longer, and 1 page is due before it." in says["http://b.test/2"]
    assert "1 host is ready for longer, and 2 pages are due before it." in says["http://b.test/3"]
    assert "On its host new.test, 1 new page is more valuable" in says["http://new.test/2"]
    assert "On its host new.test, 2 new pages are more valuable" in says["http://new.test/3"]


def test_a_page_that_no_policy_visits_again_is_told_so(here: Crawl) -> None:
    row = find(ask(here, divided(here, policy="best_first")), "often", "policy")
    assert row["says"].startswith("It is never fetched again, independent of its value: the policy in force")


def test_a_page_that_a_policy_visits_as_often_as_it_changes_is_told_so(here: Crawl) -> None:
    row = find(ask(here, divided(here, policy="proportional")), "often", "policy")
    assert row["says"].endswith("(the setting policy) fetches pages in proportion to how often they change.")


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_where_pins_take_the_budget_the_others_are_told_so(here: Crawl, url: str, objective: str) -> None:
    fetched(here, A, B)
    here.value("select count(*) from page p, recrawl.set_interval(array[p.page_id], '10 minutes') where p.url = %s", A)
    for name, value in {"objective": objective, "exploration": "0", "longest_interval": "none", "budget": "5"}.items():
        here.value("select recrawl.set_setting(%s, %s)", name, value)
    run_job("allocate", url)
    row = find(ask(here, B), "often", "nothing_left")
    assert "0 are for new pages, 5 for pinned pages" in row["says"]
    assert row["fix"] == "SELECT recrawl.set_setting('budget', '10');"
    assert ("often", "pinned_less") in codes_of(ask(here, A))


def test_where_pins_ask_for_more_than_the_slots_nobody_is_told_of_a_block(here: Crawl, url: str) -> None:
    fetched(here, A, A2)
    here.value("select count(*) from page p, recrawl.set_interval(array[p.page_id], '2 hours') where p.url = %s", A)
    here.value("select recrawl.set_host('a.test', gap => '5 hours')")
    for name, value in {"objective": "age", "exploration": "0", "budget": "100"}.items():
        here.value("select recrawl.set_setting(%s, %s)", name, value)
    run_job("allocate", url)
    assert ("often", "pinned_less") in codes_of(ask(here, A))
    assert ("often", "closed") not in codes_of(ask(here, A2))


def test_a_pinned_page_of_a_host_that_was_blocked_is_told_of_the_block(here: Crawl, url: str) -> None:
    fetched(here, A, B)
    here.value("select count(*) from page p, recrawl.set_interval(array[p.page_id], '1 day')")
    here.value("select recrawl.block_host('a.test')")
    run_job("allocate", url)
    assert find(ask(here, A), "often", "closed")["fix"] == "SELECT recrawl.unblock_host('a.test');"
    here.value("select recrawl.unblock_host('a.test')")
    assert find(ask(here, A), "often", "closed")["fix"] == "recrawl run allocate"


def test_the_codes_are_those_that_the_document_lists() -> None:
    document = re.findall(r"^\| `(\w+)`", DOCUMENT.read_text(), re.MULTILINE)
    assert len(document) == len(set(document))
    assert set(document) == {code for _, code in EXAMPLES}


NOTHING_TO_DO = {
    "known", "invalid", "no_page", "leased", "crawlers", "rate_learned", "rate_guessed",
    "value_scored", "first_fetch",
}  # fmt: skip


@examples
def test_every_code_is_said_where_it_applies_and_what_it_says_to_do_has_its_effect(
    here: Crawl, url: str, topic: str, code: str
) -> None:
    what = EXAMPLES[topic, code](here)
    rows = ask(here, what)
    row = find(rows, topic, code)
    assert codes_of(rows) <= set(EXAMPLES)
    assert [r["topic"] for r in rows].count("now") == 1
    assert row["says"][0].isupper() and row["says"].endswith((".", A, B)), row["says"]
    assert "  " not in row["says"] and "%" not in row["says"].replace("90 %", "")
    if topic == "last" or code in NOTHING_TO_DO:
        assert row["fix"] is None
        return
    assert row["fix"], "nothing to do"
    before = figures(here, what)
    done = do(here, url, row["fix"])
    here.now = wall()
    here.tick()
    after = figures(here, what)
    if any(shows in row["fix"] for shows in ("pg_stat_activity", "explain_page", "host_status")):
        assert done is not None
    elif "fetch_now" in row["fix"]:
        assert after["due_at"] and after["due_at"] <= wall()
    elif "gap =>" in row["fix"]:
        assert after["gap"] == before["gap"] / 2
    elif code in ("policy", "nothing_left", "closed"):
        run_job("allocate", url)
        assert (topic, code) not in codes_of(ask(here, what))
    elif topic == "often" and "run" not in row["fix"]:
        assert after["frequency"] > before["frequency"] * 1.04
    else:
        here.now = wall()
        assert (topic, code) not in codes_of(ask(here, what))


def figures(crawl: Crawl, what: str | int) -> Row:
    found = crawl.rows(
        "select p.due_at, p.frequency, h.gap from recrawl.page_status p join recrawl.host_status h using (host) "
        "where p.page_id = coalesce(recrawl.page_of(%s), %s)",
        str(what), int(what) if str(what).isdigit() else -1,
    )  # fmt: skip
    return found[0] if found else {}


def do(crawl: Crawl, url: str, fix: str) -> list[Any] | None:
    """As somebody who pastes it into psql as an operator, or into a shell."""
    if fix == "recrawl worker":
        run_job("upkeep", url)
    elif run := re.fullmatch(r"recrawl run (\w+)", fix):
        run_job(run[1], url)
        return None
    with psycopg.connect(url, autocommit=True, options="-c role=recrawl_operator -c search_path=public") as operator:
        return [operator.execute(statement).fetchall() for statement in re.findall(r".+?;(?= SELECT|$)", fix)]


# ----------------------------------------------------------------------------------- what next_pages does then


@pytest.mark.parametrize(
    ("situation", "first"),
    [(new_class, B), (new_share, B), (new_place, A), (host_gap, None)],
)
def test_what_is_said_to_go_first_goes_first(here: Crawl, situation: Situation, first: str | None) -> None:
    here.value("select recrawl.set_setting('breadth', '0')")
    what = situation(here)
    assert ask(here, what)[1]["code"] == situation.__name__
    here.now = wall()
    taken = here.next(1)
    assert [page["url"].startswith(first or "-") for page in taken] == ([True] if first else [])


def test_the_hosts_that_come_first_are_those_that_were_ready_for_longer(here: Crawl) -> None:
    """Not the host itself, no host that became ready later, and none that is ready again after a gap."""
    here.value("select recrawl.set_host('c.test', gap => '1 hour')")
    due(here, "http://c.test/1", "http://c.test/2")
    assert [page["host"] for page in here.next(1)] == ["c.test"]
    for seconds, url in ((25, B), (20, A), (15, "http://d.test/")):
        here.now = wall() - seconds * SECOND
        here.add(url, due=[here.now])
        here.tick()
    assert find(ask(here, A), "now", "crawlers")["detail"]["hosts_before"] == 1, "the host of B"
    assert find(ask(here, B), "now", "crawlers")["detail"]["hosts_before"] == 0
    assert find(ask(here, "http://d.test/"), "now", "crawlers")["detail"]["hosts_before"] == 2


def test_after_its_share_of_new_pages_a_host_gives_none_before_the_others_do(here: Crawl) -> None:
    here.value("select recrawl.set_setting('breadth', '0')")
    what = new_after_revisits(here)
    here.value("select recrawl.set_setting('discovery', '1')")
    here.now = wall()
    assert ask(here, what)[1]["code"] == "new_after_revisits"
    assert {page["url"] for page in here.next(1)} == {B}


def test_a_new_page_that_waits_for_the_budget_comes_when_it_says(here: Crawl) -> None:
    row = find(ask(here, new_budget(here)), "now", "new_budget")
    here.now = datetime.fromisoformat(row["detail"]["until"]) - timedelta(milliseconds=1)
    assert here.next() == []
    here.wait(timedelta(milliseconds=2))
    assert len(here.next()) == 1


def test_a_page_waits_as_long_for_its_turn_as_it_says(here: Crawl) -> None:
    """Nine pages are before it, a crawler asks all the time, and its host has nothing else."""
    here.add(*(f"http://a.test/{n}" for n in range(10)), due=[wall() - MINUTE])
    here.now = wall() - 3 * SECOND
    here.tick()
    here.next()
    here.now = began = wall()
    row = find(here.rows("select * from explain_page_at(%s, %s)", began, "http://a.test/9"), "now", "host_gap")
    assert row["detail"]["pages_before"] == 8
    about = datetime.fromisoformat(row["detail"]["about"])
    while not any(page["url"].endswith("/9") for page in here.next()):
        here.wait(SECOND / 10)
    assert abs(here.now - about) <= 2 * SECOND and about - began > 7 * SECOND


def test_three_pages_before_take_their_part_of_the_slots(here: Crawl) -> None:
    minutes = {1: 3, 0.5: 6, 0.4: 8, 0: 300}
    turn = "select (turn_comes(3, %s, %s, '1 minute') - %s) / 60"
    assert {share: here.value(turn, share, here.now, here.now) / SECOND for share in minutes} == minutes


# ------------------------------------------------------------------------------------------------- odd questions


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (None, "invalid"), ("", "invalid"), ("  ", "invalid"), ("http://", "invalid"), ("-5", "no_page"),
        ("0", "no_page"), (-1, "no_page"), (2**62, "no_page"), ("9" * 18, "no_page"), ("9" * 40, "invalid"),
        ("http://a.test/" + "x" * 3000, "invalid"), ("x" * 10**6, "invalid"), ("http://a.test/%zz", "unknown"),
        ("http://u:p@a.test/", "invalid"), ("http://a.test/" + "ü" * 300, "unknown"), ("%s%n%%", "invalid"),
        ("http://a.test/'; drop schema recrawl; --", "unknown"), ("HTTP://A.TEST:80", "unknown"),
        ("http://a.test/ " + " " * 9999, "unknown"), ("http://a.test/#" + "x" * 9999, "unknown"),
    ],
)  # fmt: skip
def test_whatever_is_asked_is_answered(crawl: Crawl, url: str, what: str | int | None, code: str) -> None:
    (row,) = ask(crawl, what)
    assert (row["topic"], row["code"]) == ("now", code)
    assert len(row["says"]) < 500
    if code == "unknown":
        do(crawl, url, row["fix"])
        assert crawl.value("select count(*) from page") == 1
        assert codes_of(ask(crawl, what)) >= {("now", "inbox")}


def test_a_page_is_found_in_any_spelling(here: Crawl) -> None:
    page_id = here.add("http://a.test/~x")[0]["page_id"]
    for spelling in ("http://a.test/~x", "HTTP://A.Test:80/%7Ex#top", " http://a.test/y/../%7ex"):
        assert here.value("select recrawl.page_of(%s)", spelling) == page_id
        assert ask(here, spelling)[0]["detail"]["page_id"] == page_id
    for none in (None, "", "http://a.test/other", "ftp://a.test/"):
        assert here.value("select recrawl.page_of(%s)", none) is None


def test_the_reason_that_lasts_longest_comes_first(here: Crawl) -> None:
    due(here, A)
    here.value("select recrawl.block_host('a.test', now() + interval '1 hour')")
    here.value("select recrawl.pause()")
    assert [(row["topic"], row["code"]) for row in ask(here, A)][1:3] == [("now", "paused"), ("also", "host_blocked")]
    here.value("select recrawl.resume()")
    assert ask(here, A)[1]["code"] == "host_blocked"


def test_a_page_that_is_not_due_for_longer_than_its_host_is_blocked_is_not_due(here: Crawl) -> None:
    not_due(here)
    here.value("select recrawl.block_host('a.test', now() + interval '1 minute')")
    assert [(row["topic"], row["code"]) for row in ask(here, A)][1:3] == [("now", "not_due"), ("also", "host_blocked")]


def test_a_host_with_room_for_one_more_page_is_not_full(here: Crawl) -> None:
    here.value("select recrawl.set_host('a.test', max_pages => 2)")
    here.add(A)
    assert codes_of(ask(here, A2)) == {("now", "unknown")}
    here.add(A2)
    assert codes_of(ask(here, A3)) == {("now", "host_full")}


def test_an_excluded_page_that_is_out_is_both(here: Crawl) -> None:
    leased(here)
    here.value("select recrawl.exclude('a.test')")
    assert {("now", "excluded"), ("now", "leased")} <= codes_of(ask(here, A))
    assert find(ask(here, A), "now", "leased")["says"].endswith("the lease ends.")


def test_a_page_that_no_pattern_keeps_out_any_more_can_be_brought_back(here: Crawl) -> None:
    odd = "http://a.test/?x=(1)[2]*"
    here.add(odd, A)
    here.value("select recrawl.exclude('a.test')")
    here.connection.execute("delete from exclusion")
    here.connection.execute(find(ask(here, odd), "now", "excluded")["fix"].encode())
    states = {row["url"]: row["state"] for row in here.rows("select url, state::text from page_status")}
    assert states == {odd: "new", A: "excluded"}


def test_a_page_is_explained_by_the_newest_of_its_leases(here: Crawl) -> None:
    """The first ran out and was reported too late; the second runs."""
    here.add(A)
    here.now = wall() - HOUR
    here.tick()
    (first,) = here.next()
    here.now = wall() - MINUTE
    here.tick()
    here.report_ok([first])
    here.value("select recrawl.fetch_now(array(select page_id from page))")
    here.now = wall()
    here.tick()
    (second,) = here.next()
    row = find(ask(here, A), "now", "leased")
    assert row["detail"]["lease_id"] == second["lease_id"] > first["lease_id"]


def test_where_a_chain_of_redirects_leads_is_said(here: Crawl) -> None:
    last = "http://c.test/"
    for source, target in ((B, last), (A, B)):
        here.wait(HOUR)
        here.add(source, due=[here.now - HOUR])
        here.tick()
        page = next(page for page in here.next() if page["url"] == source)
        here.report_ok([page], status=301, redirect_to=target)
    row = find(ask(here, A), "now", "moved")
    assert row["detail"]["url"] == last and row["says"].endswith(last)


def test_a_page_that_moved_to_a_deleted_page_does_not_lead_to_itself(here: Crawl) -> None:
    moved(here)
    here.value("select delete_pages(array(select page_id from page where url = %s))", B)
    row = find(ask(here, A), "now", "moved")
    assert row["says"] == "Moved permanently to a page that was deleted." and row["detail"]["leads_to"] is None
    here.connection.execute(row["fix"].encode())
    assert here.rows("select from page where url = %s", A) == []


def test_infinities_and_hosts_without_a_row_are_no_trouble(here: Crawl) -> None:
    host_blocked(here)
    row = find(ask(here, A), "now", "host_blocked")
    assert row["detail"]["until"] is None and "until you unblock it" in row["says"]
    here.connection.execute("update host set ready_at = 'infinity', blocked_until = null, last_start_by = 'infinity'")
    assert codes_of(ask(here, A)) >= {("now", "host_gap")}
    here.connection.execute("delete from host")
    assert ask(here, A)[0]["code"] == "known"
    here.connection.execute("update page set value = 0, last_status = null, due_at = null, reported_at = now()")
    assert ask(here, A)


def test_times_are_told_in_utc_and_numbers_in_plain_digits_whatever_the_session_says(here: Crawl) -> None:
    not_due(here)
    here.connection.execute("set timezone = 'Asia/Tokyo'; set lc_numeric = 'C'; set datestyle = 'German'")
    row = find(ask(here, A), "now", "not_due")
    assert row["detail"]["until"].endswith("+00:00")
    assert re.fullmatch(r"Not due for another 1[12] h\. .*", row["says"])


def test_it_can_be_asked_in_a_transaction_that_only_reads(here: Crawl) -> None:
    new_budget(here)
    with here.connection.transaction():
        here.connection.execute("set transaction read only, isolation level repeatable read")
        assert ("now", "new_budget") in codes_of(ask(here, A)) | codes_of(ask(here, B))


def test_readers_and_operators_may_ask_and_crawlers_may_not(url: str) -> None:
    for role, may in (("reader", True), ("operator", True), ("worker", True), ("crawler", False)):
        with psycopg.connect(url, options=f"-c role=recrawl_{role}", row_factory=dict_row) as connection:
            for call in ("recrawl.explain_page(1)", "recrawl.explain_page('http://a.test/')"):
                if may:
                    assert connection.execute(f"select * from {call}").fetchall()
                else:
                    with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
                        connection.execute(f"select * from {call}")


# --------------------------------------------------------------------------------------------------------- costs


MOST_BUFFERS = 250  # measured: 45 for a new page
A_COUNT = 1000  # more if others are counted: 760 with 1,000 free hosts, 1,041 with 50,000 pages of its host


@pytest.mark.parametrize("analysed", [False, True])
@pytest.mark.parametrize("pages", ["due", "new", "one host"])
def test_it_costs_few_buffers_however_many_pages_there_are(loaded: Loaded, pages: str, analysed: bool) -> None:
    connection = loaded(load_new if pages == "new" else load, hosts=1 if pages == "one host" else 1000)
    connection.execute("select recrawl.next_pages(1000, ahead => '10 s')")
    connection.execute("select recrawl.add_pages(array(select 'http://x.test/' || i from generate_series(1, 9000) i))")
    if analysed:
        connection.execute("analyze")
    connection.execute("update page set key = url_key(url) where page_id % 1000 = 7")
    most = MOST_BUFFERS + (0 if pages == "new" else A_COUNT)
    for page_id in (7, 1007, 49007):
        url = connection.execute("select url from page where page_id = %s", [page_id]).fetchone()[0]  # type: ignore[index]
        query: LiteralString = "select * from recrawl.explain_page(%s)"
        calls = [cost(connection, query, argument)[0] for argument in (page_id, url) for _ in range(3)]
        assert min(calls[:3]) <= most and min(calls[3:]) <= most, calls
        calls = [cost(connection, "select * from recrawl.page_status where page_id = recrawl.page_of(%s)", url)[0]
                 for _ in range(3)]  # fmt: skip
        assert min(calls) <= 50, calls
