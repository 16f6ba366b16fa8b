"""The experiments of the literature come out as the literature, or theory, has them."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from recrawl.lab.experiments import behind, figure_4_5, opic, two_pages
from recrawl.lab.experiments.findings import Findings, Panel, Row
from recrawl.lab.experiments.registry import EXPERIMENTS, experiment_named
from recrawl.lab.methods import delayed
from recrawl.model.allocation.objectives import OBJECTIVES


@cache
def found(name: str, quick: bool = True) -> Findings:
    return experiment_named(name).run(0, quick)


def row(of: Findings, table: int, **known: object) -> Row:
    (one,) = [row for row in of.tables[table].rows if known.items() <= row.items()]
    return one


def number(of: Row, heading: str) -> float:
    return float(of[heading])


def panels(of: Findings) -> list[Panel]:
    return [panel for in_row in of.figure for panel in in_row]


# -------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak if name == "divergence" else []) for name in EXPERIMENTS]
)
def test_an_experiment_finds_tables_a_figure_and_a_sentence(name: str, tmp_path: Path) -> None:
    of = found(name)
    assert EXPERIMENTS[name].says.endswith(".") and of.says.endswith(".") and "nan" not in of.says
    for table in of.tables:
        assert table.rows and all(list(row) == list(table.rows[0]) for row in table.rows), table.title
        assert all(not isinstance(cell, float) or np.isfinite(cell) for row in table.rows for cell in row.values())
    for panel in panels(of):
        assert panel.x and panel.y and panel.title
        for series in panel.series:
            assert series.x.shape == series.y.shape and series.x.size
            assert np.isfinite(series.x).all() and np.isfinite(series.y).all()
    from recrawl.lab.commands.figure import draw_panels  # here: Matplotlib takes each process of a run half a second

    draw_panels(of.figure, tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").stat().st_size > 10_000


def test_an_unknown_experiment_is_named_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match=r"experiment must be one of figure-4\.5, .*opic.*, got 'figure'"):
        experiment_named("figure")


# --------------------------------------------------------------------------------------------------- figure 4.5

# In %, by an independent implementation: UNPOLITE, POLITE, DELAYED with OPT_POLITE and with CHO, what CHO could spend.
THESIS = {
    ("A", 90): (96.118, 75.635, 75.628, 70.991, 27),
    ("A", 10): (77.547, 72.641, 72.641, 68.398, 66),
    ("A", 1): (46.67, 46.67, 46.67, 46.67, 100),
    ("B", 90): (98.906, 93.419, 93.402, 92.996, 49),
    ("B", 10): (91.493, 90.046, 90.045, 88.946, 84),
    ("B", 1): (69.469, 69.469, 69.469, 69.469, 100),
}


def in_order(of: Findings) -> None:
    """Statements that hold for any web."""
    for row in of.tables[0].rows:
        unpolite, polite, best, cho = (
            number(row, name) for name in ("UNPOLITE", "POLITE", figure_4_5.OPT_POLITE, figure_4_5.CHO)
        )
        ours = number(row, figure_4_5.OURS)
        assert unpolite > polite - 1e-8 and polite > best - 1e-5
        assert best > max(cho, ours) - 0.0005


def test_the_best_within_gaps_comes_close_to_its_bound_and_nothing_to_that() -> None:
    of = found("figure-4.5")
    in_order(of)
    for row in of.tables[0].rows:
        assert number(row, "POLITE") - number(row, figure_4_5.OPT_POLITE) < 0.001


def test_freshness_rises_to_its_bound_and_stays() -> None:
    for panel in panels(found("figure-4.5")):
        for series in panel.series:
            if series.look == "line":
                assert series.y[0] < series.y[-1] - 1 and abs(series.y[-1] - series.y[-2]) < 1


@pytest.mark.soak
def test_figure_4_5_is_that_of_theory() -> None:
    of = found("figure-4.5", quick=False)
    in_order(of)
    for (web, share), known in THESIS.items():
        one = row(of, 0, web=web, **{"budget, % of what hosts take": share})
        headings = ("UNPOLITE", "POLITE", figure_4_5.OPT_POLITE, figure_4_5.CHO)
        assert [100 * number(one, heading) for heading in headings] == pytest.approx(known[:4], abs=0.1)
        assert number(one, "CHO can spend, %") == pytest.approx(known[4], abs=0.6)


# ------------------------------------------------------------------------------------------------------ learning


def about_learning(of: Findings) -> None:
    powers = [number(row, "best time to explore: as the horizon to the power of") for row in of.tables[1].rows]
    assert powers == pytest.approx([0.5] * 3, abs=0.1)
    for row in of.tables[0].rows:
        assert number(row, "regret, days") > 0
        assert number(row, "time that Theorem 1 asks for, days") > number(row, "best time to explore, days")
    lost = {str(row["policy"]): number(row, "regret, days") for row in of.tables[2].rows}
    assert len(lost) == 5 and min(lost.values()) > 0
    for row in of.tables[3].rows:
        assert min(number(row, "within Lemma 3's, %"), number(row, "within Lemma 8's, %")) >= 90
    errors = [number(row, "error of moment matching") for row in of.tables[3].rows]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.soak
def test_the_best_time_to_explore_grows_as_the_root_of_the_horizon() -> None:
    of = found("learning", quick=False)
    about_learning(of)
    fewer = [number(row, "regret per day: to the power of") for row in of.tables[1].rows]
    assert fewer == pytest.approx([-0.5] * 3, abs=0.1)


def test_neither_too_short_nor_too_long_an_exploration_is_best() -> None:
    regrets = panels(found("learning"))[0]
    for series in regrets.series:
        assert 0 < series.y.argmin() < series.y.size - 1
        assert series.y.min() < 0.5 * min(series.y[0], series.y[-1])


# ----------------------------------------------------------------------------------------------------- two pages


@pytest.mark.parametrize(
    ("budget", "best"), [(1, (0, 1)), (2, (0.77717, 1.22283)), (4, (2.35945, 1.64055)), (10, (6.58413, 3.41587))]
)
def test_two_pages_share_a_budget_as_the_source_has_it(budget: float, best: tuple[float, float]) -> None:
    one = row(found("two-pages"), 0, **{"budget, fetches a day": budget})
    assert (number(one, "page 1"), number(one, "page 2")) == pytest.approx(best, abs=1e-5)
    assert number(one, "page 1, by the source's dual ascent") == pytest.approx(best[0], abs=1e-5)


def test_the_best_point_of_a_budget_is_where_its_line_touches_a_line_of_equal_value() -> None:
    contour, _ = panels(found("two-pages", quick=False))
    value_found = OBJECTIVES["new_content"].utility
    (best,) = [series for series in contour.series if series.look == "dots"]
    levels = [series for series in contour.series if series.look == "thin"]
    for first, second, budget, level in zip(best.x, best.y, two_pages.BUDGETS, levels, strict=True):
        most = value_found(first, 1.0, 5.0) + value_found(second, 5.0, 1.0)
        assert value_found(level.x, 1.0, 5.0) + value_found(level.y, 5.0, 1.0) == pytest.approx(most, abs=1e-3)
        assert (level.x + level.y).min() == pytest.approx(budget, abs=1e-3)


def test_page_1_is_left_alone_at_first_and_fetched_more_often_in_the_end() -> None:
    _, divided = panels(found("two-pages", quick=False))
    first, second = divided.series
    assert "below 1.21 fetches a day" in found("two-pages", quick=False).says
    assert (first.y[first.x < 1.2] == 0).all() and (first.y[first.x > 1.22] > 0).all()
    assert first.y[-1] > second.y[-1]
    assert first.y + second.y == pytest.approx(first.x)


# ---------------------------------------------------------------------------------------------------------- OPIC


def test_opic_finds_on_crawlfrontiers_graph_what_the_power_method_finds() -> None:
    known = [0.19802, 0.29703, 0.15842, 0.34653]
    for heading, off in (("OPIC, 1,000 passes page by page", 2e-4), ("power method", 5e-6), ("OPIC in batch", 2e-5)):
        assert [number(row, heading) for row in found("opic").tables[0].rows] == pytest.approx(known, abs=off)


def test_page_by_page_the_error_falls_as_one_over_the_passes_and_in_batch_at_once() -> None:
    importance, authority = panels(found("opic"))
    for panel in (importance, authority):
        by_page, *_, in_batch = panel.series
        assert by_page.y[-1] == pytest.approx(by_page.y[-2] / 2, rel=0.2)
        assert in_batch.y[: opic.SWEEPS // 2].min() < 1e-5 < by_page.y[-1]


# ----------------------------------------------------------------------------------------------- hosts that are behind


def test_without_a_choice_the_requests_are_those_of_delayed() -> None:
    rng = np.random.default_rng(0)
    rate, frequency, phase = rng.exponential(1, 40), rng.exponential(170, 40), rng.random(40)
    made = behind.requests(rate, frequency, phase / frequency, np.full(40, -np.inf), 0, 1, behind.first_due, False)
    start, page = delayed.requests(frequency, phase, behind.GAP, 1)
    order = np.argsort(start)
    np.testing.assert_allclose(made[0], start[order], rtol=0, atol=1e-9)
    assert (made[1] == page[order]).all()


@pytest.mark.parametrize(("choice", "skips", "overtakes"), behind.AFTER.values(), ids=behind.AFTER)
def test_a_host_that_is_behind_is_asked_a_gap_apart_for_what_is_due(
    choice: behind.Choice, skips: bool, overtakes: bool
) -> None:
    frequency = np.full(500, 11.0)  # slots are for 5,760 visits a day
    due = np.linspace(-0.5, 0.1, 500)
    start, page = behind.requests(np.ones(500), frequency, due, due - 1 / 11, 0, 0.2, choice, skips, overtakes)
    assert np.diff(start).min() > behind.GAP * 0.999
    for one in range(500):
        visits = start[page == one]
        assert (visits >= due[one]).all() and (visits.size or not skips)
        # Lower limit: one fetch per interval, from the first one on. Upper limit: also the fetches of the half day.
        assert visits.size <= (np.ceil((0.2 - max(due[one], 0)) * 11) + 1 if skips else np.ceil((0.2 - due[one]) * 11))


def test_what_is_worth_most_first_is_fresher_than_what_was_due_first() -> None:
    for of in found("behind").tables[0].rows:
        best, chosen, first = (number(of, name) for name in (behind.WORTH_MOST, behind.EVERY_HOUR, behind.FIRST_DUE))
        assert best - first > 0.002 and chosen - first > 0.5 * (best - first)
        assert abs(number(of, behind.FIRST_DUE) - number(of, behind.EVERY_VISIT)) < 0.005
    for of in found("behind").tables[1].rows:
        assert number(of, behind.STEADIEST) >= number(of, behind.AS_THEY_CAME) > number(of, behind.NO_PASS) + 0.01
