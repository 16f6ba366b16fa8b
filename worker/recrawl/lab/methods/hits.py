"""Hubs and authorities of Kleinberg (Authoritative sources in a hyperlinked environment, 1999), by power iteration.

Pages have no weights here: a hub is worth the sum of the authorities it links to, an authority the sum of the hubs that
link to it. So the densest part of a graph takes everything, and where two parts are equally dense the scores depend on
the start, which is uniform.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recrawl.model.graph.graph import Graph

Amounts = NDArray[np.float64]


@dataclass(frozen=True)
class Hits:
    hub: Amounts  # of length 1 as a vector, like authority; all zero where there are no links
    authority: Amounts
    rounds: int
    residual: float  # how far the last round moved hub and authority, in L1
    converged: bool


def scores(graph: Graph, residual: float = 1e-9, most_rounds: int = 1000) -> Hits:
    if not residual >= 0:
        raise ValueError(f"residual must not be negative, got {residual}")
    if most_rounds < 1:
        raise ValueError(f"most_rounds must be positive, got {most_rounds}")
    sources = np.repeat(np.arange(graph.pages), np.diff(graph.out_starts))
    hub, authority = (_unit(np.ones(graph.pages)) for _ in range(2))
    moved, rounds = math.inf, 0
    while moved > residual and rounds < most_rounds:
        before = np.concatenate([hub, authority])
        authority = _unit(np.bincount(graph.out, weights=hub[sources], minlength=graph.pages))
        hub = _unit(np.bincount(sources, weights=authority[graph.out], minlength=graph.pages))
        moved = float(np.abs(np.concatenate([hub, authority]) - before).sum())
        rounds += 1
    return Hits(hub, authority, rounds, moved, moved <= residual)


def _unit(vector: NDArray[Any]) -> Amounts:
    length = float(np.linalg.norm(vector))
    return vector / length if length else np.zeros(len(vector))
