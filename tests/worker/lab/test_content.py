"""Pages with content: what their histories, their sketches and their curves say of each other."""

import math

import numpy as np
import pytest

from recrawl.lab.content import CHURN, MIX, ContentPage, Region, draw, of_sets, page
from recrawl.lab.policies.curve_fitting import Curve

REGIONS = {
    "churn": [Region(0.3, 1, 0.5)],
    "scroll": [Region(0.8, 5, 1.0)],
    "mixed": [Region(0.2, 1, 2.0), Region(0.5, 10, 0.7)],
}


def some_pages(kind: str, count: int, days: float = 20) -> list[ContentPage]:
    rng = np.random.default_rng(1)
    return [page(rng, REGIONS[kind], days) for _ in range(count)]


def test_divergence_counts_what_each_version_has_and_the_other_lacks() -> None:
    of = ContentPage(
        regions=(Region(0.2, 1, 1.0), Region(0.6, 3, 1.0)),
        updated_at=(np.array([5.0, 6.0]), np.array([1.0, 2.0, 7.0, 8.0, 9.0])),
        least=(),
    )
    then, now = np.array([0, 0, 0, 4, 0.0]), np.array([0.5, 1, 5.5, 7.5, 9])
    lacking = np.array([0, 0.2, 0.6, 0.4, 0.8])
    assert of.diverged(then, now) == pytest.approx(2 * lacking / (1 + lacking))


def test_staleness_is_the_mean_over_time_since_the_last_visit() -> None:
    """One change of all that churns, a fifth of the page, on day 5: stale until the visit of day 8."""
    of = ContentPage((Region(0.2, 1, 1.0),), (np.array([5.0]),), ())
    assert of.staleness([0, 4, 8], 2, 10) == pytest.approx(3 / 8 * 0.4 / 1.2)
    assert of.staleness([0], 2, 10) == pytest.approx(5 / 8 * 0.4 / 1.2)
    assert of.staleness([0, 5], 2, 10) == 0, "a visit sees what changes just then"


@pytest.mark.parametrize("kind", REGIONS)
def test_sketches_say_on_average_what_the_divergence_is(kind: str) -> None:
    pages = some_pages(kind, 1500)
    true = np.array([one.diverged(np.array([3.0]), np.array([6.0]))[0] for one in pages])
    seems = np.array([one.seems_diverged(3.0, 6.0) for one in pages])
    assert float((seems - true).mean()) == pytest.approx(0, abs=3.5 * math.sqrt(0.25 / 8 / 1500))
    spread = float(np.sqrt(((seems - true) ** 2).mean()))
    assert spread == pytest.approx(math.sqrt(float((true * (1 - true)).mean()) / 8), rel=0.1), "√(d(1 − d)/8)"


@pytest.mark.parametrize("kind", REGIONS)
def test_histories_diverge_on_average_as_the_curve_says(kind: str) -> None:
    pages = some_pages(kind, 3000)
    days = np.array([0.5, 2.0, 8.0])
    curve = pages[0].expected_divergence(days)
    for at, expected in zip(days, curve, strict=True):
        seen = np.array([one.diverged(np.array([5.0]), np.array([5.0 + at]))[0] for one in pages])
        assert float(seen.mean()) == pytest.approx(expected, abs=4 * float(seen.std()) / math.sqrt(3000) + 1e-9)


def test_the_curve_of_churn_is_that_of_the_policies() -> None:
    (one,) = some_pages("churn", 1)
    days = np.array([0.1, 1, 10, 1000])
    curve = Curve(float(of_sets(np.array(0.3))), 1, 0.5)
    assert one.expected_divergence(days) == pytest.approx([curve.divergence(day) for day in days])


def test_the_mix_is_as_it_says() -> None:
    pages = draw(np.random.default_rng(2), 4000, 1)
    static = np.mean([not one.regions for one in pages])
    churn = np.mean([len(one.regions) == 1 and one.regions[0].items == 1 for one in pages])
    assert static == pytest.approx(0.4, abs=0.03) and churn == pytest.approx(MIX[CHURN], abs=0.03)
    assert sum(MIX.values()) == 1
    assert all(sum(region.share for region in one.regions) < 0.96 for one in pages)
    rates = [region.rate for one in pages for region in one.regions]
    assert min(rates) >= 0.02 and max(rates) <= 5
