"""The figures of docs/why.md agree with the model."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"
WHY = " ".join((DOCS / "why.md").read_text().split())


@pytest.fixture
def figures() -> Any:
    from docs import figures  # here: Matplotlib takes each process of a run half a second

    return figures


def test_every_figure_is_there_and_shown(figures: Any) -> None:
    for name, draw in figures.FIGURES.items():
        drawn = (DOCS / name).read_text()
        alt = re.search(rf"!\[([^]]+)\]\({name}\)", WHY)
        assert alt and len(alt[1]) > 80, "the text describes the picture"
        words = re.findall(r">([^<>]+)</text>", figures.svg(draw()))
        assert words and words == re.findall(r">([^<>]+)</text>", drawn), "say `make figures`"


def test_a_page_that_changes_too_fast_is_left_alone_and_sooner_at_a_higher_price(figures: Any) -> None:
    last = [figures.RATES[figures.frequencies("freshness", price) > 0].max() for price in figures.PRICES]
    said = re.search(r"more than ([\d.]+) times a day. .* limit is ([\d.]+) changes a day, .*? it is ([\d.]+)\.", WHY)
    assert said and np.allclose(last, [float(number) for number in said.groups()], rtol=0.05)
    for price in figures.PRICES:
        fetched = figures.frequencies("new_content", price)
        assert (np.diff(fetched) > 0).all(), "the faster it changes the more there is to see"


def test_freshness_is_what_the_text_says(figures: Any) -> None:
    shares = {how: round(100 * share) for how, share in figures.freshness(1).items()}
    assert shares == {how: int(re.findall(rf"\| {how} \|[^|]*\| (\d+) % \|", WHY)[0]) for how in shares}
    dearer = re.search(r"second way needs ([\d.]+) times", WHY)
    assert dearer and abs(figures.freshness(float(dearer[1]))["all alike"] - figures.freshness(1)["by price"]) < 0.005


def test_no_other_division_is_fresher_than_that_by_price(figures: Any) -> None:
    for budget in figures.BUDGETS[::10]:
        best, *others = figures.freshness(budget).values()
        assert best > max(others)


def test_the_made_up_web_is_as_the_text_says(figures: Any) -> None:
    _, rate = figures.made_up_web()
    assert (
        "has 20,000 pages. Half of them change less than once in 20 days, and a fifteenth change more than once a day"
        in WHY
    )
    assert len(rate) == 20_000 and 0.49 < (rate < 1 / 20).mean() < 0.53 and 0.06 < (rate > 1).mean() < 0.07
