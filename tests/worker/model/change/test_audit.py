"""The filter's states against a fetch log: it agrees where it should, and it is seen where it does not."""

import numpy as np
import pytest

from recrawl.lab.methods.beliefs import changed
from recrawl.model.change.audit import Agreement, agreement, credible_interval
from recrawl.model.change.estimators import VisitLog
from recrawl.model.checks import Array

PRIOR = (0.7, 3.5)


def crawl(pages: int, visits: int) -> tuple[VisitLog, Array, Array]:
    random = np.random.default_rng(8)
    rate = random.gamma(PRIOR[0], 1 / PRIOR[1], pages)
    interval = random.lognormal(0, 1, (pages, visits)) / rate[:, None]
    happened = random.random(interval.shape) < -np.expm1(-rate[:, None] * interval)
    a, b = np.full(pages, PRIOR[0]), np.full(pages, PRIOR[1])
    for w, seen in zip(interval.T, happened.T, strict=True):
        bit_a, bit_b = changed(a, b, w)
        a, b = np.where(seen, bit_a, a), np.where(seen, bit_b, b + w)
    return VisitLog(np.arange(pages + 1) * visits, interval.ravel(), happened.ravel()), a, b


def test_a_filter_that_saw_the_same_visits_agrees() -> None:
    (line,) = agreement(*crawl(1000, 100))
    assert (line.visits_from, line.pages, line.changed_pages) == (50, 1000, 1000)
    assert line.median_log_ratio < 0.05 and line.most_log_ratio < 0.1 and line.inside == 1


def test_a_filter_that_is_off_by_three_is_found_out() -> None:
    visits, a, b = crawl(1000, 100)
    (line,) = agreement(visits, a, 3 * b)
    assert line.median_log_ratio == pytest.approx(np.log(3), abs=0.1)
    assert line.inside < 0.01


def test_pages_are_grouped_by_their_visits() -> None:
    visits = VisitLog(np.array([0, 0, 4, 9, 309]), np.ones(309), np.arange(309) % 2 == 0)
    lines = agreement(visits, np.ones(4), np.ones(4))
    assert [(line.visits_from, line.pages) for line in lines] == [(1, 1), (5, 1), (200, 1)]


def test_a_page_never_seen_to_change_agrees_with_a_low_rate_only() -> None:
    visits = VisitLog(np.array([0, 100, 200, 300]), np.ones(300), np.zeros(300, np.bool))
    a, b = np.array([0.7, 3.0, 7.0]), np.array([103.5, 100.0, 100.0])
    (line,) = agreement(visits, a, b)
    assert (line.pages, line.changed_pages) == (3, 0) and line.inside == pytest.approx(1 / 3)
    assert credible_interval(a, b)[0] * 100 == pytest.approx([0.01, 0.82, 3.29], abs=0.01), "changes in 100 days"
    assert np.isnan(line.median_log_ratio)


def test_nothing_to_audit_is_no_line_and_nonsense_is_refused() -> None:
    nothing = VisitLog(np.array([0]), np.array([]), np.array([]))
    none: list[Agreement] = []
    assert agreement(nothing, [], []) == none
    visits = VisitLog(np.array([0, 1]), np.ones(1), np.ones(1, np.bool))
    with pytest.raises(ValueError, match=r"^b\[0\] must be positive, got 0.0$"):
        agreement(visits, [1.0], [0.0])
