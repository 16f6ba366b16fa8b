"""The credible interval of a rate, by the formula that SQL uses."""

import numpy as np
from numpy.typing import ArrayLike

from recrawl.model.checks import Array, positive


def plain_interval(a: ArrayLike, b: ArrayLike) -> tuple[Array, Array]:
    """The 90 % interval of a Gamma distribution of rates, with one sqrt and two exp.

    ln(quantile/mean) is a rational function of 1/√a. For large a it is the 1.6449/√a of the normal distribution. The
    coefficients minimise the largest error over a >= .05, relative to the quantile: 5.5e-4 for the upper end and 4.7e-3
    for the lower end, even if the lower end is 1e-27. (The cube of Wilson and Hilferty is wrong by 2 and 63 % at a =
    .7, and gives 0 for the lower end below a = .3.) No prior has a < .05. There the quantiles relative to the mean are
    those at .05.
    """
    a, b = np.broadcast_arrays(positive("a", a), positive("b", b))
    u = 1 / np.sqrt(np.maximum(a, 0.05))
    low = -u * (1.644854 + u * (1.393212 + u * (0.553673 + u * 1.876994))) / (1 + u * (0.2120605 + u * 0.629753))
    high = u * (1.644854 - u * (0.0175891 + u * 0.0185767)) / (1 + u * (0.4594286 + u * 0.007061))
    return a / b * np.exp(low), a / b * np.exp(high)
