"""Simulated crawlers in a real database, and the web they crawl."""

import numpy as np
import pytest

from recrawl.lab import drawn
from recrawl.lab.demo_crawl import DemoCrawl


@pytest.mark.parametrize("seed", range(3))
def test_every_page_of_a_drawn_web_is_reached_from_the_first_of_its_host(seed: int) -> None:
    web = drawn.draw(seed, hosts=30, pages=1000)
    assert web.pages == 1000 and np.diff(web.first).min() >= 1
    reached, new = set(web.first[:-1].tolist()), set(web.first[:-1].tolist())
    while new:
        new = {int(other) for page in new for other in web.linked[page]} - reached
        reached |= new
    assert len(reached) == 1000
    assert [web.page_at(web.address(page)) for page in range(0, 1000, 99)] == list(range(0, 1000, 99))


@pytest.mark.soak
def test_a_simulated_crawl_keeps_gaps_and_budget_and_is_fresher_than_uniform_visits(url: str) -> None:
    web = drawn.draw(5, hosts=20, pages=400)
    crawl = DemoCrawl(url, web, budget=300, days=8, seed=5)
    figures = crawl.run()
    assert figures.too_close == 0
    assert figures.pages == sorted(figures.pages) and figures.pages[-1] >= 380
    assert figures.fetches == pytest.approx(8 * 300, rel=0.1)
    compared = crawl.compared()
    assert compared.proportional < compared.uniform < compared.polite <= compared.unpolite
    assert compared.uniform < crawl.late() < compared.polite + 0.01
