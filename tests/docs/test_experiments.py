"""docs/experiments.md shows every experiment, with what it found."""

import re
from pathlib import Path

import pytest

from recrawl.lab.experiments.registry import EXPERIMENTS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = " ".join((DOCS / "experiments.md").read_text().split())
NUMBER = r"\d+(?:\.\d+)?"


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_its_figure_is_shown_and_its_command_said(name: str) -> None:
    assert "<svg" in (DOCS / f"experiments/{name}.svg").read_text()
    alt = re.search(rf"!\[([^]]+)\]\(experiments/{re.escape(name)}\.svg\)", PAGE)
    assert alt and len(alt[1]) > 80, "the text describes the picture"
    assert f"recrawl experiment {name} --figure docs/experiments/{name}.svg" in PAGE


@pytest.mark.soak
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_came_of_it_is_what_comes_of_it(name: str) -> None:
    """To a few percent: what is drawn at random, another version of numpy draws otherwise."""
    comes = EXPERIMENTS[name].run(0, False).says
    sentence = re.sub(NUMBER, lambda _: NUMBER, re.escape(comes))
    came = re.search(sentence, PAGE)
    assert came, f"say `make experiments`, and: recrawl experiment {name}"
    numbers = [[float(number) for number in re.findall(NUMBER, said)] for said in (came[0], comes)]
    assert numbers[0] == pytest.approx(numbers[1], rel=0.1)
