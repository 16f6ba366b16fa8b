"""Allocation: CPU of one thread, in passes of np.exp over as many doubles as there are pages."""

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bench.table import Line, at_least, at_most, note
from recrawl.model.allocation.floors import Limits
from recrawl.model.allocation.solve import Allocation, Web, allocate, unconstrained

Floats = NDArray[np.float64]
PAGES_A_HOST = 50
CAPS_PER_PAGE = 0.2  # fetches per day that hosts allow in all
FLOORS = Limits(exploration=0.05, longest_interval=30, shortest_interval=1 / 24)


def market() -> Iterator[Line]:
    """All pages at one price: no hosts, no floors."""
    for n in (1_000_000, 10_000_000):
        web = _web(n)
        for load in (0.01, 0.1, 1.0):
            budget = load * CAPS_PER_PAGE * n
            ratio, solve = _in_passes(n, partial(unconstrained, web.value, web.rate, budget))
            proof = _proof(unconstrained(web.value, web.rate, budget))
            yield at_most(f"{n:,} pages, load {load}, one price", ratio, 90, "exp", f" ({1e3 * solve:.0f} ms{proof})")


def golden() -> Iterator[Line]:
    """Against golden section on the dual with the fixed point for u: both to the same budget."""
    n = 1_000_000
    web = _web(n)
    budget = 0.1 * CAPS_PER_PAGE * n
    unconstrained(web.value, web.rate, budget)  # compiles
    quick = _cpu(partial(unconstrained, web.value, web.rate, budget), 5)
    found: list[Floats] = []
    slow = _cpu(lambda: found.append(_by_golden_section(web, budget)), 1)
    missed = abs(found[0].sum() / budget - 1)
    yield at_least(
        f"{n:,} pages, golden section + fixed point", slow / quick, 100, "×", f" (misses the budget by {missed:.0e})"
    )


def polite() -> Iterator[Line]:
    """With a cap for each host; with and without floors and ceilings."""
    for n in (1_000_000, 10_000_000):
        web = _web(n)
        for load in (0.01, 0.1, 0.5, 0.9, 1.1):
            budget = load * float(web.cap.sum())
            for limits, name, bound in ((Limits(), "polite", 400), (FLOORS, "polite, floors", 600)):
                rounds = 3 if n < 10_000_000 else 1
                ratio, solve = _in_passes(n, partial(allocate, web, budget, limits=limits), rounds)
                best = allocate(web, budget, limits=limits)
                remark = f" ({1e3 * solve:.0f} ms, {best.capped.mean():.0%} capped{_proof(best)})"
                yield at_most(f"{n:,} pages, load {load}, {name}", ratio, bound, "exp", remark)


def memory() -> Iterator[Line]:
    """The process' most memory, float32 inputs: run by itself."""
    import resource

    n = 10_000_000
    web = _web(n)
    allocate(web, 0.5 * float(web.cap.sum()), limits=FLOORS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    yield note(f"{n:,} pages: peak of the process, making the web included", f"{peak:.2f} GB")


def _web(n: int) -> Web:
    """Log-normal rates, values and host sizes with heavy tails, gaps of 1 to 60 seconds in proportion."""
    random = np.random.default_rng(1)
    rate = random.lognormal(-1.6, 1.5, n).astype(np.float32)
    value = (random.pareto(1.2, n) + 0.1).astype(np.float32)
    sizes = random.pareto(1.1, n // PAGES_A_HOST) + 0.2
    first = np.concatenate(([0], np.round(np.cumsum(sizes) / sizes.sum() * n))).astype(np.int64)
    cap = 1 / random.uniform(1, 60, len(sizes))
    return Web(value, rate, first, cap * (CAPS_PER_PAGE * n / cap.sum()))


def _in_passes(n: int, solve: Callable[[], object], rounds: int = 7) -> tuple[float, float]:
    """Median CPU of the call as a multiple of that of np.exp, taken in turns; and its seconds."""
    doubles = -np.random.default_rng(2).random(n)
    solve()  # compiles
    ratios, seconds = [], []
    for _ in range(rounds):
        floor = _cpu(lambda: np.exp(doubles), 5)
        seconds.append(_cpu(solve, 1))
        ratios.append(seconds[-1] / statistics.mean((floor, _cpu(lambda: np.exp(doubles), 5))))
    return statistics.median(ratios), statistics.median(seconds)


def _cpu(call: Callable[[], object], rounds: int) -> float:
    taken = []
    for _ in range(rounds):
        before = time.thread_time()
        call()
        taken.append(time.thread_time() - before)
    return statistics.median(taken)


def _proof(best: Allocation) -> str:
    return f"; residual {best.residual:.0e}, spread {best.spread:.0e}, gap {best.duality_gap:.0e}"


def _by_golden_section(web: Web, budget: float) -> Floats:
    value, rate = web.value.astype(np.float64), web.rate.astype(np.float64)
    weight = value / rate

    def frequency(price: float) -> Floats:
        x = price / weight
        bought = x < 1
        x = x[bought]
        u = np.ones(len(x))
        for _ in range(10_000):
            following = np.log((1 + u) / (1 - x))
            done = np.abs(following - u).max(initial=0) < 1e-6
            u = following
            if done:
                break
        frequency = np.zeros(len(weight))
        frequency[bought] = rate[bought] / np.maximum(u, 1e-300)
        return frequency

    def dual(price: float) -> float:
        f = frequency(price)
        u = np.divide(rate, f, out=np.full(len(f), np.inf), where=f > 0)
        return float((weight * f * -np.expm1(-u) - price * f).sum() + price * budget)

    golden = (5**0.5 - 1) / 2
    low, high = np.log(weight.min() * 1e-3), np.log(weight.max())
    left, right = high - golden * (high - low), low + golden * (high - low)
    at_left, at_right = dual(np.exp(left)), dual(np.exp(right))
    while high - low > 1e-9:
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - golden * (high - low)
            at_left = dual(np.exp(left))
        else:
            low, left, at_left = left, right, at_right
            right = low + golden * (high - low)
            at_right = dual(np.exp(right))
    return frequency(float(np.exp((low + high) / 2)))
