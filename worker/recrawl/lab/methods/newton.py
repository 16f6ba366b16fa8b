"""Newton–Raphson on the KKT system, as in the optimal revisiting algorithm of crawlfrontier.

Maximises the value of the changes found, Σ value·frequency·(1 − e^(−rate/frequency)), with Σ frequency = budget. That
no frequency is negative is ensured by a multiplier slack²/2 per page. So the equations are, for every page,

    value·φ(rate/frequency) − price + slack²/2 = 0    and    slack·frequency = 0,

and Σ frequency = budget. They are coupled by the price only: a step costs one pass. The source's price is −α/N, and
its formula for Δα lacks a factor N: with it, the frequencies add up to the budget after one full step.

Where it fails: **what is 0 stays 0.** Frequency and slack are changed by a multiple of themselves. A page that was
once dropped is never visited again, however valuable it becomes, so the last solution is no start for the next
problem; a page whose slack is gone can no longer be dropped. From a fresh start it takes some ten steps if every page
is worth visiting, 40 to 170 if many pages must be dropped (1,000 pages). If values and rates span many decades it
never arrives: frequency and slack of a page vanish together, and neither comes back.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recrawl.lab.methods.page import Array, changes_found, checked, gain

STEPS = 200
TOLERANCE = 1e-10


class State(NamedTuple):
    frequency: Array
    slack: Array
    price: float


def solve(value: ArrayLike, rate: ArrayLike, budget: float, start: State | None = None) -> Array:
    """Fetches per day of every page. An ArithmeticError if it gets stuck."""
    values, rates = checked(value, rate, budget)
    crawled = (values > 0) & (rates > 0)
    result = np.zeros_like(rates)
    if budget > 0 and crawled.any():
        begin = start and State(start.frequency[crawled], start.slack[crawled], start.price)
        result[crawled] = optimum(values[crawled], rates[crawled], budget, begin).frequency
    return result


def optimum(value: Array, rate: Array, budget: float, start: State | None = None) -> State:
    """The optimum with all multipliers. Every value, every rate and the budget must be more than 0."""
    state = start or uniform(value, rate, budget)
    for _ in range(STEPS):
        if possible_gain(state, value, rate, budget) <= TOLERANCE * np.sum(
            value * changes_found(state.frequency, rate)
        ):
            return state
        state = step(state, value, rate, budget)
    raise ArithmeticError(f"Newton–Raphson got stuck: not at the optimum after {STEPS} steps")


def uniform(value: Array, rate: Array, budget: float) -> State:
    """A start: all frequencies equal, and slacks far from 0, because a slack of 0 stays 0."""
    frequency = np.full_like(rate, budget / rate.size)
    return State(
        frequency, np.full_like(rate, 0.1 * np.sqrt(value.max())), float(np.mean(value * gain(frequency, rate)))
    )


def possible_gain(state: State, value: Array, rate: Array, budget: float) -> float:
    """An upper limit of the gain of any other way to spend the budget (the objective is concave).

    Infinite while the frequencies do not add up to the budget.
    """
    if abs(state.frequency.sum() - budget) > TOLERANCE * budget:
        return np.inf
    worth = value * gain(state.frequency, rate)
    return float(budget * worth.max() - np.sum(worth * state.frequency))


def step(state: State, value: Array, rate: Array, budget: float) -> State:
    """One step, full unless it would take nine tenths or more of a page's frequency."""
    frequency, slack, price = state
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.minimum(rate / frequency, 1000)  # e^−u is 0 long before
    curvature = value * u**2 * np.exp(-u)
    worth = value * gain(frequency, rate)
    # Below, 1/a and b are the source's, and its Δf/f is the growth.
    a = 1 / np.maximum(slack**2 + curvature, np.finfo(np.float64).tiny)
    b = worth - price - slack**2 / 2
    price_step = -np.sum(budget / rate.size - frequency * (1 + a * b)) / np.sum(a * frequency)
    growth = a * (b - price_step)
    length = min(1.0, 0.9 / max(0.9, -growth.min()))
    return State(
        frequency * (1 + length * growth), slack * (1 - length * (1 + growth)), float(price + length * price_step)
    )
