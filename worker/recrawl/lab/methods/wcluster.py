"""WCluster, as in the optimal revisiting algorithm of crawlfrontier: pages of about the same value are treated as one
page.

In the dual of `dual_ascent` pages of equal value add up: a cluster is one page of that value with the sum of the rates.
So the search for the price costs clusters, not pages. Each page then gets the frequency for its own rate and the value
of its cluster.

Limit: the source divides (0, 1] into parts of equal width. Most values of a web are far below the largest one. So most
pages are in the first part and their value is ignored: often half of the objective is lost. Parts of equal width in the
logarithm cost the same. With a hundred of them about 1e−4 is lost, with a thousand 1e−6. In both cases the pages of a
cluster are ties: a budget below 1/40 of the rates of a cluster can lie between two neighbouring prices, and is missed.
(At the edges of its clusters the source writes N, the number of pages, but means the number of clusters.)
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recrawl.lab.methods import dual_ascent
from recrawl.lab.methods.page import Array, checked


class Clusters(NamedTuple):
    label: NDArray[np.int64]  # of each page
    value: Array  # of each cluster


def log_width(value: Array, count: int) -> Clusters:
    """Parts of equal ratio from the smallest to the largest value. The value of a part is the geometric mean of its
    edges."""
    least, largest = np.log(value.min()), np.log(value.max())
    width = (largest - least) / count or 1.0
    label = np.minimum((np.log(value) - least) / width, count - 1).astype(np.int64)
    return Clusters(label, np.exp(least + (np.arange(count) + 0.5) * width))


def equal_width(value: Array, count: int) -> Clusters:
    """As in the source: part k is ((k−1)/count, k/count], and its value is the middle."""
    above = np.flatnonzero(value > 1)
    if above.size:
        raise ValueError(f"value of clusters of equal width must be at most 1, got {value[above[0]]}")
    return Clusters(np.ceil(value * count).astype(np.int64) - 1, (np.arange(count) + 0.5) / count)


def solve(
    value: ArrayLike,
    rate: ArrayLike,
    budget: float,
    count: int = 100,
    cluster: Callable[[Array, int], Clusters] = log_width,
) -> Array:
    """Fetches per day of every page."""
    values, rates = checked(value, rate, budget)
    if count < 1:
        raise ValueError(f"count must be positive, got {count}")
    crawled = (values > 0) & (rates > 0)
    result = np.zeros_like(rates)
    if crawled.any():
        label, cluster_value = cluster(values[crawled], count)
        cluster_rate = np.bincount(label, rates[crawled], minlength=count).astype(np.float64)
        price = dual_ascent.price(cluster_value, cluster_rate, budget)
        result[crawled] = dual_ascent.frequency(price, cluster_value[label], rates[crawled])
    return result
