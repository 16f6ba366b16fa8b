"""Draws the figures of docs/why.md from the model that production runs: `make figures`."""

import sys
from io import StringIO
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import ticker
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from recrawl.model.allocation.floors import NO_LIMITS
from recrawl.model.allocation.objectives import OBJECTIVES
from recrawl.model.allocation.solve import Web
from recrawl.model.policies.policy import Question
from recrawl.model.policies.registry import POLICIES

Floats = NDArray[np.float64]

# The colours of a figure, and the colours that replace them in light and in dark, as in the report. A figure has its
# own ground, so it can be read on any page.
COLOURS = {
    "#010101": ("ink", "#1c2426", "#e6ecec"),
    "#020202": ("soft", "#556469", "#a3b3b7"),
    "#030303": ("rule", "#dde3e3", "#2e3a3e"),
    "#040404": ("card", "#ffffff", "#1a2225"),
    "#050505": ("first", "#0e8089", "#35b4be"),
    "#060606": ("second", "#463a96", "#b9b6ff"),
    "#070707": ("third", "#a93008", "#e8692c"),
}
INK, SOFT, RULE, CARD, FIRST, SECOND, THIRD = COLOURS
LINES = ((FIRST, "-"), (SECOND, "--"), (THIRD, ":"))

RATES = np.logspace(-2, 2, 400)  # changes per day
PRICES = (0.1, 0.3, 0.9)  # for pages of value 1
DIVIDED = {"opt_polite": "by price", "uniform": "all alike", "proportional": "as pages change"}  # by which policy
BUDGETS = np.logspace(-1.5, 1.5, 61)  # fetches for each change


def frequencies(objective: str, price: float) -> Floats:
    """Fetches per day of pages of value 1 that change at RATES."""
    return np.asarray(OBJECTIVES[objective].frequency(price, 1.0, RATES))


def made_up_web(pages: int = 20_000) -> tuple[Floats, Floats]:
    """Values and rates: half of the pages change less than once in 20 days, some many times a day."""
    random = np.random.default_rng(1)
    return random.lognormal(0, 1, pages), random.lognormal(np.log(0.05), 2, pages)


def freshness(fetches_for_each_change: float) -> dict[str, float]:
    """The share of the time, weighted by value, that copies are fresh, by how the same budget is divided."""
    value, rate = made_up_web()
    one_host = Web(value, rate, np.array([0, len(value)]), np.array([np.inf]))
    asked = Question(one_host, fetches_for_each_change * float(rate.sum()), "freshness", NO_LIMITS)
    answers = {how: POLICIES[name].answer(asked) for name, how in DIVIDED.items()}
    return {how: answer.utility / float(value.sum()) for how, answer in answers.items()}


def frequency_at_a_price() -> Figure:
    figure = _figure(6.6, 3.4)
    for place, (objective, title) in enumerate(
        (("freshness", "freshness: a right copy"), ("new_content", "new_content: changes seen")), 1
    ):
        axes = _axes(figure, 1, 2, place)
        axes.set_title(title, color=INK, fontsize="medium", loc="left")
        for price, (colour, line) in zip(PRICES, LINES, strict=True):
            taken = frequencies(objective, price)
            axes.plot(
                RATES, np.where(taken > 0, taken, np.nan), line, color=colour, linewidth=2, label=f"price {price:g}"
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlim(0.01, 100)
        axes.set_ylim(0.01, 100)
        axes.set_xlabel("changes per day", color=SOFT)
        axes.set_ylabel("fetches per day" if place == 1 else "", color=SOFT)
        axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
        axes.legend(frameon=False, labelcolor=INK, loc="upper left")
    return figure


def freshness_against_budget() -> Figure:
    figure = _figure(6.6, 3.6)
    axes = _axes(figure, 1, 1, 1)
    of_budgets = [freshness(budget) for budget in BUDGETS]
    for how, (colour, line) in zip(of_budgets[0], LINES, strict=True):
        axes.plot(BUDGETS, [of[how] * 100 for of in of_budgets], line, color=colour, linewidth=2, label=how)
    axes.set_xscale("log")
    axes.set_ylim(0, 100)
    axes.set_xlabel("budget: fetches for each change of the web", color=SOFT)
    axes.set_ylabel("freshness, %", color=SOFT)
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda x, _: f"{x:g}"))
    axes.legend(frameon=False, labelcolor=INK, loc="lower right", title="the budget is divided")
    axes.get_legend().get_title().set_color(SOFT)
    return figure


def _figure(width: float, height: float) -> Figure:
    margins = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.1)  # inches
    return Figure(figsize=(width, height), facecolor=CARD, layout=margins)


def _axes(figure: Figure, rows: int, columns: int, place: int) -> Any:
    axes = figure.add_subplot(rows, columns, place, facecolor=CARD)
    axes.grid(color=RULE, linewidth=0.8)
    axes.tick_params(which="both", colors=SOFT, length=0, pad=6)
    axes.minorticks_off()
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def svg(figure: Figure) -> str:
    """Text stays text, and colours follow the reader's."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "recrawl", "font.family": "sans-serif"}):
        written = StringIO()
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    text = written.getvalue()
    for drawn, (name, _, _) in COLOURS.items():
        text = text.replace(drawn, f"var(--{name})")
    light, dark = (" ".join(f"--{colour[0]}: {colour[scheme]};" for colour in COLOURS.values()) for scheme in (1, 2))
    style = f"<style>:root {{ {light} }} @media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}</style>"
    return text.replace("<defs>", f"{style}\n <defs>", 1)


FIGURES = {"frequency.svg": frequency_at_a_price, "freshness.svg": freshness_against_budget}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (Path(sys.argv[1]) / name).write_text(svg(draw()))
