"""The power method on the normalised link matrix. The histories of OPIC converge to its dominant eigenvector.

A page passes its importance in equal parts to the pages it links to and to a virtual page. The virtual page passes the
same amount to all pages. In one multiplication all pages do this at the same time. OPIC needs no matrix: pages do this
in any order and at any time. The virtual page makes both converge on any graph.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl.model.graph.graph import Graph


def importance(graph: Graph, multiplications: int) -> NDArray[np.float64]:
    """Importance of the pages, adding up to 1, from a uniform start."""
    if multiplications < 0:
        raise ValueError(f"multiplications must not be negative, got {multiplications}")
    if graph.pages == 0:
        return np.empty(0)
    links = np.diff(graph.out_starts)
    has: NDArray[np.float64] = np.ones(graph.pages)
    virtual = 1.0
    for _ in range(multiplications):
        part = has / (links + 1)
        has = np.bincount(graph.out, np.repeat(part, links), minlength=graph.pages).astype(np.float64)
        has += virtual / graph.pages
        virtual = float(part.sum())
    scores: NDArray[np.float64] = has / has.sum()
    return scores
