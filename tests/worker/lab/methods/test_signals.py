"""Hints that a page changed, against a page that is simulated with them."""

import numpy as np
import pytest

from recrawl.lab.methods.signals import age_of_a_signal, days_worth, probability_fresh, unannounced_rate


def test_a_page_is_as_fresh_as_the_pages_that_looked_like_it() -> None:
    random = np.random.default_rng(2)
    rate, recall, false_rate, days, pages = 0.5, 0.6, 0.3, 2.0, 400_000
    announced = random.poisson(recall * rate * days, pages)
    silent = random.poisson((1 - recall) * rate * days, pages)
    signals = announced + random.poisson(false_rate * days, pages)
    fresh = (announced + silent) == 0
    for count in (0, 1, 2):
        share = fresh[signals == count].mean()
        assert probability_fresh(rate, recall, false_rate, days, count) == pytest.approx(share, abs=0.006)


def test_a_signal_ages_a_page_by_its_worth_in_days() -> None:
    rate, recall, false_rate = 0.5, 0.6, 0.3
    beta = age_of_a_signal(rate, recall, false_rate)
    assert beta == pytest.approx(np.log(2) / 0.2)
    for signals in (1, 3):
        later = probability_fresh(rate, recall, false_rate, 2.0 + signals * beta, 0)
        assert probability_fresh(rate, recall, false_rate, 2.0, signals) == pytest.approx(later)


def test_without_false_signals_one_is_proof() -> None:
    assert age_of_a_signal(1.0, 0.5, 0.0) == np.inf
    assert probability_fresh(1.0, 0.5, 0.0, 1.0, 1) == 0


def test_where_all_changes_are_announced_silence_is_freshness() -> None:
    assert unannounced_rate(1.0, 1.0) == 0
    assert probability_fresh(1.0, 1.0, 0.5, 1000.0, 0) == 1
    assert probability_fresh(1.0, 1.0, 0.5, 1000.0, 1) == pytest.approx(1 / 3)
    assert age_of_a_signal(1.0, 1.0, 0.5) == np.inf


@pytest.mark.parametrize(("rate", "recall", "false_rate"), [(1.0, 0.0, 0.5), (0.0, 0.5, 0.5), (0.0, 1.0, 0.0)])
def test_signals_that_cannot_be_true_say_nothing(rate: float, recall: float, false_rate: float) -> None:
    assert age_of_a_signal(rate, recall, false_rate) == 0
    assert probability_fresh(rate, recall, false_rate, 1.0, 5) == pytest.approx(np.exp(-rate))


@pytest.mark.parametrize(("recall", "delay", "false_rate"), [(1.0, 0.0, 0.0), (0.6, 0.0, 0.0), (0.6, 0.4, 0.5)])
def test_what_a_visit_is_worth_that_a_signal_brought_forward_does_not_depend_on_the_signals(
    recall: float, delay: float, false_rate: float
) -> None:
    random = np.random.default_rng(3)
    rate, planned, pages = 0.7, 2.0, 400_000
    first_change = random.exponential(1 / ((1 - recall) * rate or 1e-9), pages)
    announced = random.exponential(1 / (recall * rate), pages)
    signal = np.minimum(
        announced + random.exponential(delay, pages), random.exponential(1 / (false_rate or 1e-9), pages)
    )
    visit = np.minimum(signal, planned)
    changed = np.minimum(first_change, announced) <= visit
    score = np.where(changed, planned / np.expm1(rate * planned), -days_worth(visit, planned, rate))
    assert score.mean() == pytest.approx(0, abs=4 * score.std() / np.sqrt(pages))
    plain = np.where(changed, visit / np.expm1(rate * np.maximum(visit, 1e-9)), -visit)
    assert plain.mean() > 0.05, "and a plain bit would"


def test_a_visit_as_planned_is_worth_its_days() -> None:
    assert days_worth(2.0, 2.0, [0.0, 1e-12, 0.5, 1e3]) == pytest.approx(2)
    assert days_worth([0.0, 0.5], 2.0, 1e-9) == pytest.approx([0, 0.5])
    assert days_worth(1.0, 2.0, 1e3) == pytest.approx(0, abs=1e-30)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^recall must lie between 0 and 1, got 1.5 at index 1$"):
        age_of_a_signal([1.0, 1.0], [0.5, 1.5], 0.0)
    with pytest.raises(ValueError, match=r"^false_rate must be finite and not negative, got -1.0$"):
        probability_fresh(1.0, 0.5, -1.0, 1.0, 0)
    assert age_of_a_signal([], [], []).size == 0
