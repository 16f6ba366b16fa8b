"""The page importance of Abiteboul, Preda & Cobena (Adaptive on-line page importance computation, 2003).

A page divides its cash equally between the pages it links to and the virtual page. The virtual page gives the same
amount to all pages. The importance of a page is the cash that it has spent and still has, divided by all cash that ever
moved. It converges to the dominant eigenvector of the normalised link matrix. The error falls as 1 / passes.
"""

import numpy as np
from numpy.typing import NDArray

from recrawl.model.graph.graph import Graph


def importance(graph: Graph, passes: int) -> NDArray[np.float64]:
    """Importance, which adds up to 1, after this number of passes. In a pass each page spends once."""
    if passes < 1:
        raise ValueError(f"passes must be positive, got {passes}")
    if graph.pages == 0:
        return np.empty(0)
    cash, history, virtual = np.ones(graph.pages), np.zeros(graph.pages), 1.0
    for _ in range(passes):
        for page in range(graph.pages):
            linked = graph.out[graph.out_starts[page] : graph.out_starts[page + 1]]
            spent, cash[page] = cash[page], 0.0
            history[page] += spent
            cash[linked] += spent / (len(linked) + 1)
            virtual += spent / (len(linked) + 1)
        cash += virtual / graph.pages
        virtual = 0.0
    moved: NDArray[np.float64] = history + cash
    parts: NDArray[np.float64] = moved / moved.sum()
    return parts
