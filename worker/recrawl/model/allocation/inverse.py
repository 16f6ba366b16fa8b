"""Inverts the two functions that turn a price into a frequency when visits are equally spaced.

u = rate/frequency is the expected number of changes per visit. For a page of weight W, u is the solution of
    freshness and new content:                      φ(u) = 1 − (1+u)e^−u = price/W
    age:                                            u²/2 − φ(u) = price/W
Some values:

    u               .5      1      2      5      20         40
    φ(u)            .090    .264   .594   .960   1 − 4e−8   1, rounded
    u²/2 − φ(u)     .035    .236   1.41   11.5   199        799

Example: a page of value 1 that changes once a day has the weight 1 for freshness. At the price .594 it has u = 2, so it
is fetched every two days. The functions return 1/u, the fetches per change: .5.

They use piecewise polynomials, exact to a few units in the last place. The tables have the coefficients for small x =
price/W (_u_near_0) and for x near 1, as a function of y = 1 − x (_u_near_1). They are computed at import, in .2 s.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

# Eighty bits if the machine has such numbers. If not, the tables lose about one bit more.
Long = NDArray[np.floating[Any]]

# Degree 5 on 128 pieces per octave is as exact as degree 8 on 16 pieces, and a quarter faster: most of the time goes
# into fetching coefficients.
_DEGREE = 5
# The bits of a positive double, read as an integer, give the piece and the place in it:
#
#     0 eeeeeeeeeee mmmmmmm mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
#     └── bits >> _BELOW ──┘└────────── bits & _LOW_BITS ───────────────┘
#     the number of the      the place in the piece: t runs from −1 (all
#     piece: exponent and    bits 0) to 1 (all bits 1)
#     7 bits of the mantissa
_BELOW = 52 - 7
_LOW_BITS = (1 << _BELOW) - 1
_LAST_BIT = 2.0**-53  # the smallest relative distance of two doubles
# Freshness: for x < 2^−106, 1/u = 1/√(2x) to the last bit. So x is multiplied by 4 until it is at least _TINY, and the
# result is multiplied by 2 as often.
_TINY = 2.0**-108
_SMALL = 2.0**-21  # age: below it a short power series is exact to the last bit
_LARGE = 2.0**11  # age: above it e^−u is too small to matter


def _positive_series(u: Long, coefficients: list[float]) -> Long:
    total = np.zeros_like(u)
    for coefficient in reversed(coefficients):
        total = total * u + np.longdouble(coefficient)
    return total


def _phi(u: Long) -> Long:
    return u * u * np.exp(-u) * _positive_series(u, [1 / math.factorial(k + 2) for k in range(28)])


def _age(u: Long) -> Long:
    """u²/2 − φ(u), without its cancellation near 0."""
    near = np.minimum(u, 3)
    terms = [(k * (k - 1) // 2 - 1) / math.factorial(k) for k in range(3, 40)]
    age: Long = np.where(
        u < 3, near**3 * np.exp(-near) * _positive_series(near, terms), u * u / 2 - 1 + (1 + u) * np.exp(-u)
    )
    return age


def _u_near_0(x: Long) -> Long:
    """Solves φ(u) = x, for x ≤ ½."""
    u = np.sqrt(2 * x) * (1 + np.sqrt(2 * x) / 3)
    for _ in range(6):
        u -= (_phi(u) - x) / (u * np.exp(-u))
    return u


def _u_near_1(y: Long) -> Long:
    """Solves φ(u) = 1 − y, for y ≤ ½. u − ln(1+u) is convex, so Newton's steps come from above and stay above."""
    height = -np.log(y)
    u: Long = height + np.sqrt(2 * height)
    for _ in range(6):
        u -= (u - np.log1p(u) - height) * (1 + u) / u
    return u


def _u_of_age(x: Long) -> Long:
    u: Long = np.sqrt(np.cbrt(3 * x) ** 2 + 2 * x)
    for _ in range(7):
        u -= (_age(u) - x) / (u * -np.expm1(-u))
    return u


def _first_piece(start: float) -> int:
    return int(np.float64(start).view(np.int64) >> _BELOW)


def _pieces(start: float, stop: float, u: Callable[[Long], Long]) -> NDArray[np.float64]:
    """One row of coefficients of 1/u for each piece, from `start` to the piece that contains `stop`.

    They are coefficients of powers of t, which runs from −1 to 1 over the piece. They interpolate at Chebyshev's nodes,
    so that rounding errors stay small.
    """
    edges = (np.arange(_first_piece(start), _first_piece(stop) + 2) << _BELOW).view(np.float64).astype(np.longdouble)
    nodes = chebyshev.chebpts1(_DEGREE + 1).astype(np.longdouble)
    values = 1 / u(edges[:-1, None] + np.diff(edges)[:, None] * (1 + nodes) / 2)
    angles = np.arccos(nodes) * np.arange(_DEGREE + 1)[:, None]
    by_degree = values @ np.cos(angles).T * 2 / (_DEGREE + 1)
    by_degree[:, 0] /= 2
    powers = np.zeros((_DEGREE + 1, _DEGREE + 1), np.longdouble)
    for degree in range(_DEGREE + 1):
        powers[degree, : degree + 1] = chebyshev.cheb2poly([0.0] * degree + [1.0])
    return (by_degree @ powers).astype(np.float64)


_FRESHNESS = np.vstack([_pieces(_TINY, 0.5, _u_near_0), _pieces(_LAST_BIT, 0.5, _u_near_1)]).ravel()
_ROW_0 = _first_piece(_TINY)
_ROW_1 = _first_piece(_LAST_BIT) - (_first_piece(0.5) - _ROW_0 + 1)
_TINY_EXPONENT = int(np.float64(_TINY).view(np.int64) >> 52)

_AGE = _pieces(_SMALL, _LARGE, _u_of_age).ravel()
_ROW_AGE = _first_piece(_SMALL)


@numba.njit(fastmath={"contract"}, forceinline=True)
def _look_up(table, first, bits):  # type: ignore[no-untyped-def]
    row = ((bits >> _BELOW) - first) * 6
    t = (bits & _LOW_BITS) * 2.0 ** (1 - _BELOW) - 1.0
    total = table[row + 5] * t + table[row + 4]
    total = total * t + table[row + 3]
    total = total * t + table[row + 2]
    total = total * t + table[row + 1]
    return total * t + table[row]


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def share_for_freshness(price, weight):  # type: ignore[no-untyped-def]
    """1/u for φ(u) = price/weight and price > 0. Returns 0 if the price is not below the weight.

    It has no branches, so that loops over pages become vector code. Over a million pages it takes as long as 5 passes
    of np.exp, and with branches as long as 11.
    """
    near_1 = 2.0 * price >= weight
    # weight - price is exact if both are near each other (Sterbenz's lemma). 1 − price/weight would not be exact.
    x = (weight - price if near_1 else price) / weight
    least = _LAST_BIT if near_1 else 0.0
    x = x if x > least else least  # not max: it would keep the NaN of 0/0, and the index would be outside the table
    bits: Any = np.float64(x).view(np.int64)
    # For a tiny x, 1/u at x is twice 1/u at 4x. `quarters` is how often x is multiplied by 4 (see _TINY).
    quarters = max(0, (_TINY_EXPONENT + 1 - (bits >> 52)) >> 1)
    found = _look_up(_FRESHNESS, _ROW_1 if near_1 else _ROW_0, bits + (quarters << 53))
    return found * np.int64((1023 + quarters) << 52).view(np.float64) if price < weight else 0.0


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def share_for_age(price, weight):  # type: ignore[no-untyped-def]
    """1/u for u²/2 − φ(u) = price/weight and price > 0. Returns 0 if the weight is 0."""
    if weight == 0.0:
        return 0.0
    x = price / weight
    if x >= _LARGE:
        return 1.0 / math.sqrt(2.0 * (x + 1.0))
    if x >= _SMALL:
        return _look_up(_AGE, _ROW_AGE, np.float64(x).view(np.int64))
    s = (3.0 * x) ** (1 / 3)
    s -= (s - 3.0 * x / (s * s)) / 3.0  # no double is exactly 1/3: without this step the error is 1e-15
    higher = 13 / 960 + s * (13 / 23040 + s * (-599 / 3225600 + s * (-2683 / 51609600)))
    return 1.0 / (s * (1.0 + s * (1 / 8 + s * higher)))


# From here on: e^−u in plain arithmetic, because the compiler makes no vector code of a loop that calls exp.


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def _tail(u):  # type: ignore[no-untyped-def]
    """(e^u − 1 − u) / u², for −½ ≤ u ≤ ½."""
    total = u * (1 / 1307674368000) + 1 / 87178291200
    total = total * u + 1 / 6227020800
    total = total * u + 1 / 479001600
    total = total * u + 1 / 39916800
    total = total * u + 1 / 3628800
    total = total * u + 1 / 362880
    total = total * u + 1 / 40320
    total = total * u + 1 / 5040
    total = total * u + 1 / 720
    total = total * u + 1 / 120
    total = total * u + 1 / 24
    total = total * u + 1 / 6
    return total * u + 1 / 2


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def exp_of_minus(u):  # type: ignore[no-untyped-def]
    """e^−u for u ≥ 0, to about one unit in the last place."""
    u = min(u, 708.0)
    octaves = np.floor(u * 1.4426950408889634 + 0.5)
    rest = octaves * 0.6931471803691238 - u + octaves * 1.9082149292705877e-10  # ln 2 in two parts
    power = (np.int64(1023) - np.int64(octaves)) << 52
    return (1.0 + (rest + rest * rest * _tail(rest))) * np.int64(power).view(np.float64)


@numba.njit(fastmath={"contract"}, error_model="numpy", forceinline=True)
def phi_and_seen(u):  # type: ignore[no-untyped-def]
    """φ(u), and 1 − e^−u, the probability that a visit finds a change. Neither loses digits near 0."""
    u = min(u, 708.0)  # may be infinite
    gone = exp_of_minus(u)
    near = min(u, 0.5)
    tail = _tail(near)
    phi = near * near * gone * tail if u < 0.5 else 1.0 - gone - u * gone
    seen = near * gone * (1.0 + near * tail) if u < 0.5 else 1.0 - gone
    return phi, seen
