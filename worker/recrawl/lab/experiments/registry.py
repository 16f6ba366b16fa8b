"""The list of experiments. The first line of each file says what its experiment shows, and which paper it repeats."""

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType

from recrawl.lab.experiments import behind, divergence, figure_4_5, learning, opic, two_pages
from recrawl.lab.experiments.findings import Findings


@dataclass(frozen=True)
class Experiment:
    name: str
    says: str
    run: Callable[[int, bool], Findings]  # given a seed, and whether to run a smaller form that takes seconds


def _in(name: str, file: ModuleType) -> Experiment:
    return Experiment(name, (file.__doc__ or "").splitlines()[0], file.run)


EXPERIMENTS = {
    experiment.name: experiment
    for experiment in (
        _in("figure-4.5", figure_4_5),
        _in("learning", learning),
        _in("two-pages", two_pages),
        _in("opic", opic),
        _in("divergence", divergence),
        _in("behind", behind),
    )
}


def experiment_named(name: str) -> Experiment:
    if name not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {name!r}")
    return EXPERIMENTS[name]
