"""The sentences about a picture are true, also for no point, one point, gaps and unknown values."""

from dataclasses import replace
from datetime import timedelta

import pytest

from recrawl.view.figures import DAY, HOUR, CappedHost, LateHost, Minute, Period, Total
from recrawl.view.parts import sentences
from worker.view.reports import DAY_TOTAL, FIGURES, HISTORY, LAST_MINUTE, MINUTE, NOW, SECOND

UNKNOWN = Minute(NOW)


def plain(sentence: str) -> str:
    return sentence.replace("**", "").replace("\N{NO-BREAK SPACE}", " ")


def span(ago: timedelta, **more: float | None) -> Period:
    return Period(NOW - ago, **more)  # type: ignore[arg-type]


# -- freshness --


def test_freshness_of_nothing_is_not_known() -> None:
    assert sentences.freshness([], UNKNOWN, NOW).startswith("Not known yet")
    assert sentences.freshness([span(HOUR, fetches=3)], UNKNOWN, NOW).startswith("Not known yet")


def test_freshness_stands_beside_what_was_promised_and_is_possible() -> None:
    said = plain(sentences.freshness(HISTORY.hours, LAST_MINUTE, NOW))
    assert said.startswith("72.0 % of the value of all pages is fresh")
    assert (
        "1.4 points less than the allocation expects (73.4 %). The limit with this budget and these gaps is 73.9 %"
        in said
    )
    assert "A week ago the freshness was 71." in said


def test_a_difference_within_the_error_is_none() -> None:
    minute = replace(LAST_MINUTE, fresh=0.72, expected=0.729, fresh_error=0.005)
    assert "what the allocation expects (72.9 %)" in plain(sentences.freshness(HISTORY.hours, minute, NOW))
    more = replace(LAST_MINUTE, fresh=0.76)
    assert "2.6 points more than" in plain(sentences.freshness(HISTORY.hours, more, NOW))
    beyond = replace(minute, expected=0.731)
    assert "1.1 points less than" in plain(sentences.freshness(HISTORY.hours, beyond, NOW))
    assert "what the allocation expects" in sentences.freshness(
        [span(HOUR, fresh=0.5)], Minute(NOW, fresh=0.504, expected=0.5), NOW
    )


def test_one_hour_without_a_promise_says_so() -> None:
    said = plain(sentences.freshness([span(HOUR / 2, fresh=1.0)], UNKNOWN, NOW))
    assert said == "100 % of the value of all pages is fresh (estimated). No allocation has said what to expect."


def test_an_allocation_with_another_objective_is_named() -> None:
    harmonic = replace(FIGURES.allocation, objective="harmonic")  # type: ignore[type-var]
    said = plain(sentences.freshness([span(HOUR, fresh=1.0)], UNKNOWN, NOW, harmonic))
    assert said.endswith("(estimated). The allocation has the objective harmonic: it expects no freshness.")
    said = plain(sentences.freshness([span(HOUR, fresh=1.0)], UNKNOWN, NOW, FIGURES.allocation))
    assert said.endswith("(estimated)."), "the minute before the first allocation"


def test_an_old_estimate_says_when_it_was() -> None:
    said = plain(sentences.freshness([span(DAY, fresh=0.5)], UNKNOWN, NOW))
    assert said.startswith("50.0 % of the value of all pages was fresh at the last estimate, yesterday 15:04.")
    assert "is fresh (estimated)" in sentences.freshness([span(2 * HOUR, fresh=0.5)], UNKNOWN, NOW)
    assert "was fresh" in sentences.freshness([span(2 * HOUR + SECOND, fresh=0.5)], UNKNOWN, NOW)


@pytest.mark.parametrize(
    ("ago", "now", "said"),
    [
        (7 * DAY, 0.5, "A week ago the freshness was the same."),
        (6 * DAY, 0.504, "A week ago the freshness was the same."),
        (7 * DAY, 0.506, "A week ago the freshness was 50.0 %."),
        (7 * DAY, 0.494, "A week ago the freshness was 50.0 %."),
        (7 * DAY + SECOND, 0.5, "No allocation has said what to expect."),
        (6 * DAY - SECOND, 0.5, "No allocation has said what to expect."),
    ],
)
def test_freshness_is_compared_with_that_of_a_week_ago(ago: timedelta, now: float, said: str) -> None:
    assert plain(sentences.freshness([span(ago, fresh=0.5)], Minute(NOW, fresh=now), NOW)).endswith(said)


# -- fetches --


def test_fetches_of_nothing() -> None:
    assert sentences.fetches([], Total(), None, NOW) == "No page was fetched yet."
    old = [span(3 * DAY, fetches=5.0)]
    for day in (Total(), Total(since=NOW - DAY)):
        assert "The last fetches are from 18 Nov" in sentences.fetches(old, day, 100.0, NOW)


def test_fetches_beside_the_budget() -> None:
    said = plain(sentences.fetches(HISTORY.hours, DAY_TOTAL, 500_000, NOW))
    assert said == "463,541 fetches in 24 h, 93 % of the budget; 24 % found a change."
    assert "; no budget is set; " in plain(sentences.fetches(HISTORY.hours, DAY_TOTAL, None, NOW))


def test_a_young_crawl_is_measured_by_its_own_time() -> None:
    young = Total(since=NOW - 6 * HOUR, fetches=250)
    said = plain(sentences.fetches([span(HOUR, fetches=250)], young, 1000.0, NOW))
    assert said.startswith("250 fetches in 6 h, 100 % of the budget")
    assert Total(since=NOW).of_budget(1000.0, NOW) == 0


def test_many_failures_are_told_and_few_are_not() -> None:
    failing = replace(DAY_TOTAL, failed=100_000)
    assert "22 % failed, were throttled" in plain(sentences.fetches(HISTORY.hours, failing, None, NOW))
    assert "failed" not in sentences.fetches(HISTORY.hours, DAY_TOTAL, None, NOW)


@pytest.mark.parametrize("kind", ["failed", "throttled", "denied"])
def test_a_fifth_of_failures_is_not_many(kind: str) -> None:
    def said(failing: int) -> str:
        return plain(sentences.fetches([], Total(since=NOW - DAY, fetches=100, **{kind: failing}), None, NOW))

    assert "21 % failed" in said(21) and "failed" not in said(20) and "This week" not in said(20)


def test_hours_without_fetches_are_told_apart_from_hours_that_are_missing() -> None:
    hours = list(HISTORY.hours)
    hours[-10] = replace(hours[-10], fetches=0)
    del hours[-21:-18]
    said = sentences.fetches(hours, DAY_TOTAL, None, NOW)
    assert said.endswith("This week, in 1 hour no page was fetched and of 3 hours no figures are known.")
    long_ago = [span(7 * DAY + HOUR), *hours[-9:]]
    assert "This week" not in sentences.fetches(long_ago, DAY_TOTAL, None, NOW)
    one = [hour for hour in HISTORY.hours[-9:] if hour.at != HISTORY.hours[-5].at]
    assert "This week, of 1 hour no figures are known." in sentences.fetches(one, DAY_TOTAL, None, NOW)


# -- who is late --


def test_waiting_says_what_would_help() -> None:
    gap = plain(sentences.waiting(HISTORY.tens, LAST_MINUTE, NOW))
    assert gap.startswith("7,718 pages are late, 0.6 % of all. Most wait for the gap of their host")
    assert "more crawlers would not help" in gap
    crawler = replace(LAST_MINUTE, due=100, due_crawler=100, due_gap=0, due_blocked=0)
    assert "All wait for a crawler: their hosts are ready." in plain(sentences.waiting(HISTORY.tens, crawler, NOW))


@pytest.mark.parametrize(
    ("gap", "said"),
    [
        (996, "All wait for the gap"), (995, "Nearly all wait for the gap"), (901, "Nearly all wait for the gap"),
        (900, "Most wait for the gap"), (501, "Most wait for the gap"), (500, "The largest part waits for the gap"),
    ],
)  # fmt: skip
def test_the_largest_cause_is_named_with_its_part(gap: int, said: str) -> None:
    minute = Minute(NOW, due=1000, due_gap=gap, due_blocked=1000 - gap)
    assert said in sentences.waiting([span(HOUR, due=1000)], minute, NOW)


def test_waiting_of_little() -> None:
    assert sentences.waiting([], UNKNOWN, NOW).startswith("Not known yet")
    assert sentences.waiting([span(HOUR, due=None)], UNKNOWN, NOW).startswith("Not known yet")
    one = [span(timedelta(minutes=9), due=1.0, due_gap=1.0, due_crawler=0.0, due_blocked=0.0)]
    assert plain(sentences.waiting(one, UNKNOWN, NOW)).startswith("1 page is late. All wait for the gap of their host")
    causeless = [span(timedelta(minutes=9), due=2.0)]
    assert plain(sentences.waiting(causeless, UNKNOWN, NOW)) == "2 pages are late."


def test_nothing_late_now_still_tells_the_worst_of_the_day() -> None:
    none = [span(timedelta(minutes=9), due=0.0)]
    assert plain(sentences.waiting(none, UNKNOWN, NOW)) == "No page is late."
    once = [span(5 * HOUR, due=500.0), *none]
    assert plain(sentences.waiting(once, UNKNOWN, NOW)).endswith("The maximum of the last day was 500, 10:04.")
    twice = [span(7 * HOUR, due=400.0), *once]
    assert plain(sentences.waiting(twice, UNKNOWN, NOW)).endswith("The maximum of the last day was 500, 10:04.")
    old = [span(HOUR + SECOND, due=0.0)]
    assert plain(sentences.waiting(old, UNKNOWN, NOW)) == "No page is late (as of 14:04)."
    assert plain(sentences.waiting([span(HOUR, due=0.0)], UNKNOWN, NOW)) == "No page is late."


def test_lateness() -> None:
    said = plain(sentences.lateness(DAY_TOTAL, UNKNOWN, NOW))
    assert said.startswith("Of 414,801 revisits in 24 h 97.7 % began within 10 minutes of the due time. 1,204 revisits")
    assert sentences.lateness(Total(), LAST_MINUTE, NOW).startswith("No page was fetched again")
    assert plain(sentences.lateness(Total(since=NOW - DAY, late_1m=1), UNKNOWN, NOW)) == (
        "Of 1 revisit in 24 h 100 % began within 10 minutes of the due time. None was skipped."
    )
    assert "1 revisit was skipped" in sentences.lateness(replace(DAY_TOTAL, skipped=1), UNKNOWN, NOW)


def test_pages_that_nobody_visits_are_not_in_time_either() -> None:
    blocked = replace(LAST_MINUTE, due=3, due_blocked=3, due_gap=0, due_crawler=0)
    said = plain(sentences.lateness(Total(since=NOW - DAY, late_1m=7), blocked, NOW))
    assert "100 % began" in said
    assert said.endswith("3 late pages will count when they are fetched.")
    assert "1 late page" in sentences.lateness(DAY_TOTAL, replace(blocked, due=1), NOW)


# -- hosts --


def test_hosts_that_hold_back_are_late_or_blocked() -> None:
    assert sentences.capped_hosts([], 0, 5).startswith("None")
    assert sentences.capped_hosts([], None, None).startswith("Not known yet")
    assert plain(sentences.capped_hosts([], 2, 5)).startswith("2 of 5 hosts are limited by the gap")
    held = [CappedHost("a.test", 1, MINUTE, 9, 3)]
    assert plain(sentences.capped_hosts(held, 1, 5)).startswith("1 of 5 hosts is limited by the gap")
    for all_hosts in (None, 5):
        assert "most costly" in sentences.capped_hosts(held, None, all_hosts)

    assert sentences.blocked_hosts([], 0, 9).startswith("None")
    assert sentences.blocked_hosts([], None, None).startswith("Not known yet")
    assert (
        plain(sentences.blocked_hosts([], 2, 8))
        == "2 hosts, 25.0 % of all. None of them is in the list of hosts with late pages (at most 200)."
    )
    blocked = [LateHost("a.test", 3, None, "block", blocked_until=NOW + HOUR)]
    assert "1 host" in plain(sentences.blocked_hosts(blocked, 0, 9)), "the count is older than the block"
    assert sentences.blocked_hosts(blocked, None, 9) == "The host with the most late pages is first."
    assert plain(sentences.blocked_hosts(blocked, 9, 9)).startswith("9 hosts, 100 % of all.")


# -- since yesterday --


def test_changes_compare_whole_days_and_only_what_is_known() -> None:
    found = {change.name: change for change in sentences.changes(HISTORY.hours, NOW)}
    assert found["Fresh, mean of the day"].better is False
    assert found["Fetches"].now.startswith("45") and "−" in found["Fetches"].difference
    assert sentences.changes(HISTORY.hours[-30:], NOW) == [], "of the day before six hours are known"
    assert sentences.changes([], NOW) == []


def test_days_are_compared_if_twenty_hours_of_each_are_known() -> None:
    def days(known: int) -> list[Period]:
        return [span(ago * HOUR, fetches=1) for ago in (*range(1, 25), *range(25, 25 + known))]

    assert sentences.changes(days(20), NOW) and not sentences.changes(days(19), NOW)


def test_more_failures_and_less_freshness_are_worse_and_a_day_without_estimates_is_not_compared() -> None:
    def changes(**today: float | None) -> dict[str, sentences.Change]:
        usual = {"fetches": 10.0, "failed": 1.0, "fresh": 0.5, "due": 3.0}
        hours = [span(ago * HOUR, **(usual | today if ago <= 24 else usual)) for ago in range(1, 49)]
        return {change.name: change for change in sentences.changes(hours, NOW)}

    worse, better = changes(failed=2.0, fresh=0.4), changes(failed=0.0, fresh=0.6)
    for name in ("Failed, throttled or forbidden", "Fresh, mean of the day"):
        assert (worse[name].better, better[name].better, changes()[name].difference) == (False, True, "the same")
    unknown = changes(fresh=None, due=None).keys()
    assert not unknown & {"Fresh, mean of the day", "Late pages, mean"}
    new = [span(ago * HOUR, **({"fresh": 0.5, "due": 3.0} if ago <= 24 else {})) for ago in range(1, 49)]
    assert not {change.name for change in sentences.changes(new, NOW)} & {"Fresh, mean of the day", "Late pages, mean"}


@pytest.mark.parametrize("share", ["changed", "failed"])
def test_shares_of_a_day_without_fetches_are_left_out(share: str) -> None:
    idle = [replace(hour, fetches=0, fresh=None, due=None) for hour in HISTORY.hours]
    assert {change.name for change in sentences.changes(idle, NOW)} == {"Fetches", "Revisits skipped", "Pages added"}
